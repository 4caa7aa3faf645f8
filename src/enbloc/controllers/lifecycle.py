"""Lifecycle policies (V2): what happened to a job's pods, which policy matches, and after which delay it acts.

An incident is read from the pods as they are, so that a restarted controller finds it again; only an eviction leaves no
pod behind: it is passed in by the controller that observed it, or that found it by the status (`live_pods`), until the
replacement carries its time. A role's
policies come before the job's. `*` matches failures (PodFailed, PodEvicted, TaskFailed), not waiting or success.
Incidents of an earlier run of the job, of a role or of a pod are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.volcano import LifecyclePolicy
from enbloc.controllers.job_pod_counts import JobPod, PodCounts
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.units import parse_duration, parse_timestamp

ANY_EVENT = "*"
PARTIAL_RESTARTS = ("RestartTask", "RestartPod")
"""Restarts of a role and of a pod; the others keep running."""
_FAILURES = ("PodFailed", "PodEvicted", "TaskFailed")


class Runs(msgspec.Struct, frozen=True):
    """The current run of a job, of its roles and of its pods, as the job's status records it."""

    version: int = 0
    retries: int = 0
    roles: dict[str, int] = {}
    pods: dict[str, int] = {}
    job: int = 0
    """Restarts of the whole job by policies: those that count against `maxRetry`."""

    def of(self, role: str, pod: str) -> int:
        """The run that a new pod is annotated with."""
        return self.roles.get(role, 0) + self.pods.get(pod, 0)

    def is_outdated(self, member: JobPod) -> bool:
        """Whether a pod belongs to an earlier run: it is deleted, and what becomes of it is ignored."""
        return member.version < self.version or member.run < self.of(member.role, member.name)


def runs_of(job: Obj) -> Runs:
    status: dict[str, Any] = job.get("status") or {}
    restarts = status.get("restarts") or {}
    return Runs(
        version=status.get("version") or 0,
        retries=status.get("retryCount") or 0,
        roles=restarts.get("tasks") or {},
        pods=restarts.get("pods") or {},
        job=restarts.get("job") or 0,
    )


def restarts_whole_job(plan: JobPlan) -> bool:
    """Whether a job in phase Restarting restarts all its pods, not those of a role or single ones."""
    state = (plan.obj.get("status") or {}).get("state") or {}
    return state.get("reason") not in PARTIAL_RESTARTS


class Incident(msgspec.Struct, frozen=True):
    """Something that a policy may match. `since_ns` is when it began; `None` if no object records it."""

    event: str
    role: Role | None
    member: JobPod | None = None
    exit_code: int = 0
    since_ns: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.event, self.member.uid if self.member else self.role.name if self.role else "")

    @property
    def description(self) -> str:
        subject = self.member.name if self.member else f"role {self.role.name}" if self.role else "its PodGroup"
        return f"{self.event} of {subject}" + (f" (exit code {self.exit_code})" if self.exit_code else "")


class PolicyAction(msgspec.Struct, frozen=True):
    """An action that a policy triggers on an incident, and how long after the incident began."""

    action: str
    incident: Incident
    delay_ns: int

    @property
    def description(self) -> str:
        return f"{self.action} on {self.incident.description}"


def has_policies(plan: JobPlan) -> bool:
    return bool(plan.spec.policies) or any(role.policies for role in plan.roles)


def triggered_actions(
    plan: JobPlan, pod_counts: PodCounts, runs: Runs, evicted: Sequence[tuple[JobPod, int]], *, unknown: bool = False
) -> list[PolicyAction]:
    """The actions that the incidents of this run of the job trigger, in the order of roles and indexes.

    `evicted`: pods that were evicted, and when. `unknown`: the PodGroup is in phase Unknown.
    """
    found = []
    for incident in _incidents(plan, pod_counts, runs, evicted, unknown):
        own = incident.role.policies if incident.role else ()
        policy = _matching(own, incident) or _matching(plan.spec.policies or (), incident)
        if policy is not None and (policy.timeout or incident.event != "PodPending"):  # every pod is pending at first
            found.append(PolicyAction(policy.action, incident, parse_duration(policy.timeout) if policy.timeout else 0))
    return found


def events_of(policy: LifecyclePolicy) -> list[str]:
    return [*([policy.event] if policy.event else ()), *(policy.events or ())]


def _matching(policies: Iterable[LifecyclePolicy], incident: Incident) -> LifecyclePolicy | None:
    for policy in policies:
        events = events_of(policy)
        if incident.event in events or (ANY_EVENT in events and incident.event in _FAILURES):
            return policy
        codes = [*(policy.exit_codes or ()), *([] if policy.exit_code is None else [policy.exit_code])]
        if incident.exit_code and incident.exit_code in codes:
            return policy
    return None


def _incidents(
    plan: JobPlan, pod_counts: PodCounts, runs: Runs, evicted: Sequence[tuple[JobPod, int]], unknown: bool
) -> Iterator[Incident]:
    by_role = _eventful_members(plan, pod_counts, runs)
    for role in plan.roles:
        members = by_role.get(role.name, [])
        for member in members:
            if member.phase == "Failed":
                yield Incident("PodFailed", role, member, member.exit_code, _instant(member.finished_at))
            elif member.phase == "Pending":
                if member.evicted_at:
                    yield Incident("PodEvicted", role, member, since_ns=_instant(member.evicted_at))
                yield Incident("PodPending", role, member, since_ns=_instant(member.created))
        for member, at in evicted:
            if member.role == role.name:
                yield Incident("PodEvicted", role, member, since_ns=at)
        succeeded = [member for member in members if member.phase == "Succeeded"]
        if role.replicas and len(succeeded) >= role.replicas:
            yield Incident("TaskCompleted", role, since_ns=_instant(max(member.finished_at for member in succeeded)))
        if role.max_retry and sum(member.restarts for member in members) >= role.max_retry:
            yield Incident("TaskFailed", role)
    if unknown:
        yield Incident("Unknown", None)


def _eventful_members(plan: JobPlan, pod_counts: PodCounts, runs: Runs) -> dict[str, list[JobPod]]:
    """The pods of the current run by role, in order, for roles in which something happened: the others cost nothing."""
    names = {
        role.name
        for role in plan.roles
        if pod_counts.of(role.name, "Failed")
        or pod_counts.of(role.name, "Pending")
        or pod_counts.restarts[role.name]
        or pod_counts.of(role.name, "Succeeded") >= role.replicas > 0
    }
    found: dict[str, list[JobPod]] = {}
    if names:
        for member in sorted(pod_counts.pods.values(), key=lambda member: member.index):
            if member.role in names and not runs.is_outdated(member):
                found.setdefault(member.role, []).append(member)
    return found


def _instant(text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_timestamp(text)
    except ValueError:
        return None  # not written by us
