"""Reports why gangs wait: as decisions to write conditions and events, once each, and as a list for people (G10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from enbloc.engine.decisions import Decision, Pending, Waits
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.diagnosis.impossible import Impossibilities
from enbloc.engine.follower import Follower
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus, pending_tasks
from enbloc.gangs.model import GangKey


class ClaimedRoom(Protocol):
    """What the reporter asks of claims."""

    def reserved(self, gang: GangState) -> Mapping[str, str]:
        """Task UID → node."""
        ...

    def nominated(self, gang: GangState) -> Sequence[Task]: ...

    def notes_of(self, gang: GangState) -> Sequence[str]:
        """Why it has no claim."""
        ...


class _Reported:
    """What was last reported of a gang."""

    __slots__ = ("object_uid", "of_gang", "pods", "text")

    def __init__(self, object_uid: str) -> None:
        self.object_uid = object_uid
        self.text = ""
        self.of_gang = False
        """Whether the gang's own object says so, and not only its pods."""
        self.pods: set[str] | None = None
        """UIDs of the pods that say so; `None`: not reported with this text."""


class Reporter(Follower):
    def __init__(self, state: State, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._decide = decide
        self._reported: dict[GangKey, _Reported] = {}
        self._impossibilities = Impossibilities(state)
        self.claims: ClaimedRoom | None = None
        """Set by the engine: claims are made above this floor."""

    def gang_gone(self, gang: GangState) -> None:
        self._reported.pop(gang.key, None)

    def _of(self, gang: GangState) -> _Reported:
        known = self._reported.get(gang.key)
        if known is None or known.object_uid != gang.spec.object_uid:  # nothing was written on another object yet
            known = self._reported[gang.key] = _Reported(gang.spec.object_uid)
        return known

    def report(self, gang: GangState, why: Diagnosis, of_gang: bool, also: Sequence[Task] = ()) -> None:
        """Decides that a gang's object, if `of_gang`, and its pods say why it waits, unless they do already (G10)."""
        message = self._message(gang, why)
        text = f"{why.reason}: {message}"
        known = self._of(gang)
        if of_gang:
            known.of_gang = True
        elif known.of_gang and (gang.ready() or gang.satisfied):  # only its surplus waits by now
            self.withdraw(gang)
            known = self._of(gang)
        if known.text != text:
            known.text, known.pods = text, None
        elif of_gang and known.pods is not None and not gang.total_pending:
            return
        held = [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []
        said = known.pods or set()
        waiting = [task for task in [*pending_tasks(gang), *held, *also] if task.uid not in said]
        if not waiting and known.pods is not None:
            return
        known.pods = {uid for uid in said if uid in gang.tasks}.union(task.uid for task in waiting)
        pods = tuple((task.namespace, task.name, task.uid) for task in waiting)
        self._decide(Waits(gang.key, why.reason, message, pods, of_gang))

    def _message(self, gang: GangState, why: Diagnosis) -> str:
        """The message of the diagnosis, what the nodes prove, and where room is claimed for the gang."""
        proved = self._impossibilities.of(gang, why.reason)
        message = f"{why.message.removesuffix('.')}. {proved}" if proved else why.message
        return self._with_claims(gang, message)

    def _with_claims(self, gang: GangState, message: str) -> str:
        """The message, and where room is claimed for the gang, or why none is."""
        if self.claims is None:
            return message
        for note in self.claims.notes_of(gang):
            message = f"{message.removesuffix('.')}; {note}"
        reserved = self.claims.reserved(gang)
        nodes = sorted({*reserved.values(), *(task.node for task in self.claims.nominated(gang))})
        if not nodes:
            return message
        where = f"{', '.join(nodes[:5])}{f' and {len(nodes) - 5} more nodes' if len(nodes) > 5 else ''}"
        verb = "is reserved" if reserved else "is being freed"
        return f"{message.removesuffix('.')}; room {verb} for it on {where}"

    def was_reported(self, gang: GangState) -> None:
        """The gang's object says that it waits, from before a restart: withdrawn if that no longer holds."""
        known = self._of(gang)
        known.text = "reported before the restart"
        known.of_gang = True

    def withdraw(self, gang: GangState) -> None:
        """What was reported of the gang no longer holds (G10)."""
        known = self._reported.pop(gang.key, None)
        if known is not None and known.text and known.object_uid == gang.spec.object_uid:
            self._decide(Waits(gang.key, "", "", (), True))

    def pending(
        self, why_of: Callable[[GangState], Diagnosis | None], start_of: Callable[[GangState], int | None]
    ) -> list[Pending]:
        """Every gang whose minima are not all placed, and why (G10)."""
        found = []
        for gang in self._state.gangs.values():
            if not is_pending(gang):
                continue
            why = why_of(gang) or next_to_be_attempted(gang)
            found.append(
                Pending(
                    gang.spec.title,
                    gang.spec.dialect or gang.key.dialect,
                    why.reason,
                    dict(why.missing),
                    self._message(gang, why),
                    tuple(why.reasons),
                    gang.spec.queue,
                    gang.priority,
                    start_of(gang),
                )
            )
        return sorted(found, key=lambda one: (one.gang, one.dialect))


def next_to_be_attempted(gang: GangState) -> Diagnosis:
    """Of a gang that nothing keeps waiting."""
    return diagnosis.problem(gang, "is next to be attempted")


def is_pending(gang: GangState) -> bool:
    """Whether its minima are not all placed, and it is ours to place."""
    invalid = bool(gang.spec.problem) and gang.total_pending > 0
    waiting = gang.total_pending or any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values())
    unstarted = not gang.spec.minimum and not gang.total_occupied and waiting  # nothing of it is bound
    if (
        not invalid
        and not unstarted
        and (gang.ready() or ((gang.satisfied or gang.status.finished) and not gang.total_pending))
    ):
        return False
    if not gang.tasks:
        return gang.spec.object is not None
    if not any(task.ours for task in gang.tasks.values()):
        return False
    return gang.spec.object is not None or any(task.status is not TaskStatus.RELEASING for task in gang.tasks.values())
