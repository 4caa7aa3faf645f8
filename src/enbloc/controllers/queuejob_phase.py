"""The phases of a QueueJob, given what its pods do, and when all of it starts over (A5, A6).

Pending → Running as soon as the minimum ran → Completed when every pod succeeded. From any of them Restarting, while
all pods are deleted, and Pending again when they are gone and the delay is over. All that must survive a restart of the
controller is in the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from enbloc.api import arbitrator
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Patch
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot
from enbloc.controllers.queuejob_pods import QueueJobPod
from enbloc.controllers.wait_condition import other_conditions, wait_condition
from enbloc.listing import plural
from enbloc.units import SECOND, format_duration, format_timestamp, parse_timestamp

PENDING: Final = "Pending"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
COMPLETED: Final = "Completed"

FIRST_DELAY: Final = 10 * SECOND
LONGEST_DELAY: Final = 300 * SECOND


def delay_of(times: int) -> int:
    """The delay before the next attempt after `times` failures: none, then 10 s, 20 s, up to 5 min."""
    return 0 if times <= 1 else min(FIRST_DELAY << min(times - 2, 20), LONGEST_DELAY)


class QueueJobVerdict(msgspec.Struct, frozen=True):
    """The next phase, and why. With `Restarting`: when pods are recreated, and the number of the restart."""

    phase: str
    reason: str = ""
    message: str = ""
    restart_ns: int = 0
    restarts: int = 0


def status_of(plan: QueueJobPlan) -> arbitrator.QueueJobStatus:
    found = plan.obj.get("status") or {}
    try:
        return view(found, arbitrator.QueueJobStatus)
    except msgspec.ValidationError:
        return arbitrator.QueueJobStatus()  # not written by us: as if there were no status


def phase_of(plan: QueueJobPlan) -> str:
    state = status_of(plan).state
    return state.phase if state else ""


def restart_ns(plan: QueueJobPlan) -> int:
    """When the pods of a restarting job are recreated."""
    try:
        return parse_timestamp(status_of(plan).restart_at)
    except ValueError:
        return 0


def is_over(plan: QueueJobPlan) -> bool:
    """Every pod has succeeded, and nothing was asked for since: pods that are cleared away do not come back."""
    return phase_of(plan) == COMPLETED and status_of(plan).completed_generation == plan.generation


def restart_of(
    plan: QueueJobPlan, slots: Sequence[Slot], pods: Mapping[str, QueueJobPod], now_ns: int
) -> QueueJobVerdict | None:
    """Whether all pods are deleted and recreated, and why."""
    status = status_of(plan)
    for slot in slots:
        pod = pods.get(slot.name)
        if pod is not None and not pod.terminating and pod.template_hash != slot.role.template_hash:
            return QueueJobVerdict(
                RESTARTING, "TemplateChanged", f"the template of role {slot.role.name} changed", now_ns, 0
            )
    ran = min(status.met, plan.minimum)
    alive = sum(slot.name in pods and pods[slot.name].is_alive for slot in slots)
    if alive >= ran or not any(slot.name not in pods or pods[slot.name].is_lost for slot in slots):
        return None
    times = status.restarts + 1
    text = f"{_run(alive)}, minAvailable {ran}: all start over"
    delay = delay_of(times)
    text += f", after {format_duration(delay)}" if delay else ""
    return QueueJobVerdict(RESTARTING, "TooFewPods", text, now_ns + delay, times)


def _run(alive: int) -> str:
    return f"{plural(alive, 'pod')} run{'s' if alive == 1 else ''} or succeeded"


def next_phase(plan: QueueJobPlan, slots: Sequence[Slot], pods: Mapping[str, QueueJobPod]) -> QueueJobVerdict:
    """The phase that follows from its pods, if they do not start over."""
    if not slots:
        return QueueJobVerdict(phase_of(plan) or PENDING)
    members = [pods[slot.name] for slot in slots if slot.name in pods]
    if len(members) == len(slots) and all(pod.phase == "Succeeded" and not pod.terminating for pod in members):
        return QueueJobVerdict(COMPLETED, "JobCompleted", f"{len(slots)} of {plural(len(slots), 'pod')} succeeded")
    alive = sum(pod.is_alive for pod in members)
    if alive and alive >= plan.minimum:
        return QueueJobVerdict(RUNNING, "JobRunning", f"{_run(alive)}, minAvailable {plan.minimum}")
    return QueueJobVerdict(RUNNING if min(status_of(plan).met, plan.minimum) else PENDING)


def status_patch(
    plan: QueueJobPlan,
    slots: Sequence[Slot],
    pods: Mapping[str, QueueJobPod],
    verdict: QueueJobVerdict | None,
    now_ns: int,
    spec: Obj | None,
    refused: str = "",
) -> Patch | None:
    """The patch that brings the status up to date, if it is not; without a verdict the phase stays. `spec`: its
    SchedulingSpec, which says why it waits (G10); without it the job says what it says now, or why there is none
    (`refused`)."""
    status = status_of(plan)
    phase = verdict.phase if verdict else phase_of(plan)
    wanted = _counts(plan, pods) | {"met": _met(plan, slots, pods, phase), "restarts": status.restarts}
    if verdict is not None and verdict.phase != phase_of(plan):
        state = {"phase": verdict.phase, "lastTransitionTime": format_timestamp(now_ns)}
        wanted["state"] = state | ({"reason": verdict.reason, "message": verdict.message} if verdict.reason else {})
    if phase != RESTARTING:
        wanted["restartAt"] = None  # it is over
    if verdict is not None and verdict.phase == RESTARTING:
        wanted |= {"restarts": verdict.restarts, "restartAt": format_timestamp(verdict.restart_ns)}
    found = plan.obj.get("status") or {}
    wanted["created"] = created(plan, slots, pods) or (found.get("created") and {})
    if verdict is not None and verdict.phase == COMPLETED:
        wanted |= {"completedGeneration": plan.generation, "created": {}}
    waits = wait_condition(plan.obj, spec, refused, now_ns) if phase != COMPLETED else []
    conditions = [*other_conditions(plan.obj), *waits]
    if conditions != (found.get("conditions") or []):
        wanted["conditions"] = conditions
    patch = difference(found, wanted)
    if not patch:
        return None
    ref = Ref(arbitrator.QUEUE_JOB, plan.namespace, plan.name)
    return Patch(ref, {"status": patch}, subresource="status", uid=plan.uid)


def created(plan: QueueJobPlan, slots: Sequence[Slot], pods: Mapping[str, QueueJobPod]) -> dict[str, int]:
    """How many pods of each role the job had: a lost one is replaced before others get pods of their rest (A4)."""
    had = status_of(plan).created or {}
    found = {role.name: min(had.get(role.name, 0), role.replicas) for role in plan.roles}
    for slot in slots:
        if slot.name in pods:
            found[slot.role.name] = max(found[slot.role.name], slot.index + 1)
    return {role: count for role, count in found.items() if count}


def note_of_restart(restart: QueueJobVerdict, now_ns: int) -> str:
    """For jobs behind one that starts over."""
    when = f"next attempt at {format_timestamp(restart.restart_ns)}"
    if restart.restart_ns <= now_ns:
        when = "its old pods are stopping"
    return f"restart {restart.restarts}, {when}" if restart.restarts else when


def note_of_lost(pods: Iterable[QueueJobPod], now_ns: int) -> str:
    """For jobs behind one that is about to recreate pods that it lost: the first of them in a delay, else the first."""
    notes = []
    for pod in pods:
        at = 0 if pod.terminating else pod.ended_ns + delay_of(pod.attempt + 1)
        when = f"attempt {pod.attempt + 2} at {format_timestamp(at)}" if at > now_ns else "is stopping"
        notes.append((at <= now_ns, at, f"pod {pod.name}: {when}" if at > now_ns else f"pod {pod.name} {when}"))
    return min(notes)[2] if notes else ""


def _met(plan: QueueJobPlan, slots: Sequence[Slot], pods: Mapping[str, QueueJobPod], phase: str) -> int:
    """The largest minimum that ran: a raised minimum must be met again, and after a restart any."""
    if phase == RESTARTING:
        return 0
    alive = sum(slot.name in pods and pods[slot.name].is_alive for slot in slots)
    return plan.minimum if alive >= plan.minimum else min(status_of(plan).met, plan.minimum)


def _counts(plan: QueueJobPlan, pods: Mapping[str, QueueJobPod]) -> dict[str, Any]:
    counts = dict.fromkeys(("Pending", "Running", "Succeeded", "Failed"), 0)
    for pod in pods.values():
        if not pod.terminating and pod.phase in counts:
            counts[pod.phase] += 1
    return {phase.lower(): count for phase, count in counts.items()} | {"minAvailable": plan.minimum}
