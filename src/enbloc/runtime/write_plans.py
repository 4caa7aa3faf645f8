"""What a decision asks to be written, as values: plans of writes whose order and refusals count, and status updates.

A `WritePlan` carries a decision out: Bindings, claim records, evictions. A `StatusUpdate` reports on it: conditions, a
phase, an Event; of one object only the latest counts, and nothing but a phase is waited for. `translate` makes both,
`executor` and `status_writer` write them.

An eviction is a deletion after the condition `DisruptionTarget`, not the eviction subresource. The subresource could
refuse the third victim when two are gone; budgets are respected where victims are chosen, for a plan as a whole (P2).
It would also refuse to evict a partial gang (G11), and replace our reason by its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent, Write
from enbloc.engine.decisions import Decision
from enbloc.gangs.model import GangKey


class Step(msgspec.Struct, frozen=True):
    """Writes that may be sent in any order or at once. A step starts when all writes of the one before are answered."""

    writes: tuple[Write, ...]
    if_accepted: bool = False
    """Sent only if no earlier write of the plan was refused. A write that is held back counts as refused."""
    may_fail: bool = False
    """A refusal has no consequence."""


class WritePlan(msgspec.Struct, frozen=True):
    """All that one decision asks to be written.

    Plans that name the same gang run one after the other, in the order of their decisions. When a plan fails that later
    ones rely on (`is_base`), plans of the same gangs that were decided before the failure was known and rely on it
    (`needs_base`) are not carried out: their writes count as refused (G11, D5).
    """

    decision: Decision | None
    """`None`: it writes back what others changed (S2)."""
    gangs: tuple[GangKey, ...]
    steps: tuple[Step, ...]
    is_base: bool = False
    needs_base: bool = False
    informs: bool = False
    """It only publishes something. Such plans of a gang form a line of their own: no Binding waits for them."""
    has_no_object: bool = False
    """The object to write on does not exist: the plan fails without a write."""

    def writes_that_count(self) -> Iterator[Write]:
        """The writes whose refusal has a consequence."""
        return (write for step in self.steps if not step.may_fail for write in step.writes)


class StatusUpdate(msgspec.Struct, frozen=True):
    """Conditions and a phase for an object's status, and an Event to emit once they are written."""

    gang: GangKey | None
    obj: Obj
    """The object as it was known when this was decided."""
    conditions: tuple[dict[str, Any], ...] = ()
    phase: str = ""
    """Set only where the scheduler owns the phase (M6): controllers wait for it, so it is written in any case."""
    event: EmitEvent | None = None


def conditions_of(obj: Obj) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def merged_status(update: StatusUpdate, known: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The status to write, over the conditions that the object has; `None` if they say the same already."""
    conditions = {one["type"]: one for one in known}
    changed = False
    for wanted in update.conditions:
        before = conditions.get(wanted["type"])
        if before is None and wanted["type"] == "Unschedulable" and wanted["status"] == "False":
            continue  # there is nothing to withdraw
        if not update.phase and before is not None:
            if all(before.get(key) == wanted[key] for key in ("status", "reason", "message")):
                continue
            if before.get("status") == wanted["status"]:
                stamp = before.get("lastTransitionTime", wanted["lastTransitionTime"])
                wanted = {**wanted, "lastTransitionTime": stamp}
        conditions[wanted["type"]] = wanted
        changed = True
    if update.phase:
        return {"phase": update.phase, "conditions": list(conditions.values())}
    return {"conditions": list(conditions.values())} if changed else None
