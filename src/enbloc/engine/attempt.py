"""One try to place a gang's tasks: the minima all or nothing (G2), what is beyond them as far as it goes (G3).

Tasks go in the order of O1 and O2. Neighbours of one class that nobody else's placement bears on are placed in bulk.
Where that leads nowhere though there might be a way, it is searched for (see `fitting`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from enbloc.engine import story
from enbloc.engine.classes import TaskClass
from enbloc.engine.fitting import Fitting, Wanted
from enbloc.engine.nodes import ROW_BITS
from enbloc.engine.packing import Failure
from enbloc.engine.placement import place_bulk, place_one, place_plain
from enbloc.engine.plugins.nodeorder import TIE
from enbloc.engine.resources import Bools
from enbloc.engine.state import State
from enbloc.engine.story import Story
from enbloc.engine.tasks import GangState, Stand, Task
from enbloc.engine.transaction import Transaction


def pending_tasks(gang: GangState) -> list[Task]:
    """Those that wait, in the order of O2."""
    waiting = [task for task in gang.tasks.values() if task.stand is Stand.PENDING and task.ours]
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
    moving = state.moving
    nobody_looks = not moving.carries
    for task in tasks:
        alone = not (nobody_looks and task.cls.plain) and moving.applies(task)
        if run and (alone or task.cls is not run[0].cls):
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
        self.closed: Bools | None = None
        """Rows kept for somebody else."""
        self._fitting = Fitting(state)

    def rows(self, run: Sequence[Task], count: int) -> list[int]:
        """Rows for the first `count` of a run, as many as there are."""
        task = run[0]
        state = self.state
        count = min(count, self._queue_room(task))
        if count == 0:
            return []
        candidates = state.candidates(task.cls)
        if len(run) > 1 or not state.moving.applies(task):
            return place_bulk(candidates, count, self.closed)
        keys = candidates.keys()
        allowed = keys >= 0
        for _, passes in state.moving.masks(task):
            allowed = allowed & passes
        if self.closed is not None:
            allowed = allowed & ~self.closed[: len(allowed)]
        bonus = None
        for kind, score in state.moving.scores(task, allowed):
            weighted = (score * (self._weights[kind] * TIE)).astype(np.int64) << ROW_BITS
            bonus = weighted if bonus is None else bonus + weighted
        return place_one(candidates, allowed, bonus)

    def open_rows(self, cls: TaskClass) -> Bools:
        """Where tasks of a class may go, whether there is room or not."""
        standing = self.state.candidates(cls).standing()
        return standing if self.closed is None else standing & ~self.closed[: len(standing)]

    def pack(self, transaction: Transaction, mark: int, wanted: Sequence[Wanted], told: Story) -> Story | None:
        """Greedy placement failed, and `told` why: places all of it as it fits, or adds to the story that it does
        not fit whatever is done."""
        failure = self._fitting.place(transaction, mark, wanted, self.open_rows)
        if failure is None:
            return None
        return story.even_if_packed(told) if failure is Failure.NONE_EXISTS else told

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
            row = place_plain(candidates) if self._queue_room(task) else []
            if not row:
                return placed
            transaction.place([task], row)
        return min(count, len(run))

    def _queue_room(self, task: Task) -> int:
        queues = self.state.queues
        free = self.state.free_total() if queues.guarantees else np.zeros(0, np.int64)
        return queues.room(self.state.queue_of(task.gang), task.cls.request, free)

    def why_not(self, gang: GangState, task: Task, missing: dict[str, int], needed: dict[str, int]) -> Story:
        """Why the task could not be placed, told of the state in which that was so."""
        state = self.state
        if self._queue_room(task) == 0:
            return story.queue_full(state, gang, task, missing)
        return story.no_room(state, task, missing, needed, self.closed)


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
        if fits and state.moving.applies(task):
            fits = all(passes[row] for _, passes in state.moving.masks(task))
        if not fits:
            return None
        transaction.place([task], [row])
        free.remove(ghost)
        taken.append(ghost)
    return taken


def attempt(
    placer: Placer, gang: GangState, transaction: Transaction, later: Sequence[Task] = (), *, keep: bool = False
) -> Story | None:
    """Places a gang's minima, all of them, and room for `later` waves. On failure nothing is left placed, unless what
    it got is to be kept (A2), and the story says why."""
    told = _place_all(placer, [_wanted(gang, later)], transaction)
    if told is not None and not keep:
        transaction.rollback()
    return told


def attempt_together(placer: Placer, gangs: Sequence[GangState], transaction: Transaction) -> Story | None:
    """Places the minima of all the gangs; on failure nothing is left placed."""
    told = _place_all(placer, [_wanted(gang) for gang in gangs], transaction)
    if told is not None:
        transaction.rollback()
    return told


def _wanted(gang: GangState, later: Sequence[Task] = ()) -> Wanted:
    needed, rest, short = gang.plan
    return Wanted(gang, [task for task in needed if task.stand is Stand.PENDING], later, rest, short)


def _place_all(placer: Placer, wanted: Sequence[Wanted], transaction: Transaction) -> Story | None:
    """Each task where it is best; only if that leads nowhere, as all of them fit."""
    mark = transaction.mark
    for one in wanted:
        told = _place_minima(placer, one, transaction)
        if told is not None:
            return placer.pack(transaction, mark, wanted, told)
    return None


def _place_minima(placer: Placer, one: Wanted, transaction: Transaction) -> Story | None:
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


def _failed(placer: Placer, of: Wanted, task: Task) -> Story:
    missing: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for one in of.must:
        wanted[one.role] = wanted.get(one.role, 0) + 1
        if one.stand is Stand.PENDING and one.role == task.role:
            missing[one.role] = missing.get(one.role, 0) + 1
    return placer.why_not(of.gang, task, missing, wanted)


def one_by_one(placer: Placer, gang: GangState, tasks: Sequence[Task]) -> tuple[Transaction, Story | None]:
    """Places as many as there is room for; the story is of the first that found none."""
    transaction = Transaction(placer.state)
    told: Story | None = None
    for run in runs(placer.state, tasks):
        placed = placer.place(transaction, run, len(run))
        if placed < len(run) and told is None:
            left = {run[placed].role: len(run) - placed}
            told = placer.why_not(gang, run[placed], left, {run[placed].role: len(run)})
    return transaction, told
