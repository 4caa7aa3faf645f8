"""Carrying policies out (V2): which incidents are ripe, and what each action writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from enbloc.api.meta import Ref
from enbloc.api.writes import Delete, Write
from enbloc.controllers.job_census import TERMINATING, Census, Member
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.job_status import status_patch
from enbloc.controllers.lifecycle import Answer, answers
from enbloc.controllers.states import leaving
from enbloc.controllers.states.situation import Verdict

_LIVE = ("Pending", "Running", "Unknown")


class Incidents:
    """What cannot be read from the pods alone: who was evicted, and since when something is so."""

    def __init__(self) -> None:
        self._own: set[str] = set()  # UIDs of pods that the controller deletes itself: no evictions
        self._evicting: set[str] = set()
        self._evicted: dict[str, list[Member]] = {}
        self._since: dict[str, dict[tuple[str, str], int]] = {}

    def note_own(self, writes: Iterable[Write]) -> None:
        self._own.update(write.uid for write in writes if isinstance(write, Delete) and write.ref.kind == "Pod")

    def see(self, member: Member, before: Member | None) -> None:
        """A pod began to terminate, and nobody here wanted it to."""
        if member.phase == TERMINATING and member.uid not in self._own and (before is None or before.phase in _LIVE):
            self._evicting.add(member.uid)

    def see_gone(self, member: Member) -> bool:
        """A pod is gone; says whether it was evicted."""
        evicted = member.uid in self._evicting or (member.phase in _LIVE and member.uid not in self._own)
        self._evicting.discard(member.uid)
        self._own.discard(member.uid)
        return evicted

    def note_evicted(self, job: str, member: Member) -> None:
        self._evicted.setdefault(job, []).append(member)

    def forget(self, job: str) -> None:
        self._evicted.pop(job, None)
        self._since.pop(job, None)

    def ripe(self, plan: JobPlan, census: Census, version: int, now: int) -> tuple[list[Answer], int | None]:
        """The answers whose time has come, and when the next one's will."""
        wanted = [member for member in self._evicted.get(plan.uid, ()) if _is_wanted(plan, member)]
        earlier = self._since.get(plan.uid, {})
        since: dict[tuple[str, str], int] = {}
        ripe: list[Answer] = []
        next_due: int | None = None
        kept: list[Member] = []
        for answer in answers(plan, census, version, wanted):
            incident = answer.incident
            key = (incident.event, incident.member.uid if incident.member else incident.role.name)
            since[key] = earlier.get(key, now) if incident.since is None else incident.since
            due = since[key] + answer.delay
            if due <= now:
                ripe.append(answer)
                continue
            next_due = due if next_due is None else min(due, next_due)
            if incident.event == "PodEvicted" and incident.member:
                kept.append(incident.member)
        self._since[plan.uid] = since
        self._evicted[plan.uid] = kept
        return ripe, next_due


def _is_wanted(plan: JobPlan, member: Member) -> bool:
    role = plan.role(member.role)
    return role is not None and member.index < role.replicas


def act(plan: JobPlan, census: Census, first: Answer, ripe: Sequence[Answer], now: int) -> list[Write]:
    """An action on the whole job alone; otherwise every pod and role that is to be started again."""
    status = plan.obj.get("status") or {}
    story = f"{first.action} on {first.incident.story}"
    more: dict[str, Any] = {}
    verdict: Verdict | None = None
    doomed: list[Member] = []
    if first.action.startswith("Restart"):
        runs = (status.get("retryCount") or 0) + 1
        allowed = max(3 if plan.spec.max_retry is None else plan.spec.max_retry, 1)
        if runs >= allowed:
            verdict = Verdict("Failed", "MaxRetryReached", f"{story}: it ran {runs} times, maxRetry {allowed}")
        else:
            more["retryCount"] = runs
    if verdict is None and first.action in leaving.BY_ACTION:
        verdict = Verdict(leaving.BY_ACTION[first.action], first.action, story)
        if first.action == "RestartJob":
            more["version"] = (status.get("version") or 0) + 1
        doomed = leaving.to_delete(verdict.phase, census)
    elif verdict is None:
        doomed = _restarted(census, ripe)
        if not doomed:
            return []  # evicted pods come back by themselves; ResumeJob has nothing to resume
    writes: list[Write] = [Delete(Ref("Pod", plan.namespace, member.name), member.uid) for member in doomed]
    patch = status_patch(plan, census, verdict, more, now)
    return [*writes, patch] if patch is not None else writes


def _restarted(census: Census, ripe: Sequence[Answer]) -> list[Member]:
    """The pods that RestartPod and RestartTask start again."""
    roles = {answer.incident.role.name for answer in ripe if answer.action == "RestartTask"}
    pods = {answer.incident.member.uid for answer in ripe if answer.action == "RestartPod" and answer.incident.member}
    found = [
        member
        for member in census.pods.values()
        if member.phase != TERMINATING and (member.role in roles or member.uid in pods)
    ]
    return sorted(found, key=lambda member: (member.role, member.index))
