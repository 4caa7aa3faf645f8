"""Gangs, queues and nodes in rows, out of what a cluster lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from rich.console import Console

from enbloc import config
from enbloc.gangs import claim_records
from enbloc.inspect.capacity import readable
from enbloc.inspect.overview import KINDS, Overview, explain, read_overview, sentence, shown
from enbloc.inspect.tables import (
    GANG_COLUMNS,
    QUEUE_COLUMNS,
    explanation_lines,
    gang_cells,
    node_cells,
    node_columns,
    queue_cells,
    table,
)
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import NANO, SECOND, parse_timestamp
from support import manifests as m

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


def overview_at(seconds: int, file: Path = QUICKSTART, settings: dict[str, Any] | None = None) -> Overview:
    simulation = Simulation(read_scenario(read_documents([str(file)])), config.parse(settings))
    simulation.run(seconds * SECOND)
    store = simulation._store
    return read_overview({kind: store.list(kind)[0] for kind in KINDS})


def text_of(renderable: Any) -> str:
    console = Console(width=140, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_the_quickstart_at_a_glance() -> None:
    overview = overview_at(30)
    assert [(gang.gang, gang.state) for gang in overview.gangs] == [
        ("default/bert", "Waiting"),
        ("default/giant", "Waiting"),
        ("default/resnet", "Running"),
    ]
    bert = overview.gangs[0]
    assert (bert.minimum, bert.queue, bert.dialect) == (3, "default", "volcano")
    assert "requests 6 cpu, 2 of 16 available" in bert.message
    default = next(queue for queue in overview.queues if queue.queue == "default")
    assert (default.running, default.waiting, default.used["cpu"]) == (1, 2, 14 * SECOND)
    assert [(node.node, node.pods, node.resources["cpu"].percent) for node in overview.nodes] == [
        ("node-1", 2, 75),
        ("node-2", 2, 100),
    ]
    assert "default/bert" in text_of(table(GANG_COLUMNS, [gang_cells(gang, 0) for gang in overview.gangs]))
    assert "cpu 14" in text_of(table(QUEUE_COLUMNS, [queue_cells(queue) for queue in overview.queues]))
    assert "8/8" in text_of(table(node_columns(overview), [node_cells(node, overview) for node in overview.nodes]))
    assert shown(overview)["nodes"][1]["resources"]["cpu"] == {"used": "8", "room": "8", "percent": 100}


def test_a_gang_is_explained() -> None:
    overview = overview_at(30)
    reported = explain(overview, "default/giant")
    assert reported is not None
    assert reported.sentence == (
        "It waits: not enqueued: requests 12 cpu, 2 of 16 available. "
        "It can never start here: one pod needs 12 cpu, the largest node has 8."
    )
    assert reported.ahead == ["default/bert"]
    assert reported.numbers["pods"] == {}
    assert reported.remedies is None, "what would help is tried in `advice`, not read off rows"
    assert any("default/bert" in line for line in explanation_lines(reported, 0))
    running = explain(overview, "resnet")
    assert running is not None
    assert running.sentence.startswith("It runs: 4 pods on node-1 (2), node-2 (2)")
    assert explain(overview, "default/nobody") is None
    for alias in ("resnet-worker-1", next(name for name in overview.aliases if name.startswith("default/resnet-0"))):
        known = explain(overview, alias)
        assert known is not None
        assert known.gang == "default/resnet"
    over = explain(overview_at(70), "default/resnet")
    assert over is not None
    assert over.sentence == "It is over: 4 pods succeeded, 0 failed."
    one = msgspec.structs.replace(overview.gangs[0], state="Finished", pods={"succeeded": 1})
    assert sentence(one) == "It is over: 1 pod succeeded, 0 failed."


CONTENDED = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: small}
spec: {capability: {cpu: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: long, annotations: {sim.enbloc.dev/run-time: 60s, enbloc.dev/expected-duration: 60s}}
spec:
  schedulerName: enbloc
  restartPolicy: Never
  containers: [{name: c, image: x, resources: {requests: {cpu: "3"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: next, annotations: {sim.enbloc.dev/at: 5s}}
spec:
  schedulerName: enbloc
  restartPolicy: Never
  containers: [{name: c, image: x, resources: {requests: {cpu: "2"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: large, annotations: {sim.enbloc.dev/at: 6s}}
spec:
  schedulerName: enbloc
  restartPolicy: Never
  containers: [{name: c, image: x, resources: {requests: {cpu: "5"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: capped, annotations: {sim.enbloc.dev/at: 7s, scheduling.volcano.sh/queue-name: small}}
spec:
  schedulerName: enbloc
  restartPolicy: Never
  containers: [{name: c, image: x, resources: {requests: {cpu: "2"}}}]
"""


def contended(tmp_path: Path, **arguments: Any) -> Overview:
    """As it stands after 20 seconds, with other arguments for some actions."""
    file = tmp_path / "contended.yaml"
    file.write_text(CONTENDED)
    actions = [
        {"name": name, "arguments": arguments.get(name, {})} for name in ("enqueue", "allocate", "backfill", "reserve")
    ]
    return overview_at(20, file, {"actions": actions})


def test_r8_the_expected_start_is_reported(tmp_path: Path) -> None:
    overview = contended(tmp_path, backfill={"mode": "easy"})
    reported = explain(overview, "default/next")
    assert reported is not None
    assert reported.expected_start == "2026-01-01T00:01:00Z"
    assert reported.sentence.endswith(f"; it is expected to start at {reported.expected_start}.")
    now = parse_timestamp(reported.expected_start) - 40 * SECOND
    assert any(line.strip().endswith("(expected to start in 40s)") for line in explanation_lines(reported, now))
    assert "expected to start in 40s" in text_of(
        table(GANG_COLUMNS, [gang_cells(gang, now) for gang in overview.gangs])
    )
    assert shown(overview)["gangs"][0]["expectedStart"] == reported.expected_start


@pytest.mark.parametrize("names_chars", [claim_records.NAMES_CHARS, 0])
def test_r_reserved_room_is_reported(tmp_path: Path, names_chars: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of its nodes, also where the record has digests in their place."""
    monkeypatch.setattr(claim_records, "NAMES_CHARS", names_chars)
    reported = explain(
        contended(tmp_path, reserve={"starvingJobTimeThreshold": 10, "reservedNodePercent": 100}), "next"
    )
    assert reported is not None
    assert reported.numbers["set_aside"] == {"n1": 1}
    assert "room is reserved for it on n1" in reported.sentence


PODS_ALONE = """
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec:
  schedulerName: enbloc
  schedulingGates: [{name: example.com/hold}]
  containers: [{name: c, image: x}]
---
apiVersion: v1
kind: Pod
metadata: {name: foreign}
spec:
  schedulerName: other
  containers: [{name: c, image: x}]
"""


def test_n4_a_pod_alone_says_its_gate_or_its_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(PODS_ALONE)
    overview = overview_at(10, file)
    gated, foreign = explain(overview, "gated"), explain(overview, "foreign")
    assert gated is not None
    assert gated.sentence == "It waits: held by scheduling gate example.com/hold."
    assert foreign is not None
    assert foreign.sentence == "It waits: not reported by enbloc: schedulerName is other."


def test_r7_reserved_room_is_shown_on_its_node(tmp_path: Path) -> None:
    made = [m.node("a"), m.node("b"), m.pod("full", 4, nodeName="b"), m.pod("other", 1, nodeName="a")]
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump_all([*made, *m.gang("g", 2, cpu=2)]))
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10, "reservedNodePercent": 50}}
    overview = overview_at(20, file, {"actions": [{"name": "enqueue"}, {"name": "allocate"}, reserve]})
    assert [(node.node, node.reserved) for node in overview.nodes] == [("a", {"default/g": 2}), ("b", {})]
    assert shown(overview)["nodes"][0]["reserved"] == {"default/g": 2}
    assert shown(overview)["nodes"][0]["reservedRoom"] == {"default/g": {"cpu": "4"}}
    assert "default/g (2: 4 cpu)" in text_of(
        table(node_columns(overview), [node_cells(node, overview) for node in overview.nodes])
    )
    assert node_columns(overview)[-1] == "RESERVED"
    assert node_columns(overview_at(0))[-1] != "RESERVED"


@pytest.mark.parametrize(
    ("name", "nanos", "text"),
    [
        ("memory", 24_684_100 * 1024 * NANO, "23.5Gi"),
        ("memory", 126_208 * 2**20 * NANO, "123.2Gi"),
        ("memory", 32 * 2**30 * NANO, "32Gi"),
        ("memory", 1000 * NANO, "1000"),
        ("cpu", 25_500 * 10**6, "25500m"),
        ("nvidia.com/gpu", 8 * NANO, "8"),
    ],
)
def test_long_amounts_are_rounded_in_tables(name: str, nanos: int, text: str) -> None:
    assert readable(name, nanos) == text
