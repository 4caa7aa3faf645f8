"""What is proved by the nodes, whatever runs on them (G10)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.why.impossible import Impossibilities
from enbloc.gangs.model import Template
from engine.scenes import Scene, group
from support import manifests as m

UNREADY = m.node("u")
UNREADY["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
CORDONED = m.node("c", unschedulable=True)


def waiting(cpu: m.Quantity = 1, **fields: Any) -> list[m.Obj]:
    return [group(minimum=1), m.pod("g-0", cpu, group="g", **fields)]


def proved(*objects: Any, reason: PendingReason = PendingReason.UNSCHEDULABLE) -> str:
    scene = Scene(*objects)
    return Impossibilities(scene.state).of(scene.gang(), reason)


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        pytest.param([m.node("n", 4), waiting(4)], "", id="as large as the node"),
        pytest.param([m.node("n", 4), m.node("l", 8), waiting(9)],
                     "It can never start here: one pod needs 9 cpu, the largest node has 8.", id="too large"),
        pytest.param([m.node("n", 4, memory="1Gi"), waiting(4, memory="2Gi")],
                     "It can never start here: one pod needs 2Gi memory, the largest node has 1Gi.", id="of memory"),
        pytest.param([m.node("n", pods=0), waiting()], "", id="numbers of pods prove nothing"),
        pytest.param([m.node("n"), waiting(extra={"nvidia.com/gpu": 1})], "No node has nvidia.com/gpu.",
                     id="an unknown resource"),
        pytest.param([m.node("n", extra={"nvidia.com/gpu": 8, "amd.com/g": 1}), waiting(extra={"nvidia.com/gpus": 1})],
                     "No node has nvidia.com/gpus: did you mean nvidia.com/gpu?", id="a misspelled resource"),
        pytest.param([m.node("n", extra={"nvidia.com/gpu": 1}), waiting(extra={"nvidia.com/gpu": 2})],
                     "It can never start here: one pod needs 2 nvidia.com/gpu, the largest node has 1.",
                     id="a node has one"),
        pytest.param([m.node("n"), waiting(nodeSelector={"disk": "ssd"})], "No node has label disk=ssd.",
                     id="an unknown label"),
        pytest.param([m.node("n", labels={"disk": "ssd"}), m.node("o"), waiting(nodeSelector={"disk": "ssd"})], "",
                     id="one node has the label"),
        pytest.param([m.node("n", labels={"disk": "hdd"}), m.node("o", labels={"disk": "nvme"}),
                      waiting(nodeSelector={"disk": "ssd"})], "No node has label disk=ssd; they have hdd, nvme.",
                     id="nodes have other values"),
        pytest.param([m.node("n", labels={"a": "1"}), waiting(nodeSelector={"a": "1", "b": "2"})],
                     "No node has label b=2.", id="the second label"),
        pytest.param([CORDONED, waiting()], "No node takes pods: 1 cordoned.", id="cordoned"),
        pytest.param([UNREADY, waiting()], "No node takes pods: 1 not ready.", id="not ready"),
        pytest.param([CORDONED, UNREADY, m.node("d", unschedulable=True), waiting()],
                     "No node takes pods: 2 cordoned and 1 not ready.", id="cordoned and not ready"),
        pytest.param([CORDONED, UNREADY, m.node("n"), waiting()], "", id="one node takes pods"),
        pytest.param([waiting(nodeSelector={"disk": "ssd"})], "There are no nodes.", id="no nodes"),
        pytest.param([CORDONED, waiting(9)], "It can never start here: one pod needs 9 cpu, the largest node has 4.",
                     id="cordoned nodes count"),
    ],
)  # fmt: skip
def test_g10_what_the_nodes_prove(objects: list[Any], sentence: str) -> None:
    assert proved(*objects) == sentence


def test_g10_a_node_that_is_cordoned_and_not_ready_counts_once() -> None:
    both = m.node("b", unschedulable=True)
    both["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert proved(both, waiting()) == "No node takes pods: 1 cordoned."


@pytest.mark.parametrize("reason", list(PendingReason))
def test_g10_the_nodes_prove_nothing_for_gangs_that_wait_for_something_else(reason: PendingReason) -> None:
    said = proved(m.node("n"), waiting(9), reason=reason)
    assert bool(said) is (reason in ("Unschedulable", "NotEnoughResources"))


def test_g10_each_kind_of_pod_has_its_sentence_and_equal_ones_are_said_once() -> None:
    pods = [m.pod(f"g-{number}", cpu, group="g") for number, cpu in enumerate((9, 9, 1))]
    pods.append(m.pod("g-3", group="g", nodeSelector={"disk": "ssd"}))
    said = proved(m.node("n"), group(minimum=4), pods)
    first, second = (
        "It can never start here: one pod needs 9 cpu, the largest node has 4.",
        "No node has label disk=ssd.",
    )
    assert said in (f"{first} {second}", f"{second} {first}")


def test_g10_what_was_proved_holds_until_a_node_changes() -> None:
    scene = Scene(m.node("n"), waiting(5))
    found = Impossibilities(scene.state)
    assert found.of(scene.gang(), PendingReason.UNSCHEDULABLE)
    scene.direct.put(m.node("large", 8))
    scene.begin(1)
    assert found.of(scene.gang(), PendingReason.UNSCHEDULABLE) == ""


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (m.pod_spec(9), "It can never start here: one pod needs 9 cpu, the largest node has 4."),
        (m.pod_spec(1, extra={"example.com/none": 1}), "No node has example.com/none."),
        (m.pod_spec(1, nodeSelector={"disk": "ssd"}), "No node has label disk=ssd."),
        (m.pod_spec(1), ""),
    ],
)
def test_g10_of_pods_that_do_not_exist_yet_their_templates_prove_it(spec: m.Obj, sentence: str) -> None:
    """A resource that only a template names has no column in the table of nodes."""
    scene = Scene(m.node("n"), group(minimum=1))
    scene.gang().spec = msgspec.structs.replace(scene.gang().spec, first_wave={"w": Template(1, spec)})
    for number in range(8):
        scene.state.resources.column(f"example.com/r{number}")
        assert Impossibilities(scene.state).of(scene.gang(), PendingReason.NOT_ENOUGH_RESOURCES) == sentence
