"""The status of queues: PodGroups by phase, and the state Open where there is none yet (V4).

A queue is closed by a write of `status.state: Closed` or by a Command, which is deleted once it was executed. A closed
queue closes its children, which an annotation records, and opening it opens those; a child of a closed queue stays
closed.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, annotations_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.volcano import CLOSED, parent_of, state_of
from enbloc.api.writes import Patch, Refused, WatchEvent, Write
from enbloc.controllers.commands import Commands, is_for_queue, refuse, refused_on_fault, target_of
from enbloc.controllers.guarded import guarded
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.faults import Faults

PHASES: Final = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
STATE_BY_COMMAND: Final = {"OpenQueue": "Open", "CloseQueue": "Closed"}


class _Counted(msgspec.Struct, frozen=True, gc=False):
    queue: str
    phase: str


class QueueController:
    """Keeps the status of each Queue."""

    kinds = frozenset({volcano.QUEUE, volcano.POD_GROUP, volcano.COMMAND})

    def __init__(self) -> None:
        self._queues: dict[str, Obj] = {}
        self._groups: dict[tuple[str, str], _Counted] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._dirty: set[str] = set()
        self._retries: Retries[str] = Retries()
        self._commands = Commands(is_for_queue)
        self.faults: Faults[str] = Faults()

    def observe(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        if event.kind == volcano.POD_GROUP:
            self._observe_group(event, (namespace_of(event.obj), name))
            return
        if event.kind == volcano.COMMAND:
            self._commands.observe(event)
            return
        if event.type == "DELETED":
            self._queues.pop(name, None)
            self._dirty.discard(name)
        else:
            self._queues[name] = event.obj
            self._dirty.add(name)
        self._dirty.update(child for child, queue in self._queues.items() if parent_of(queue) == name)

    def _observe_group(self, event: WatchEvent, key: tuple[str, str]) -> None:
        before = self._groups.pop(key, None)
        if before is not None:
            self._count(before, -1)
        if event.type == "DELETED":
            return
        queue = (event.obj.get("spec") or {}).get("queue") or volcano.DEFAULT_QUEUE
        counted = _Counted(queue, (event.obj.get("status") or {}).get("phase") or "Pending")
        self._groups[key] = counted
        self._count(counted, 1)

    def _count(self, group: _Counted, by: int) -> None:
        counts = self._counts.setdefault(group.queue, Counter())
        counts[group.phase] += by
        if not counts.total():
            del self._counts[group.queue]
        if group.queue in self._queues:  # else it is counted when the queue is created
            self._dirty.add(group.queue)

    def reconcile(self, now_ns: int) -> list[Write]:
        writes: list[Write] = []
        states = self._execute_commands(writes, now_ns)
        for name in sorted(self._dirty.union(states, self._retries.take_due(now_ns), self.faults.take_due(now_ns))):
            queue = self._queues.get(name)
            if queue is None or is_terminating(queue):
                self._retries.forget(name)
                continue
            writes += guarded(self.faults, name, queue, partial(self._sync, name, queue, states.get(name)))
        self._dirty.clear()
        return writes + self._commands.delete_executed(writes, now_ns)

    def _sync(self, name: str, queue: Obj, asked: str | None) -> list[Write]:
        writes: list[Write] = []
        status = queue.get("status") or {}
        counts = self._counts.get(name) or Counter[str]()
        state = asked or status.get("state") or "Open"
        follows = self._follows_parent(queue, state)
        if follows is not None:
            state = follows
            mark = "true" if state == "Closed" else None
            annotations = {"metadata": {"annotations": {volcano.CLOSED_BY_PARENT: mark}}}
            writes.append(Patch(Ref(volcano.QUEUE, "", name), annotations, uid=uid_of(queue)))
        wanted = {"state": state} | {phase.lower(): counts[phase] for phase in PHASES}
        patch = difference(status, wanted)
        if patch:
            ref = Ref(volcano.QUEUE, "", name)
            writes.append(Patch(ref, {"status": patch}, subresource="status", uid=uid_of(queue)))
        else:
            self._retries.forget(name)
        return writes

    def _follows_parent(self, queue: Obj, state: str) -> str | None:
        """The state that a queue takes over from its parent: Closed with it, Open again with it; else `None`."""
        parent = self._queues.get(parent_of(queue))
        if parent is None or name_of(parent) == volcano.ROOT_QUEUE:
            return None
        closed = state_of(parent) in CLOSED
        if closed and state not in CLOSED:
            return "Closed"
        marked = annotations_of(queue).get(volcano.CLOSED_BY_PARENT) == "true"
        return "Open" if marked and not closed else None

    def _execute_commands(self, writes: list[Write], now_ns: int) -> dict[str, str]:
        """The states that Commands ask for, by queue; the last one wins, and none is executed twice."""
        states: dict[str, str] = {}
        for command in self._commands.take(now_ns):
            with refused_on_fault(self.faults, command, writes):
                self._execute(command, states, writes)
        return states

    def _execute(self, command: Obj, states: dict[str, str], writes: list[Write]) -> None:
        action, name = command.get("action") or "", target_of(command).get("name")
        state = STATE_BY_COMMAND.get(action)
        if state is None:
            writes += refuse(command, f"unknown action {action!r} (for a queue: {', '.join(STATE_BY_COMMAND)})")
        elif not isinstance(name, str) or name not in self._queues:
            writes += refuse(command, f"{action}: there is no Queue {name or 'without a name'}")
        elif state == "Open" and self._follows_parent(self._queues[name], state) == "Closed":
            parent = parent_of(self._queues[name])
            writes += refuse(command, f"{action}: queue {name} is closed with its parent {parent}")
        else:
            states[name] = state
            self._commands.mark_executing(command, Ref(volcano.QUEUE, "", name))

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """An outdated status is computed again when the watch delivers the newer queue, any other after a delay."""
        self._commands.refused(write, error, now_ns)
        if isinstance(write, Patch) and not is_superseded(error):
            self._retries.refuse(write.ref.name, now_ns)

    def due(self) -> int | None:
        return min((at for at in (self._retries.next(), self._commands.due()) if at is not None), default=None)
