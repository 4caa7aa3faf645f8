"""Usage over time between Queues and the engine (G12): the record that a Queue carries, and the write of a new one."""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, annotations_of, name_of, uid_of
from enbloc.api.writes import Patch
from enbloc.engine.decisions import RecordUsage
from enbloc.engine.queueing.usage import Usage
from enbloc.gangs import usage_records
from enbloc.runtime.own_records import OwnRecords
from enbloc.runtime.write_plans import Step, WritePlan


class UsageOnQueues:
    def __init__(self, usage: Usage, records: OwnRecords) -> None:
        self._usage = usage
        self._records = records
        self._queues: dict[str, Obj] = {}

    def observe(self, queue: Obj, gone: bool) -> None:
        """`queue`: with the record that counts (S2)."""
        name = name_of(queue)
        if gone:
            self._queues.pop(name, None)
            self._usage.forget(name)
            return
        self._queues[name] = queue
        self._usage.observe(name, usage_records.read(annotations_of(queue).get(usage_records.ANNOTATION)))

    def write(self, decision: RecordUsage) -> Iterator[WritePlan]:
        queue = self._queues.get(decision.queue)
        if queue is not None:
            usage = self._records.usage(queue, usage_records.write(decision.record))
            patch = Patch(ref_of(queue), {"metadata": {"annotations": usage}}, uid=uid_of(queue))
            yield WritePlan(decision, (decision.gang,), (Step((patch,)),), informs=True)
