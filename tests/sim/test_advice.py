"""Remedies are tried for the first gangs that wait; `null` says that nothing was tried."""

from __future__ import annotations

import pytest

from enbloc.advice import trials
from support import manifests as m
from support.advised import advised


def waiting(count: int) -> list[dict[str, object]]:
    return [m.node("n", cpu=2), *(m.one_pod_job(f"j{number:02d}", cpu=3) for number in range(count))]


def test_the_first_twenty_gangs_get_remedies() -> None:
    pending = advised(waiting(22)).data["pending"]
    assert [entry["remedies"] is None for entry in pending] == [False] * 20 + [True] * 2
    assert all(entry["remedies"] for entry in pending[:20])
    assert all(entry["expected_start"] is None and entry["assumption"] for entry in pending[:20])


def test_a_gang_for_which_no_trial_is_left_has_no_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cluster gets few trials: an empty list would say that they had failed."""
    monkeypatch.setattr(trials, "WORK", 0)
    monkeypatch.setattr(trials, "LEAST_TRIALS", 6)
    pending = advised(waiting(5)).data["pending"]
    assert pending[0]["remedies"]
    assert pending[-1]["remedies"] is None
