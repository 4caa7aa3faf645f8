"""A Job's status: counts, phases by role, and the phase of the job (M5). Only changed fields are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Patch
from enbloc.controllers import live_pods
from enbloc.controllers.job_pod_counts import LIVE, TERMINATING, PodCounts
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.job_situation import BELOW_MINIMUM, Verdict
from enbloc.controllers.job_states import FINISHED, leads, phase_of
from enbloc.controllers.lifecycle import Runs, has_policies, runs_of
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.wait_condition import other_conditions, wait_condition
from enbloc.units import SECOND, format_duration, format_timestamp, parse_timestamp

CONDITIONS_KEPT: Final = 16
"""Former phases."""
_MAY_WAIT: Final = ("", "Pending", "Running", "Restarting")
"""Phases of a job whose gang is to be scheduled, now or when its pods are recreated."""
_ENDING: Final = ("Aborting", "Terminating", "Completing")


def status_patch(
    plan: JobPlan,
    pod_counts: PodCounts,
    verdict: Verdict | None,
    more: dict[str, Any],
    now_ns: int,
    group: Obj | None = None,
    refused: str = "",
) -> Patch | None:
    """The patch that brings the status up to date, if it is not. `verdict`: a new phase, or a new reason. `group`: its
    PodGroup, which says why it waits (G10); without it the job says what it says now, or why there is none (`refused`).
    """
    status = plan.obj.get("status") or {}
    phase = verdict.phase if verdict is not None else phase_of(plan.obj)
    runs = runs_of({"status": status | more})
    wanted = _counts(plan, pod_counts, _going(pod_counts, phase, runs)) | more
    if has_policies(plan) or live_pods.FIELD in status:
        goes_on = has_policies(plan) and phase in _MAY_WAIT
        found = live_pods.record(plan, pod_counts, runs, restarts=phase == "Restarting") if goes_on else None
        wanted[live_pods.FIELD] = found or None
    if verdict is not None and verdict.phase == phase_of(plan.obj):
        wanted["state"] = status["state"] | {"reason": verdict.reason, "message": verdict.message}
    elif verdict is not None:
        wanted |= _transition(plan, verdict, now_ns)
    conditions = wanted.get("conditions") or other_conditions(plan.obj)
    if phase in _MAY_WAIT:
        conditions = [*conditions, *wait_condition(plan.obj, group, refused, now_ns)]
    if conditions != (status.get("conditions") or []):
        wanted["conditions"] = conditions
    patch = difference(status, wanted)
    if not patch:
        return None
    return Patch(Ref(volcano.JOB, plan.namespace, plan.name), {"status": patch}, subresource="status", uid=plan.uid)


def _going(pod_counts: PodCounts, phase: str, runs: Runs) -> dict[str, Counter[str]]:
    """By role and phase: the pods that the job's phase has deleted, whether or not that has been observed. Its status
    counts them as terminating from the start, as in Volcano."""
    found: dict[str, Counter[str]] = {}
    if phase == "Restarting" or phase in _ENDING:
        for member in pod_counts.pods.values():
            goes = runs.is_outdated(member) if phase == "Restarting" else member.phase in LIVE
            if goes and member.phase != TERMINATING:
                found.setdefault(member.role, Counter())[member.phase] += 1
    return found


def _counts(plan: JobPlan, pod_counts: PodCounts, going: Mapping[str, Counter[str]]) -> dict[str, Any]:
    by_role = {
        role.name: {"phase": {phase: count for phase, count in sorted(counts.items()) if count}}
        for role in plan.roles
        if (counts := _live(pod_counts, role.name, going))
    }
    leaves = sum(going.values(), Counter[str]())
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    return {
        "minAvailable": plan.minimum,
        **{phase.lower(): pod_counts.total(phase) - leaves[phase] for phase in phases},
        "terminating": pod_counts.total(TERMINATING) + leaves.total(),
        "taskStatusCount": by_role,
    }


def _live(pod_counts: PodCounts, role: str, going: Mapping[str, Counter[str]]) -> dict[str, int]:
    counts = (pod_counts.by_role.get(role) or Counter[str]()) - going.get(role, Counter[str]())
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


def needs_event(plan: JobPlan, verdict: Verdict) -> bool:
    """Whether to emit an event: the job ended, or fell (further) below its minimum."""
    if verdict.phase in FINISHED:
        return True
    state = (plan.obj.get("status") or {}).get("state") or {}
    current = (state.get("reason"), state.get("message"))
    return verdict.reason == BELOW_MINIMUM and current != (verdict.reason, verdict.message)


def expiry_of(plan: JobPlan) -> int | None:
    """When a job that ended is deleted."""
    ttl_s = plan.spec.ttl_seconds_after_finished
    finished_at = ((plan.obj.get("status") or {}).get("state") or {}).get("lastTransitionTime")
    return None if ttl_s is None or not finished_at else parse_timestamp(finished_at) + ttl_s * SECOND
