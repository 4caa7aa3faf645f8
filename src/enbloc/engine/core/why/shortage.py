"""What each role of a gang lacks after an attempt failed, and the diagnosis that says it (G10): `missing` and `reasons`
list every role that lacks something, and each pod speaks of its own role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.tables.tasks import Task
from enbloc.engine.core.why.diagnosis import MOST_ROLES, Diagnosis
from enbloc.engine.decisions import Reason
from enbloc.listing import plural


class Refusal(NamedTuple):
    """Why a task fits nowhere."""

    text: str
    reasons: tuple[tuple[str, int], ...]
    """Reason, and on how many nodes."""
    of_queue: bool = False
    nodes_would_help: bool = True
    """Whether it would fit on a further node (E1)."""


class Shortage(NamedTuple):
    """What one role of a gang lacks."""

    role: str
    missing: int
    needed: int
    why: Refusal
    of_several_roles: bool = False
    """Whether pods of other roles could do as well: the total is short, and no role's minimum."""

    @property
    def pods(self) -> str:
        text = f"{self.missing} of {self.needed} pod{'' if self.needed == 1 else 's'}"
        if self.of_several_roles:
            return f"{text} of any role"
        return f"{text} of role {self.role}" if self.role else text


class Unplaced:
    """By role: how many pods found no place, and why the first of them did not."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.whys: dict[str, Refusal] = {}

    def add(self, tasks: Iterable[Task], why: Refusal) -> None:
        for task in tasks:
            self.counts[task.role] += 1
            self.whys.setdefault(task.role, why)

    def shortages(self, needed: Mapping[str, int]) -> list[Shortage]:
        return [Shortage(role, count, needed[role], self.whys[role]) for role, count in sorted(self.counts.items())]


class Needs(NamedTuple):
    """How many pods of each role the minima of a gang ask for."""

    of_minima: Counter[str]
    of_rest: Counter[str]
    """Beyond its own minimum, pods of each role that may make up the total."""
    total: int
    """How many of these the total asks for."""


def lacking(needs: Needs, unplaced: Unplaced, of_rest: Unplaced, short: int) -> Diagnosis:
    """The diagnosis of a gang that lacks the `unplaced` pods for its roles' minima, and `short` of those `of_rest`."""
    shortages = unplaced.shortages(needs.of_minima)
    others: dict[str, Refusal] = {}
    if short and (len(of_rest.counts) == 1 or of_rest.counts.total() == short):
        shortages = _with_rest(shortages, needs, of_rest, short)
    elif short:
        roles = {one.role for one in shortages}
        others = {role: why for role, why in of_rest.whys.items() if role and role not in roles}
        why = next(iter(of_rest.whys.values()))
        shortages.append(Shortage("", short, needs.total, why, of_several_roles=True))
    needed = sorted(needs.of_minima.items())
    fitting = {role: count for role, count in needed if role and role not in unplaced.counts}
    return diagnosed(shortages, fitting, others)


def _with_rest(shortages: Sequence[Shortage], needs: Needs, of_rest: Unplaced, short: int) -> list[Shortage]:
    """What each role lacks where the total needs pods of one role, or all that are left of several."""
    found = {one.role: one for one in shortages}
    for role, count in of_rest.counts.items():
        before = found.get(role, Shortage(role, 0, needs.of_minima[role], of_rest.whys[role]))
        lacks = count if len(of_rest.counts) > 1 else short
        needed = before.needed + min(needs.of_rest[role], needs.total)
        found[role] = before._replace(missing=before.missing + lacks, needed=needed)
    return [found[role] for role in sorted(found)]


def diagnosed(shortages: Sequence[Shortage], fitting: Mapping[str, int], others: Mapping[str, Refusal]) -> Diagnosis:
    """The diagnosis of one gang. `fitting`: role → pods that fit, of roles that lack nothing. `others`: why pods of
    roles that lack nothing of their own do not fit, where any role could make up the total."""
    message = _message(shortages)
    of_roles = _of_roles(shortages, fitting, others, message)
    full = shortages[0].why.of_queue
    return Diagnosis(
        PendingReason.QUEUE_FULL if full else PendingReason.UNSCHEDULABLE,
        message,
        missing={one.role: one.missing for one in shortages},
        reasons=tuple(Reason(one.role, reason, nodes) for one in shortages for reason, nodes in one.why.reasons),
        of_queue=full,
        needs_queue=any(one.why.of_queue for one in shortages),
        needs_other_than_nodes=not all(one.why.nodes_would_help for one in shortages),
        of_roles={role: text for role, text in of_roles.items() if text != message},
    )


def _of_roles(
    shortages: Sequence[Shortage], fitting: Mapping[str, int], others: Mapping[str, Refusal], message: str
) -> dict[str, str]:
    """What the pods of each role say."""
    found = {one.role: _message([one]) for one in shortages if one.role}
    total = next((one for one in shortages if one.of_several_roles), shortages[0])
    for role, why in others.items():
        found[role] = f"{_message([total._replace(why=why)])} (role {role})"
    for role, count in fitting.items():
        pods = f"{count} pod{'' if count == 1 else 's'} of role {role} fit{'s' if count == 1 else ''}"
        found.setdefault(role, f"{pods}, {message}")
    return found


def _message(shortages: Sequence[Shortage]) -> str:
    """Roles that lack something for one reason are one clause."""
    by_reason: dict[str, list[Shortage]] = {}
    for one in shortages:
        by_reason.setdefault(one.why.text, []).append(one)
    clauses = []
    for text, alike in islice(by_reason.items(), MOST_ROLES):
        verb = "does" if sum(one.missing for one in alike) == 1 else "do"
        clauses.append(f"{_pods(alike)} {verb} not fit: {text}")
    left = len(by_reason) - len(clauses)
    if left:
        clauses.append(f"pods of other roles do not fit for {plural(left, 'other reason')}.")
    return "; ".join([*(clause.removesuffix(".") for clause in clauses[:-1]), clauses[-1]])


def _pods(alike: Sequence[Shortage]) -> str:
    """The first roles by name, and how many pods the others lack."""
    if len(alike) <= MOST_ROLES:
        return " and ".join(one.pods for one in alike)
    rest = alike[MOST_ROLES:]
    more = f"{plural(sum(one.missing for one in rest), 'pod')} of {plural(len(rest), 'other role')}"
    return " and ".join([*(one.pods for one in alike[:MOST_ROLES]), more])
