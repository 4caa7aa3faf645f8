"""The controller of Volcano's Job: a PodGroup, then the pods, then what became of them (M3, M5, M6, D2, V0, V3).

Looks at one job at a time and says what should be written. How pods look is `job_pods`' affair, which phase follows
which that of `states`, and the PodGroup's status that of its own controller and the scheduler.
"""

from __future__ import annotations

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, controller_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.controllers.commands import JOB, Commands, cannot, consumed, is_for_queue, target_of
from enbloc.controllers.job_group import begun_roles, group_patch, new_group
from enbloc.controllers.job_pod_counts import TERMINATING, PodCounts
from enbloc.controllers.job_pods import PodBuilder, pod_name
from enbloc.controllers.job_resources import is_complete, recorded, resource_writes, wanted_record
from enbloc.controllers.job_roles import JobPlan, Role, plan_of
from enbloc.controllers.job_status import phase_of, status_patch
from enbloc.controllers.lifecycle import has_policies, runs_of
from enbloc.controllers.lifecycle_actions import Incidents, act, act_on_job, chosen
from enbloc.controllers.plugins.registry import plugins_of
from enbloc.controllers.plugins.ssh import KeyPair, rsa_key_pair
from enbloc.controllers.priorities import PRIORITY_CLASS, Priorities
from enbloc.controllers.retry import Retries, watch_tells
from enbloc.controllers.states import aborted, finished, leaving, pending, restarting, running
from enbloc.controllers.states.situation import BELOW_MINIMUM, FINISHED, Situation, Verdict
from enbloc.controllers.states.state import JOB_ACTIONS
from enbloc.controllers.timers import Timers
from enbloc.units import SECOND, parse_timestamp

RESOURCE_QUOTA = "ResourceQuota"


class JobController:
    """Brings each Job about."""

    kinds = frozenset({volcano.JOB, volcano.POD_GROUP, volcano.COMMAND, "Pod", RESOURCE_QUOTA, PRIORITY_CLASS})

    def __init__(self, key_pair: KeyPair = rsa_key_pair) -> None:
        self._key_pair = key_pair
        self._plans: dict[str, JobPlan] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._groups: dict[str, Obj] = {}
        self._censuses: dict[str, PodCounts] = {}
        self._dirty: set[str] = set()
        self._taken: dict[str, dict[str, str]] = {}  # resources the API took, not recorded in the status yet
        self._settled: dict[str, tuple[object, ...]] = {}  # jobs whose pods need no second look, and what was seen
        self._retries: Retries[str] = Retries()
        self._timers = Timers()  # when a job must be looked at: a policy's timeout, the end of its TTL
        self._incidents = Incidents()
        self._commands = Commands(lambda command: not is_for_queue(command))
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
            case volcano.COMMAND:
                self._commands.observe(event)
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
        for cache in (self._plans, self._taken, self._settled):
            cache.pop(uid, None)
        self._timers.drop(uid)
        if uid in self._censuses and not self._censuses[uid].pods:
            del self._censuses[uid]
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
        self._look_at(uid)

    def _look_at(self, uid: str) -> None:
        """Something of a job changed. A job that is not there is looked at when it comes."""
        if uid in self._plans:
            self._dirty.add(uid)

    def _observe_pod(self, event: WatchEvent) -> None:
        pod, gone = event.obj, event.type == "DELETED"
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._wake(namespace_of(pod))  # a quota may have room again
        uid = _job_uid(pod)
        if uid is None:
            return
        census = self._censuses.setdefault(uid, PodCounts())
        if not gone:
            census.put(pod)
            self._incidents.see(census.pods[name_of(pod)])
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
        self._look_at(uid)

    def _wake(self, namespace: str) -> None:
        for uid in self._retries.keys():  # noqa: SIM118
            plan = self._plans.get(uid)
            if plan is not None and plan.namespace == namespace and self._retries.wake(uid):
                self._dirty.add(uid)

    # What should be written

    def reconcile(self, now: int) -> list[Write]:
        self._dirty.update(self._retries.take_due(now))
        self._dirty.update(self._timers.take_due(now))
        writes: list[Write] = list(self._events)
        self._events.clear()
        commanded = self._obey(writes, now)
        plans = [self._plans[uid] for uid in self._dirty - commanded if uid in self._plans]
        self._dirty = commanded  # looked at next, when the job is what the Command made of it
        for plan in sorted(plans, key=lambda plan: (plan.namespace, plan.name, plan.uid)):
            if not is_terminating(plan.obj):
                writes += self._sync(plan, now)
        self._incidents.note_own(writes)
        return writes + self._commands.consume(writes, now)

    def _obey(self, writes: list[Write], now: int) -> set[str]:
        """Carries Commands out, one a job: the next one is for whatever the job is then. Returns the jobs' UIDs."""
        commanded: set[str] = set()
        for command in self._commands.take(now):
            target, action = target_of(command), command.get("action") or ""
            plan = self._commanded(command)
            if plan is None:
                name = target.get("name") or "without a name"
                writes += cannot(
                    command, f"{action or 'no action'}: there is no {target.get('kind') or 'object'} {name}"
                )
            elif action not in JOB_ACTIONS:
                writes += cannot(command, f"unknown action {action!r} (for a job: {', '.join(JOB_ACTIONS)})")
            elif plan.uid in commanded:
                self._commands.put_back(command)
            else:
                commanded.add(plan.uid)
                writes += self._command(plan, command, now)
        return commanded

    def _commanded(self, command: Obj) -> JobPlan | None:
        """The job that a Command is for."""
        target = target_of(command)
        group = str(target.get("apiVersion") or "batch.volcano.sh/").partition("/")[0]
        if target.get("kind") != JOB or group != "batch.volcano.sh":
            return None
        plan = self._plans.get(self._uids.get((namespace_of(command), str(target.get("name") or "")), ""))
        wrong = plan is None or is_terminating(plan.obj) or target.get("uid") not in (None, "", plan.uid)
        return None if wrong else plan

    def _command(self, plan: JobPlan, command: Obj, now: int) -> list[Write]:
        action = command["action"]
        census = self._censuses.setdefault(plan.uid, PodCounts())
        said = command.get("message") or command.get("reason") or ""
        story = f"{action} by Command {name_of(command)}" + (f": {said}" if said else "")
        patch = act_on_job(plan, census, action, story, now, by_hand=True)
        if patch is None:
            text = f"{story}: does nothing to a job that is {phase_of(plan.obj) or 'Pending'}"
            return [_event(plan, "Warning", Verdict("", "CommandRefused", text)), consumed(command)]
        self._commands.obey(command, patch.ref)
        return [patch, _event(plan, "Normal", Verdict("", action, story))]

    def _sync(self, plan: JobPlan, now: int) -> list[Write]:
        census = self._censuses.setdefault(plan.uid, PodCounts())
        phase = phase_of(plan.obj)
        if phase in finished.FINAL:
            return self._finished(plan, census, now)
        writes, waits_to_act = self._police(plan, census, now)
        if writes:
            return writes
        if phase == aborted.STATE.phase:
            return self._rest(plan, census, now)
        if phase in leaving.LEAVING:
            return self._leave(plan, census, now)
        past = self._past(plan, census)
        if past:
            return past
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
        verdict = _verdict(Situation(plan, census, begun))
        if verdict is not None and verdict.phase == "Failed" and waits_to_act:
            verdict = None  # a policy is to say what becomes of it
        status = status_patch(plan, census, verdict, {"controlledResources": made} if made else {}, now)
        if status is not None:
            writes.append(status)
        if verdict is not None and _is_news(plan, verdict):
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

    def _pods(self, plan: JobPlan, census: PodCounts, begun: frozenset[str], *, waits: bool) -> list[Write]:
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
        runs = runs_of(plan.obj)
        plugins = list(plugins_of(plan, self._key_pair).values())
        for role, indexes in missing:
            mould = PodBuilder(plan, role, plugins, runs)
            for index in indexes:
                evicted_at = self._incidents.evicted_at(plan.uid, pod_name(plan.name, role.name, index))
                writes.append(Create(mould.pod(index, evicted_at)))
        return writes

    def _past(self, plan: JobPlan, census: PodCounts) -> list[Write]:
        """Pods of an earlier run, of the job, of their role or of their own, go; nothing else is looked at before."""
        runs = runs_of(plan.obj)
        if not runs.version and not runs.roles and not runs.pods:
            return []
        past = [member for member in census.pods.values() if member.phase != TERMINATING and runs.is_past(member)]
        past.sort(key=lambda member: (member.role, member.index))
        return [Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in past]

    def _police(self, plan: JobPlan, census: PodCounts, now: int) -> tuple[list[Write], bool]:
        """What the job's policies want done about what happened to its pods (V2); whether one waits for its time."""
        if not has_policies(plan):
            return [], False
        group = self._groups.get(plan.uid) or {}
        unknown = (group.get("status") or {}).get("phase") == "Unknown"
        found = self._incidents.ripe(plan, census, now, unknown=unknown)
        if found.next_due is None:
            self._timers.drop(plan.uid)
        else:
            self._timers.set(plan.uid, found.next_due)
        first = chosen(plan, found.answers)
        patch = act(plan, census, first, found.answers, now) if first else None
        if first is None or patch is None:
            return [], found.next_due is not None
        state = (patch.patch["status"].get("state") or {}) if patch.patch else {}
        failed = state.get("phase") == "Failed"
        verdict = Verdict("", state["reason"], state["message"]) if failed else Verdict("", first.action, first.story)
        return [patch, _event(plan, "Warning" if failed else "Normal", verdict)], False

    def _leave(self, plan: JobPlan, census: PodCounts, now: int) -> list[Write]:
        """Pods go, and then the job is somewhere else."""
        phase = phase_of(plan.obj)
        self._retries.forget(plan.uid)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in leaving.to_delete(phase, census)
        ]
        group = self._groups.get(plan.uid)
        if phase == restarting.STATE.phase and group is not None:
            if (group.get("status") or {}).get("phase") == "Completed":  # it was aborted: it queues anew
                ref = Ref(volcano.POD_GROUP, plan.namespace, name_of(group))
                return [*writes, *([] if is_terminating(group) else [Delete(ref, uid_of(group))])]
            begun = frozenset(role.name for role in plan.roles if not role.depends_on)  # all waves begin anew
            patch = group_patch(group, plan, begun, self._priorities.of_roles(plan))
            writes += [patch] if patch else []
        state = plan.obj["status"]["state"]
        verdict = leaving.next_phase(phase, census, state.get("reason", ""), state.get("message", ""))
        status = status_patch(plan, census, verdict, {}, now)
        return [*writes, status] if status is not None else writes

    def _rest(self, plan: JobPlan, census: PodCounts, now: int) -> list[Write]:
        """Nothing of the job is to run; the counts stay true."""
        self._retries.forget(plan.uid)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid)
            for member in sorted(census.pods.values(), key=lambda member: (member.role, member.index))
            if member.phase in ("Pending", "Running", "Unknown")
        ]
        status = status_patch(plan, census, None, {}, now)
        return [*writes, status] if status is not None else writes

    def _finished(self, plan: JobPlan, census: PodCounts, now: int) -> list[Write]:
        """A job that ended: what still runs goes, and in time the job goes too."""
        writes = self._rest(plan, census, now)
        self._incidents.forget(plan.uid)
        self._timers.drop(plan.uid)
        expiry = _expiry(plan)
        if expiry is not None and expiry > now:
            self._timers.set(plan.uid, expiry)
        elif expiry is not None:
            writes.append(Delete(Ref(volcano.JOB, plan.namespace, plan.name), plan.uid))
        return writes

    # What the API would not do

    def refused(self, write: Write, error: Refused, now: int) -> None:
        self._commands.refused(write, error, now)
        uid = self._uid_of(write)
        if isinstance(write, Create) and error.reason == "AlreadyExists":
            if self._is_settled(write.obj, error.existing):
                return
        elif not isinstance(write, Create) and watch_tells(error):
            return  # gone, or changed: the watch tells
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

    def _is_settled(self, wanted: Obj, existing: Obj | None) -> bool:
        """Whether what has the name already is the job's own, or will go and tell. Else it is in the way."""
        if existing is None or _job_uid(existing) == _job_uid(wanted):
            return True
        return wanted["kind"] == "Pod" and _job_uid(existing) is not None  # of a namesake: its end is heard of

    def _uid_of(self, write: Write) -> str | None:
        """The job on whose behalf something was to be written."""
        match write:
            case Create(obj=obj):
                return _job_uid(obj)
            case Patch(ref=ref) | Delete(ref=ref) if ref.kind == volcano.JOB:
                return self._uids.get((ref.namespace, ref.name))
            case Patch(ref=ref) if ref.kind == volcano.POD_GROUP:
                return next((uid for uid, group in self._groups.items() if name_of(group) == ref.name), None)
            case Delete(ref=ref, uid=pod) if ref.kind == "Pod":
                found = ((uid, census.pods.get(ref.name)) for uid, census in self._censuses.items())
                return next((uid for uid, member in found if member is not None and member.uid == pod), None)
            case EvictPod() | EmitEvent() | _:
                return None

    def due(self) -> int | None:
        timers = (self._retries.next(), self._commands.due(), self._timers.next())
        return min((at for at in timers if at is not None), default=None)


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


def _begun(plan: JobPlan, census: PodCounts, group: Obj | None) -> frozenset[str]:
    """The roles whose wave has begun: what they depend on runs (D2), or they had begun before (D3)."""
    earlier = begun_roles(group)
    return frozenset(
        role.name
        for role in plan.roles
        if role.name in earlier or census.size(role.name) or _dependencies_run(plan, role, census)
    )


def _dependencies_run(plan: JobPlan, role: Role, census: PodCounts) -> bool:
    if not role.depends_on:
        return True
    run = []
    for name in role.depends_on:
        other = plan.role(name)
        needed = 0 if other is None or not other.replicas else max(other.minimum, 1)
        run.append(census.ready[name] + census.of(name, "Succeeded") >= needed)
    return any(run) if role.any_suffices else all(run)


def _surplus(plan: JobPlan, role: Role, census: PodCounts) -> list[Write]:
    above = [
        member
        for member in census.pods.values()
        if member.role == role.name and member.index >= role.replicas and member.phase != TERMINATING
    ]
    above.sort(key=lambda member: -member.index)
    return [Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in above]


def _verdict(situation: Situation) -> Verdict | None:
    plan = situation.plan
    match phase_of(plan.obj):
        case "":
            return Verdict("Pending")
        case "Running":
            reason = plan.obj["status"]["state"].get("reason") or ""
            return running.next_phase(situation, reason)
        case _:
            return pending.next_phase(situation)


def _is_news(plan: JobPlan, verdict: Verdict) -> bool:
    """Whether an event is due: a job ended, or it fell below its minimum, or further."""
    if verdict.phase in FINISHED:
        return True
    state = (plan.obj.get("status") or {}).get("state") or {}
    told = (state.get("reason"), state.get("message"))
    return verdict.reason == BELOW_MINIMUM and told != (verdict.reason, verdict.message)


def _expiry(plan: JobPlan) -> int | None:
    """When a job that ended is deleted."""
    ttl_s = plan.spec.ttl_seconds_after_finished
    ended = ((plan.obj.get("status") or {}).get("state") or {}).get("lastTransitionTime")
    return None if ttl_s is None or not ended else parse_timestamp(ended) + ttl_s * SECOND


def _event(plan: JobPlan, kind: str, verdict: Verdict) -> EmitEvent:
    ref = Ref(volcano.JOB, plan.namespace, plan.name)
    return EmitEvent(ref, plan.uid, "Normal" if kind == "Normal" else "Warning", verdict.reason, verdict.message)
