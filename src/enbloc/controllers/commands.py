"""Commands (`bus.volcano.sh/v1alpha1`): one action on a job or a queue, requested by hand.

A Command is deleted once it was executed, and also if it cannot be: then a Warning event says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.writes import Delete, EmitEvent, Patch, Refused, WatchEvent, Write
from enbloc.controllers.guarded import message
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.faults import Faults

QUEUE: Final = "Queue"
JOB: Final = "Job"


def target_of(command: Obj) -> dict[str, Any]:
    return command.get("target") or {}


def is_for_queue(command: Obj) -> bool:
    return target_of(command).get("kind") == QUEUE


def delete_command(command: Obj) -> Delete:
    return Delete(Ref(volcano.COMMAND, namespace_of(command), name_of(command)), uid_of(command))


def refuse(command: Obj, why: str) -> list[Write]:
    """A Command that cannot be executed: a Warning event, and the Command is deleted."""
    ref = Ref(volcano.COMMAND, namespace_of(command), name_of(command))
    return [EmitEvent(ref, uid_of(command), "Warning", "CommandRefused", why), delete_command(command)]


@contextmanager
def refused_on_fault(faults: Faults[str], command: Obj, writes: list[Write]) -> Iterator[None]:
    """A Command that makes this program fail is refused (S8)."""
    try:
        yield
    except Exception as failure:
        faults.add(uid_of(command), failure)
        writes += refuse(command, message(failure))


class Commands:
    """The Commands for one kind of target, in order of arrival, from their creation to their deletion.

    A Command is deleted after what it asks for was written. If that write, or the deletion, was refused, it is tried
    again after a delay.
    """

    def __init__(self, is_ours: Callable[[Obj], bool]) -> None:
        self._is_ours = is_ours
        self._waiting: dict[str, Obj] = {}
        self._handed_out: dict[str, Obj] = {}
        self._executing: dict[str, Ref] = {}
        """By UID: the object that is patched for a Command."""
        self._retries: Retries[str] = Retries()

    def observe(self, event: WatchEvent) -> None:
        uid = uid_of(event.obj)
        if event.type == "DELETED":
            for known in (self._waiting, self._handed_out, self._executing):
                known.pop(uid, None)
            self._retries.forget(uid)
        elif event.type == "ADDED" and self._is_ours(event.obj) and not event.obj["metadata"].get("deletionTimestamp"):
            self._waiting[uid] = event.obj

    def take(self, now_ns: int) -> list[Obj]:
        """The Commands to execute now; each is handed out once."""
        self._retries.take_due(now_ns)
        found = [command for uid, command in self._waiting.items() if not self._retries.waits(uid, now_ns)]
        for command in found:
            self._handed_out[uid_of(command)] = self._waiting.pop(uid_of(command))
        return found

    def put_back(self, command: Obj) -> None:
        """Another Command for the same object comes first."""
        self._waiting[uid_of(command)] = self._handed_out.pop(uid_of(command))

    def mark_executing(self, command: Obj, ref: Ref) -> None:
        """Its patch of `ref` is among the writes of this reconcile."""
        self._executing[uid_of(command)] = ref

    def delete_executed(self, writes: Iterable[Write], now_ns: int) -> list[Write]:
        """Deletions of executed Commands, but for those whose patch is among `writes` and only sent now."""
        sent = {write.ref for write in writes if isinstance(write, Patch)}
        found = [
            uid for uid, ref in self._executing.items() if ref not in sent and not self._retries.waits(uid, now_ns)
        ]
        for uid in found:
            del self._executing[uid]
        return [delete_command(self._handed_out[uid]) for uid in found]

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """A write was refused: if it was a Command's patch or deletion, it is tried again after a delay."""
        match write:
            case Delete(ref=ref, uid=uid) if uid in self._handed_out and not is_superseded(error):
                self._executing[uid] = ref
                self._retries.refuse(uid, now_ns)
            case Patch():
                for uid in [uid for uid, ref in self._executing.items() if ref == write.ref]:
                    del self._executing[uid]
                    self._waiting[uid] = self._handed_out.pop(uid)
                    self._retries.refuse(uid, now_ns)

    def due(self) -> int | None:
        return self._retries.next()
