"""The words for people: what matters first, bounded, on any width."""

from __future__ import annotations

import io
from typing import Any

from enbloc.scenario.timeline import Line
from enbloc.sim.result import Result
from enbloc.sim.statistics import GangRecord
from enbloc.sim.text import print_result
from enbloc.units import SECOND


def gang(name: str, *, started: int, ended: int, bound: int, succeeded: int = 0, nodes: int = 1) -> GangRecord:
    record = GangRecord(name, 0, started * SECOND)
    record.ended_ns = ended * SECOND
    record.bound, record.succeeded, record.running = bound, succeeded, bound - succeeded
    record.nodes = {f"n{i}" for i in range(1, nodes + 1)}
    return record


def printed(**fields: Any) -> str:
    summary = {
        "gangs": {"pending": 0, "started": 0},
        "makespan": 95.0,
        "pods": {"created": 5, "bound": 4, "succeeded": 3, "failed": 0, "evicted": 0, "deleted": 0},
        "rejected": 0,
        "utilisation": {"cpu": 0.754, "memory": 0.2},
        "waiting": {"gangs": {"min": 0.0, "median": 0.0, "p95": 30.0, "max": 30.5}, "pods": {}},
        "warnings": 0,
    }
    result: dict[str, Any] = {"end": 95.0, "ended": "idle", "timeline": [], "objects": [], "pending": []}
    out = io.StringIO()
    print_result(Result(**{**result, "summary": {**summary, **fields.pop("summary", {})}, **fields}), out)
    return out.getvalue()


def test_the_first_lines_say_how_it_went() -> None:
    assert printed().splitlines()[:4] == [
        "Simulation finished at 1m35s.",
        "Pods: 5 created, 4 bound, 3 succeeded.",
        "Wait: median 0s, p95 30s, max 30.5s.",
        "Utilisation: cpu 75%, memory 20%.",
    ]
    assert printed(ended="cut-off").startswith("Simulation cut off at 1m35s.")
    assert printed(ended="until").startswith("Simulation stopped by --until; last change at 1m35s.")


def test_gangs_are_a_table() -> None:
    gangs = [
        gang("default/a", started=0, ended=30, bound=4, succeeded=4, nodes=2),
        gang("default/b", started=30, ended=-1, bound=12, succeeded=2, nodes=12),
    ]
    lines = [line.rstrip() for line in printed(gangs=gangs).splitlines()]
    assert "default/a  0s       0s       30s         4  4 succeeded              n1, n2" in lines
    assert "default/b  0s       30s      running    12  2 succeeded, 10 running  n1, n2, n3, n4 and 8 more" in lines


def test_long_lists_are_cut_short() -> None:
    gangs = [gang(f"default/g{i}", started=0, ended=1, bound=1, succeeded=1) for i in range(100)]
    assert "… and 60 more gangs" in printed(gangs=gangs)
    assert printed().count("No gang was started.") == 1


def test_what_waits_says_why_and_what_was_refused_too() -> None:
    reasons = [{"role": "w", "reason": "Insufficient cpu", "nodes": 3}, {"role": "w", "reason": "taint", "nodes": 1}]
    pending = [
        {"gang": "default/x", "message": "2 of 4 fit: [markup] is kept", "reasons": []},
        {"gang": "default/y", "message": "", "reasons": reasons},
    ]
    line = Line(5.0, "rejected", "Job", "default", "bad", "", "spec.tasks: is empty")
    text = printed(pending=pending, timeline=[line], summary={"warnings": 2})
    assert "  default/x: 2 of 4 fit: [markup] is kept\n" in text
    assert "  default/y: Insufficient cpu on 3 nodes; taint on 1 node\n" in text
    assert "  Job default/bad at 5s: spec.tasks: is empty\n" in text
    assert "2 warnings;" in text
