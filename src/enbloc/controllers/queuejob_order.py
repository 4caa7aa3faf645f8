"""Whose pod is made next, among the QueueJobs of a namespace (A4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot


class Wanted(msgspec.Struct, frozen=True):
    """The pods that a job lacks, in its own order; the first `minimum` of them are needed for its minimum."""

    plan: QueueJobPlan
    slots: Sequence[Slot]
    minimum: int


def in_turn(wanted: Sequence[Wanted]) -> Iterator[tuple[QueueJobPlan, Slot]]:
    """First what each job's minimum lacks, job by job in the order given; then the rest, one of each job in turn."""
    for one in wanted:
        for slot in one.slots[: one.minimum]:
            yield one.plan, slot
    rests = [(one.plan, one.slots[one.minimum :]) for one in wanted]
    for turn in range(max((len(slots) for _, slots in rests), default=0)):
        for plan, slots in rests:
            if turn < len(slots):
                yield plan, slots[turn]
