"""The page that `python benchmarks/peers` writes: what a scheduler did not do is not shown as not measured."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


def run(**figures: Any) -> dict[str, Any]:
    found = dict.fromkeys(("first_bind_s", "all_bound_s", "gang_p50_s", "gang_p99_s", "bound_per_s", "bound"), 0)
    load = {"nodes": 10, "pods": 20, "gang_size": 5, "arrive": 0.0, "load_average": 1.0, "bare_bind_per_s": 100}
    named = {"scheduler": "other", "version": "1", "dialect": "native", "requests": {}, "share_of_limit": 0.0}
    return {**found, **load, **named, "cpu_s": 2.0, "peak_memory_mb": 0, **figures}


def cells(monkeypatch: pytest.MonkeyPatch, *runs: dict[str, Any]) -> list[str]:
    monkeypatch.syspath_prepend(str(PEERS))
    from performance import markdown  # type: ignore[import-not-found]

    try:
        page = markdown(runs, statistics.median)
    finally:
        for name in ("performance", "schedulers"):
            sys.modules.pop(name, None)
    (line,) = [line for line in page.splitlines() if line.startswith("| other, native (")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_a_scheduler_that_bound_nothing_is_shown_with_its_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    none = ["none bound"] * 4
    assert cells(monkeypatch, run()) == ["0", "0.00", *none, "2.0", "not measured"]


def test_times_are_those_of_the_runs_that_bound_something(monkeypatch: pytest.MonkeyPatch) -> None:
    half = run(bound=10, bound_per_s=50, share_of_limit=0.5, first_bind_s=1.0, all_bound_s=2.0, peak_memory_mb=80)
    assert cells(monkeypatch, run(), half)[:4] == ["25 (0–50)", "0.25 (0.00–0.50)", "1.0", "2.0"]
