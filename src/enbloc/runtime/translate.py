"""Translates between the API and the engine: watch events into engine facts, decisions into write plans.

It writes nothing and waits for nothing. It keeps nothing that the API does not know: a new translator that is given the
same objects decides the same (G11, I5). Writing is `executor`'s and `status_writer`'s part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Literal

import msgspec

from enbloc.api import volcano
from enbloc.api.core import DISRUPTED
from enbloc.api.kinds import ref_of
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, Ref, annotations_of, condition_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.reasons import PendingReason
from enbloc.api.topology import TREE_KINDS
from enbloc.api.writes import BindPod, EmitEvent, EvictPod, Patch, WatchEvent, Write
from enbloc.config import Config
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
    RecordUsage,
    SetAside,
    TimeOut,
    Waits,
)
from enbloc.engine.engine import Engine
from enbloc.engine.facts import node_facts, pod_facts, queue_facts
from enbloc.engine.state import budgets
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.engine.tree_facts import observe_tree
from enbloc.gangs import claim_records
from enbloc.gangs.compatibility import constraints_of, pod_constraints
from enbloc.gangs.constraints import Unhonoured
from enbloc.gangs.dialect import Changed
from enbloc.gangs.hints import DOMAINS, EXPECTED_START
from enbloc.gangs.model import Complaint, GangKey, GangSpec
from enbloc.gangs.own_annotations import DIGEST
from enbloc.gangs.record_digests import Keyring
from enbloc.gangs.registry import CONDITIONS_READ, GangRegistry, queue_hint
from enbloc.gangs.volcano import ATTEMPTED, ENQUEUED, TRIED
from enbloc.runtime import gang_events
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.earlier_reports import UNSCHEDULABLE, released_before, waited_before
from enbloc.runtime.outcome import report_refused
from enbloc.runtime.own_records import OwnRecords
from enbloc.runtime.recorder import Recorder
from enbloc.runtime.usage_on_queues import UsageOnQueues
from enbloc.runtime.write_plans import StatusUpdate, Step, WritePlan
from enbloc.units import format_timestamp

SELECTED_NODE = "volume.kubernetes.io/selected-node"
UNSUPPORTED_PREFERENCE = "UnsupportedPreference"
"""The reason of Events about preferences that have no effect (N1)."""
_CARRY_RECORDS: Final = GangRegistry.kinds | {"Pod", volcano.QUEUE}
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass.storage.k8s.io"})


class Translator:
    """The engine and the gang registry of one cluster, fed with watch events."""

    kinds: frozenset[str] = (
        GangRegistry.kinds | _VOLUME_KINDS | TREE_KINDS | {"Pod", "Node", "Namespace", volcano.QUEUE, budgets.KIND}
    )

    def __init__(
        self,
        config: Config,
        names: frozenset[str],
        keyring: Keyring,
        metrics: CycleMetrics | None = None,
        records: OwnRecords | None = None,
    ) -> None:
        """`names`: the scheduler names whose pods are scheduled; `keyring` signs and verifies records (S2), unless
        `records` decides which of them count; `metrics` gets what each cycle does."""
        self._names = names
        self._metrics = metrics
        self._holds_unsupported = config.unsupported == "hold"
        self._registry = GangRegistry.of(config)
        self.kinds = Translator.kinds | self._registry.kinds
        self.engine = Engine(config)
        self._records = records if records is not None else OwnRecords(keyring)
        usage = self.engine.parts.usage
        self._usage = UsageOnQueues(usage, self._records) if usage is not None else None
        self.recorder: Recorder | None = None
        """Records what is observed and decided (`enbloc run --record`)."""
        self._suspected: dict[str, Ref] = {}
        """By UID: pods whose marks did not verify when they were last read."""
        self._unbound: dict[str, Obj] = {}
        """Our pods without a node, by UID: their conditions are written back whole."""
        self.decided: Sequence[Decision] = ()
        """By the last cycle."""
        self._complaints: dict[str, set[str]] = {}
        """By UID: faults in an object as its author wrote it. Each is emitted once."""
        self._new_complaints: dict[str, list[Complaint]] = {}
        """Those that were not emitted yet."""
        self._leads = False
        """Whether a cycle has run."""

    # ---- events into facts

    def observe(self, event: WatchEvent) -> None:
        obj, gone = event.obj, event.type == "DELETED"
        if gone:
            self._records.gone(uid_of(obj))
            self._suspected.pop(uid_of(obj), None)
        elif event.kind in _CARRY_RECORDS:
            obj = self._records.authentic(obj)
            event = msgspec.structs.replace(event, obj=obj) if obj is not event.obj else event
        self._read(event, gone)
        if self.recorder is not None:
            self.recorder.observed(event, self._records.marks_read)

    def _read(self, event: WatchEvent, gone: bool) -> None:
        obj, state = event.obj, self.engine.state
        match event.kind:
            case "Pod":
                self._observe_pod(obj, gone)
            case "Node":
                if gone:
                    state.remove_node(name_of(obj))
                else:
                    state.put_node(node_facts(obj))
            case budgets.KIND:
                state.put_budget(obj, gone)
            case "Namespace":
                state.set_namespace(name_of(obj), {} if gone else labels_of(obj))
            case volcano.QUEUE:
                if gone:
                    state.remove_queue(name_of(obj))
                else:
                    held = self._held_by(obj, constraints_of(obj), satisfied=False)
                    config = self.engine.config
                    state.put_queue(queue_facts(obj, config.tenancy, held, config.queues.fifo))
                if self._usage is not None:
                    self._usage.observe(obj, gone)
            case kind if kind in TREE_KINDS:
                if observe_tree(state.trees, kind, obj, gone):
                    state.note_tree_changed()
            case kind if kind in _VOLUME_KINDS:
                state.put_volume(kind, obj, gone)
            case _:
                self._apply(self._registry.observe(event))
                self._read_complaints(obj, gone)

    def _read_complaints(self, obj: Obj, gone: bool) -> None:
        if gone:
            self._complaints.pop(uid_of(obj), None)
            self._new_complaints.pop(uid_of(obj), None)
            return
        for message in self._registry.complaints(obj):
            self._add_complaint(Complaint(ref_of(obj), uid_of(obj), message))

    def _add_complaint(self, complaint: Complaint) -> None:
        known = self._complaints.setdefault(complaint.uid, set())
        if complaint.message not in known:
            known.add(complaint.message)
            self._new_complaints.setdefault(complaint.uid, []).append(complaint)

    def _apply(self, changed: Changed) -> None:
        """Reads again the gangs and pods that an event changed."""
        for key in changed.gangs:
            self._read_gang(key)
        for pod in changed.pods:
            self._put_pod(self._unbound.get(uid_of(pod), pod))  # dialects are not given changed conditions

    def _read_gang(self, key: GangKey) -> None:
        state = self.engine.state
        spec = self._registry.spec(key)
        known = state.gangs.get(key)
        if spec is not None:
            is_new = known is None or known.spec.object_uid != spec.object_uid
            state.put_gang(self._with_constraints(spec, satisfied=known is not None and known.satisfied))
            if is_new and waited_before(self._registry.object(key)):
                self.engine.adopt_report(state.gangs[key])
            for complaint in spec.complaints:
                self._add_complaint(complaint)
        elif known is not None and known.tasks:  # bound pods run on, the others wait for the object (V5)
            oldest = min(known.tasks.values(), key=lambda task: (task.created_ns, task.name))
            queue = queue_hint({"metadata": {"labels": oldest.labels}})  # as after a restart
            state.put_gang(self._registry.undeclared(key, oldest.created_ns, queue))
        elif known is not None:
            state.remove_gang(key)

    def _with_constraints(self, spec: GangSpec, satisfied: bool) -> GangSpec:
        """The gang, held by the constraints of its objects that are not honoured (N1)."""
        for obj in self._registry.objects(spec.key):
            held = self._held_by(obj, constraints_of(obj), satisfied)
            if held:
                return msgspec.structs.replace(spec, unsupported=held)
        return spec

    def _held_by(self, obj: Obj, found: list[Unhonoured], satisfied: bool) -> str:
        """The constraint that holds a gang while it is not satisfied. What is only warned of, now or ever, becomes a
        Warning event on its object."""
        held: list[str] = []
        for one in found:
            message = f"{obj['kind']} {'/'.join(filter(None, (namespace_of(obj), name_of(obj))))}: {one.message}"
            if one.holds and self._holds_unsupported:
                held.append(one.message if held else message)
            if satisfied or not one.holds or not self._holds_unsupported:
                reason = PendingReason.UNSUPPORTED_CONSTRAINT if one.holds else UNSUPPORTED_PREFERENCE
                self._add_complaint(Complaint(ref_of(obj), uid_of(obj), message, reason))
        return f"{'; '.join(held)}, or set `unsupported: warn` in the config" if held else ""

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        uid = uid_of(pod)
        task, known = self.engine.state.tasks.get(uid), self._unbound.get(uid)
        are_read = task is not None and task.gang.key.dialect in CONDITIONS_READ
        if not gone and known is not None and not are_read and _differ_in_conditions_alone(known, pod):
            self._unbound[uid] = pod  # mostly our own write: the engine reads no conditions of pods
            return
        changed = self._registry.observe_pod(pod, gone)
        if gone:
            self._unbound.pop(uid_of(pod), None)
            self._read_complaints(pod, gone)
            self.engine.state.remove_pod(uid_of(pod))
        else:
            self._put_pod(pod, self._unbound.get(uid_of(pod)))
        self._apply(changed)

    def _put_pod(self, pod: Obj, known: Obj | None = None) -> None:
        """`known`: the version before an event. Complaints are read again only if what its author wrote changed."""
        uid = uid_of(pod)
        membership = self._registry.member(pod)
        decision, mark = self._records.marks(pod, membership.gang)
        if not decision and not mark and DIGEST in annotations_of(pod):
            self._suspected[uid] = ref_of(pod)
        facts = pod_facts(pod, self._names, decision, mark, self._pod_held_by(pod, membership.gang))
        if facts.ours and not facts.node:
            self._unbound[uid] = pod
            if known is None or _as_written(known) != _as_written(pod):
                self._read_complaints(pod, gone=False)
        else:
            self._unbound.pop(uid, None)
        self.engine.state.put_pod(
            facts, membership, lambda: self._registry.undeclared(membership.gang, facts.created_ns, queue_hint(pod))
        )

    def _pod_held_by(self, pod: Obj, key: GangKey) -> str:
        if pod["spec"].get("nodeName") or pod["spec"].get("schedulerName") not in self._names:
            return ""
        gang = self.engine.state.gangs.get(key)
        return self._held_by(pod, pod_constraints(pod), gang is not None and gang.satisfied)

    # ---- decisions into writes

    def cycle(self, now_ns: int) -> Iterator[WritePlan | StatusUpdate]:
        """One scheduling cycle: its writes, in order, made as they are asked for."""
        self._records.lead()
        if self.recorder is not None:
            self.recorder.cycle(now_ns)
        if not self._leads:
            self._leads = True
            for gang in self.engine.state.gangs.values():
                if note := released_before(self._registry.home(gang.key)):
                    self.engine.adopt_note(gang, note)
        yield from self._write_back()
        complaints, self._new_complaints = self._new_complaints, {}
        for one in chain.from_iterable(complaints.values()):
            yield _event_update(EmitEvent(one.ref, one.uid, "Warning", one.reason, one.message))
        run, metrics = self.engine.run, self._metrics
        self.decided = run(now_ns) if metrics is None else run(now_ns, metrics.timed)
        for decision in self.decided:
            if metrics is not None:
                metrics.decided(self.engine, decision, now_ns)
            yield from self._writes(decision, now_ns)

    def _write_back(self) -> Iterator[WritePlan]:
        """Annotations of ours that others changed become what they were (S2)."""
        suspected, self._suspected = self._suspected, {}
        for uid, ref in suspected.items():
            if self._records.is_forged(uid):
                message = f"{DIGEST} does not verify for this pod and its gang: its marks do not count"
                self._add_complaint(Complaint(ref, uid, message, RECORD_REMOVED))
        for ref, uid, change in self._records.foreign():
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
            report_refused(self.engine, plan.decision, write)
        if isinstance(plan.decision, SetAside | RecordUsage) and isinstance(write, Patch):
            self._records.refused(write.uid, write.patch["metadata"]["annotations"])
        if isinstance(plan.decision, SetAside):
            self._read_gang(plan.decision.gang)

    def subject(self, gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
        """The object of a status update as it is known now; `None` if it is gone, or a pod that no longer waits."""
        if ref.kind == "Pod":
            task = self.engine.state.tasks.get(uid)
            return None if task is not None and task.status is TaskStatus.ASSUMED else self._unbound.get(uid)
        found = self._registry.object(gang) if gang is not None else None
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
            case RecordUsage() if self._usage is not None:
                yield from self._usage.write(decision)
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
        """The gang's object says for which gang its pods were evicted, until it starts again (G10)."""
        group = self._registry.object(decision.gang)
        if group is not None:
            condition = _condition(DISRUPTED, "True", decision.reason, f"evicted: {decision.message}", now_ns)
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
        group = self._registry.object(decision.gang)
        if group is not None and decision.of_gang:
            status = "True" if decision.message else "False"
            condition = _condition(UNSCHEDULABLE, status, decision.reason or "Scheduled", decision.message, now_ns)
            event = gang_events.on_gang(group, "Warning", decision.reason, decision.message)
            conditions = (condition, *self._attempted(decision, now_ns))
            yield StatusUpdate(decision.gang, group, conditions, event=event if decision.message else None)
        for _, _, uid in decision.pods:
            pod = self._unbound.get(uid)
            if pod is None:
                continue
            message = decision.own.get(uid, decision.message)
            condition = _condition("PodScheduled", "False", "Unschedulable", message, now_ns)
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


def _as_written(pod: Obj) -> tuple[Any, ...]:
    """All but the status and what the API server counts."""
    metadata = pod["metadata"]
    return pod["spec"], metadata.get("annotations"), metadata.get("labels"), metadata.get("ownerReferences")


def _differ_in_conditions_alone(known: Obj, pod: Obj) -> bool:
    """Whether all but conditions, and what the API server counts, is as it was."""
    if _as_written(known) != _as_written(pod):
        return False
    before, after = known["metadata"], pod["metadata"]
    if before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return False
    return _without_conditions(known) == _without_conditions(pod)


def _without_conditions(pod: Obj) -> Obj:
    return {key: value for key, value in (pod.get("status") or {}).items() if key != "conditions"}


def _event_update(event: EmitEvent) -> StatusUpdate:
    """An Event without conditions."""
    named = {"metadata": {"namespace": event.ref.namespace, "name": event.ref.name, "uid": event.uid}}
    return StatusUpdate(None, named, event=event)


def _condition(kind: str, status: str, reason: str, message: str, now_ns: int) -> dict[str, Any]:
    stamp = format_timestamp(now_ns)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
