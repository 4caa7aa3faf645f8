"""The controller of kube-arbitrator's QueueJob: its SchedulingSpec, its pods, and what became of them (A3 to A7).

Each job is looked at for itself; pods are made for all jobs of a namespace together, so that under a quota only those
of the lowest priority miss pods (A4). Which phase a job is in, and when it starts over, is `queuejob_life`'s affair;
how pods look that of `queuejob_pods`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from enbloc.api import arbitrator
from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Create, Delete, EmitEvent, Patch, Refused, WatchEvent, Write
from enbloc.controllers import queuejob_life as life
from enbloc.controllers.priorities import PRIORITY_CLASS, Priorities
from enbloc.controllers.queuejob_order import Wanted, in_turn
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot, plan_of
from enbloc.controllers.queuejob_pods import Member, member_of, new_pod, new_spec, spec_patch
from enbloc.controllers.retry import Retries, watch_tells
from enbloc.controllers.timers import Timers

RESOURCE_QUOTA: Final = "ResourceQuota"
Pods = dict[str, Member]


class QueueJobController:
    """Brings each QueueJob about."""

    kinds = frozenset({arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC, "Pod", RESOURCE_QUOTA, PRIORITY_CLASS})

    def __init__(self) -> None:
        self._plans: dict[str, QueueJobPlan] = {}
        self._uids: dict[str, dict[str, str]] = {}  # namespace -> name -> UID of the QueueJob
        self._specs: dict[str, Obj] = {}  # SchedulingSpecs by the UID of their QueueJob
        self._pods: dict[str, Pods] = {}
        self._attempts: dict[tuple[str, str], int] = {}  # failed pods that were cleared away to be made anew
        self._wanted: dict[str, Wanted] = {}  # jobs that lack pods
        self._dirty: set[str] = set()
        self._to_fill: set[str] = set()  # namespaces in which somebody may lack pods
        self._returning: set[str] = set()  # jobs whose pods go and are made anew at once: they keep their turn
        self._quotas: dict[str, set[str]] = {}
        self._timers = Timers()
        self._retries: Retries[tuple[str, str]] = Retries()  # (namespace, "") for a quota, (namespace, UID) for a job
        self._stopped: set[tuple[str, str]] = set()  # who was refused in the pass that is under way
        self._priorities = Priorities()
        self._events: list[EmitEvent] = []

    # What happened

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
        try:
            same = known is not None and known.obj["spec"] == obj["spec"]
            self._plans[uid] = msgspec.structs.replace(known, obj=obj) if known and same else plan_of(obj)
        except (msgspec.ValidationError, KeyError):
            return  # came past admission and cannot be read: nothing can be done for it
        self._uids.setdefault(namespace_of(obj), {})[name_of(obj)] = uid

    def _forget(self, uid: str, obj: Obj) -> None:
        names = self._uids.get(namespace_of(obj), {})
        if names.get(name_of(obj)) == uid:
            del names[name_of(obj)]
            if not names:
                del self._uids[namespace_of(obj)]
        self._dirty.discard(uid)
        self._wanted.pop(uid, None)
        self._timers.drop(uid)
        self._returning.discard(uid)
        if names:
            self._to_fill.add(namespace_of(obj))  # others may have waited for it
        else:
            self._to_fill.discard(namespace_of(obj))
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
        self._look_at(uid)

    def _look_at(self, uid: str) -> None:
        """Something of a job changed. A job that is not there is looked at when it comes."""
        if uid in self._plans:
            self._dirty.add(uid)

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._wake(namespace_of(pod))  # a quota may have room again, or a name be free
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
        self._look_at(uid)

    def _observe_quota(self, obj: Obj, gone: bool) -> None:
        names = self._quotas.setdefault(namespace_of(obj), set())
        if gone:
            names.discard(name_of(obj))
            if not names:
                del self._quotas[namespace_of(obj)]
            if namespace_of(obj) in self._uids:
                self._to_fill.add(namespace_of(obj))
        else:
            names.add(name_of(obj))
        self._wake(namespace_of(obj))

    def _wake(self, namespace: str) -> None:
        for key in self._retries.keys():  # noqa: SIM118
            if key[0] == namespace and self._retries.wake(key):
                self._look_again(key)

    def _look_again(self, key: tuple[str, str]) -> None:
        namespace, uid = key
        self._to_fill.add(namespace)
        if uid:
            self._dirty.add(uid)

    # What should be written

    def reconcile(self, now: int) -> Iterator[Write]:
        for key in self._retries.take_due(now):
            self._look_again(key)
        self._dirty.update(self._timers.take_due(now))
        plans = sorted((self._plans[uid] for uid in self._dirty if uid in self._plans), key=_place)
        self._dirty.clear()
        self._stopped.clear()
        for plan in plans:
            self._wanted.pop(plan.uid, None)
            if not is_terminating(plan.obj):
                yield from self._sync(plan, now)
        to_fill, self._to_fill = self._to_fill, set()
        for namespace in sorted(to_fill):
            yield from self._fill(namespace, now)
        events, self._events = self._events, []
        yield from events  # what was refused on the way

    def _sync(self, plan: QueueJobPlan, now: int) -> Iterator[Write]:
        """One job: everything but making pods, which are only noted as wanted."""
        pods = self._pods.setdefault(plan.uid, {})
        slots = plan.slots(self._priorities)
        self._timers.drop(plan.uid)
        self._returns(plan, any(slot.name in pods and pods[slot.name].terminating for slot in slots))
        if life.is_over(plan):
            yield from _one(life.status_patch(plan, slots, pods, None, now))
            return
        if life.phase_of(plan) == life.RESTARTING:
            yield from self._restart(plan, slots, pods, now)
            return
        if not self._retries.waits((plan.namespace, plan.uid), now):
            yield from self._scheduling_spec(plan)
        verdict = life.restart_of(plan, slots, pods, now)
        if verdict is not None:
            self._returns(plan, verdict.restart_at <= now)
            yield from _one(life.status_patch(plan, slots, pods, verdict, now))
            yield _event(plan, verdict.reason, verdict.message)
            return
        yield from self._clear_away(plan, slots, pods, now)
        self._note_wanted(plan, slots, pods)
        verdict = life.next_phase(plan, slots, pods)
        yield from _one(life.status_patch(plan, slots, pods, verdict, now))

    def _returns(self, plan: QueueJobPlan, soon: bool) -> None:
        """Notes whether pods of the job are about to be made anew, in place of some that go."""
        if soon:
            self._returning.add(plan.uid)
        elif plan.uid in self._returning:
            self._returning.discard(plan.uid)
            self._to_fill.add(plan.namespace)

    def _scheduling_spec(self, plan: QueueJobPlan) -> Iterator[Write]:
        """Before any pod: what the scheduler must know of them (A4: a raised minimum counts before its pods do)."""
        found = self._specs.get(plan.uid)
        if found is None:
            yield Create(new_spec(plan))
        elif not is_terminating(found):
            yield from _one(spec_patch(found, plan))

    def _restart(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now: int) -> Iterator[Write]:
        """All pods go; when they are gone, and the delay is over, the job begins anew."""
        for pod in sorted(pods.values(), key=lambda pod: pod.name):
            if not pod.terminating:
                yield _delete(plan, pod)
            self._attempts.pop((plan.uid, pod.name), None)
        at = life.restart_at(plan)
        self._returns(plan, at <= now)
        if now < at:
            self._timers.set(plan.uid, at)
        begins = not pods and now >= at
        yield from _one(life.status_patch(plan, slots, pods, life.Verdict(life.PENDING) if begins else None, now))

    def _clear_away(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods, now: int) -> Iterator[Write]:
        """Pods too many, highest index first; and failed ones whose turn it is to be made anew."""
        places = {slot.name: slot for slot in slots}
        for pod in sorted(pods.values(), key=lambda pod: _index(pod.name), reverse=True):
            if pod.terminating:
                continue
            if pod.name not in places:
                yield _delete(plan, pod)
            elif pod.phase == "Failed":
                at = pod.ended_at + life.delay_of(pod.attempt + 1)
                if now >= at:
                    self._attempts[plan.uid, pod.name] = pod.attempt + 1
                    self._returns(plan, True)
                    yield _delete(plan, pod)
                else:
                    known = self._timers.get(plan.uid)
                    self._timers.set(plan.uid, at if known is None else min(at, known))

    def _note_wanted(self, plan: QueueJobPlan, slots: list[Slot], pods: Pods) -> None:
        missing = [slot for slot in slots if slot.name not in pods]
        if not missing:
            self._retries.forget((plan.namespace, plan.uid))
            return
        there = sum(slot.name in pods and not pods[slot.name].is_gone for slot in slots)
        self._wanted[plan.uid] = Wanted(plan, missing, max(0, plan.minimum - there))
        self._to_fill.add(plan.namespace)

    def _fill(self, namespace: str, now: int) -> Iterator[Write]:
        """Makes the pods that jobs of a namespace lack, until a quota says no (A4)."""
        quota = (namespace, "")
        if self._retries.waits(quota, now):
            return
        wanted = self._whose_turn(namespace)
        for plan, slot in in_turn(wanted):
            job = (namespace, plan.uid)
            if job in self._stopped or self._retries.waits(job, now):
                continue
            yield Create(new_pod(plan, slot, self._attempts.get((plan.uid, slot.name), 0)))
            if quota in self._stopped:  # whoever comes later has a lower turn, and would take what this one lacks
                return
            if job not in self._stopped:
                self._attempts.pop((plan.uid, slot.name), None)
        for one in wanted:
            self._wanted.pop(one.plan.uid, None)
        self._retries.forget(quota)

    def _whose_turn(self, namespace: str) -> list[Wanted]:
        """The jobs that lack pods, in order. Under a quota those behind a job whose pods are about to be made anew get
        none: they would take what its old pods leave."""
        uids = self._uids.get(namespace, {}).values()
        turns = {uid: self._plans[uid].turn(self._priorities) for uid in uids if uid in self._plans}
        coming = [turn for uid, turn in turns.items() if uid in self._returning]
        last = min(coming) if coming and self._quotas.get(namespace) else None
        found = [(turns[uid], self._wanted[uid]) for uid in turns if uid in self._wanted]
        return [one for turn, one in sorted(found, key=lambda pair: pair[0]) if last is None or turn <= last]

    # What the API would not do

    def refused(self, write: Write, error: Refused, now: int) -> None:
        plan = self._plan_of(write)
        if plan is None or (not isinstance(write, Create) and watch_tells(error)):
            return  # gone, or out of date: the watch tells
        if isinstance(write, Create) and error.reason == "AlreadyExists" and self._is_ours(plan, write.obj):
            return
        by_quota = isinstance(write, Create) and write.obj["kind"] == "Pod" and "exceeded quota" in error.message
        key = (plan.namespace, "" if by_quota else plan.uid)
        self._stopped.add(key)
        if self._retries.refuse(key, now):
            reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
            self._events.append(_event(plan, reason, error.message))

    def _is_ours(self, plan: QueueJobPlan, obj: Obj) -> bool:
        """Whether what was to be made is there already, made by us."""
        if obj["kind"] == "Pod":
            return name_of(obj) in self._pods.get(plan.uid, {})
        return plan.uid in self._specs

    def _plan_of(self, write: Write) -> QueueJobPlan | None:
        """The job on whose behalf something was to be written."""
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


def _place(plan: QueueJobPlan) -> tuple[str, str, str]:
    return (plan.namespace, plan.name, plan.uid)


def _one(patch: Patch | None) -> Iterator[Write]:
    if patch is not None:
        yield patch


def _delete(plan: QueueJobPlan, pod: Member) -> Delete:
    return Delete(Ref("Pod", plan.namespace, pod.name), pod.uid)


def _index(name: str) -> tuple[int, str]:
    role, _, index = name.rpartition("-")
    return (int(index) if index.isascii() and index.isdecimal() else -1, role)


def _event(plan: QueueJobPlan, reason: str, message: str) -> EmitEvent:
    return EmitEvent(Ref(arbitrator.QUEUE_JOB, plan.namespace, plan.name), plan.uid, "Warning", reason, message)
