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


def _of_tainted_nodes(*tolerations: dict[str, str]) -> list[str]:
    gpu = m.node("gpu-1", cpu=8, taints=[{"key": "gpu", "value": "true", "effect": "NoSchedule"}])
    wide = m.job("wide", m.role("w", 2, cpu=5, tolerations=list(tolerations)))
    [entry] = advised([m.node("n-1", cpu=4), m.node("n-2", cpu=4), gpu, wide]).data["pending"]
    return [remedy["change"] for remedy in entry["remedies"]]


def test_added_nodes_are_said_to_lack_taints_that_the_pods_do_not_tolerate() -> None:
    """A node that is like the other one in its taint, too, would not help."""
    changes = _of_tainted_nodes()
    added = [change for change in changes if " like gpu-1 " in change]
    assert added == ["add 2 nodes like gpu-1 with cpu 8, memory 16Gi, without taint gpu=true:NoSchedule"]
    assert "request at most 4 cpu per pod instead of 5" in changes


def test_added_nodes_keep_taints_that_the_pods_tolerate() -> None:
    tolerated = {"key": "gpu", "operator": "Exists"}
    assert "add 1 node like gpu-1 with cpu 8, memory 16Gi" in _of_tainted_nodes(tolerated)
