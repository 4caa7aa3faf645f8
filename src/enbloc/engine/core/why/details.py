"""The figures behind a diagnosis, for the state that they are shown with (G10, N6): what each role needs and has, which
filter rejects how many nodes of which shape, what the queues above it allow, and what is in the gang's way.

Made when a user asks, and not in a cycle: it costs a pass over the nodes for each role. The sentence and the reason are
those of the diagnosis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

import msgspec
import numpy as np

from enbloc.api.reasons import LACKS_MEMBERS, PendingReason
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.queues import Queue
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Bools, total
from enbloc.engine.core.tables.tasks import OCCUPIED, GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.core.why.diagnosis import INSUFFICIENT, KEPT, Diagnosis, gates_of, rejections, shown
from enbloc.engine.core.why.partial_fit import Closed, by_role, nothing_closed, partial_fit
from enbloc.engine.core.why.titles import Titles

MOST_GANGS = 20
"""At most this many gangs that hold room are named."""


class Obstacle(msgspec.Struct, frozen=True):
    """What limits a gang, or another gang that has what it waits for."""

    kind: str
    """`gang`, `queue`, `gate`, `scheduler`, `API server`."""
    name: str
    """Empty for the API server."""
    what: str
    """What it does: a clause, such as `uses 8 cpu on nodes that it could use`."""


class Details(msgspec.Struct, frozen=True):
    numbers: dict[str, Any]
    in_the_way: tuple[Obstacle, ...]


def details(state: State, gang: GangState, why: Diagnosis, titles: Titles, closed: Closed = nothing_closed) -> Details:
    """`closed`: nodes that others have reserved."""
    numbers = {
        "minimum": gang.minima.total,
        "missing": dict(why.missing),
        "roles": _numbers_of_roles(state, gang, closed),
        "nodes": _usable(state),
        "queues": [_queue(state, queue) for queue in state.queue_of(gang).ancestors],
    }
    if pending_tasks(gang):  # of pods that do not exist nothing is known
        numbers["partialFit"] = partial_fit(state, gang, closed)
    if gang.spec.min_resources:
        amounts = state.resources.amounts(gang.spec.min_resources)
        numbers["minResources"] = _amounts(state, amounts.items())
    return Details(numbers, tuple(_in_the_way(state, gang, why, titles)))


def _numbers_of_roles(state: State, gang: GangState, closed: Closed) -> dict[str, Any]:
    every, waiting = by_role(gang.tasks.values(), gang.minima.by_role), by_role(pending_tasks(gang))
    return {
        role or "pods": _role(state, gang, role, tasks, waiting.get(role, []), closed)
        for role, tasks in sorted(every.items())
    }


def _role(
    state: State, gang: GangState, role: str, tasks: list[Task], waiting: list[Task], closed: Closed
) -> dict[str, Any]:
    several = gang.minima.by_role or len(tasks) < len(gang.tasks)  # a minimum of all roles is of no single one
    numbers: dict[str, Any] = {
        "minimum": gang.minima.by_role.get(role, 0 if several else gang.minima.total),
        "exist": len(tasks),
        "occupied": sum(task.status in OCCUPIED for task in tasks),
        "waiting": len(waiting),
        "gated": sum(task.status is TaskStatus.GATED for task in tasks),
    }
    if waiting:
        numbers["requests"] = _amounts(state, waiting[0].cls.request)
        numbers["nodes"] = list(_groups(state, waiting[0], closed(waiting[0])))
    return numbers


def _groups(state: State, task: Task, closed: Sequence[tuple[str, Bools]]) -> Iterator[dict[str, Any]]:
    """Nodes of one shape together: how many, how many each filter rejects, and the most that is free on one."""
    nodes = state.nodes
    shapes: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(nodes.alive[: nodes.count]).tolist():
        shapes.setdefault(nodes.allocatable[:, row].tobytes(), []).append(row)
    found = rejections(state, task, closed)
    for rows in sorted(shapes.values(), key=lambda rows: (-len(rows), rows[0])):
        rejected = {reason: count for reason, mask in found if (count := int(mask[rows].sum()))}
        shape = [(column, int(nodes.allocatable[column, rows[0]])) for column in range(len(nodes.allocatable))]
        yield {
            "shape": _amounts(state, [pair for pair in shape if pair[1]]),
            "like": nodes.names[rows[0]],
            "nodes": len(rows),
            "rejected": rejected,
            "fit": _fitting(state, task, [row for row in rows if not any(mask[row] for _, mask in found)]),
            "mostFree": _amounts(state, [(column, _most_free(state, column, rows)) for column, _ in task.cls.request]),
        }


def _fitting(state: State, task: Task, rows: list[int]) -> int:
    """How many pods like this one have room on the rows, as far as resources go."""
    free, counts = state.nodes.free, np.full(len(rows), np.iinfo(np.int64).max)
    for column, amount in task.cls.request:
        counts = np.minimum(counts, free[column, rows] // amount)
    return int(counts.sum())


def _most_free(state: State, column: int, rows: list[int]) -> int:
    return max(0, int(state.nodes.free[column, rows].max()))


def _usable(state: State) -> dict[str, int]:
    nodes = state.nodes
    alive = nodes.alive[: nodes.count]
    ready, cordoned = nodes.ready[: nodes.count], nodes.unschedulable[: nodes.count]
    return {
        "ready": int((alive & ready & ~cordoned).sum()),
        "cordoned": int((alive & cordoned).sum()),
        "notReady": int((alive & ~ready).sum()),
    }


def _queue(state: State, queue: Queue) -> dict[str, Any]:
    limits = {column: amount for column, amount in queue.limits.items() if column != PODS}
    used = {column for column in (CPU, MEMORY) if queue.used[column]}
    columns = sorted({*limits, *used})
    return {
        "queue": queue.name,
        "used": _amounts(state, [(column, int(queue.used[column])) for column in columns]),
        "capability": _amounts(state, sorted(limits.items())),
    }


def _amounts(state: State, pairs: Any) -> dict[str, str]:
    names = state.resources.names
    return {names[column]: shown(names[column], amount) for column, amount in pairs if column != PODS}


# ---- what limits it, and what is in the way


def _in_the_way(state: State, gang: GangState, why: Diagnosis, titles: Titles) -> Iterator[Obstacle]:
    if why.reason in LACKS_MEMBERS:
        yield from _members_lacking(state, gang)
    elif why.reason is PendingReason.QUEUE_FULL or why.of_queue:
        yield from _queues_full(state, gang, why, titles)
    elif why.reason in (PendingReason.UNSCHEDULABLE, PendingReason.NOT_ENOUGH_RESOURCES):
        yield from _holders(state, gang, why, titles)
    elif why.reason is PendingReason.BLOCKED_BY_FIFO and why.other:
        yield Obstacle("gang", why.other, f"is ahead of it in the FIFO queue {gang.spec.queue}")
    elif why.reason is PendingReason.GROUP_NOT_READY and why.other:
        yield Obstacle("gang", why.other, "has to start together with it")


def _members_lacking(state: State, gang: GangState) -> Iterator[Obstacle]:
    for gate, count in sorted(gates_of(gang).items()):
        yield Obstacle("gate", gate, f"holds {count} pod{'' if count == 1 else 's'}")
    for name, count in sorted(state.foreign.of(gang.key).items()):
        yield Obstacle("scheduler", name or "(none)", f"is named by {count} pod{'' if count == 1 else 's'}")
    if gang.spec.failed_create:
        yield Obstacle("pods", "", f"are not created: {gang.spec.failed_create}")


def _queues_full(state: State, gang: GangState, why: Diagnosis, titles: Titles) -> Iterator[Obstacle]:
    """The queues, from its own up, whose limits it does not fit; then the gangs that use them, where less use of a
    queue would be enough."""
    requested = _requested(state, gang, why)
    full = [(queue, over) for queue in state.queue_of(gang).ancestors if (over := _over(queue, requested))]
    for queue, over in full:
        yield Obstacle("queue", queue.name, ", ".join(_limit(state, queue, one, requested) for one in over))
    if any(requested[one] > queue.limits[one] for queue, over in full for one in over):
        return
    for other, tasks in _gangs_on(state, None, gang, {queue.name for queue, _ in full})[:MOST_GANGS]:
        yield _holder(state, gang, titles.of(other, gang.key.namespace), tasks, f"of queue {other.spec.queue}")


def _over(queue: Queue, requested: dict[int, int]) -> list[int]:
    """The columns whose limit the queue would exceed."""
    limits = sorted(queue.limits.items())
    return [one for one, limit in limits if (more := requested.get(one)) and int(queue.used[one]) + more > limit]


def _limit(state: State, queue: Queue, column: int, requested: dict[int, int]) -> str:
    name = state.resources.names[column]
    used, limit = shown(name, int(queue.used[column])), shown(name, queue.limits[column])
    return f"uses {used} of its capability of {limit} {name}, and {shown(name, requested[column])} would be added"


def _requested(state: State, gang: GangState, why: Diagnosis) -> dict[int, int]:
    """What the gang would add to its queues: the pods that its minima lack, or all that wait if it has them."""
    if gang.spec.min_resources and why.reason is not PendingReason.QUEUE_FULL:
        return dict(state.resources.amounts(gang.spec.min_resources))
    waiting = pending_tasks(gang)
    occupied = Counter(task.role for task in gang.tasks.values() if task.status in OCCUPIED)
    lacking = {role: least - occupied[role] for role, least in gang.minima.by_role.items()}
    needed = []
    for task in waiting:
        if lacking.get(task.role, 0) > 0:
            lacking[task.role] -= 1
            needed.append(task)
    chosen = set(map(id, needed))
    more = max(0, gang.minima.total - gang.total_occupied - len(needed))
    needed += [task for task in waiting if id(task) not in chosen][:more]
    return total(task.cls.request for task in needed or waiting)


def _holders(state: State, gang: GangState, why: Diagnosis, titles: Titles) -> Iterator[Obstacle]:
    """Gangs with pods on nodes that the gang could use but for the room that they hold. Where only resources are
    short on these, those that use such a resource."""
    rows, of_other_nodes = _usable_rows(state, gang)
    reasons = {one.reason for one in why.reasons} - of_other_nodes
    short = {column for column, name in enumerate(state.resources.names) if f"{INSUFFICIENT}{name}" in reasons}
    found = _gangs_on(state, rows, gang)
    if reasons and all(reason.startswith(INSUFFICIENT) for reason in reasons):
        found = [one for one in found if not short.isdisjoint(total(task.cls.request for task in one[1]))]
    for other, tasks in found[:MOST_GANGS]:
        yield _holder(state, gang, titles.of(other, gang.key.namespace), tasks, "on nodes that it could use")


def _usable_rows(state: State, gang: GangState) -> tuple[Bools | None, set[str]]:
    """Rows that pods of the gang which wait could use if they were empty, `None` where none waits. With the reasons
    that tell nothing of room there: of nodes that are kept, and of static filters."""
    rows: Bools | None = None
    reasons = set(KEPT)
    for task in {task.cls.id: task for task in pending_tasks(gang)}.values():
        candidates = state.candidates(task.cls)
        passing = candidates.passing() & _large_enough(state, task)
        reasons.update(check.reason for check in candidates.checks)
        rows = passing if rows is None else rows | passing
    return rows, reasons


def _large_enough(state: State, task: Task) -> Bools:
    """Nodes that could hold the task if they were empty."""
    nodes = state.nodes
    found: Bools = np.ones(nodes.count, dtype=bool)
    for column, amount in task.cls.request:
        found &= nodes.allocatable[column, : nodes.count] >= amount
    return found


def _holder(state: State, gang: GangState, other: str, tasks: list[Task], where: str) -> Obstacle:
    waiting, sums = pending_tasks(gang), total(task.cls.request for task in tasks)
    wanted = total(task.cls.request for task in waiting) or state.resources.amounts(gang.spec.min_resources or {})
    pairs = [(column, amount) for column, amount in sorted(sums.items()) if column in wanted]
    text = ", ".join(f"{amount} {name}" for name, amount in _amounts(state, pairs).items())
    verb = "holds" if all(task.status is TaskStatus.HELD for task in tasks) else "uses"
    return Obstacle("gang", other, f"{verb} {text or 'room'} {where}")


def _gangs_on(
    state: State, rows: Bools | None, but: GangState, queues: Set[str] | None = None
) -> list[tuple[GangState, list[Task]]]:
    """All other gangs with pods on these rows (`None`: anywhere), in or below one of the `queues` if given: of
    lowest priority first, then those with the fewest."""
    found: dict[Any, tuple[GangState, list[Task]]] = {}
    for task in state.tasks.values():
        row = state.nodes.rows.get(task.node)
        if task.gang is not but and row is not None and (rows is None or rows[row]):
            found.setdefault(task.gang.key, (task.gang, []))[1].append(task)
    if queues is not None:
        above = {key: {queue.name for queue in state.queue_of(one[0]).ancestors} for key, one in found.items()}
        found = {key: one for key, one in found.items() if above[key] & queues}
    return sorted(found.values(), key=lambda one: (one[0].priority, len(one[1]), one[0].spec.title))
