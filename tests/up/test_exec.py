"""`kubectl exec`, `cp` and `port-forward` against `enbloc up --runtime process`, with an unmodified kubectl."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.embedded.http.test_kubectl import KUBECTL
from enbloc.cluster.embedded.process.mount_root import may_mount
from up.test_up import up

pytestmark = pytest.mark.skipif(
    KUBECTL is None and not os.environ.get("CI"), reason="there is no kubectl; `make e2e` builds one"
)
SERVES = (
    "import http.server, os\n"
    "class Page(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200)\n"
    "        self.end_headers()\n"
    "        self.wfile.write(b'x' * 300000 + os.environ['WHO'].encode())\n"
    "    def log_message(self, *_): pass\n"
    "http.server.HTTPServer((os.environ['POD_IP'], 8000), Page).serve_forever()\n"
)
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: web}}
spec:
  containers:
  - name: main
    command: [{sys.executable}, -c, {SERVES!r}]
    env:
    - {{name: WHO, value: enbloc}}
    - {{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}
"""


class Kubectl:
    def __init__(self, kubeconfig: str, home: Path) -> None:
        self.environment = {"KUBECONFIG": kubeconfig, "HOME": str(home), "PATH": os.environ["PATH"]}

    def __call__(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        assert KUBECTL is not None, "CI needs a kubectl"
        command = [KUBECTL, *arguments]
        return subprocess.run(command, env=self.environment, input=given, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("exec")
    with up(folder, "--nodes", "1", "--runtime", "process") as (_, lines):
        made = Kubectl(lines[-1].partition("=")[2], folder)
        applied = made("apply", "-f", "-", given=POD)
        assert applied.returncode == 0, applied.stderr
        ready = made("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
        assert ready.returncode == 0, ready.stderr
        yield made


def test_a_command_has_the_container_s_environment_and_its_own_streams(kubectl: Kubectl) -> None:
    done = kubectl("exec", "web", "--", "sh", "-c", 'echo "$WHO"; echo wrong >&2; exit 3')
    assert (done.stdout, done.returncode) == ("enbloc\n", 3)
    assert "wrong" in done.stderr
    assert "exit code 3" in done.stderr


def test_input_is_passed_and_ends(kubectl: Kubectl) -> None:
    text = "line\n" * 50_000
    done = kubectl("exec", "-i", "web", "--", "wc", "-l", given=text)
    assert (done.returncode, done.stdout.strip()) == (0, "50000"), done.stderr


def test_a_command_that_does_not_exist_says_so(kubectl: Kubectl) -> None:
    done = kubectl("exec", "web", "--", "no-such-command")
    assert done.returncode == 127
    assert '"no-such-command" cannot be started' in done.stderr


def test_a_command_may_have_a_terminal(kubectl: Kubectl) -> None:
    assert KUBECTL is not None
    own, its = pty.openpty()
    command = [KUBECTL, "exec", "-it", "web", "--", "sh", "-c", "test -t 0 && tty"]
    process = subprocess.Popen(command, env=kubectl.environment, stdin=its, stdout=its, stderr=subprocess.PIPE)
    os.close(its)
    try:
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert b"/dev/pts/" in os.read(own, 4096)
    finally:
        process.kill()
        os.close(own)


def test_files_are_copied(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("there")
    target = tmp_path / "copied.txt"
    assert kubectl("cp", str(tmp_path / "there.txt"), f"web:{target}").returncode == 0
    assert target.read_text() == "there"


def test_ports_are_forwarded(kubectl: Kubectl) -> None:
    with forwarded(kubectl, "8000") as port:
        for _ in range(2):  # two connections
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                assert answer.read() == b"x" * 300_000 + b"enbloc"


def test_a_port_at_which_nothing_listens_is_named(kubectl: Kubectl) -> None:
    with forwarded(kubectl, "8001", says="nothing answers at 127.") as port, contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30)


def test_what_does_not_run_is_refused(kubectl: Kubectl) -> None:
    assert 'pods "nothing" not found' in kubectl("exec", "nothing", "--", "true").stderr
    refused = kubectl("exec", "web", "-c", "other", "--", "true")
    assert "container other is not valid for pod web" in refused.stderr


def test_mounts_are_at_their_absolute_paths(kubectl: Kubectl, tmp_path: Path) -> None:
    """`sees` is true of what the container, and a command of `exec`, find at the paths of the manifest."""
    if (refused := may_mount()) is not None:
        pytest.skip(f"no mount namespace is allowed here: {refused}")
    sees = "cat /etc/enbloc-test-only/settings/colour /enbloc-test-only/data/there"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mounted"},
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "colours"}}],
            "containers": [
                {
                    "name": "main",
                    "command": ["sh", "-c", f"echo there > /enbloc-test-only/data/there; {sees}; sleep 100"],
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/enbloc-test-only/data"},
                        {"name": "settings", "mountPath": "/etc/enbloc-test-only/settings/", "readOnly": True},
                    ],
                }
            ],
        },
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colours"}, "data": {"colour": "blue\n"}}
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [settings, pod]})
    assert kubectl("apply", "-f", "-", given=given).returncode == 0
    ready = kubectl("wait", "--for=condition=Ready", "pod/mounted", "--timeout=60s")
    assert ready.returncode == 0, ready.stderr
    end = time.monotonic() + 30
    while (log := kubectl("logs", "mounted").stdout) != "blue\nthere\n":
        assert time.monotonic() < end, log
        time.sleep(0.1)
    assert kubectl("exec", "mounted", "--", "sh", "-c", sees).stdout == "blue\nthere\n"
    refused_write = kubectl("exec", "mounted", "--", "sh", "-c", "echo red > /etc/enbloc-test-only/settings/colour")
    assert "Read-only" in refused_write.stderr
    assert not Path("/enbloc-test-only").exists()
    assert not Path("/etc/enbloc-test-only").exists()
    kubectl("delete", "pod", "mounted", "--grace-period=0", "--force")


@contextlib.contextmanager
def forwarded(kubectl: Kubectl, port: str, says: str = "") -> Iterator[str]:
    """The local port; at the end stderr `says` this."""
    assert KUBECTL is not None
    command = [KUBECTL, "port-forward", "pod/web", f":{port}"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=kubectl.environment, stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+) ->", process.stdout.readline())
        assert found is not None
        yield found[1]
        if says:
            assert says in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


def test_no_command_outlives_its_container(kubectl: Kubectl, tmp_path: Path) -> None:
    assert KUBECTL is not None
    made = kubectl("run", "short", "--image=none", "--restart=Never", "--command", "--", "sleep", "100")
    assert made.returncode == 0, made.stderr
    kubectl("wait", "--for=condition=Ready", "pod/short", "--timeout=60s")
    file = tmp_path / "pid"
    command = [KUBECTL, "exec", "short", "--", "sh", "-c", f"echo $$ > {file}; exec sleep 100"]
    process = subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 30
        while not (file.exists() and file.read_text().strip()):
            assert time.monotonic() < end
            time.sleep(0.05)
        kubectl("delete", "pod", "short", "--grace-period=0", "--force")
        assert process.wait(30) == 137
        assert not Path(f"/proc/{file.read_text().strip()}").exists()
    finally:
        process.kill()
        process.communicate()
