"""What an expected start assumes, or why none is known, in words."""

from __future__ import annotations

from enbloc.advice.candidates.others import gangs_in_the_way
from enbloc.advice.case import Case
from enbloc.api.reasons import PendingReason
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.listing import listed
from enbloc.units import format_duration

_FREED_BY_ENDS = frozenset(
    {
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.UNSCHEDULABLE,
        PendingReason.QUEUE_FULL,
        PendingReason.BLOCKED_BY_FIFO,
        PendingReason.HOLD_RELEASED,
    }
)


def assumption(case: Case, is_known: bool) -> str:
    others = gangs_in_the_way(case)
    if is_known:
        timed = [f"{gang.spec.title} {format_duration(gang.run_time_ns)}" for gang in others if gang.run_time_ns]
        return f"gangs run as long as expected: {listed(timed)}" if timed else "nothing else comes before it"
    if case.why.reason not in _FREED_BY_ENDS or not others:
        return "unknown: it waits for a change, not for the end of other gangs"
    ahead = [gang.spec.title for gang in others if not gang.total_occupied]
    if ahead:
        return f"unknown: it waits behind {listed(ahead)}"
    overdue = [gang.spec.title for gang in others if _is_overdue(gang, case.engine.now_ns)]
    if overdue:
        verb = "runs" if len(overdue) == 1 else "run"
        return f"unknown: {listed(overdue)} {verb} longer than expected"
    endless = [gang for gang in others if gang.run_time_ns is None]
    if endless:
        verb = "gives" if len(endless) == 1 else "give"
        return f"unknown: {listed([gang.spec.title for gang in endless])} {verb} no expected duration"
    return "unknown: the end of the gangs that run does not let it start"


def _is_overdue(gang: GangState, now_ns: int) -> bool:
    return any(
        task.since_ns is not None and task.run_time_ns is not None and task.since_ns + task.run_time_ns <= now_ns
        for task in gang.tasks.values()
        if task.status is TaskStatus.BOUND
    )
