"""Remedies are tried for the first gangs that wait; `null` says that nothing was tried."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from enbloc.advice import trials
from enbloc.advice.change import StepDoc
from support import manifests as m
from support.advised import advised


def waiting(count: int) -> list[dict[str, object]]:
    return [m.node("n", cpu=2), *(m.one_pod_job(f"j{number:02d}", cpu=3) for number in range(count))]


def test_the_first_twenty_gangs_get_remedies() -> None:
    pending = advised(waiting(22)).data["pending"]
    assert [entry["remedies"] is None for entry in pending] == [False] * 20 + [True] * 2
    assert all(entry["remedies"] for entry in pending[:20])
    assert all(entry["expected_start"] is None and entry["assumption"] for entry in pending[:20])


def test_what_the_trials_for_a_gang_may_cost_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is each gang's own: what one uses up is not missing to the next."""
    tried: list[str] = []
    start_after = trials.Trials.start_after

    def counting(self: trials.Trials, title: str, steps: Iterable[StepDoc], before_ns: int | None) -> int | None:
        tried.append(title)
        return start_after(self, title, steps, before_ns)

    monkeypatch.setattr(trials.Trials, "start_after", counting)
    monkeypatch.setattr(trials, "WORK", 1)
    pending = advised(waiting(3)).data["pending"]
    assert {title: tried.count(title) for title in tried} == {f"default/j{number:02d}": 1 for number in range(3)}
    assert all(len(entry["remedies"]) <= 1 for entry in pending)
