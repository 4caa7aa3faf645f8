"""Every command that the documents show is run: against `enbloc up`, with the files that the pages speak of.

What cannot run here is in `ELSEWHERE`, with the reason and what runs it instead. `make e2e-node` runs the commands of
the installation on a real node.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.doc_commands import ROOT, Shown, shown
from up.test_up import up

ELSEWHERE = {
    "make run": "it is `enbloc up --load examples/quickstart.yaml`, which is run here, after an installation",
    "make test": "the tests do not run themselves",
    "pip install enbloc": "tests/e2e/test_wheel.py installs the wheel that is built",
    "docker build -t registry.example/enbloc:0.1.0 .": "there is no Docker engine here: `make image` builds the image",
    "skopeo copy oci-archive:build/enbloc-image.tar docker://registry.example/enbloc:0.1.0": "there is no registry",
    "helm install enbloc enbloc-chart --namespace enbloc-system --create-namespace "
    "--set image=registry.example/enbloc:0.1.0": "needs helm and a node: tests/node/test_installed.py",
    "kubectl -n enbloc-system logs deployment/enbloc-dashboard | grep token": "needs a container that writes it: "
    "tests/node/test_installed.py",
    "kubectl -n enbloc-system port-forward deployment/enbloc-dashboard 8080": "needs a container that listens: "
    "tests/node/test_installed.py",
    "kubectl -n enbloc-system patch secret enbloc-webhook-certificates --type=json "
    """-p '[{"op": "remove", "path": "/data"}]'""": "needs a webhook that has filled it: tests/node/test_installed.py",
    "enbloc run --record /var/lib/enbloc/recording": "a cluster has one scheduler: tests/runtime/test_recorder.py",
    "enbloc replay-recording /var/lib/enbloc/recording --config other.yaml": "tests/runtime/test_recorder.py",
    "kubectl apply --server-side -k ray-operator/config/crd": "tests/operators/test_operators.py",
    "kubectl apply -f ray-operator/config/samples/ray-cluster.complete.yaml": "tests/operators/test_operators.py",
    "kubectl get raycluster,podgroups.scheduling.volcano.sh,pods": "needs KubeRay: tests/operators/test_operators.py",
}
ENDLESS = ("enbloc up ", "enbloc dashboard ")
"""They go on until Ctrl-C: they are ended by it once they have printed their address."""
INSTALLATION = ("install.md", "security.md", "upgrade.md")
SUBSTITUTES = {"sha256:...": f"sha256:{'0' * 64}"}
NODE = """
apiVersion: v1
kind: Node
metadata: {{name: node-{0}, labels: {{kubernetes.io/hostname: node-{0}}}}}
status: {{capacity: {{cpu: "{1}", memory: 32Gi, pods: "110", nvidia.com/gpu: "4"}}}}
---
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {0}, namespace: default, annotations: {{sim.enbloc.dev/at: 0s}}}}
spec:
  tasks:
  - name: worker
    replicas: {1}
    template:
      metadata: {{annotations: {{sim.enbloc.dev/run-time: {3}}}}}
      spec: {{restartPolicy: Never, containers: [{{name: w, image: i, resources: {{requests: {{cpu: "{2}"}}}}}}]}}
---
"""
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
---
"""
SWF = "\n".join(f"{n} {n * 10} -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 -1 -1 -1" for n in range(1, 6))
CSV = "submit_time,duration,num_gpu\n" + "".join(f"{n * 1000},60000,2\n" for n in range(5))


def _files(folder: Path) -> None:
    """What the pages take for granted."""
    (folder / "examples").symlink_to(ROOT / "examples")
    job = JOB.format("mine", 2, 1, "30s")
    nodes = "".join(NODE.format(number, 8) for number in (1, 2, 7))
    world = nodes + QUEUE + JOB.format("resnet", 4, 3, "1h") + JOB.format("bert", 2, 6, "1h")
    world += JOB.format("giant", 1, 12, "1h") + JOB.format("done", 1, 1, "100ms")
    written = {
        "job.yaml": job,
        "jobs.yaml": job,
        "nodes.yaml": nodes,
        "jobs/job.yaml": job,
        "new-config.yaml": "actions: 'enqueue, allocate'\n",
        "other.yaml": "actions: 'enqueue, allocate'\n",
        "last-month.swf": SWF,
        "jobs.csv": CSV,
        "now.yaml": world,
        "world.yaml": world,
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)


class Reader:
    """Types the commands of the pages into a shell, one after the other, in one folder."""

    def __init__(self, folder: Path, kubeconfig: Path, programs: Mapping[str, Path]) -> None:
        self._folder = folder
        tools = folder / "tools"
        tools.mkdir()
        (tools / "kubectl").symlink_to(programs["kubectl"])
        (tools / "enbloc").write_text(f'#!/bin/sh\nexec {sys.executable} -m enbloc "$@"\n')
        (tools / "enbloc").chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
        }

    def type(self, command: str) -> str:
        """What went wrong; empty if nothing did."""
        for shown_text, text in SUBSTITUTES.items():
            command = command.replace(shown_text, text)
        if f"{command} ".startswith(ENDLESS):
            return self._interrupt(command)
        script = f'set -o pipefail; fpath=(none "$HOME"); {command}'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        return "" if done.returncode == 0 else f"$ {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"

    def _interrupt(self, command: str) -> str:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command} --port 0"],
            cwd=self._folder,
            env={**self._environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        try:
            said = ""
            while "http://127.0.0.1:" not in said:
                line = process.stdout.readline()
                if not line:
                    return f"$ {command}\n{said}"
                said += line
            process.send_signal(signal.SIGINT)
            code = process.wait(60)
            return "" if code == 0 else f"$ {command}\nended with {code} after Ctrl-C: {process.stdout.read()}"
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(20)
            process.stdout.close()


@pytest.fixture
def reader(tmp_path: Path, programs: Mapping[str, Path]) -> Iterator[Reader]:
    _files(tmp_path)
    with up(tmp_path, "--load", str(tmp_path / "world.yaml")) as (_, lines):
        reader = Reader(tmp_path, Path(lines[-1].partition("=")[2]), programs)
        until = time.monotonic() + 60
        while reader.type("kubectl wait --for=jsonpath='{.status.state.phase}'=Completed vcjob/done --timeout=5s"):
            assert time.monotonic() < until
        yield reader


def _here(page: Shown) -> bool:
    return page.command not in ELSEWHERE


def test_each_command_has_its_place() -> None:
    commands = {one.command for one in shown()}
    assert len(commands) > 60
    assert sorted(ELSEWHERE.keys() - commands) == [], "no page shows them any more"
    for reason in ELSEWHERE.values():
        for word in reason.split():
            if word.startswith("tests/"):
                assert (ROOT / word.rstrip(",")).is_file(), word


def test_every_command_of_the_pages_runs(reader: Reader) -> None:
    commands = [one.command for one in shown() if _here(one) and one.page not in INSTALLATION]
    failed = [why for command in commands if "kubectl delete " not in command and (why := reader.type(command))]
    assert not failed, "\n".join(failed)


INSTALL = "enbloc install --dashboard | kubectl apply --server-side --force-conflicts -f -"


def test_every_command_of_an_installation_runs(reader: Reader) -> None:
    """In the order of the pages, but for the two ways of removal: those come last, each from an installation."""
    commands = [one.command for one in shown() if _here(one) and one.page in INSTALLATION]
    removals = [one.command for one in shown() if "kubectl delete " in one.command]
    whole = [one for one in removals if one.startswith("enbloc install")]
    assert len(whole) == 1
    ordered = [INSTALL, *(one for one in commands if one not in removals)]
    ordered += [*(one for one in removals if one not in whole), INSTALL, *whole]
    failed = [why for command in ordered if (why := reader.type(command))]
    assert not failed, "\n".join(failed)


def test_the_steps_of_the_migration_are_carried_out(reader: Reader, tmp_path: Path) -> None:
    """docs/migration.md, from Volcano: a manifest of its users is checked, simulated, installed over, and runs."""
    theirs = JOB.format("theirs", 3, 1, "1s").replace("spec:\n  tasks", "spec:\n  schedulerName: volcano\n  tasks")
    (tmp_path / "theirs.yaml").write_text(theirs)
    steps = (
        "kubectl apply -f theirs.yaml",
        "kubectl get nodes,queues,podgroups,vcjob,pods -A -o yaml > now.yaml",
        "enbloc lint --compat volcano now.yaml",
        "enbloc sim --compat volcano now.yaml",
        "enbloc install --compat volcano | kubectl apply --server-side --force-conflicts -f -",
        "kubectl wait --for=jsonpath='{.status.state.phase}'=Completed vcjob/theirs --timeout=60s",
        "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration enbloc",
        "kubectl delete namespace enbloc-system",
        "kubectl get vcjob theirs",  # back: the objects are Volcano's own
    )
    failed = [why for step in steps if (why := reader.type(step))]
    assert not failed, "\n".join(failed)
    text = (ROOT / "docs" / "migration.md").read_text()
    for step in (*steps[1:5],):
        assert step in text, "the page shows other steps"


def test_a_command_that_fails_would_be_found(reader: Reader) -> None:
    assert "exit code 2" in reader.type("enbloc sim missing.yaml")
    assert "exit code" in reader.type("kubectl get nonsense | cat")
