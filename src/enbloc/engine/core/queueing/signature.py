"""Signatures of gangs: gangs with equal signatures are in one equivalence class, and an attempt of one decides for all
(G9, see `scheduling_queue`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from enbloc.engine.core.feature import Features, Unsignable
from enbloc.engine.core.placement.attempt import runs
from enbloc.engine.core.placement.domains import PINS, part_of
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.queueing.scheduling_queue import Signature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, pending_tasks


class RequestShape(NamedTuple):
    """What tasks of a gang request."""

    parts: tuple[Hashable, ...]
    """Run by run: the task class, and the number of tasks by role."""
    classes: tuple[int, ...]
    stateful: bool
    """Whether stateful filters apply to any of them: the placement of other pods matters."""


def asked_by(state: State, gang: GangState, wanted: Sequence[Task]) -> RequestShape:
    parts: list[Hashable] = []
    classes: dict[int, None] = {}
    stateful = False
    for run in runs(state, wanted):
        roles = Counter(task.role for task in run) if len(gang.pending) > 1 else {run[0].role: len(run)}
        parts.append((run[0].cls.id, tuple(roles.items())))
        classes[run[0].cls.id] = None
        stateful = stateful or state.stateful.applies(run[0])
    return RequestShape(tuple(parts), tuple(classes), stateful)


def times_of(state: State, tasks: Sequence[Task]) -> tuple[int | None, ...]:
    """Run times, while they bear on placement (R8)."""
    return tuple(dict.fromkeys(task.run_time_ns for task in tasks)) if state.timed else ()


def own_facts(gang: GangState, wanted: Sequence[Task]) -> Hashable:
    """The rest of the signature of a gang that is alone in its class: its labels, which filters of other pods may
    select."""
    return gang.key, tuple(tuple(sorted(task.labels.items())) for task in wanted)


def place_of(gang: GangState) -> Hashable:
    """Where the tasks of a gang must or should be together, and the nodes of those that are placed already: these fix
    the domain (T4)."""
    if not gang.is_constrained:
        return None
    own = tuple(dict.fromkeys(part_of(task) for task in gang.tasks.values())) if gang.has_parts else ()
    placed = gang.total_found or gang.total_occupied
    nodes = tuple(sorted({task.node for task in gang.tasks.values() if task.status in PINS})) if placed else ()
    return gang.spec.topology, own, nodes


def of_gang(
    state: State, request: PlacementRequest, wanted: Sequence[Task], whatever: Sequence[Task], features: Features
) -> Signature:
    """Of one gang. `wanted`: what it waits with; `whatever`: the same for any choice of its sub-groups (T0)."""
    gang, spec = request.gang, request.gang.spec
    asked, signed = asked_by(state, gang, whatever), features.sign(gang)
    is_unlike_others = bool(asked.stateful or spec.later or spec.waves or spec.tree is not None)
    is_unlike_others = is_unlike_others or Unsignable in map(type, signed)
    own = own_facts(gang, whatever) if is_unlike_others else None
    never_preempts = spec.never_preempts or any(task.never_preempts for task in wanted)
    facts = (
        own, *asked.parts, len(request.needed), request.short, gang.satisfied, never_preempts, times_of(state, wanted),
        signed, place_of(gang),
    )  # fmt: skip
    monotone = not is_unlike_others and len(asked.classes) == 1
    return Signature(facts, asked.classes, monotone, shared=not is_unlike_others)


def of_unit(state: State, unit: Sequence[GangState], holds: Hashable, features: Features) -> Signature:
    """Of gangs that start together. `holds`: whether their group is NonStrict, and complete, which gangs decide that
    are not among them."""
    classes: dict[int, None] = {}
    facts: list[Hashable] = []
    for gang in unit:
        waiting = pending_tasks(gang)
        classes.update((task.cls.id, None) for task in waiting)
        request = request_of(gang, waiting)
        wanted = [*request.needed, *(request.rest if request.short else ())]
        free = tuple(sorted(gang.spec.min_free_resources.items()))
        own = (own_facts(gang, wanted), features.sign(gang))
        asked = asked_by(state, gang, wanted)
        facts.append((own, free, asked.parts, len(request.needed), request.short, times_of(state, wanted)))
    return Signature((holds, *facts), tuple(classes))


def at_admission(state: State, gang: GangState, signed: Hashable) -> Signature:
    """Of a gang that waits to be enqueued (M6)."""
    spec = gang.spec
    asked = (
        tuple(sorted((spec.min_resources or {}).items())),
        gang.minima.total,
        tuple(sorted(gang.minima.by_role.items())),
    )
    run_time_ns = gang.run_time_ns if state.timed else None
    return Signature((*asked, signed, spec.never_preempts, run_time_ns))
