"""The phase of a job that follows from what its pods do: its plan against its pods (M5, V2)."""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.controllers.job_pod_counts import TERMINATING, JobPod, PodCounts
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.job_states import STATES, phase_of
from enbloc.controllers.lifecycle import runs_of
from enbloc.listing import plural

BELOW_MINIMUM: Final = "BelowMinimum"


class Verdict(msgspec.Struct, frozen=True):
    """A phase, and why the job is in it."""

    phase: str
    reason: str = ""
    message: str = ""


class Situation(msgspec.Struct, frozen=True):
    """A job's plan against its pods."""

    plan: JobPlan
    pod_counts: PodCounts
    begun: frozenset[str]  # the roles whose wave has begun

    @property
    def running_or_succeeded(self) -> int:
        return self.pod_counts.total("Running") + self.pod_counts.total("Succeeded")

    @property
    def meets_minimum(self) -> bool:
        return self.running_or_succeeded >= self.plan.minimum

    @property
    def waiting(self) -> int:
        """Pods that wait for a node, or that could not be created yet."""
        phases = ("Running", "Succeeded", "Failed", "Unknown", TERMINATING)
        others = sum(self.pod_counts.total(phase) for phase in phases)
        return max(self.plan.replicas - others, 0)

    @property
    def too_many_wait(self) -> bool:
        """Whether the pods that do not wait are fewer than the minimum."""
        return self.waiting > self.plan.replicas - self.plan.minimum and not self.meets_minimum

    @property
    def out_of_reach(self) -> bool:
        """Whether too many pods failed for the minimum, or a role's, to be met unless they are replaced."""
        failed = self.pod_counts.total("Failed")
        return bool(failed) and (
            self.plan.replicas - failed < self.plan.minimum
            or any(role.replicas - self.pod_counts.of(role.name, "Failed") < role.minimum for role in self.plan.roles)
        )

    @property
    def runs(self) -> Verdict:
        alive = self.running_or_succeeded
        text = f"{plural(alive, 'pod')} run{'s' if alive == 1 else ''} or succeeded, minAvailable {self.plan.minimum}"
        return Verdict("Running", "JobRunning", text)

    @property
    def shortage(self) -> str:
        """How far below its minimum the job is, and the phases of the other pods."""
        counts = (
            (self.waiting, "waits", "wait"),
            (self.pod_counts.total("Failed"), "failed", "failed"),
            (self.pod_counts.total(TERMINATING), "terminates", "terminate"),
            (self.pod_counts.total("Unknown"), "is in phase Unknown", "are in phase Unknown"),
        )
        others = ", ".join(f"{count} {one if count == 1 else more}" for count, one, more in counts if count)
        have, least = self.running_or_succeeded, self.plan.minimum
        run = "runs" if self.plan.replicas == 1 else "run"
        return f"{have} of {plural(self.plan.replicas, 'pod')} {run} or succeeded, minAvailable {least}: {others}"

    @property
    def ended(self) -> Verdict | None:
        """The final phase; `None` while a pod has not ended.

        When all pods of the begun waves have ended, no further wave begins.
        """
        succeeded, failed = self.pod_counts.total("Succeeded"), self.pod_counts.total("Failed")
        unfinished = sum(self.pod_counts.total(phase) for phase in ("Pending", "Running", "Unknown", TERMINATING))
        wanted = self.plan.spec.min_success
        if wanted is not None and succeeded >= wanted:
            return Verdict("Completed", "JobCompleted", f"{plural(succeeded, 'pod')} succeeded, minSuccess {wanted}")
        expected = sum(role.replicas for role in self.plan.roles if role.name in self.begun)
        if not expected or unfinished or succeeded + failed != expected:
            return None
        if wanted is not None:
            return Verdict("Failed", "JobFailed", f"{plural(succeeded, 'pod')} succeeded, minSuccess {wanted}")
        if succeeded < self.plan.minimum:
            text = f"{plural(succeeded, 'pod')} succeeded, minAvailable {self.plan.minimum}"
            return Verdict("Failed", "JobFailed", text)
        for role in self.plan.roles:
            of_role = self.pod_counts.of(role.name, "Succeeded")
            if of_role < role.minimum:
                text = f"{plural(of_role, 'pod')} of role {role.name} succeeded, its minAvailable is {role.minimum}"
                return Verdict("Failed", "JobFailed", text)
        return Verdict("Completed", "JobCompleted", f"{succeeded} of {plural(self.plan.replicas, 'pod')} succeeded")


def next_phase(situation: Situation) -> Verdict | None:
    """Returns the phase that follows for a job that is new, Pending or Running, or a new reason of the same one.

    A job that fell below its minimum says so, whether its pods wait (then it is Pending) or failed for good.
    """
    phase = phase_of(situation.plan.obj)
    if not phase:
        return Verdict("Pending")
    if not situation.plan.replicas:
        return None  # a job scaled to 0 keeps its phase
    if situation.ended:
        return situation.ended
    return _of_running(situation) if phase == "Running" else _of_pending(situation)


def _of_pending(situation: Situation) -> Verdict | None:
    """Failed pods count towards no minimum: if too many failed for it to be met, the job says so."""
    if situation.meets_minimum:
        return situation.runs
    return Verdict("Pending", BELOW_MINIMUM, situation.shortage) if situation.out_of_reach else None


def _of_running(situation: Situation) -> Verdict | None:
    """The job stays Running while members end, until too many wait again."""
    if situation.too_many_wait:
        return Verdict("Pending", BELOW_MINIMUM, situation.shortage)
    if not situation.meets_minimum:
        return Verdict("Running", BELOW_MINIMUM, situation.shortage)
    reason = situation.plan.obj["status"]["state"].get("reason") or ""
    return situation.runs if reason == BELOW_MINIMUM else None


def to_delete(plan: JobPlan, pod_counts: PodCounts) -> list[JobPod]:
    """Returns the pods of a draining job that are still to be deleted."""
    return [member for member in _to_remove(plan, pod_counts) if member.phase != TERMINATING]


def drained(plan: JobPlan, pod_counts: PodCounts) -> Verdict | None:
    """Returns the phase that follows a draining one, once the last pod to remove is gone."""
    if _to_remove(plan, pod_counts):
        return None
    state = plan.obj["status"]["state"]
    (to,) = STATES[phase_of(plan.obj)].by_itself
    return Verdict(to, state.get("reason", ""), state.get("message", ""))


def _to_remove(plan: JobPlan, pod_counts: PodCounts) -> list[JobPod]:
    """Returns the pods to remove, terminating ones included.

    A restart removes pods of earlier runs, however they ended. Otherwise pods that ended are kept for inspection.
    """
    members = pod_counts.pods.values()
    if phase_of(plan.obj) == "Restarting":
        runs = runs_of(plan.obj)
        found = [member for member in members if runs.is_outdated(member)]
    else:
        found = [member for member in members if member.phase not in ("Succeeded", "Failed")]
    return sorted(found, key=lambda member: (member.role, member.index))
