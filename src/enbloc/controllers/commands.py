"""Commands (`bus.volcano.sh/v1alpha1`): what somebody asks for by hand, once, of a job or of a queue.

A Command is deleted once it was carried out, and also if nobody can: then a Warning tells why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.writes import Delete, EmitEvent, Patch, Refused, WatchEvent, Write
from enbloc.controllers.retry import Retries, watch_tells

QUEUE: Final = "Queue"
JOB: Final = "Job"


def target_of(command: Obj) -> dict[str, Any]:
    return command.get("target") or {}


def consumed(command: Obj) -> Delete:
    return Delete(Ref(volcano.COMMAND, namespace_of(command), name_of(command)), uid_of(command))


def cannot(command: Obj, why: str) -> list[Write]:
    """Nobody can do this: it is said, and the Command goes."""
    ref = Ref(volcano.COMMAND, namespace_of(command), name_of(command))
    return [EmitEvent(ref, uid_of(command), "Warning", "CommandRefused", why), consumed(command)]


class Commands:
    """Commands that have come and were not obeyed yet, in order; and those that were, until they are gone.

    A Command goes once what it asks for was written. If that was refused it is obeyed again after a while, and so is
    its own end.
    """

    def __init__(self, wanted: Callable[[Obj], bool]) -> None:
        self._wanted = wanted
        self._waiting: dict[str, Obj] = {}
        self._taken: dict[str, Obj] = {}
        self._obeyed: dict[str, Ref] = {}
        """By UID: to which object something is written for a Command."""
        self._retries: Retries[str] = Retries()

    def observe(self, event: WatchEvent) -> None:
        uid = uid_of(event.obj)
        if event.type == "DELETED":
            for known in (self._waiting, self._taken, self._obeyed):
                known.pop(uid, None)
            self._retries.forget(uid)
        elif event.type == "ADDED" and self._wanted(event.obj) and not event.obj["metadata"].get("deletionTimestamp"):
            self._waiting[uid] = event.obj

    def take(self, now: int) -> list[Obj]:
        """The Commands to obey now; each is handed out once."""
        self._retries.take_due(now)
        found = [command for uid, command in self._waiting.items() if not self._retries.waits(uid, now)]
        for command in found:
            self._taken[uid_of(command)] = self._waiting.pop(uid_of(command))
        return found

    def put_back(self, command: Obj) -> None:
        """Its turn has not come."""
        self._waiting[uid_of(command)] = self._taken.pop(uid_of(command))

    def obey(self, command: Obj, ref: Ref) -> None:
        """What it asks of an object is being written."""
        self._obeyed[uid_of(command)] = ref

    def consume(self, writes: Iterable[Write], now: int) -> list[Write]:
        """Commands that were obeyed go; not those for which something is among the `writes` that are only now sent."""
        sent = {write.ref for write in writes if isinstance(write, Patch)}
        found = [uid for uid, ref in self._obeyed.items() if ref not in sent and not self._retries.waits(uid, now)]
        for uid in found:
            del self._obeyed[uid]
        return [consumed(self._taken[uid]) for uid in found]

    def refused(self, write: Write, error: Refused, now: int) -> None:
        """A write was refused: if it was for a Command, or its end, it is tried again after a while."""
        match write:
            case Delete(ref=ref, uid=uid) if uid in self._taken and not watch_tells(error):
                self._obeyed[uid] = ref
                self._retries.refuse(uid, now)
            case Patch():
                for uid in [uid for uid, ref in self._obeyed.items() if ref == write.ref]:
                    del self._obeyed[uid]
                    self._waiting[uid] = self._taken.pop(uid)
                    self._retries.refuse(uid, now)

    def due(self) -> int | None:
        return self._retries.next()


def is_for_queue(command: Obj) -> bool:
    return target_of(command).get("kind") == QUEUE
