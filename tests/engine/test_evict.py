"""Evictions take several writes, and their echoes come one by one (P3)."""

from __future__ import annotations

import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Bind, Evict, SetAside
from enbloc.engine.eviction.immunity import Immunity
from enbloc.engine.state.budgets import _number
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.hints import COOLDOWN, PREEMPTABLE
from support import manifests as m
from support.direct_scheduler import DirectScheduler


def bound(name: str) -> m.Obj:
    return m.pod(name, "1", nodeName="n", priority=10)


def test_p3_a_pod_with_an_eviction_condition_that_is_not_terminating_yet_is_releasing() -> None:
    """The first echo of an eviction is a pod with one more condition: no other pod is evicted because of it."""
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="2"))
    for name in ("a", "b"):
        direct.put(bound(name))
    direct.put(m.pod("vip", "1", priority=1000))
    (evicted,) = [one for one in direct.engine.run(1) if isinstance(one, Evict)]
    marked = bound(evicted.name)
    marked["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    direct.put(marked)
    assert direct.engine.state.tasks[evicted.uid].status is TaskStatus.RELEASING
    assert not [one for one in direct.engine.run(2) if isinstance(one, Evict | Bind)]
    direct.engine.state.validate()
    direct.delete("Pod", evicted.name)
    (placed,) = [one for one in direct.engine.run(3) if isinstance(one, Bind)]
    assert [(one.name, one.node) for one in placed.placements] == [("vip", "n")]


def test_p3_whose_eviction_was_refused_stays() -> None:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="1"))
    direct.put(bound("a"))
    direct.put(m.pod("vip", "1", priority=1000))
    (evicted,) = [one for one in direct.engine.run(1) if isinstance(one, Evict)]
    direct.engine.report(evicted, evicted.uid)
    assert direct.engine.state.tasks[evicted.uid].status is TaskStatus.BOUND
    assert not [one for one in direct.engine.run(2) if isinstance(one, Evict | Bind)]
    direct.engine.state.validate()


def test_p3_the_claim_of_freed_room_ends_in_the_cycle_that_binds_its_pods() -> None:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="1"))
    direct.put(bound("a"))
    direct.put(m.pod("vip", "1", priority=1000))
    direct.engine.run(1)
    direct.delete("Pod", "a")
    decided = direct.engine.run(2)
    assert [type(one) for one in decided if isinstance(one, Bind | SetAside)] == [Bind, SetAside]
    (ended,) = [one for one in decided if isinstance(one, SetAside)]
    assert (ended.kind, ended.record, ended.reason) == (ClaimKind.PREEMPT, None, "PreemptionSucceeded")


@pytest.mark.parametrize(
    ("cpu", "message"),
    [(1, "1 pod of default/b is evicted for it"), (2, "2 pods of default/a, default/b are evicted for it")],
)
def test_p3_a_claim_says_which_pods_are_evicted_for_it(cpu: int, message: str) -> None:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="2"))
    for created_s, name in enumerate(("a", "b")):
        direct.put(bound(name), created_s)
    direct.put(m.pod("vip", cpu, priority=1000))
    decided = [one for one in direct.engine.run(1) if isinstance(one, SetAside)]
    (made,) = [one for one in decided if one.kind is ClaimKind.PREEMPT]
    assert (made.kind, made.message) == (ClaimKind.PREEMPT, message)


def test_g9_force_has_every_gang_read_again() -> None:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="1"))
    direct.put(bound("a"))
    direct.engine.run(1)
    assert not direct.engine.state.dirty
    direct.engine.force()
    assert [gang.spec.title for gang in direct.engine.state.dirty.values()] == ["default/a"]


def test_p2_what_makes_a_pod_evictable_later() -> None:
    """A cooldown does; a pod without one, or that is never evicted, is judged once."""
    direct = DirectScheduler(parse(None))
    hints = {"cools": {COOLDOWN: "1h"}, "plain": {}, "protected": {PREEMPTABLE: "false"}}
    for name, given in hints.items():
        direct.put(m.pod(name, annotations=given))
    immunity = Immunity(direct.engine.state, None)
    varies = {gang.spec.title: immunity.varies(gang) for gang in direct.engine.state.gangs.values()}
    assert varies == {"default/cools": True, "default/plain": False, "default/protected": False}


@pytest.mark.parametrize(
    ("value", "of", "number"),
    [(3, 10, 3), ("3", 10, 3), ("50%", 202, 101), ("51%", 4, 3), ("0%", 7, 0), ("x%", 7, 7), ("-1", 7, 7)],
)
def test_p2_a_budget_in_percent_is_rounded_up(value: int | str, of: int, number: int) -> None:
    """What cannot be read protects all pods."""
    assert _number(value, of) == number
