"""What is measured of a replay: waits, slowdowns, completion times, makespan, utilisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from enbloc.traces.outcome import Outcome
from enbloc.units import SECOND

BOUND_NS: Final = 10 * SECOND
"""Bounded slowdown: run times count as at least 10 s, so that a short wait of a tiny job does not dominate."""
_QUANTILES: Final = ((50, "p50_wait_s"), (90, "p90_wait_s"), (99, "p99_wait_s"))


def measure(outcomes: Sequence[Outcome], units: int) -> dict[str, Any]:
    """`units`: the processors or GPUs of the cluster. Jobs that never ended are counted, and left out of the means."""
    done = [outcome for outcome in outcomes if outcome.end_ns is not None]
    waits = sorted(outcome.wait_ns or 0 for outcome in done)
    makespan_ns = max((outcome.end_ns or 0 for outcome in done), default=0)
    used = sum(outcome.job.run_ns * outcome.job.units for outcome in done)
    return {
        "jobs": len(outcomes),
        "unfinished": len(outcomes) - len(done),
        "mean_wait_s": _mean(waits) / SECOND,
        **{name: _quantile(waits, percent) / SECOND for percent, name in _QUANTILES},
        "mean_bounded_slowdown": _mean([slowdown(outcome) for outcome in done]),
        "mean_jct_s": _mean([(outcome.end_ns or 0) - outcome.job.submit_ns for outcome in done]) / SECOND,
        "makespan_s": makespan_ns / SECOND,
        "utilisation": used / (units * makespan_ns) if makespan_ns and units else 0.0,
        "evictions": sum(outcome.evicted for outcome in outcomes),
    }


def slowdown(outcome: Outcome) -> float:
    """The bounded slowdown of a job that ended."""
    turnaround_ns = (outcome.end_ns or 0) - outcome.job.submit_ns
    return max(1.0, turnaround_ns / max(outcome.job.run_ns, BOUND_NS))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _quantile(values: Sequence[int], percent: int) -> int:
    """The smallest value that is not below `percent` of all."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)] if values else 0
