"""The order in which the missing pods of the QueueJobs of a namespace are created (A4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot


class MissingPods(msgspec.Struct, frozen=True):
    """The pods that a job lacks, in its own order; the first `minimum` of them belong to its minimum."""

    plan: QueueJobPlan
    slots: Sequence[Slot]
    minimum: int


def creation_order(wanted: Sequence[MissingPods]) -> Iterator[tuple[QueueJobPlan, Slot]]:
    """First each job's minimum, job by job in the given order; then the rest, round robin over jobs."""
    for one in wanted:
        for slot in one.slots[: one.minimum]:
            yield one.plan, slot
    rests = [(one.plan, one.slots[one.minimum :]) for one in wanted]
    for order_key in range(max((len(slots) for _, slots in rests), default=0)):
        for plan, slots in rests:
            if order_key < len(slots):
                yield plan, slots[order_key]
