"""enqueue: why a gang is refused, on which grounds it is enqueued all the same, and what could be freed for it (M6)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.actions.enqueue import (
    NOTHING_FREED,
    Freed,
    _by_eviction_or_starvation,
    _reclaimable,
    _refusal,
    refusal,
)
from enbloc.engine.queueing.demand import PREEMPTING, RECLAIMING
from engine.cycles import CycleScene
from support import manifests as m

WITH_RECLAIM = {"actions": "enqueue, allocate, preempt, reclaim, backfill"}


def asks(cpu: int = 0, queue: str = "default", name: str = "g", minimum: int = 1, **more: str) -> m.Obj:
    """A PodGroup that is not enqueued; `more`: further resources, `_` for `.` and `/`."""
    return m.podgroup(name, minimum, queue=queue, resources={"cpu": str(cpu), **more} if cpu else more)


def refused(*objects: Any, freed: Freed = NOTHING_FREED, config: m.Obj | None = None) -> str:
    """What the gang `g` says; empty: it is enqueued."""
    scene = CycleScene(*objects, config=config)
    cycle = scene.cycle
    totals = cycle.state.nodes.totals()
    used = totals - cycle.state.free_total()[: len(totals)]
    found = _refusal(cycle, scene.gang(), totals, used, freed)
    if freed is NOTHING_FREED:
        assert refusal(cycle, scene.gang()) == found
    return found.message.removeprefix("not enqueued: ") if found is not None else ""


def used(cpu: int, queue: str = "default", **fields: Any) -> m.Obj:
    return m.pod(f"used-{queue}-{cpu}", cpu, queue=queue, nodeName="n", **fields)


NODE = m.node("n", 10)
"""With 12 cpu by the default overcommit factor."""


@pytest.mark.parametrize(
    ("objects", "cpu", "message"),
    [
        pytest.param([], 10, "", id="all of the cluster"),
        pytest.param([], 11, "requests 11 cpu, the cluster has 10", id="more than the cluster"),
        pytest.param([used(2)], 10, "", id="overcommitted by a fifth"),
        pytest.param([used(3)], 10, "requests 10 cpu, 7 of 10 available", id="no more than that"),
        pytest.param([used(3), used(9, "q")], 3, "requests 3 cpu, 0 of 10 available", id="more is used than exists"),
        pytest.param(
            [m.queue("default", capability={"cpu": "4"}), used(2)], 3,
            "requests 3 cpu, queue default uses 2 of its capability of 4", id="more than its queue may use",
        ),
        pytest.param([m.queue("default", capability={"cpu": "5"}), used(2)], 3, "", id="as much as its queue may use"),
        pytest.param([m.queue("q", guarantee={"cpu": "4"}), used(3)], 3, "", id="beside what others are guaranteed"),
        pytest.param(
            [m.queue("q", guarantee={"cpu": "4"}), used(3)], 4,
            "requests 4 cpu, 7 of 10 available, 4 guaranteed to other queues", id="what others are guaranteed",
        ),
        pytest.param([m.queue("q", guarantee={"memory": "1Gi"}), used(3)], 9, "", id="another resource is guaranteed"),
    ],
)  # fmt: skip
def test_m6_why_a_gang_is_not_enqueued(objects: list[m.Obj], cpu: int, message: str) -> None:
    queue = [] if any(one["metadata"]["name"] == "q" for one in objects) else [m.queue("q")]
    assert refused(NODE, queue, objects, asks(cpu)) == message


@pytest.mark.parametrize(
    ("freed", "message"),
    [
        pytest.param(Freed({0: 1_000}), "requests 6 cpu, 3 of 10 available", id="too little"),
        pytest.param(Freed({0: 2_000}), "", id="enough"),
        pytest.param(Freed({1: 9_000}), "requests 6 cpu, 2 of 10 available", id="of another resource"),
        pytest.param(Freed(None), "", id="all in time"),
    ],
)
def test_m6_what_could_be_freed_counts_as_free(freed: Freed, message: str) -> None:
    assert refused(NODE, used(8), asks(6), freed=freed) == message


@pytest.mark.parametrize(
    ("of_queue", "enqueued"),
    [({}, False), ({0: 1_000}, False), ({0: 2_000}, True)],
    ids=["nothing of it", "too little of it", "enough of it"],
)
def test_m6_what_its_own_queue_would_free_counts_for_its_capability(of_queue: dict[int, int], enqueued: bool) -> None:
    queue = m.queue("default", capability={"cpu": "4"})
    message = refused(NODE, queue, used(3), asks(3), freed=Freed({0: 3_000}, of_queue))
    assert message == ("" if enqueued else "requests 3 cpu, queue default uses 3 of its capability of 4")


@pytest.mark.parametrize(
    ("may_exceed", "admits", "enqueued"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_m6_gangs_that_are_larger_than_the_cluster(may_exceed: bool, admits: bool, enqueued: bool) -> None:
    """After their deadline, or as configured."""
    config = {"enqueue": {"admitOversized": admits}}
    freed = Freed(None, may_exceed_cluster=True) if may_exceed else NOTHING_FREED
    assert (refused(NODE, asks(99), freed=freed, config=config) == "") is enqueued


def test_m6_a_resource_that_no_node_has() -> None:
    asked = asks(1, **{"example.com/gpu": "2"})
    assert refused(NODE, asked) == "requests 2 example.com/gpu, the cluster has 0"
    assert refused(NODE, asked, config={"enqueue": {"admitOversized": True}}) == ""


def test_m6_places_among_pods_and_amounts_of_zero_do_not_count() -> None:
    assert refused(m.node("n", 10, pods=1), asks(1, pods="5")) == ""
    assert refused(NODE, asks(1, **{"example.com/gpu": "0"})) == ""


def test_m6_the_missing_pods_of_a_gang_that_is_not_enqueued() -> None:
    group = m.podgroup("g", 5, roles={"w": 2, "m": 1}, resources={"cpu": "99"})
    scene = CycleScene(NODE, group)
    found = refusal(scene.cycle, scene.gang())
    assert found is not None
    assert dict(found.missing) == {"w": 2, "m": 1, "": 2}
    exact = CycleScene(NODE, m.podgroup("g", 3, roles={"w": 2, "m": 1}, resources={"cpu": "99"}))
    found = refusal(exact.cycle, exact.gang())
    assert found is not None
    assert dict(found.missing) == {"w": 2, "m": 1}


@pytest.mark.parametrize(
    ("nodes", "usable"),
    [
        ([m.node("a"), m.node("b")], 2),
        ([m.node("a"), m.node("b", unschedulable=True)], 1),
    ],
)
def test_m6_nodes_on_which_a_resource_is_insufficient(nodes: list[m.Obj], usable: int) -> None:
    scene = CycleScene(nodes, asks(99))
    found = refusal(scene.cycle, scene.gang())
    assert found is not None
    assert [(one.reason, one.nodes) for one in found.reasons] == [("Insufficient cpu", usable)]
    assert not found.of_queue


# ---- grounds


def grounds(*objects: Any, config: m.Obj | None = None) -> dict[str, int]:
    """Ground → the cpu that could be freed on it."""
    scene = CycleScene(*objects, config=config or WITH_RECLAIM)
    found = dict(_by_eviction_or_starvation(scene.cycle, scene.gang()))
    return {ground: (freed.in_all or {}).get(0, 0) // 1000 for ground, freed in found.items()}


NO_PREEMPTION = {**WITH_RECLAIM, "tiers": [{"plugins": [{"name": "priority", "enablePreemptable": False}]}]}


@pytest.mark.parametrize(
    ("running", "priority", "config", "expected"),
    [
        pytest.param([used(3, priority=1), used(4, priority=2)], 2, None, {PREEMPTING: 3}, id="lower priorities"),
        pytest.param([used(3, priority=1), used(4, priority=2)], 3, None, {PREEMPTING: 7}, id="all lower priorities"),
        pytest.param([used(3, priority=1)], 1, None, {}, id="none is lower"),
        pytest.param([used(3, "q")], 9, None, {}, id="of another queue within its share"),
        pytest.param([used(3, priority=1)], 9, {"actions": "enqueue, allocate"}, {}, id="without preempt"),
        pytest.param([used(3, priority=1)], 9, NO_PREEMPTION, {}, id="preemption by priority is disabled"),
        pytest.param([used(7, "q"), used(3, priority=1)], 9, None, {PREEMPTING: 3, RECLAIMING: 2}, id="both"),
    ],
)
def test_m6_what_evictions_could_free(
    running: list[m.Obj], priority: int, config: m.Obj | None, expected: dict[str, int]
) -> None:
    """Of 10 cpu, two queues deserve 5 each; `g` asks for 2."""
    demand = [asks(10, "q", name="d-q"), asks(10, name="d")]
    classes = m.priority_class("own", priority)
    group = asks(2) | {}
    group["spec"]["priorityClassName"] = "own"
    assert grounds(NODE, classes, m.queue("q"), running, demand, group, config=config) == expected


def test_m6_p2_what_could_be_reclaimed_is_what_others_use_beyond_their_share() -> None:
    """`q` uses 7 of the 5 cpu that it deserves, 3 of them by a pod that may not be evicted, and within its share of the
    memory."""
    kept = m.pod("kept", 3, memory="1Gi", queue="q", nodeName="n", annotations={"volcano.sh/preemptable": "false"})
    pods = [m.pod("a", 3, memory="1Gi", queue="q", nodeName="n"), m.pod("b", 1, queue="q", nodeName="n"), kept]
    demand = [asks(10, "q", name="d-q", memory="16Gi"), asks(10, name="d", memory="16Gi")]
    scene = CycleScene(NODE, m.queue("q"), pods, demand, asks(2, memory="1Gi"), config=WITH_RECLAIM)
    names = scene.cycle.state.resources.names
    found = {names[column]: amount for column, amount in _reclaimable(scene.cycle, scene.gang()).items()}
    assert found == {"cpu": 2_000, "memory": 0}
