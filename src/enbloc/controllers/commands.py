"""Commands (`bus.volcano.sh/v1alpha1`): what somebody asks for by hand, once, of a job or of a queue.

A Command is deleted once it was carried out, and also if nobody can: then a Warning tells why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.writes import Delete, EmitEvent, WatchEvent, Write

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
    """Commands that have come and were not obeyed yet, in order."""

    def __init__(self, wanted: Callable[[Obj], bool]) -> None:
        self._wanted = wanted
        self._waiting: dict[str, Obj] = {}

    def observe(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._waiting.pop(uid_of(event.obj), None)
        elif event.type == "ADDED" and self._wanted(event.obj) and not event.obj["metadata"].get("deletionTimestamp"):
            self._waiting[uid_of(event.obj)] = event.obj

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, fits: Callable[[Obj], bool]) -> list[Obj]:
        """The Commands that fit now; each is handed out once."""
        found = [command for command in self._waiting.values() if fits(command)]
        for command in found:
            del self._waiting[uid_of(command)]
        return found


def is_for_queue(command: Obj) -> bool:
    return target_of(command).get("kind") == QUEUE
