"""One row for each node and queue: capacity and use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from enbloc.api import core, volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, condition_of, name_of
from enbloc.inspect.gangs import RUNNING, WAITING, Gang, Objects, Reading, pod_state
from enbloc.units import NANO, Quantity, format_amount, natural_key

KINDS = ("Node", "Pod", volcano.QUEUE)


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


class Queue(msgspec.Struct, frozen=True, rename="camel"):
    queue: str
    parent: str
    state: str
    weight: int
    priority: int
    running: int
    """Gangs that run."""
    waiting: int
    used: Mapping[str, int]
    """Nano-units by resource: the requests of the bound pods of its gangs."""
    capability: Mapping[str, int]


def read_nodes(objects: Objects, reading: Reading) -> list[Node]:
    used: dict[str, Counter[str]] = {}
    for pod in objects.get("Pod", ()):
        node = (pod.get("spec") or {}).get("nodeName")
        if node and pod_state(pod) in ("starting", "running", "leaving"):
            counts = used.setdefault(node, Counter())
            counts["pods"] += NANO
            _add(counts, reading.requests(pod))
    rows = []
    for obj in objects.get("Node", ()):
        status = view(obj, core.Node).status
        capacity = (status.allocatable or status.capacity or {}) if status is not None else {}
        taken = used.get(name_of(obj), Counter())
        names = [name for name in capacity if name != "pods"]
        resources = {name: Use(taken[name], capacity[name].nanos) for name in names}
        rows.append(Node(name_of(obj), _word(obj), taken["pods"] // NANO, resources))
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
    states = Counter((gang.queue, gang.state) for gang in gangs)
    rows = []
    for obj in objects.get(volcano.QUEUE, ()):
        typed = view(obj, volcano.Queue)
        name = name_of(obj)
        rows.append(
            Queue(
                queue=name,
                parent=typed.spec.parent,
                state=(typed.status.state if typed.status else "") or "Open",
                weight=typed.spec.weight or 1,
                priority=typed.spec.priority,
                running=states[name, RUNNING],
                waiting=states[name, WAITING],
                used=dict(used.get(name, {})),
                capability=_nanos(typed.spec.capability),
            )
        )
    return sorted(rows, key=lambda row: (-row.priority, natural_key(row.queue)))


def use_of_queues(objects: Objects, reading: Reading) -> dict[str, dict[str, int]]:
    """What the pods of each queue's gangs hold."""
    queue_of = reading.queue_of_pods()
    used: dict[str, Counter[str]] = {}
    for pod in objects.get("Pod", ()):
        if (pod.get("spec") or {}).get("nodeName") and pod_state(pod) in ("starting", "running"):
            queue = queue_of.get((pod["metadata"].get("namespace") or "", name_of(pod)))
            if queue is not None:
                _add(used.setdefault(queue, Counter()), reading.requests(pod))
    return {queue: dict(counts) for queue, counts in used.items()}


def _nanos(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in (quantities or {}).items()}


def amount(name: str, nanos: int) -> str:
    """As people write it: memory in Gi, the rest plainly."""
    return format_amount(name, nanos)
