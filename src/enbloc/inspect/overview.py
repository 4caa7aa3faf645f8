"""The overview of a cluster, and what the scheduler said of one gang. What would help a gang is `advice`'s part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.config import Config
from enbloc.inspect import capacity
from enbloc.inspect import gangs as gang_rows
from enbloc.inspect.capacity import Node, Queue, Use
from enbloc.inspect.gang_states import FAILED, FINISHED, PREEMPTED
from enbloc.inspect.gangs import Gang, Objects, Reading
from enbloc.inspect.topology import KINDS as KINDS_OF_TREES
from enbloc.inspect.topology import Domain, Trees
from enbloc.listing import listed, plural
from enbloc.units import NANO, format_amount

KINDS: Final = tuple(dict.fromkeys((*gang_rows.KINDS, *capacity.KINDS, *KINDS_OF_TREES)))
"""The kinds to list."""


class Overview(msgspec.Struct, frozen=True, rename="camel"):
    gangs: list[Gang]
    queues: list[Queue]
    nodes: list[Node]
    aliases: Mapping[str, str] = {}
    """NAMESPACE/NAME of a gang's pods and PodGroup → the gang."""
    trees: Trees | None = None
    """The node trees, where they were asked for."""


class Scheduler(NamedTuple):
    """Whether a scheduler runs on the cluster that was read (`None`: unknown), and how that is known: a clause."""

    runs: bool | None = None
    how: str = "these objects do not say"


UNKNOWN: Final = Scheduler()
IN_UP: Final = Scheduler(True, "in this `enbloc up`")


class Explanation(msgspec.Struct, frozen=True):
    """The explanation of one gang."""

    gang: str
    state: str
    reason: str
    """Of the closed set (N6); empty if it does not wait."""
    sentence: str
    numbers: dict[str, Any]
    in_the_way: list[dict[str, Any]] = []
    """Gangs, queues, quotas, gates, schedulers that keep it waiting: `kind`, `name`, `what`."""
    remedies: list[dict[str, Any]] | None = None
    """Changes that let it start, tried: `change`, `starts_at`, `steps`. `None`: not tried (see `advice`)."""
    ahead: list[str] = []
    """Waiting gangs of its queue that are scheduled before it."""
    expected_start: str | None = None
    assumption: str = ""
    """What the expected start assumes, or why it is unknown."""
    story: list[dict[str, Any]] = []
    """What happened to it, the oldest first: `at`, `about`, `what`, `message`."""


def read_overview(objects: Objects, config: Config | None = None, *, with_trees: bool = False) -> Overview:
    """`config`: the scheduler's, where it is known; it decides how some gangs are read."""
    reading = Reading(objects, config)
    found = overview_of(reading)
    return msgspec.structs.replace(found, trees=Trees(reading)) if with_trees else found


def overview_of(reading: Reading) -> Overview:
    gangs = reading.gangs()
    queues, nodes = capacity.read_queues(reading, gangs), capacity.read_nodes(reading, gangs)
    return Overview(gangs, queues, nodes, reading.aliases())


def explain(overview: Overview, name: str) -> Explanation | None:
    """What the scheduler said of a gang. `name` is NAMESPACE/NAME, as `gangs` shows it, or of a pod or PodGroup of the
    gang; a name alone is of namespace `default`."""
    wanted = name if "/" in name else f"default/{name}"
    found = find(overview, wanted) or find(overview, overview.aliases.get(wanted, ""))
    return explain_shown(overview, found) if found is not None else None


def explain_shown(overview: Overview, row: Gang) -> Explanation:
    """From a gang's row: what was reported of it, and nothing computed anew."""
    waiting = [gang for gang in overview.gangs if gang.queue == row.queue and gang.waits]
    waiting.sort(key=gang_rows.order)
    place = waiting.index(row) if row in waiting else 0
    return Explanation(
        gang=row.gang,
        state=row.state,
        reason=row.reason,
        sentence=sentence(row),
        numbers=_numbers(row),
        ahead=[gang.gang for gang in waiting[:place]] if row.waits else [],
        expected_start=row.expected_start or None,
    )


def find(overview: Overview, name: str) -> Gang | None:
    return next((gang for gang in overview.gangs if gang.gang == name), None)


def sentence(gang: Gang) -> str:
    """Its state in one sentence."""
    has = gang.pods.get("running", 0) + gang.pods.get("starting", 0)
    if gang.runs:
        where = listed([f"{node} ({count})" for node, count in gang.nodes.items()], 5)
        also = f" {ended(gang.message[0].upper() + gang.message[1:])}" if gang.message else ""
        return f"It runs: {plural(has, 'pod')} on {where}; its minimum is {gang.minimum}.{also}"
    if gang.state == FAILED and gang.message:
        return f"It failed: {gang.message.removeprefix('Failed: ').rstrip('.')}."
    if gang.state in (FAILED, FINISHED):
        well = gang.pods.get("succeeded", 0)
        return f"It is over: {plural(well, 'pod')} succeeded, {gang.pods.get('failed', 0)} failed."
    if gang.message:
        until = f"; it is expected to start at {gang.expected_start}" if gang.expected_start else ""
        message = f"{gang.message.rstrip('.')}{until}" if until else gang.message
        return ended(f"It waits again: {message}") if gang.state == PREEMPTED else waits_sentence(message)
    if not gang.pods:
        return "It waits: none of its pods has been created yet."
    return "It waits: the scheduler has not said why yet."


def waits_sentence(message: str) -> str:
    return ended(f"It {message}" if message.startswith("waits ") else f"It waits: {message}")


def ended(text: str) -> str:
    """A sentence with its full stop."""
    return text if text.endswith((".", "?")) else f"{text}."


def _numbers(gang: Gang) -> dict[str, Any]:
    return {
        "dialect": gang.dialect,
        "queue": gang.queue,
        "priority": gang.priority,
        "minimum": gang.minimum,
        "minima": gang.minima,
        "pods": gang.pods,
        "pods_by_role": gang.roles,
        "since": gang.since,
        "set_aside": gang.set_aside,
    }


def shown(overview: Overview, limit: int | None = None) -> dict[str, Any]:
    """As JSON: amounts as Kubernetes quantities, at most `limit` rows of each, and the totals."""
    totals = {
        "gangs": len(overview.gangs),
        "waiting": sum(1 for gang in overview.gangs if gang.waits),
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
        row["largest"] = {name: format_amount(name, nanos) for name, nanos in row["largest"].items()}
        rows.append({**row, "created": gang.created / NANO, "sentence": sentence(gang)})
    return rows


def queues_json(overview: Overview, limit: int | None = None) -> list[dict[str, Any]]:
    rows = []
    for queue in overview.queues[:limit]:
        row: dict[str, Any] = msgspec.to_builtins(queue)
        for key in ("used", "capability"):
            row[key] = {name: format_amount(name, nanos) for name, nanos in row[key].items()}
        rows.append(row)
    return rows


def domains_json(domains: Sequence[Domain]) -> list[dict[str, Any]]:
    return [{**msgspec.to_builtins(one), "resources": _resources_json(one.resources)} for one in domains]


def _resources_json(resources: Mapping[str, Use]) -> dict[str, Any]:
    return {
        name: {"used": format_amount(name, use.used), "room": format_amount(name, use.capacity), "percent": use.percent}
        for name, use in resources.items()
    }


def nodes_json(overview: Overview, limit: int | None = None) -> list[dict[str, Any]]:
    return [
        {
            "node": node.node,
            "status": node.status,
            "pods": node.pods,
            "resources": _resources_json(node.resources),
            "reserved": dict(node.reserved),
            "reservedRoom": {
                gang: {name: format_amount(name, nanos) for name, nanos in room.items()}
                for gang, room in node.reserved_room.items()
            },
        }
        for node in overview.nodes[:limit]
    ]
