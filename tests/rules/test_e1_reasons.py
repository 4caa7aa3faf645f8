"""E1: autoscalers buy nodes for pods with reason `Unschedulable`: pods carry it where one would help, all at once."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support import racks as r
from support.answers import Answer, condition
from support.simulation import simulate

HIGH = m.priority_class("high", 1000)


def reasons(answer: Answer, prefix: str = "g") -> list[str]:
    """Of the pods that wait, in the order of their names."""
    found = [condition(pod, "PodScheduled") for pod in answer.all("Pod", prefix)]
    return [one["reason"] for one in found if one is not None and one["status"] == "False"]


def both(*, queue: str = "") -> list[Any]:
    """Two gangs of a group; `queue`: of the second."""
    groups = ["default/g", "default/h"]
    return [
        *m.koordinator_gang("g", 3, groups=groups),
        *m.koordinator_gang("h", 3, groups=groups, queue=queue or None),
    ]


LIMITED = m.queue("q", capability={"cpu": "2"})
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]}

ZONES = [m.node("na", labels={"zone": "a"}), m.node("nb", labels={"zone": "b"})]
GPU = "example.com/gpu"


def beside_a_limit(of_room: str, of_queue: str) -> list[Any]:
    """Of one role a pod lacks room, of the other one the queue forbids a pod, whatever nodes there are."""
    return [
        m.node("n", 2, extra={GPU: 4}), m.queue("q", capability={GPU: "1"}),
        m.podgroup("g", 4, roles={of_room: 2, of_queue: 2}, queue="q"),
        *(m.pod(f"g-{of_room}{n}", 2, group="g", role=of_room) for n in range(2)),
        *(m.pod(f"g-{of_queue}{n}", 0, group="g", role=of_queue, extra={GPU: 1}) for n in range(2)),
    ]  # fmt: skip


def selecting(*, spec: Any = None, **pod: Any) -> list[Any]:
    """A pod of a SchedulingSpec with this node selector."""
    return [
        *ZONES, m.CRDJOB_DEFINITION, m.crdjob(), m.scheduling_spec("c", 1, nodeSelector=spec or {}),
        *m.owned(m.pod("g", **pod)),
    ]  # fmt: skip


def requiring(*terms: list[tuple[str, str, list[str]]]) -> dict[str, Any]:
    """Required node affinity to one of these terms."""
    listed = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


NODES_WOULD_HELP: dict[str, list[Any]] = {
    "no nodes at all": m.gang("g", 2),
    "room": [m.node("n", 3), *m.gang("g", 4)],
    "a label": [m.node("n"), *m.gang("g", 2, nodeSelector={"disk": "ssd"})],
    "a taint": [m.node("n", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), *m.gang("g", 2)],
    "fragmentation": [m.node("a", 3), m.node("b", 3), *m.gang("g", 3, cpu=2)],
    "topology": [*r.nodes({"a": 1, "b": 1}), *r.native("g", 6)],
    "more than the cluster has": [m.node("n", 3), *m.gang("g", 2, cpu=2, resources={"cpu": "4"})],
    "free room for minResources": [
        m.node("n", 4), m.pod("busy", 3), *m.gang("g", 2, cpu=2, resources={"cpu": "4"}, at="5s")],
    "minResources of a group": [
        m.node("n", 4), m.pod("busy", 3), m.sigs_podgroup("g", 2, minResources={"cpu": "4"}, at="5s"),
        *m.labelled_pods("g", 2, cpu=2, at="5s")],
    "a reserved node": [m.node("n", 2), m.pod("busy", 2), *m.gang("g", 2, at="5s")],
    "one of its roles": [
        m.node("n", 3), m.podgroup("g", 4, roles={"a": 1, "b": 3}), m.pod("g-a", group="g", role="a"),
        *[m.pod(f"g-b{n}", group="g", role="b") for n in range(3)]],
    "a group that does not fit together": [m.node("n", 3), *both()],
    "labels that a node could have": selecting(
        spec={"zone": "c"}, nodeSelector={"disk": "ssd"},
        **requiring([("zone", "In", ["x"])], [("zone", "In", ["c"]), ("size", "Gt", ["5"]), ("size", "Lt", ["7"])])),
    "holds of a NonStrict gang": [m.node("n", 3), *m.koordinator_gang("g", 4, mode="NonStrict")],
}  # fmt: skip

NODES_WOULD_NOT: dict[str, tuple[str, list[Any]]] = {
    "pods": ("NotEnoughPods", [m.node("n"), m.podgroup("g", 3), *m.gang("g", 2)[1:]]),
    "its queue": ("QueueFull", [m.node("n"), LIMITED, *m.gang("g", 3, queue="q"), m.pod("x", queue="q", at="0s")]),
    "a queue that is too small": ("QueueFull", [m.node("n"), LIMITED, *m.gang("g", 3, queue="q")]),
    "a queue at enqueue": (
        "NotEnoughResources", [m.node("n"), LIMITED, *m.gang("g", 2, cpu=2, queue="q", resources={"cpu": "4"})]),
    "a queue that is closed": ("GangInvalid", [m.node("n"), m.queue("q", state="Closed"), *m.gang("g", 1, queue="q")]),
    "FIFO": ("BlockedByFIFO", [m.node("n", 4), m.queue("q", dequeueStrategy="fifo"),
                               *m.gang("first", 1, cpu=5, queue="q"), *m.gang("g", 1, at="1s", queue="q")]),
    "another gang": ("GroupNotReady", [m.node("n"), *m.koordinator_gang("g", 2, groups=["default/g", "default/h"])]),
    "a queue of a gang of its group": ("GroupNotReady", [m.node("n", 20), LIMITED, *both(queue="q")]),
    "a mark": ("TimedOut", [m.node("n", 3), *m.koordinator_gang("g", 4, mode="NonStrict", wait="5s")]),
    "another scheduler": ("OtherScheduler", [m.node("n"), *m.gang("g", 1, 2), m.pod("x", group="g", scheduler="foo")]),
    "a volume claim that does not exist": ("GangInvalid", [m.node("n"), *m.gang("g", 2, **CLAIM)]),
    "a volume claim, in a topology": ("GangInvalid", [*r.nodes({"a": 1}), *r.native("g", 2, **CLAIM)]),
    "a volume claim, without nodes": ("GangInvalid", m.gang("g", 2, **CLAIM)),
    "selectors, in a topology": ("GangInvalid", [
        *r.nodes({"a": 1}), *r.native("g", 2, **requiring([("zone", "In", ["a"]), ("zone", "NotIn", ["a"])]))]),
    "pods in two domains": ("GangInvalid", [
        *r.nodes({"a": [1], "b": [1]}), *r.native("g", 1, 3),
        *(m.pod(f"a{n}", nodeName=f"{rack}-0", schedulingGroup={"podGroupName": "g"}) for n, rack in enumerate("ab"))]),
    "a topology that does not exist": ("GangInvalid", [m.node("n"), *r.volcano("g", 2, tier=1)]),
    "its queue, beside room": ("QueueFull", beside_a_limit("a", "b")),
    "its queue, before room": ("QueueFull", beside_a_limit("b", "a")),
    "selectors that contradict each other": (
        "GangInvalid", selecting(spec={"zone": "a"}, nodeSelector={"zone": "b"})),
    "a selector against its own affinity": (
        "GangInvalid", selecting(nodeSelector={"zone": "c"}, **requiring([("zone", "NotIn", ["c"])]))),
    "affinity against itself": ("GangInvalid", selecting(**requiring([
        ("size", "Gt", ["5"]), ("size", "Lt", ["6"])], [("zone", "In", ["c"]), ("zone", "In", ["d"])]))),
    "a label that must and must not be there": (
        "GangInvalid", selecting(spec={"zone": "c"}, **requiring([("zone", "DoesNotExist", [])]))),
    "pods that it evicted": ("Preempting", [
        HIGH, m.node("n", 2), m.pod("busy", 2, stop_delay="60s"), *m.gang("g", 2, priority="high", at="5s")]),
}  # fmt: skip


@pytest.mark.parametrize("docs", NODES_WOULD_HELP.values(), ids=NODES_WOULD_HELP)
def test_e1_all_pods_of_a_minimum_that_nodes_would_help_are_unschedulable(docs: list[Any]) -> None:
    answer = simulate(docs, until="30s")
    waiting = [*answer.all("Pod", "g"), *answer.all("Pod", "h")]
    assert waiting
    assert {*reasons(answer), *reasons(answer, "h")} == {"Unschedulable"}
    assert len(reasons(answer)) == len(answer.all("Pod", "g"))


@pytest.mark.parametrize(("reason", "docs"), NODES_WOULD_NOT.values(), ids=NODES_WOULD_NOT)
def test_e1_pods_that_no_node_would_help_carry_the_reason_of_their_gang(reason: str, docs: list[Any]) -> None:
    answer = simulate(docs, until="30s")
    assert set(reasons(answer)) == {reason}
    assert "Unschedulable" not in reasons(answer, "h")


def test_e1_surplus_is_not_unschedulable_before_its_gang_starts() -> None:
    answer = simulate(m.node("n", 2), m.gang("g", 5, 3))
    assert reasons(answer) == ["Unschedulable"] * 3 + ["Surplus"] * 2
    after = simulate(m.node("n", 3), m.gang("g", 5, 3))
    assert reasons(after) == ["Unschedulable"] * 2
    roles = [m.podgroup("g", 3, roles={"a": 1}), *[m.pod(f"g-a{n}", group="g", role="a") for n in range(2)]]
    roles += [m.pod(f"g-b{n}", group="g", role="b") for n in range(3)]
    assert reasons(simulate(m.node("n", 1), roles)) == ["Unschedulable"] * 2 + ["Unschedulable", "Surplus", "Surplus"]


@pytest.mark.parametrize(
    "docs",
    [
        m.gang("g", 3, 0),
        [m.native_podgroup("g", {"basic": {}}), *m.native_pods("g", 3)],
        m.pods(3, "g-"),
        m.koordinator_gang("g", 3, 0),
    ],
)
def test_e1_without_a_minimum_each_waiting_pod_is_unschedulable(docs: list[Any]) -> None:
    assert reasons(simulate(m.node("n", 1), docs)) == ["Unschedulable"] * 2


def test_e1_a_pod_that_becomes_one_of_the_minimum_says_so() -> None:
    """A pod of the minimum goes and comes back: another one takes its place meanwhile."""
    gone = m.step("10s", "delete", "Pod", "g-0")
    docs = [m.node("n", 1), *m.gang("g", 3, 2), gone]
    assert reasons(simulate(docs, until="5s")) == ["Unschedulable", "Unschedulable", "Surplus"]
    assert reasons(simulate(docs, until="15s")) == ["Unschedulable", "Unschedulable"]
    back = m.pod("g-0", group="g", at="20s")
    assert reasons(simulate(docs, back, until="30s")) == ["Unschedulable", "Unschedulable", "Surplus"]
    restarted = simulate(docs, back, m.restart("25s"), until="30s")
    assert reasons(restarted) == ["Unschedulable", "Unschedulable", "Surplus"]


def test_e1_a_reason_that_changes_is_changed_on_every_pod() -> None:
    docs = [m.node("n", 2), m.podgroup("g", 3), *m.gang("g", 2)[1:], m.pod("g-2", group="g", at="10s")]
    assert reasons(simulate(docs, until="5s")) == ["NotEnoughPods"] * 2
    assert reasons(simulate(docs, until="15s")) == ["Unschedulable"] * 3
    assert reasons(simulate(docs, m.step("20s", "delete", "Pod", "g-2"), until="25s")) == ["NotEnoughPods"] * 2


def test_e1_a_lost_member_of_a_started_gang_is_unschedulable_by_itself() -> None:
    lost = [m.step("10s", "fail-node", "Node", "b"), m.pod("g-9", group="g", at="11s")]
    answer = simulate(m.node("a", 1), m.node("b", 1), m.gang("g", 2), lost, until="30s")
    assert reasons(answer) == ["Unschedulable"]


def test_e1_a_freed_place_is_for_the_pod_that_evicted_only() -> None:
    """Of a started gang one pod comes back by preemption; the surplus beside it does not, and asks for a node."""
    docs = [
        HIGH,
        m.node("n", 3),
        *m.gang("g", 2, priority="high"),
        m.pod("busy", at="1s", stop_delay="60s"),
        m.step("10s", "fail-pod", "Pod", "g-0"),
        m.pod("filler", at="11s", stop_delay="60s"),
        *[m.pod(f"g-{n}", group="g", priority="high", at="12s") for n in (2, 3)],
    ]
    assert reasons(simulate(docs, until="20s")) == ["Preempting", "Unschedulable"]
