"""What a decision asks to be written, as values; and the plain way to carry it out, one write after the other.

The scheduler makes errands and notices and knows nothing of how they are carried out. An errand is what a decision
*is*: its order counts, and so does every refusal. A notice is what is *said* about it, on objects and in Events: nobody
relies on it, and on one object only the latest counts. `carry_out` waits for each write in turn, as in virtual time;
`courier` has many on the way at once. Both keep to the same rules, which stand here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent, Write
from enbloc.engine.decisions import Decision
from enbloc.gangs.model import GangKey


class Step(msgspec.Struct, frozen=True):
    """Writes that may go in any order, or all at once. A step begins when the one before it was answered."""

    writes: tuple[Write, ...]
    if_whole: bool = False
    """Whether it goes only if nothing of the errand was refused before. What is held back counts as refused."""
    may_fail: bool = False
    """Whether a refusal is of no consequence."""


class WritePlan(msgspec.Struct, frozen=True):
    """All that one decision asks to be written.

    Errands that name the same gang go one after the other, in the order in which they were decided. If one fails that
    others build upon (`is_base`), those of the same gangs that were decided before that was known and build upon it
    (`builds`) are not carried out: their writes count as refused (G11, D5).
    """

    decision: Decision
    gangs: tuple[GangKey, ...]
    steps: tuple[Step, ...]
    is_base: bool = False
    builds: bool = False
    aside: bool = False
    """Whether it only tells something: errands of the same gangs that decide neither wait for it nor hold it up."""
    doomed: bool = False
    """Whether it has failed before it began: what it should be written on is not there."""


class StatusUpdate(msgspec.Struct, frozen=True):
    """Something to be said about an object: conditions, a phase, an Event once they stand there."""

    gang: GangKey | None
    obj: Obj
    """The object as it was known when this was decided."""
    conditions: tuple[dict[str, Any], ...] = ()
    phase: str = ""
    """Given only where the phase is the scheduler's to set (M6): somebody waits for it, it is written in any case."""
    event: EmitEvent | None = None


def carry_out(errand: WritePlan, write: Callable[[Write], bool], refused: Callable[[WritePlan, Write], None]) -> bool:
    """Carries an errand out at once. Says whether all of it that counts was taken."""
    whole = not errand.doomed
    for step in errand.steps:
        for one in step.writes:
            taken = (whole or not step.if_whole) and write(one)
            if not taken and not step.may_fail:
                whole = False
                refused(errand, one)
    return whole


def drop(errand: WritePlan, refused: Callable[[WritePlan, Write], None]) -> None:
    """An errand that is not carried out, since what it builds upon failed."""
    for write in writes_that_count(errand):
        refused(errand, write)


def writes_that_count(errand: WritePlan) -> Iterable[Write]:
    return (write for step in errand.steps if not step.may_fail for write in step.writes)


def status_of(notice: StatusUpdate, known: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The status that a notice asks for, over the conditions that the object has; `None` if it says so already."""
    conditions = {one["type"]: one for one in known}
    changed = False
    for wanted in notice.conditions:
        before = conditions.get(wanted["type"])
        if before is None and wanted["type"] == "Unschedulable" and wanted["status"] == "False":
            continue  # nobody said otherwise
        if not notice.phase and before is not None:
            if all(before.get(key) == wanted[key] for key in ("status", "reason", "message")):
                continue
            if before.get("status") == wanted["status"]:
                stamp = before.get("lastTransitionTime", wanted["lastTransitionTime"])
                wanted = {**wanted, "lastTransitionTime": stamp}
        conditions[wanted["type"]] = wanted
        changed = True
    if notice.phase:
        return {"phase": notice.phase, "conditions": list(conditions.values())}
    return {"conditions": list(conditions.values())} if changed else None
