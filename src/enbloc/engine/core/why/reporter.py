"""Reports why gangs wait: as decisions to write conditions and events, once each, and as a list for people (G10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.feature import Feature, Features
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.cause import Cause, cause_of
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.impossible import Impossibilities
from enbloc.engine.core.why.partial_fit import fragments
from enbloc.engine.core.why.rewrites import Report, Rewrites
from enbloc.engine.decisions import Decision, Pending, Waits
from enbloc.faults import last_line
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

NUMBERS_EVERY_NS: Final = 30 * SECOND
"""A text of which only numbers changed is written at most this often, and never on every pod (G10)."""
_NUMBER: Final = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:[numkKMGTPE]i?)?(?![\w-])")


class _Reported:
    """What was last reported of a gang."""

    __slots__ = ("missing", "numbers_after_ns", "object_uid", "of_gang", "pods", "text")

    def __init__(self, object_uid: str) -> None:
        self.object_uid = object_uid
        self.text = ""
        self.missing: Mapping[str, int] = {}
        self.numbers_after_ns = 0
        """From when on numbers alone may be written again."""
        self.of_gang = False
        """Whether the gang's own object says so, and not only its pods."""
        self.pods: dict[str, PendingReason] | None = None
        """UID → reason of the pods that say so; `None`: not reported with this text."""


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
        self._reported: dict[GangKey, _Reported] = {}
        self._impossibilities = Impossibilities(state)
        self._now_ns = 0
        self._late: dict[GangKey, tuple[GangState, Diagnosis, bool]] = {}
        """Numbers that changed too soon after they were written."""
        self._gangs = Rewrites()
        """Gangs that say the same as before of other numbers of pods, or behind another gang."""
        self._pods = Rewrites()
        """The same of their pods."""

    def gang_gone(self, gang: GangState) -> None:
        self._reported.pop(gang.key, None)
        self._forget_late(gang.key)

    def _forget_late(self, key: GangKey) -> None:
        self._late.pop(key, None)
        self._gangs.drop(key)
        self._pods.drop(key)

    def _of(self, gang: GangState) -> _Reported:
        known = self._reported.get(gang.key)
        if known is None or known.object_uid != gang.spec.object_uid:  # nothing was written on another object yet
            known = self._reported[gang.key] = _Reported(gang.spec.object_uid)
        return known

    def cycle_begins(self, now_ns: int) -> None:
        """Writes the numbers that came too soon after others, once their time has come."""
        self._now_ns = now_ns
        for key, (gang, why, of_gang) in list(self._late.items()):
            if now_ns >= self._reported[key].numbers_after_ns:
                del self._late[key]
                if self._state.gangs.get(key) is gang and is_pending(gang):
                    self.report(gang, why, of_gang)
        for late in self._gangs.admitted(now_ns, lambda gang: 1):
            if self._still_waits(late.gang):
                self._rewrite(late)
        for late in self._pods.admitted(now_ns, _pods_of):
            if self._still_waits(late.gang):
                self._of(late.gang).pods = None
                self.report(*late)

    def _still_waits(self, gang: GangState) -> bool:
        return gang.key in self._reported and is_reportable(gang)

    def due(self) -> int | None:
        numbers_ns = (self._reported[key].numbers_after_ns for key in self._late)
        late_ns = (one for one in (self._gangs.due_ns(), self._pods.due_ns()) if one is not None)
        return min((*numbers_ns, *late_ns), default=None)

    def report(self, gang: GangState, why: Diagnosis, of_gang: bool, also: Sequence[Task] = ()) -> None:
        """Decides that a gang's object, if `of_gang`, and its pods say why it waits, unless they do already (G10). The
        object of a gang of minimum 0 of which nothing has started says so, too."""
        of_gang = of_gang or is_unstarted(gang)
        message = self._message(gang, why)
        text = f"{why.reason}: {message}"
        known = self._of(gang)
        is_new_of_gang = of_gang and not known.of_gang  # its surplus said it before: now its minima lack the pods
        if of_gang:
            known.of_gang = True
        elif known.of_gang and (gang.ready() or gang.satisfied):  # only its surplus waits by now
            self.withdraw(gang)
            known = self._of(gang)
        self._late.pop(gang.key, None)
        self._pods.renew(Report(gang, why, of_gang))
        numbers_alone = known.text != text and known.missing == why.missing and shape(known.text) == shape(text)
        numbers_alone = numbers_alone and not is_new_of_gang
        if numbers_alone and known.pods is not None and self._report_numbers(gang, why, of_gang):
            return
        if known.text != text and not numbers_alone:
            if known.pods is not None and not also and not is_new_of_gang and _is_alike(known, why, text):
                self._rewrite_in_turn(Report(gang, why, of_gang))
                return
            known.pods = None
            self._forget_late(gang.key)
        self._gangs.drop(gang.key)
        if known.pods is None or known.text != text:
            known.text, known.missing = text, why.missing
        elif of_gang and not gang.total_pending and not is_new_of_gang:
            return
        held = [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []
        said = known.pods or {}
        reasons = self._reasons(gang, why, [*pending_tasks(gang), *held, *also])
        waiting = [task for task, reason in reasons if said.get(task.uid) is not reason]
        if not waiting and known.pods is not None and not is_new_of_gang:
            return
        known.pods = {uid: reason for uid, reason in said.items() if uid in gang.tasks}
        self._decide_waits(Report(gang, why, of_gang), waiting, of_gang)

    def _report_numbers(self, gang: GangState, why: Diagnosis, of_gang: bool) -> bool:
        """Only numbers changed: they are written once for the gang, on its object or else on its first pod, and not
        more often than every 30 s. Whether there is nothing more to report: no pod that has said nothing yet."""
        known = self._of(gang)
        if self._now_ns < known.numbers_after_ns:
            self._late[gang.key] = (gang, why, of_gang)
        elif self._gangs.admit(Report(gang, why, of_gang), 1, self._now_ns):
            self._rewrite(Report(gang, why, of_gang))
        return not self._unreported(gang, why)

    def _rewrite_in_turn(self, report: Report) -> None:
        """The same roles wait for the same reason as before. A bounded number of gangs says so at a time; pods that
        have said nothing yet say it now."""
        if self._gangs.admit(report, 1, self._now_ns):
            self._rewrite(report)
        else:
            self._decide_waits(report, self._unreported(report.gang, report.why), of_gang=False)

    def _rewrite(self, report: Report) -> None:
        """The gang's object says it, or its first pod if it has none; all its pods, if it is their turn and more than
        a number is another."""
        gang, why, of_gang = report
        known = self._of(gang)
        numbers_alone = known.missing == why.missing and why.reason is not PendingReason.BLOCKED_BY_FIFO
        known.text, known.missing = f"{why.reason}: {self._message(gang, why)}", why.missing
        if numbers_alone:
            known.numbers_after_ns = self._now_ns + NUMBERS_EVERY_NS
        elif self._pods.admit(report, _pods_of(gang), self._now_ns):
            known.pods = None
            self.report(gang, why, of_gang)
            return
        first = () if gang.spec.object is not None and of_gang else pending_tasks(gang)[:1]
        self._decide_waits(
            report, [*first, *self._unreported(gang, why, first)] if not numbers_alone else first, of_gang
        )

    def _unreported(self, gang: GangState, why: Diagnosis, but: Sequence[Task] = ()) -> list[Task]:
        """Pods of which it was not reported why they wait, or with another reason."""
        said = self._of(gang).pods or {}
        reasons = self._reasons(gang, why, pending_tasks(gang))
        return [task for task, reason in reasons if said.get(task.uid) is not reason and task not in but]

    def _decide_waits(self, report: Report, tasks: Sequence[Task], of_gang: bool) -> None:
        """The decision that the gang's object, if `of_gang`, and these pods say it."""
        gang, why, _ = report
        known = self._of(gang)
        if not tasks and not of_gang:
            return
        reasons = {task.uid: reason for task, reason in self._reasons(gang, why, tasks)}
        known.pods = (known.pods or {}) | reasons
        pods = tuple((task.namespace, task.name, task.uid) for task in tasks)
        other = {uid: str(reason) for uid, reason in reasons.items() if reason is not why.reason}
        message = self._message(gang, why)
        self._decide(Waits(gang.key, why.reason, message, pods, of_gang, self._own(gang, why, tasks), other))

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

    def _own(self, gang: GangState, why: Diagnosis, tasks: Sequence[Task]) -> dict[str, str]:
        """What the pods of each role say, where that is not what the gang says."""
        if not why.of_roles:
            return {}
        complete = self._completion(gang, why)
        texts = {role: complete(text) for role, text in why.of_roles.items()}
        return {task.uid: texts[task.role] for task in tasks if task.role in texts}

    def _message(self, gang: GangState, why: Diagnosis) -> str:
        """The message of the diagnosis, what the nodes prove, and where room is claimed for the gang."""
        return self._completion(gang, why)(why.message)

    def _completion(self, gang: GangState, why: Diagnosis) -> Callable[[str], str]:
        """What is added to each message of the gang: it has one for each role, and what is added is the same."""
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
        known = self._of(gang)
        known.text = "reported before the restart"
        known.of_gang = True

    def withdraw(self, gang: GangState) -> None:
        """What was reported of the gang no longer holds (G10)."""
        known = self._reported.pop(gang.key, None)
        self._forget_late(gang.key)
        if known is not None and known.text and known.object_uid == gang.spec.object_uid:
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
                message = self._message(gang, why)
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


def shape(text: str) -> str:
    """The text without its numbers."""
    return _NUMBER.sub("#", text)


def _pods_of(gang: GangState) -> int:
    """How many pods say why it waits."""
    return gang.total_pending + gang.total_held


def _is_alike(known: _Reported, why: Diagnosis, text: str) -> bool:
    """Whether the same roles wait for the same reason, but for how many pods of them, or behind which gang."""
    if why.reason is PendingReason.BLOCKED_BY_FIFO:
        return known.text.startswith(f"{why.reason}: ")
    return known.missing.keys() == why.missing.keys() and _singular(known.text) == _singular(text)


def _singular(text: str) -> str:
    """The text of one pod, whatever its number."""
    return shape(text).replace("pods", "pod").replace("do not", "does not")


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
    if (
        not invalid
        and not is_unstarted(gang)
        and (gang.ready() or ((gang.satisfied or gang.status.finished) and not gang.total_pending))
    ):
        return False
    if not gang.tasks:
        return gang.spec.object is not None or bool(gang.spec.failed_create)
    if not any(task.ours for task in gang.tasks.values()):
        return False
    return gang.spec.object is not None or any(task.status is not TaskStatus.RELEASING for task in gang.tasks.values())


def is_unstarted(gang: GangState) -> bool:
    """Whether a gang of minimum 0 waits with all its pods."""
    if gang.spec.minimum or gang.total_occupied:
        return False
    return bool(gang.total_pending) or any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values())
