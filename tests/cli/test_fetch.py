"""`enbloc gangs`, `queues`, `nodes`, `explain` against a cluster that KUBECONFIG points at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from cluster.embedded.http.serving import served_in_background
from cluster.embedded.http.test_kubectl import KUBECTL
from enbloc import config
from enbloc.api.meta import Ref
from enbloc.cli.main import cli
from enbloc.cli.running_up import running_kubeconfig
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.clock import EPOCH
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

pytest.importorskip("enbloc.cluster.kube.cluster", reason="the adapter for real clusters is not part of this tree")
ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The quickstart after half a minute, served."""
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    simulation.run(30 * SECOND)
    with served_in_background(tmp_path_factory.mktemp("served"), simulation.store) as (path, _):
        yield path


@pytest.fixture(autouse=True)
def at_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of who asks is that of the cluster."""
    monkeypatch.setattr(time, "time_ns", lambda: EPOCH + 30 * SECOND)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def ask(kubeconfig: Path, *arguments: str) -> Any:
    done = run(*arguments, "--kubeconfig", str(kubeconfig), "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_everything_as_json(kubeconfig: Path) -> None:
    assert [gang["gang"] for gang in ask(kubeconfig, "gangs")["gangs"]] == [
        "default/bert",
        "default/giant",
        "default/resnet",
    ]
    assert [queue["queue"] for queue in ask(kubeconfig, "queues")["queues"]] == ["default", "root"]
    assert [node["pods"] for node in ask(kubeconfig, "nodes")["nodes"]] == [2, 2]
    reported = ask(kubeconfig, "explain", "default/giant")
    assert reported["ahead"] == ["default/bert"]
    assert "requests 12 cpu" in reported["sentence"]
    assert [one["change"] for one in reported["remedies"]] == [
        "add 1 larger node like node-1 with cpu 12, memory 32Gi",
        "request at most 8 cpu per pod instead of 12",
    ]


def test_everything_for_people(kubeconfig: Path) -> None:
    for command, word in (("gangs", "default/bert"), ("queues", "cpu 14"), ("nodes", "8/8")):
        done = run(command, "--kubeconfig", str(kubeconfig))
        assert done.exit_code == 0, done.output
        assert word in done.output
    done = run("explain", "default/bert", "--kubeconfig", str(kubeconfig))
    assert done.output.startswith("default/bert: It waits: not enqueued: requests 6 cpu, 2 of 16 available.")
    assert "wait for the end of default/resnet, or delete it" in done.output


def test_a_gang_that_is_not_there_is_exit_code_1(kubeconfig: Path) -> None:
    done = run("explain", "default/nobody", "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 1
    assert "there is no gang default/nobody" in done.output


def test_a_kubeconfig_that_leads_nowhere_is_exit_code_2(tmp_path: Path) -> None:
    done = run("gangs", "--kubeconfig", str(tmp_path / "nothing"))
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def lines(kubeconfig: Path, *arguments: str) -> list[str]:
    done = run(*arguments, "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_in_a_pipe_a_row_is_one_line_and_never_cut(kubeconfig: Path) -> None:
    found = lines(kubeconfig, "gangs")
    assert len(found) == 4
    assert found[0].split() == ["GANG", "QUEUE", "STATE", "PODS", "MIN", "AGE", "WHY"]
    assert found[1].endswith("not enqueued: requests 6 cpu, 2 of 16 available")
    assert all(line == line.rstrip() for line in found)
    assert len(lines(kubeconfig, "queues", "--no-headers")) == 2
    assert lines(kubeconfig, "nodes")[0].split() == ["NODE", "STATUS", "PODS", "CPU", "MEMORY"]
    assert lines(kubeconfig, "gangs", "-o", "wide")[0].split()[-3:] == ["PRIORITY", "API", "REASON"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--state", "waiting"], ["default/bert", "default/giant"]),
        (["-n", "elsewhere"], []),
        (["-n", "default", "-A", "--state", "Running"], ["default/resnet"]),
        (["-q", "root"], []),
        (["-l", "team=a"], []),
        (["-l", "team!=a", "--sort-by", "age"], ["default/resnet", "default/bert", "default/giant"]),
        (["--sort-by", "pods"], ["default/resnet", "default/bert", "default/giant"]),
    ],
)
def test_gangs_are_chosen_and_sorted(kubeconfig: Path, arguments: list[str], names: list[str]) -> None:
    found = lines(kubeconfig, "gangs", "-o", "name", *arguments)
    assert found == names if "--sort-by" not in arguments else set(found) == set(names)
    if "age" in arguments:
        assert found == names


def test_an_empty_list_says_so(kubeconfig: Path) -> None:
    done = run("gangs", "-n", "elsewhere", "--kubeconfig", str(kubeconfig))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "No gangs found.\n")
    assert ask(kubeconfig, "gangs", "-n", "elsewhere") == {"gangs": []}


def test_a_config_that_is_not_given_as_an_option_is_pointed_at_it() -> None:
    done = run("config", "enbloc.yaml")
    assert (done.exit_code, done.stderr) == (
        2,
        "enbloc: a file to read is an option: enbloc config --config enbloc.yaml\n",
    )


def test_an_unknown_key_to_sort_by_is_refused(kubeconfig: Path) -> None:
    done = run("gangs", "--sort-by", "colour", "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 2
    assert "--sort-by: 'colour' is none of name, age, queue" in done.output


def test_yaml(kubeconfig: Path) -> None:
    done = run("nodes", "-o", "yaml", "--kubeconfig", str(kubeconfig))
    assert [node["node"] for node in yaml.safe_load(done.output)["nodes"]] == ["node-1", "node-2"]


def test_a_running_up_is_found_without_a_kubeconfig(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    state = tmp_path / ".local" / "state" / "enbloc"
    for name, text in (
        ("up-1", "clusters: [{cluster: {server: 'http://127.0.0.1:1'}}]"),
        ("up-8001", kubeconfig.read_text()),
    ):
        (state / name).mkdir(parents=True)
        (state / name / "kubeconfig").write_text(text)
    assert running_kubeconfig() == str(state / "up-8001" / "kubeconfig")
    assert run("gangs", "-o", "name").output.splitlines()[0] == "default/bert"
    (state / "up-8002").mkdir()
    (state / "up-8002" / "kubeconfig").write_text(kubeconfig.read_text())
    several = run("gangs", "-o", "name")  # the same server twice
    assert several.stdout.splitlines()[0] == "default/bert"
    assert "note: this is the `enbloc up` at https://127.0.0.1:" in several.stderr
    assert "the newest; --kubeconfig chooses another (https://127.0.0.1:" in several.stderr
    monkeypatch.setenv("KUBECONFIG", "elsewhere")
    assert running_kubeconfig() is None


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["gang"], "Did you mean 'gangs'?"),
        (["get", "queues"], "Did you mean 'queues'?"),
        (["fly"], "lists the commands"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(arguments: list[str], hint: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert hint in done.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_ENBLOC_COMPLETE" in done.output


def test_snapshot_of_a_cluster_is_read_by_sim_and_whatif(kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    done = run("snapshot", "--kubeconfig", str(kubeconfig), "-o", str(file))
    assert done.exit_code == 0, done.output
    assert "objects written to" in done.output
    taken, *objects = yaml.safe_load_all(file.read_text())
    assert taken["kind"] == "Snapshot"
    assert {"Node", "Pod", "Job", "PodGroup", "Queue"} <= {obj["kind"] for obj in objects}
    assert not {"Secret", "ConfigMap", "Event"} & {obj["kind"] for obj in objects}
    answer = json.loads(run("sim", str(file), "-o", "json").output)
    assert {gang["gang"] for gang in answer["gangs"]} >= {"default/resnet", "default/bert"}


def test_whatif_of_a_cluster(kubeconfig: Path) -> None:
    done = run("whatif", "--kubeconfig", str(kubeconfig), "-o", "json", "add-nodes", "2", "--like", "node-1")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["whatif"] == "2 nodes like node-1 added"
    done = run("whatif", "--kubeconfig", str(kubeconfig), "drain", "node-9")
    assert (done.exit_code, done.output) == (2, "enbloc: there is no node 'node-9'; did you mean node-2?\n")


def test_snapshot_that_cannot_be_written(kubeconfig: Path, tmp_path: Path) -> None:
    done = run("snapshot", "--kubeconfig", str(kubeconfig), "-o", str(tmp_path / "no" / "such.yaml"))
    assert done.exit_code == 2
    assert done.output.count("\n") == 1


def test_queues_and_nodes_by_label(kubeconfig: Path) -> None:
    chosen = run("nodes", "--kubeconfig", str(kubeconfig), "-o", "name", "-l", "kubernetes.io/hostname=node-2")
    assert chosen.output == "node-2\n"
    assert run("queues", "--kubeconfig", str(kubeconfig), "-o", "name", "-l", "team").output == ""
    assert run("queues", "--kubeconfig", str(kubeconfig), "-o", "name", "-l", "!team").output == "default\nroot\n"
    of_both = ("-l", "kubernetes.io/hostname in (node-1, node-2)")
    assert run("nodes", "--kubeconfig", str(kubeconfig), "-o", "name", *of_both).output == "node-1\nnode-2\n"


@pytest.mark.parametrize("command", ["gangs", "queues", "nodes"])
def test_a_selector_that_cannot_be_read_is_refused(command: str) -> None:
    done = run(command, "-l", "team in a")
    assert (done.exit_code, done.stderr) == (2, "enbloc: --selector: unable to parse the selector 'team in a'\n")


def test_watch_prints_again_only_what_changed(tmp_path: Path) -> None:
    """`gangs -w` prints the rows, prints nothing while they stay the same, and prints them again when they change."""
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    simulation.run(30 * SECOND)
    store = simulation._store
    with served_in_background(tmp_path, store) as (path, _):
        command = [*ENBLOC, "nodes", "-w", "--no-headers", "--kubeconfig", str(path)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        assert process.stdout is not None
        try:
            first = [process.stdout.readline().split()[:2] for _ in range(2)]
            assert first == [["node-1", "Ready"], ["node-2", "Ready"]]
            store.patch(Ref("Node", "", "node-2"), {"spec": {"unschedulable": True}})
            second = [process.stdout.readline().split()[:2] for _ in range(2)]
            assert second == [["node-1", "Ready"], ["node-2", "Ready,SchedulingDisabled"]]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
            process.stdout.close()


@pytest.mark.skipif(KUBECTL is None and not os.environ.get("CI"), reason="there is no kubectl; `make e2e` builds one")
def test_kubectl_finds_the_plugin(kubeconfig: Path) -> None:
    assert KUBECTL is not None, "CI needs a kubectl"
    beside = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(
        [KUBECTL, "enbloc", "gangs", "-o", "name"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["default/bert", "default/giant", "default/resnet"], done.stderr
