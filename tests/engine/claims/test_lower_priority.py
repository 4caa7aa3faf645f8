"""R5: which claims could be released for a gang of higher priority, and in which order."""

from __future__ import annotations

import pytest

from enbloc.engine.claims.lower_priority import LowerPriorityClaim, lower_priority_claims
from enbloc.engine.diagnosis.titles import Titles
from enbloc.engine.state.transaction import Transaction
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import Scene, group, pods_of
from support import manifests as m


def scene_of(**gangs: int) -> Scene:
    """Gangs of one pod of 1 cpu each, by priority, and a node of 8 cpu."""
    made = [[group(name, 1), *pods_of(name, 1, priority=value)] for name, value in gangs.items()]
    return Scene(m.node("n", 8), *made)


def found(scene: Scene, name: str) -> list[LowerPriorityClaim]:
    parts = scene.direct.engine.parts
    return lower_priority_claims(scene.claims, scene.groups, parts.order, parts.evictions, [scene.gang(name)])


def names(claims: list[LowerPriorityClaim]) -> list[str]:
    return [one.gang.key.name for one in claims]


def test_r5_only_claims_of_strictly_lower_priority_lowest_first() -> None:
    scene = scene_of(a=5, b=10, c=7, d=10, e=20)
    for name in "abcde":
        scene.make(ClaimKind.RESERVE, name, **{f"{name}_0": "n"})
    assert names(found(scene, "d")) == ["a", "c"]
    assert names(found(scene, "a")) == []


def test_r5_among_equals_the_last_in_order_first() -> None:
    scene = scene_of(old=5, young=5, top=9)
    scene.make(ClaimKind.PREEMPT, "old", old_0="n")
    scene.make(ClaimKind.PREEMPT, "young", young_0="n")
    assert names(found(scene, "top")) == ["young", "old"]


def test_p3_room_reclaimed_for_another_queue_is_not_released() -> None:
    scene = Scene(
        m.queue("q"), m.node("n"), group("a", 1, queue="q"), pods_of("a", 1), group("b", 1), pods_of("b", 1, priority=9)
    )
    scene.make(ClaimKind.PREEMPT, "a", a_0="n")
    assert names(found(scene, "b")) == []
    scene.claims.end(scene.gang("a"), ClaimKind.PREEMPT, "Ended", "")
    scene.make(ClaimKind.RESERVE, "a", a_0="n")
    assert names(found(scene, "b")) == ["a"]


def test_r5_lift_is_undone_with_its_transaction() -> None:
    scene = scene_of(a=5, b=9)
    scene.make(ClaimKind.PREEMPT, "a", a_0="n")
    (lower,) = found(scene, "b")
    assert (lower.keys, lower.nodes) == (frozenset({scene.gang("a").key}), frozenset({"n"}))
    transaction = Transaction(scene.state)
    lower.lift(scene.state, transaction)
    assert scene.free_cpu("n") == 8
    transaction.rollback()
    assert scene.free_cpu("n") == 7
    lower.release(scene.claims, Titles(isolated=False), scene.gang("b"))
    assert scene.free_cpu("n") == 8
    assert scene.decided[-1].reason == "PreemptionReleased"


@pytest.mark.parametrize(("other", "released"), [(1, True), (9, False)], ids=["lower too", "as high"])
def test_r5_a_hold_is_released_if_all_gangs_of_its_group_are_of_lower_priority(other: int, released: bool) -> None:
    """Only `g` holds a pod; `h` starts with it."""
    together = ["default/g", "default/h"]
    priorities = {"g": 1, "h": other}
    gangs = [
        one
        for name, value in priorities.items()
        for one in m.koordinator_gang(name, 1, mode=m.NON_STRICT, groups=together, priority=value)
    ]
    scene = Scene(m.node("n"), gangs, group("top", 1), pods_of("top", 1, priority=9))
    held = scene.claim(ClaimKind.HOLD, "g", until_s=60, g_0="n")
    held.held = True
    assert scene.claims.extend(held, "Held", "")
    lower = found(scene, "top")
    assert [one.kind for one in lower] == ([ClaimKind.HOLD] if released else [])
    assert all(one.keys == {scene.gang(name).key for name in "gh"} for one in lower)
