"""What would let a gang start: from its reason, its requests, the capability of its queue and the free capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from enbloc.api.reasons import PendingReason
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.inspect.capacity import Node, Queue, amount
from enbloc.inspect.gangs import WAITING, Gang

_BY_REASON: dict[str, str] = {
    PendingReason.NOT_ENOUGH_PODS: "the pods that are missing: they have to be created",
    PendingReason.UNSUPPORTED_CONSTRAINT: "what its message names, or `unsupported: warn` in the scheduler's config",
    PendingReason.SCHEDULING_GATED: "the gate's controller has to remove it, or remove it from the pods",
    PendingReason.OTHER_SCHEDULER: (
        f"set spec.schedulerName: {SCHEDULER_NAMES[0]} in new pods, or add the name: `enbloc run --compat`, or "
        "schedulerNames in its config"
    ),
    PendingReason.FAILED_CREATE: "the API server refuses its pods: raise the quota, or free what it counts",
    PendingReason.BLOCKED_BY_FIFO: "the gangs ahead of it: its queue serves strictly in order",
    PendingReason.GROUP_NOT_READY: "the gangs that it is to start together with",
    PendingReason.TIMED_OUT: "its time is up: recreate its pods, or remove their annotation",
    PendingReason.GANG_INVALID: "what its message names: until then it is not attempted",
}


def remedies(gang: Gang, queues: Sequence[Queue], nodes: Sequence[Node]) -> list[str]:
    """One line each, the most specific first; empty if it does not wait or nothing is known."""
    if gang.state != WAITING:
        return []
    found = []
    if gang.set_aside:
        where = ", ".join(f"{node} ({count})" for node, count in list(gang.set_aside.items())[:5])
        more = f" and {len(gang.set_aside) - 5} more" if len(gang.set_aside) > 5 else ""
        found.append(f"the end of what runs on {where}{more}: room is set aside for it there")
    if gang.reason in _BY_REASON:
        return [*found, _BY_REASON[gang.reason]]
    found += _queue_in_the_way(gang, {queue.queue: queue for queue in queues})
    return found + _nodes_in_the_way(gang, nodes)


def _queue_in_the_way(gang: Gang, queues: Mapping[str, Queue]) -> list[str]:
    queue = queues.get(gang.queue)
    if queue is None:
        return [f"a queue {gang.queue}: there is none of that name"]
    found = []
    if queue.state != "Open":
        found.append(f"opening queue {queue.queue}: it is {queue.state}")
    for name, most in sorted(queue.capability.items()):
        needed, used = gang.needs.get(name, 0), queue.used.get(name, 0)
        may = f"queue {queue.queue} may use {amount(name, most)} {name} in all"
        if needed > most:
            found.append(f"a larger queue, or a smaller gang: {may}, and it needs {amount(name, needed)}")
        elif used + needed > most:
            found.append(f"{amount(name, used + needed - most)} {name} less in use by its queue: {may}")
    return found


def _nodes_in_the_way(gang: Gang, nodes: Sequence[Node]) -> list[str]:
    ready = [node for node in nodes if node.status == "Ready"]
    if not ready:
        return ["a node that is ready and takes pods: there is none"]
    found = []
    for name, needed in sorted(gang.needs.items()):
        uses = [node.resources[name] for node in ready if name in node.resources]
        room, used = sum(use.capacity for use in uses), sum(use.used for use in uses)
        if needed > room:
            all_of_it = (
                f"all ready nodes together have {amount(name, room)} {name}, and it needs {amount(name, needed)}"
            )
            found.append(f"more nodes, or a smaller gang: {all_of_it}")
        elif needed > room - used:
            found.append(
                f"{amount(name, needed - (room - used))} more {name} free: it needs {amount(name, needed)}, "
                f"and {amount(name, max(room - used, 0))} of {amount(name, room)} are"
            )
    found += _node_too_small(gang, ready)
    if not found and gang.needs and gang.reason == "Unschedulable":
        found.append("free room on the right nodes: in total there is enough, node by node there is not")
    return found


def _node_too_small(gang: Gang, ready: Sequence[Node]) -> list[str]:
    for name, largest in sorted(gang.largest.items()):
        most = max((node.resources[name].capacity for node in ready if name in node.resources), default=0)
        if largest > most:
            return [
                f"a node with {amount(name, largest)} {name} for one of its pods: the largest has {amount(name, most)}"
            ]
    return []
