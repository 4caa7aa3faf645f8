"""The JSON answer of a replay: the trace, the cluster, each policy's measures and starts, and what changed."""

from __future__ import annotations

from typing import Any, Final

from enbloc.traces.cluster import Shape
from enbloc.traces.comparison import compare
from enbloc.traces.outcome import Outcome
from enbloc.traces.replay import Replayed
from enbloc.traces.trace import Trace
from enbloc.units import SECOND

_SHOWN_FAULTS: Final = 20


def answer_of(trace: Trace, shape: Shape, too_large: int, replayed: list[Replayed]) -> dict[str, Any]:
    """What `enbloc replay -o json` prints. Each policy is compared with the first."""
    skipped = dict(trace.skipped)
    if too_large:
        skipped["larger than the cluster"] = too_large
    return {
        "trace": {
            "jobs": len(replayed[0].outcomes),
            "skipped": skipped,
            "bad_lines": len(trace.faults),
            "faults": [{"line": fault.line, "message": fault.message} for fault in trace.faults[:_SHOWN_FAULTS]],
        },
        "cluster": {"nodes": shape.nodes, "resource": shape.resource, "per_node": shape.per_node},
        "policies": [
            {"policy": one.policy, **one.measures, "starts": [_start(outcome) for outcome in one.outcomes]}
            for one in replayed
        ],
        "comparison": [compare(replayed[0], other) for other in replayed[1:]],
    }


def _start(outcome: Outcome) -> dict[str, Any]:
    return {
        "job": outcome.job.id,
        "submit": outcome.job.submit_ns / SECOND,
        "start": outcome.start_ns / SECOND if outcome.start_ns is not None else None,
        "end": outcome.end_ns / SECOND if outcome.end_ns is not None else None,
    }
