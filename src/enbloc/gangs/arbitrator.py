"""kube-arbitrator's dialect: a SchedulingSpec and pods with the same controlling owner are a gang (A1, V5).

The owner may be of any kind, also an unknown one: only its UID counts. Pods of a QueueJob, and pods for
`kar-scheduler`, wait where there is no SchedulingSpec. Of a QueueJob only the phase is read, so that a restarted
scheduler knows what has run; its controller creates the pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from enbloc.api import arbitrator
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import (
    Obj,
    Ref,
    annotations_of,
    condition_of,
    controller_key,
    controller_of,
    created_ns_of,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    number_in,
    owner_key,
    uid_of,
)
from enbloc.api.volcano import FAILED_CREATE, TASK_INDEX, TASK_SPEC
from enbloc.api.writes import WatchEvent
from enbloc.config import Arbitrator as Settings
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by, refusal_of, without_object
from enbloc.gangs.gang_priority import GangPriorities, OwnPriority, is_about
from enbloc.gangs.hints import hints_of
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, GangStatus, Membership, with_records_of


class _ByOwner:
    """Objects by UID under the key of their gang, which changes when another owner adopts them."""

    def __init__(self) -> None:
        self.found: dict[GangKey, dict[str, Obj]] = {}
        self.key_by_uid: dict[str, GangKey] = {}

    def of(self, key: GangKey) -> dict[str, Obj]:
        return self.found.get(key, {})

    def keep(self, obj: Obj, key: GangKey | None) -> tuple[GangKey, ...]:
        """Files an object under a key, if any, and no other; returns the old and the new key."""
        uid = uid_of(obj)
        before = self.key_by_uid.pop(uid, None)
        if before is not None and before != key:
            del self.found[before][uid]
            if not self.found[before]:
                del self.found[before]
        if key is None:
            return () if before is None else (before,)
        self.key_by_uid[uid] = key
        self.found.setdefault(key, {})[uid] = obj
        return (key,) if before is None or before == key else (before, key)


class Arbitrator:
    """Gangs declared by SchedulingSpecs, by the UID of the controlling owner."""

    name = "arbitrator"
    kinds = frozenset({arbitrator.SCHEDULING_SPEC, arbitrator.QUEUE_JOB}) | GangPriorities.kinds

    def __init__(self, priorities: GangPriorities, settings: Settings) -> None:
        self._priorities = priorities
        self._requires = settings.require_scheduling_spec
        self._specs = _ByOwner()
        """SchedulingSpecs; of several with one owner the oldest counts."""
        self._queue_jobs: dict[GangKey, Obj] = {}
        self._pods = _ByOwner()
        """Pods by controlling owner, whatever their dialect: a SchedulingSpec may be created after them."""
        self._orphaned: set[GangKey] = set()
        """Gangs whose SchedulingSpec was deleted while pods waited; read from the pods' conditions after a restart."""

    # Watch events

    def observe(self, event: WatchEvent) -> Changed:
        gone = event.type == "DELETED"
        if event.kind == arbitrator.SCHEDULING_SPEC:
            return self._observe_spec(event.obj, gone)
        if event.kind == arbitrator.QUEUE_JOB:
            return self._observe_queue_job(event.obj, gone)
        return Changed(tuple(key for key in sorted(self._specs.found) if is_about(event, key)))

    def _observe_spec(self, obj: Obj, gone: bool) -> Changed:
        own = None if gone else self._key_of(obj)
        had = {key for key in (self._specs.key_by_uid.get(uid_of(obj)), own) if key in self._specs.found}
        keys = self._specs.keep(obj, own)
        found: list[Obj] = []
        for key in keys:
            pods = self._pods.of(key)
            if (key in had) == (key in self._specs.found):
                continue
            if key in had and any(map(_is_waiting, pods.values())):
                self._orphaned.add(key)
            else:
                self._orphaned.discard(key)
            found += pods.values()
        return Changed(keys, tuple(found))

    def _observe_queue_job(self, obj: Obj, gone: bool) -> Changed:
        key = GangKey(self.name, namespace_of(obj), uid_of(obj))
        refused = refusal_of(self._queue_jobs.pop(key, None))
        if not gone:
            self._queue_jobs[key] = obj
        changed = refused != refusal_of(self._queue_jobs.get(key)) or (not gone and key in self._specs.found)
        return Changed((key,)) if changed else NOTHING

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        is_candidate = controller_of(pod) is not None or pod["spec"].get("schedulerName") == arbitrator.KAR_SCHEDULER
        own = self._key_of(pod) if is_candidate and not gone else None
        found: list[Obj] = []
        for key in self._pods.keep(pod, own):
            pods = self._pods.of(key)
            if key in self._specs.found:
                continue
            if key == own and key not in self._orphaned and self._is_reported(key, pod):
                self._orphaned.add(key)
                found += pods.values()
            elif key in self._orphaned and not any(map(_is_waiting, pods.values())):
                self._orphaned.discard(key)  # no pod waits any more: new pods are as free as after a restart
                found += pods.values()
        return Changed((), tuple(found)) if found else NOTHING

    # Gangs

    def member(self, pod: Obj) -> Membership | None:
        owner = controller_of(pod)
        for_kar = pod["spec"].get("schedulerName") == arbitrator.KAR_SCHEDULER
        if owner is None and not for_kar:
            return None
        key = self._key_of(pod)
        waits_without = (
            for_kar or controller_key(pod, arbitrator.QUEUE_JOB) != "" or (self._requires and _is_foreign(owner))
        )
        if not waits_without and key not in self._specs.found and key not in self._orphaned:
            return None
        labels, annotations = labels_of(pod), annotations_of(pod)
        role = labels.get(TASK_SPEC) or annotations.get(TASK_SPEC) or ""
        return Membership(key, role, number_in(labels.get(TASK_INDEX) or annotations.get(TASK_INDEX)))

    def spec(self, key: GangKey) -> GangSpec | None:
        obj = self.object(key)
        if obj is None:
            job = self._queue_jobs.get(key)
            asked = ((job or {}).get("spec") or {}).get("schedSpec") or {}
            return without_object(key, job, asked.get("minAvailable"), queue_named_by(job) if job else "")
        owner = controller_of(obj)
        asked = view(obj, arbitrator.SchedulingSpec).spec
        minimum = max(asked.min_available or 0, 0)
        met = self._met(key)
        phase = self._phase(key)
        own = self._priorities.own(key.namespace, asked.priority_class_name)
        if not asked.priority_class_name and asked.priority == self._priorities.classes.default:
            own = OwnPriority(asked.priority)  # admission refuses any other value without a class (A1)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{(owner or {}).get('name') or name_of(obj)}",
            created_ns=created_ns_of(obj),
            minimum=minimum,
            queue=queue_named_by(obj) or DEFAULT_QUEUE,
            **own.fields(self._priorities.classes.default),
            node_selector=asked.node_selector or {},
            keep_partial_allocation=True,
            object=Ref(arbitrator.SCHEDULING_SPEC, key.namespace, name_of(obj)),
            object_uid=uid_of(obj),
            observed=with_records_of(
                obj,
                GangStatus(started=phase in ("Running", "Completed") and met >= minimum, finished=phase == "Completed"),
            ),
            failed_create=annotations_of(obj).get(FAILED_CREATE, ""),
            recreated_by_us=(owner or {}).get("kind") == "QueueJob",
            hints=hints_of(obj),
            never_preempts=self._priorities.classes.never_preempts(asked.priority_class_name or ""),
            problem="" if owner else "it has no controlling owner: pods with the same owner would be its gang",
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """Pods that wait for their SchedulingSpec: it does not exist yet, or was deleted (A1, V5)."""
        pod = next(iter(self._pods.of(key).values()), None)
        owner = controller_of(pod) if pod else None
        name = (owner or {}).get("name") or (name_of(pod) if pod else key.name)
        problem = self._problem(key, pod) if pod else "its SchedulingSpec does not exist"
        return GangSpec(
            key=key, title=f"{key.namespace}/{name}", created_ns=created_ns, minimum=1, queue=queue, problem=problem
        )

    def object(self, key: GangKey) -> Obj | None:
        specs: Iterable[Obj] = self._specs.of(key).values()
        return min(specs, key=lambda obj: (obj["metadata"].get("creationTimestamp") or "", name_of(obj)), default=None)

    def home(self, key: GangKey) -> Obj | None:
        return self.object(key)

    def complaints(self, obj: Obj) -> Iterator[str]:
        if kind_id(obj) == arbitrator.SCHEDULING_SPEC:
            name = view(obj, arbitrator.SchedulingSpec).spec.priority_class_name
            yield from self._priorities.complaints(namespace_of(obj), name)

    def _key_of(self, obj: Obj) -> GangKey:
        """By the controlling owner; an object without one is a gang of its own."""
        owner = controller_of(obj)
        return GangKey(self.name, *(owner_key(obj, owner) if owner else key_of(obj)).split("/", 1))

    def _problem(self, key: GangKey, pod: Obj) -> str:
        owner = controller_of(pod)
        if owner is None:
            return f"SchedulingSpec of Pod {key.namespace}/{name_of(pod)} does not exist: it has no controlling owner"
        return f"SchedulingSpec of {owner.get('kind')} {key.namespace}/{owner.get('name')} does not exist"

    def _is_reported(self, key: GangKey, pod: Obj) -> bool:
        """Whether the condition of a waiting pod says that its SchedulingSpec is missing."""
        if not _is_waiting(pod):
            return False
        condition = condition_of(pod, "PodScheduled")
        return condition is not None and condition.get("message") == self._problem(key, pod)

    def _phase(self, key: GangKey) -> str:
        status = (self._queue_jobs.get(key) or {}).get("status") or {}
        return (status.get("state") or {}).get("phase") or ""

    def _met(self, key: GangKey) -> int:
        return ((self._queue_jobs.get(key) or {}).get("status") or {}).get("met") or 0


def _is_waiting(pod: Obj) -> bool:
    """Whether the pod has no node and has not ended."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not pod["spec"].get("nodeName") and not ended and not is_terminating(pod)


def _is_foreign(owner: Obj | None) -> bool:
    """Whether an owner's kind is not built into Kubernetes: built-in groups that control pods have no dot."""
    if owner is None:
        return False
    group, slash, _ = str(owner.get("apiVersion") or "").partition("/")
    return bool(slash) and "." in group
