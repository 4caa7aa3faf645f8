"""preempt for one gang: what is planned for, which claims are released, what is said of victims (P1, P3, R5, K7)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.engine.actions import allocate, evict, preempt
from enbloc.engine.actions.evict import _evicted_for, _min_resources, _of_use, _reaches, _requests, _try_evictions
from enbloc.engine.claims.lower_priority import LowerPriorityClaim, lower_priority_claims
from enbloc.engine.decisions import Bind, Evict
from enbloc.engine.eviction.planner import Plan
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import group, pods_of
from engine.cycles import CycleScene
from engine.evictions import runs
from support import manifests as m


def lower(scene: CycleScene, gang: str = "vip") -> list[LowerPriorityClaim]:
    cycle = scene.cycle
    return lower_priority_claims(cycle.claims, cycle.groups, cycle.order, cycle.evictions, [scene.gang(gang)])


# ---- claims of lower priority


def waiting(**nodes: int) -> CycleScene:
    """Nodes with so many cpu, each reserved for a gang of its name, of lower priority; `vip`, of 2 cpu, waits."""
    gangs = [[group(f"of-{name}", 1), m.pod(f"of-{name}-0", 1, group=f"of-{name}")] for name in nodes]
    vip = [group("vip", 1), m.pod("vip-0", 2, group="vip", priority=9)]
    scene = CycleScene([m.node(name, cpu) for name, cpu in nodes.items()], *gangs, vip)
    for name in nodes:
        scene.reserve(f"of-{name}", **{f"of_{name}_0": name})
    return scene


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        pytest.param({"a": 2}, [], id="the only one"),
        pytest.param({"a": 2, "b": 2}, ["of-a"], id="of two the last in order"),
        pytest.param({"a": 2, "b": 1}, ["of-b"], id="of two the one that is of use"),
        pytest.param({"a": 2, "b": 2, "c": 2}, ["of-a", "of-b"], id="of three one"),
        pytest.param({"a": 1, "b": 1}, ["of-a", "of-b"], id="none if that does not suffice"),
    ],
)
def test_r5_no_more_claims_are_released_than_it_takes(nodes: dict[str, int], kept: list[str]) -> None:
    scene = waiting(**nodes)
    found = evict._try_releasing_claims(scene.cycle, [scene.gang("vip")], lower(scene))
    assert found is (len(kept) < len(nodes))
    assert [claim.gang.key.name for claim in scene.cycle.claims.all(ClaimKind.RESERVE)] == kept
    decided = scene.direct.engine.end(scene.cycle)
    assert bool([one for one in decided if isinstance(one, Bind)]) is found


def test_r5_claims_on_other_nodes_than_the_plan_uses_stay() -> None:
    scene = waiting(a=2, b=2)
    found = lower(scene)
    plan = Plan([], [(scene.task("vip-0"), "b")])
    assert [sorted(one.nodes) for one in _of_use(found, plan)] == [["b"]]
    assert _of_use(found, Plan([], [])) == []


# ---- which gangs preempt


def preempting(*objects: Any, gang: str = "vip") -> tuple[CycleScene, bool]:
    """Whether room was found, or is being freed, for a gang."""
    scene = CycleScene(*objects)
    unit = [scene.gang(gang)]
    return scene, _try_evictions(scene.cycle, unit, "preempt", preempt._rules, True)


def vip(minimum: int = 1, count: int = 1, cpu: int = 2, **fields: Any) -> list[m.Obj]:
    return [group("vip", minimum), *pods_of("vip", count, cpu=cpu, priority=9, **fields)]


@pytest.mark.parametrize(
    ("running", "gang", "evicts"),
    [
        pytest.param([runs("a", 2, "n")], vip(), True, id="a pod of lower priority"),
        pytest.param([runs("a", 2, "n", priority=9)], vip(), False, id="none of lower priority"),
        pytest.param([runs("a", 2, "n")], vip(preemptionPolicy="Never"), False, id="a gang that never preempts"),
        pytest.param([runs("a", 2, "n")], vip(minimum=2), False, id="a gang that lacks members"),
        pytest.param([runs("a", 2, "n")], vip(minimum=0), False, id="only surplus"),
        pytest.param([], vip(), False, id="there is room: nothing has to be evicted"),
    ],
)
def test_p1_for_which_gangs_pods_are_evicted(running: list[m.Obj], gang: list[m.Obj], evicts: bool) -> None:
    scene, found = preempting(m.node("n", 2), running, gang)
    assert found is evicts
    decided = scene.direct.engine.end(scene.cycle)
    assert [one.name for one in decided if isinstance(one, Evict)] == (["a"] if evicts else [])
    nominated = scene.cycle.claims.nominations.of(scene.gang("vip"))
    assert [task.name for task in nominated] == (["vip-0"] if evicts else [])


def test_p1_a_gang_that_never_preempts_by_its_own_word() -> None:
    scene = CycleScene(m.node("n", 2), runs("a", 2, "n"), vip())
    gang = scene.gang("vip")
    gang.spec = msgspec.structs.replace(gang.spec, never_preempts=True)
    assert not _try_evictions(scene.cycle, [gang], "preempt", preempt._rules, True)


@pytest.mark.parametrize(
    ("gang", "expected"),
    [
        pytest.param(vip(minimum=2, count=3), [(2, 0)], id="its minima"),
        pytest.param(vip(minimum=4, count=3), [], id="nothing while members are missing"),
        pytest.param(vip(minimum=0, count=3), [], id="not its surplus"),
    ],
)
def test_p1_what_is_planned_for(gang: list[m.Obj], expected: list[tuple[int, int]]) -> None:
    """The pods that are needed, and how many of the others."""
    scene = CycleScene(m.node("n", 2), gang)
    found = _requests(scene.cycle, [scene.gang("vip")])
    assert [(len(one.minimum), len(one.later)) for one in found] == expected


@pytest.mark.parametrize(
    ("victims", "message"),
    [
        ("", "room that terminating pods leave is for it"),
        ("a", "1 pod of default/a is evicted for it"),
        ("a b", "2 pods of default/a, default/b are evicted for it"),
    ],
)
def test_p3_what_is_said_of_the_victims(victims: str, message: str) -> None:
    scene = CycleScene(m.node("n"), runs("a", 1, "n"), runs("b", 1, "n"), vip())
    plan = Plan([scene.task(name) for name in victims.split()], [])
    assert _evicted_for(scene.cycle, plan, scene.gang("vip")) == message


def test_p1_quick_test_whether_a_gang_has_victims() -> None:
    """Of its queue and of lower priority; or any claim."""
    others = [runs("a", 1, "n", priority=3), runs("b", 1, "n", priority=1, queue="q")]
    waiting_pods = [m.pod(f"p{priority}", 1, priority=priority) for priority in (2, 3, 4)]
    scene = CycleScene(m.node("n"), m.queue("q"), others, waiting_pods, m.pod("x", 1, queue="q", priority=2))
    have = preempt._have_victims(scene.cycle)
    assert [have(scene.gang(name)) for name in ("p2", "p3", "p4", "x")] == [False, False, True, True]
    scene.reserve("p4", p4="n")
    assert preempt._have_victims(scene.cycle)(scene.gang("p2"))


# ---- K7: minResources


def strict(mode: str = "Strict") -> CycleScene:
    """Gangs `g` and `h`, of one pod each, that start together; each asks for 3 cpu to be free. 4 of 6 are."""
    together = ["default/g", "default/h"]
    gangs = [m.koordinator_gang(name, 1, mode=mode, groups=together) for name in "gh"]
    scene = CycleScene(m.node("n", 6), runs("a", 2, "n"), *gangs)
    for name in "gh":
        gang = scene.gang(name)
        gang.spec = msgspec.structs.replace(gang.spec, min_free_resources={"cpu": 3 * 10**9, "pods": 10**9})
    return scene


@pytest.mark.parametrize(
    ("mode", "satisfied", "asked"),
    [
        pytest.param("Strict", False, 6, id="a Strict group"),
        pytest.param(m.NON_STRICT, False, 0, id="a NonStrict group accumulates without it"),
        pytest.param("Strict", True, 0, id="a gang that has started once"),
    ],
)
def test_k7_what_must_be_free_in_all(mode: str, satisfied: bool, asked: int) -> None:
    scene = strict(mode)
    scene.gang("g").satisfied = satisfied
    assert _min_resources(scene.cycle, [scene.gang("g")]) == ({0: asked * 1000} if asked else {})


@pytest.mark.parametrize(
    ("status", "asked", "reached"),
    [
        (TaskStatus.PENDING, 4, True),
        (TaskStatus.PENDING, 5, False),
        (TaskStatus.NOMINATED, 5, True),
        (TaskStatus.NOMINATED, 6, False),
        (TaskStatus.BOUND, 5, True),
        (TaskStatus.RELEASING, 5, False),
    ],
)
def test_k7_free_room_and_that_of_its_own_members_count(status: TaskStatus, asked: int, reached: bool) -> None:
    scene = strict()
    scene.task("h-0").status = status
    assert _reaches(scene.cycle, [scene.gang("g")], {0: asked * 1000}) is reached
    scene.task("h-0").status = TaskStatus.PENDING


# ---- R5 without evictions: nodes that are reserved for lower ones


@pytest.mark.parametrize(("free", "starts"), [("no", True), ("n", False)], ids=["both nodes", "one node"])
def test_r5_k7_gangs_that_start_together_take_reserved_nodes_together_or_not_at_all(free: str, starts: bool) -> None:
    """`n` and `o` are reserved for `low`; `g` and `h`, of higher priority, need one of them each."""
    together = ["default/g", "default/h"]
    gangs = [one for name in "gh" for one in m.koordinator_gang(name, 1, cpu=4, groups=together, priority=9)]
    full = [runs(f"on-{name}", 4, name, priority=9) for name in "no" if name not in free]
    scene = CycleScene(m.node("n"), m.node("o"), full, group("low", 2), pods_of("low", 2, cpu=4), gangs)
    scene.reserve("low", low_0="n", low_1="o")
    gang = scene.gang("g")
    failure = allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang))
    assert (failure is None) is starts
    bound = [
        place.name for one in scene.direct.engine.end(scene.cycle) if isinstance(one, Bind) for place in one.placements
    ]
    assert sorted(bound) == (["g-0", "h-0"] if starts else [])
    assert bool(scene.cycle.claims.all(ClaimKind.RESERVE)) is not starts


@pytest.mark.parametrize(
    ("priorities", "taken"),
    [
        pytest.param({"a": 1, "b": 2}, "a", id="the lowest first"),
        pytest.param({"a": 2, "b": 1}, "b", id="whichever it is"),
        pytest.param({"a": 9, "b": 1}, "b", id="not of an equal"),
        pytest.param({"a": 9, "b": 9}, "", id="none if both are equals"),
    ],
)
def test_r5_nodes_of_the_lowest_priority_are_used_first(priorities: dict[str, int], taken: str) -> None:
    lower_ones = [
        [group(f"of-{name}", 1), m.pod(f"of-{name}-0", 4, group=f"of-{name}", priority=value)]
        for name, value in priorities.items()
    ]
    scene = CycleScene(m.node("a"), m.node("b"), *lower_ones, vip(cpu=4))
    for name in priorities:
        scene.reserve(f"of-{name}", **{f"of_{name}_0": name})
    gang = scene.gang("vip")
    assert (allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang)) is None) is bool(taken)
    assert scene.task("vip-0").node == taken


def test_r5_surplus_takes_no_reserved_node() -> None:
    scene = CycleScene(m.node("a"), group("low", 1), pods_of("low", 1, cpu=4), vip(minimum=0, cpu=4))
    scene.reserve("low", low_0="a")
    gang = scene.gang("vip")
    assert allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang)) is not None
    assert scene.cycle.claims.blocked is False


def test_k12_a_gang_with_claims_that_is_attempted_in_vain_is_looked_at_for_deadlocks() -> None:
    scene = CycleScene(m.node("a"), runs("x", 4, "a", priority=9), vip(cpu=4))
    scene.reserve("vip", vip_0="a")
    gang = scene.gang("vip")
    assert allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang)) is not None
    assert scene.cycle.claims.blocked is True


@pytest.mark.parametrize(("other", "starts"), [(9, True), (5, False), (1, False)], ids=["higher", "equal", "lower"])
def test_s1_the_lowest_priority_of_a_group_decides_whether_it_takes_reserved_nodes(other: int, starts: bool) -> None:
    """`low` has priority 5, `g` 9; `h` starts together with `g`."""
    together = ["default/g", "default/h"]
    priorities = {"g": 9, "h": other}
    gangs = [one for name in "gh" for one in m.koordinator_gang(name, 1, groups=together, priority=priorities[name])]
    scene = CycleScene(m.node("n"), group("low", 1), m.pod("low-0", 4, group="low", priority=5), gangs)
    scene.reserve("low", low_0="n")
    gang = scene.gang("g")
    assert (allocate.serve(scene.cycle, gang, scene.cycle.constraints(gang)) is None) is starts
    assert bool(scene.task("g-0").node) is bool(scene.task("h-0").node) is starts
