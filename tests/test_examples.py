"""Every example runs as the README says, and does what its comments promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]


def enbloc(*arguments: str | Path) -> str:
    done = subprocess.run([*ENBLOC, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_good_manifests_and_run(example: Path) -> None:
    enbloc("lint", example)
    enbloc("sim", example)


def run(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(enbloc("sim", EXAMPLES / name, "-o", "json"))
    assert result["ended"] == "idle"
    return result


def bindings(result: dict[str, Any]) -> dict[str, float]:
    """When each pod was bound."""
    return {line["name"]: line["t"] for line in result["timeline"] if line["what"] == "bound"}


def test_quickstart_does_what_it_promises() -> None:
    result = run("quickstart.yaml")
    bound: dict[str, set[float]] = {}
    for name, at in bindings(result).items():
        bound.setdefault(name.split("-")[0], set()).add(at)
    assert bound == {"resnet": {0.0}, "bert": {60.0}}
    (giant,) = result["pending"]
    assert giant["gang"] == "default/giant"
    assert "cpu" in json.dumps(giant)


def test_roles_and_minima_do_what_they_promise() -> None:
    result = run("roles-and-minima.yaml")
    bound: dict[float, set[str]] = {}
    for name, at in bindings(result).items():
        bound.setdefault(at, set()).add(name)
    assert bound == {
        0.0: {"nightly-report-0"},
        5.0: {"train-master-0", "train-worker-0", "train-worker-1", "train-worker-2"},
        40.0: {"score-worker-0", "score-worker-1", "train-master-1", "train-worker-3"},
        55.0: {"train-worker-4", "train-worker-5"},
    }
    assert result["pending"] == []


def test_queues_do_what_they_promise() -> None:
    result = run("queues.yaml")
    bound = bindings(result)
    at_once = {name.rsplit("-", 2)[0] for name, at in bound.items() if at == 0.0}
    assert at_once == {"batch-1", "teaching-1", "research-1", "research-2"}
    assert {at for name, at in bound.items() if name.startswith("batch-2-")} == {60.0}
    assert {at for name, at in bound.items() if name.startswith("pager-")} == {30.0}
    assert result["pending"] == []


def test_queuejob_does_what_it_promises() -> None:
    result = run("queuejob.yaml")
    bound = [(line["t"], line["name"].split("-")[0]) for line in result["timeline"] if line["what"] == "bound"]
    assert bound == [(0.0, "train")] * 5 + [(20.0, "train")] * 5 + [(75.0, "sweep")] * 3
    phases = {one["metadata"]["name"]: one["status"]["state"]["phase"] for one in objects(result, "QueueJob")}
    assert phases == {"sweep": "Completed", "train": "Completed"}
    assert result["pending"] == []


def test_foreign_crdjob_does_what_it_promises() -> None:
    result = run("foreign-crdjob.yaml")
    assert bindings(result) == {f"simulate-{letter}": 30.0 for letter in "abc"}
    assert {line["node"] for line in result["timeline"] if line["what"] == "bound"} == {"node-1", "node-3"}
    reported = [line["message"] for line in result["timeline"] if line["what"] == "warning"]
    assert "SchedulingSpec of CRDJob default/simulate does not exist" in reported[0]
    assert "default/simulate " in enbloc("sim", EXAMPLES / "foreign-crdjob.yaml")


def objects(result: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one for one in result["objects"] if one["kind"] == kind]


def test_reasons_are_five_different_ones() -> None:
    result = run("reasons.yaml")
    assert bindings(result) == {}
    reported = {entry["gang"].removeprefix("default/"): entry["message"] for entry in result["pending"]}
    words = {
        "too-big": "the cluster has",
        "too-wide": "2 Insufficient cpu",
        "not-tolerated": "untolerated taint",
        "over-its-queue": "queue small",
        "incomplete": "1 of 3 pods exist",
    }
    assert reported.keys() == words.keys()
    for gang, word in words.items():
        assert word in reported[gang]
    assert len(set(reported.values())) == 5


def phases(result: dict[str, Any], job: str) -> list[tuple[float, str]]:
    lines = result["timeline"]
    return [
        (line["t"], line["to"]) for line in lines if (line["what"], line["kind"], line["name"]) == ("phase", "Job", job)
    ]


def test_depends_on_goes_wave_by_wave() -> None:
    result = run("depends-on.yaml")
    assert bindings(result) == {
        "train-master-0": 0.0,
        **{f"train-worker-{index}": 10.0 for index in range(4)},
        "train-report-0": 15.0,
    }
    assert phases(result, "train")[-1] == (70.0, "Completed")


def test_restart_policies_restart_what_they_say() -> None:
    result = run("restart-policy.yaml")
    starts: dict[str, list[float]] = {}
    for line in result["timeline"]:
        if line["what"] == "bound":
            starts.setdefault(line["name"], []).append(line["t"])
    assert {name: at for name, at in starts.items() if name.startswith("train-")} == {
        name: [0.0, 20.0] for name in ("train-chief-0", "train-worker-0", "train-worker-1")
    }
    assert starts["score-shard-1"] == [0.0, 15.0, 40.0]
    assert [phase for phase in phases(result, "score") if phase[1] in ("Aborted", "Restarting", "Completed")] == [
        (15.0, "Restarting"),
        (25.0, "Aborted"),
        (40.0, "Restarting"),
        (55.0, "Completed"),
    ]
    assert phases(result, "train")[-2:] == [(80.0, "Completing"), (80.0, "Completed")]


def test_quickstart_reads_well() -> None:
    text = enbloc("sim", EXAMPLES / "quickstart.yaml")
    for words in (
        "Simulation finished at 1m30s.",
        "Gangs that ran",
        "default/resnet",
        "Gangs that wait, and why",
        "default/giant: ",
    ):
        assert words in text


def test_the_manifest_in_the_readme_is_the_example() -> None:
    """What `enbloc sim` prints of it is compared with the page in `test_docs_commands.py`."""
    assert (
        f"# examples/train.yaml\n{(EXAMPLES / 'train.yaml').read_text()}```"
        in (EXAMPLES.parent / "README.md").read_text()
    )


def test_one_file_for_each_dialect_all_run_in_one_cluster(tmp_path: Path) -> None:
    """One file of each API, each with nodes of its own."""
    files = []
    dialects = ("foreign-crdjob", "koordinator", "coscheduling", "kubernetes-podgroup", "kai", "yunikorn")
    for name in ("quickstart", *dialects):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text((EXAMPLES / files[-1].name).read_text().replace("name: node-", f"name: {name}-"))
    result = json.loads(enbloc("sim", *files, "-o", "json"))
    assert result["ended"] == "idle"
    assert [one["gang"] for one in result["pending"]] == ["default/giant"], "it never fits"
    bound = bindings(result)
    for gang in ("ps", "worker", "patient", "mpi", "all-reduce", "simulate", "resnet", "bert", "serve", "pi"):
        assert any(name.startswith(gang) for name in bound), gang
    for group in (("ps-0", "worker-0"), [f"patient-{i}" for i in range(4)], [f"mpi-{i}" for i in range(3)]):
        assert len({bound[name] for name in group}) == 1, group


def test_koordinator_does_what_it_promises() -> None:
    result = run("koordinator.yaml")
    bound = bindings(result)
    assert {bound["ps-0"], bound["worker-0"]} == {5.0}
    held = [(line["t"], line["name"]) for line in result["timeline"] if line["what"] == "held"]
    assert held == [(10.0, "patient-0"), (10.0, "patient-1")]
    assert {bound[f"patient-{index}"] for index in range(4)} == {30.0}


def test_coscheduling_does_what_it_promises() -> None:
    result = run("coscheduling.yaml")
    assert set(bindings(result).values()) == {20.0}
    phases = [line["to"] for line in result["timeline"] if line["what"] == "phase"]
    assert phases == ["Pending", "Scheduling", "Running", "Finished"]


def test_kubernetes_podgroup_does_what_it_promises() -> None:
    result = run("kubernetes-podgroup.yaml")
    bound = bindings(result)
    assert bound.pop("singles-0") == 0.0
    assert set(bound.values()) == {20.0}


def test_kai_does_what_it_promises() -> None:
    assert set(bindings(run("kai.yaml")).values()) == {20.0}


def nodes_of(result: dict[str, Any], prefix: str) -> set[str]:
    return {line["node"] for line in result["timeline"] if line["what"] == "bound" and line["name"].startswith(prefix)}


def test_topology_blocks_do_what_they_promise() -> None:
    result = run("topology-blocks.yaml")
    assert {name.split("-")[0]: at for name, at in bindings(result).items()} == {
        "small": 0.0,
        "large": 1.0,
        "next": 60.0,
    }
    blocks = {name: {node[:7] for node in nodes_of(result, name)} for name in ("small", "large", "next")}
    assert blocks == {"small": {"block-a"}, "large": {"block-b"}, "next": {"block-a"}}


def test_prefill_decode_does_what_it_promises() -> None:
    result = run("prefill-decode.yaml")
    assert set(bindings(result).values()) == {0.0}
    groups = [nodes_of(result, f"serve-{group}") for group in ("prefill", "decode")]
    assert sorted(map(sorted, groups)) == [["rack-4"], ["rack-5"]]


def test_yunikorn_does_what_it_promises() -> None:
    assert bindings(run("yunikorn.yaml")) == {"pi-driver-0": 20.0, "pi-executor-0": 25.0, "pi-executor-1": 30.0}


def test_starving_does_what_it_promises(tmp_path: Path) -> None:
    bound = bindings(run("starving.yaml"))
    assert {bound["large-worker-0"], bound["large-worker-1"]} == {60.0}
    assert bound["quick-worker-0"] == 25.0
    assert bound["small-2-worker-0"] == 90.0
    config = tmp_path / "no-reserve.yaml"
    config.write_text('actions: "enqueue, allocate, backfill"\n')
    without = json.loads(enbloc("sim", EXAMPLES / "starving.yaml", "--config", config, "-o", "json"))
    assert bindings(without)["large-worker-0"] == 90.0


def test_preempt_does_what_it_promises() -> None:
    result = run("preempt.yaml")
    evicted = {line["name"] for line in result["timeline"] if line["what"] == "evicted"}
    assert evicted == {"batch-worker-0", "batch-worker-1", "elastic-worker-4", "elastic-worker-5"}
    assert {at for name, at in bindings(result).items() if name.startswith("urgent")} == {30.0}
    assert not result["pending"]


def racks_of(name: str) -> dict[str, set[str]]:
    """The racks of each gang's pods, from the names of their nodes."""
    found: dict[str, set[str]] = {}
    for line in run(name)["timeline"]:
        if line["what"] == "bound":
            found.setdefault(line["name"].rpartition("-")[0], set()).add(line["node"].split("-")[0])
    return found


def test_topology_examples_do_what_they_promise() -> None:
    assert racks_of("topology-kueue.yaml") == {"train": {"a", "b"}, "tune": {"c"}}
    assert racks_of("topology-koordinator.yaml") == {"train": {"a", "b"}, "tune": {"c"}}
    prefill, decode = racks_of("topology-kubernetes.yaml").values()
    assert sorted([prefill, decode], key=str) == [{"a"}, {"b"}]
