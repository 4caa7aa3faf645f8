"""Exact placement: searches for an assignment of all tasks of a gang to nodes when greedy placement failed (G2).

Greedy placement puts one task after the other where it scores best: a launcher may take the core that the last worker
needs. For tasks of one class that is optimal, for several it may not be. Only then an assignment is searched for (see
`packing`).

Not searched for: tasks that stateful filters concern (affinity, spread, host ports, exclusive claims, volumes), gangs
whose queue does not allow them, and groups in which several gangs can choose among tasks of several kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import groupby

from enbloc.engine.core.placement.domains import part_of
from enbloc.engine.core.placement.exact.packing import Failure, Failures, Kind, Packed, pack
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools, Request
from enbloc.engine.core.tables.tasks import GangState, Task

Equivalence = tuple[int, int | None, object]

OpenRows = Callable[[Task], Bools]
"""The rows that a task may go to, whether there is room or not."""


class Fitting:
    """Searches for assignments, and remembers failed searches."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._failures = Failures()

    def place(
        self, transaction: Transaction, checkpoint: int, requests: Sequence[PlacementRequest], open_rows: OpenRows
    ) -> Failure | None:
        """Rolls the transaction back to `checkpoint` and places all requests. If no assignment is found, nothing
        is changed and the failure is returned."""
        if not self._is_packing(requests) or not self._queues_allow(requests, transaction.placed_since(checkpoint)):
            return Failure.GAVE_UP
        problem = _PackingProblem(requests, open_rows)
        if problem.choosers > 1:
            return Failure.GAVE_UP
        columns = problem.columns()
        found = pack(
            transaction.free_before(checkpoint)[columns], problem.kinds(columns), problem.short, self._failures
        )
        if isinstance(found, Failure):
            return found
        transaction.rollback(checkpoint)
        for tasks, rows in problem.assignment(found):
            transaction.place(tasks, rows)
        return None

    def _is_packing(self, requests: Sequence[PlacementRequest]) -> bool:
        """Whether only free resources matter, and greedy placement is not optimal: there are several classes."""
        tasks = [task for one in requests for task in (*one.must, *(one.rest if one.short else ()))]
        stateful = self._state.stateful
        return len({(task.cls.id, part_of(task)) for task in tasks}) > 1 and not any(
            stateful.applies(task) for task in tasks
        )

    def _queues_allow(self, requests: Sequence[PlacementRequest], placed: Iterable[Task]) -> bool:
        """Whether the queues allow all of it, whichever tasks of `rest` are chosen. What is `placed` counts already."""
        requested: dict[str, dict[int, int]] = {}

        def add(gang: GangState, request: Iterable[tuple[int, int]], count: int) -> None:
            amounts = requested.setdefault(gang.spec.queue, {})
            for column, amount in request:
                amounts[column] = amounts.get(column, 0) + amount * count

        for one in requests:
            for task in one.must:
                add(one.gang, task.cls.request, 1)
            optional: defaultdict[int, list[int]] = defaultdict(list)
            for task in one.rest if one.short else ():
                for column, amount in task.cls.request:
                    optional[column].append(amount)
            most = [(column, sum(nlargest(one.short, amounts))) for column, amounts in optional.items()]
            add(one.gang, most, 1)
        for task in placed:
            add(task.gang, task.cls.request, -1)
        queues = self._state.queues
        return queues.allows(requested, self._state.free_total() if queues.guarantees else None)


class _PackingProblem:
    """Translates tasks into kinds and numbers for `pack`, and its result back into tasks. Classes with equal requests
    and equal open rows are one kind."""

    def __init__(self, requests: Sequence[PlacementRequest], open_rows: OpenRows) -> None:
        self._requests = requests
        self._open_rows = open_rows
        self._kind_of: dict[Equivalence, int] = {}
        self._numbers: dict[tuple[Request, bytes], int] = {}
        """The kinds: from request and open rows to a number, in order."""
        self._allowed: list[Bools] = []
        self._needed: list[int] = []
        self._optional: list[int] = []
        self.short = 0
        self.choosers = 0
        """How many gangs can choose among tasks of several kinds."""
        for one in requests:
            self._count(one)

    def _count(self, request: PlacementRequest) -> None:
        for task in request.must:
            self._needed[self._kind(task)] += 1
        if not request.short:
            return
        rest = [self._kind(task) for task in request.rest]
        if request.short == len(rest) or len(set(rest)) == 1:  # nothing to choose
            for kind in rest[: request.short]:
                self._needed[kind] += 1
            return
        self.choosers += 1
        self.short = request.short
        for kind in rest:
            self._optional[kind] += 1

    def _kind(self, task: Task) -> int:
        equal = _equivalence(task)
        known = self._kind_of.get(equal)
        if known is None:
            allowed = self._open_rows(task)
            key = (task.cls.request, allowed.tobytes())
            known = self._kind_of[equal] = self._numbers.setdefault(key, len(self._numbers))
            if known == len(self._needed):
                self._allowed.append(allowed)
                self._needed.append(0)
                self._optional.append(0)
        return known

    def columns(self) -> list[int]:
        return sorted({column for request, _ in self._numbers for column, _ in request})

    def kinds(self, columns: Sequence[int]) -> list[Kind]:
        amounts = [dict(request) for request, _ in self._numbers]
        return [
            Kind(tuple(request.get(column, 0) for column in columns), allowed, needed, optional)
            for request, allowed, needed, optional in zip(
                amounts, self._allowed, self._needed, self._optional, strict=True
            )
        ]

    def assignment(self, found: Packed) -> list[tuple[list[Task], list[int]]]:
        """The row of each task: in the order of O2, the lowest row of its kind. Neighbours of one class and role form
        one run."""
        spare = [len(rows) - needed for rows, needed in zip(found.rows, self._needed, strict=True)]
        rows = [iter(of_kind) for of_kind in found.rows]
        assigned: list[tuple[list[Task], list[int]]] = []
        for request in self._requests:
            chosen = [*request.must, *self._chosen(request, spare)]
            for _, run in groupby(chosen, key=lambda task: (_equivalence(task), task.role)):
                tasks = list(run)
                of_kind = rows[self._kind_of[_equivalence(tasks[0])]]
                assigned.append((tasks, [next(of_kind) for _ in tasks]))
        return assigned

    def _chosen(self, request: PlacementRequest, spare: list[int]) -> list[Task]:
        """The first tasks of `rest` for which there is a row."""
        if not request.short:
            return []
        kinds = [self._kind_of[_equivalence(task)] for task in request.rest]
        if request.short == len(kinds) or len(set(kinds)) == 1:
            return list(request.rest[: request.short])
        chosen: list[Task] = []
        for task, kind in zip(request.rest, kinds, strict=True):
            if len(chosen) < request.short and spare[kind]:
                spare[kind] -= 1
                chosen.append(task)
        return chosen


def _equivalence(task: Task) -> Equivalence:
    """Equal for tasks with equal open rows: of one class, in the same domains, and, since reservations depend on it, of
    one run time."""
    return (task.cls.id, task.run_time_ns, part_of(task))
