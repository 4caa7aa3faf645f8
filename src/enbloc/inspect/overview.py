"""The overview of a cluster, and the explanation of one gang: why it waits, the figures, the gangs ahead of it, its
expected start and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from enbloc.config import Config
from enbloc.inspect import capacity
from enbloc.inspect import gangs as gang_rows
from enbloc.inspect.capacity import Node, Queue, amount
from enbloc.inspect.gangs import RUNNING, WAITING, Gang, Objects, Reading
from enbloc.inspect.remedies import remedies
from enbloc.units import NANO

KINDS: Final = tuple(dict.fromkeys((*gang_rows.KINDS, *capacity.KINDS)))
"""The kinds to list."""


class Overview(msgspec.Struct, frozen=True, rename="camel"):
    gangs: list[Gang]
    queues: list[Queue]
    nodes: list[Node]
    aliases: Mapping[str, str] = {}
    """NAMESPACE/NAME of a gang's pods and PodGroup → the gang."""


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """The explanation of one gang."""

    gang: str
    sentence: str
    state: str
    numbers: dict[str, Any]
    ahead: list[str]
    """Waiting gangs of its queue that are scheduled before it."""
    behind: int
    expected_start: str = ""
    """When the scheduler expects it to start; empty without a forecast."""
    would_help: list[str] = []
    """What would let it start."""


def read_overview(objects: Objects, config: Config | None = None) -> Overview:
    """`config`: the scheduler's, where it is known; it decides how some gangs are read."""
    reading = Reading(objects, config)
    gangs = reading.gangs()
    used = capacity.use_of_queues(objects, reading)
    return Overview(
        gangs, capacity.read_queues(objects, gangs, used), capacity.read_nodes(objects, reading), reading.aliases()
    )


def explain(overview: Overview, name: str) -> Explanation | None:
    """`name` is NAMESPACE/NAME, as `gangs` shows it, or of a pod or PodGroup of the gang; a name alone is of
    namespace `default`."""
    wanted = name if "/" in name else f"default/{name}"
    found = _find(overview, wanted) or _find(overview, overview.aliases.get(wanted, ""))
    if found is None:
        return None
    waiting = [gang for gang in overview.gangs if gang.queue == found.queue and gang.state == WAITING]
    waiting.sort(key=gang_rows.order)
    place = waiting.index(found) if found in waiting else 0
    return Explanation(
        gang=found.gang,
        sentence=sentence(found),
        state=found.state,
        numbers=_numbers(found, overview),
        ahead=[gang.gang for gang in waiting[:place]] if found.state == WAITING else [],
        behind=len(waiting) - place - 1 if found.state == WAITING else 0,
        expected_start=found.expected_start,
        would_help=remedies(found, overview.queues, overview.nodes),
    )


def _find(overview: Overview, name: str) -> Gang | None:
    return next((gang for gang in overview.gangs if gang.gang == name), None)


def sentence(gang: Gang) -> str:
    """Its state in one sentence."""
    has = gang.pods.get("running", 0) + gang.pods.get("starting", 0)
    if gang.state == RUNNING:
        where = ", ".join(f"{node} ({count})" for node, count in list(gang.nodes.items())[:5])
        more = f" and {len(gang.nodes) - 5} more" if len(gang.nodes) > 5 else ""
        return f"It runs: {has} pod{'' if has == 1 else 's'} on {where}{more}; its minimum is {gang.minimum}."
    if gang.state != WAITING:
        return f"It is over: {gang.pods.get('succeeded', 0)} pods succeeded, {gang.pods.get('failed', 0)} failed."
    if gang.message:
        until = f"; it is expected to start at {gang.expected_start}" if gang.expected_start else ""
        return f"It waits: {gang.message.rstrip('.')}{until}."
    if not gang.pods:
        return "It waits: none of its pods has been created yet."
    return "It waits: the scheduler has not said why yet."


def _numbers(gang: Gang, overview: Overview) -> dict[str, Any]:
    queue = next((one for one in overview.queues if one.queue == gang.queue), None)
    free: dict[str, int] = {}
    for node in overview.nodes:
        for name, use in node.resources.items():
            free[name] = free.get(name, 0) + use.capacity - use.used
    numbers: dict[str, Any] = {
        "dialect": gang.dialect,
        "queue": gang.queue,
        "priority": gang.priority,
        "minimum": gang.minimum,
        "minima": gang.minima,
        "pods": gang.pods,
        "roles": gang.roles,
        "reason": gang.reason,
        "since": gang.since,
        "needs": {name: amount(name, nanos) for name, nanos in sorted(gang.needs.items())},
        "setAside": gang.set_aside,
        "freeInCluster": {name: amount(name, nanos) for name, nanos in sorted(free.items())},
        "readyNodes": sum(1 for node in overview.nodes if node.status == "Ready"),
    }
    if queue is not None:
        numbers["queueUses"] = {name: amount(name, nanos) for name, nanos in sorted(queue.used.items())}
        numbers["queueMayUse"] = {name: amount(name, nanos) for name, nanos in sorted(queue.capability.items())}
    return numbers


def shown(overview: Overview, limit: int | None = None) -> dict[str, Any]:
    """As JSON: amounts as Kubernetes quantities, at most `limit` rows of each, and the totals."""
    totals = {
        "gangs": len(overview.gangs),
        "waiting": sum(1 for gang in overview.gangs if gang.state == WAITING),
        "queues": len(overview.queues),
        "nodes": len(overview.nodes),
    }
    return {
        "totals": totals,
        "gangs": gangs_json(overview, limit),
        "queues": queues_json(overview, limit),
        "nodes": nodes_json(overview, limit),
    }


def gangs_json(overview: Overview, limit: int | None = None) -> list[dict[str, Any]]:
    rows = []
    for gang in overview.gangs[:limit]:
        row: dict[str, Any] = msgspec.to_builtins(gang)
        for key in ("needs", "largest"):
            row[key] = {name: amount(name, nanos) for name, nanos in row[key].items()}
        rows.append({**row, "created": gang.created / NANO, "sentence": sentence(gang)})
    return rows


def queues_json(overview: Overview, limit: int | None = None) -> list[dict[str, Any]]:
    rows = []
    for queue in overview.queues[:limit]:
        row: dict[str, Any] = msgspec.to_builtins(queue)
        for key in ("used", "capability"):
            row[key] = {name: amount(name, nanos) for name, nanos in row[key].items()}
        rows.append(row)
    return rows


def nodes_json(overview: Overview, limit: int | None = None) -> list[dict[str, Any]]:
    return [
        {
            "node": node.node,
            "status": node.status,
            "pods": node.pods,
            "resources": {
                name: {"used": amount(name, use.used), "room": amount(name, use.capacity), "percent": use.percent}
                for name, use in node.resources.items()
            },
        }
        for node in overview.nodes[:limit]
    ]
