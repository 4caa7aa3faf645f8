"""Signatures of gangs: gangs with equal signatures are in one equivalence class, and an attempt of one decides for all
(G9, see `scheduling_queue`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from enbloc.engine.claims.reservations import Reservations
from enbloc.engine.placement.attempt import runs
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task, pending_tasks


class Asked(NamedTuple):
    """What tasks of a gang request."""

    parts: tuple[Hashable, ...]
    """Run by run: the task class, and the number of tasks by role."""
    classes: tuple[int, ...]
    stateful: bool
    """Whether stateful filters apply to any of them: the placement of other pods matters."""


def asked_by(state: State, gang: GangState, wanted: Sequence[Task]) -> Asked:
    parts: list[Hashable] = []
    classes: dict[int, None] = {}
    stateful = False
    for run in runs(state, wanted):
        roles = Counter(task.role for task in run) if len(gang.pending) > 1 else {run[0].role: len(run)}
        parts.append((run[0].cls.id, tuple(roles.items())))
        classes[run[0].cls.id] = None
        stateful = stateful or state.stateful.applies(run[0])
    return Asked(tuple(parts), tuple(classes), stateful)


def times_of(state: State, tasks: Sequence[Task]) -> tuple[int | None, ...]:
    """Run times, while they bear on placement (R8)."""
    return tuple(dict.fromkeys(task.run_time_ns for task in tasks)) if state.timed else ()


def own_facts(gang: GangState, wanted: Sequence[Task], reservations: Reservations) -> Hashable:
    """The rest of the signature of a gang that is alone in its class: its labels, which filters of other pods may
    select, and its reserved nodes."""
    labels = tuple(tuple(sorted(task.labels.items())) for task in wanted)
    return gang.key, labels, tuple(reservations.of(gang).items())


def of_unit(state: State, unit: Sequence[GangState], reservations: Reservations) -> tuple[Hashable, tuple[int, ...]]:
    """The signature of gangs that start together, and the classes of all their pending tasks."""
    classes: dict[int, None] = {}
    signature: list[Hashable] = []
    for gang in unit:
        waiting = pending_tasks(gang)
        classes.update((task.cls.id, None) for task in waiting)
        _, needed, rest, short, _ = request_of(gang, waiting)
        wanted = [*needed, *(rest if short else ())]
        free = tuple(sorted(gang.spec.min_free_resources.items()))
        own, asked = own_facts(gang, wanted, reservations), asked_by(state, gang, wanted)
        signature.append((own, free, asked.parts, len(needed), short, times_of(state, wanted)))
    return tuple(signature), tuple(classes)


def at_admission(state: State, gang: GangState, starves: bool) -> Hashable:
    """The signature of a gang that waits to be enqueued (M6); a starving one is alone in its class."""
    spec = gang.spec
    asked = tuple(sorted((spec.min_resources or {}).items())), spec.minimum, tuple(sorted(spec.minima.items()))
    return (*asked, gang.key if starves else None, spec.never_preempts, gang.run_time_ns if state.timed else None)
