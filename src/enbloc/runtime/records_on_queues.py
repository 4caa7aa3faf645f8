"""Records on Queues, between the API and the engine: usage over time (G12), and claims that lapsed (S9)."""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, annotations_of, name_of, uid_of
from enbloc.api.writes import Patch
from enbloc.engine.core.cycle import Parts
from enbloc.engine.decisions import RecordLapses, RecordUsage
from enbloc.engine.features.usage import Usage
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.gangs import lapse_records, usage_records
from enbloc.runtime.own_records import OwnRecords
from enbloc.runtime.write_plans import Step, WritePlan


class RecordsOnQueues:
    def __init__(self, parts: Parts, records: OwnRecords) -> None:
        self._usage = parts.features.find(Usage)
        self._later_room = parts.features.find(LaterRoom)
        self._records = records
        self._queues: dict[str, Obj] = {}

    def observe(self, queue: Obj, gone: bool) -> None:
        """`queue`: with the records that count (S2)."""
        name, annotations = name_of(queue), annotations_of(queue)
        if gone:
            self._queues.pop(name, None)
            for feature in (self._usage, self._later_room):
                if feature is not None:
                    feature.forget(name)
            return
        self._queues[name] = queue
        if self._later_room is not None:
            self._later_room.observe(name, lapse_records.read(annotations.get(lapse_records.ANNOTATION)))
        if self._usage is not None:
            self._usage.observe(name, usage_records.read(annotations.get(usage_records.ANNOTATION)))

    def observe_quota(self, obj: Obj, gone: bool) -> None:
        if self._later_room is not None:
            self._later_room.observe_quota(obj, gone)

    def write(self, decision: RecordUsage | RecordLapses) -> Iterator[WritePlan]:
        queue = self._queues.get(decision.queue)
        if queue is None:
            return
        if isinstance(decision, RecordUsage):
            change = self._records.on_queue(queue, usage_records.ANNOTATION, usage_records.write(decision.record))
        else:
            change = self._records.on_queue(queue, lapse_records.ANNOTATION, lapse_records.write(decision.record))
        patch = Patch(ref_of(queue), {"metadata": {"annotations": change}}, uid=uid_of(queue))
        yield WritePlan(decision, (decision.gang,), (Step((patch,)),), informs=True)
