"""One row for each node and queue: capacity and use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from enbloc.api import core, volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, condition_of, labels_of, name_of
from enbloc.inspect.gangs import Gang, Objects, Reading
from enbloc.units import NANO, Quantity, format_amount, natural_key

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


def read_nodes(objects: Objects, reading: Reading, gangs: Sequence[Gang]) -> list[Node]:
    reserved: dict[str, dict[str, int]] = {}
    rooms: dict[str, dict[str, Mapping[str, int]]] = {}
    for gang in gangs:
        for name, amounts in gang.room_aside.items():
            rooms.setdefault(name, {})[gang.gang] = amounts
        for name, count in gang.set_aside.items():
            reserved.setdefault(name, {})[gang.gang] = count
    used: dict[str, Counter[str]] = {}
    for room in reading.rooms.values():
        for node, amounts in room.on_nodes.items():
            _add(used.setdefault(node, Counter()), amounts)
    rows = []
    for obj in objects.get("Node", ()):
        status = view(obj, core.Node).status
        capacity = (status.allocatable or status.capacity or {}) if status is not None else {}
        taken = used.get(name_of(obj), Counter())
        names = [name for name in capacity if name != "pods"]
        resources = {name: Use(taken[name], capacity[name].nanos) for name in names}
        labels = dict(labels_of(obj))
        name, pods = name_of(obj), taken["pods"] // NANO
        rows.append(Node(name, _word(obj), pods, resources, reserved.get(name, {}), rooms.get(name, {}), labels))
    return sorted(rows, key=lambda row: natural_key(row.node))


def _add(counts: Counter[str], more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        counts[name] += nanos


def _word(node: Obj) -> str:
    ready = condition_of(node, "Ready")
    words = ["Ready" if ready is None or ready.get("status") == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def read_queues(objects: Objects, gangs: Sequence[Gang], used: Mapping[str, Mapping[str, int]]) -> list[Queue]:
    """`used`: what each queue's pods have, see `use_of_queues`."""
    queues = [(name_of(obj), view(obj, volcano.Queue), obj) for obj in objects.get(volcano.QUEUE, ())]
    above = _above({name: typed.spec.parent for name, typed, _ in queues})
    running = _summed(Counter(gang.queue for gang in gangs if gang.runs), above)
    waiting = _summed(Counter(gang.queue for gang in gangs if gang.waits), above)
    amounts: dict[str, Counter[str]] = {}
    for queue, counts in used.items():
        for one in above.get(queue, [queue]):
            _add(amounts.setdefault(one, Counter()), counts)
    rows = []
    for name, typed, obj in queues:
        rows.append(
            Queue(
                queue=name,
                parent=typed.spec.parent,
                state=(typed.status.state if typed.status else "") or "Open",
                weight=typed.spec.weight or 1,
                priority=typed.spec.priority,
                running=running[name],
                waiting=waiting[name],
                used=dict(amounts.get(name, {})),
                capability=_nanos(typed.spec.capability),
                labels=dict(labels_of(obj)),
            )
        )
    return sorted(rows, key=lambda row: (-row.priority, natural_key(row.queue)))


def _above(parents: Mapping[str, str]) -> dict[str, list[str]]:
    """Each queue → itself and all queues above it, up to `root`."""
    found: dict[str, list[str]] = {}
    for queue in parents:
        line = [queue]
        while (parent := parents[line[-1]] or volcano.ROOT_QUEUE) in parents and parent not in line:
            line.append(parent)
        found[queue] = line
    return found


def _summed(counts: Mapping[str, int], above: Mapping[str, Sequence[str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for queue, count in counts.items():
        for one in above.get(queue, [queue]):
            found[one] += count
    return found


def use_of_queues(reading: Reading) -> dict[str, dict[str, int]]:
    """What the pods of each queue's gangs use."""
    used: dict[str, Counter[str]] = {}
    for room in reading.rooms.values():
        for queue, amounts in room.of_queues.items():
            _add(used.setdefault(queue, Counter()), amounts)
    return {queue: dict(counts) for queue, counts in used.items()}


def _nanos(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in (quantities or {}).items()}


def amount(name: str, nanos: int) -> str:
    """As Kubernetes writes it, and exactly."""
    return format_amount(name, nanos)


def readable(name: str, nanos: int) -> str:
    """For a column of a table: long amounts of bytes are rounded to a tenth, `23.5Gi` instead of `24684100Ki`."""
    exact = format_amount(name, nanos)
    if len(exact) <= _LONGEST or not exact.endswith(("i", *"0123456789")) or name == "cpu":
        return exact
    value, units = nanos / NANO, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f}{units[0]}"
