"""One replay of a trace under one policy, and several of them in parallel processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from typing import Any, Literal, NamedTuple

import msgspec

from enbloc import garbage_collector
from enbloc.config import Config
from enbloc.traces import stack
from enbloc.traces.cluster import Shape
from enbloc.traces.fast import FastReplay
from enbloc.traces.measures import measure
from enbloc.traces.outcome import Outcome, Progress
from enbloc.traces.trace import Trace, TraceJob

_LOOK_EVERY_S = 0.2

Estimates = Literal["users", "exact", "none"]


class Settings(NamedTuple):
    shape: Shape
    fast: bool = False
    estimates: Estimates = "users"
    """What the scheduler knows of run times: the users' limits, never below the run time since the job did run that
    long; the run times themselves; nothing."""
    duration_factor: float = 1.0
    keeps_progress: bool = True
    """Whether a job that is evicted goes on where it was, as from a checkpoint; else it starts over."""


class Replayed(NamedTuple):
    policy: str
    outcomes: list[Outcome]
    """By submission."""
    measures: dict[str, Any]


def prepare(trace: Trace, settings: Settings) -> tuple[list[TraceJob], int]:
    """The jobs to replay; and how many were left out because they are larger than the cluster."""
    jobs = [_prepared(job, settings) for job in trace.jobs if settings.shape.fits(job)]
    return jobs, len(trace.jobs) - len(jobs)


def _prepared(job: TraceJob, settings: Settings) -> TraceJob:
    run_ns = max(1, round(job.run_ns * settings.duration_factor)) if settings.duration_factor != 1 else job.run_ns
    estimate_ns: int | None = None
    if settings.estimates == "exact":
        estimate_ns = run_ns
    elif settings.estimates == "users" and job.estimate_ns is not None:
        estimate_ns = max(job.estimate_ns, run_ns)
    return msgspec.structs.replace(job, run_ns=run_ns, estimate_ns=estimate_ns)


def replay(
    policy: str, config: Config, settings: Settings, jobs: Sequence[TraceJob], progress: Progress | None = None
) -> Replayed:
    """Replays jobs of `prepare` under one policy."""
    if settings.fast:
        outcomes = FastReplay(settings.shape, config, settings.keeps_progress).run(jobs, progress)
    else:
        outcomes = stack.run(settings.shape, config, jobs, progress, settings.keeps_progress)
    order = {id(job): number for number, job in enumerate(jobs)}
    outcomes.sort(key=lambda outcome: order[id(outcome.job)])
    return Replayed(policy, outcomes, measure(outcomes, settings.shape.units))


def replay_all(
    policies: Sequence[tuple[str, Config]],
    settings: Settings,
    jobs: Sequence[TraceJob],
    progress: Callable[[int, int], None] | None = None,
) -> list[Replayed]:
    """Replays under each policy; several run in parallel processes, as many as there are cores. Plugins that are Python
    code of the caller stay in this process: another could not import them."""
    if len(policies) == 1 or any(config.plugins_in_code for _, config in policies):
        return [replay(name, config, settings, jobs, progress) for name, config in policies]
    workers = min(len(policies), os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    counts = context.Array("q", len(policies), lock=False)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(counts,)) as pool:
        futures = [
            pool.submit(_replay_counted, number, name, config, settings, jobs)
            for number, (name, config) in enumerate(policies)
        ]
        left = set(futures)
        while left:
            _, left = wait(left, _LOOK_EVERY_S, FIRST_COMPLETED)
            if progress is not None:
                progress(sum(counts), len(jobs) * len(policies))
        return [future.result() for future in futures]


_counts: Any = None
"""In a worker: how many jobs have ended, by policy; the parent reads it."""


def _begin(counts: Any) -> None:
    global _counts
    _counts = counts
    garbage_collector.relax(garbage_collector.BATCH)


def _replay_counted(number: int, name: str, config: Config, settings: Settings, jobs: Sequence[TraceJob]) -> Replayed:
    def count(done: int, total: int) -> None:
        _counts[number] = done

    replayed = replay(name, config, settings, jobs, count)
    _counts[number] = len(jobs)
    return replayed
