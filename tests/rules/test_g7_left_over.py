"""G7 with G8 and G3: members that are left over once their gang is satisfied, and younger pods of its priority."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, simulate

ORDINARY: dict[str, list[m.Obj]] = {
    "koordinator-annotations": m.koordinator_gang("g", 4, 2),
    "koordinator-podgroup": [m.sigs_podgroup("g", 2), *m.labelled_pods("g", 4)],
    "scheduler-plugins": [m.sigs_podgroup("g", 2, api=m.PLUGINS), *m.labelled_pods("g", 4, m.PLUGINS_LABEL)],
    "kubernetes": [m.native_podgroup("g", {"gang": {"minCount": 2}}), *m.native_pods("g", 4)],
}
CLASSES = [m.priority_class("high", 1000)]


def contended(gang: list[m.Obj], *more: m.Obj) -> Answer:
    """Two members run at once; the other two wait. One unit becomes free at 20 s, another one at 30 s."""
    running = [m.pod("first", 1, run_time="20s"), m.pod("second", 1, run_time="30s")]
    return simulate(CLASSES, m.node("n", 4), running, gang, list(more), config=NO_EVICTIONS)


@pytest.mark.parametrize("dialect", ORDINARY)
def test_g7_a_left_over_member_comes_before_younger_pods_of_its_priority(dialect: str) -> None:
    answer = contended(ORDINARY[dialect], m.pod("young", 1, at="10s"), m.pod("gang-less", 1, at="11s"))
    assert sorted(answer.times("g-")) == [0.0, 0.0, 20.0, 30.0]
    assert answer.at("young") is None


@pytest.mark.parametrize("dialect", ORDINARY)
def test_g7_a_restart_does_not_change_its_place(dialect: str) -> None:
    answer = contended(ORDINARY[dialect], m.pod("young", 1, at="10s"), m.restart("15s"))
    assert sorted(answer.times("g-")) == [0.0, 0.0, 20.0, 30.0]


def test_g8_it_comes_after_pods_of_higher_priority() -> None:
    answer = contended(ORDINARY["scheduler-plugins"], m.pod("vip", 1, at="10s", priority="high"))
    assert answer.at("vip") == 20.0
    assert sorted(answer.times("g-")) == [0.0, 0.0, 30.0]


def test_g3_surplus_comes_after_the_minima_in_the_cycle_that_starts_its_gang() -> None:
    """The minima of a gang of the same age are tried first."""
    gangs = [*m.koordinator_gang("a", 3, 2), *m.koordinator_gang("b", 2, 2)]
    answer = simulate(m.node("n", 4), gangs)
    assert answer.times("b-") == [0.0] * 2
    assert len(answer.bound("a-")) == 2


def test_g3_surplus_of_a_volcano_job_comes_after_the_minima_of_younger_jobs() -> None:
    job = m.job("g", m.role("w", 4, 2))
    answer = contended([job], m.job("young", m.role("w", 1), at="10s"))
    assert answer.at("young-w-0") == 20.0
    assert sorted(answer.times("g-")) == [0.0, 0.0, 30.0]


def test_p1_a_left_over_member_evicts_no_pod() -> None:
    gang = m.koordinator_gang("g", 4, 2, priority="high")
    answer = simulate(CLASSES, m.node("n", 4), m.pods(2, "low-", 1), gang)
    assert not answer.evicted()
