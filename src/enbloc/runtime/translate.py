"""Translates between the API and the engine: watch events into engine facts (`event_reader`), decisions into write
plans.

It writes nothing and waits for nothing. It keeps nothing that the API does not know: a new translator that is given the
same objects decides the same (G11, I5). Writing is `executor`'s and `status_writer`'s part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

import msgspec

from enbloc.api.core import DISRUPTED
from enbloc.api.kinds import ref_of
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, Ref, annotations_of, condition_of, uid_of
from enbloc.api.writes import BindPod, EmitEvent, EvictPod, Patch, Write
from enbloc.engine.core.faults import GangsFailed, culprit
from enbloc.engine.core.tables.tasks import TaskStatus
from enbloc.engine.decisions import (
    RECORD_REMOVED,
    Bind,
    Complain,
    Decision,
    Enqueue,
    Evict,
    Expect,
    InDomains,
    Marked,
    RecordLapses,
    RecordUsage,
    SetAside,
    TimeOut,
    Waits,
)
from enbloc.gangs import claim_records
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.gangs.hints import DOMAINS, EXPECTED_START
from enbloc.gangs.model import Complaint, GangKey
from enbloc.gangs.own_annotations import DIGEST
from enbloc.gangs.volcano import ATTEMPTED, ENQUEUED, TRIED
from enbloc.runtime import gang_events
from enbloc.runtime.event_reader import EventReader
from enbloc.runtime.held_gangs import log_fault
from enbloc.runtime.waits_written import released_before
from enbloc.runtime.write_plans import StatusUpdate, Step, WritePlan
from enbloc.units import SECOND, format_timestamp

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Translator(EventReader):
    """The engine and the gang registry of one cluster, fed with watch events; its decisions become writes."""

    def anew(self) -> Translator:
        """One that knows no object yet: it takes the place of this one, which is torn."""
        if self.recorder is not None:
            self.recorder.rebuilt()
        keyring, config = self._keyring, self.engine.config
        new = Translator(config, self._names, keyring, self._metrics, self._records, self._held)
        new.recorder, new._complaints = self.recorder, self._complaints
        return new

    def _fail_cycle(self, failure: Exception, now_ns: int) -> None:
        """A cycle ended early: nothing of it is written, and the state is rebuilt before the next."""
        self.torn = True
        found = failure.found if isinstance(failure, GangsFailed) else [(culprit(failure, self._held), failure)]
        for key, why in found:
            if key is None or (key in self._held and not self._held.hold_more(key)):
                self._held.pause(why, now_ns)
            elif key not in self._held:
                self._hold(key, why)

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens."""
        late_s = self._records.due_s()
        late_ns = None if late_s is None else int(late_s * SECOND) + 1_000  # never before it: floats round
        dues = (self.engine.due(), self._held.due(), self._waits_written.due_ns(), late_ns)
        return min((due for due in dues if due is not None), default=None)

    def busy(self) -> bool:
        self.read_changed()
        return self.torn or (self.engine.busy() and not self._held.is_paused)

    # ---- decisions into writes

    def cycle(self, now_ns: int) -> Iterator[WritePlan | StatusUpdate]:
        """One scheduling cycle: its writes, in order, made as they are asked for."""
        self.decided = ()
        self.read_changed()
        if not self.torn and not self._held.pauses(now_ns):
            self._try_again(now_ns)
        if self.torn or self._held.pauses(now_ns):
            return
        self._records.lead()
        if self.recorder is not None:
            self.recorder.cycle(now_ns)
        if not self._leads:
            self._leads = True
            for gang in list(self.engine.state.gangs.values()):
                try:
                    if note := released_before(self._registry.home(gang.key)):
                        self.engine.adopt_note(gang, note)
                except Exception as failure:
                    self._hold(gang.key, failure)
                    self._read_gang(gang.key)
        yield from self._write_back(now_ns)
        complaints, self._new_complaints = self._new_complaints, {}
        for one in chain.from_iterable(complaints.values()):
            yield _event_update(EmitEvent(one.ref, one.uid, "Warning", one.reason, one.message))
        run, metrics = self.engine.run, self._metrics
        try:
            self.engine.repeat(self._waits_written.late(now_ns))
            decided = run(now_ns) if metrics is None else run(now_ns, metrics.timed)
            self.decided = list(self._waits_written.sift(decided, now_ns))
            self._held.resume()
        except Exception as failure:
            self._fail_cycle(failure, now_ns)
            return
        finally:
            self._take_faults()
        for decision in self.decided:
            try:
                if metrics is not None:
                    metrics.decided(self.engine, decision, now_ns)
                writes = list(self._writes(decision, now_ns))
            except Exception as failure:
                self.fail(decision, failure)
                continue
            yield from writes

    def _take_faults(self) -> None:
        """What raised in turns of gangs: the engine has undone it."""
        faults = self.engine.parts.faults
        for key, failure in faults:
            self._held.hold(key, failure, self._objects_of(key))
        faults.clear()

    def fail(self, decision: Decision | None, failure: BaseException) -> None:
        """Something raised while a decision was written: it was not carried out, and its gang is held."""
        key = getattr(decision, "gang", None)
        if not isinstance(key, GangKey):
            log_fault(type(decision).__name__, failure)
            return
        was_held = key in self._held
        if not was_held:
            self._hold(key, failure)
            self._read_gang(key)
        self.torn = self.torn or not isinstance(decision, Waits | Expect | InDomains | Complain | Enqueue)

    def _write_back(self, now_ns: int) -> Iterator[WritePlan]:
        """Annotations of ours that others changed become what they were (S2)."""
        suspected, self._suspected = self._suspected, {}
        for uid, ref in suspected.items():
            if self._records.is_forged(uid):
                message = f"{DIGEST} does not verify for this pod and its gang: its marks do not count"
                self._add_complaint(Complaint(ref, uid, message, RECORD_REMOVED))
        for ref, uid, change in self._records.foreign(now_ns / SECOND):
            keys = ", ".join(sorted(change))
            message = f"{keys}: not written by this scheduler, does not count, and was set back"
            self._add_complaint(Complaint(ref, uid, message, RECORD_REMOVED))
            patch = Patch(ref, {"metadata": {"annotations": change}}, uid=uid)
            yield WritePlan(None, (), (Step((patch,), may_fail=True),))

    def refused(self, plan: WritePlan, write: Write | None) -> None:
        """A write of a plan was refused or held back; `None`: the plan has no object to write on."""
        if plan.decision is not None and self.recorder is not None:
            self.recorder.refused(plan.decision, write)
        if plan.decision is not None:
            uid = write.uid if isinstance(write, BindPod | EvictPod | Patch) else ""
            self.engine.report(plan.decision, uid, write.node if isinstance(write, BindPod) else "")
        if isinstance(plan.decision, SetAside | RecordUsage | RecordLapses) and isinstance(write, Patch):
            self._records.refused(write.uid, write.patch["metadata"]["annotations"])
        if isinstance(plan.decision, SetAside):
            self._read_gang(plan.decision.gang)

    def subject(self, gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
        """The object of a status update as it is known now; `None` if it is gone, or a pod that no longer waits."""
        if ref.kind == "Pod":
            task = self.engine.state.tasks.get(uid)
            return None if task is not None and task.status is TaskStatus.ASSUMED else self._unbound.get(uid)
        found = self._object(gang) if gang is not None else None
        return found if found is not None and uid_of(found) == uid else None

    def _writes(self, decision: Decision, now_ns: int) -> Iterator[WritePlan | StatusUpdate]:
        match decision:
            case Bind():
                yield self._bind(decision)
                yield from self._started_again(decision, now_ns)
            case Enqueue():
                yield from self._enqueue(decision, now_ns)
            case Waits():
                yield from self._waits(decision, now_ns)
            case SetAside():
                yield from self._set_aside(decision, now_ns)
            case Expect():
                yield from self._expect(decision)
            case RecordUsage() | RecordLapses():
                yield from self._on_queues.write(decision)
            case InDomains():
                yield from self._in_domains(decision)
            case TimeOut():
                mark = {"metadata": {"annotations": {TIMEOUT: "true"}}}
                patches = (Patch(Ref("Pod", namespace, name), mark, uid=uid) for namespace, name, uid in decision.pods)
                yield WritePlan(decision, (decision.gang,), (Step(tuple(patches)),))
            case Complain():
                home = self._registry.home(decision.gang)
                if home is not None:
                    yield _event_update(EmitEvent(ref_of(home), uid_of(home), "Warning", "BadValue", decision.message))
            case Evict():
                yield self._evict(decision)
                yield from self._disrupted(decision, now_ns)
            case Marked():
                ref = Ref("Pod", decision.namespace, decision.name)
                marks = self._records.marked(decision.uid, decision.gang, decision.mark)
                patch = Patch(ref, {"metadata": {"annotations": marks}}, uid=decision.uid)
                yield WritePlan(decision, (decision.gang,), (Step((patch,), may_fail=True),))

    def _enqueue(self, decision: Enqueue, now_ns: int) -> Iterator[StatusUpdate]:
        """The group's phase becomes Inqueue, a condition says since when; what kept it out no longer holds."""
        group = self._registry.object(decision.gang)
        if group is None:
            return
        conditions: tuple[Obj, ...] = (
            _condition(UNSCHEDULABLE, "False", "Enqueued", "", now_ns),
            _condition(ENQUEUED, "True", decision.reason, "its pods may be created", now_ns),
        )
        if condition_of(group, ATTEMPTED) is not None:  # of an earlier time
            conditions += (_condition(ATTEMPTED, "False", "Enqueued", "", now_ns),)
        yield StatusUpdate(decision.gang, group, conditions, "Inqueue")
        yield _event_update(gang_events.enqueued(group))

    def _bind(self, decision: Bind) -> WritePlan:
        """A gang's Bindings; the one that commits goes last, and only if all others were accepted (G11)."""
        volumes: list[Write] = []
        for namespace, claim, node in decision.volume_claims:
            ref = Ref("PersistentVolumeClaim", namespace, claim)
            volumes.append(Patch(ref, {"metadata": {"annotations": {SELECTED_NODE: node}}}))
        for volume, namespace, claim in decision.volumes:
            claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}
            volumes.append(Patch(Ref("PersistentVolume", "", volume), {"spec": {"claimRef": claim_ref}}))
        last, tasks = len(decision.placements) - 1, self.engine.state.tasks
        bindings: list[Write] = []
        for at, one in enumerate(decision.placements):
            task = tasks.get(one.uid)
            gang = task.gang.key if task is not None else decision.gang
            mark = "" if decision.commits and at < last else decision.mark
            marks = self._records.bound_with(one.uid, one.node, gang, decision.decision, mark)
            bindings.append(BindPod(one.namespace, one.name, one.uid, one.node, marks))
        steps = [Step(tuple(volumes), may_fail=True)] if volumes else []
        if decision.commits:
            steps += [Step(tuple(bindings[:-1])), Step(tuple(bindings[-1:]), if_accepted=True)]
            groups = filter(None, map(self._registry.object, (decision.gang, *decision.others)))
            steps.append(Step(gang_events.bound_together(decision, groups), if_accepted=True, may_fail=True))
        else:
            steps.append(Step(tuple(bindings)))
        gangs = (decision.gang, *decision.others)
        return WritePlan(decision, gangs, tuple(steps), is_base=decision.commits, needs_base=True)

    def _expect(self, decision: Expect) -> Iterator[WritePlan]:
        """Publishes when a gang is expected to start (R8)."""
        home = self._registry.home(decision.gang)
        text = format_timestamp(decision.at_ns) if decision.at_ns is not None else None
        if home is not None and annotations_of(home).get(EXPECTED_START) != text:
            start = self._records.expected_start(home, text)
            patch = Patch(ref_of(home), {"metadata": {"annotations": start}}, uid=uid_of(home))
            yield WritePlan(decision, (decision.gang,), (Step((patch,), may_fail=True),), informs=True)

    def _in_domains(self, decision: InDomains) -> Iterator[WritePlan]:
        """Publishes the domains of a gang and the score of its plan (T2)."""
        home = self._registry.home(decision.gang)
        if home is not None:
            text = msgspec.json.encode(decision.parts).decode()
            patch = Patch(ref_of(home), {"metadata": {"annotations": {DOMAINS: text}}}, uid=uid_of(home))
            yield WritePlan(decision, (decision.gang,), (Step((patch,), may_fail=True),), informs=True)

    def _evict(self, decision: Evict) -> WritePlan:
        """A pod is evicted for a gang only if the gang's claim was written (P3)."""
        evict = EvictPod(decision.namespace, decision.name, decision.uid, decision.reason, decision.message)
        events = gang_events.evicted(decision, self._registry.object(decision.gang))
        reported = Step(events, if_accepted=True, may_fail=True)
        if decision.preemptor is None:
            return WritePlan(decision, (decision.gang,), (Step((evict,), may_fail=True), reported))
        return WritePlan(decision, (decision.preemptor,), (Step((evict,)), reported), needs_base=True)

    def _disrupted(self, decision: Evict, now_ns: int) -> Iterator[StatusUpdate]:
        """The gang's object says when and for which gang its pods were evicted, until it starts again (G10)."""
        group = self._registry.object(decision.gang)
        if group is not None:
            verb = decision.reason.lower() if decision.reason in ("Preempted", "Reclaimed") else "evicted"
            said = f"{verb} at {format_timestamp(now_ns)}: {decision.message}"
            condition = _condition(DISRUPTED, "True", decision.reason, said, now_ns)
            yield StatusUpdate(decision.gang, group, (condition,))

    def _started_again(self, decision: Bind, now_ns: int) -> Iterator[StatusUpdate]:
        for key in (decision.gang, *decision.others):
            group = self._registry.object(key)
            known = condition_of(group, DISRUPTED) if group is not None else None
            if group is not None and known is not None and known.get("status") == "True":
                yield StatusUpdate(key, group, (_condition(DISRUPTED, "False", "Scheduled", "", now_ns),))

    def _set_aside(self, decision: SetAside, now_ns: int) -> Iterator[WritePlan | StatusUpdate]:
        """Writes a gang's claim on its object; if that fails the claim is void and the gang is not bound (D5)."""
        group = self._registry.home(decision.gang)
        if group is None:
            yield WritePlan(decision, (decision.gang,), (), is_base=True, has_no_object=True)
            return
        text = claim_records.write(decision.record) if decision.record else None
        annotations = self._records.claim(group, decision.kind, text)
        patch = Patch(ref_of(group), {"metadata": {"annotations": annotations}}, uid=uid_of(group))
        kind: Literal["Normal", "Warning"] = "Warning" if decision.reason == RECORD_REMOVED else "Normal"
        event = EmitEvent(ref_of(group), uid_of(group), kind, decision.reason, decision.message)
        said = (Step((event,), if_accepted=True, may_fail=True),) if decision.reason else ()
        steps = (Step((patch,)), *said)
        yield WritePlan(decision, (decision.gang,), steps, is_base=True)
        if decision.kind is claim_records.ClaimKind.RESERVE and group["kind"] != "Pod":
            status = "True" if decision.record else "False"
            condition = _condition("Reserved", status, decision.reason, decision.message, now_ns)
            yield StatusUpdate(decision.gang, group, (condition,))

    def _waits(self, decision: Waits, now_ns: int) -> Iterator[StatusUpdate]:
        """Why a gang waits, on its object and its pods (G10)."""
        group = self._object(decision.gang)
        if group is not None and decision.of_gang:
            status = "True" if decision.message else "False"
            condition = _condition(UNSCHEDULABLE, status, decision.reason or "Scheduled", decision.message, now_ns)
            as_volcano = "volcano" in self.engine.config.compat
            event = gang_events.waits(group, decision.reason, decision.message, as_volcano=as_volcano)
            conditions = (condition, *self._attempted(decision, now_ns))
            yield StatusUpdate(decision.gang, group, conditions, event=event if decision.message else None)
        for uid, reason, message in decision.pods:
            pod = self._unbound.get(uid)
            if pod is None:
                continue
            condition = _condition("PodScheduled", "False", reason, message, now_ns)
            waits = gang_events.pod_waits(pod, message, group) if message else None
            yield StatusUpdate(decision.gang, pod, (condition,), event=waits)

    def _attempted(self, decision: Waits, now_ns: int) -> Iterator[Obj]:
        """A scheduler that starts later reads that the gang was attempted since it was enqueued (M6), whatever became
        of its pods and of the reason why it waits."""
        gang = self.engine.state.gangs.get(decision.gang)
        if gang is None or not gang.spec.min_resources or not gang.status.enqueued or gang.spec.observed.tried:
            return
        if decision.reason in TRIED or self.engine.was_attempted(decision.gang):
            yield _condition(ATTEMPTED, "True", "Attempted", "it was attempted since it was enqueued", now_ns)


def _event_update(event: EmitEvent) -> StatusUpdate:
    """An Event without conditions."""
    named = {"metadata": {"namespace": event.ref.namespace, "name": event.ref.name, "uid": event.uid}}
    return StatusUpdate(None, named, event=event)


def _condition(kind: str, status: str, reason: str, message: str, now_ns: int) -> dict[str, Any]:
    stamp = format_timestamp(now_ns)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
