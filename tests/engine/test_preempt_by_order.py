"""preempt by order: which gangs wait, which may be moved, and who leaves when all are placed anew (P1, P2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.config.policies import POLICIES
from enbloc.engine.actions import allocate, preempt_by_order
from enbloc.engine.actions.preempt_by_order import _may_leave, _may_move, _running, _spots, _waiting
from enbloc.engine.decisions import Evict, SetAside
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.hints import COOLDOWN, PREEMPTABLE
from engine.claims.scenes import SECOND_NS, group, name_of
from engine.cycles import CycleScene
from support import manifests as m

GROUP = ["default/g", "default/h"]
LONG, SHORT = {"enbloc.dev/expected-duration": "1h"}, {"enbloc.dev/expected-duration": "1m"}


def started(second: int) -> m.Obj:
    return {"startTime": f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z"}


def runs(name: str, cpu: int = 1, node: str = "n", since_s: int = 10, **fields: Any) -> list[m.Obj]:
    """A gang of one pod."""
    pod = m.pod(f"{name}-0", cpu, group=name, nodeName=node, **{"annotations": LONG, **fields})
    return [group(name, 1), pod | {"status": started(since_s)}]


def waits(name: str, cpu: int = 1, count: int = 1, **fields: Any) -> list[m.Obj]:
    members = [m.pod(f"{name}-{n}", cpu, group=name, **{"annotations": SHORT, **fields}) for n in range(count)]
    return [group(name, count), *members]


def ordered(*objects: Any) -> CycleScene:
    """Allocate has run: what waits now did not fit."""
    scene = CycleScene(*objects, config=POLICIES["srtf"].data)
    allocate.run(scene.cycle)
    return scene


# ---- who may be moved


@pytest.mark.parametrize(
    ("fields", "leaves"),
    [
        pytest.param({}, True, id="any pod"),
        pytest.param({"since_s": 99}, True, id="after its first second"),
        pytest.param({"since_s": 100}, False, id="within its first second"),
        pytest.param({"annotations": {PREEMPTABLE: "false"}}, False, id="not preemptable"),
        pytest.param({"annotations": {COOLDOWN: "91s"}}, False, id="within its cooldown"),
        pytest.param({"annotations": {COOLDOWN: "90s"}}, True, id="after its cooldown"),
        pytest.param({"labels": {"app": "kept"}}, False, id="of a PodDisruptionBudget"),
    ],
)
def test_p2_which_pods_may_leave(fields: dict[str, Any], leaves: bool) -> None:
    """In the 100th second."""
    scene = CycleScene(m.node("n"), m.budget({"app": "kept"}, minAvailable=0), runs("a", **fields))
    assert _may_leave(scene.cycle, scene.task("a-0")) is leaves
    assert _may_move(scene.cycle, scene.gang("a")) is leaves


def test_p2_a_pod_that_has_not_reported_its_start_is_left_alone() -> None:
    scene = CycleScene(m.node("n"), group("a", 1), m.pod("a-0", group="a", nodeName="n"))
    assert not _may_leave(scene.cycle, scene.task("a-0"))
    assert scene.cycle.evictions.due() == 101 * SECOND_NS, "it is looked at again then"


@pytest.mark.parametrize(
    ("objects", "moves"),
    [
        pytest.param([runs("g")], True, id="a gang that runs"),
        pytest.param([group("g", 2), *runs("g")[1:]], False, id="a gang below its minimum"),
        pytest.param([runs("g"), m.pod("g-1", group="g")], False, id="a gang of which a pod waits"),
        pytest.param(
            m.koordinator_gang("g", 1, groups=["default/g", "default/h"], nodeName="n"), False, id="of a group"
        ),
    ],
)
def test_k7_which_gangs_may_be_moved(objects: list[Any], moves: bool) -> None:
    others = m.koordinator_gang("h", 1, groups=GROUP)
    scene = CycleScene(m.node("n"), *objects, others)
    assert _may_move(scene.cycle, scene.gang("g")) is moves
    names = [name_of(gang) for gang in _running(scene.cycle, "default")]
    assert names == (["g"] if moves else [])
    assert _running(scene.cycle, "other") == []


def test_p1_which_gangs_wait_for_room() -> None:
    scene = ordered(
        m.node("n", 2), m.queue("q"), runs("r", 2), waits("a"),
        [group("d", 0), m.pod("d-0", group="d")], m.pod("e", queue="q"),
        *(m.koordinator_gang(name, 1, groups=GROUP) for name in "gh"),
    )  # fmt: skip
    names = {name_of(gang) for gang in _waiting(scene.cycle, "default")}
    assert "a" in names
    assert "d" not in names, "surplus evicts no pod"
    assert not names & {"g", "h"}, "gangs that start together"
    assert {name_of(gang) for gang in _waiting(scene.cycle, "q")} == {"e"}
    gang = scene.gang("e")
    gang.spec = msgspec.structs.replace(gang.spec, never_preempts=True)
    assert _waiting(scene.cycle, "q") == []


# ---- who leaves


@pytest.mark.parametrize(
    ("objects", "evicted"),
    [
        pytest.param([runs("a", 2), waits("b", 2)], ["a-0"], id="one with more left to do"),
        pytest.param([runs("a", 2, annotations=SHORT), waits("b", 2, annotations=LONG)], [], id="not one with less"),
        pytest.param([runs("a", 1), waits("b", 1)], [], id="there is room for both"),
        pytest.param([runs("a", 1), runs("c", 1), waits("b", 1)], ["c-0"], id="the last in order"),
        pytest.param([runs("a", 1), runs("c", 1), waits("b", 1, 2)], ["a-0", "c-0"], id="both"),
        pytest.param([runs("a", 2), waits("b", 3)], [], id="none for a gang that would not fit"),
        pytest.param([runs("a", 2, since_s=100), waits("b", 2)], [], id="not within its first second"),
        pytest.param([[group("a", 1, queue="q"), *runs("a", 2)[1:]], waits("b", 2)], [], id="not of another queue"),
    ],
)
def test_p1_gangs_that_come_too_late_in_the_order_leave(objects: list[Any], evicted: list[str]) -> None:
    scene = ordered(m.node("n", 2), m.queue("q"), *objects)
    preempt_by_order.run(scene.cycle)
    decided = scene.direct.engine.end(scene.cycle)
    assert [one.name for one in decided if isinstance(one, Evict)] == evicted
    made = [one for one in decided if isinstance(one, SetAside) and one.kind is ClaimKind.PREEMPT]
    assert bool(made) is bool(evicted), "the room is claimed before pods leave it"
    assert all(task.node == "n" for task in scene.gang("a").tasks.values()), "else all is as before"


def test_g9_a_queue_is_packed_anew_only_when_gangs_have_come_or_gone() -> None:
    scene = ordered(m.node("n", 2), runs("a", 2, annotations=SHORT), waits("b", 2, annotations=LONG))
    preempt_by_order.run(scene.cycle)
    assert set(scene.cycle.evictions.packed) == {"default"}
    before = dict(scene.cycle.evictions.packed)
    preempt_by_order.run(scene.cycle)
    assert scene.cycle.evictions.packed == before


def test_p3_no_second_plan_while_room_is_being_freed() -> None:
    scene = ordered(m.node("n", 2), runs("a", 1), runs("c", 1), waits("b", 1))
    preempt_by_order.run(scene.cycle)
    scene.cycle.evictions.packed.clear()
    preempt_by_order.run(scene.cycle)
    decided = scene.direct.engine.end(scene.cycle)
    assert len([one for one in decided if isinstance(one, Evict)]) == 1


def test_pods_of_one_class_may_trade_places() -> None:
    scene = CycleScene(m.node("n", 9), m.pod("a", 1), m.pod("b", 1), m.pod("c", 2))
    a, b, c = (scene.task(name) for name in "abc")
    assert _spots([(a, 0), (b, 1)]) == _spots([(a, 1), (b, 0)])
    assert _spots([(a, 0), (c, 1)]) != _spots([(a, 1), (c, 0)])
    assert _spots([(a, 0), (b, 0)]) != _spots([(a, 0)])
