"""The controller of Volcano's Job: a PodGroup, then the pods, then what became of them (M3, M5, M6, D2, V0, V3).

Looks at one job at a time and says what should be written. How pods look is `job_pods`' affair, which phase follows
which that of `states`, and the PodGroup's status that of its own controller and the scheduler.
"""

from __future__ import annotations

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, controller_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.controllers.job_census import TERMINATING, Census
from enbloc.controllers.job_group import begun_roles, group_patch, new_group
from enbloc.controllers.job_pods import PodMould, pod_name
from enbloc.controllers.job_resources import is_complete, recorded, resource_writes, wanted_record
from enbloc.controllers.job_roles import JobPlan, Role, plan_of
from enbloc.controllers.job_status import phase_of, status_patch
from enbloc.controllers.lifecycle import has_policies
from enbloc.controllers.lifecycle_actions import Incidents, act
from enbloc.controllers.plugins.registry import plugins_of
from enbloc.controllers.plugins.ssh import KeyPair, rsa_key_pair
from enbloc.controllers.priorities import PRIORITY_CLASS, Priorities
from enbloc.controllers.retry import Retries
from enbloc.controllers.states import leaving, pending, running
from enbloc.controllers.states.situation import FINISHED, Situation, Verdict
from enbloc.units import SECOND, parse_timestamp

RESOURCE_QUOTA = "ResourceQuota"


class JobController:
    """Brings each Job about."""

    kinds = frozenset({volcano.JOB, volcano.POD_GROUP, "Pod", RESOURCE_QUOTA, PRIORITY_CLASS})

    def __init__(self, key_pair: KeyPair = rsa_key_pair) -> None:
        self._key_pair = key_pair
        self._plans: dict[str, JobPlan] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._groups: dict[str, Obj] = {}
        self._censuses: dict[str, Census] = {}
        self._dirty: set[str] = set()
        self._taken: dict[str, dict[str, str]] = {}  # resources the API took, not recorded in the status yet
        self._settled: dict[str, tuple[object, ...]] = {}  # jobs whose pods need no second look, and what was seen
        self._retries: Retries[str] = Retries()
        self._timers: dict[str, int] = {}  # when a job must be looked at: a policy's timeout, the end of its TTL
        self._incidents = Incidents()
        self._priorities = Priorities()
        self._events: list[EmitEvent] = []

    # What happened

    def observe(self, event: WatchEvent) -> None:
        match event.kind:
            case volcano.JOB:
                self._observe_job(event)
            case volcano.POD_GROUP:
                self._observe_group(event)
            case "Pod":
                self._observe_pod(event)
            case "ResourceQuota":
                self._wake(namespace_of(event.obj))
            case _ if event.kind == PRIORITY_CLASS:
                self._priorities.observe(event)
                self._dirty.update(self._plans)

    def _observe_job(self, event: WatchEvent) -> None:
        obj, uid = event.obj, uid_of(event.obj)
        known = self._plans.get(uid)
        if event.type == "DELETED":
            self._forget(uid, obj)
            return
        try:
            same = known is not None and known.obj["spec"] == obj["spec"]
            plan = msgspec.structs.replace(known, obj=obj) if known is not None and same else plan_of(obj)
        except (msgspec.ValidationError, KeyError):
            self._plans.pop(uid, None)  # came past admission and cannot be read: nothing can be done for it
            return
        self._plans[uid] = plan
        self._uids[plan.namespace, plan.name] = uid
        self._dirty.add(uid)

    def _forget(self, uid: str, obj: Obj) -> None:
        for cache in (self._plans, self._taken, self._settled, self._timers):
            cache.pop(uid, None)
        if self._uids.get((namespace_of(obj), name_of(obj))) == uid:
            del self._uids[namespace_of(obj), name_of(obj)]
        self._dirty.discard(uid)
        self._retries.forget(uid)
        self._incidents.forget(uid)

    def _observe_group(self, event: WatchEvent) -> None:
        uid = _job_uid(event.obj)
        if uid is None:
            return
        if event.type != "DELETED":
            self._groups[uid] = event.obj
        elif uid in self._groups and uid_of(self._groups[uid]) == uid_of(event.obj):
            del self._groups[uid]
        self._dirty.add(uid)

    def _observe_pod(self, event: WatchEvent) -> None:
        pod, gone = event.obj, event.type == "DELETED"
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._wake(namespace_of(pod))  # a quota may have room again
        uid = _job_uid(pod)
        if uid is None:
            return
        census = self._censuses.setdefault(uid, Census())
        if not gone:
            before = census.put(pod)
            self._incidents.see(census.pods[name_of(pod)], before)
        else:
            plan, member = self._plans.get(uid), census.drop(pod)
            if member is not None:
                evicted = self._incidents.see_gone(member)
                if evicted and plan is not None and has_policies(plan):
                    self._incidents.note_evicted(uid, member)
            if not census.pods and uid not in self._plans:
                del self._censuses[uid]
            # The job that has the name now may have waited for the name of this pod.
            namesake = self._uids.get((namespace_of(pod), (controller_of(pod) or {}).get("name", "")))
            if namesake:
                self._settled.pop(namesake, None)
                self._dirty.add(namesake)
        self._dirty.add(uid)

    def _wake(self, namespace: str) -> None:
        for uid in self._retries.keys():  # noqa: SIM118
            plan = self._plans.get(uid)
            if plan is not None and plan.namespace == namespace and self._retries.wake(uid):
                self._dirty.add(uid)

    # What should be written

    def reconcile(self, now: int) -> list[Write]:
        self._dirty.update(self._retries.take_due(now))
        for uid in [uid for uid, at in self._timers.items() if at <= now]:
            del self._timers[uid]
            self._dirty.add(uid)
        plans = [self._plans[uid] for uid in self._dirty if uid in self._plans]
        self._dirty.clear()
        writes: list[Write] = list(self._events)
        self._events.clear()
        for plan in sorted(plans, key=lambda plan: (plan.namespace, plan.name, plan.uid)):
            if not is_terminating(plan.obj):
                writes += self._sync(plan, now)
        self._incidents.note_own(writes)
        return writes

    def _sync(self, plan: JobPlan, now: int) -> list[Write]:
        census = self._censuses.setdefault(plan.uid, Census())
        if phase_of(plan.obj) in FINISHED:
            return self._finished(plan, census, now)
        if phase_of(plan.obj) in leaving.LEAVING:
            return self._leave(plan, census, now)
        writes = self._police(plan, census, now)
        if writes:
            return writes
        group = self._groups.get(plan.uid)
        begun = _begun(plan, census, group)
        waits = self._retries.waits(plan.uid, now)
        made = self._made(plan)
        if not waits:
            writes += self._surroundings(plan, group, begun, made)
        if group is not None:
            patch = group_patch(group, plan, begun, self._priorities.of_roles(plan))
            writes += [patch] if patch else []
            if _let_in(group) and is_complete(plan, made):
                writes += self._pods(plan, census, begun, waits=waits)
        verdict = _verdict(plan, census)
        status = status_patch(plan, census, verdict, {"controlledResources": made} if made else {}, now)
        if status is not None:
            writes.append(status)
        if verdict is not None and verdict.phase in FINISHED:
            writes.append(_event(plan, "Normal" if verdict.phase == "Completed" else "Warning", verdict))
        return writes

    def _made(self, plan: JobPlan) -> dict[str, str]:
        """The resources that the API has taken by now."""
        return recorded(plan.obj) | self._taken.pop(plan.uid, {})

    def _surroundings(
        self, plan: JobPlan, group: Obj | None, begun: frozenset[str], made: dict[str, str]
    ) -> list[Write]:
        """What must be there before pods are: the PodGroup, and what plugins and volumes need."""
        writes: list[Write] = []
        if not is_complete(plan, made):
            writes += resource_writes(plan, plugins_of(plan, self._key_pair), made)
            self._taken[plan.uid] = wanted_record(plan)  # unless a refusal takes it back before the next look
            self._dirty.add(plan.uid)
        if group is None:
            writes.append(Create(new_group(plan, begun, self._priorities.of_roles(plan))))
        return writes

    def _pods(self, plan: JobPlan, census: Census, begun: frozenset[str], *, waits: bool) -> list[Write]:
        """Pods that are missing, in the order of roles and indexes; and pods too many, highest index first."""
        seen = (plan.spec, census.moves, begun)
        if self._settled.get(plan.uid) == seen:
            return []
        writes: list[Write] = []
        for role in plan.roles:
            writes += _surplus(plan, role, census)
        missing = [
            (
                role,
                [index for index in range(role.replicas) if pod_name(plan.name, role.name, index) not in census.pods],
            )
            for role in plan.roles
            if role.name in begun
        ]
        if not any(indexes for _, indexes in missing):
            self._retries.forget(plan.uid)
            self._settled[plan.uid] = seen
            return writes
        if waits:
            return writes
        status = plan.obj.get("status") or {}
        plugins = list(plugins_of(plan, self._key_pair).values())
        for role, indexes in missing:
            mould = PodMould(
                plan, role, plugins, version=status.get("version") or 0, retry=status.get("retryCount") or 0
            )
            writes += [Create(mould.pod(index)) for index in indexes]
        return writes

    def _police(self, plan: JobPlan, census: Census, now: int) -> list[Write]:
        """What the job's policies want done about what happened to its pods (V2); mostly nothing."""
        if not has_policies(plan):
            return []
        status = plan.obj.get("status") or {}
        ripe, next_due = self._incidents.ripe(plan, census, status.get("version") or 0, now)
        if next_due is None:
            self._timers.pop(plan.uid, None)
        else:
            self._timers[plan.uid] = next_due
        if not ripe:
            return []
        first = next((answer for answer in ripe if answer.action in leaving.BY_ACTION), ripe[0])
        writes = act(plan, census, first, ripe, now)
        if writes:
            story = f"{first.action} on {first.incident.story}"
            writes.append(_event(plan, "Normal", Verdict("", first.action, story)))
        return writes

    def _leave(self, plan: JobPlan, census: Census, now: int) -> list[Write]:
        """Pods go, and then the job is somewhere else."""
        phase = phase_of(plan.obj)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in leaving.to_delete(phase, census)
        ]
        group = self._groups.get(plan.uid)
        if phase == "Restarting" and group is not None:  # all waves begin anew
            begun = frozenset(role.name for role in plan.roles if not role.depends_on)
            patch = group_patch(group, plan, begun, self._priorities.of_roles(plan))
            writes += [patch] if patch else []
        state = plan.obj["status"]["state"]
        verdict = leaving.next_phase(phase, census, state.get("reason", ""), state.get("message", ""))
        status = status_patch(plan, census, verdict, {}, now)
        return [*writes, status] if status is not None else writes

    def _finished(self, plan: JobPlan, census: Census, now: int) -> list[Write]:
        """A job that ended: what still runs goes, the counts stay true, and in time the job goes too."""
        self._retries.forget(plan.uid)
        self._timers.pop(plan.uid, None)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid)
            for member in sorted(census.pods.values(), key=lambda member: (member.role, member.index))
            if member.phase in ("Pending", "Running", "Unknown")
        ]
        status = status_patch(plan, census, None, {}, now)
        if status is not None:
            writes.append(status)
        expiry = _expiry(plan)
        if expiry is not None:
            self._timers[plan.uid] = expiry
            if expiry <= now:
                del self._timers[plan.uid]
                writes.append(Delete(Ref(volcano.JOB, plan.namespace, plan.name), plan.uid))
        return writes

    # What the API would not do

    def refused(self, write: Write, error: Refused, now: int) -> None:
        settled = ("AlreadyExists",) if isinstance(write, Create) else ("NotFound", "Conflict")
        if error.reason in settled:
            return  # there already, or gone: the watch tells
        uid = self._uid_of(write)
        plan = self._plans.get(uid) if uid else None
        if uid is None or plan is None:
            return
        if isinstance(write, Create) and write.obj["kind"] != "Pod":
            self._taken.pop(uid, None)
        self._settled.pop(uid, None)
        if self._retries.refuse(uid, now):
            reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
            self._events.append(_event(plan, "Warning", Verdict("", reason, error.message)))
            self._dirty.add(uid)

    def _uid_of(self, write: Write) -> str | None:
        """The job on whose behalf something was to be written."""
        match write:
            case Create(obj=obj):
                return _job_uid(obj)
            case Patch(ref=ref) | Delete(ref=ref) if ref.kind == volcano.JOB:
                return self._uids.get((ref.namespace, ref.name))
            case Patch(ref=ref) if ref.kind == volcano.POD_GROUP:
                return next((uid for uid, group in self._groups.items() if name_of(group) == ref.name), None)
            case EvictPod() | EmitEvent() | _:
                return None

    def due(self) -> int | None:
        timers = [at for at in (self._retries.next(), *self._timers.values()) if at is not None]
        return min(timers, default=None)


def _job_uid(obj: Obj) -> str | None:
    """The UID of the Volcano Job that controls an object."""
    owner = controller_of(obj)
    if owner is None or owner.get("kind") != "Job" or not str(owner.get("apiVersion")).startswith("batch.volcano.sh/"):
        return None
    uid: str | None = owner.get("uid")
    return uid


def _let_in(group: Obj) -> bool:
    """Whether the scheduler has let the job in (M6)."""
    return ((group.get("status") or {}).get("phase") or "Pending") != "Pending"


def _begun(plan: JobPlan, census: Census, group: Obj | None) -> frozenset[str]:
    """The roles whose wave has begun: what they depend on runs (D2), or they had begun before (D3)."""
    earlier = begun_roles(group)
    return frozenset(
        role.name
        for role in plan.roles
        if role.name in earlier or census.size(role.name) or _dependencies_run(plan, role, census)
    )


def _dependencies_run(plan: JobPlan, role: Role, census: Census) -> bool:
    if not role.depends_on:
        return True
    run = []
    for name in role.depends_on:
        other = plan.role(name)
        needed = 0 if other is None or not other.replicas else max(other.minimum, 1)
        run.append(census.ready[name] + census.of(name, "Succeeded") >= needed)
    return any(run) if role.any_suffices else all(run)


def _surplus(plan: JobPlan, role: Role, census: Census) -> list[Write]:
    above = [
        member
        for member in census.pods.values()
        if member.role == role.name and member.index >= role.replicas and member.phase != TERMINATING
    ]
    above.sort(key=lambda member: -member.index)
    return [Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in above]


def _verdict(plan: JobPlan, census: Census) -> Verdict | None:
    situation = Situation(plan, census)
    match phase_of(plan.obj):
        case "":
            return Verdict("Pending")
        case "Running":
            return running.next_phase(situation)
        case _:
            return pending.next_phase(situation)


def _expiry(plan: JobPlan) -> int | None:
    """When a job that ended is deleted."""
    ttl_s = plan.spec.ttl_seconds_after_finished
    ended = ((plan.obj.get("status") or {}).get("state") or {}).get("lastTransitionTime")
    return None if ttl_s is None or not ended else parse_timestamp(ended) + ttl_s * SECOND


def _event(plan: JobPlan, kind: str, verdict: Verdict) -> EmitEvent:
    ref = Ref(volcano.JOB, plan.namespace, plan.name)
    return EmitEvent(ref, plan.uid, "Normal" if kind == "Normal" else "Warning", verdict.reason, verdict.message)
