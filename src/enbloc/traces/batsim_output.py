"""Writes a replay as Batsim does, `jobs.csv` and `schedule.json`, so that its community's tools read it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from enbloc.traces.cluster import Shape
from enbloc.traces.measures import BOUND_NS
from enbloc.traces.outcome import Outcome
from enbloc.traces.replay import Replayed
from enbloc.units import SECOND

_COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time",
    "success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
    "stretch", "allocated_resources", "consumed_energy", "metadata",
)  # fmt: skip


def jobs_csv(outcomes: Sequence[Outcome]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for outcome in outcomes:
        if outcome.start_ns is not None and outcome.end_ns is not None:
            writer.writerow(_row(outcome, outcome.start_ns, outcome.end_ns))
    return out.getvalue()


def _row(outcome: Outcome, start_ns: int, end_ns: int) -> Iterator[object]:
    job = outcome.job
    turnaround_ns = end_ns - job.submit_ns
    yield from (job.id, "trace", job.id, job.submit_ns / SECOND, job.units)
    yield job.estimate_ns / SECOND if job.estimate_ns is not None else -1
    yield from (1, "COMPLETED_SUCCESSFULLY", start_ns / SECOND, job.run_ns / SECOND, end_ns / SECOND)
    yield from ((start_ns - job.submit_ns) / SECOND, turnaround_ns / SECOND, turnaround_ns / max(job.run_ns, 1))
    yield from (_intervals(outcome.nodes), -1, "")


def _intervals(numbers: Sequence[int]) -> str:
    """`0-3 7`: the machines of a job."""
    parts: list[str] = []
    first = last = None
    for number in [*numbers, None]:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = number
    return " ".join(parts)


def schedule_json(replayed: Replayed, shape: Shape) -> str:
    done = [outcome for outcome in replayed.outcomes if outcome.end_ns is not None]
    measures = replayed.measures
    slowdowns = [
        ((outcome.end_ns or 0) - outcome.job.submit_ns) / max(outcome.job.run_ns, BOUND_NS) for outcome in done
    ]
    schedule: dict[str, Any] = {
        "scheduler": f"enbloc {replayed.policy}",
        "nb_jobs": len(replayed.outcomes),
        "nb_jobs_finished": len(done),
        "nb_jobs_success": len(done),
        "nb_jobs_killed": 0,
        "nb_jobs_rejected": 0,
        "nb_computing_machines": shape.nodes,
        "makespan": measures["makespan_s"],
        "mean_waiting_time": measures["mean_wait_s"],
        "max_waiting_time": max((outcome.wait_ns or 0 for outcome in done), default=0) / SECOND,
        "mean_turnaround_time": measures["mean_jct_s"],
        "mean_slowdown": sum(slowdowns) / len(slowdowns) if slowdowns else 0.0,
        "max_slowdown": max(slowdowns, default=0.0),
        "success_rate": len(done) / len(replayed.outcomes) if replayed.outcomes else 0.0,
    }
    return json.dumps(schedule, indent=2) + "\n"
