"""One try to place a gang's tasks: the minima all or nothing (G2), what is beyond them as far as it goes (G3).

Tasks go in the order of O1 and O2. Neighbours of one class that nobody else's placement bears on are placed in bulk.
Where that leads nowhere though there might be a way, it is searched for (see `fitting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter

import numpy as np

from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.placement.exact.fitting import Fitting, Wanted
from enbloc.engine.placement.exact.packing import Failure
from enbloc.engine.placement.kernels import place_bulk, place_one, place_plain
from enbloc.engine.plugins.nodeorder import TIE
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.nodes import ROW_BITS
from enbloc.engine.tables.resources import Bools
from enbloc.engine.tables.tasks import WAITS, GangState, Task, TaskStatus

Closed = Callable[[Task], Sequence[tuple[str, Bools]]]
"""Rows that are kept from a task for somebody else, and what is said of them."""

Shadow = Callable[[Task], AbstractContextManager[None]]
"""While it lasts, the room that somebody else will need is not there."""


def no_shadow(task: Task) -> AbstractContextManager[None]:
    return nullcontext()


def pending_tasks(gang: GangState) -> list[Task]:
    """Those that wait, in the order of O2."""
    waiting = [task for task in gang.tasks.values() if task.status in WAITS and task.ours]
    waiting.sort(key=attrgetter("order"))
    return waiting


def split(gang: GangState, waiting: Sequence[Task]) -> tuple[list[Task], list[Task], int]:
    """O1: the tasks still needed for a role's minimum, the rest, and how many of the rest the total still needs."""
    lacking = {role: minimum - gang.found(role) for role, minimum in gang.minima().items()}
    needed: list[Task] = []
    rest: list[Task] = []
    for task in waiting:
        if not gang.in_wave(task.role):
            continue  # of an earlier wave (see `replacements`), or of one whose turn has not come
        if lacking.get(task.role, 0) > 0:
            lacking[task.role] -= 1
            needed.append(task)
        else:
            rest.append(task)
    return needed, rest, max(0, gang.short_of(gang.found_by_role()) - len(needed))


def replacements(gang: GangState) -> list[Task]:
    """Tasks for members that an earlier, satisfied wave has lost: ordinary pods now (G7, D3)."""
    found: list[Task] = []
    for role in sorted(gang.ran):
        lacking = gang.spec.minima[role] - gang.occupied.get(role, 0)
        found += [task for task in pending_tasks(gang) if task.role == role][: max(0, lacking)]
    return sorted(found, key=attrgetter("order"))


def runs(state: State, tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Neighbours that can be placed in bulk; a task that others' placements bear on is a run of its own."""
    run: list[Task] = []
    stateful = state.stateful
    nobody_looks = not stateful.has_terms
    for task in tasks:
        alone = not (nobody_looks and task.cls.plain) and stateful.applies(task)
        if run and (alone or task.cls is not run[0].cls or (state.timed and task.run_time != run[0].run_time)):
            yield run
            run = []
        run.append(task)
        if alone:
            yield run
            run = []
    if run:
        yield run


class Placer:
    """Finds rows for runs of tasks within what queues and closed rows allow."""

    def __init__(self, state: State, affinity_weight: int, spread_weight: int, plain: bool = False) -> None:
        self.state = state
        self._weights = {"affinity": affinity_weight, "spread": spread_weight}
        self._plain = plain
        """One by one by a fresh look at every row: the reference."""
        self.closed: Closed | None = None
        """Rows kept for somebody else."""
        self.shadow: Shadow = no_shadow
        """Room that somebody else will need in time (R8)."""
        self._fitting = Fitting(state)

    def rows(self, run: Sequence[Task], count: int) -> list[int]:
        """Rows for the first `count` of a run, as many as there are."""
        task = run[0]
        count = min(count, self.queue_room(task))
        if count == 0:
            return []
        with self.shadow(task):
            return self._best(run, count)

    def _best(self, run: Sequence[Task], count: int) -> list[int]:
        task, state = run[0], self.state
        candidates = state.candidates(task.cls)
        closed = self.closed_rows(task)
        if len(run) > 1 or not state.stateful.applies(task):
            return place_bulk(candidates, count, closed)
        keys = candidates.keys()
        allowed = keys >= 0
        for _, passes in state.stateful.masks(task):
            allowed = allowed & passes
        if closed is not None:
            allowed = allowed & ~closed[: len(allowed)]
        bonus = None
        for kind, score in state.stateful.scores(task, allowed):
            weighted = (score * (self._weights[kind] * TIE)).astype(np.int64) << ROW_BITS
            bonus = weighted if bonus is None else bonus + weighted
        return place_one(candidates, allowed, bonus)

    def closed_rows(self, task: Task) -> Bools | None:
        """All rows that are kept from a task."""
        found: Bools | None = None
        for _, rows in self.closed(task) if self.closed is not None else ():
            found = rows if found is None else found | rows
        return found

    def open_rows(self, task: Task) -> Bools:
        """Where a task may go, whether there is room or not."""
        standing, closed = self.state.candidates(task.cls).passing(), self.closed_rows(task)
        return standing if closed is None else standing & ~closed[: len(standing)]

    def pack(self, transaction: Transaction, mark: int, wanted: Sequence[Wanted], told: Diagnosis) -> Diagnosis | None:
        """Greedy placement failed, and `told` why: places all of it as it fits, or adds to the story that it does
        not fit whatever is done. Not while room that is there is somebody else's in time."""
        if self.shadow is not no_shadow:
            return told
        failure = self._fitting.place(transaction, mark, wanted, self.open_rows)
        if failure is None:
            return None
        return diagnosis.even_if_packed(told) if failure is Failure.NONE_EXISTS else told

    def place(self, transaction: Transaction, run: Sequence[Task], count: int) -> int:
        """Places the first tasks of a run, at most `count`; returns how many."""
        if self._plain and len(run) > 1:
            return self._place_plainly(transaction, run, count)
        rows = self.rows(run, count)
        if rows:
            transaction.place(run[: len(rows)], rows)
        return len(rows)

    def _place_plainly(self, transaction: Transaction, run: Sequence[Task], count: int) -> int:
        candidates = self.state.candidates(run[0].cls)
        for placed, task in enumerate(run[:count]):
            row = place_plain(candidates) if self.queue_room(task) else []
            if not row:
                return placed
            transaction.place([task], row)
        return min(count, len(run))

    def queue_room(self, task: Task) -> int:
        queues = self.state.queues
        free = self.state.free_total() if queues.guarantees else np.zeros(0, np.int64)
        return queues.allowed_tasks(self.state.queue_of(task.gang), task.cls.request, free)

    def why_not(self, gang: GangState, task: Task, missing: dict[str, int], needed: dict[str, int]) -> Diagnosis:
        """Why the task could not be placed, told of the state in which that was so."""
        state = self.state
        if self.queue_room(task) == 0:
            return diagnosis.queue_full(state, gang, task, missing)
        closed = list(self.closed(task)) if self.closed is not None else []
        if self.shadow is not no_shadow:  # where there is room, and it is not for this one
            closed.append((diagnosis.KEPT_IN_TIME, state.candidates(task.cls).keys() >= 0))
        return diagnosis.no_room(state, task, missing, needed, closed)


def take_places(
    placer: Placer, transaction: Transaction, needed: Sequence[Task], ghosts: Sequence[Task]
) -> list[Task] | None:
    """Tasks for which room was set aside take their ghosts' places; returns those ghosts. `None`: a real pod differs
    from its template, and the place does not suit it (D5)."""
    state = placer.state
    free = list(ghosts)
    taken: list[Task] = []
    for task in needed:
        ghost = next((ghost for ghost in free if ghost.role == task.role), None)
        if ghost is None:
            continue
        row = state.nodes.rows[ghost.node]
        transaction.make_room(ghost, row)
        fits = state.candidates(task.cls).keys()[row] >= 0
        if fits and state.stateful.applies(task):
            fits = all(passes[row] for _, passes in state.stateful.masks(task))
        if not fits:
            return None
        transaction.place([task], [row])
        free.remove(ghost)
        taken.append(ghost)
    return taken


def take_reserved(placer: Placer, transaction: Transaction, gang: GangState, places: Mapping[str, str]) -> None:
    """Tasks for which nodes are reserved go there, as far as there is room by now (R7)."""
    state = placer.state
    for task in sorted((gang.tasks[uid] for uid in places if uid in gang.tasks), key=attrgetter("order")):
        row = state.nodes.rows.get(places[task.uid])
        if row is None or task.status not in WAITS or not placer.queue_room(task):
            continue
        fits = state.candidates(task.cls).keys()[row] >= 0
        if fits and state.stateful.applies(task):
            fits = all(passes[row] for _, passes in state.stateful.masks(task))
        if fits:
            transaction.place([task], [row])


def attempt(
    placer: Placer, gang: GangState, transaction: Transaction, later: Sequence[Task] = (), *, keep: bool = False
) -> Diagnosis | None:
    """Places a gang's minima, all of them, and room for `later` waves. On failure nothing is left placed, unless what
    it got is to be kept (A2), and the story says why."""
    told = _place_all(placer, [_wanted(gang, later)], transaction)
    if told is not None and not keep:
        transaction.rollback()
    return told


def attempt_together(placer: Placer, gangs: Sequence[GangState], transaction: Transaction) -> Diagnosis | None:
    """Places the minima of all the gangs; on failure nothing is left placed."""
    told = _place_all(placer, [_wanted(gang) for gang in gangs], transaction)
    if told is not None:
        transaction.rollback()
    return told


def _wanted(gang: GangState, later: Sequence[Task] = ()) -> Wanted:
    needed, rest, short = gang.plan
    short = max(0, short - sum(task.status is TaskStatus.ASSUMED for task in rest))
    waiting = [task for task in rest if task.status in WAITS]
    return Wanted(gang, [task for task in needed if task.status in WAITS], later, waiting, short)


def _place_all(placer: Placer, wanted: Sequence[Wanted], transaction: Transaction) -> Diagnosis | None:
    """Each task where it is best; only if that leads nowhere, as all of them fit."""
    mark = transaction.mark
    for one in wanted:
        told = _place_minima(placer, one, transaction)
        if told is not None:
            return placer.pack(transaction, mark, wanted, told)
    return None


def _place_minima(placer: Placer, one: Wanted, transaction: Transaction) -> Diagnosis | None:
    for run in (*runs(placer.state, one.needed), *runs(placer.state, one.later)):
        placed = placer.place(transaction, run, len(run))
        if placed < len(run):
            return _failed(placer, one, run[placed])
    failed: Task | None = None
    short = one.short
    for run in runs(placer.state, one.rest):
        if short == 0:
            break
        wanted = min(short, len(run))
        placed = placer.place(transaction, run, wanted)
        short -= placed
        if placed < wanted:
            failed = failed or run[placed]  # skipped: others may make up the total (G3)
    if short:
        assert failed is not None, f"{one.gang} was attempted though too few of its members exist"
        missing = {failed.role: short}
        return placer.why_not(one.gang, failed, missing, {failed.role: one.short})
    return None


def _failed(placer: Placer, of: Wanted, task: Task) -> Diagnosis:
    missing: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for one in of.must:
        wanted[one.role] = wanted.get(one.role, 0) + 1
        if one.status in WAITS and one.role == task.role:
            missing[one.role] = missing.get(one.role, 0) + 1
    return placer.why_not(of.gang, task, missing, wanted)


def one_by_one(
    placer: Placer, gang: GangState, transaction: Transaction, tasks: Sequence[Task], most: int | None = None
) -> Diagnosis | None:
    """Places as many as there is room for, or `most` of them; the story is of the first that found none."""
    told: Diagnosis | None = None
    most = len(tasks) if most is None else most
    for run in runs(placer.state, tasks):
        wanted = min(most, len(run))
        placed = placer.place(transaction, run, wanted)
        most -= placed
        if placed < wanted and told is None:
            left = {run[placed].role: wanted - placed}
            told = placer.why_not(gang, run[placed], left, {run[placed].role: wanted})
    return told
