"""What gangs ask for, as something that can be compared: those who ask for the same fare the same, and sleep together
(G9, see `waiting`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from enbloc.engine.claims.reservations import Reservations
from enbloc.engine.placement.attempt import runs
from enbloc.engine.placement.request import pending_tasks, request_of
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task


class Asked(NamedTuple):
    """What tasks of a gang ask for."""

    parts: tuple[Hashable, ...]
    """Run by run: the class, and how many of each role."""
    classes: tuple[int, ...]
    moves: bool
    """Whether others' placements matter to any of them."""


def asked_by(state: State, gang: GangState, wanted: Sequence[Task]) -> Asked:
    parts: list[Hashable] = []
    classes: dict[int, None] = {}
    moves = False
    for run in runs(state, wanted):
        roles = Counter(task.role for task in run) if len(gang.pending) > 1 else {run[0].role: len(run)}
        parts.append((run[0].cls.id, tuple(roles.items())))
        classes[run[0].cls.id] = None
        moves = moves or state.stateful.applies(run[0])
    return Asked(tuple(parts), tuple(classes), moves)


def times_of(state: State, tasks: Sequence[Task]) -> tuple[int | None, ...]:
    """Run times, while it matters to others who ends when (R8)."""
    return tuple(dict.fromkeys(task.run_time for task in tasks)) if state.timed else ()


def own_facts(gang: GangState, wanted: Sequence[Task], reservations: Reservations) -> Hashable:
    """What else counts for a gang that fares like nobody else: its labels, at which others may look, and the nodes that
    are its own."""
    labels = tuple(tuple(sorted(task.labels.items())) for task in wanted)
    return gang.key, labels, tuple(reservations.of(gang).items())


def of_unit(state: State, unit: Sequence[GangState], reservations: Reservations) -> tuple[Hashable, tuple[int, ...]]:
    """The shape of gangs that start together, and the classes of all that waits in them."""
    classes: dict[int, None] = {}
    shape: list[Hashable] = []
    for gang in unit:
        waiting = pending_tasks(gang)
        classes.update((task.cls.id, None) for task in waiting)
        _, needed, rest, short, _ = request_of(gang, waiting)
        wanted = [*needed, *(rest if short else ())]
        free = tuple(sorted(gang.spec.min_free_resources.items()))
        own, asked = own_facts(gang, wanted, reservations), asked_by(state, gang, wanted)
        shape.append((own, free, asked.parts, len(needed), short, times_of(state, wanted)))
    return tuple(shape), tuple(classes)


def at_admission(state: State, gang: GangState, starves: bool) -> Hashable:
    """The shape of a gang that asks to be let in (M6); one that starves is like nobody else."""
    spec = gang.spec
    asked = tuple(sorted((spec.min_resources or {}).items())), spec.minimum, tuple(sorted(spec.minima.items()))
    return (*asked, gang.key if starves else None, spec.never_preempts, gang.run_time if state.timed else None)
