"""Stories of reservations (R): a config that reserves, full nodes, and what the timeline says of reserved nodes."""

from __future__ import annotations

from typing import Any

from support import manifests as m
from support.answers import Answer

CLASSES = [
    m.priority_class("high", 1000),
    m.priority_class("mid", 500),
    m.priority_class("low", 10),
    m.priority_class("nonpreempting", 500) | {"preemptionPolicy": "Never"},
]

QUIET = ("enqueue", "allocate", "backfill")


def reserving(
    after: int = 10,
    percent: int = 100,
    actions: tuple[str, ...] = QUIET,
    mode: str = "best-effort",
    tiers: list[m.Obj] | None = None,
) -> m.Obj:
    """A config in which nodes are reserved for a gang that has waited so many seconds."""
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
    named: list[m.Obj] = [{"name": n, **({"arguments": {"mode": mode}} if n == "backfill" else {})} for n in actions]
    found: m.Obj = {"actions": [*named, {"name": "reserve", "arguments": arguments}]}
    return found | ({"tiers": tiers} if tiers else {})


def full(cpu: int | str = 4, run: str | None = "100s", on: str = "n", name: str = "full", **more: Any) -> m.Obj:
    return m.pod(name, cpu, nodeName=on, run_time=run, **more)


def reserved(answer: Answer, prefix: str = "") -> dict[str, tuple[float, str]]:
    """When a node was reserved for each pod last, and which."""
    return {
        line["name"]: (line["t"], line["node"]) for line in answer.lines("reserved") if line["name"].startswith(prefix)
    }


def released(answer: Answer, prefix: str = "") -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in answer.lines("released") if line["name"].startswith(prefix)]


def first_reserved(answer: Answer, prefix: str = "") -> dict[str, tuple[float, str]]:
    """When a node was reserved for each pod first, and which."""
    found: dict[str, tuple[float, str]] = {}
    for line in answer.lines("reserved"):
        if line["name"].startswith(prefix):
            found.setdefault(line["name"], (line["t"], line["node"]))
    return found
