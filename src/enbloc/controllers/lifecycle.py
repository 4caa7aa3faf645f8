"""Lifecycle policies (V2): what happened to a job's pods, which policy answers it, and how long after.

An incident is read from the pods as they are, so that a controller that was started anew finds it again; only an
eviction leaves nothing behind and is told by whoever saw it, until a replacement carries it on. A role's policies come
before the job's. `*` stands for what goes wrong (PodFailed, PodEvicted, TaskFailed): waiting and success are no
accidents. What happened in an earlier run of the job, of a role or of a pod is nobody's business any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.volcano import LifecyclePolicy
from enbloc.controllers.job_pod_counts import Member, PodCounts
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.units import parse_duration, parse_timestamp

ANY_EVENT = "*"
_ACCIDENTS = ("PodFailed", "PodEvicted", "TaskFailed")


class Runs(msgspec.Struct, frozen=True):
    """Which run of a job, of its roles and of its pods is the present one, as the job's status tells."""

    version: int = 0
    retries: int = 0
    roles: dict[str, int] = {}
    pods: dict[str, int] = {}

    def of(self, role: str, pod: str) -> int:
        """What a pod that is made now carries."""
        return self.roles.get(role, 0) + self.pods.get(pod, 0)

    def is_past(self, member: Member) -> bool:
        """Whether a pod belongs to an earlier run: it goes, and whatever it still does changes nothing."""
        return member.version < self.version or member.run < self.of(member.role, member.name)


def runs_of(job: Obj) -> Runs:
    status: dict[str, Any] = job.get("status") or {}
    restarts = status.get("restarts") or {}
    return Runs(
        version=status.get("version") or 0,
        retries=status.get("retryCount") or 0,
        roles=restarts.get("tasks") or {},
        pods=restarts.get("pods") or {},
    )


class Incident(msgspec.Struct, frozen=True):
    """Something that a policy may answer. `since` is when it began, in nanoseconds, `None` if nothing tells."""

    event: str
    role: Role | None
    member: Member | None = None
    exit_code: int = 0
    since: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.event, self.member.uid if self.member else self.role.name if self.role else "")

    @property
    def story(self) -> str:
        who = self.member.name if self.member else f"role {self.role.name}" if self.role else "its PodGroup"
        return f"{self.event} of {who}" + (f" (exit code {self.exit_code})" if self.exit_code else "")


class Answer(msgspec.Struct, frozen=True):
    """What a policy wants done about an incident, and how long after it began."""

    action: str
    incident: Incident
    delay: int

    @property
    def story(self) -> str:
        return f"{self.action} on {self.incident.story}"


def has_policies(plan: JobPlan) -> bool:
    return bool(plan.spec.policies) or any(role.policies for role in plan.roles)


def answers(
    plan: JobPlan, census: PodCounts, runs: Runs, evicted: Sequence[tuple[Member, int]], *, unknown: bool = False
) -> list[Answer]:
    """The policies that apply to what happened in this run of the job, in the order of roles and indexes.

    `evicted`: pods that went, and when. `unknown`: the PodGroup is in phase Unknown.
    """
    found = []
    for incident in _incidents(plan, census, runs, evicted, unknown):
        own = incident.role.policies if incident.role else ()
        policy = _matching(own, incident) or _matching(plan.spec.policies or (), incident)
        if policy is not None:
            found.append(Answer(policy.action, incident, parse_duration(policy.timeout) if policy.timeout else 0))
    return found


def events_of(policy: LifecyclePolicy) -> list[str]:
    return [*([policy.event] if policy.event else ()), *(policy.events or ())]


def _matching(policies: Iterable[LifecyclePolicy], incident: Incident) -> LifecyclePolicy | None:
    for policy in policies:
        events = events_of(policy)
        if incident.event in events or (ANY_EVENT in events and incident.event in _ACCIDENTS):
            return policy
        codes = [*(policy.exit_codes or ()), *([] if policy.exit_code is None else [policy.exit_code])]
        if incident.exit_code and incident.exit_code in codes:
            return policy
    return None


def _incidents(
    plan: JobPlan, census: PodCounts, runs: Runs, evicted: Sequence[tuple[Member, int]], unknown: bool
) -> Iterator[Incident]:
    by_role = _of_interest(plan, census, runs)
    for role in plan.roles:
        members = by_role.get(role.name, [])
        for member in members:
            if member.phase == "Failed":
                yield Incident("PodFailed", role, member, member.exit_code, _instant(member.ended))
            elif member.phase == "Pending":
                if member.evicted:
                    yield Incident("PodEvicted", role, member, since=_instant(member.evicted))
                yield Incident("PodPending", role, member, since=_instant(member.born))
        for member, at in evicted:
            if member.role == role.name:
                yield Incident("PodEvicted", role, member, since=at)
        succeeded = [member for member in members if member.phase == "Succeeded"]
        if role.replicas and len(succeeded) >= role.replicas:
            yield Incident("TaskCompleted", role, since=_instant(max(member.ended for member in succeeded)))
        if role.max_retry and sum(member.restarts for member in members) >= role.max_retry:
            yield Incident("TaskFailed", role)
    if unknown:
        yield Incident("Unknown", None)


def _of_interest(plan: JobPlan, census: PodCounts, runs: Runs) -> dict[str, list[Member]]:
    """The pods of the present run by role, in order; roles in which nothing happened are left out, at little cost."""
    names = {
        role.name
        for role in plan.roles
        if census.of(role.name, "Failed")
        or census.of(role.name, "Pending")
        or census.restarts[role.name]
        or census.of(role.name, "Succeeded") >= role.replicas > 0
    }
    found: dict[str, list[Member]] = {}
    if names:
        for member in sorted(census.pods.values(), key=lambda member: member.index):
            if member.role in names and not runs.is_past(member):
                found.setdefault(member.role, []).append(member)
    return found


def _instant(text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_timestamp(text)
    except ValueError:
        return None  # somebody else wrote it
