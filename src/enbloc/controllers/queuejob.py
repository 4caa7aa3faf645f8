"""The controller of kube-arbitrator's QueueJob: its SchedulingSpec, its pods and its status (A3 to A7).

Each job is reconciled by itself; pods are created for all jobs of a namespace together, so that under a quota only
those of the lowest priority lack pods (A4). Leaves phases and restarts to `queuejob_phase`, the pods' content to
`queuejob_pods`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from enbloc.api import arbitrator
from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Create, Delete, EmitEvent, Patch, Refused, WatchEvent, Write
from enbloc.config import Tenancy
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.controllers import queuejob_phase as phases
from enbloc.controllers.foreign_jobs import ForeignJobs
from enbloc.controllers.plan import current_plan
from enbloc.controllers.queuejob_order import MissingPods, creation_order
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot, plan_of
from enbloc.controllers.queuejob_pods import QueueJobPod, member_of, new_pod, new_spec, spec_patch
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.controllers.timers import Timers
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.priority_classes import PRIORITY_CLASS

RESOURCE_QUOTA: Final = "ResourceQuota"
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
        self._specs: dict[str, Obj] = {}  # SchedulingSpecs by the UID of their QueueJob
        self._pods: dict[str, Pods] = {}
        self._failed_creates: dict[str, str] = {}
        """Why the last pod of a job that was refused could not be created; empty: all pods exist."""
        self._attempts: dict[tuple[str, str], int] = {}  # of failed pods that were deleted to be recreated
        self._missing_pods: dict[str, MissingPods] = {}  # jobs that lack pods
        self._dirty: set[str] = set()
        self._namespaces_to_fill: set[str] = set()  # namespaces with jobs that may lack pods
        self._recreating: set[str] = (
            set()
        )  # jobs whose pods are deleted and recreated at once: they keep their place in the order
        self._quotas: dict[str, set[str]] = {}
        self._timers = Timers()
        self._retries: Retries[tuple[str, str]] = Retries()  # (namespace, "") for a quota, (namespace, UID) for a job
        self._stopped: set[tuple[str, str]] = set()  # refused in the reconcile that is under way
        self._priorities = GangPriorities(tenancy)
        self._events: list[EmitEvent] = []

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
        self._missing_pods.pop(uid, None)
        self._foreign.forget(uid)
        self._failed_creates.pop(uid, None)
        self._timers.cancel(uid)
        self._recreating.discard(uid)
        if names:
            self._namespaces_to_fill.add(namespace_of(obj))  # jobs behind it may create their pods now
        else:
            self._namespaces_to_fill.discard(namespace_of(obj))
            self._retries.forget((namespace_of(obj), ""))
        self._retries.forget((namespace_of(obj), uid))
        for key in [key for key in self._attempts if key[0] == uid]:
            del self._attempts[key]
        if not self._pods.get(uid):
            self._pods.pop(uid, None)

    def _observe_spec(self, obj: Obj, gone: bool) -> None:
        uid = arbitrator.queue_job_uid(obj)
        if uid is None:
            return
        if not gone:
            self._specs[uid] = obj
        elif uid in self._specs and uid_of(self._specs[uid]) == uid_of(obj):
            del self._specs[uid]
        self._requeue(uid)

    def _requeue(self, uid: str) -> None:
        """Marks a job for the next reconcile. One that does not exist is marked when it is created."""
        if uid in self._plans:
            self._dirty.add(uid)

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._requeue_refused(namespace_of(pod))  # a quota may have room again, or a name be free
        uid = arbitrator.queue_job_uid(pod)
        if uid is None:
            return
        pods = self._pods.setdefault(uid, {})
        if not gone:
            pods[name_of(pod)] = member_of(pod)
        elif name_of(pod) in pods and pods[name_of(pod)].uid == uid_of(pod):
            del pods[name_of(pod)]
            if not pods and uid not in self._plans:
                del self._pods[uid]
        self._requeue(uid)

    def _observe_quota(self, obj: Obj, gone: bool) -> None:
        names = self._quotas.setdefault(namespace_of(obj), set())
        if gone:
            names.discard(name_of(obj))
            if not names:
                del self._quotas[namespace_of(obj)]
            if namespace_of(obj) in self._uids:
                self._namespaces_to_fill.add(namespace_of(obj))
        else:
            names.add(name_of(obj))
        self._requeue_refused(namespace_of(obj))

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
        plans = sorted((self._plans[uid] for uid in self._dirty if uid in self._plans), key=_sort_key)
        self._dirty.clear()
        self._stopped.clear()
        for plan in plans:
            self._missing_pods.pop(plan.uid, None)
            if not is_terminating(plan.obj):
                yield from self._sync(plan, now_ns)
        namespaces, self._namespaces_to_fill = self._namespaces_to_fill, set()
        for namespace in sorted(namespaces):
            yield from self._create_missing(namespace, now_ns)
        yield from self._foreign.take_events()
        events, self._events = self._events, []
        yield from events  # of writes that were refused meanwhile

    def _sync(self, plan: QueueJobPlan, now_ns: int) -> Iterator[Write]:
        """One job: everything but creating pods, which are only recorded as missing."""
        pods = self._pods.setdefault(plan.uid, {})
        slots = plan.slots(self._priorities.classes)
        self._timers.cancel(plan.uid)
        self._note_recreating(plan, any(slot.name in pods and pods[slot.name].terminating for slot in slots))
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
            self._note_recreating(plan, verdict.restart_ns <= now_ns)
            yield from self._status(plan, slots, pods, verdict, now_ns)
            yield _event(plan, verdict.reason, verdict.message)
            return
        yield from self._delete_surplus_and_failed(plan, slots, pods, now_ns)
        self._note_missing_pods(plan, slots, pods)
        verdict = phases.next_phase(plan, slots, pods)
        yield from self._status(plan, slots, pods, verdict, now_ns)

    def _note_recreating(self, plan: QueueJobPlan, soon: bool) -> None:
        """Records whether pods of the job are about to be recreated."""
        if soon:
            self._recreating.add(plan.uid)
        elif plan.uid in self._recreating:
            self._recreating.discard(plan.uid)
            self._namespaces_to_fill.add(plan.namespace)

    def _scheduling_spec(self, plan: QueueJobPlan) -> Iterator[Write]:
        """The SchedulingSpec comes before any pod (A4: a raised minimum counts before its pods exist)."""
        found = self._specs.get(plan.uid)
        if found is None:
            yield Create(new_spec(plan))
        elif not is_terminating(found):
            yield from _one(spec_patch(found, plan, self._failed_creates.get(plan.uid)))

    def _restart(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now_ns: int) -> Iterator[Write]:
        """Deletes all pods; when they are gone and the delay is over, the job starts over."""
        for pod in sorted(pods.values(), key=lambda pod: pod.name):
            if not pod.terminating:
                yield _delete(plan, pod)
            self._attempts.pop((plan.uid, pod.name), None)
        at = phases.restart_ns(plan)
        self._note_recreating(plan, at <= now_ns)
        if now_ns < at:
            self._timers.set(plan.uid, at)
        begins = not pods and now_ns >= at
        yield from self._status(plan, slots, pods, phases.QueueJobVerdict(phases.PENDING) if begins else None, now_ns)

    def _status(
        self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, verdict: phases.QueueJobVerdict | None, now_ns: int
    ) -> Iterator[Write]:
        yield from _one(phases.status_patch(plan, slots, pods, verdict, now_ns, self._specs.get(plan.uid)))

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
                    self._note_recreating(plan, True)
                    yield _delete(plan, pod)
                else:
                    known = self._timers.get(plan.uid)
                    self._timers.set(plan.uid, at if known is None else min(at, known))

    def _note_missing_pods(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods) -> None:
        missing = [slot for slot in slots if slot.name not in pods]
        if not missing:
            self._retries.forget((plan.namespace, plan.uid))
            if self._failed_creates.get(plan.uid):
                self._dirty.add(plan.uid)  # to say so on its SchedulingSpec
            self._failed_creates[plan.uid] = ""
            return
        there = sum(slot.name in pods and not pods[slot.name].is_gone for slot in slots)
        self._missing_pods[plan.uid] = MissingPods(plan, missing, max(0, plan.minimum - there))
        self._namespaces_to_fill.add(plan.namespace)

    def _create_missing(self, namespace: str, now_ns: int) -> Iterator[Write]:
        """Creates the pods that jobs of a namespace lack, until a quota refuses one (A4)."""
        quota = (namespace, "")
        if self._retries.waits(quota, now_ns):
            return
        wanted = self._missing_in_order(namespace)
        for plan, slot in creation_order(wanted):
            job = (namespace, plan.uid)
            if job in self._stopped or self._retries.waits(job, now_ns):
                continue
            yield Create(new_pod(plan, slot, self._attempts.get((plan.uid, slot.name), 0)))
            if quota in self._stopped:  # later jobs have lower priority and would take what this one lacks
                return
            if job not in self._stopped:
                self._attempts.pop((plan.uid, slot.name), None)
        for one in wanted:
            self._missing_pods.pop(one.plan.uid, None)
        self._retries.forget(quota)

    def _missing_in_order(self, namespace: str) -> list[MissingPods]:
        """The jobs that lack pods, in order. Under a quota, jobs behind one whose pods are about to be recreated get
        none: they would take the quota that its old pods release."""
        uids = self._uids.get(namespace, {}).values()
        order = {uid: self._plans[uid].order_key(self._priorities) for uid in uids if uid in self._plans}
        coming = [order_key for uid, order_key in order.items() if uid in self._recreating]
        last = min(coming) if coming and self._quotas.get(namespace) else None
        found = [(order[uid], self._missing_pods[uid]) for uid in order if uid in self._missing_pods]
        return [one for order_key, one in sorted(found, key=lambda pair: pair[0]) if last is None or order_key <= last]

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
                self._failed_creates[plan.uid] = error.message
                self._dirty.add(plan.uid)  # to say so on its SchedulingSpec
            reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
            self._events.append(_event(plan, reason, error.message))

    def _is_ours(self, plan: QueueJobPlan, obj: Obj) -> bool:
        """Whether the object that exists already was created by this controller for this job."""
        if obj["kind"] == "Pod":
            return name_of(obj) in self._pods.get(plan.uid, {})
        return plan.uid in self._specs

    def _plan_of(self, write: Write) -> QueueJobPlan | None:
        """The job that a write belongs to."""
        match write:
            case Create(obj=obj):
                return self._plans.get(arbitrator.queue_job_uid(obj) or "")
            case Patch(ref=ref) if ref.kind in (arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC):
                return self._plans.get(self._uids.get(ref.namespace, {}).get(ref.name, ""))
            case _:
                return None

    def due(self) -> int | None:
        timers = [at for at in (self._retries.next(), self._timers.next()) if at is not None]
        return min(timers, default=None)


def _sort_key(plan: QueueJobPlan) -> tuple[str, str, str]:
    return (plan.namespace, plan.name, plan.uid)


def _one(patch: Patch | None) -> Iterator[Write]:
    if patch is not None:
        yield patch


def _delete(plan: QueueJobPlan, pod: QueueJobPod) -> Delete:
    return Delete(Ref("Pod", plan.namespace, pod.name), pod.uid)


def _index(name: str) -> tuple[int, str]:
    role, _, index = name.rpartition("-")
    return (int(index) if index.isascii() and index.isdecimal() else -1, role)


def _event(plan: QueueJobPlan, reason: str, message: str) -> EmitEvent:
    return EmitEvent(Ref(arbitrator.QUEUE_JOB, plan.namespace, plan.name), plan.uid, "Warning", reason, message)
