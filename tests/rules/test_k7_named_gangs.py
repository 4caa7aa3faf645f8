"""K7: a gang that names one outside its group waits until that one is satisfied, and never has it evicted."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.simulation import simulate

NAMES = ["default/x", "default/y"]
"""What x names; y names none."""
CLASSES = [m.priority_class("high", 100)]
PREEMPT = {"actions": "enqueue, allocate, backfill, preempt"}


def raised(at: str) -> m.Obj:
    step = m.patch(at, "PodGroup", "y", spec={"minMember": 2})
    return {**step, "target": {**step["target"], "apiVersion": m.SIGS}}


@pytest.mark.parametrize("restarts", [[], [m.restart("20s")]], ids=["running", "restarted"])
def test_k7_g7_a_raised_minimum_of_a_named_gang_makes_the_one_that_names_it_wait(restarts: list[m.Obj]) -> None:
    answer = simulate(
        m.node("n", 4),
        m.koordinator_gang("x", 1, groups=NAMES, wait="30s", at="15s"),
        m.sigs_podgroup("y", 1),
        m.labelled_pods("y", 1),
        raised("10s"),
        *restarts,
        until="100s",
    )
    assert answer.times("x-") == []
    assert answer.at("x-0", "timeout") == 45.0


def test_k7_p1_a_gang_does_not_have_one_evicted_that_it_names() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.koordinator_gang("y", 3),
        m.koordinator_gang("x", 2, groups=NAMES, priority="high", at="10s"),
        config=PREEMPT,
        until="60s",
    )
    assert answer.evicted() == []
    assert answer.times("x-") == []


def test_k7_p1_surplus_of_a_gang_that_it_names_may_be_evicted() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.koordinator_gang("y", 3, 2),
        m.koordinator_gang("x", 2, groups=NAMES, priority="high", at="10s"),
        config=PREEMPT,
        until="60s",
    )
    assert answer.evicted() == [(10.0, "y-2")]
    assert answer.times("x-") == [10.0, 10.0]
