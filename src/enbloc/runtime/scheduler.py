"""The scheduler on a cluster: watch events go into the engine, its decisions go out as writes.

It keeps nothing that the API does not know: thrown away and made anew it decides the same (G11, I5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from enbloc.api import volcano
from enbloc.api.kinds import ref_of
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, Ref, annotations_of, condition_of, labels_of, name_of, uid_of
from enbloc.api.writes import BindPod, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.cluster.port import Cluster
from enbloc.config import Config
from enbloc.engine.cycle import cycle
from enbloc.engine.decisions import (
    Bind,
    Complain,
    Decision,
    Enqueue,
    Evict,
    Expect,
    Marked,
    Pending,
    SetAside,
    TimeOut,
    Waits,
)
from enbloc.engine.engine import Engine
from enbloc.engine.facts import node_facts, pod_facts, queue_facts
from enbloc.engine.state import budgets
from enbloc.engine.tables.commit_marks import COMMITTED, DECISION
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs import claim_records
from enbloc.gangs.dialect import Changed
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.model import Complaint, GangKey
from enbloc.gangs.registry import GangRegistry, queue_hint
from enbloc.gangs.volcano import ENQUEUED
from enbloc.runtime.write_plans import StatusUpdate, Step, WritePlan, carry_out, drop, status_of
from enbloc.units import format_timestamp

CYCLES_AT_ONCE = 100
UNSCHEDULABLE = "Unschedulable"
"""The condition of a gang's object that says why it waits (G10)."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass.storage.k8s.io"})
_KINDS = GangRegistry.kinds | _VOLUME_KINDS | {"Pod", "Node", "Namespace", volcano.QUEUE, budgets.KIND}


class Scheduler:
    """Engine and gang book over one cluster."""

    kinds = _KINDS

    def __init__(self, cluster: Cluster | None, config: Config, names: frozenset[str]) -> None:
        """`cluster` is for `schedule`; whoever carries the `errands` out by other means has no need of it."""
        self._cluster = cluster
        self._names = names
        self._book = GangRegistry(config.arbitrator, config.koordinator)
        self.engine = Engine(config)
        self._waiting: dict[str, Obj] = {}
        """Pods of ours without a node, as they came: their conditions are written back whole."""
        self._complained: dict[str, set[str]] = {}
        """By UID: what is wrong in an object as its user wrote it. Each is told once."""
        self._to_complain: dict[str, list[Complaint]] = {}
        """The same, as far as it was not told yet."""
        self._wrote = False
        self._written: dict[str, list[dict[str, Any]]] = {}
        """Conditions that were written in this cycle, by the object's uid."""

    # ---- in

    def observe(self, event: WatchEvent) -> None:
        obj, gone = event.obj, event.type == "DELETED"
        state = self.engine.state
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
                    state.put_queue(queue_facts(obj))
            case kind if kind in _VOLUME_KINDS:
                state.put_volume(kind, obj, gone)
            case _:
                self._take(self._book.observe(event))
                self._complain(obj, gone)

    def _complain(self, obj: Obj, gone: bool) -> None:
        """Notes what is wrong in an object, to be told with the next cycle."""
        if gone:
            self._complained.pop(uid_of(obj), None)
            self._to_complain.pop(uid_of(obj), None)
            return
        for message in self._book.complaints(obj):
            self._note(Complaint(ref_of(obj), uid_of(obj), message))

    def _note(self, complaint: Complaint) -> None:
        known = self._complained.setdefault(complaint.uid, set())
        if complaint.message not in known:
            known.add(complaint.message)
            self._to_complain.setdefault(complaint.uid, []).append(complaint)

    def _take(self, changed: Changed) -> None:
        """What an event meant for gangs."""
        for key in changed.gangs:
            self._read_gang(key)
        for pod in changed.pods:
            self._put_pod(pod)

    def _read_gang(self, key: GangKey) -> None:
        spec = self._book.spec(key)
        if spec is not None:
            known = self.engine.state.gangs.get(key)
            is_news = known is None or known.spec.object_uid != spec.object_uid
            self.engine.state.put_gang(spec)
            if is_news and self._says_that_it_waits(key):
                self.engine.reporter.was_told(self.engine.state.gangs[key])
            for complaint in spec.complaints:
                self._note(complaint)
            return
        gang = self.engine.state.gangs.get(key)
        if gang is None:
            return
        if gang.tasks:  # what runs runs on, what waits says so (V5)
            oldest = min(gang.tasks.values(), key=lambda task: (task.created, task.name))
            queue = queue_hint({"metadata": {"labels": oldest.labels}})  # as a restart would have it, not as it was
            self.engine.state.put_gang(self._book.undeclared(key, oldest.created, queue))
        else:
            self.engine.state.remove_gang(key)

    def _says_that_it_waits(self, key: GangKey) -> bool:
        """Whether a gang's object says so: that was written before we looked."""
        obj = self._book.object(key)
        said = condition_of(obj, UNSCHEDULABLE) if obj is not None else None
        return said is not None and said.get("status") == "True"

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        changed = self._book.observe_pod(pod, gone)
        if gone:
            self._waiting.pop(uid_of(pod), None)
            self._complain(pod, gone)
            self.engine.state.remove_pod(uid_of(pod))
        else:
            self._put_pod(pod)
        self._take(changed)

    def _put_pod(self, pod: Obj) -> None:
        uid = uid_of(pod)
        facts = pod_facts(pod, self._names)
        if facts.ours and not facts.node:
            self._waiting[uid] = pod
            self._complain(pod, gone=False)
        else:
            self._waiting.pop(uid, None)
        membership = self._book.member(pod)
        self.engine.state.put_pod(
            facts, membership, lambda: self._book.undeclared(membership.gang, facts.created, queue_hint(pod))
        )

    # ---- out

    def schedule(self, now: int) -> bool:
        """One cycle, carried out at once. Says whether anything was written. What a cycle changes may help others: if
        no write of it comes back as an event to wake them, the next cycle follows at once."""
        self._wrote = False
        for _ in range(CYCLES_AT_ONCE):
            half_done: set[GangKey] = set()
            self._written = {}
            for errand in self.errands(now):
                if isinstance(errand, StatusUpdate):
                    self._say(errand)
                elif errand.builds and half_done.intersection(errand.gangs):
                    drop(errand, self.refused)
                elif not carry_out(errand, self._write, self.refused) and errand.is_base:
                    half_done.update(errand.gangs)
            if self._wrote or not self.engine.busy():
                break
        return self._wrote

    def errands(self, now: int) -> Iterator[WritePlan | StatusUpdate]:
        """One cycle: what is to be written, in order, and told. Made as it is asked for."""
        complaints, self._to_complain = self._to_complain, {}
        for one in chain.from_iterable(complaints.values()):
            yield _only_event(EmitEvent(one.ref, one.uid, "Warning", "BadValue", one.message))
        for decision in cycle(self.engine, now):
            yield from self._carry_out(decision, now)

    def refused(self, errand: WritePlan, write: Write) -> None:
        """A write of an errand was refused, or held back because another one was: what was assumed is not so."""
        match errand.decision:
            case SetAside():
                self._claim_refused(errand.decision)
            case Evict() if isinstance(write, EvictPod):
                self.engine.evictions.stays(write.uid)
            case Bind() | TimeOut() if isinstance(write, BindPod | Patch):
                task = self.engine.state.tasks.get(write.uid)
                if task is not None and (isinstance(write, Patch) or task.node == write.node):
                    self.engine.state.unplace(write.uid)

    def subject(self, gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
        """What a notice is about, as it is known now; `None` if it is gone, or a pod that no longer waits."""
        if ref.kind == "Pod":
            task = self.engine.state.tasks.get(uid)
            return None if task is not None and task.status is TaskStatus.ASSUMED else self._waiting.get(uid)
        found = self._book.object(gang) if gang is not None else None
        return found if found is not None and uid_of(found) == uid else None

    def due(self) -> int | None:
        return self.engine.due()

    def pending(self) -> list[Pending]:
        return self.engine.pending()

    def _carry_out(self, decision: Decision, now: int) -> Iterator[WritePlan | StatusUpdate]:
        match decision:
            case Bind():
                yield self._bind(decision)
            case Enqueue():
                yield from self._let_in(decision, now)
            case Waits():
                yield from self._waits(decision, now)
            case SetAside():
                yield from self._set_aside(decision, now)
            case Expect():
                yield from self._expect(decision)
            case TimeOut():
                mark = {"metadata": {"annotations": {TIMEOUT: "true"}}}
                patches = (Patch(Ref("Pod", namespace, name), mark, uid=uid) for namespace, name, uid in decision.pods)
                yield WritePlan(decision, (decision.gang,), (Step(tuple(patches)),))
            case Complain():
                home = self._book.home(decision.gang)
                if home is not None:
                    yield _only_event(EmitEvent(ref_of(home), uid_of(home), "Warning", "BadValue", decision.message))
            case Evict():
                yield self._evict(decision)
            case Marked():
                ref = Ref("Pod", decision.namespace, decision.name)
                patch = Patch(ref, {"metadata": {"annotations": {COMMITTED: decision.mark}}}, uid=decision.uid)
                yield WritePlan(decision, (decision.gang,), (Step((patch,), may_fail=True),))

    def _let_in(self, decision: Enqueue, now: int) -> Iterator[StatusUpdate]:
        """The group's phase says so, and a condition since when; what kept it out no longer holds."""
        group = self._book.object(decision.gang)
        if group is None:
            return
        conditions = (
            _condition(UNSCHEDULABLE, "False", "Enqueued", "", now),
            _condition(ENQUEUED, "True", decision.reason, "its pods may be created", now),
        )
        yield StatusUpdate(decision.gang, group, conditions, "Inqueue")

    def _bind(self, decision: Bind) -> WritePlan:
        """A gang's Bindings; the one that commits goes last, and only if all others were taken (G11)."""
        volumes: list[Write] = []
        for namespace, claim, node in decision.claims:
            ref = Ref("PersistentVolumeClaim", namespace, claim)
            volumes.append(Patch(ref, {"metadata": {"annotations": {SELECTED_NODE: node}}}))
        for volume, namespace, claim in decision.volumes:
            claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}
            volumes.append(Patch(Ref("PersistentVolume", "", volume), {"spec": {"claimRef": claim_ref}}))
        plain = {DECISION: decision.decision}
        marked = {DECISION: decision.decision, COMMITTED: decision.mark}
        last = len(decision.placements) - 1
        bindings = [
            BindPod(one.namespace, one.name, one.uid, one.node, plain if decision.commits and at < last else marked)
            for at, one in enumerate(decision.placements)
        ]
        steps = [Step(tuple(volumes), may_fail=True)] if volumes else []
        if decision.commits:
            steps += [Step(tuple(bindings[:-1])), Step(tuple(bindings[-1:]), if_whole=True)]
            steps.append(Step(self._tell_bound(decision), if_whole=True, may_fail=True))
        else:
            steps.append(Step(tuple(bindings)))
        gangs = (decision.gang, *decision.others)
        return WritePlan(decision, gangs, tuple(steps), is_base=decision.commits, builds=True)

    def _expect(self, decision: Expect) -> Iterator[WritePlan]:
        """Publishes when a gang is expected to start (R8)."""
        home = self._book.home(decision.gang)
        text = format_timestamp(decision.at) if decision.at is not None else None
        if home is not None and annotations_of(home).get(EXPECTED_START) != text:
            patch = Patch(ref_of(home), {"metadata": {"annotations": {EXPECTED_START: text}}}, uid=uid_of(home))
            yield WritePlan(decision, (decision.gang,), (Step((patch,), may_fail=True),), aside=True)

    def _evict(self, decision: Evict) -> WritePlan:
        """Nobody is evicted for a gang whose claim to the room could not be written down (P3)."""
        evict = EvictPod(decision.namespace, decision.name, decision.uid, decision.reason, decision.message)
        if decision.preemptor is None:
            return WritePlan(decision, (decision.gang,), (Step((evict,), may_fail=True),))
        return WritePlan(decision, (decision.preemptor,), (Step((evict,)),), builds=True)

    def _set_aside(self, decision: SetAside, now: int) -> Iterator[WritePlan | StatusUpdate]:
        """Writes a gang's claim down; if that fails nobody relies on it, and the gang is not bound (D5)."""
        group = self._book.home(decision.gang)
        if group is None:
            self._claim_refused(decision)
            yield WritePlan(decision, (decision.gang,), (), is_base=True, doomed=True)
            return
        text = claim_records.write(decision.record) if decision.record else None
        patch = Patch(ref_of(group), {"metadata": {"annotations": {claim_records.ANNOTATION: text}}}, uid=uid_of(group))
        event = EmitEvent(ref_of(group), uid_of(group), "Normal", decision.reason, decision.message)
        steps = (Step((patch,)), Step((event,), if_whole=True, may_fail=True))
        yield WritePlan(decision, (decision.gang,), steps, is_base=True)
        if decision.kind == claim_records.RESERVE and group["kind"] != "Pod":
            status = "True" if decision.record else "False"
            condition = _condition("Reserved", status, decision.reason, decision.message, now)
            yield StatusUpdate(decision.gang, group, (condition,))

    def _claim_refused(self, decision: SetAside) -> None:
        self.engine.refused(decision)
        self._read_gang(decision.gang)

    def _tell_bound(self, decision: Bind) -> tuple[EmitEvent, ...]:
        found = []
        for group in filter(None, map(self._book.object, (decision.gang, *decision.others))):
            nodes = Counter(placement.node for placement in decision.placements)
            where = ", ".join(f"{node} ({count})" for node, count in list(nodes.items())[:8])
            more = f" and {len(nodes) - 8} more" if len(nodes) > 8 else ""
            message = f"{len(decision.placements)} pods bound together: {where}{more}"
            found.append(EmitEvent(ref_of(group), uid_of(group), "Normal", "Scheduled", message))
        return tuple(found)

    def _waits(self, decision: Waits, now: int) -> Iterator[StatusUpdate]:
        """Why a gang waits, on its object and its pods (G10)."""
        group = self._book.object(decision.gang) if decision.of_gang else None
        status = "True" if decision.message else "False"
        if group is not None:
            reason = decision.reason or "Scheduled"
            condition = _condition(UNSCHEDULABLE, status, reason, decision.message, now)
            event = EmitEvent(ref_of(group), uid_of(group), "Warning", decision.reason, decision.message)
            yield StatusUpdate(decision.gang, group, (condition,), event=event if decision.message else None)
        for _, _, uid in decision.pods:
            pod = self._waiting.get(uid)
            if pod is None:
                continue
            condition = _condition("PodScheduled", "False", "Unschedulable", decision.message, now)
            event = EmitEvent(ref_of(pod), uid, "Warning", "FailedScheduling", decision.message)
            tells = decision.of_gang and group is None
            yield StatusUpdate(decision.gang, pod, (condition,), event=event if tells else None)

    def _say(self, notice: StatusUpdate) -> None:
        """Writes a notice where it does not stand there yet."""
        obj = notice.obj
        if notice.conditions:
            status = status_of(notice, self._conditions(obj))
            if status is None:
                return
            self._written[uid_of(obj)] = status["conditions"]
            if not self._write(Patch(ref_of(obj), {"status": status}, "status", uid_of(obj))):
                return
        if notice.event is not None:
            self._write(notice.event)

    def _conditions(self, obj: Obj) -> list[dict[str, Any]]:
        """An object's conditions as they are by now: what this cycle wrote has not come back yet."""
        written = self._written.get(uid_of(obj))
        return written if written is not None else conditions_of(obj)

    def _write(self, write: Write) -> bool:
        """One write; a refusal is a result. What it was about comes back as an event anyway."""
        assert self._cluster is not None, "nobody carries writes out here"
        try:
            self._cluster.execute(write)
        except Refused:
            return False
        self._wrote = True
        return True


def conditions_of(obj: Obj) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def _only_event(event: EmitEvent) -> StatusUpdate:
    """Something that is told as an Event alone."""
    named = {"metadata": {"namespace": event.ref.namespace, "name": event.ref.name, "uid": event.uid}}
    return StatusUpdate(None, named, event=event)


def _condition(kind: str, status: str, reason: str, message: str, now: int) -> dict[str, Any]:
    stamp = format_timestamp(now)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
