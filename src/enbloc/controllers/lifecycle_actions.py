"""Executes lifecycle policies (V2): which actions are due, and what each writes.

An action writes the job's status and nothing else. Pods are deleted because of that status (its phase, or a newer run),
so that a controller that is restarted half-way continues from the status alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from enbloc.api.writes import Delete, Patch, Write
from enbloc.controllers.job_pod_counts import TERMINATING, JobPod, PodCounts
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.job_situation import Verdict
from enbloc.controllers.job_states import JOB_ACTIONS, RESTART_JOB, RESUME_JOB, by_action, phase_of
from enbloc.controllers.job_status import status_patch
from enbloc.controllers.lifecycle import PolicyAction, Runs, runs_of, triggered_actions
from enbloc.controllers.live_pods import missed
from enbloc.listing import plural


class DueActions(msgspec.Struct, frozen=True):
    """The actions that are due, and when the next one will be."""

    actions: list[PolicyAction]
    next_due_ns: int | None


class Incidents:
    """What cannot be read from the pods alone: which pods were evicted, and since when an incident lasts."""

    def __init__(self) -> None:
        self._own_deletions: set[str] = set()  # UIDs of pods that this controller deletes: no evictions
        self._being_evicted: set[str] = set()
        self._unhandled: dict[str, dict[str, int]] = {}  # of those, the ones whose policy waits for its timeout
        self._since: dict[str, dict[tuple[str, str], int]] = {}  # of jobs whose status was read once

    def note_own_deletions(self, writes: Iterable[Write]) -> None:
        deletions = (write for write in writes if isinstance(write, Delete) and write.ref.kind == "Pod")
        self._own_deletions.update(write.uid for write in deletions)

    def observe_pod(self, member: JobPod) -> None:
        """Notes a pod that terminates and was not deleted by this controller."""
        if member.phase == TERMINATING and member.is_live and member.uid not in self._own_deletions:
            self._being_evicted.add(member.uid)

    def observe_gone(self, member: JobPod) -> bool:
        """A pod is gone; returns whether it was evicted."""
        own = member.uid in self._own_deletions
        evicted = member.uid in self._being_evicted or (member.is_live and member.phase != TERMINATING and not own)
        self._being_evicted.discard(member.uid)
        self._own_deletions.discard(member.uid)
        return evicted

    def evicted_at(self, job: str, pod: str) -> int | None:
        """When the pod of this name was evicted, if a policy still waits for its timeout."""
        return self._unhandled.get(job, {}).get(pod)

    def forget(self, job: str) -> None:
        for memory in (self._unhandled, self._since):
            memory.pop(job, None)

    def due_actions(self, plan: JobPlan, pod_counts: PodCounts, now_ns: int, *, unknown: bool) -> DueActions:
        runs = runs_of(plan.obj)
        if plan.key not in self._since:
            pod_counts.evicted |= {member.name: (member, None) for member in missed(plan, pod_counts, runs)}
        evicted = _evictions(plan, pod_counts, runs, now_ns)
        earlier = self._since.get(plan.key, {})
        since: dict[tuple[str, str], int] = {}
        due: list[PolicyAction] = []
        next_due_ns: int | None = None
        self._unhandled[plan.key] = unhandled = dict[str, int]()
        for action in triggered_actions(plan, pod_counts, runs, evicted, unknown=unknown):
            key, began = action.incident.key, action.incident.since_ns
            since[key] = earlier.get(key, now_ns) if began is None else began
            due_at = since[key] + action.delay_ns
            if due_at <= now_ns:
                due.append(action)
            else:
                next_due_ns = due_at if next_due_ns is None else min(due_at, next_due_ns)
                if action.incident.event == "PodEvicted" and action.incident.member:
                    unhandled[action.incident.member.name] = since[key]
        self._since[plan.key] = since
        return DueActions(due, next_due_ns)


def _evictions(plan: JobPlan, pod_counts: PodCounts, runs: Runs, now_ns: int) -> list[tuple[JobPod, int]]:
    """Evicted pods without a replacement; a replacement carries the time of the eviction itself."""
    found = [
        (member, now_ns if at is None else at)
        for member, at in pod_counts.evicted.values()
        if _is_wanted(plan, member) and not runs.is_outdated(member) and member.name not in pod_counts.pods
    ]
    pod_counts.evicted = {member.name: (member, at) for member, at in found}
    return sorted(found, key=lambda pair: (pair[0].role, pair[0].index))


def _is_wanted(plan: JobPlan, member: JobPod) -> bool:
    role = plan.role(member.role)
    return role is not None and member.index < role.replicas


def first_action(plan: JobPlan, due: Sequence[PolicyAction]) -> PolicyAction | None:
    """The action to execute: the first on the whole job that has an effect, else the first restart of a role or pod."""
    phase = phase_of(plan.obj)
    whole = next((action for action in due if by_action(phase, action.action)), None)
    if whole is not None or not by_action(phase, RESTART_JOB):
        return whole
    return next((action for action in due if action.action not in JOB_ACTIONS), None)


def act(
    plan: JobPlan, pod_counts: PodCounts, first: PolicyAction, due: Sequence[PolicyAction], now_ns: int
) -> Patch | None:
    """Executes one action on the whole job, or all restarts of roles and pods that are due."""
    if first.action in JOB_ACTIONS:
        return act_on_job(plan, pod_counts, first.action, first.description, now_ns)
    runs = runs_of(plan.obj)
    tasks, pods = _to_restart(plan, pod_counts, due)
    exhausted = _retries_exhausted(plan, runs, tasks, pods)
    more: dict[str, Any] = {"retryCount": runs.retries + 1}
    if exhausted:
        return status_patch(
            plan, pod_counts, Verdict("Failed", "MaxRetryReached", f"{first.description}: {exhausted}"), more, now_ns
        )
    if not tasks and not pods:
        return None  # evicted pods are recreated without an action
    restarts = {
        "job": runs.job,
        "tasks": runs.roles | {name: runs.roles.get(name, 0) + 1 for name in tasks},
        "pods": runs.pods | {name: runs.pods.get(name, 0) + 1 for name in pods},
    }
    more["restarts"] = restarts
    return status_patch(plan, pod_counts, Verdict("Restarting", first.action, first.description), more, now_ns)


def act_on_job(
    plan: JobPlan, pod_counts: PodCounts, action: str, cause: str, now_ns: int, *, by_hand: bool = False
) -> Patch | None:
    """The status patch of an action on the whole job; `None` if the action has no effect in its phase.

    Runs are counted against `maxRetry`, except those that a Command asked for (`by_hand`).
    """
    phase = by_action(phase_of(plan.obj), action)
    if phase is None:
        return None
    runs, more = runs_of(plan.obj), dict[str, Any]()
    if action in (RESTART_JOB, RESUME_JOB):
        allowed = _max_runs(plan)
        if not by_hand and runs.job + 1 >= allowed:
            text = f"{cause}: it ran {plural(runs.job + 1, 'time')}, maxRetry {allowed}"
            if action == RESUME_JOB:
                return None  # it stays Aborted
            return status_patch(
                plan, pod_counts, Verdict("Failed", "MaxRetryReached", text), {"retryCount": runs.retries + 1}, now_ns
            )
        more = {"version": runs.version + 1, "restarts": {"job": runs.job + (not by_hand)}}
        if not by_hand:
            more["retryCount"] = runs.retries + 1  # as Volcano counts: every restart, and the one that was not allowed
    return status_patch(plan, pod_counts, Verdict(phase, action, cause), more, now_ns)


def _max_runs(plan: JobPlan) -> int:
    """How often a job, and within one of its runs a role or a pod, may run."""
    return max(3 if plan.spec.max_retry is None else plan.spec.max_retry, 1)


def _retries_exhausted(plan: JobPlan, runs: Runs, tasks: Sequence[str], pods: Sequence[str]) -> str:
    """The first of them that has used all its runs, as a message; empty if none has."""
    allowed = _max_runs(plan)
    for kind, names, counts in (("role", tasks, runs.roles), ("pod", pods, runs.pods)):
        for name in names:
            if counts.get(name, 0) + 1 >= allowed:
                return f"{kind} {name} ran {plural(counts.get(name, 0) + 1, 'time')}, maxRetry {allowed}"
    return ""


def _to_restart(plan: JobPlan, pod_counts: PodCounts, due: Sequence[PolicyAction]) -> tuple[list[str], list[str]]:
    """The roles to restart and, of other roles, the pods."""
    tasks: dict[str, Role] = {}
    pods: dict[str, None] = {}
    for action in due:
        role, member = action.incident.role, action.incident.member
        if role is None or action.action in JOB_ACTIONS:
            continue
        if action.action == "RestartTask" or member is None:
            tasks[role.name] = role
        elif member.name in pod_counts.pods and pod_counts.pods[member.name].uid == member.uid:
            pods[member.name] = None
    others = [name for name in pods if pod_counts.pods[name].role not in tasks]
    return list(tasks), others
