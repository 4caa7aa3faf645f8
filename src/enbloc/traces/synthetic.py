"""Synthetic traces from a seed: for tests and benchmarks where no real trace is at hand.

Jobs arrive at random with the rhythm of working days; run times are log-normal, sizes mostly powers of two, users few
and unequal; limits are rounded up from the run time, as users do. The mean load is a share of the cluster, so that
queues form by day and empty by night. The same arguments give the same trace on every machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Final

import msgspec

from enbloc.traces.trace import GPU, Trace, TraceJob
from enbloc.units import SECOND

DAY_S: Final = 86_400
MOST_JOBS: Final = 10_000_000
PREFIX: Final = "synthetic:"
_SIZES: Final = ((1, 48), (2, 14), (4, 12), (8, 14), (16, 6), (32, 4), (64, 2))
"""GPUs of a job, and how frequent they are."""
_USERS: Final = 40
_LIMITS_S: Final = (900, 3_600, 4 * 3_600, 12 * 3_600, DAY_S, 3 * DAY_S, 7 * DAY_S)
_MEDIAN_S: Final = 1_800.0
_SPREAD: Final = 1.8
_LONGEST_S: Final = 5 * DAY_S


def synthetic_trace(jobs: int, seed: int = 0, gpus: int = 512, load: float = 0.85) -> Trace:
    """`load`: the mean share of `gpus` that is in use if no job waits."""
    dice = random.Random(f"enbloc {jobs} {seed} {gpus} {load}")
    drawn = [_draw(dice, gpus) for _ in range(jobs)]
    work_s = sum(size * run_s for size, run_s in drawn)
    rate = jobs * gpus * load / work_s if work_s else 1.0
    found = [
        TraceJob(
            id=str(number + 1),
            submit_ns=round(at_s * SECOND),
            run_ns=run_s * SECOND,
            units=size,
            estimate_ns=_limit(dice, run_s) * SECOND,
            user=f"user-{min(int(dice.expovariate(0.12)), _USERS - 1):02d}",
            queue="default",
        )
        for number, ((size, run_s), at_s) in enumerate(zip(drawn, _arrivals(dice, rate), strict=False))
    ]
    first_ns = found[0].submit_ns if found else 0
    return Trace([_shifted(job, first_ns) for job in found], GPU, gpus)


def parse_name(text: str) -> tuple[int, int]:
    """`synthetic:JOBS[:SEED]` as a number of jobs and a seed. Raises `ValueError`."""
    parts = text.removeprefix(PREFIX).split(":")
    if len(parts) > 2 or not all(part.isdecimal() for part in parts) or not 0 < int(parts[0]) <= MOST_JOBS:
        raise ValueError(f"{text!r:.60} is not {PREFIX}JOBS or {PREFIX}JOBS:SEED")
    return int(parts[0]), int(parts[1]) if len(parts) == 2 else 0


def _draw(dice: random.Random, gpus: int) -> tuple[int, int]:
    sizes, weights = zip(*_SIZES, strict=True)
    (size,) = dice.choices(sizes, weights)
    run_s = round(min(max(dice.lognormvariate(math.log(_MEDIAN_S), _SPREAD), 5.0), _LONGEST_S))
    return min(size, gpus), run_s


def _arrivals(dice: random.Random, rate: float) -> Iterator[float]:
    """A Poisson process whose rate is three times as high by day as by night."""
    at_s = 0.0
    while True:
        at_s += dice.expovariate(1.5 * rate)
        by_day = 0.5 + 0.5 * math.sin(2 * math.pi * at_s / DAY_S)
        if dice.random() < (0.5 + by_day) / 1.5:
            yield at_s


def _limit(dice: random.Random, run_s: int) -> int:
    """What a user asks for: the next usual limit above the run time, or a larger one."""
    enough = [limit for limit in _LIMITS_S if limit >= run_s] or [_LIMITS_S[-1]]
    return enough[min(int(dice.expovariate(1.2)), len(enough) - 1)]


def _shifted(job: TraceJob, first_ns: int) -> TraceJob:
    return msgspec.structs.replace(job, submit_ns=job.submit_ns - first_ns)
