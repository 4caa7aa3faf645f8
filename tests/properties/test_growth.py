"""Twice the backlog costs about twice the work: counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine import attempt
from enbloc.engine.candidates import Candidates
from enbloc.engine.transaction import Transaction
from properties import making
from properties.world import replay


def work(monkeypatch: pytest.MonkeyPatch, jobs: int, shapes: int) -> Counter[str]:
    """A backlog of jobs that come at once, in one queue, and run two at a time; how often what was done."""
    counts: Counter[str] = Counter()

    def counted(owner: Any, name: str, what: str) -> None:
        plain = getattr(owner, name)

        def wrapper(*args: Any) -> Any:
            counts[what] += 1
            return plain(*args)

        monkeypatch.setattr(owner, name, wrapper)

    counted(attempt.Placer, "place", "tries")
    counted(Transaction, "__init__", "transactions")
    counted(Candidates, "keys", "looks")
    objects = [making.node(f"n{i}", "4") for i in range(2)]
    for number in range(jobs):
        spec = making.pod_spec({"cpu": "2", "memory": f"{1 + number % shapes}Mi"})
        run_time = {"sim.enbloc.dev/run-time": "10s"}
        objects.append(making.job(f"j{number}", [making.role("w", 2, spec, annotations=run_time)]))
    result = replay(objects, parse(None), 10**15)
    monkeypatch.undo()
    assert result.summary["pods"]["succeeded"] == 2 * jobs, result.story
    return counts


@pytest.mark.parametrize("shapes", [1, 3])
def test_g9_work_grows_with_the_backlog_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch, shapes: int) -> None:
    few, many = work(monkeypatch, 40, shapes), work(monkeypatch, 80, shapes)
    for what in few:
        assert many[what] <= 2.2 * few[what], f"{what}: {few[what]} for 40 jobs, {many[what]} for 80"
        assert many[what] <= 12 * 160, f"{what}: {many[what]} for 160 pods"
