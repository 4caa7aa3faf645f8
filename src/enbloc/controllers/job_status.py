"""A Job's status: counts, phases by role, and the phase of the job (M5). Only changed fields are written."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Patch
from enbloc.controllers.job_pod_counts import TERMINATING, PodCounts
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.states.situation import FINISHED, Verdict
from enbloc.controllers.states.table import leads
from enbloc.controllers.wait_condition import other_conditions, wait_condition
from enbloc.units import format_duration, format_timestamp, parse_timestamp

CONDITIONS_KEPT: Final = 16
"""Former phases."""
_MAY_WAIT: Final = ("", "Pending", "Running", "Restarting")
"""Phases of a job whose gang is to be scheduled, now or when its pods are recreated."""


def phase_of(job: Obj) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or ""


def status_patch(
    plan: JobPlan,
    pod_counts: PodCounts,
    verdict: Verdict | None,
    more: dict[str, Any],
    now_ns: int,
    group: Obj | None = None,
) -> Patch | None:
    """The patch that brings the status up to date, if it is not. `verdict`: a new phase, or a new reason. `group`: its
    PodGroup, which says why it waits (G10); without it the job says what it says now."""
    status = plan.obj.get("status") or {}
    wanted = _counts(plan, pod_counts) | more
    if verdict is not None and verdict.phase == phase_of(plan.obj):
        wanted["state"] = status["state"] | {"reason": verdict.reason, "message": verdict.message}
    elif verdict is not None:
        wanted |= _transition(plan, verdict, now_ns)
    phase = verdict.phase if verdict is not None else phase_of(plan.obj)
    conditions = wanted.get("conditions") or other_conditions(plan.obj)
    if phase in _MAY_WAIT:
        conditions = [*conditions, *wait_condition(plan.obj, group)]
    if conditions != (status.get("conditions") or []):
        wanted["conditions"] = conditions
    patch = difference(status, wanted)
    if not patch:
        return None
    return Patch(Ref(volcano.JOB, plan.namespace, plan.name), {"status": patch}, subresource="status", uid=plan.uid)


def _counts(plan: JobPlan, pod_counts: PodCounts) -> dict[str, Any]:
    by_role = {
        role.name: {"phase": {phase: count for phase, count in sorted(counts.items()) if count}}
        for role in plan.roles
        if (counts := _live(pod_counts, role.name))
    }
    return {
        "minAvailable": plan.minimum,
        "pending": pod_counts.total("Pending"),
        "running": pod_counts.total("Running"),
        "succeeded": pod_counts.total("Succeeded"),
        "failed": pod_counts.total("Failed"),
        "terminating": pod_counts.total(TERMINATING),
        "unknown": pod_counts.total("Unknown"),
        "taskStatusCount": by_role,
    }


def _live(pod_counts: PodCounts, role: str) -> dict[str, int]:
    counts = pod_counts.by_role.get(role) or Counter[str]()
    return {phase: count for phase, count in counts.items() if count and phase != TERMINATING}


def _transition(plan: JobPlan, verdict: Verdict, now_ns: int) -> dict[str, Any]:
    before = phase_of(plan.obj)
    assert leads(before, verdict.phase), f"job {plan.namespace}/{plan.name}: {before} → {verdict.phase}, {verdict}"
    moment = format_timestamp(now_ns)
    state = {"phase": verdict.phase, "lastTransitionTime": moment}
    if verdict.reason:
        state |= {"reason": verdict.reason, "message": verdict.message}
    history = [*other_conditions(plan.obj), {"status": verdict.phase, "lastTransitionTime": moment}]
    changed: dict[str, Any] = {"state": state, "conditions": history[-CONDITIONS_KEPT:]}
    created = plan.obj["metadata"].get("creationTimestamp")
    if verdict.phase in FINISHED and created:
        changed["runningDuration"] = format_duration(now_ns - parse_timestamp(created))
    return changed
