"""What the engine reads of a pod, a queue and a node."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.koordinator import TIMEOUT
from enbloc.api.volcano import DEQUEUE_STRATEGY, IMMUNITY, WITHIN_SHARE
from enbloc.config import parse
from enbloc.engine.core.tables.tasks import PodFacts, TaskStatus
from enbloc.engine.facts import node_facts, pod_facts, queue_facts
from enbloc.units import NANO, SECOND, parse_timestamp
from support import manifests as m

CREATED = "2026-01-01T00:00:00Z"
ENBLOC = frozenset({"enbloc"})


def pod(
    phase: str = "", deleted: bool = False, annotations: dict[str, str] | None = None, start: Any = None, **fields: Any
) -> PodFacts:
    made = m.pod("p", **fields)
    made["metadata"] |= {"uid": "u", "creationTimestamp": CREATED, "annotations": annotations or {}}
    if deleted:
        made["metadata"]["deletionTimestamp"] = CREATED
    made["status"] = {key: value for key, value in (("phase", phase), ("startTime", start)) if value}
    return pod_facts(made, ENBLOC)


GATES: dict[str, Any] = {"schedulingGates": [{"name": "x"}]}
TIMED_OUT = {TIMEOUT: "true"}


@pytest.mark.parametrize(
    ("fields", "status", "node"),
    [
        ({}, TaskStatus.PENDING, ""),
        ({"phase": "Pending"}, TaskStatus.PENDING, ""),
        ({"nodeName": "n"}, TaskStatus.BOUND, "n"),
        ({"nodeName": "n", "phase": "Running"}, TaskStatus.BOUND, "n"),
        ({"nodeName": "n", "phase": "Succeeded"}, TaskStatus.SUCCEEDED, ""),
        ({"nodeName": "n", "phase": "Failed"}, TaskStatus.FAILED, ""),
        ({"nodeName": "n", "deleted": True}, TaskStatus.RELEASING, "n"),
        ({"nodeName": "n", "phase": "Failed", "deleted": True}, TaskStatus.RELEASING, ""),
        ({"deleted": True}, TaskStatus.RELEASING, ""),
        (GATES, TaskStatus.GATED, ""),
        ({"schedulingGates": []}, TaskStatus.PENDING, ""),
        ({**GATES, "annotations": TIMED_OUT}, TaskStatus.GATED, ""),
        ({"annotations": TIMED_OUT}, TaskStatus.TIMED_OUT, ""),
        ({"annotations": {TIMEOUT: "false"}}, TaskStatus.PENDING, ""),
        ({"nodeName": "n", "annotations": TIMED_OUT}, TaskStatus.BOUND, "n"),
    ],
)
def test_the_status_and_the_node_of_a_pod(fields: dict[str, Any], status: TaskStatus, node: str) -> None:
    found = pod(**fields)
    assert (found.status, found.node) == (status, node)


def test_other_facts_of_a_pod() -> None:
    plain = pod()
    assert (plain.ours, plain.priority, plain.never_preempts, plain.since_ns) == (True, 0, False, None)
    assert plain.created_ns == parse_timestamp(CREATED)
    other = pod(scheduler="kai", priority=7, preemptionPolicy="Never", start="2026-01-01T00:00:09Z")
    assert (other.ours, other.priority, other.never_preempts) == (False, 7, True)
    assert other.since_ns == plain.created_ns + 9 * SECOND
    assert pod(start=5).since_ns is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"weight": 3}, {"weight": 3}),
        ({"weight": 0}, {"weight": 1}),
        ({"weight": -2}, {"weight": 1}),
        ({"priority": 4, "parent": "p"}, {"priority": 4, "parent": "p"}),
        ({"capability": {"cpu": "2"}}, {"capability": {"cpu": 2 * NANO}, "guarantee": {}, "deserved": {}}),
        ({"guarantee": {"cpu": "2"}}, {"capability": {}, "guarantee": {"cpu": 2 * NANO}}),
        ({"deserved": {"cpu": "2"}}, {"deserved": {"cpu": 2 * NANO}}),
        ({}, {"fifo": False, "reclaimable": True, "closed": False, "immune_within_share": False}),
        ({"dequeueStrategy": "FIFO"}, {"fifo": True}),
        ({"dequeueStrategy": "traverse"}, {"fifo": False}),
        ({"reclaimable": False}, {"reclaimable": False}),
        ({"reclaimable": True}, {"reclaimable": True}),
        ({"state": "Closed"}, {"closed": True}),
        ({"state": "Closing"}, {"closed": True}),
        ({"state": "Open"}, {"closed": False}),
    ],
)
def test_facts_of_a_queue(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    found = queue_facts(m.queue("q", **fields), parse(None).tenancy)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "annotation", "default", "fifo"),
    [
        ({}, None, False, False),
        ({}, None, True, True),
        ({}, "fifo", False, True),
        ({}, "traverse", True, False),
        ({"dequeueStrategy": "traverse"}, "fifo", True, False),
    ],
)
def test_g8_the_strategy_of_a_queue_is_its_field_else_its_annotation_else_the_default(
    fields: dict[str, str], annotation: str | None, default: bool, fifo: bool
) -> None:
    made = m.queue("q", **fields)
    made["metadata"]["annotations"] = {DEQUEUE_STRATEGY: annotation} if annotation else {}
    assert queue_facts(made, parse(None).tenancy, fifo=default).fifo is fifo


@pytest.mark.parametrize(
    ("annotation", "tenancy", "within"),
    [(None, "open", False), (WITHIN_SHARE, "open", True), ("always", "open", False), (None, "isolated", True)],
)
def test_s6_immunity_within_the_share(annotation: str | None, tenancy: str, within: bool) -> None:
    made = m.queue("q")
    made["metadata"]["annotations"] = {IMMUNITY: annotation} if annotation else {}
    config = parse({"tenancy": tenancy} if tenancy != "open" else None)
    assert queue_facts(made, config.tenancy).immune_within_share is within


@pytest.mark.parametrize(
    ("status", "ready", "cpu"),
    [
        ({"allocatable": {"cpu": "3"}, "capacity": {"cpu": "4"}}, True, 3),
        ({"capacity": {"cpu": "4"}}, True, 4),
        ({"allocatable": {}, "capacity": {"cpu": "4"}}, True, 0),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True, 0),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False, 0),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, 0),
        ({"conditions": [{"type": "DiskPressure", "status": "False"}]}, True, 0),
        (None, True, 0),
    ],
)
def test_what_a_node_offers_and_whether_it_is_ready(status: Any, ready: bool, cpu: int) -> None:
    found = node_facts({**m.node("n"), "status": status})
    assert (found.ready, found.allocatable.get("cpu", 0)) == (ready, cpu * NANO)
    assert (found.unschedulable, found.created_ns) == (False, 0)


def test_the_other_facts_of_a_node() -> None:
    made = m.node("n", unschedulable=True, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    made["metadata"]["creationTimestamp"] = CREATED
    found = node_facts(made)
    assert (found.unschedulable, found.created_ns) == (True, parse_timestamp(CREATED))
    assert [tuple(taint) for taint in found.taints] == [("k", "v", "NoSchedule")]
