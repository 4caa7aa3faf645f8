"""What the phases of a job are decided by."""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.controllers.job_pod_counts import TERMINATING, PodCounts
from enbloc.controllers.job_roles import JobPlan

FINISHED: Final = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
"""Phases in which nothing of a job runs or is to run; an aborted one may be resumed."""
BELOW_MINIMUM: Final = "BelowMinimum"


class Verdict(msgspec.Struct, frozen=True):
    """A phase, and why the job is in it."""

    phase: str
    reason: str = ""
    message: str = ""


class Situation(msgspec.Struct, frozen=True):
    """A job's plan against its pods."""

    plan: JobPlan
    census: PodCounts
    begun: frozenset[str]  # the roles whose wave has begun

    @property
    def running_or_succeeded(self) -> int:
        return self.census.total("Running") + self.census.total("Succeeded")

    @property
    def meets_minimum(self) -> bool:
        return self.running_or_succeeded >= self.plan.minimum

    @property
    def waiting(self) -> int:
        """Pods that wait for a node, or that could not be made yet."""
        others = sum(self.census.total(phase) for phase in ("Running", "Succeeded", "Failed", "Unknown", TERMINATING))
        return max(self.plan.replicas - others, 0)

    @property
    def too_many_wait(self) -> bool:
        """So many wait that, even if all others were fine, the minimum would not be met."""
        return self.waiting > self.plan.replicas - self.plan.minimum and not self.meets_minimum

    @property
    def out_of_reach(self) -> bool:
        """So many failed that the minimum, or that of a role, cannot be met unless somebody replaces them."""
        failed = self.census.total("Failed")
        return bool(failed) and (
            self.plan.replicas - failed < self.plan.minimum
            or any(role.replicas - self.census.of(role.name, "Failed") < role.minimum for role in self.plan.roles)
        )

    @property
    def runs(self) -> Verdict:
        text = f"{self.running_or_succeeded} pods run or succeeded, minAvailable {self.plan.minimum}"
        return Verdict("Running", "JobRunning", text)

    @property
    def shortage(self) -> str:
        """How far below its minimum the job is, and what became of the others."""
        counts = (
            (self.waiting, "wait"),
            (self.census.total("Failed"), "failed"),
            (self.census.total(TERMINATING), "terminate"),
            (self.census.total("Unknown"), "are not heard of"),
        )
        others = ", ".join(f"{count} {verb}" for count, verb in counts if count)
        have, least = self.running_or_succeeded, self.plan.minimum
        return f"{have} of {self.plan.replicas} pods run or succeeded, minAvailable {least}: {others}"

    @property
    def ended(self) -> Verdict | None:
        """How the job ended; `None` while a pod of it has not.

        When all that was made has ended, no further wave begins: a role that still waits then waits for ever.
        """
        succeeded, failed = self.census.total("Succeeded"), self.census.total("Failed")
        unfinished = sum(self.census.total(phase) for phase in ("Pending", "Running", "Unknown", TERMINATING))
        wanted = self.plan.spec.min_success
        if wanted is not None and succeeded >= wanted:
            return Verdict("Completed", "JobCompleted", f"{succeeded} pods succeeded, minSuccess {wanted}")
        expected = sum(role.replicas for role in self.plan.roles if role.name in self.begun)
        if not expected or unfinished or succeeded + failed != expected:
            return None
        if wanted is not None:
            return Verdict("Failed", "JobFailed", f"{succeeded} pods succeeded, minSuccess {wanted}")
        if succeeded < self.plan.minimum:
            return Verdict("Failed", "JobFailed", f"{succeeded} pods succeeded, minAvailable {self.plan.minimum}")
        for role in self.plan.roles:
            of_role = self.census.of(role.name, "Succeeded")
            if of_role < role.minimum:
                text = f"{of_role} pods of role {role.name} succeeded, its minAvailable is {role.minimum}"
                return Verdict("Failed", "JobFailed", text)
        return Verdict("Completed", "JobCompleted", f"{succeeded} of {self.plan.replicas} pods succeeded")
