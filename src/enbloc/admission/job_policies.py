"""Validation of lifecycle policies (V2). The job controller executes them.

A policy that can never fire is a fault where that is certain. A job's policy is not one though every role overrides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from enbloc.api.meta import Fault
from enbloc.api.volcano import LifecyclePolicy, TaskSpec
from enbloc.units import parse_duration

ANY_EVENT = "*"
EVENTS = (ANY_EVENT, "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown")
ACTIONS = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob", "ResumeJob")


def policy_faults(policies: Sequence[LifecyclePolicy] | None, field: str) -> list[Fault]:
    """All faults of one list of policies."""
    faults: list[Fault] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies or ()):
        path = f"{field}[{index}]"
        faults += _shape_faults(policy, path)
        own_events = [(f"{path}.event", policy.event)] if policy.event else []
        own_events += [(f"{path}.events[{i}]", event) for i, event in enumerate(policy.events or ())]
        faults += _event_faults(_distinct(own_events), events)
        own_codes = [] if policy.exit_code is None else [(f"{path}.exitCode", policy.exit_code)]
        own_codes += [(f"{path}.exitCodes[{i}]", code) for i, code in enumerate(policy.exit_codes or ())]
        faults += _code_faults(own_codes, codes)
        if own_codes and not own_events and events & {"PodFailed", ANY_EVENT}:
            text = "can never fire: an earlier policy matches a failed pod whatever its exit code; put this one first"
            faults.append(Fault(path, text))
    if ANY_EVENT in events and len(events) > 1:
        others = ", ".join(sorted(events - {ANY_EVENT}))
        faults.append(Fault(field, f"event '*' matches every event; it may not be combined with others ({others})"))
    return faults


def _distinct(events: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Path and event, each event once: a policy may name an event twice in its own list."""
    first: dict[str, str] = {}
    for path, event in events:
        first.setdefault(event, path)
    return [(path, event) for event, path in first.items()]


def pending_without_timeout(policies: Sequence[LifecyclePolicy] | None, field: str) -> Iterator[Fault]:
    """Policies on PodPending without a timeout, which never fire: every pod is pending at first (V2)."""
    for index, policy in enumerate(policies or ()):
        if "PodPending" in (policy.event, *(policy.events or ())) and not policy.timeout:
            yield Fault(f"{field}[{index}].timeout", "is missing: PodPending never fires without one")


def idle_faults(
    policies: Sequence[LifecyclePolicy] | None, roles: Sequence[TaskSpec], field: str, *, of_role: bool = False
) -> list[Fault]:
    """Policies none of whose events can happen in any of their roles."""
    faults = []
    for index, policy in enumerate(policies or ()):
        events = [*([policy.event] if policy.event else ()), *(policy.events or ())]
        if not events or policy.exit_code is not None or policy.exit_codes:
            continue
        reasons = [_why_never(event, roles, of_role=of_role) for event in events]
        if roles and all(reasons):
            faults.append(
                Fault(f"{field}[{index}]", f"can never fire: {'; '.join(filter(None, dict.fromkeys(reasons)))}")
            )
    return faults


def _why_never(event: str, roles: Sequence[TaskSpec], *, of_role: bool) -> str:
    """Why an event cannot happen; empty if it can."""
    if event == "TaskCompleted" and all(_restarts(role) == "Always" for role in roles):
        return "pods with restartPolicy Always (which is the default) never succeed, so TaskCompleted never happens"
    if event == "TaskFailed" and all(_restarts(role) == "Never" for role in roles):
        return "containers with restartPolicy Never are not restarted, so TaskFailed never happens: use PodFailed"
    if event == "TaskFailed" and all(role.max_retry == 0 for role in roles):
        return "TaskFailed happens when container restarts reach the role's maxRetry, which is 0: no limit"
    if event == "Unknown" and of_role:
        return "Unknown is an event of the job's PodGroup: make it a policy of the job"
    return ""


def _restarts(role: TaskSpec) -> str:
    """The restart policy of the role's containers; empty if they differ."""
    spec = role.template.spec
    alike = all(container.restart_policy is None for container in spec.containers)
    return (spec.restart_policy or "Always") if alike else ""


def _shape_faults(policy: LifecyclePolicy, path: str) -> list[Fault]:
    faults = []
    if policy.action not in ACTIONS:
        what = f"unknown action {policy.action!r}" if policy.action else "is missing"
        faults.append(Fault(f"{path}.action", f"{what} (known: {', '.join(ACTIONS)})"))
    on_event = bool(policy.event or policy.events)
    on_code = policy.exit_code is not None or bool(policy.exit_codes)
    if on_event and on_code:
        faults.append(Fault(path, "has both an event and an exit code: write two policies"))
    elif not on_event and not on_code:
        faults.append(Fault(path, "needs an event or an exit code"))
    if policy.timeout is not None:
        try:
            if parse_duration(policy.timeout) < 0:
                faults.append(Fault(f"{path}.timeout", f"{policy.timeout!r} is below 0"))
        except ValueError as why:
            faults.append(Fault(f"{path}.timeout", str(why)))
    return faults


def _event_faults(events: Iterable[tuple[str, str]], seen: set[str]) -> list[Fault]:
    faults = []
    for path, event in events:
        if event not in EVENTS:
            faults.append(Fault(path, f"unknown event {event!r} (known: {', '.join(EVENTS)})"))
        elif event in seen:
            faults.append(Fault(path, f"event {event!r} has a policy already"))
        seen.add(event)
    return faults


def _code_faults(codes: Iterable[tuple[str, int]], seen: set[int]) -> list[Fault]:
    faults = []
    for path, code in codes:
        if code == 0:
            faults.append(Fault(path, "0 is success and has no policy: use event TaskCompleted"))
        elif code in seen:
            faults.append(Fault(path, f"exit code {code} has a policy already"))
        seen.add(code)
    return faults
