"""One row for each node and queue: capacity and use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from enbloc.api import volcano
from enbloc.api.kinds import view
from enbloc.api.meta import labels_of, name_of
from enbloc.engine.core.tables.resources import PODS
from enbloc.inspect.gangs import Gang, Reading
from enbloc.units import NANO, format_amount, natural_key

KINDS = ("Node", "Pod", volcano.QUEUE)
_LONGEST = 6
"""Amounts of more characters are rounded in tables."""


class Use(msgspec.Struct, frozen=True, rename="camel"):
    """Capacity and use of a resource, in nano-units."""

    used: int
    capacity: int

    @property
    def percent(self) -> int:
        return 100 * self.used // self.capacity if self.capacity > 0 else 0


class Node(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    status: str
    pods: int
    resources: Mapping[str, Use]
    reserved: Mapping[str, int] = {}
    """By gang that waits: for how many of its pods room is set aside here (R7)."""
    reserved_room: Mapping[str, Mapping[str, int]] = {}
    """By gang: what these pods request, in nano-units by resource."""
    labels: Mapping[str, str] = {}


class Queue(msgspec.Struct, frozen=True, rename="camel"):
    queue: str
    parent: str
    state: str
    weight: int
    priority: int
    running: int
    """Gangs that run in it and in the queues below it."""
    waiting: int
    used: Mapping[str, int]
    """Nano-units by resource: the requests of the bound pods of those gangs."""
    capability: Mapping[str, int]
    labels: Mapping[str, str] = {}


def read_nodes(reading: Reading, gangs: Sequence[Gang]) -> list[Node]:
    reserved: dict[str, dict[str, int]] = {}
    rooms: dict[str, dict[str, Mapping[str, int]]] = {}
    for gang in gangs:
        for name, amounts in gang.room_aside.items():
            rooms.setdefault(name, {})[gang.gang] = amounts
        for name, count in gang.set_aside.items():
            reserved.setdefault(name, {})[gang.gang] = count
    nodes, rows = reading.state.nodes, []
    for name, row in nodes.rows.items():
        facts, amounts = nodes.facts[row], nodes.used(row).tolist()
        assert facts is not None, "a node has a row while it exists"
        used = reading.state.resources.nanos(enumerate(amounts))
        of = {one: Use(used.get(one, 0), nanos) for one, nanos in facts.allocatable.items() if one != "pods"}
        status = f"{'Ready' if facts.ready else 'NotReady'}{',SchedulingDisabled' if facts.unschedulable else ''}"
        labels = dict(facts.labels)
        rows.append(Node(name, status, amounts[PODS], of, reserved.get(name, {}), rooms.get(name, {}), labels))
    return sorted(rows, key=lambda row: natural_key(row.node))


def read_queues(reading: Reading, gangs: Sequence[Gang]) -> list[Queue]:
    tree, resources = reading.state.queues, reading.state.resources
    running, waiting = Counter[str](), Counter[str]()
    for gang in gangs:
        for counts in (*([running] if gang.runs else ()), *([waiting] if gang.waits else ())):
            counts.update(queue.name for queue in tree.get(gang.queue).ancestors)
    rows = []
    for obj in reading.known[volcano.QUEUE].values():
        queue, status = tree.get(name_of(obj)), view(obj, volcano.Queue).status
        rows.append(
            Queue(
                queue=queue.name,
                parent=queue.facts.parent,
                state=(status.state if status else "") or "Open",
                weight=queue.facts.weight,
                priority=queue.facts.priority,
                running=running[queue.name],
                waiting=waiting[queue.name],
                used=resources.nanos(enumerate(queue.used.tolist())),
                capability=queue.facts.capability,
                labels=dict(labels_of(obj)),
            )
        )
    return sorted(rows, key=lambda row: (-row.priority, natural_key(row.queue)))


def readable(name: str, nanos: int) -> str:
    """For a column of a table: long amounts of bytes are rounded to a tenth, `23.5Gi` instead of `24684100Ki`."""
    exact = format_amount(name, nanos)
    if len(exact) <= _LONGEST or not exact.endswith(("i", *"0123456789")) or name == "cpu":
        return exact
    value, units = nanos / NANO, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f}{units[0]}"
