"""The command line: exit codes, one line for each problem, no traceback for anything that a user can cause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {schedulerName: enbloc, containers: [{name: c}]}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  queue: %s
  tasks:
  - {name: worker, replicas: %s, template: {spec: {containers: [{name: c}]}}}
"""
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
"""


def enbloc(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*ENBLOC, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def _write(text: str, name: str = "in.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return _write


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from enbloc.cli.main import cli\n"
        "try: cli.main(['--help'], prog_name='enbloc')\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'yaml', 'rich', 'msgspec'} & set(sys.modules), 'heavy'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for word in ("sim", "lint", "config", "enbloc sim examples/quickstart.yaml"):
        assert word in done.stdout


def test_benchmarks_are_not_installed_and_the_old_command_says_where_they_are() -> None:
    for words in (["bench"], ["bench", "engine", "--nodes", "5"], ["bench", "--help"]):
        done = enbloc(*words)
        assert (done.returncode, done.stdout) == (2, "")
        says = "benchmarks are not installed: `python -m benchmarks --help`, in a clone of the repository, lists them"
        assert done.stderr == f"enbloc: {says}\n"


@pytest.mark.parametrize("command", ["sim", "lint", "config"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = enbloc(command, "--help")
    assert done.returncode == 0
    assert "Example:" in done.stdout


def test_version() -> None:
    assert enbloc("--version").stdout.startswith("enbloc, version ")


@pytest.mark.parametrize(
    "arguments, reported",
    [
        (["fly"], "No such command 'fly'"),
        (["sim"], "Missing argument 'FILE...'"),
        (["sim", "nope.yaml"], "nope.yaml: cannot be read: no such file or directory"),
        (["sim", "-", "--until", "soon"], "--until: 'soon' is not a duration"),
        (["sim", "-", "--until", "-1s"], "--until: '-1s' is negative"),
        (["sim", "-", "-o", "xml"], "'xml' is not one of"),
        (["sim", "/dev/null", "--report", "/no/such/r.html"], "--report: /no/such/r.html: No such file or directory"),
        (["sim", "-", "--config", "nope.yaml"], "nope.yaml: cannot be read"),
        (["config", "--config", "nope.yaml"], "nope.yaml: cannot be read"),
    ],
)
def test_bad_usage_is_exit_2(arguments: list[str], reported: str) -> None:
    done = enbloc(*arguments)
    assert done.returncode == 2
    assert reported in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["sim", "lint"])
@pytest.mark.parametrize(
    "text, reported",
    [
        ("a: [", "in.yaml:1: line 2"),
        (POD % "a" + "---" + POD % "Odd_Name", "in.yaml:9 Pod Odd_Name: metadata.name: 'Odd_Name' is not a valid name"),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: NaN}}",
            "status.allocatable.cpu: ",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 1..5}}",
            "'1..5' is not a quantity",
        ),
        ("apiVersion: sim.enbloc.dev/v1\nkind: Step\ndo: delete", "in.yaml:1 Step: target: is missing"),
        ((JOB % ("default", 1)).replace("template", "tmplate"), "spec.tasks[0].template: is missing"),
    ],
)
def test_bad_input_is_exit_2_and_one_line(write, command: str, text: str, reported: str) -> None:  # type: ignore[no-untyped-def]
    """What is no YAML is bad input everywhere; a bad object is a fault that `lint` was asked about."""
    done = enbloc(command, write(text))
    is_fault = command == "lint" and text != "a: ["
    assert done.returncode == (1 if is_fault else 2)
    said, other = (done.stdout, done.stderr) if is_fault else (done.stderr, done.stdout)
    assert reported in said
    assert said.count("\n") == 1
    assert "Traceback" not in other
    assert is_fault or other == ""


def test_an_empty_directory_is_exit_2(tmp_path: Path) -> None:
    done = enbloc("lint", tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"enbloc: {tmp_path}: is a directory without manifests (*.yaml, *.yml, *.json)\n"


def test_every_problem_of_a_config_is_reported_with_its_field(write) -> None:  # type: ignore[no-untyped-def]
    done = enbloc("config", "--config", write("actions: fly\nadmission: {minAvailable: maybe}\n", "c.yaml"))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all("c.yaml: " in line for line in lines)
    assert any("admission.minAvailable" in line for line in lines)


def test_the_printed_config_reads_back(write) -> None:  # type: ignore[no-untyped-def]
    printed = enbloc("config").stdout
    assert "#" in printed
    assert enbloc("config", "--config", write(printed, "c.yaml")).stdout == printed


def test_lint_says_ok(write) -> None:  # type: ignore[no-untyped-def]
    done = enbloc("lint", write(JOB % ("anything", 2)))
    assert (done.returncode, done.stdout) == (0, "OK: 1 object, no faults.\n")


def test_lint_reports_every_fault(write) -> None:  # type: ignore[no-untyped-def]
    path = write(QUEUE + "---" + JOB % ("nowhere", -1))
    done = enbloc("lint", path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert (
        f"{path}:11 Job default/train: spec.queue: queue 'nowhere' does not exist: create it, or use another" in lines
    )
    assert any(line.startswith(f"{path}:13 Job default/train: spec.tasks[0].replicas: ") for line in lines)
    data = json.loads(enbloc("lint", path, "-o", "json").stdout)
    assert [obj["kind"] for obj in data["objects"]] == ["Queue"]
    assert data["faults"][0].keys() == {"file", "document", "kind", "namespace", "name", "field", "message", "line"}


def test_lint_takes_the_default_queue_to_exist_among_others(write) -> None:  # type: ignore[no-untyped-def]
    assert enbloc("lint", write(QUEUE + "---" + JOB % ("default", 1))).returncode == 0
    assert enbloc("lint", write(JOB % ("research", 1) + "---" + QUEUE)).returncode == 0


def test_lint_prints_objects_after_mutation(write) -> None:  # type: ignore[no-untyped-def]
    (job,) = yaml.safe_load_all(enbloc("lint", write(JOB % ("default", 3)), "-o", "yaml").stdout)
    assert job["spec"]["minAvailable"] == job["spec"]["tasks"][0]["minAvailable"] == 3


def test_lint_finds_namesakes(write) -> None:  # type: ignore[no-untyped-def]
    path = write(POD % "a" + "---" + POD % "b" + "---" + POD % "a")
    done = enbloc("lint", path)
    assert done.returncode == 1
    assert done.stdout == f"{path}:14 Pod default/a: metadata.name: Pod default/a is defined twice: first in {path}:4\n"


def test_lint_reads_stdin() -> None:
    done = enbloc("lint", "-", stdin=POD % "Bad")
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:4 Pod Bad: ")


def test_i6_same_input_same_bytes_whatever_the_hash_seed(write) -> None:  # type: ignore[no-untyped-def]
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: 3, memory: 8Gi, pods: 9}}\n"
    plugins = "  plugins: {ssh: [], svc: [], env: []}\n  policies: [{event: PodFailed, action: RestartJob}]\n"
    jobs = [(JOB % ("default", i % 4 + 1)).replace("train", f"j{i}") + plugins for i in range(8)]
    path = write("---\n".join([*(node % i for i in range(4)), *jobs]))
    outputs = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [*ENBLOC, "sim", str(path), "-o", "json"], capture_output=True, env=environment, timeout=60
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_sim_says_what_was_cut_off(write) -> None:  # type: ignore[no-untyped-def]
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 3, memory: 8Gi, pods: 9}}\n"
    pod = (POD % "loop").replace("{name: loop}", "{name: loop, annotations: {sim.enbloc.dev/run-time: 1s}}")
    path = write(node + "---" + pod)
    done = enbloc("sim", path, "-o", "json")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pod default/loop was restarted 501 times" in done.stderr
    assert json.loads(done.stdout)["ended"] == "cut-off"
    assert enbloc("sim", path, "--until", "5m").returncode == 0


def test_an_empty_scenario_is_a_short_run(write) -> None:  # type: ignore[no-untyped-def]
    done = enbloc("sim", write(""))
    assert (done.returncode, done.stderr) == (0, "")
    assert "No gang was started." in done.stdout


def test_a_reader_that_left_is_no_error(write) -> None:  # type: ignore[no-untyped-def]
    path = write("---".join(POD % f"p{i}" for i in range(3000)))
    process = subprocess.Popen(
        [*ENBLOC, "lint", str(path), "-o", "yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0
    process.stderr.close()


def test_ctrl_c_is_quiet() -> None:
    process = subprocess.Popen([*ENBLOC, "lint", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)  # until it reads
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr.strip()) == (130, b"")
