"""One try to place a gang's tasks: the minima all or nothing (G2), what is beyond them as far as it goes (G3).

Tasks go in the order of O1 and O2. Neighbours of one class that do not depend on other placements are placed in bulk.
Where that leads nowhere though there might be a way, it is searched for (see `fitting`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from enbloc.engine.core.placement.beside import place_helped
from enbloc.engine.core.placement.constraints import Constraints, no_shadow
from enbloc.engine.core.placement.domains import part_of
from enbloc.engine.core.placement.every_domain import place_in_every_domain
from enbloc.engine.core.placement.exact.fitting import Fitting
from enbloc.engine.core.placement.exact.packing import Failure
from enbloc.engine.core.placement.in_domains import place_in_domains, within_pins
from enbloc.engine.core.placement.kernels import place_bulk, place_one, place_plain
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.plugins.scores import TIE
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.nodes import ROW_BITS
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why import diagnosis, further_nodes
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.shortage import Needs, Refusal, Unplaced, diagnosed, lacking
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

WAKES_ON_PLACEMENTS: Final = frozenset({EventKind.POD_PLACED, EventKind.ROOM_FREED})
"""Greedy placement of several classes, or under stateful filters, is not monotone: any other placement, even less room
in one place, can make the whole fit."""


def runs(state: State, tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Neighbours that can be placed in bulk; a task that others' placements bear on is a run of its own. Each run is to
    be placed before the next one is asked for: its terms may concern the tasks behind it (G6)."""
    if not tasks:
        return
    if _are_one_run(state, tasks):
        yield list(tasks)
        return
    run: list[Task] = []
    for task in tasks:
        alone = state.stateful.applies(task)
        if run and (alone or not _go_together(state, run[0], task)):
            yield run
            run = []
        run.append(task)
        if alone:
            yield run
            run = []
    if run:
        yield run


def _are_one_run(state: State, tasks: Sequence[Task]) -> bool:
    """Whether tasks are equal, and nothing but room and static filters bears on them: so it is with most gangs."""
    cls = tasks[0].cls
    if state.stateful.has_terms or state.timed or not cls.plain or tasks[0].gang.spec.is_split:
        return False
    return all(task.cls is cls and not task.topology for task in tasks)


def _go_together(state: State, one: Task, other: Task) -> bool:
    """Whether two tasks of a gang may use the same rows, and are worth the same there."""
    if one.cls is not other.cls or (state.timed and one.run_time_ns != other.run_time_ns):
        return False
    if not (one.topology or other.topology or one.gang.spec.is_split):
        return True
    return part_of(one) == part_of(other)


def _kind(state: State, task: Task) -> Hashable:
    """Tasks of a gang with one answer, where none of them is placed: they may use the same rows, for as long (R8)."""
    return (task.cls.id, part_of(task), task.run_time_ns if state.timed else None)


class Placer:
    """Finds rows for runs of tasks within what queues and constraints allow."""

    def __init__(self, state: State, affinity_weight: int, spread_weight: int, plain: bool = False) -> None:
        self.state = state
        self._weights = {"affinity": affinity_weight, "spread": spread_weight}
        self._plain = plain
        """Place one task at a time, with every row scored anew: the reference for tests and benchmarks."""
        self._fitting = Fitting(state)
        self.tries_every_domain = False
        """Attempt every domain of a required level: the reference for tests and benchmarks (T2)."""

    def rows(self, run: Sequence[Task], count: int, constraints: Constraints) -> list[int]:
        """Rows for the first `count` tasks of a run; fewer where fewer fit."""
        task = run[0]
        count = min(count, self.queue_room(task))
        if count == 0:
            return []
        with constraints.kept_from(task):
            return self._best(run, count, constraints.closed_rows(task))

    def _best(self, run: Sequence[Task], count: int, closed: Bools | None) -> list[int]:
        task, state = run[0], self.state
        candidates = state.candidates(task.cls)
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

    def pack(
        self,
        transaction: Transaction,
        checkpoint: int,
        requests: Sequence[PlacementRequest],
        failure: Diagnosis,
        constraints: Constraints,
    ) -> Diagnosis | None:
        """Greedy placement failed with a diagnosis: searches for an assignment of all tasks. If none exists, the
        diagnosis says so. Not searched for while a shadow limits the room (EASY)."""
        if constraints.shadow is not no_shadow:
            return failure

        def open_rows(task: Task) -> Bools:
            return constraints.open_rows(task, self.state.candidates(task.cls).passing())

        result = self._fitting.place(transaction, checkpoint, requests, open_rows)
        if result is None:
            return None
        if result is Failure.NONE_EXISTS:
            return diagnosis.even_if_packed(failure)
        return diagnosis.proved(failure) if self._is_proof(result, requests) else failure

    def _is_proof(self, result: Failure, requests: Sequence[PlacementRequest]) -> bool:
        """Whether no assignment exists: greedy placement of equal tasks that no stateful filter concerns is exact."""
        if result is Failure.TOO_LITTLE:
            return True
        tasks = [task for one in requests for task in (*one.must, *(one.rest if one.short else ()))]
        return len({(task.cls.id, part_of(task)) for task in tasks}) == 1 and not any(
            map(self.state.stateful.applies, tasks)
        )

    def place(self, transaction: Transaction, run: Sequence[Task], count: int, constraints: Constraints) -> int:
        """Places the first tasks of a run, at most `count`; returns how many were placed."""
        if self._plain and len(run) > 1:
            return self._place_plainly(transaction, run, count)
        placed = 0
        while placed < count:
            part = run[placed:]
            rows = self.rows(part, count - placed, constraints)
            if rows:
                transaction.place(part[: len(rows)], rows)
            placed += len(rows)
            # What is guaranteed to other queues limits the run; tasks on cordoned nodes took nothing of that (V4).
            if not rows or not self.state.queues.guarantees:
                break
        return placed

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

    def refusal(self, task: Task, missing: int, constraints: Constraints) -> Refusal:
        """Why the task could not be placed, and with it all the `missing` ones, computed in the state in which that
        failed."""
        state = self.state
        if self.queue_room(task) == 0:
            text = diagnosis.queue_full(state, task.gang, task, missing)
            return Refusal(text, ((text, 0),), of_queue=True)
        closed = list(constraints.closed(task)) if constraints.closed is not None else []
        if constraints.shadow is not no_shadow:  # there is room, but not until the shadow time
            closed.append((diagnosis.KEPT_IN_TIME, state.candidates(task.cls).keys() >= 0))
        text, reasons = diagnosis.no_room(state, task, closed)
        return Refusal(text, reasons, nodes_would_help=further_nodes.could_help(state, task))


def attempt(
    placer: Placer,
    requests: Sequence[PlacementRequest],
    transaction: Transaction,
    constraints: Constraints,
    *,
    keep: bool = False,
) -> Diagnosis | None:
    """Places all that the requests ask for, greedily; only if that fails, by a search for any assignment that fits.
    On failure nothing stays placed, unless `keep` says that a partial allocation does (A2)."""
    remaining = [request.remaining() for request in requests]
    if any(request.is_constrained for request in remaining):
        checkpoint = transaction.checkpoint

        def place(within: Constraints) -> Diagnosis | None:
            found = _place_all(placer, requests, remaining, transaction, within)
            if found is not None:
                transaction.rollback(checkpoint)
            return found

        if placer.tries_every_domain:
            failure = place_in_every_domain(
                placer.state, remaining, constraints, place, lambda: transaction.rollback(checkpoint)
            )
        else:
            failure, transaction.planned = place_in_domains(placer.state, remaining, constraints, place)
    else:
        failure = _place_all(placer, requests, remaining, transaction, constraints)
    if failure is not None and not keep:
        transaction.rollback()
    return failure


def _place_all(
    placer: Placer,
    asked: Sequence[PlacementRequest],
    remaining: Sequence[PlacementRequest],
    transaction: Transaction,
    constraints: Constraints,
) -> Diagnosis | None:
    checkpoint = transaction.checkpoint
    for request in remaining:
        if not _place_request(placer, request, transaction, constraints):
            at_failure = transaction.checkpoint
            if _place_beside_each_other(placer, remaining, transaction, constraints):
                return None
            failure = what_is_lacking(placer, asked, transaction, constraints)
            if failure is None:
                return None  # a task fits now that others which it must be beside were placed
            transaction.rollback(at_failure)
            return placer.pack(transaction, checkpoint, remaining, failure, constraints)
    return None


def _place_beside_each_other(
    placer: Placer, requests: Sequence[PlacementRequest], transaction: Transaction, constraints: Constraints
) -> bool:
    """A task that must be beside others may come before them in the order of O2: the tasks that did not fit are tried
    again once one that could help them was placed (G6). Returns whether all of it is placed in the end."""
    if not any(placer.state.stateful.applies(task) for one in requests for task in (*one.must, *one.rest)):
        return False
    before = transaction.checkpoint
    whole = [
        _place_request(placer, one.remaining(), transaction, constraints, beyond_failures=True) for one in requests
    ]
    if all(whole):
        return True

    def place(task: Task) -> bool:
        return placer.place(transaction, [task], 1, constraints) == 1

    left = [one.remaining() for one in requests]
    return place_helped(placer.state.stateful, left, transaction.placed_since(before), place)


def _place_request(
    placer: Placer,
    request: PlacementRequest,
    transaction: Transaction,
    constraints: Constraints,
    *,
    beyond_failures: bool = False,
) -> bool:
    """Places all of it, up to the first task that does not fit, or with `beyond_failures` all that fits."""

    def place(run: Sequence[Task], count: int, of_total: bool) -> int:
        return placer.place(transaction, run, count, constraints)

    return walk(placer.state, request, place, beyond_failures=beyond_failures)


def walk(
    state: State,
    request: PlacementRequest,
    place: Callable[[Sequence[Task], int, bool], int],
    *,
    beyond_failures: bool = False,
) -> bool:
    """The one order in which a request is placed, whatever "place" means (O1): what role minima need, later waves, and
    of the rest as many as the total is short of. `place` gets a run, how many of it to place, and whether these make up
    the total; it returns how many it placed. Whether all of it was placed."""
    whole = True
    for run in chain(runs(state, request.needed), runs(state, request.later)):
        if place(run, len(run), False) < len(run):
            if not beyond_failures:
                return False
            whole = False
    short = request.short
    for run in runs(state, request.rest):
        if short == 0:
            break
        short -= place(run, min(short, len(run)), True)  # a task that does not fit is skipped: others may do (G3)
    return whole and short == 0


def what_is_lacking(
    placer: Placer, asked: Sequence[PlacementRequest], transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """Places what else fits, so that every role says what it lacks (G10): the caller takes that back. `None`: all of it
    is placed by now."""
    found: dict[GangKey, Diagnosis] = {}
    for request in asked:
        lacking = _lacking(placer, request, transaction, constraints)
        if lacking is not None:
            found[request.gang.key] = lacking
    if not found:
        return None
    first = next(iter(found.values()))
    return first if len(asked) == 1 else msgspec.structs.replace(first, of_gangs=found)


def _lacking(
    placer: Placer, request: PlacementRequest, transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """What each role of one gang lacks; `None`: all of it fits."""
    remaining = request.remaining()
    unplaced = Unplaced()
    of_rest = Unplaced()
    short = remaining.short
    refused: dict[Hashable, Refusal] = {}

    def place(run: Sequence[Task], count: int, of_total: bool) -> int:
        """At most one task of a kind is found not to fit: the others are not tried."""
        nonlocal short
        kind = _kind(placer.state, run[0])
        placed = 0 if kind in refused else placer.place(transaction, run, count, constraints)
        if of_total:
            short -= placed
        if placed < count:
            if kind not in refused:
                refused[kind] = placer.refusal(run[placed], count - placed, constraints)
            (of_rest if of_total else unplaced).add(run[placed:], refused[kind])
        return placed

    if walk(placer.state, remaining, place, beyond_failures=True):
        return None
    return lacking(_needs(request), unplaced, of_rest, short)


def _needs(request: PlacementRequest) -> Needs:
    """What the minima of a gang ask for; the members that are held for it are part of that."""
    minima = request.need.minima
    of_minima = Counter(task.role for task in request.must)
    of_rest = Counter(task.role for task in request.rest)
    total = request.short
    for role, count in request.gang.held.items():
        if role in minima:
            of_minima[role] += count
        else:
            of_rest[role] += count
            total += count
    return Needs(of_minima, of_rest, total)


def one_by_one(
    placer: Placer,
    gang: GangState,
    transaction: Transaction,
    tasks: Sequence[Task],
    constraints: Constraints,
    most: int | None = None,
) -> Diagnosis | None:
    """Places as many tasks as fit, at most `most`; the diagnosis says what each role lacks."""
    together: Callable[[int], Diagnosis] | None = None
    if tasks and PlacementRequest(gang, tasks).is_constrained:
        constraints, together = within_pins(placer.state, gang, tasks, constraints)
    unplaced = Unplaced()
    refused: dict[Hashable, Refusal] = {}
    missing_of_first = 0

    def place(run: Sequence[Task], count: int, of_total: bool) -> int:
        nonlocal missing_of_first
        placed = placer.place(transaction, run, count, constraints)
        if placed < count:
            missing_of_first = missing_of_first or count - placed
            kind = _kind(placer.state, run[0])
            refused[kind] = refused.get(kind) or placer.refusal(run[placed], count - placed, constraints)
            unplaced.add(run[placed:count], refused[kind])
        return placed

    request = PlacementRequest(gang, rest=tasks, short=len(tasks) if most is None else most)
    walk(placer.state, request, place)
    if not unplaced.counts:
        return None
    failure = diagnosed(unplaced.shortages(Counter(task.role for task in tasks)), {}, {})
    if together is None or failure.of_queue:
        return failure
    return msgspec.structs.replace(together(missing_of_first), missing=failure.missing)
