"""The controller of Volcano's Job: a PodGroup, then the pods, then what became of them (M3, M5, M6, D2, V0, V3).

Reconciles one job at a time and returns the writes. Leaves the pods' content to `job_pods`, the phases to `states` and
the PodGroup's status to its own controller and the scheduler.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice

from enbloc.api import volcano
from enbloc.api.meta import (
    Obj,
    Ref,
    controller_key,
    controller_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from enbloc.api.writes import Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.config import Tenancy
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.controllers import waves
from enbloc.controllers.commands import (
    JOB,
    Commands,
    delete_command,
    is_for_queue,
    refuse,
    refused_on_fault,
    target_of,
)
from enbloc.controllers.foreign_jobs import ForeignJobs
from enbloc.controllers.guarded import guarded
from enbloc.controllers.job_group import begun_roles, group_patch, new_group
from enbloc.controllers.job_plugins import KeyPair, plugins_of, rsa_key_pair
from enbloc.controllers.job_pod_counts import TERMINATING, PodCounts
from enbloc.controllers.job_pods import PodBuilder, missing_pods, pod_name, surplus_pods
from enbloc.controllers.job_resources import is_complete, recorded, resource_writes, wanted_record
from enbloc.controllers.job_roles import JobPlan, plan_of, role_priorities
from enbloc.controllers.job_situation import Situation, Verdict, drained, next_phase, to_delete
from enbloc.controllers.job_states import DRAINING, FINAL, JOB_ACTIONS, phase_of
from enbloc.controllers.job_status import expiry_of, needs_event, status_patch
from enbloc.controllers.lifecycle import has_policies, restarts_whole_job, runs_of
from enbloc.controllers.lifecycle_actions import Incidents, act, act_on_job, first_action
from enbloc.controllers.plan import current_plan
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.controllers.timers import Batches, Timers
from enbloc.faults import Faults
from enbloc.gangs.priority_classes import PRIORITY_CLASS, PriorityClasses

RESOURCE_QUOTA = "ResourceQuota"


class JobController:
    """Reconciles Volcano Jobs."""

    kinds = frozenset({volcano.JOB, volcano.POD_GROUP, volcano.COMMAND, "Pod", RESOURCE_QUOTA, PRIORITY_CLASS})

    def __init__(
        self,
        key_pair: KeyPair = rsa_key_pair,
        scheduler_name: str = SCHEDULER_NAMES[0],
        ours: frozenset[str] | None = None,
        tenancy: Tenancy = Tenancy(),  # noqa: B008 - it is frozen
    ) -> None:
        """`scheduler_name`: of jobs that name none; `ours`: jobs that name another scheduler are left alone (N5)."""
        self._key_pair = key_pair
        self._foreign = ForeignJobs(ours)
        self._tenancy = tenancy
        self._scheduler_name = scheduler_name
        self._plans: dict[str, JobPlan] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._groups: dict[str, Obj] = {}
        self._pod_counts: dict[str, PodCounts] = {}
        self._dirty: set[str] = set()
        self._new_resources: dict[str, dict[str, str]] = {}
        """Plugin resources that were created and are not recorded in the job's status yet."""
        self._synced: dict[str, tuple[object, ...]] = {}
        """Jobs with exactly the pods they should have, and the inputs of that verdict."""
        self._retries: Retries[str] = Retries()
        self._batches = Batches()
        self._timers = Timers()  # of a policy's timeout, or the end of its TTL
        self._failed_creates: dict[str, str] = {}
        """Why the last pod that was refused could not be created; empty: all pods exist."""
        self._refused: dict[str, str] = {}
        """Why something that must exist before the pods could not be created."""
        self._incidents = Incidents()
        self._commands = Commands(lambda command: not is_for_queue(command))
        self._priorities = PriorityClasses()
        self._events: list[EmitEvent] = []
        self.faults: Faults[str] = Faults()

    # Watch events

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
                self._requeue_refused(namespace_of(event.obj))
            case _ if event.kind == PRIORITY_CLASS:
                self._priorities.observe(event.obj, event.type == "DELETED")
                self._dirty.update(self._plans)

    def _observe_job(self, event: WatchEvent) -> None:
        obj, key = event.obj, key_of(event.obj)
        known = self._plans.get(key)
        if event.type == "DELETED":
            self._forget(key, obj)
            return
        plan = current_plan(known, obj, lambda obj: plan_of(obj, self._scheduler_name, self._tenancy))
        if plan is None or self._foreign.leaves_alone(obj, plan.scheduler_name):
            self._plans.pop(key, None)
            return
        self._plans[key] = plan
        self._keys[plan.namespace, plan.name] = key
        self._dirty.add(key)

    def _forget(self, key: str, obj: Obj) -> None:
        for cache in (self._plans, self._new_resources, self._synced, self._failed_creates, self._refused):
            cache.pop(key, None)
        self._timers.cancel(key)
        self._foreign.forget(uid_of(obj))
        if key in self._pod_counts and not self._pod_counts[key].pods:
            del self._pod_counts[key]
        if self._keys.get((namespace_of(obj), name_of(obj))) == key:
            del self._keys[namespace_of(obj), name_of(obj)]
        self._dirty.discard(key)
        self._retries.forget(key)
        self._incidents.forget(key)
        self.faults.forget(key)

    def _observe_group(self, event: WatchEvent) -> None:
        key = _job_key(event.obj)
        if not key:
            return
        if event.type != "DELETED":
            self._groups[key] = event.obj
        elif key in self._groups and uid_of(self._groups[key]) == uid_of(event.obj):
            del self._groups[key]
        self._requeue(key)

    def _requeue(self, key: str) -> None:
        """Marks a job for the next reconcile. One that does not exist is marked when it is created."""
        if key in self._plans:
            self._dirty.add(key)

    def _observe_pod(self, event: WatchEvent) -> None:
        pod, gone = event.obj, event.type == "DELETED"
        if gone or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            self._requeue_refused(namespace_of(pod))  # a quota may have room again
        key = _job_key(pod)
        if not key:
            return
        pod_counts = self._pod_counts.setdefault(key, PodCounts())
        if not gone:
            pod_counts.put(pod)
            self._incidents.observe_pod(pod_counts.pods[name_of(pod)])
        else:
            plan, member = self._plans.get(key), pod_counts.drop(pod)
            if member is not None:
                evicted = self._incidents.observe_gone(member)
                if evicted and plan is not None and has_policies(plan):
                    pod_counts.evicted[member.name] = (member, None)
            if not pod_counts.pods and key not in self._plans:
                del self._pod_counts[key]
            # A newer job of the same name may wait for the name of this pod.
            namesake = self._keys.get((namespace_of(pod), (controller_of(pod) or {}).get("name", "")))
            if namesake:
                self._synced.pop(namesake, None)
                self._dirty.add(namesake)
        self._requeue(key)

    def _requeue_refused(self, namespace: str) -> None:
        for key in self._retries.keys():  # noqa: SIM118
            plan = self._plans.get(key)
            if plan is not None and plan.namespace == namespace and self._retries.end_delay(key):
                self._dirty.add(key)

    # Writes

    def reconcile(self, now_ns: int) -> list[Write]:
        self._dirty.update(self._retries.take_due(now_ns))
        self._dirty.update(self._timers.take_due(now_ns))
        self._dirty.update(self.faults.take_due(now_ns))
        self._dirty.update(self._batches.take_due(now_ns))
        writes: list[Write] = [*self._events, *self._foreign.take_events()]
        self._events.clear()
        commanded = self._execute_commands(writes, now_ns)
        plans = [self._plans[key] for key in self._dirty - commanded if key in self._plans]
        self._dirty = commanded  # reconciled next, with the phase that the Command asked for
        for plan in sorted(plans, key=lambda plan: (plan.namespace, plan.name, plan.uid)):
            if not is_terminating(plan.obj):
                writes += guarded(self.faults, plan.key, plan.obj, partial(self._sync, plan, now_ns))
        self._incidents.note_own_deletions(writes)
        return writes + self._commands.delete_executed(writes, now_ns)

    def _execute_commands(self, writes: list[Write], now_ns: int) -> set[str]:
        """Executes at most one Command a job: a second one applies to the next phase. Returns the jobs' keys."""
        commanded: set[str] = set()
        for command in self._commands.take(now_ns):
            with refused_on_fault(self.faults, command, writes):
                self._execute_command(command, commanded, writes, now_ns)
        return commanded

    def _execute_command(self, command: Obj, commanded: set[str], writes: list[Write], now_ns: int) -> None:
        target, action = target_of(command), command.get("action") or ""
        plan = self._target_job(command)
        if plan is None:
            name = target.get("name") or "without a name"
            writes += refuse(command, f"{action or 'no action'}: there is no {target.get('kind') or 'object'} {name}")
        elif action not in JOB_ACTIONS:
            writes += refuse(command, f"unknown action {action!r} (for a job: {', '.join(JOB_ACTIONS)})")
        elif plan.key in commanded:
            self._commands.put_back(command)
        else:
            commanded.add(plan.key)
            writes += self._execute_on(plan, command, now_ns)

    def _target_job(self, command: Obj) -> JobPlan | None:
        """The job that a Command is for."""
        target = target_of(command)
        group = str(target.get("apiVersion") or "batch.volcano.sh/").partition("/")[0]
        if target.get("kind") != JOB or group != "batch.volcano.sh":
            return None
        plan = self._plans.get(self._keys.get((namespace_of(command), str(target.get("name") or "")), ""))
        wrong = plan is None or is_terminating(plan.obj) or target.get("uid") not in (None, "", plan.uid)
        return None if wrong else plan

    def _execute_on(self, plan: JobPlan, command: Obj, now_ns: int) -> list[Write]:
        action = command["action"]
        pod_counts = self._pod_counts.setdefault(plan.key, PodCounts())
        note = command.get("message") or command.get("reason") or ""
        cause = f"{action} by Command {name_of(command)}" + (f": {note}" if note else "")
        patch = act_on_job(plan, pod_counts, action, cause, now_ns, by_hand=True)
        if patch is None:
            text = f"{cause}: has no effect on a job in phase {phase_of(plan.obj) or 'Pending'}"
            return [_event(plan, "Warning", Verdict("", "CommandRefused", text)), delete_command(command)]
        self._commands.mark_executing(command, patch.ref)
        return [patch, _event(plan, "Normal", Verdict("", action, cause))]

    def _sync(self, plan: JobPlan, now_ns: int) -> list[Write]:
        pod_counts = self._pod_counts.setdefault(plan.key, PodCounts())
        phase = phase_of(plan.obj)
        if phase in FINAL:
            return self._finished(plan, pod_counts, now_ns)
        writes, policy_pending = self._apply_policies(plan, pod_counts, now_ns)
        if writes:
            return writes
        if phase == "Aborted":
            return self._delete_live_pods(plan, pod_counts, now_ns)
        if phase in DRAINING:
            return self._drain(plan, pod_counts, now_ns)
        outdated = self._outdated_pods(plan, pod_counts)
        if outdated:
            return outdated
        group = self._groups.get(plan.key)
        begun = waves.begun(plan, pod_counts, group)
        waits = self._retries.waits(plan.key, now_ns)
        created = self._created_resources(plan)
        if not waits:
            writes += self._prerequisites(plan, group, begun, created)
        if group is not None:
            if is_complete(plan, created):
                self._refused.pop(plan.key, None)
                writes += self._pods(plan, pod_counts, begun, now_ns, waits=waits) if _is_enqueued(group) else []
            failed = self._refused.get(plan.key) or self._failed_creates.get(plan.key)
            patch = group_patch(group, plan, begun, role_priorities(plan, self._priorities), failed)
            writes += [patch] if patch else []
        awaited = waves.waits_for(plan, begun)
        if awaited and (group is None or begun != begun_roles(group)):
            writes.append(_event(plan, "Normal", Verdict("", "WaitsForRoles", awaited)))
        verdict = next_phase(Situation(plan, pod_counts, begun))
        if verdict is not None and verdict.phase == "Failed" and policy_pending:
            verdict = None  # a policy decides when its timeout is over
        more = {"controlledResources": created} if created else {}
        status = status_patch(plan, pod_counts, verdict, more, now_ns, group, self._refused.get(plan.key, ""))
        if status is not None:
            writes.append(status)
        if verdict is not None and needs_event(plan, verdict):
            writes.append(_event(plan, "Normal" if verdict.phase == "Completed" else "Warning", verdict))
        return writes

    def _created_resources(self, plan: JobPlan) -> dict[str, str]:
        """The plugin resources that exist, whether the status records them already or not."""
        return recorded(plan.obj) | self._new_resources.pop(plan.key, {})

    def _prerequisites(
        self, plan: JobPlan, group: Obj | None, begun: frozenset[str], created: dict[str, str]
    ) -> list[Write]:
        """What must exist before the pods: the PodGroup, and the resources of plugins and volumes."""
        writes: list[Write] = []
        if not is_complete(plan, created):
            writes += resource_writes(plan, plugins_of(plan, self._key_pair), created)
            self._new_resources[plan.key] = wanted_record(plan)  # a refusal takes it back before the next reconcile
            self._dirty.add(plan.key)
        if group is None:
            writes.append(Create(new_group(plan, begun, role_priorities(plan, self._priorities))))
        return writes

    def _pods(
        self, plan: JobPlan, pod_counts: PodCounts, begun: frozenset[str], now_ns: int, *, waits: bool
    ) -> list[Write]:
        """Creates missing pods in the order of roles and indexes, and deletes surplus ones, highest index first."""
        inputs = (plan.spec, pod_counts.revision, begun)
        if self._synced.get(plan.key) == inputs:
            return []
        writes: list[Write] = []
        for role in plan.roles:
            writes += surplus_pods(plan, role, pod_counts)
        room = self._batches.room(plan.key, now_ns)
        missing = list(islice(missing_pods(plan, begun, pod_counts), max(room, 1)))
        if not missing:
            self._retries.forget(plan.key)
            self._failed_creates[plan.key] = ""
            self._synced[plan.key] = inputs
            return writes
        if waits or room <= 0:
            return writes
        self._batches.add(plan.key, len(missing), now_ns)
        runs = runs_of(plan.obj)
        plugins = list(plugins_of(plan, self._key_pair).values())
        for role, pods in groupby(missing, key=lambda one: one[0]):
            builder = PodBuilder(plan, role, plugins, runs)
            for _, index in pods:
                evicted_at = self._incidents.evicted_at(plan.key, pod_name(plan.name, role.name, index))
                writes.append(Create(builder.pod(index, evicted_at)))
        return writes

    def _outdated_pods(self, plan: JobPlan, pod_counts: PodCounts) -> list[Write]:
        """Deletes pods of an earlier run, of the job, of their role or of their own, before anything else is done."""
        runs = runs_of(plan.obj)
        if not runs.version and not runs.roles and not runs.pods:
            return []
        live = [member for member in pod_counts.pods.values() if member.phase != TERMINATING]
        outdated = [member for member in live if runs.is_outdated(member)]
        outdated.sort(key=lambda member: (member.role, member.index))
        return [Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in outdated]

    def _apply_policies(self, plan: JobPlan, pod_counts: PodCounts, now_ns: int) -> tuple[list[Write], bool]:
        """The writes of the lifecycle policy that is due (V2); and whether another one waits for its timeout."""
        if not has_policies(plan):
            return [], False
        unknown = _is_unknown(self._groups.get(plan.key))
        found = self._incidents.due_actions(plan, pod_counts, now_ns, unknown=unknown)
        if found.next_due_ns is None:
            self._timers.cancel(plan.key)
        else:
            self._timers.set(plan.key, found.next_due_ns)
        first = first_action(plan, found.actions)
        patch = act(plan, pod_counts, first, found.actions, now_ns) if first else None
        if first is None or patch is None:
            return [], found.next_due_ns is not None
        state = (patch.patch["status"].get("state") or {}) if patch.patch else {}
        failed = state.get("phase") == "Failed"
        verdict = (
            Verdict("", state["reason"], state["message"]) if failed else Verdict("", first.action, first.description)
        )
        return [patch, _event(plan, "Warning" if failed else "Normal", verdict)], False

    def _drain(self, plan: JobPlan, pod_counts: PodCounts, now_ns: int) -> list[Write]:
        """Deletes pods; when the last is gone the job enters the phase that follows."""
        phase = phase_of(plan.obj)
        self._retries.forget(plan.key)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in to_delete(plan, pod_counts)
        ]
        group = self._groups.get(plan.key)
        if phase == "Restarting" and group is not None and restarts_whole_job(plan):
            if (group.get("status") or {}).get("phase") == "Completed":  # it was aborted: it passes enqueue again
                ref = Ref(volcano.POD_GROUP, plan.namespace, name_of(group))
                return [*writes, *([] if is_terminating(group) else [Delete(ref, uid_of(group))])]
            begun = frozenset(role.name for role in plan.roles if not role.depends_on)  # all waves start over
            patch = group_patch(group, plan, begun, role_priorities(plan, self._priorities))
            writes += [patch] if patch else []
        verdict = drained(plan, pod_counts)
        if verdict is not None and phase == "Restarting" and _is_unknown(group) and restarts_whole_job(plan):
            verdict = None  # an Unknown of the run that ended must not trigger a policy in the next
        status = status_patch(plan, pod_counts, verdict, {}, now_ns, group)
        return [*writes, status] if status is not None else writes

    def _delete_live_pods(self, plan: JobPlan, pod_counts: PodCounts, now_ns: int) -> list[Write]:
        """Deletes what has not ended, and keeps the status counts up to date."""
        self._retries.forget(plan.key)
        writes: list[Write] = [
            Delete(Ref("Pod", plan.namespace, member.name), member.uid)
            for member in sorted(pod_counts.pods.values(), key=lambda member: (member.role, member.index))
            if member.phase in ("Pending", "Running", "Unknown")
        ]
        status = status_patch(plan, pod_counts, None, {}, now_ns)
        return [*writes, status] if status is not None else writes

    def _finished(self, plan: JobPlan, pod_counts: PodCounts, now_ns: int) -> list[Write]:
        """A job that ended: live pods are deleted, and the job itself after its TTL."""
        writes = self._delete_live_pods(plan, pod_counts, now_ns)
        self._incidents.forget(plan.key)
        pod_counts.evicted.clear()
        self._timers.cancel(plan.key)
        expiry = expiry_of(plan)
        if expiry is not None and expiry > now_ns:
            self._timers.set(plan.key, expiry)
        elif expiry is not None:
            writes.append(Delete(Ref(volcano.JOB, plan.namespace, plan.name), plan.uid))
        return writes

    # Refused writes

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        self._commands.refused(write, error, now_ns)
        key = self._key_of(write)
        if isinstance(write, Create) and error.reason == "AlreadyExists":
            if self._is_own_or_going(write.obj, error.existing):
                return
        elif not isinstance(write, Create) and is_superseded(error):
            return  # gone or changed: a watch event follows
        plan = self._plans.get(key or "")
        if key is None or plan is None:
            return
        if isinstance(write, Create) and write.obj["kind"] != "Pod":
            self._new_resources.pop(key, None)
        self._synced.pop(key, None)
        if self._retries.refuse(key, now_ns):
            if isinstance(write, Create) and write.obj["kind"] == "Pod":
                self._failed_creates[key] = f"the API server refuses more: {error.message}"
            elif isinstance(write, Create):
                self._refused[key] = f"its {write.obj['kind']} cannot be created: {error.message}"
            reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
            self._events.append(_event(plan, "Warning", Verdict("", reason, error.message)))
            self._dirty.add(key)

    def _is_own_or_going(self, wanted: Obj, existing: Obj | None) -> bool:
        """Whether the existing object is the job's own, or a pod whose deletion will be observed."""
        if existing is None or _job_key(existing) == _job_key(wanted):
            return True
        return wanted["kind"] == "Pod" and _job_key(existing) != ""  # of an older job of the same name

    def _key_of(self, write: Write) -> str | None:
        """The key of the job that a write belongs to."""
        match write:
            case Create(obj=obj):
                return _job_key(obj)
            case Patch(ref=ref) | Delete(ref=ref) if ref.kind == volcano.JOB:
                return self._keys.get((ref.namespace, ref.name))
            case Patch(ref=ref) if ref.kind == volcano.POD_GROUP:
                found = ((key, group["metadata"]) for key, group in self._groups.items())
                named = {"namespace": ref.namespace, "name": ref.name}.items()
                return next((key for key, metadata in found if named <= metadata.items()), None)
            case Delete(ref=ref, uid=pod) if ref.kind == "Pod":
                found = ((key, pod_counts.pods.get(ref.name)) for key, pod_counts in self._pod_counts.items())
                return next((key for key, member in found if member is not None and member.uid == pod), None)
            case EvictPod() | EmitEvent() | _:
                return None

    def due(self) -> int | None:
        timers = (self._retries.next(), self._commands.due(), self._timers.next(), self._batches.next())
        return min((at for at in timers if at is not None), default=None)


def _job_key(obj: Obj) -> str:
    return controller_key(obj, volcano.JOB)


def _is_enqueued(group: Obj) -> bool:
    """Whether the scheduler has enqueued the job (M6)."""
    return ((group.get("status") or {}).get("phase") or "Pending") != "Pending"


def _is_unknown(group: Obj | None) -> bool:
    return ((group or {}).get("status") or {}).get("phase") == "Unknown"


def _event(plan: JobPlan, kind: str, verdict: Verdict) -> EmitEvent:
    ref = Ref(volcano.JOB, plan.namespace, plan.name)
    return EmitEvent(ref, plan.uid, "Normal" if kind == "Normal" else "Warning", verdict.reason, verdict.message)
