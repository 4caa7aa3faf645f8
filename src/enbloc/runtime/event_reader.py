"""Watch events into engine facts, and what raised on the way (S8).

It writes nothing and waits for nothing. It keeps nothing that the API does not know: a new one that is given the same
objects has the same state (G11, I5). What is decided on it is written by `translate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from enbloc.api import volcano
from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, annotations_of, as_written, labels_of, name_of, namespace_of, uid_of
from enbloc.api.quotas import RESOURCE_QUOTA
from enbloc.api.reasons import PendingReason
from enbloc.api.topology import TREE_KINDS
from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.engine.core.state import budgets
from enbloc.engine.decisions import Decision
from enbloc.engine.engine import Engine
from enbloc.engine.facts import node_facts, pod_facts, queue_facts
from enbloc.engine.tree_facts import observe_tree
from enbloc.gangs.compatibility import constraints_of, pod_constraints
from enbloc.gangs.constraints import Unhonoured
from enbloc.gangs.dialect import Changed
from enbloc.gangs.lenient import bare_spec
from enbloc.gangs.model import Complaint, GangKey, GangSpec, Membership
from enbloc.gangs.own_annotations import DIGEST
from enbloc.gangs.record_digests import Keyring
from enbloc.gangs.registry import CONDITIONS_READ, GangRegistry, queue_hint
from enbloc.gangs.single_pod import SinglePod
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.held_gangs import LEFT_OUT, HeldGangs, Unread, bare_pod, log_fault
from enbloc.runtime.own_records import OwnRecords
from enbloc.runtime.recorder import Recorder
from enbloc.runtime.records_on_queues import RecordsOnQueues
from enbloc.runtime.waits_written import WaitsWritten, waited_before

UNSUPPORTED_PREFERENCE = "UnsupportedPreference"
"""The reason of Events about preferences that have no effect (N1)."""
MOST_COMPLAINTS: Final = 64
"""Of one object so many different faults are reported: its author may write others without end."""
_CARRY_RECORDS: Final = GangRegistry.kinds | {"Pod", volcano.QUEUE}
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass.storage.k8s.io"})


class EventReader:
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
        held: HeldGangs | None = None,
    ) -> None:
        """`names`: the scheduler names whose pods are scheduled; `keyring` signs and verifies records (S2), unless
        `records` decides which of them count; `metrics` gets what each cycle does; `held`: of the translator that this
        one replaces."""
        self._names = names
        self._keyring = keyring
        self._metrics = metrics
        self._held = held or HeldGangs(metrics.failed if metrics is not None else lambda: None)
        self.torn = False
        """Whether something raised, and the state cannot be shown to be as it should: `anew` is to replace it (S8)."""
        self._holds_unsupported = config.unsupported == "hold"
        self._registry = GangRegistry.of(config)
        self.kinds = EventReader.kinds | self._registry.kinds
        self.engine = Engine(config)
        self._records = records if records is not None else OwnRecords(keyring)
        self._waits_written = WaitsWritten(self.engine.state.gangs)
        self._on_queues = RecordsOnQueues(self.engine.parts, self._records)
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
        self._read_once: dict[GangKey, bool] = {}
        """Gangs that were read since `read_changed`, and whether they changed again: many objects may be one gang."""

    # ---- events into facts

    def observe(self, event: WatchEvent) -> None:
        gone = event.type == "DELETED"
        try:
            if gone:
                self._forget_unread(uid_of(event.obj))
                self._records.gone(uid_of(event.obj))
                self._suspected.pop(uid_of(event.obj), None)
            elif event.kind in _CARRY_RECORDS:
                obj = self._records.authentic(event.obj)
                event = msgspec.structs.replace(event, obj=obj) if obj is not event.obj else event
            if not self.torn and not (self._held.unread and self._is_unread(event)):
                self._read(event, gone)
        except Exception as failure:
            self._fail_to_read(event, failure)
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
                self._on_queues.observe(obj, gone)
            case kind if kind in TREE_KINDS:
                if observe_tree(state.trees, kind, obj, gone):
                    state.note_tree_changed()
            case kind if kind in _VOLUME_KINDS:
                state.put_volume(kind, obj, gone)
            case _:
                if event.kind == RESOURCE_QUOTA:
                    self._on_queues.observe_quota(obj, gone)
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
        if complaint.message not in known and len(known) < MOST_COMPLAINTS:
            known.add(complaint.message)
            self._new_complaints.setdefault(complaint.uid, []).append(complaint)

    def read_changed(self) -> None:
        """Reads the gangs that changed again since they were read."""
        changed, self._read_once = self._read_once, {}
        for key in [key for key, again in changed.items() if again]:
            self._read_gang(key)

    def _apply(self, changed: Changed) -> None:
        """Reads again the gangs and pods that an event changed."""
        for key in changed.gangs:
            if key in self._read_once:
                self._read_once[key] = True
            else:
                self._read_once[key] = False
                self._read_gang(key)
        for pod in changed.pods:
            known = self._unbound.get(uid_of(pod), pod)  # dialects are not given changed conditions
            try:
                self._put_pod(known)
            except Exception as failure:
                self._fail_to_read(WatchEvent("MODIFIED", "Pod", known), failure)

    def _read_gang(self, key: GangKey) -> None:
        if self.torn or not self._registry.reads(key):
            return
        try:
            if key in self._held:
                for obj in self._registry.objects(key):
                    self._held.hear(key, obj)
            if self._held.level(key) != LEFT_OUT:
                self._read_declared(key)
        except Exception as failure:
            self._hold(key, failure)
            self._held.read_bare(key)
            self._put_bare(key)

    def _read_declared(self, key: GangKey) -> None:
        if self._held.level(key):
            self._put_bare(key)
            return
        state = self.engine.state
        spec = self._with_fault(self._registry.spec(key))
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
            state.put_gang(self._undeclared(key, oldest.created_ns, queue))
        elif known is not None:
            state.remove_gang(key)

    def _undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        spec = self._with_fault(self._registry.undeclared(key, created_ns, queue))
        assert spec is not None
        return spec

    def _with_fault(self, spec: GangSpec | None) -> GangSpec | None:
        """The gang, held by what raised (S8)."""
        text = self._held.text(spec.key) if spec is not None else ""
        return msgspec.structs.replace(spec, fault=text) if spec is not None and text else spec

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
            if task is not None and task.gang.key in self._held:
                self._held.changed(task.gang.key)
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
        if membership.gang in self._held and not self._put_held_pod(pod, membership.gang):
            return
        decision, mark = self._records.marks(pod, membership.gang)
        if not decision and not mark and DIGEST in annotations_of(pod):
            self._suspected[uid] = ref_of(pod)
        facts = pod_facts(pod, self._names, decision, mark, self._pod_held_by(pod, membership.gang))
        if facts.ours and not facts.node:
            self._unbound[uid] = pod
            if known is None or as_written(known) != as_written(pod):
                self._read_complaints(pod, gone=False)
        else:
            self._unbound.pop(uid, None)
        self.engine.state.put_pod(
            facts, membership, lambda: self._undeclared(membership.gang, facts.created_ns, queue_hint(pod))
        )

    def _pod_held_by(self, pod: Obj, key: GangKey) -> str:
        if pod["spec"].get("nodeName") or pod["spec"].get("schedulerName") not in self._names:
            return ""
        gang = self.engine.state.gangs.get(key)
        return self._held_by(pod, pod_constraints(pod), gang is not None and gang.satisfied)

    # ---- what raised (S8)

    def _hold(self, key: GangKey, failure: BaseException) -> None:
        """The objects of a gang made something raise: it is held. Where the state may have changed it is torn, unless a
        recount shows that it is right."""
        self._held.hold(key, failure, self._objects_of(key))
        self.torn = self.torn or not self.engine.state.is_intact()

    def _objects_of(self, key: GangKey) -> list[Obj]:
        """Those that its author may change: its own, and its pods without a node."""
        gang, objects = self.engine.state.gangs.get(key), []
        with suppress(Exception):
            objects = self._registry.objects(key)
        uids = gang.tasks if gang is not None else ()
        return [*objects, *(self._unbound[uid] for uid in uids if uid in self._unbound)]

    def _object(self, key: GangKey) -> Obj | None:
        """The object that carries a gang's conditions, though it could not be read."""
        found = self._registry.object(key)
        if found is None and key in self._held:
            unread = (one.event for one in self._held.unread.values() if key in one.keys)
            found = next((event.obj for event in unread if event.kind != "Pod"), None)
        return found

    def _put_bare(self, key: GangKey) -> None:
        """The gang as a name, without values."""
        obj, known = None, self.engine.state.gangs.get(key)
        try:
            with suppress(Exception):
                obj = self._object(key)
            text = self._held.text(key)
            self.engine.state.put_gang(bare_spec(key, text, obj, known.spec if known is not None else None))
        except Exception as failure:
            self.torn = True
            log_fault(key, failure)

    def _forget_unread(self, uid: str) -> None:
        unread = self._held.unread.pop(uid, None)
        for key in unread.keys if unread is not None else ():
            self._held.changed(key)

    def _is_unread(self, event: WatchEvent) -> bool:
        """An object that could not be read is not read before its gang is tried again."""
        unread = self._held.unread.get(uid_of(event.obj))
        if unread is None:
            return False
        self._held.unread[uid_of(event.obj)] = unread._replace(event=event)
        for key in unread.keys:
            self._held.hear(key, event.obj)
        if event.kind == "Pod" and unread.counts:
            self._put_bare_pod(event.obj, unread.keys[0])
        return True

    def _fail_to_read(self, event: WatchEvent, failure: Exception) -> None:
        """An object could not be read: its gang is held, and without one the object does not count."""
        obj = event.obj
        keys: tuple[GangKey, ...]
        if event.kind == "Pod":
            keys = (self._gang_of(obj),)
        elif event.kind in self._registry.kinds:
            keys = self._registry.keys_of(event.kind, obj)
            self.torn = True  # a dialect may have read half of it
        else:
            keys = (GangKey(event.kind, namespace_of(obj), name_of(obj)),)
        if event.type == "DELETED":
            self.torn = True
        else:
            self._held.unread[uid_of(obj)] = Unread(keys, event)
        for key in keys:
            self._hold(key, failure)
            if event.kind == "Pod" and not self.torn:
                self._put_bare_pod(obj, key)
            self._read_gang(key)

    def _gang_of(self, pod: Obj) -> GangKey:
        try:
            return self._registry.member(pod).gang
        except Exception:
            return GangKey(SinglePod.name, namespace_of(pod), name_of(pod))

    def _put_held_pod(self, pod: Obj, key: GangKey) -> bool:
        """Notes a pod of a held gang. Whether it is read all the same."""
        if not pod["spec"].get("nodeName"):
            self._held.hear(key, pod)
        if self._held.level(key) != LEFT_OUT:
            return True
        self._held.unread[uid_of(pod)] = Unread((key,), WatchEvent("ADDED", "Pod", pod))
        self._put_bare_pod(pod, key)
        return False

    def _put_bare_pod(self, pod: Obj, key: GangKey) -> None:
        """A pod that could not be read: it holds its room, and waits with its gang. Of a gang that is left out, only
        pods that have a node count, each for itself."""
        left_out = self._held.level(key) == LEFT_OUT
        try:
            facts = pod_facts(bare_pod(pod), self._names)
            if left_out and not facts.node:
                return
            if facts.ours and not facts.node:
                self._unbound[facts.uid] = pod
            gang = GangKey(SinglePod.name, facts.namespace, facts.name) if left_out else key
            spec = bare_spec(gang, self._held.text(gang), None)
            spec = msgspec.structs.replace(spec, created_ns=facts.created_ns)
            self.engine.state.put_pod(facts, Membership(gang, "", None), lambda: spec)
        except Exception as failure:
            log_fault((*key, name_of(pod)), failure)
            unread = self._held.unread.get(uid_of(pod))
            if unread is not None:
                self._held.unread[uid_of(pod)] = unread._replace(counts=False)
            self.torn = True

    def _try_again(self, now_ns: int) -> None:
        """Gangs that were held long enough, or whose objects changed, are read as always."""
        for key, unread in self._held.take_due(now_ns):
            for event in unread:
                self._unbound.pop(uid_of(event.obj), None)  # so that it is new
                try:
                    self._read(event, gone=False)
                except Exception as failure:
                    self._fail_to_read(event, failure)
            self._read_gang(key)
            try:
                self.engine.state.gang_table.touch_known(key)
            except Exception as failure:
                self.torn = True
                self._hold(key, failure)


def _differ_in_conditions_alone(known: Obj, pod: Obj) -> bool:
    """Whether all but conditions, and what the API server counts, is as it was."""
    if as_written(known) != as_written(pod):
        return False
    before, after = known["metadata"], pod["metadata"]
    if before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return False
    return _without_conditions(known) == _without_conditions(pod)


def _without_conditions(pod: Obj) -> Obj:
    return {key: value for key, value in (pod.get("status") or {}).items() if key != "conditions"}
