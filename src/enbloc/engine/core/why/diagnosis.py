"""Why a gang waits, with the numbers (G10): one sentence, and the facts behind it.

A diagnosis is made in the very state in which the attempt failed, so its counts are those that made it fail. Writing it
to conditions and events is left to `reporter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from enbloc.api.koordinator import TIMEOUT
from enbloc.api.reasons import LACKS_MEMBERS, PendingReason
from enbloc.engine.core.state.candidates import Candidates
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.headroom import Headroom
from enbloc.engine.core.tables.resources import CEILING, Bools
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.core.why.titles import FOREIGN, Titles
from enbloc.engine.decisions import Reason
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey
from enbloc.listing import listed, plural
from enbloc.units import NANO, format_amount

OUTDATED_BY: Final = frozenset({EventKind.NODE_REMOVED})
"""Events that help no gang, but after which the counts of nodes in a diagnosis are wrong."""

MOST_ROLES: Final = 16
"""A sentence names at most 16 roles, sub-groups or gates: each pod of the gang carries it (S8)."""

RESERVED = "node(s) resource was(were) reserved"
KEPT_IN_TIME = "node(s) were reserved for the first gang in the queue"
KEPT_FOR_PARTIAL = "node(s) were reserved for a partially bound gang"
SET_ASIDE = "node(s) have room that is set aside for "
"""Followed by the gang that could not get enough (A2)."""
KEPT: Final = frozenset({RESERVED, KEPT_IN_TIME, KEPT_FOR_PARTIAL})
"""Reasons of nodes that are kept for other gangs."""
INSUFFICIENT: Final = "Insufficient "
"""Before the name of a resource that nodes lack."""
PACKED = "Enough resources in total, but no assignment of pods to nodes exists."


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a gang waits: `reason` for programs, `message` for people."""

    reason: PendingReason
    message: str
    missing: Mapping[str, int] = {}
    reasons: tuple[Reason, ...] = ()
    of_queue: bool = False
    """Whether the limit of a queue is exceeded: then lower usage of that queue may help."""
    needs_queue: bool = False
    """Whether that is so for any of its roles, whatever the first one lacks."""
    other: str = ""
    """The gang that it waits for, if its title is part of the message."""
    needs_other_than_nodes: bool = False
    """Whether something keeps its pods from every node that there could be (E1)."""
    attempted_with_others: bool = False
    """Whether gangs that it starts with were attempted with it, and do not fit beside it."""
    not_enqueued: bool = False
    """Whether it keeps gangs waiting that start with it, since it is not enqueued."""
    proved: bool = False
    """Whether no assignment of its pods to nodes exists, as things are."""
    level: str = ""
    """The level of which no domain has room for its pods (T1)."""
    of_roles: Mapping[str, str] = {}
    """What pods of a role say, where that is not the message."""
    of_gangs: Mapping[GangKey, Diagnosis] = {}
    """Why each gang waits, of gangs that start together."""

    @property
    def lacks_room(self) -> bool:
        """Whether room would let the gang start: its queue, or a gang of its group, may keep it waiting instead."""
        return not self.of_queue and not self.waits_for_gangs

    @property
    def waits_for_gangs(self) -> bool:
        """Whether gangs that it starts with are not complete: it was not attempted."""
        return self.reason is PendingReason.GROUP_NOT_READY

    @property
    def lacks_members(self) -> bool:
        return self.reason in LACKS_MEMBERS

    def of(self, gang: GangState) -> Diagnosis:
        """Why this gang waits, of those that were attempted together."""
        return self.of_gangs.get(gang.key, self)

    def adding(self, text: str) -> Diagnosis:
        """With one more sentence, for the gang and its pods."""
        return msgspec.structs.replace(
            self,
            message=f"{self.message} {text}",
            of_roles={role: f"{said} {text}" for role, said in self.of_roles.items()},
            of_gangs={key: why.adding(text) for key, why in self.of_gangs.items()},
        )


def nodes_would_help(why: Diagnosis) -> bool:
    """E1: whether a gang lacks nothing but room, labels, taints or topology that further nodes could bring."""
    if why.needs_other_than_nodes or why.of_queue or why.needs_queue:
        return False
    if why.reason is PendingReason.GROUP_NOT_READY:
        return why.attempted_with_others
    return why.reason in (PendingReason.UNSCHEDULABLE, PendingReason.NOT_ENOUGH_RESOURCES)


def reason_of_pods(why: Diagnosis) -> PendingReason:
    """What pods of the minima carry: autoscalers bring nodes for pods that are `Unschedulable`, and for no others."""
    if nodes_would_help(why):
        return PendingReason.UNSCHEDULABLE
    if why.reason is not PendingReason.UNSCHEDULABLE:
        return why.reason
    if why.needs_queue:
        return PendingReason.QUEUE_FULL
    return PendingReason.GROUP_NOT_READY if why.attempted_with_others else PendingReason.GANG_INVALID


def not_enough_members(gang: GangState, foreign: Mapping[str, int] = {}, ours: str = "") -> Diagnosis:
    """G4: the gang is not attempted, since it has fewer members than its minimum. Pods that exist and are no members
    are named: gated ones with their gates, those of other schedulers (`foreign`: name → count) with the name (N4)."""
    missing = gang.need.missing
    gates = gates_of(gang)
    gated, others = sum(gates.values()), sum(foreign.values())
    refused = gang.spec.failed_create
    exists = gang.total_found + gang.total_pending + gated + others
    expected = f" ({gang.spec.expected} expected)" if gang.spec.expected > gang.minima.total else ""
    verb = "is" if sum(missing.values()) == 1 else "are"
    causes = [*_gated(gates), *_of_others(foreign, ours), *([refused] if refused else [])]
    reason = PendingReason.NOT_ENOUGH_PODS
    if refused:
        reason = PendingReason.FAILED_CREATE
    elif causes:
        reason = PendingReason.SCHEDULING_GATED if gated >= others else PendingReason.OTHER_SCHEDULER
    text = f"{exists} of {plural(gang.minima.total, 'pod')} exist{'s' if gang.minima.total == 1 else ''}"
    if gated + others < sum(missing.values()):
        text += f", {_missing_text(missing)} {verb} needed"
    return Diagnosis(reason, "; ".join([f"{text}{expected}", *causes]), missing=missing)


def _gated(gates: Mapping[str, int]) -> Iterator[str]:
    count = sum(gates.values())
    if count:
        names = listed(sorted(gates), MOST_ROLES, "; ")
        yield f"{count} {'is' if count == 1 else 'are'} held by scheduling gate {names}"


def _of_others(foreign: Mapping[str, int], ours: str) -> Iterator[str]:
    count = sum(foreign.values())
    if count:
        names = ", ".join(sorted(name or "(none)" for name in foreign))
        wanted = f" (ours: {ours})" if ours else ""
        yield f"{count} name{'s' if count == 1 else ''} another scheduler: {names}{wanted}"


def sub_groups_lack_members(missing: Mapping[str, int]) -> Diagnosis:
    """T0: sub-groups beyond those that have started are not attempted while they have too few members."""
    lacking = {role: count for role, count in missing.items() if count}
    verb = "is" if sum(lacking.values()) == 1 else "are"
    text = f"{_missing_text(lacking)} {verb} needed: a sub-group starts as a whole"
    if not lacking:  # they are complete, and others of the same vertex are not
        text = f"{listed(sorted(missing), MOST_ROLES)}: other sub-groups beside them lack members"
    return Diagnosis(PendingReason.NOT_ENOUGH_PODS, text, missing=lacking)


def _missing_text(missing: Mapping[str, int]) -> str:
    roles = sorted((role, count) for role, count in missing.items() if role)
    parts = [f"{count} of role {role}" for role, count in roles[:MOST_ROLES]]
    if len(roles) > MOST_ROLES:
        rest = sum(count for _, count in roles[MOST_ROLES:])
        parts.append(f"{rest:,} of {plural(len(roles) - MOST_ROLES, 'other role')}")
    if "" in missing:
        parts.append(f"{missing['']} {'more of any role' if parts else 'more'}")
    return " and ".join(parts)


def gates_of(gang: GangState) -> dict[str, int]:
    """Gates → number of pods that they hold."""
    found: dict[str, int] = {}
    for task in gang.tasks.values():
        if task.status is TaskStatus.GATED and task.ours:
            gates = task.spec["schedulingGates"]
            name = ", ".join(str(gate.get("name")) for gate in gates if isinstance(gate, dict))
            found[name] = found.get(name, 0) + 1
    return found


def problem(gang: GangState, text: str) -> Diagnosis:
    """The gang, or its queue, is invalid."""
    return Diagnosis(PendingReason.GANG_INVALID, text, missing=lacking(gang))


def not_allowed(gang: GangState, shut: str) -> Diagnosis:
    """S5: its queue, or one above it, does not allow its namespace."""
    queue, namespace = gang.spec.queue, gang.key.namespace
    where = "" if shut == queue else f" (its ancestor {shut} does not)"
    text = f"queue {queue} does not allow namespace {namespace}{where}: use another queue, or change its annotations"
    return problem(gang, text)


def internal_error(gang: GangState) -> Diagnosis:
    """S8: this program failed on the gang's objects, so it is held."""
    text = f"this program failed on its objects: {gang.spec.fault}; it is tried again when they change, and by itself"
    return Diagnosis(PendingReason.INTERNAL_ERROR, text, missing=lacking(gang))


def claim_not_allowed(gang: GangState, text: str) -> Diagnosis:
    """S9: the gang is not attempted, since it would have to claim room for pods that do not exist."""
    return Diagnosis(PendingReason.CLAIM_NOT_ALLOWED, text, missing=lacking(gang))


def unsupported(gang: GangState, text: str) -> Diagnosis:
    """N1: a constraint of the gang is not honoured in this version, so it is not attempted."""
    return Diagnosis(PendingReason.UNSUPPORTED_CONSTRAINT, text, missing=lacking(gang))


def waits_for_others(
    gang: GangState,
    unsatisfied: Sequence[GangKey],
    known: Mapping[GangKey, GangState],
    obstacles: Mapping[GangKey, Diagnosis],
    titles: Titles,
) -> Diagnosis:
    """K7: the gang could start, but gangs of its group could not (`obstacles`), or gangs outside of its group that it
    names are not satisfied. Of gangs that must not be named to it, it says neither whether they exist nor why they
    wait (S7)."""
    hidden = titles.hidden((*unsatisfied, *obstacles), gang.key)
    shown = [key for key in unsatisfied if key not in hidden]
    absent = [key for key in shown if key not in known]
    others = [key for key in shown if key in known]
    waits = [key for key in obstacles if key != gang.key and key not in hidden]
    parts = [
        *_hidden(len(hidden)),
        *_named(absent, known, "does not exist", "do not exist"),
        *_waiting(waits, known, obstacles),
        *_named(others, known, "is not satisfied yet", "are not satisfied yet"),
    ]
    other = next((_title(key, known) for key in (*absent, *waits, *others)), "")
    return Diagnosis(PendingReason.GROUP_NOT_READY, "; ".join(parts), missing=lacking(gang), other=other)


def _title(key: GangKey, known: Mapping[GangKey, GangState]) -> str:
    return known[key].spec.title if key in known else f"{key.namespace}/{key.name}"


def _hidden(count: int) -> Iterator[str]:
    if count:
        gangs = f"{plural(count, 'gang')} of other namespaces" if count > 1 else FOREIGN
        yield f"{gangs} that it names: not satisfied yet"


def _named(keys: Sequence[GangKey], known: Mapping[GangKey, GangState], of_one: str, of_many: str) -> Iterator[str]:
    if keys:
        more = f" and {len(keys) - 1} more that it names {of_many}" if len(keys) > 1 else f", which it names, {of_one}"
        yield f"{_title(keys[0], known)}{more}"


def _waiting(
    keys: Sequence[GangKey], known: Mapping[GangKey, GangState], obstacles: Mapping[GangKey, Diagnosis]
) -> Iterator[str]:
    if keys:
        more = f" (and {len(keys) - 1} more wait{'s' if len(keys) == 2 else ''})" if len(keys) > 1 else ""
        yield f"{_title(keys[0], known)} of its group waits: {obstacles[keys[0]].message}{more}"


def with_held(gang: GangState, why: Diagnosis) -> Diagnosis:
    """What a gang says, and how many of its pods are held."""
    held = gang.total_held
    if not held:
        return why
    text = f"; {held} pod{' is' if held == 1 else 's are'} held"
    roles = {role: f"{said.removesuffix('.')}{text}" for role, said in why.of_roles.items()}
    return msgspec.structs.replace(why, message=f"{why.message.removesuffix('.')}{text}", of_roles=roles)


def timed_out(gang: GangState) -> Diagnosis:
    """K8: its pods carry the timeout annotation."""
    count = sum(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values())
    return Diagnosis(
        PendingReason.TIMED_OUT,
        f"timed out: {count} pod{'' if count == 1 else 's'} {'is' if count == 1 else 'are'} annotated {TIMEOUT}; "
        "remove the annotation or recreate the pods",
        missing=lacking(gang),
    )


def too_little_free(gang: GangState, resource: str, asked: int, free: int) -> Diagnosis:
    """K7: the minResources of its group exceed what is free on all nodes together."""
    message = f"minResources requests {shown(resource, asked)} {resource}; {shown(resource, free)} available"
    return Diagnosis(
        PendingReason.NOT_ENOUGH_RESOURCES,
        message,
        missing=lacking(gang),
        reasons=(Reason("", f"{INSUFFICIENT}{resource}", 0),),
    )


def not_enqueued_yet(gang: GangState) -> Diagnosis:
    """M6: what gangs say that start with one that is not enqueued."""
    reason = PendingReason.NOT_ENOUGH_RESOURCES
    return Diagnosis(reason, "it is not enqueued yet", missing=lacking(gang), not_enqueued=True)


def beyond_cluster(gang: GangState, resource: str, asked: int, has: int) -> Diagnosis:
    """Its minResources exceed what all nodes together have."""
    message = f"minResources requests {shown(resource, asked)} {resource}; the cluster has {shown(resource, has)}"
    return Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, message, missing=lacking(gang))


def beyond_queue(gang: GangState) -> Diagnosis:
    """Its minimum exceeds what its queue may use in all."""
    message = f"queue {gang.spec.queue} may not use what the minimum requests"
    return Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, message, missing=lacking(gang), of_queue=True)


def no_room(state: State, task: Task, closed: Sequence[tuple[str, Bools]]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Why a task fits on no node: a clause, and reasons with the number of nodes."""
    counts = reasons_by_node(state, task, closed)
    total = int(state.nodes.alive[: state.nodes.count].sum())
    by_reason = ": " + ", ".join(f"{count} {reason}" for reason, count in counts.items()) if counts else ""
    return f"0/{total} nodes are available{by_reason}.", tuple(counts.items())


def even_if_packed(failure: Diagnosis) -> Diagnosis:
    """Free resources suffice in total, but an exact search found no assignment of pods to nodes."""
    return msgspec.structs.replace(failure.adding(PACKED), proved=True)


def proved(failure: Diagnosis) -> Diagnosis:
    """The same for tasks of which one after the other was placed wherever it fits."""
    return msgspec.structs.replace(failure, proved=True)


def unknown_topology(gang: GangState, what: str) -> Diagnosis:
    """T5: the node tree that a gang names, or the level of it, is not known."""
    message = f"its topology constraint cannot be met: {what}"
    return Diagnosis(PendingReason.UNSCHEDULABLE, message, lacking(gang), needs_other_than_nodes=True)


_ROOMS_LISTED: Final = 3
"""At most three different amounts of room are listed."""


def no_domain(
    gang: GangState,
    level: str,
    needed: int,
    rooms: Mapping[str, int],
    *,
    pinned: Sequence[str],
    unproved: bool,
    of_one_kind: bool = False,
) -> Diagnosis:
    """T1: the pods fit in no single domain of the required level. `rooms`: domain → how many of them fit there, each
    class of pods by itself; `pinned`: the domains of the members that are placed already (T4); `of_one_kind`: the pods
    are of one class."""
    pods = f"{needed} pod{'' if needed == 1 else 's'}"
    if pinned:
        where = ", ".join(pinned)
        room = rooms.get(pinned[0], 0)
        text = f"{pods} {'does' if needed == 1 else 'do'} not fit in {level} {where}, where its other pods are: "
        text += f"it has room for {room} of {needed}" if len(pinned) == 1 else "these are several domains"
        others = [name for name, has in rooms.items() if has >= needed and name not in pinned]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            text += f"; {others[0]}{more} {'have' if more else 'has'} room for {needed}"
    else:
        text = f"{pods} must fit in one domain of {level}: {_rooms(rooms, needed, of_one_kind)}"
    if unproved:
        text += "; the search ended before every domain was ruled out"
    return Diagnosis(PendingReason.UNSCHEDULABLE, f"{text}.", missing=lacking(gang), proved=not unproved, level=level)


def _rooms(rooms: Mapping[str, int], needed: int, of_one_kind: bool) -> str:
    if not rooms:
        return "no node is in one"
    by_room: dict[int, int] = {}
    for room in (min(room, needed) for room in rooms.values()):
        by_room[room] = by_room.get(room, 0) + 1
    parts = []
    for room in sorted(by_room, reverse=True)[:_ROOMS_LISTED]:
        count = by_room[room]
        has = "has" if count == 1 else "have"
        what = f"{room} of {needed}"
        if room >= needed and of_one_kind:
            what += ", not together with the pods that start with them"
        elif room >= needed:
            what = "each kind of pod, not for all together"
        parts.append(f"{count} {has} room for {what}")
    left = len(rooms) - sum(by_room[room] for room in sorted(by_room, reverse=True)[:_ROOMS_LISTED])
    return (
        f"of {len(rooms)} domain{'' if len(rooms) == 1 else 's'}, {', '.join(parts)}{f', {left} less' if left else ''}"
    )


def queue_full(state: State, gang: GangState, task: Task, missing: int) -> str:
    """The task would exceed the capability of its queue or of an ancestor, or use what other queues are guaranteed.
    Names no gang: all gangs of one equivalence class share it."""
    queue = state.queue_of(gang)
    over = state.queues.over_capability(queue, dict(task.cls.request), with_enqueued=False)
    if over is None:
        return f"queue {queue.name} may not use what is guaranteed to other queues"
    place, column = over
    name = state.resources.names[column]
    would_use = int(place.used[column]) + missing * dict(task.cls.request)[column]
    limit = shown(name, place.limits[column])
    return f"queue {place.name} would use {shown(name, would_use)} {name}, its capability is {limit}"


def behind(gang: GangState, ahead: str, queue: str) -> Diagnosis:
    """Strict FIFO: a gang that waits blocks the gangs behind it (G8), and with one of them those that it starts with.
    `ahead` is its name."""
    return Diagnosis(
        PendingReason.BLOCKED_BY_FIFO,
        f"waits behind {ahead} in the FIFO queue {queue}",
        missing=lacking(gang),
        other=ahead,
    )


def reasons_by_node(state: State, task: Task, closed: Sequence[tuple[str, Bools]] = ()) -> dict[str, int]:
    """Reason → number of nodes that reject the task. A node counts once for each resource that it lacks, else for the
    first filter that rejects it."""
    counts: dict[str, int] = {}
    for reason, rejected in rejections(state, task, closed):
        counts[reason] = counts.get(reason, 0) + int(rejected.sum())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rejections(state: State, task: Task, closed: Sequence[tuple[str, Bools]] = ()) -> list[tuple[str, Bools]]:
    """`(reason, nodes that reject the task for it)`, without reasons that no node has."""
    nodes = state.nodes
    rows = np.arange(nodes.count)
    left = nodes.alive[: nodes.count].copy()
    found: list[tuple[str, Bools]] = []

    def reject(reason: str, passes: Bools) -> None:
        nonlocal left
        rejected = left & ~passes
        if rejected.any():
            found.append((reason, rejected))
        left = left & passes

    candidates: Candidates = state.candidates(task.cls)
    for check in candidates.checks:
        reject(check.reason, check.mask(rows))
    for reason, kept in closed:
        reject(reason, ~kept[: nodes.count])
    room = Headroom(nodes, rows, task.cls.request)
    lacking = left.copy()
    for column, _ in task.cls.request:
        name = state.resources.names[column]
        rejected = left & (room.after(column) < 0)
        if rejected.any():
            found.append(("Too many pods" if name == "pods" else f"{INSUFFICIENT}{name}", rejected))
        lacking &= room.after(column) >= 0
    left = lacking
    if state.stateful.applies(task):
        for reason, passes in state.stateful.masks(task):
            reject(reason, passes)
    return found


def shown(resource: str, amount: int) -> str:
    """An amount of a resource in Kubernetes' notation."""
    if amount > CEILING:
        return "more than any node can have"
    return format_amount(resource, amount * (10**6 if resource == "cpu" else NANO))


def lacking(gang: GangState) -> dict[str, int]:
    """By role, how many pods its minima lack; `""`: of any role."""
    found = {}
    for role, minimum in gang.minima.by_role.items():
        lacking = minimum - gang.occupied.get(role, 0)
        if lacking > 0:
            found[role] = lacking
    rest = gang.minima.total - gang.total_occupied - sum(found.values())
    if rest > 0:
        found[""] = rest
    return found
