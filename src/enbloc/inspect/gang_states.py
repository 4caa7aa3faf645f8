"""The state of a gang in a word, and what its pods and its Job say about how it got there.

Preempted: its pods were evicted for another gang and it waits again. CrashLoop: its pods run, and containers of some
restart again and again. Failed: its pods ended, too few of them well; or its Job says so. Why a gang waits is the
scheduler's to say: see `gangs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, controller_of, holds, name_of
from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.gangs.model import GangSpec
from enbloc.listing import listed, plural

WAITING, PREEMPTED, RUNNING, CRASH_LOOP = "Waiting", "Preempted", "Running", "CrashLoop"
FAILED, FINISHED = "Failed", "Finished"
STATES: Final = (WAITING, PREEMPTED, RUNNING, CRASH_LOOP, FAILED, FINISHED)
WAITS: Final = frozenset({WAITING, PREEMPTED})
RUNS: Final = frozenset({RUNNING, CRASH_LOOP})
RANK: Final = {WAITING: 0, PREEMPTED: 0, RUNNING: 1, CRASH_LOOP: 1, FAILED: 2, FINISHED: 3}
"""Waiting gangs come first, those that have ended last."""

_LONGEST: Final = 200
"""Of what a pod says of its end, at most so many characters are shown."""
_JOB_FAILED: Final = ("Failed", "Terminated")
_BACKOFF: Final = "CrashLoopBackOff"


def state_of(gang: GangState, pods: Counter[str], members: Sequence[Obj], group: Obj | None, job: Obj | None) -> str:
    """`pods`: how many are in which state; `job`: the Job that owns the gang's object."""
    status, alive = gang.spec.observed, pods["running"] + pods["starting"]
    if _phase_of(job) in _JOB_FAILED:
        return FAILED
    if status.finished or (pods["succeeded"] + pods["failed"] and not alive and not pods["waiting"]):
        return FAILED if pods["failed"] and pods["succeeded"] < max(gang.minima.total, 1) else FINISHED
    if alive and (gang.need.ready or not (pods["waiting"] or status.evicted or _waits(group))):
        return CRASH_LOOP if any(map(_crashes, members)) else RUNNING  # it started, whatever it has lost since
    return PREEMPTED if status.evicted else WAITING


def _waits(group: Obj | None) -> bool:
    """Whether the gang's object says so."""
    return group is not None and holds(group, UNSCHEDULABLE) is not None


def _phase_of(job: Obj | None) -> str:
    return str(_job_state(job).get("phase") or "")


def _job_state(job: Obj | None) -> Mapping[str, Any]:
    state = ((job or {}).get("status") or {}).get("state")
    return state if isinstance(state, dict) else {}


def _crashes(pod: Obj) -> bool:
    return any(((one.get("state") or {}).get("waiting") or {}).get("reason") == _BACKOFF for one in _containers(pod))


def _containers(pod: Obj) -> list[dict[str, Any]]:
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [one for one in found if isinstance(one, dict)]


def exit_codes(members: Iterable[Obj]) -> dict[str, int]:
    """Exit codes other than 0, as text with the container's reason: of how many pods each is the last."""
    found: Counter[str] = Counter()
    for pod in members:
        for container in _containers(pod):
            ended = (container.get("state") or {}).get("terminated") or (container.get("lastState") or {}).get(
                "terminated"
            )
            if ended and ended.get("exitCode"):
                reason = str(ended.get("reason") or "")
                text = f"exit code {ended['exitCode']}"
                found[f"{text} ({reason})" if reason not in ("", "Error") else text] += 1
                break
    return dict(sorted(found.items()))


def what_happened(state: str, gang: GangState, pods: Counter[str], members: Sequence[Obj], job: Obj | None) -> str:
    """Of a gang that runs or has ended; of one that waits, where the scheduler has not said why."""
    if state == RUNNING:
        roles = {task.role for task in gang.tasks.values()}
        return "; ".join(filter(None, (_losses(gang.spec, pods, members), _later_roles(job, roles))))
    if state in WAITS:
        return gang.spec.observed.evicted or ("" if members else _no_replicas(job))
    return _what_ended(state, members, job)


def _what_ended(state: str, members: Sequence[Obj], job: Obj | None) -> str:
    """Why a gang failed, or crashes: its Job's reason, the pods' reasons, the exit codes."""
    if state == CRASH_LOOP:
        crashing = [pod for pod in members if _crashes(pod)]
        restarts = sum(int(one.get("restartCount") or 0) for pod in crashing for one in _containers(pod))
        crash = "pod crashes and is" if len(members) == 1 else "pods crash and are"
        text = f"{len(crashing)} of {len(members)} {crash} restarted, {plural(restarts, 'restart')} so far"
        return _with_codes(text, crashing)
    if state != FAILED:
        return ""
    parts = []
    verdict = _job_state(job)
    if verdict.get("phase") in _JOB_FAILED:
        said = (str(verdict.get(key) or "") for key in ("phase", "reason", "message"))
        parts.append(": ".join(one for one in said if one))
    failed = [pod for pod in members if (pod.get("status") or {}).get("phase") == "Failed"]
    if failed:
        text = f"{len(failed)} of {len(members)} pod{'' if len(members) == 1 else 's'} failed"
        reasons = sorted({str(pod["status"]["reason"]) for pod in failed if pod["status"].get("reason")})
        parts.append(_with_codes(f"{text} ({', '.join(reasons)})" if reasons else text, failed))
    return "; ".join(parts)


def _losses(spec: GangSpec, pods: Mapping[str, int], members: Sequence[Obj]) -> str:
    """Of a gang that runs: which pods failed, and why; if it is below its minimum, what becomes of that."""
    parts = []
    failed = [pod for pod in members if (pod.get("status") or {}).get("phase") == "Failed"]
    if failed:
        named = listed([f"{name_of(pod)} ({_why_failed(pod)})" for pod in failed])
        parts.append(f"{len(failed)} of {plural(len(members), 'pod')} failed: {named}")
    left = sum(pods.get(state, 0) for state in ("running", "starting", "succeeded"))
    if left < spec.minimum and not pods.get("waiting"):
        parts.append(f"it is below its minimum of {spec.minimum}: {_what_next(failed or members)}")
    return "; ".join(parts)


def _why_failed(pod: Obj) -> str:
    status = pod["status"]
    ended = [(one.get("state") or {}).get("terminated") or {} for one in _containers(pod)]
    said = (status.get("message"), *(one.get("message") for one in ended))
    why = [*exit_codes([pod]), *filter(None, (status.get("reason"), next(filter(None, said), "")))]
    return " ".join(": ".join(map(str, why)).split())[:_LONGEST] or "it does not say why"


def _what_next(pods: Sequence[Obj]) -> str:
    """Who may recreate pods, by the owner of the first."""
    owner = controller_of(pods[0]) or {}
    if not owner:
        return "no controller owns its pods, so they are not recreated"
    name = f"{owner.get('kind')} {owner.get('name')}"
    if kind_id(owner) == volcano.JOB:
        return f"{name} recreates pods that are deleted, and failed ones only by a policy for PodFailed"
    return f"whether they are recreated is up to {name}"


def _no_replicas(job: Obj | None) -> str:
    """That a Job asks for no pods."""
    tasks = ((job or {}).get("spec") or {}).get("tasks")
    roles = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    if not roles or any(role.get("replicas") for role in roles):
        return ""
    names = listed([str(role.get("name")) for role in roles])
    have = f"role {names} has" if len(roles) == 1 else f"roles {names} have"
    return f"no pod is asked for: {have} 0 replicas"


def _later_roles(job: Obj | None, roles: Collection[str]) -> str:
    """Which roles of a Job have no pods yet, since they depend on others (D2). `roles`: those that have pods."""
    tasks = ((job or {}).get("spec") or {}).get("tasks")
    parts = []
    for task in tasks if isinstance(tasks, list) else ():
        depends = task.get("dependsOn") if isinstance(task, dict) else None
        names = depends.get("name") if isinstance(depends, dict) else None
        if not isinstance(depends, dict) or not isinstance(names, list) or not names or task.get("name") in roles:
            continue
        some = depends.get("iteration") == "any" and len(names) > 1
        others = f"one of {', '.join(map(str, names))}" if some else " and ".join(map(str, names))
        verb = "is" if some or len(names) == 1 else "are"
        parts.append(f"pods of role {task.get('name')} are created once {others} {verb} running (dependsOn)")
    return "; ".join(parts)


def _with_codes(text: str, pods: Iterable[Obj]) -> str:
    counts = exit_codes(pods)
    if len(counts) == 1:
        return f"{text}: {next(iter(counts))}"
    codes = [f"{code} in {count} pod{'' if count == 1 else 's'}" for code, count in counts.items()]
    return f"{text}: {', '.join(codes)}" if codes else text
