"""`enbloc up`, as a user starts and stops it."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import pty
import select
import signal
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from enbloc.cli.up import command
from enbloc.up.options import Options, make_nodes, parse_resources

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart.yaml"


class Up:
    """A running cluster."""

    def __init__(self, process: subprocess.Popen[str], kubeconfig: Path) -> None:
        self.process = process
        config = json.loads(kubeconfig.read_text())
        assert kubeconfig.stat().st_mode & 0o077 == 0
        cluster = config["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self._tls = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        self._token = config["users"][0]["user"]["token"]
        self.warnings: list[str] = []
        """The `Warning` headers of the last answer."""

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """With a body it is a POST; `method="PATCH"`: a merge patch."""
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, context=self._tls, timeout=20) as answer:
            self.warnings = answer.headers.get_all("Warning") or []
            return json.load(answer)

    def page(self, path: str) -> str:
        with urllib.request.urlopen(self.server.replace("https:", "http:") + path, timeout=20) as answer:
            text: str = answer.read().decode()
            return text

    def wait_for(self, path: str, count: int) -> list[Any]:
        end_s = time.monotonic() + 30
        while True:
            items: list[Any] = self.ask(path)["items"]
            if len(items) >= count or time.monotonic() > end_s:
                return items
            time.sleep(0.1)

    def stop(self) -> tuple[int, float]:
        """The exit code, and how long it took."""
        begin_s = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20), time.monotonic() - begin_s


@contextmanager
def up(home: Path, *arguments: str) -> Iterator[tuple[Up, list[str]]]:
    """Starts it on a free port, and gives it together with the lines it greeted with."""
    environment = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    environment.pop("XDG_STATE_HOME", None)
    code = "from enbloc.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "up", "--port", "0", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while not lines or "export KUBECONFIG=" not in lines[-1]:
            line = process.stdout.readline()
            assert line, lines
            lines.append(line.rstrip("\n"))
        yield Up(process, Path(lines[-1].partition("=")[2])), lines
    finally:
        process.kill()
        process.wait(20)
        process.stdout.close()


@contextmanager
def run_elsewhere(home: Path, kubeconfig: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`enbloc run` as on a real cluster, for a cluster without a scheduler."""
    code = "from enbloc.cli.main import main; main()"
    run = subprocess.Popen(
        [
            sys.executable,
            "-c",
            code,
            "run",
            "--port",
            "0",
            "--leader-elect",
            "--lease-namespace",
            "default",
            *arguments,
        ],
        env={**os.environ, "HOME": str(home), "KUBECONFIG": kubeconfig},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield run
    finally:
        run.kill()
        run.wait()
        assert run.stderr is not None
        run.stderr.close()


def test_the_quickstart_runs_is_shown_and_stops(tmp_path: Path) -> None:
    with up(tmp_path, "--load", str(QUICKSTART)) as (cluster, lines):
        assert lines[0].startswith("enbloc is up: http://127.0.0.1:")
        pods = cluster.wait_for("/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DRunning", 4)
        assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
        facts = json.loads(cluster.page("/api/overview"))
        assert [gang["gang"] for gang in facts["gangs"]][-1] == "default/resnet"
        assert "<title>enbloc</title>" in cluster.page("/")
        assert 'enbloc_gangs{queue="default",reason="",state="running"} 1.0' in cluster.page("/metrics")
        assert "It runs: 4 pods" in cluster.page("/api/explain/default/resnet")
        code, seconds = cluster.stop()
        assert code == 0
        assert seconds < 5  # two, on a machine that has nothing else to do


def test_on_a_terminal_it_draws_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    code = "from enbloc.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "up", "--port", "0", "--load", str(QUICKSTART)],
        env={**os.environ, "HOME": str(tmp_path), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        shown = _read_until(ours, b"node-2 (2)")
        for word in (b"kubectl get vcjob,podgroup,pods -A", b"GANG", b"default/resnet", b"QUEUE", b"4/4", b"Running"):
            assert word in shown
        os.write(ours, b"\x03")
        assert b"enbloc has stopped." in _read_until(ours, b"has stopped.")
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read_until(terminal: int, word: bytes) -> bytes:
    seen, end_s = b"", time.monotonic() + 30
    while word not in seen and time.monotonic() < end_s:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65_536)
    assert word in seen, seen[-2000:]
    time.sleep(0.2)
    return seen


def test_a_write_over_http_is_scheduled_and_the_state_is_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    pod = {
        "metadata": {"name": "p"},
        "spec": {"schedulerName": "enbloc", "containers": [{"name": "c", "image": "x"}]},
    }
    pods = "/api/v1/namespaces/default/pods"
    with up(tmp_path, "--data", str(data), "--nodes", "1") as (cluster, _):
        cluster.ask(pods, pod)
        about = {"kind": "Pod", "name": "gone", "namespace": "default"}
        old = {"metadata": {"name": "old"}, "involvedObject": about, "lastTimestamp": "2026-01-01T00:00:00Z"}
        cluster.ask("/api/v1/namespaces/default/events", old)
        running = cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DRunning", 1)
        assert running[0]["spec"]["nodeName"] == "node-1"
        assert cluster.stop()[0] == 0
    first = cluster
    with up(tmp_path, "--data", str(data)) as (cluster, _):
        again = cluster.ask(f"{pods}/p")
        assert again["metadata"]["uid"] == running[0]["metadata"]["uid"]
        assert len(cluster.ask("/api/v1/nodes")["items"]) == 1
        events = [one["metadata"]["name"] for one in cluster.ask("/api/v1/namespaces/default/events")["items"]]
        assert events
        assert "old" not in events, "Events expire after an hour"
        first.server = cluster.server
        assert first.ask(f"{pods}/p") == again, "a kubeconfig of before is still valid"


def test_a_played_pod_goes_on_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "metadata": {"name": "p", "annotations": {"sim.enbloc.dev/run-time": "5s"}},
        "spec": {"schedulerName": "enbloc", "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    with up(tmp_path, "--data", str(data), "--nodes", "1") as (cluster, _):
        cluster.ask(pods, pod)
        (running,) = cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DRunning", 1)
        # What is acknowledged is kept, and all that came before it.
        cluster.ask("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        cluster.process.kill()
        cluster.process.wait(20)
    with up(tmp_path, "--data", str(data)) as (cluster, _):
        (over,) = cluster.wait_for(f"{pods}?fieldSelector=status.phase%3DSucceeded", 1)
    ran = over["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ran["startedAt"] == running["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    data = tmp_path / "data"
    maps = "/api/v1/namespaces/default/configmaps"
    acknowledged: dict[str, str] = {}

    def write(cluster: Up, who: int) -> None:
        for number in range(10_000):
            name = f"cm-{who}-{number}"
            try:
                made = cluster.ask(maps, {"metadata": {"name": name}, "data": {"n": str(number)}})
            except (OSError, http.client.HTTPException, ValueError):
                return
            acknowledged[name] = made["metadata"]["uid"]

    with up(tmp_path, "--data", str(data), "--nodes", "1") as (cluster, _):
        writers = [threading.Thread(target=write, args=(cluster, who)) for who in range(4)]
        for writer in writers:
            writer.start()
        time.sleep(1.5)
        cluster.process.kill()
        for writer in writers:
            writer.join(30)
    with up(tmp_path, "--data", str(data)) as (cluster, _):
        found = {one["metadata"]["name"]: one["metadata"]["uid"] for one in cluster.ask(maps)["items"]}
    assert acknowledged
    assert acknowledged.items() <= found.items()
    assert len(found) <= len(acknowledged) + len(writers) + 1  # what was under way, and nothing else


def test_the_scheduler_may_be_elsewhere(tmp_path: Path) -> None:
    """API and nodes here, `enbloc run` as on a real cluster there."""
    with up(tmp_path, "--no-scheduler", "--load", str(QUICKSTART)) as (cluster, lines):
        kubeconfig = lines[-1].partition("=")[2]
        assert cluster.wait_for("/apis/batch.volcano.sh/v1alpha1/jobs", 1)
        assert not cluster.ask("/api/v1/pods")["items"]
        with run_elsewhere(tmp_path, kubeconfig) as run:
            pods = cluster.wait_for("/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DRunning", 4)
            assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
            run.send_signal(signal.SIGTERM)
            _, said = run.communicate(timeout=20)
            assert run.returncode == 0, said
            assert "Traceback" not in said


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--node-resources", "cpu"], "--node-resources: 'cpu' is not NAME=AMOUNT"),
        (["--node-resources", "cpu=many"], "--node-resources:"),
        (["--load", "/nowhere.yaml"], "/nowhere.yaml"),
        (["--listen", "203.0.113.7"], "cannot listen on 203.0.113.7"),
    ],
)
def test_what_cannot_be_is_one_line_and_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    code = "from enbloc.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "up", "--port", "0", *arguments],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_address_comes_first(tmp_path: Path) -> None:
    """Before the note on whose pods are scheduled here, wherever both are read."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from enbloc.cli.main import main; main()", "up", "--port", "0"],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while "export KUBECONFIG=" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    lines += process.stdout.read().splitlines()
    assert process.wait(60) == 0
    process.stdout.close()
    noted = next(line for line in lines if "are scheduled here" in line)
    assert lines[0].startswith("enbloc is up: http://127.0.0.1:")
    assert noted.startswith("enbloc: note: pods that name default-scheduler, ")


def test_a_terminal_that_is_closed_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    with up(tmp_path) as (cluster, lines):
        kubeconfig = Path(lines[-1].partition("=")[2])
        assert kubeconfig.exists()
        cluster.process.send_signal(signal.SIGHUP)
        assert cluster.process.wait(30) == 0
        assert not list(kubeconfig.parents[1].iterdir())


def test_a_busy_port_says_who_has_it_and_what_to_do(tmp_path: Path) -> None:
    with up(tmp_path) as (cluster, lines):
        kubeconfig = Path(lines[-1].partition("=")[2])
        port = kubeconfig.parent.name.removeprefix("up-")
        done = subprocess.run(
            [sys.executable, "-c", "from enbloc.cli.main import main; main()", "up", "--port", port],
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 2
        in_use = f"127.0.0.1:{port} is in use by the `enbloc up` at https://127.0.0.1:{port}"
        assert done.stderr.endswith(f"enbloc: {in_use}: --port N takes another port, --port 0 any free one\n")
        assert kubeconfig.exists()
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.process.wait(30) == 0
        assert not kubeconfig.parent.exists()  # of a cluster whose port was any free one


def test_the_option_that_was_removed_says_so() -> None:
    for value in ("process", "sim"):
        done = CliRunner().invoke(command, ["--runtime", value])
        assert done.exit_code == 2
        assert len(done.output.splitlines()) == 1
        assert done.output.startswith("enbloc: --runtime was removed: containers of `enbloc up` are simulated")
    assert "--runtime" not in CliRunner().invoke(command, ["--help"]).output


def test_resources_and_nodes() -> None:
    assert parse_resources("cpu=8,memory=32Gi, nvidia.com/gpu=4") == {
        "cpu": "8",
        "memory": "32Gi",
        "nvidia.com/gpu": "4",
    }
    nodes = make_nodes(Options(nodes=3, resources={"cpu": "4"}), load_brings_nodes=True)
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2", "node-3"]
    assert nodes[0]["status"]["allocatable"] == {"cpu": "4", "pods": "110", "ephemeral-storage": "100Gi"}
    assert make_nodes(Options(), load_brings_nodes=True) == []
    assert len(make_nodes(Options(), load_brings_nodes=False)) == 2


def test_whatif_on_a_running_cluster(tmp_path: Path) -> None:
    """A snapshot goes on where it was taken: the running gang ends when it would, and the next one starts then."""
    with up(tmp_path, "--load", str(QUICKSTART)) as (cluster, lines):
        cluster.wait_for("/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DRunning", 4)
        cluster.wait_for("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", 2)
        environment = {**os.environ, "KUBECONFIG": lines[-1].partition("=")[2], "HOME": str(tmp_path)}

        def enbloc(*arguments: str) -> str:
            code = "from enbloc.cli.main import main; main()"
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        enbloc("snapshot", "-o", str(tmp_path / "now.json"))
        answer = json.loads(enbloc("sim", str(tmp_path / "now.json"), "-o", "json"))
        gangs = {gang["gang"]: gang for gang in answer["gangs"]}
        assert gangs["default/resnet"]["started"] <= 0
        assert 0 < gangs["default/resnet"]["ended"] <= 60
        assert abs(gangs["default/bert"]["started"] - gangs["default/resnet"]["ended"]) < 1  # its pods end one by one
        changes = json.loads(enbloc("whatif", "-o", "json", "add-nodes", "2", "--like", "node-1"))["changes"]
        assert [(one["gang"], one["change"], one["after"]["started"]) for one in changes] == [
            ("default/bert", "starts sooner", 0.0)
        ]
