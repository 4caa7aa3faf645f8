"""Carrying policies out (V2): which incidents are ripe, and what each action writes.

An action writes the job's status and nothing else. Pods go because of what the status says then (a phase that they
leave by, or a run that is past), so that a controller that is started anew half-way goes on and mistakes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from enbloc.api.writes import Delete, Patch, Write
from enbloc.controllers.job_pod_counts import TERMINATING, Member, PodCounts
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.job_status import phase_of, status_patch
from enbloc.controllers.lifecycle import Answer, Runs, answers, runs_of
from enbloc.controllers.states.situation import Verdict
from enbloc.controllers.states.state import JOB_ACTIONS, RESTART_JOB, RESUME_JOB
from enbloc.controllers.states.table import by_action

_LIVE = ("Pending", "Running", "Unknown")


class Ripe(msgspec.Struct, frozen=True):
    """The answers whose time has come, and when the next one's will."""

    answers: list[Answer]
    next_due: int | None


class Incidents:
    """What cannot be read from the pods alone: who was evicted, and since when something is so."""

    def __init__(self) -> None:
        self._own: set[str] = set()  # UIDs of pods that the controller deletes itself: no evictions
        self._evicting: set[str] = set()
        self._evicted: dict[str, dict[str, tuple[Member, int | None]]] = {}  # job → pod's name
        self._unanswered: dict[str, dict[str, int]] = {}  # of those, whose policy waits, and since when
        self._since: dict[str, dict[tuple[str, str], int]] = {}

    def note_own(self, writes: Iterable[Write]) -> None:
        self._own.update(write.uid for write in writes if isinstance(write, Delete) and write.ref.kind == "Pod")

    def see(self, member: Member) -> None:
        """A pod began to terminate, and nobody here wanted it to."""
        if member.phase == TERMINATING and member.said in _LIVE and member.uid not in self._own:
            self._evicting.add(member.uid)

    def see_gone(self, member: Member) -> bool:
        """A pod is gone; says whether it was evicted."""
        evicted = member.uid in self._evicting or (member.phase in _LIVE and member.uid not in self._own)
        self._evicting.discard(member.uid)
        self._own.discard(member.uid)
        return evicted

    def note_evicted(self, job: str, member: Member) -> None:
        self._evicted.setdefault(job, {})[member.name] = (member, None)

    def evicted_at(self, job: str, pod: str) -> int | None:
        """When the pod that had this name was evicted, if a policy still waits to answer that."""
        return self._unanswered.get(job, {}).get(pod)

    def forget(self, job: str) -> None:
        for memory in (self._evicted, self._unanswered, self._since):
            memory.pop(job, None)

    def ripe(self, plan: JobPlan, census: PodCounts, now: int, *, unknown: bool) -> Ripe:
        runs = runs_of(plan.obj)
        evicted = self._evictions(plan, census, runs, now)
        earlier = self._since.get(plan.uid, {})
        since: dict[tuple[str, str], int] = {}
        ripe: list[Answer] = []
        next_due: int | None = None
        self._unanswered[plan.uid] = unanswered = dict[str, int]()
        for answer in answers(plan, census, runs, evicted, unknown=unknown):
            key, began = answer.incident.key, answer.incident.since
            since[key] = earlier.get(key, now) if began is None else began
            due = since[key] + answer.delay
            if due <= now:
                ripe.append(answer)
            else:
                next_due = due if next_due is None else min(due, next_due)
                if answer.incident.event == "PodEvicted" and answer.incident.member:
                    unanswered[answer.incident.member.name] = since[key]
        self._since[plan.uid] = since
        return Ripe(ripe, next_due)

    def _evictions(self, plan: JobPlan, census: PodCounts, runs: Runs, now: int) -> list[tuple[Member, int]]:
        """Who went and has no replacement yet; a replacement that is there tells it itself."""
        known = self._evicted.pop(plan.uid, {})
        found = [
            (member, now if at is None else at)
            for member, at in known.values()
            if _is_wanted(plan, member) and not runs.is_past(member) and member.name not in census.pods
        ]
        if found:
            self._evicted[plan.uid] = {member.name: (member, at) for member, at in found}
        return sorted(found, key=lambda pair: (pair[0].role, pair[0].index))


def _is_wanted(plan: JobPlan, member: Member) -> bool:
    role = plan.role(member.role)
    return role is not None and member.index < role.replicas


def chosen(plan: JobPlan, ripe: Sequence[Answer]) -> Answer | None:
    """The answer that counts: the first action on the whole job that leads anywhere, else the first restart."""
    phase = phase_of(plan.obj)
    whole = next((answer for answer in ripe if by_action(phase, answer.action)), None)
    if whole is not None or not by_action(phase, RESTART_JOB):
        return whole
    return next((answer for answer in ripe if answer.action not in JOB_ACTIONS), None)


def act(plan: JobPlan, census: PodCounts, first: Answer, ripe: Sequence[Answer], now: int) -> Patch | None:
    """An action on the whole job alone; otherwise every pod and role that is to be started again."""
    if first.action in JOB_ACTIONS:
        return act_on_job(plan, census, first.action, first.story, now)
    runs = runs_of(plan.obj)
    tasks, pods = _restarted(plan, census, ripe)
    used_up = _used_up(plan, runs, tasks, pods)
    if used_up:
        return status_patch(plan, census, Verdict("Failed", "MaxRetryReached", f"{first.story}: {used_up}"), {}, now)
    if not tasks and not pods:
        return None  # evicted pods come back by themselves
    restarts = {
        "tasks": runs.roles | {name: runs.roles.get(name, 0) + 1 for name in tasks},
        "pods": runs.pods | {name: runs.pods.get(name, 0) + 1 for name in pods},
    }
    return status_patch(plan, census, None, {"restarts": restarts}, now)


def act_on_job(
    plan: JobPlan, census: PodCounts, action: str, story: str, now: int, *, by_hand: bool = False
) -> Patch | None:
    """The status of a job on which an action was taken; nothing if the action leads nowhere from its phase.

    Runs are counted up to `maxRetry`, but for those that somebody asked for by hand.
    """
    phase = by_action(phase_of(plan.obj), action)
    if phase is None:
        return None
    runs, more = runs_of(plan.obj), dict[str, Any]()
    if action in (RESTART_JOB, RESUME_JOB):
        allowed = _allowed(plan)
        if not by_hand and runs.retries + 1 >= allowed:
            text = f"{story}: it ran {runs.retries + 1} times, maxRetry {allowed}"
            if action == RESUME_JOB:
                return None  # it stays as it is
            return status_patch(plan, census, Verdict("Failed", "MaxRetryReached", text), {}, now)
        more = {"version": runs.version + 1, "restarts": None}
        if not by_hand:
            more["retryCount"] = runs.retries + 1
    return status_patch(plan, census, Verdict(phase, action, story), more, now)


def _allowed(plan: JobPlan) -> int:
    """How often a job, and in one run of it a role or a pod, may run."""
    return max(3 if plan.spec.max_retry is None else plan.spec.max_retry, 1)


def _used_up(plan: JobPlan, runs: Runs, tasks: Sequence[str], pods: Sequence[str]) -> str:
    """Who of them has run as often as it may, in words."""
    allowed = _allowed(plan)
    for kind, names, counts in (("role", tasks, runs.roles), ("pod", pods, runs.pods)):
        for name in names:
            if counts.get(name, 0) + 1 >= allowed:
                return f"{kind} {name} ran {counts.get(name, 0) + 1} times, maxRetry {allowed}"
    return ""


def _restarted(plan: JobPlan, census: PodCounts, ripe: Sequence[Answer]) -> tuple[list[str], list[str]]:
    """The roles and, of other roles, the pods that are to be started again."""
    tasks: dict[str, Role] = {}
    pods: dict[str, None] = {}
    for answer in ripe:
        role, member = answer.incident.role, answer.incident.member
        if role is None or answer.action in JOB_ACTIONS:
            continue
        if answer.action == "RestartTask" or member is None:
            tasks[role.name] = role
        elif member.name in census.pods and census.pods[member.name].uid == member.uid:
            pods[member.name] = None
    others = [name for name in pods if census.pods[name].role not in tasks]
    return list(tasks), others
