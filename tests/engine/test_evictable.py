"""What evictions could free, by queue and priority: counted anew as pods, gangs and nodes change (P1, P2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from enbloc.engine.events import EventKind
from enbloc.engine.eviction.elastic import can_spare
from enbloc.engine.eviction.evictable import CACHED_SUMS, SYSTEM_CRITICAL, Cell, Evictable, is_evictable
from enbloc.engine.eviction.history import REFUSED_FOR_NS, EvictionHistory
from enbloc.engine.eviction.immunity import Immunity
from enbloc.engine.tables.resources import CPU, Ints
from enbloc.gangs.hints import COOLDOWN, PREEMPTABLE
from engine.claims.scenes import SECOND_NS, Scene
from support import manifests as m

LOW: Cell = ("default", 0)
HIGH: Cell = ("default", 5)
OTHER: Cell = ("other", 0)
PROTECTED = {PREEMPTABLE: "false"}


def history(scene: Scene) -> EvictionHistory:
    return scene.direct.engine.parts.evictions


def by_node(scene: Scene, freed: Ints) -> dict[str, int]:
    """Node → cores, of those on which there are any."""
    rows = scene.state.nodes.rows
    return {name: int(freed[CPU, row]) // 1000 for name, row in rows.items() if freed[CPU, row]}


def cluster(*objects: Any) -> Scene:
    return Scene(m.node("n", 99), m.node("m", 99), m.queue("other"), *objects)


# ---- which pods


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, True, id="bound"),
        pytest.param({"nodeName": None}, False, id="waiting"),
        pytest.param({"scheduler": "other"}, False, id="of another scheduler"),
        pytest.param({"annotations": PROTECTED}, False, id="not preemptable"),
        pytest.param({"namespace": "kube-system"}, False, id="of the system"),
        pytest.param({"priority": SYSTEM_CRITICAL - 1}, True, id="important"),
        pytest.param({"priority": SYSTEM_CRITICAL}, False, id="system-critical"),
    ],
)
def test_p2_which_pods_may_be_evicted_at_all(fields: dict[str, Any], expected: bool) -> None:
    scene = cluster(m.pod("a", **{"nodeName": "n", **fields}))
    assert is_evictable(scene.task("a"), Immunity(scene.state, None)) is expected


def test_p2_a_pod_of_a_system_critical_gang_is_not_evicted() -> None:
    scene = cluster(m.pod("a", nodeName="n"))
    scene.gang("a").priority = SYSTEM_CRITICAL
    assert not is_evictable(scene.task("a"), Immunity(scene.state, None))


# ---- what they free


def test_p1_what_could_be_freed_by_queue_and_priority() -> None:
    scene = cluster(
        m.pod("a", 1, nodeName="n"),
        m.pod("b", 2, nodeName="n"),
        m.pod("c", 4, nodeName="m"),
        m.pod("d", 8, nodeName="n", priority=5),
        m.pod("e", 16, nodeName="m", queue="other"),
        m.pod("f", 32, nodeName="m", annotations=PROTECTED),
    )
    found = history(scene).evictable
    assert set(found.cells()) == {LOW, HIGH, OTHER}
    expected: list[tuple[Iterable[Cell], dict[str, int]]] = [
        ([LOW], {"n": 3, "m": 4}),
        ([HIGH], {"n": 8}),
        ([LOW, HIGH], {"n": 11, "m": 4}),
        ([OTHER, HIGH], {"n": 8, "m": 16}),
        ([], {}),
        ([("gone", 0)], {}),
    ]
    for cells, freed in expected * 2:  # from memory, too
        assert by_node(scene, found.freed(cells)) == freed


Change = Callable[[Scene], object]


def goes(name: str) -> Change:
    return lambda scene: scene.delete_pod(name)


def comes(*objects: m.Obj) -> Change:
    return lambda scene: [scene.direct.put(one) for one in objects]


@pytest.mark.parametrize(
    ("change", "low", "high", "cells"),
    [
        pytest.param(goes("a"), {"n": 2, "m": 4}, {"n": 8}, {LOW, HIGH}, id="a pod goes"),
        pytest.param(goes("d"), {"n": 3, "m": 4}, {}, {LOW}, id="the last pod of its priority goes"),
        pytest.param(comes(m.pod("x", 16, nodeName="m")), {"n": 3, "m": 20}, {"n": 8}, {LOW, HIGH}, id="a pod comes"),
        pytest.param(
            comes(m.pod("x", 16, nodeName="m", priority=5)), {"n": 3, "m": 4}, {"n": 8, "m": 16}, {LOW, HIGH},
            id="a pod of higher priority comes",
        ),
        pytest.param(
            comes(m.pod("x", 16, nodeName="m", queue="other")), {"n": 3, "m": 4}, {"n": 8}, {LOW, HIGH, OTHER},
            id="a pod of another queue comes",
        ),
        pytest.param(
            comes(m.node("k", 99), m.pod("x", 16, nodeName="k")), {"n": 3, "m": 4, "k": 16}, {"n": 8}, {LOW, HIGH},
            id="a node comes",
        ),
        pytest.param(
            comes(m.pod("x", 16, nodeName="m", extra={"example.com/gpu": 1})), {"n": 3, "m": 20}, {"n": 8}, {LOW, HIGH},
            id="a resource comes",
        ),
    ],
)  # fmt: skip
def test_p1_it_is_counted_anew(change: Change, low: dict[str, int], high: dict[str, int], cells: set[Cell]) -> None:
    scene = cluster(
        m.pod("a", 1, nodeName="n"), m.pod("b", 2, nodeName="n"), m.pod("c", 4, nodeName="m"),
        m.pod("d", 8, nodeName="n", priority=5),
    )  # fmt: skip
    found = history(scene).evictable
    found.freed([LOW])
    change(scene)
    scene.state.settle()
    assert by_node(scene, found.freed([LOW])) == low
    assert by_node(scene, found.freed([HIGH])) == high
    assert by_node(scene, found.freed([LOW])) == low
    assert set(found.cells()) == cells


def test_p1_a_node_that_is_removed_frees_nothing() -> None:
    scene = cluster(m.pod("a", 1, nodeName="n"), m.pod("b", 2, nodeName="m"))
    found = history(scene).evictable
    found.freed([LOW])
    scene.delete_pod("a")
    scene.direct.delete("Node", "n")
    scene.begin(1)
    assert by_node(scene, found.freed([LOW])) == {"m": 2}


def test_p1_the_least_recently_used_sum_is_dropped() -> None:
    scene = cluster(m.pod("a", 1, nodeName="n"))
    found = Evictable(scene.state, Immunity(scene.state, None))
    first = found.freed([LOW])
    for number in range(1, CACHED_SUMS):
        found.freed([("default", number)])
    assert found.freed([LOW]) is first
    found.freed([HIGH, OTHER])
    assert found.freed([LOW]) is first, "it was used meanwhile"
    for number in range(CACHED_SUMS):
        found.freed([("other", number)])
    assert found.freed([LOW]) is not first


def test_p3_the_resources_that_pods_of_a_queue_and_priority_request() -> None:
    scene = cluster(
        m.pod("a", 1, nodeName="n"),
        m.pod("b", 2, nodeName="m"),
        m.pod("c", None, memory="1Gi", nodeName="m"),
        m.pod("d", 1, nodeName="m", queue="other"),
    )
    found = history(scene).evictable

    def resources(cell: Cell) -> set[str]:
        listed = scene.state.resources.names
        return {"+".join(listed[column] for column in kind if listed[column] != "pods") for kind in found.kinds(cell)}

    assert (resources(LOW), resources(OTHER), resources(HIGH)) == ({"cpu", "memory"}, {"cpu"}, set())
    scene.delete_pod("a")
    assert resources(LOW) == {"cpu", "memory"}
    scene.delete_pod("b")
    assert resources(LOW) == {"memory"}
    scene.delete_pod("d")
    assert resources(OTHER) == set()


# ---- surplus members


def runs(name: str, count: int, minimum: int, **fields: Any) -> list[m.Obj]:
    return m.gang(name, count, minimum, nodeName="n", **fields)


def surplus(scene: Scene, *cells: Cell) -> dict[str, int]:
    """What surplus members of these cells free, and are known for."""
    found = history(scene).surplus
    for gang in scene.state.gangs.values():
        found.update(gang)
    known = found.cells()
    freed = found.freed(cells)
    assert {cell for cell in cells if cell in known} == {cell for cell in cells if found.freed([cell]).any()}
    return by_node(scene, freed)


@pytest.mark.parametrize(
    ("minima", "occupied", "spared"),
    [
        pytest.param({}, {"w": 3}, {"w"}, id="above the minimum"),
        pytest.param({}, {"w": 2}, set(), id="at the minimum"),
        pytest.param({"m": 1}, {"w": 2, "m": 1}, {"w"}, id="a role at its own minimum"),
        pytest.param({"m": 1}, {"w": 1, "m": 2}, {"w", "m"}, id="a role above its own minimum"),
        pytest.param({"w": 1, "m": 1}, {"w": 1, "m": 1}, set(), id="both at the minimum"),
    ],
)
def test_p1_members_that_a_gang_can_spare(minima: dict[str, int], occupied: dict[str, int], spared: set[str]) -> None:
    """The gang needs 2 members in all."""
    members = [
        m.pod(f"{role}-{number}", group="g", role=role, nodeName="n")
        for role, count in occupied.items()
        for number in range(count)
    ]
    scene = cluster(m.podgroup("g", 2, roles=minima), members)
    assert {task.role for task in scene.gang().tasks.values() if can_spare(task)} == spared


def test_p1_what_surplus_members_free() -> None:
    """Any member may be spared, though not all of them."""
    scene = cluster(
        runs("a", 3, 2), runs("b", 2, 2, cpu=8), runs("c", 2, 1, cpu=4, queue="other"), runs("d", 2, 1, priority=5)
    )
    assert surplus(scene, LOW) == {"n": 3}
    assert surplus(scene, OTHER) == {"n": 8}
    assert surplus(scene, LOW, OTHER, HIGH) == {"n": 13}
    assert set(history(scene).surplus.cells()) == {LOW, OTHER, HIGH}


@pytest.mark.parametrize(
    ("change", "freed"),
    [
        pytest.param(goes("a-2"), {}, id="a gang is at its minimum"),
        pytest.param(comes(m.pod("a-3", 2, group="a", nodeName="m")), {"n": 3, "m": 2}, id="a member is added"),
        pytest.param(comes(m.podgroup("a", 3)), {}, id="the minimum is raised"),
        pytest.param(comes(m.podgroup("a", 1)), {"n": 3}, id="the minimum is lowered"),
        pytest.param(comes(m.node("k")), {"n": 3}, id="a node comes"),
        pytest.param(lambda scene: [scene.delete_pod(f"a-{n}") for n in range(3)], {}, id="the gang is gone"),
    ],
)
def test_p1_surplus_is_counted_anew(change: Change, freed: dict[str, int]) -> None:
    scene = cluster(runs("a", 3, 2))
    assert surplus(scene, LOW) == {"n": 3}
    change(scene)
    scene.begin(1)
    assert surplus(scene, LOW) == freed
    assert surplus(scene, LOW) == freed


def test_p1_a_gang_that_is_removed_leaves_no_surplus_behind() -> None:
    scene = cluster(runs("a", 3, 2), runs("b", 2, 1))
    assert surplus(scene, LOW) == {"n": 5}
    history(scene).gang_gone(scene.gang("a"))
    assert by_node(scene, history(scene).surplus.freed([LOW])) == {"n": 2}
    history(scene).gang_gone(scene.gang("b"))
    assert LOW not in history(scene).surplus.cells()


@pytest.mark.parametrize("why", ["cooldown", "refused", "protected"])
def test_p2_surplus_that_may_not_be_evicted_now_frees_nothing(why: str) -> None:
    group, *members = runs("a", 3, 1)
    if why != "refused":
        notes = {COOLDOWN: "10s"} if why == "cooldown" else PROTECTED
        members[2]["metadata"]["annotations"] |= notes
        members[2]["status"] = {"startTime": "1970-01-01T00:00:00Z"}
    scene = cluster(group, members)
    if why == "refused":
        history(scene).refused(scene.task("a-2").uid)
    assert surplus(scene, LOW) == {"n": 2}
    later_ns = REFUSED_FOR_NS if why == "refused" else 10 * SECOND_NS
    history(scene).cycle_begins(later_ns - 1)
    assert surplus(scene, LOW) == {"n": 2}
    history(scene).cycle_begins(later_ns)
    assert surplus(scene, LOW) == {"n": 2 if why == "protected" else 3}, "the gang itself did not change"


def test_p1_surplus_members_come_in_reverse_order() -> None:
    scene = cluster(runs("a", 3, 2), runs("b", 1, 1))
    surplus(scene, LOW)
    found = history(scene).surplus
    assert [found.position(scene.task(f"a-{number}")) for number in range(3)] == [2, 1, 0]
    assert found.position(scene.task("b-0")) == 0


# ---- now, or later


def test_p2_when_a_pod_may_be_evicted() -> None:
    """After its cooldown, or 30 s after its eviction was refused, whichever is later; plans are tried again then."""
    pod = m.pod("a", nodeName="n", annotations={COOLDOWN: "10s"})
    scene = cluster(pod | {"status": {"startTime": "1970-01-01T00:00:05Z"}}, m.pod("b", nodeName="n"))
    evictions, a, b = history(scene), scene.task("a"), scene.task("b")
    assert (evictions.may_go(a), evictions.may_go(b)) == (False, True)
    assert evictions.due() == 15 * SECOND_NS
    evictions.refused(b.uid)
    assert not evictions.may_go(b)
    assert evictions.due() == 15 * SECOND_NS, "the first of them"
    failed = scene.gang("b")
    evictions.note_failed("preempt", failed)
    evictions.cycle_begins(15 * SECOND_NS - 1)
    assert (evictions.may_go(a), evictions.has_failed("preempt", failed)) == (False, True)
    evictions.cycle_begins(15 * SECOND_NS)
    assert (evictions.may_go(a), evictions.may_go(b), evictions.has_failed("preempt", failed)) == (True, False, False)
    assert evictions.due() == REFUSED_FOR_NS
    evictions.cycle_begins(REFUSED_FOR_NS)
    assert evictions.may_go(b)
    assert evictions.due() is None


def test_p2_the_cooldown_of_a_pod_that_has_not_reported_its_start_runs_from_now() -> None:
    scene = cluster(m.pod("a", nodeName="n", annotations={COOLDOWN: "10s"}))
    evictions = history(scene)
    evictions.cycle_begins(7 * SECOND_NS)
    assert not evictions.may_go(scene.task("a"))
    assert evictions.due() == 17 * SECOND_NS


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize(
    ("change", "retried"),
    [
        pytest.param(lambda scene: None, False, id="nothing changed"),
        pytest.param(comes(m.pod("x", nodeName="m")), True, id="a pod was bound"),
        pytest.param(comes(m.queue("third")), True, id="a queue changed"),
        pytest.param(comes(m.budget({"app": "x"}, minAvailable=1)), True, id="a budget changed"),
        pytest.param(lambda scene: history(scene).retry(scene.gang("a")), True, id="the gang changed"),
        pytest.param(lambda scene: history(scene).retry(scene.gang("b")), False, id="another gang changed"),
        pytest.param(lambda scene: history(scene).retry_all(), True, id="anything else"),
    ],
)
def test_g9_a_plan_that_failed_is_tried_again_when_facts_change(action: str, change: Change, retried: bool) -> None:
    scene = cluster(m.pod("a"), m.pod("b", nodeName="n"))
    evictions, gang = history(scene), scene.gang("a")
    evictions.note_failed(action, gang)
    assert evictions.has_failed(action, gang)
    assert not evictions.has_failed("reclaim" if action == "preempt" else "preempt", gang)
    change(scene)
    assert evictions.has_failed(action, gang) is not retried


def test_g9_a_budget_whose_status_alone_changed_is_no_event() -> None:
    scene, budget = cluster(m.pod("a", nodeName="n")), m.budget({"app": "x"}, minAvailable=1)
    events = scene.state.events
    scene.state.put_budget(budget, gone=False)
    assert EventKind.BUDGET_CHANGED in events.kinds
    events.clear()
    scene.state.put_budget({**budget, "status": {"disruptionsAllowed": 1}}, gone=False)
    assert not events
