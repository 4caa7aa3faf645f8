"""The controller of kube-arbitrator's QueueJob: its SchedulingSpec, its pods and its status (A3 to A7).

Each job is reconciled by itself; pods are created for all jobs of a namespace together, so that under a quota only
those of the lowest priority lack pods (A4). Leaves phases and restarts to `queuejob_phase`, the pods' content to
`queuejob_pods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from enbloc.api import arbitrator
from enbloc.api.meta import Obj, Ref, controller_key, is_terminating, key_of, name_of, namespace_of, uid_of
from enbloc.api.quotas import RESOURCE_QUOTA, Quota, quota_of
from enbloc.api.writes import Create, Delete, EmitEvent, Patch, Refused, WatchEvent, Write
from enbloc.config import Tenancy
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.controllers import queuejob_phase as phases
from enbloc.controllers.foreign_jobs import ForeignJobs
from enbloc.controllers.guarded import guarded
from enbloc.controllers.plan import current_plan
from enbloc.controllers.queuejob_order import (
    Charge,
    MissingPods,
    QuotaRoom,
    creation_order,
    missing_pods,
    refused_behind,
)
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot, plan_of
from enbloc.controllers.queuejob_pods import QueueJobPod, member_of, new_pod, new_spec, spec_patch
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.controllers.timers import Batches, Timers
from enbloc.faults import Faults
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.priority_classes import PRIORITY_CLASS

Pods = dict[str, QueueJobPod]


class QueueJobController:
    """Reconciles QueueJobs."""

    kinds = frozenset({arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC, "Pod", RESOURCE_QUOTA, PRIORITY_CLASS})

    def __init__(
        self,
        scheduler_name: str = SCHEDULER_NAMES[0],
        ours: frozenset[str] | None = None,
        tenancy: Tenancy = Tenancy(),  # noqa: B008 - it is frozen
    ) -> None:
        """`scheduler_name`: of jobs that name none; `ours`: jobs that name another scheduler are left alone (N5)."""
        self._foreign = ForeignJobs(ours)
        self._scheduler_name = scheduler_name
        self._plans: dict[str, QueueJobPlan] = {}
        self._uids: dict[str, dict[str, str]] = {}  # namespace -> name -> UID of the QueueJob
        self._specs: dict[str, Obj] = {}  # SchedulingSpecs by the key of their QueueJob
        self._pods: dict[str, Pods] = {}  # by the key of their QueueJob
        self._refused_specs: dict[str, str] = {}  # why the SchedulingSpec of a job could not be created
        self._failed_creates: dict[str, str] = {}
        """Why the last pod of a job that was refused could not be created; empty: all pods exist."""
        self._attempts: dict[tuple[str, str], int] = {}  # of failed pods that were deleted to be recreated
        self._missing_pods: dict[str, dict[str, MissingPods]] = {}  # namespace -> UID of jobs that lack pods
        self._dirty: set[str] = set()
        self._namespaces_to_fill: set[str] = set()  # namespaces with jobs that may lack pods
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._charged: dict[str, Charge] = {}  # namespace -> taken by pods created since its quotas were read
        self._timers = Timers()
        self._batches = Batches()  # by namespace: the jobs of one create their pods together
        self._retries: Retries[tuple[str, str]] = Retries()  # (namespace, "") for a quota, (namespace, UID) for a job
        self._stopped: set[tuple[str, str]] = set()  # refused in the reconcile that is under way
        self._priorities = GangPriorities(tenancy)
        self._events: list[EmitEvent] = []
        self.faults: Faults[str] = Faults()

    # Watch events

    def observe(self, event: WatchEvent) -> None:
        match event.kind:
            case arbitrator.QUEUE_JOB:
                self._observe_job(event.obj, event.type == "DELETED")
            case arbitrator.SCHEDULING_SPEC:
                self._observe_spec(event.obj, event.type == "DELETED")
            case "Pod":
                self._observe_pod(event.obj, event.type == "DELETED")
            case "ResourceQuota":
                self._observe_quota(event.obj, event.type == "DELETED")
                self._priorities.observe(event)
            case _:
                self._priorities.observe(event)
                self._dirty.update(self._plans)

    def _observe_job(self, obj: Obj, gone: bool) -> None:
        uid = uid_of(obj)
        known = self._plans.pop(uid, None)
        if gone:
            self._forget(uid, obj)
            return
        self._dirty.add(uid)
        plan = current_plan(known, obj, lambda obj: plan_of(obj, self._scheduler_name))
        if plan is None or self._foreign.leaves_alone(obj, plan.scheduler_name):
            return
        self._plans[uid] = plan
        self._uids.setdefault(namespace_of(obj), {})[name_of(obj)] = uid

    def _forget(self, uid: str, obj: Obj) -> None:
        names = self._uids.get(namespace_of(obj), {})
        if names.get(name_of(obj)) == uid:
            del names[name_of(obj)]
            if not names:
                del self._uids[namespace_of(obj)]
        self._dirty.discard(uid)
        self._note_missing(namespace_of(obj), uid, None)
        self._foreign.forget(uid)
        self._failed_creates.pop(uid, None)
        self._refused_specs.pop(uid, None)
        self._timers.cancel(uid)
        if not names:
            self._retries.forget((namespace_of(obj), ""))
        self._retries.forget((namespace_of(obj), uid))
        for key in [key for key in self._attempts if key[0] == uid]:
            del self._attempts[key]
        if not self._pods.get(key_of(obj)):
            self._pods.pop(key_of(obj), None)

    def _observe_spec(self, obj: Obj, gone: bool) -> None:
        key = controller_key(obj, arbitrator.QUEUE_JOB)
        if not key:
            return
        if not gone:
            self._specs[key] = obj
        elif key in self._specs and uid_of(self._specs[key]) == uid_of(obj):
            del self._specs[key]
        self._requeue(key)

    def _requeue(self, key: str) -> None:
        """Marks a job for the next reconcile. One that does not exist is marked when it is created."""
        uid = key.partition("/")[2]
        if uid in self._plans and self._plans[uid].key == key:
            self._dirty.add(uid)

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._requeue_refused(namespace_of(pod))  # a quota may have room again, or a name be free
        key = controller_key(pod, arbitrator.QUEUE_JOB)
        if not key:
            return
        pods = self._pods.setdefault(key, {})
        if not gone:
            pods[name_of(pod)] = member_of(pod)
        elif name_of(pod) in pods and pods[name_of(pod)].uid == uid_of(pod):
            del pods[name_of(pod)]
            if not pods:
                del self._pods[key]
        self._requeue(key)

    def _observe_quota(self, obj: Obj, gone: bool) -> None:
        namespace, name = namespace_of(obj), name_of(obj)
        quotas = self._quotas.setdefault(namespace, {})
        if gone:
            quotas.pop(name, None)
        else:
            quotas[name] = quota_of(obj)
        charged = self._charged.pop(namespace, {})
        if quotas:
            self._charged[namespace] = {key: nanos for key, nanos in charged.items() if key[0] != name}
        else:
            del self._quotas[namespace]
        if namespace in self._missing_pods:
            self._namespaces_to_fill.add(namespace)
        self._requeue_refused(namespace)

    def _requeue_refused(self, namespace: str) -> None:
        for key in self._retries.keys():  # noqa: SIM118
            if key[0] == namespace and self._retries.end_delay(key):
                self._requeue_key(key)

    def _requeue_key(self, key: tuple[str, str]) -> None:
        namespace, uid = key
        self._namespaces_to_fill.add(namespace)
        if uid:
            self._dirty.add(uid)

    # Writes

    def reconcile(self, now_ns: int) -> Iterator[Write]:
        for key in self._retries.take_due(now_ns):
            self._requeue_key(key)
        self._dirty.update(self._timers.take_due(now_ns))
        self._dirty.update(self.faults.take_due(now_ns))
        self._namespaces_to_fill.update(self._batches.take_due(now_ns))
        plans = sorted((self._plans[uid] for uid in self._dirty if uid in self._plans), key=_sort_key)
        self._dirty.clear()
        self._stopped.clear()
        for plan in plans:
            self._note_missing(plan.namespace, plan.uid, None)
            if not is_terminating(plan.obj):
                yield from self._guarded(plan, partial(self._sync, plan, now_ns))
        namespaces, self._namespaces_to_fill = self._namespaces_to_fill, set()
        for namespace in sorted(namespaces):
            yield from self._create_missing(namespace, now_ns)
        yield from self._foreign.take_events()
        events, self._events = self._events, []
        yield from events  # of writes that were refused meanwhile

    def _guarded(self, plan: QueueJobPlan, writes: Callable[[], Iterable[Write]]) -> Iterator[Write]:
        return guarded(self.faults, plan.uid, plan.obj, writes)

    def _sync(self, plan: QueueJobPlan, now_ns: int) -> Iterator[Write]:
        """One job: everything but creating pods, which are only recorded as missing."""
        pods = self._pods.setdefault(plan.key, {})
        slots = plan.slots(self._priorities.classes)
        self._timers.cancel(plan.uid)
        if phases.is_over(plan):
            yield from self._status(plan, slots, pods, None, now_ns)
            return
        if phases.phase_of(plan) == phases.RESTARTING:
            yield from self._restart(plan, slots, pods, now_ns)
            return
        if not self._retries.waits((plan.namespace, plan.uid), now_ns):
            yield from self._scheduling_spec(plan)
        verdict = phases.restart_of(plan, slots, pods, now_ns)
        if verdict is not None:
            self._note_restart(plan, slots, pods, verdict, now_ns)
            yield from self._status(plan, slots, pods, verdict, now_ns)
            yield _event(plan, verdict.reason, verdict.message)
            return
        yield from self._delete_surplus_and_failed(plan, slots, pods, now_ns)
        self._note_missing_pods(plan, slots, pods, now_ns)
        verdict = phases.next_phase(plan, slots, pods)
        yield from self._status(plan, slots, pods, verdict, now_ns)

    def _scheduling_spec(self, plan: QueueJobPlan) -> Iterator[Write]:
        """The SchedulingSpec comes before any pod (A4: a raised minimum counts before its pods exist)."""
        found = self._specs.get(plan.key)
        if found is None:
            yield Create(new_spec(plan))
            return
        self._refused_specs.pop(plan.uid, None)
        if not is_terminating(found):
            yield from _one(spec_patch(found, plan, self._failed_creates.get(plan.uid)))

    def _restart(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now_ns: int) -> Iterator[Write]:
        """Deletes all pods; when they are gone and the delay is over, the job starts over."""
        for pod in sorted(pods.values(), key=lambda pod: pod.name):
            if not pod.terminating:
                yield _delete(plan, pod)
            self._attempts.pop((plan.uid, pod.name), None)
        at = phases.restart_ns(plan)
        restart = phases.QueueJobVerdict(phases.RESTARTING, restart_ns=at, restarts=phases.status_of(plan).restarts)
        self._note_restart(plan, slots, pods, restart, now_ns)
        if now_ns < at:
            self._timers.set(plan.uid, at)
        begins = not pods and now_ns >= at
        yield from self._status(plan, slots, pods, phases.QueueJobVerdict(phases.PENDING) if begins else None, now_ns)

    def _status(
        self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, verdict: phases.QueueJobVerdict | None, now_ns: int
    ) -> Iterator[Write]:
        refused, spec = self._refused_specs.get(plan.uid, ""), self._specs.get(plan.key)
        yield from _one(phases.status_patch(plan, slots, pods, verdict, now_ns, spec, refused))

    def _delete_surplus_and_failed(
        self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now_ns: int
    ) -> Iterator[Write]:
        """Deletes surplus pods, highest index first, and failed ones whose delay is over, to recreate them."""
        wanted = {slot.name for slot in slots}
        for pod in sorted(pods.values(), key=lambda pod: _index(pod.name), reverse=True):
            if pod.terminating:
                continue
            if pod.name not in wanted:
                yield _delete(plan, pod)
            elif pod.phase == "Failed":
                at = pod.ended_ns + phases.delay_of(pod.attempt + 1)
                if now_ns >= at:
                    self._attempts[plan.uid, pod.name] = pod.attempt + 1
                    yield _delete(plan, pod)
                else:
                    known = self._timers.get(plan.uid)
                    self._timers.set(plan.uid, at if known is None else min(at, known))

    def _note_missing_pods(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now_ns: int) -> None:
        if all(slot.name in pods for slot in slots):
            self._retries.forget((plan.namespace, plan.uid))
            if self._failed_creates.get(plan.uid):
                self._dirty.add(plan.uid)  # to say so on its SchedulingSpec
            self._failed_creates[plan.uid] = ""
        lost = [slot for slot in slots if slot.name not in pods or pods[slot.name].is_gone]
        if lost:
            created = phases.created(plan, slots, pods)
            there = [pod for pod in pods.values() if pod.is_gone]
            note = phases.note_of_lost(there, now_ns)
            coming = frozenset(pod.name for pod in there)
            needed = plan.minimum - (len(slots) - len(lost))
            self._note_missing(plan.namespace, plan.uid, missing_pods(plan, slots, lost, created, needed, coming, note))

    def _note_restart(
        self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, restart: phases.QueueJobVerdict, now_ns: int
    ) -> None:
        """All pods that the job had, and its minimum, come back when it starts over."""
        created, coming = phases.created(plan, slots, pods), frozenset(slot.name for slot in slots)
        note = phases.note_of_restart(restart, now_ns)
        missing = missing_pods(plan, slots, slots, created, plan.minimum, coming, note)
        self._note_missing(plan.namespace, plan.uid, missing)

    def _note_missing(self, namespace: str, uid: str, missing: MissingPods | None) -> None:
        """Records what a job lacks; whatever changed, others may create their pods now."""
        of_namespace = self._missing_pods.setdefault(namespace, {})
        of_namespace.pop(uid, None)
        if missing is not None:
            of_namespace[uid] = missing
        if of_namespace:
            self._namespaces_to_fill.add(namespace)
        else:
            del self._missing_pods[namespace]

    def _create_missing(self, namespace: str, now_ns: int) -> Iterator[Write]:
        """Creates the pods that jobs of a namespace lack, until a quota refuses one (A4)."""
        quota = (namespace, "")
        if self._retries.waits(quota, now_ns):
            return
        lacking = [one for one in self._missing_pods.get(namespace, {}).values() if not self._waits(one.plan, now_ns)]
        lacking.sort(key=lambda one: one.plan.order_key(self._priorities))
        charged = self._charged.get(namespace, {})
        room = QuotaRoom(self._quotas.get(namespace, {}).values(), charged)
        made: set[str] = set()
        reasons: dict[str, str] = {}  # UID of a job that others come before -> why it creates no pod
        for one, slot in creation_order(lacking, room, reasons):
            if self._waits(one.plan, now_ns):
                continue
            if self._batches.room(namespace, now_ns) <= 0:
                break
            self._batches.add(namespace, 1, now_ns)
            attempt = self._attempts.get((one.plan.uid, slot.name), 0)
            yield from self._guarded(one.plan, partial(_create, one.plan, slot, attempt))
            if quota in self._stopped:  # later jobs have lower priority and would take what this one lacks
                reasons |= refused_behind(one, lacking, made)
                break
            if (namespace, one.plan.uid) not in self._stopped:
                self._attempts.pop((one.plan.uid, slot.name), None)
                made.add(slot.name)
                charged.update({key: nanos + charged.get(key, 0) for key, nanos in room.charge([slot]).items()})
        else:
            self._retries.forget(quota)
        for one in lacking:
            one.remove(made)
            if one.plan.uid in reasons:
                self._failed_creates[one.plan.uid] = reasons[one.plan.uid]
                if one.plan.key in self._specs:  # a SchedulingSpec that was created just now says so once it is seen
                    yield from self._scheduling_spec(one.plan)
        if charged:
            self._charged[namespace] = charged

    def _waits(self, plan: QueueJobPlan, now_ns: int) -> bool:
        """Whether a write of the job was refused for its own sake, and it is not to be retried yet."""
        key = (plan.namespace, plan.uid)
        return key in self._stopped or self._retries.waits(key, now_ns)

    # Refused writes

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        plan = self._plan_of(write)
        if plan is None or (not isinstance(write, Create) and is_superseded(error)):
            return  # gone or changed: a watch event follows
        if isinstance(write, Create) and error.reason == "AlreadyExists" and self._is_ours(plan, write.obj):
            return
        by_quota = isinstance(write, Create) and write.obj["kind"] == "Pod" and "exceeded quota" in error.message
        key = (plan.namespace, "" if by_quota else plan.uid)
        self._stopped.add(key)
        if self._retries.refuse(key, now_ns):
            if isinstance(write, Create) and write.obj["kind"] == "Pod":
                self._failed_creates[plan.uid] = f"the API server refuses more: {error.message}"
                self._dirty.add(plan.uid)  # to say so on its SchedulingSpec
            elif isinstance(write, Create):
                self._refused_specs[plan.uid] = f"its {write.obj['kind']} cannot be created: {error.message}"
                self._dirty.add(plan.uid)
            reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
            self._events.append(_event(plan, reason, error.message))

    def _is_ours(self, plan: QueueJobPlan, obj: Obj) -> bool:
        """Whether the object that exists already was created by this controller for this job."""
        if obj["kind"] == "Pod":
            return name_of(obj) in self._pods.get(plan.key, {})
        return plan.key in self._specs

    def _plan_of(self, write: Write) -> QueueJobPlan | None:
        """The job that a write belongs to."""
        match write:
            case Create(obj=obj):
                return self._plans.get(controller_key(obj, arbitrator.QUEUE_JOB).partition("/")[2])
            case Patch(ref=ref) if ref.kind in (arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC):
                return self._plans.get(self._uids.get(ref.namespace, {}).get(ref.name, ""))
            case _:
                return None

    def due(self) -> int | None:
        timers = [at for at in (self._retries.next(), self._timers.next(), self._batches.next()) if at is not None]
        return min(timers, default=None)


def _sort_key(plan: QueueJobPlan) -> tuple[str, str, str]:
    return (plan.namespace, plan.name, plan.uid)


def _one(patch: Patch | None) -> Iterator[Write]:
    if patch is not None:
        yield patch


def _create(plan: QueueJobPlan, slot: Slot, attempt: int) -> list[Write]:
    return [Create(new_pod(plan, slot, attempt))]


def _delete(plan: QueueJobPlan, pod: QueueJobPod) -> Delete:
    return Delete(Ref("Pod", plan.namespace, pod.name), pod.uid)


def _index(name: str) -> tuple[int, str]:
    role, _, index = name.rpartition("-")
    return (int(index) if index.isascii() and index.isdecimal() else -1, role)


def _event(plan: QueueJobPlan, reason: str, message: str) -> EmitEvent:
    return EmitEvent(Ref(arbitrator.QUEUE_JOB, plan.namespace, plan.name), plan.uid, "Warning", reason, message)
