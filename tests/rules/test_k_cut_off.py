"""Groups whose start was cut off half-way are completed, or undone, as a whole (K7, K10, G11)."""

from __future__ import annotations

import pytest

from rules.test_g11_cut_off import COMMITTED, Wire, evicted, foreign, marks, once_at
from support import manifests as m
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


def pair(**more: str) -> list[m.Obj]:
    return [*m.koordinator_gang("a", 2, groups=GROUP, **more), *m.koordinator_gang("b", 2, groups=GROUP, **more)]


@pytest.mark.parametrize("killed_at", range(4))
@pytest.mark.parametrize("mode", ["Strict", m.NON_STRICT])
def test_g11_a_group_killed_at_any_binding_is_completed(killed_at: int, mode: str) -> None:
    wire = Wire(kill=once_at(killed_at))
    answer = simulate(m.node("n", 4), pair(mode=mode), m.pod("z", 1, at="1s"), plane=wire.connect)
    assert wire.kills == 1
    assert sorted(answer.order()) == ["a-0", "a-1", "b-0", "b-1"]
    assert set(answer.times()) == {0.0}
    assert not answer.lines("evicted")


@pytest.mark.parametrize("killed_at", range(1, 4))
def test_g11_a_group_that_cannot_be_completed_is_evicted_whole(killed_at: int) -> None:
    """Also if one of its gangs was bound to the last pod."""
    wire = Wire(kill=once_at(killed_at), aftermath=(foreign(4 - killed_at),))
    answer = simulate(m.node("n", 4), pair(), plane=wire.connect)
    assert evicted(answer) == [(name, 60.0) for name in ("a-0", "a-1", "b-0")[:killed_at]]


def test_g11_one_mark_commits_a_group_and_every_gang_of_it_inherits_one() -> None:
    wire = Wire()
    answer = simulate(m.node("n", 4), pair(), m.restart("5s"), m.restart("6s"), plane=wire.connect)
    assert [COMMITTED in bind.annotations for bind in wire.sent] == [False, False, False, True]
    assert {name[0] for name in marks(answer)} == {"a", "b"}
    assert not answer.lines("evicted")


@pytest.mark.parametrize("refused", range(4))
def test_k10_a_binding_of_a_group_that_fails_is_tried_again(refused: int) -> None:
    wire = Wire(refuse=once_at(refused))
    answer = simulate(m.node("n", 4), pair(), plane=wire.connect)
    assert len(answer.bound()) == len(wire.taken) == 4
    assert [COMMITTED in bind.annotations for bind in wire.taken] == [False, False, False, True]
