"""Lifecycle policies (V2): what happened to a job's pods, which policy answers it, and when it is time to act.

An incident is read from the pods as they are, so that a controller that was started anew finds it again; only an
eviction, which leaves nothing behind, is told by whoever saw it. A role's policies come before the job's.
`*` stands for what goes wrong (PodFailed, PodEvicted, TaskFailed): waiting and success are no accidents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from enbloc.api.volcano import LifecyclePolicy
from enbloc.controllers.job_census import Census, Member
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.units import parse_duration, parse_timestamp

ANY_EVENT = "*"
_ACCIDENTS = ("PodFailed", "PodEvicted", "TaskFailed")


class Incident(msgspec.Struct, frozen=True):
    """Something that a policy may answer. `since` is when it began, in nanoseconds, `None` if nothing tells."""

    event: str
    role: Role
    member: Member | None = None
    exit_code: int = 0
    since: int | None = None

    @property
    def story(self) -> str:
        who = self.member.name if self.member else f"role {self.role.name}"
        return f"{self.event} of {who}" + (f" (exit code {self.exit_code})" if self.exit_code else "")


class Answer(msgspec.Struct, frozen=True):
    """What a policy wants done about an incident, and how long after it began."""

    action: str
    incident: Incident
    delay: int


def has_policies(plan: JobPlan) -> bool:
    return bool(plan.spec.policies) or any(role.policies for role in plan.roles)


def answers(plan: JobPlan, census: Census, version: int, evicted: Sequence[Member]) -> list[Answer]:
    """The policies that apply to what happened in this run of the job, in the order of roles and indexes."""
    found = []
    for incident in _incidents(plan, census, version, evicted):
        policy = _matching(incident.role.policies, incident) or _matching(plan.spec.policies or (), incident)
        if policy is not None:
            found.append(Answer(policy.action, incident, parse_duration(policy.timeout) if policy.timeout else 0))
    return found


def _matching(policies: Iterable[LifecyclePolicy], incident: Incident) -> LifecyclePolicy | None:
    for policy in policies:
        events = [*(policy.events or ()), *([policy.event] if policy.event else ())]
        if incident.event in events or (ANY_EVENT in events and incident.event in _ACCIDENTS):
            return policy
        codes = [*(policy.exit_codes or ()), *([] if policy.exit_code is None else [policy.exit_code])]
        if incident.exit_code and incident.exit_code in codes:
            return policy
    return None


def _incidents(plan: JobPlan, census: Census, version: int, evicted: Sequence[Member]) -> Iterator[Incident]:
    present = sorted(census.pods.values(), key=lambda member: member.index)
    for role in plan.roles:
        members = [member for member in present if member.role == role.name and member.version == version]
        for member in members:
            if member.phase == "Failed":
                yield Incident("PodFailed", role, member, member.exit_code)
            elif member.phase == "Pending":
                yield Incident("PodPending", role, member, since=parse_timestamp(member.born) if member.born else None)
        for member in evicted:
            if member.role == role.name and member.version == version:
                yield Incident("PodEvicted", role, member)
        if role.replicas and sum(member.phase == "Succeeded" for member in members) >= role.replicas:
            yield Incident("TaskCompleted", role)
        if role.max_retry and sum(member.restarts for member in members) >= role.max_retry:
            yield Incident("TaskFailed", role)
