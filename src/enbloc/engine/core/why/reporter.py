"""Says why gangs wait: as decisions, whenever a gang has something else to say, and as a list for people (G10).

Which of these decisions are written, and when, is the runtime's part (`runtime.waits_written`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import msgspec

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.feature import Feature, Features
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.cause import Cause, cause_of
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.impossible import Impossibilities
from enbloc.engine.core.why.partial_fit import fragments
from enbloc.engine.decisions import Decision, Pending, Waits
from enbloc.faults import last_line
from enbloc.gangs.model import GangKey


class _Said(msgspec.Struct):
    """What a gang says of why it waits."""

    object_uid: str
    of_gang: bool = False
    """Whether it said so of its minima, and not only of its surplus."""
    last: tuple[Diagnosis, bool] | None = None
    """As it was reported last; `None`: before a restart."""
    waits: Waits | None = None
    """As it was decided last."""


class Reporter(Feature):
    def __init__(
        self,
        state: State,
        decide: Callable[[Decision], None],
        surplus: Callable[[GangState], Set[str]],
        features: Features,
    ) -> None:
        """`surplus`: the UIDs of pending tasks that a gang does not need to start."""
        self._state = state
        self._decide = decide
        self._features = features
        self._surplus = surplus
        self._said: dict[GangKey, _Said] = {}
        self._again: Sequence[GangKey] = ()
        self._impossibilities = Impossibilities(state)

    def gang_gone(self, gang: GangState) -> None:
        self._said.pop(gang.key, None)

    def repeat(self, gangs: Sequence[GangKey]) -> None:
        """In the next cycle these gangs say again why they wait, by their last report and in the words of then."""
        self._again = gangs

    def cycle_begins(self, now_ns: int) -> None:
        again, self._again = self._again, ()
        for key in again:
            gang, known = self._state.gangs.get(key), self._said.get(key)
            if gang is not None and known is not None and known.last is not None and is_reportable(gang):
                known.waits = self._waits(gang, *known.last)
                self._decide(known.waits)

    def _of(self, gang: GangState) -> _Said:
        known = self._said.get(gang.key)
        if known is None or known.object_uid != gang.spec.object_uid:  # nothing was said of another object yet
            known = self._said[gang.key] = _Said(gang.spec.object_uid)
        return known

    def report(self, gang: GangState, why: Diagnosis, of_gang: bool, also: Sequence[Task] = ()) -> None:
        """Decides that a gang, if `of_gang`, and its pods wait for this reason, unless they said so last (G10). A gang
        of minimum 0 of which nothing has started says so, too."""
        if self._features.says_later(gang):
            return
        of_gang = of_gang or is_unstarted(gang)
        known = self._of(gang)
        if known.of_gang and not of_gang and (gang.need.ready or gang.satisfied):  # only its surplus waits by now
            self.withdraw(gang)
            known = self._of(gang)
        anew = known.waits is None or (of_gang and not known.of_gang)  # or until now its surplus said it
        known.of_gang = known.of_gang or of_gang
        waits, known.last = self._waits(gang, why, of_gang, also), (why, of_gang)
        if waits != known.waits:
            self._decide(msgspec.structs.replace(waits, anew=True) if anew else waits)
            known.waits = waits

    def _waits(self, gang: GangState, why: Diagnosis, of_gang: bool, also: Sequence[Task] = ()) -> Waits:
        complete = self._completion(gang, why)
        message = complete(why.message)
        own = {role: complete(text) for role, text in why.of_roles.items()}
        held = [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []
        reasons = self._reasons(gang, why, [*pending_tasks(gang), *held, *also])
        pods = tuple((task.uid, reason, own.get(task.role, message)) for task, reason in reasons)
        return Waits(gang.key, why.reason, message, pods, of_gang, why.missing)

    def _reasons(self, gang: GangState, why: Diagnosis, tasks: Sequence[Task]) -> list[tuple[Task, PendingReason]]:
        """Each with the reason that its pod carries (E1)."""
        of_minimum = diagnosis.reason_of_pods(why)
        if of_minimum is not PendingReason.UNSCHEDULABLE:
            return [(task, of_minimum) for task in tasks]
        freed = {task.uid for task in gang.tasks.values() if task.status is TaskStatus.NOMINATED}
        if gang.satisfied:
            return [(task, PendingReason.PREEMPTING if task.uid in freed else of_minimum) for task in tasks]
        surplus = self._surplus(gang)
        first = PendingReason.PREEMPTING if freed else of_minimum
        return [(task, PendingReason.SURPLUS if task.uid in surplus else first) for task in tasks]

    def _completion(self, gang: GangState, why: Diagnosis) -> Callable[[str], str]:
        """Adds to each message of the gang, of which it has one for each role, what the nodes prove and where room is
        claimed for it."""
        added = [f"; {note}" for note in self._features.explain(gang, why.reason)]
        if proved := self._impossibilities.of(gang, why.reason):
            added.append(f". {proved}")
        evicted = gang.spec.observed.evicted
        added += [f"; {one}" for one in ([evicted] if evicted else []) + [*self._features.about_room(gang)]]

        def complete(message: str) -> str:
            for one in added:
                message = f"{message.removesuffix('.')}{one}"
            return message

        return complete

    def was_reported(self, gang: GangState) -> None:
        """The gang's object says that it waits, from before a restart: withdrawn if that no longer holds."""
        self._of(gang).of_gang = True

    def withdraw(self, gang: GangState) -> None:
        """What was reported of the gang no longer holds (G10)."""
        known = self._said.pop(gang.key, None)
        if known is not None and known.object_uid == gang.spec.object_uid:
            self._decide(Waits(gang.key, "", "", (), True))

    def causes(self, why_of: Callable[[GangState], Diagnosis | None]) -> dict[str, Cause]:
        """By title, what each gang waits for whose minima are not all placed; no sentence is made for it."""
        found = {}
        for gang in self._state.gangs.values():
            if is_pending(gang):
                why = why_of(gang) or next_to_be_attempted(gang)
                found[gang.spec.title] = cause_of(why.reason, why.reasons, why.level)
        return found

    def pending(self, why_of: Callable[[GangState], Diagnosis | None]) -> list[Pending]:
        """Every gang whose minima are not all placed, and why (G10)."""
        found = []
        known: dict[tuple[int, int], str] = {}
        for gang in self._state.gangs.values():
            if not is_pending(gang):
                continue
            try:
                why = why_of(gang) or next_to_be_attempted(gang)
                message = self._completion(gang, why)(why.message)
                if pieces := fragments(self._state, gang, why, known):
                    message = f"{message.removesuffix('.')}. {pieces}"
            except Exception as failure:  # S8
                message = last_line(failure)
                why = Diagnosis(PendingReason.INTERNAL_ERROR, message)
            found.append(
                Pending(
                    gang.spec.title,
                    gang.spec.dialect or gang.key.dialect,
                    why.reason,
                    dict(why.missing),
                    message,
                    tuple(why.reasons),
                    gang.spec.queue,
                    gang.priority,
                    self._features.expected_start(gang),
                )
            )
        return sorted(found, key=lambda one: (one.gang, one.dialect))


def next_to_be_attempted(gang: GangState) -> Diagnosis:
    """Of a gang that nothing keeps waiting."""
    return diagnosis.problem(gang, "is next to be attempted")


def is_reportable(gang: GangState) -> bool:
    """Whether it waits: its minima are not all placed, or surplus waits. Nothing is reported of a gang whose pods all
    run, whatever gangs that it started with wait for (G10, K9)."""
    return gang.total_pending > 0 or is_pending(gang)


def is_pending(gang: GangState) -> bool:
    """Whether its minima are not all placed, and it is ours to place."""
    invalid = bool(gang.spec.problem or gang.spec.fault) and gang.total_pending > 0
    return (invalid or is_unstarted(gang) or not _is_placed(gang)) and _is_ours(gang)


def _is_placed(gang: GangState) -> bool:
    return gang.need.ready or ((gang.satisfied or gang.status.finished) and not gang.total_pending)


def _is_ours(gang: GangState) -> bool:
    has_object, tasks = gang.spec.object is not None, gang.tasks.values()
    if not tasks:
        return has_object or bool(gang.spec.failed_create)
    if not any(task.ours for task in tasks):
        return False
    return has_object or any(task.status is not TaskStatus.RELEASING for task in tasks)


def is_unstarted(gang: GangState) -> bool:
    """Whether a gang of minimum 0 waits with all its pods."""
    if gang.minima.total or gang.total_occupied:
        return False
    return bool(gang.total_pending) or any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values())
