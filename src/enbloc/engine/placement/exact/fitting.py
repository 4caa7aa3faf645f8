"""Exactly fitting: a gang that greedy placement found no room for is placed as it fits, if it fits at all (G2).

Greedy places task after task, each where it is best: a launcher may take the core that the last worker needs. For tasks
of one class that loses nothing, for several it may. Then, and only then, a placement is searched for (see `packing`).

Not searched for: tasks that depend on where others are (affinity, spread, host ports, exclusive claims, volumes), gangs
that a queue stands in the way of, and groups in which several gangs have tasks of several kinds to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from enbloc.engine.placement.exact.packing import Failure, Failures, Kind, Packed, pack
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import Bools, Request
from enbloc.engine.tables.tasks import GangState, Task

OpenRows = Callable[[Task], Bools]
"""The rows that a task may go to, whether there is room or not."""


class Fitting:
    """Searches, and remembers what it searched for in vain."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._failures = Failures()

    def place(
        self, transaction: Transaction, checkpoint: int, wanted: Sequence[PlacementRequest], open_rows: OpenRows
    ) -> Failure | None:
        """Places what greedy could not: rolls the transaction back to `checkpoint` and places all of it anew. If there
        is no such placement nothing is changed, and the answer says how sure that is."""
        if not self._is_packing(wanted) or not self._queues_allow(wanted, transaction.placed_since(checkpoint)):
            return Failure.GAVE_UP
        question = _Question(wanted, open_rows)
        if question.choosers > 1:
            return Failure.GAVE_UP
        columns = question.columns()
        found = pack(
            transaction.free_before(checkpoint)[columns], question.kinds(columns), question.short, self._failures
        )
        if isinstance(found, Failure):
            return found
        transaction.rollback(checkpoint)
        for tasks, rows in question.shared_out(found):
            transaction.place(tasks, rows)
        return None

    def _is_packing(self, wanted: Sequence[PlacementRequest]) -> bool:
        """Whether room alone decides, and greedy may have missed something: with one class it is exact."""
        tasks = [task for one in wanted for task in (*one.must, *(one.rest if one.short else ()))]
        stateful = self._state.stateful
        return len({task.cls.id for task in tasks}) > 1 and not any(stateful.applies(task) for task in tasks)

    def _queues_allow(self, wanted: Sequence[PlacementRequest], placed: Iterable[Task]) -> bool:
        """Whether the queues may take all of it, whichever of the rest is chosen; what is placed counts already."""
        asked: dict[str, dict[int, int]] = {}

        def ask(gang: GangState, request: Iterable[tuple[int, int]], count: int) -> None:
            amounts = asked.setdefault(gang.spec.queue, {})
            for column, amount in request:
                amounts[column] = amounts.get(column, 0) + amount * count

        for one in wanted:
            for task in one.must:
                ask(one.gang, task.cls.request, 1)
            largest: dict[int, int] = {}
            for task in one.rest if one.short else ():
                for column, amount in task.cls.request:
                    largest[column] = max(amount, largest.get(column, 0))
            ask(one.gang, largest.items(), one.short)
        for task in placed:
            ask(task.gang, task.cls.request, -1)
        queues = self._state.queues
        return queues.allows(asked, self._state.free_total() if queues.guarantees else None)


class _Question:
    """Tasks as kinds and numbers, and numbers as tasks again. Classes that ask for the same amounts and may go to the
    same rows are one kind."""

    def __init__(self, wanted: Sequence[PlacementRequest], open_rows: OpenRows) -> None:
        self._wanted = wanted
        self._open_rows = open_rows
        self._of_class: dict[tuple[int, int | None], int] = {}
        self._numbers: dict[tuple[Request, bytes], int] = {}
        self._allowed: list[Bools] = []
        self._needed: list[int] = []
        self._optional: list[int] = []
        self.short = 0
        self.choosers = 0
        """How many gangs have tasks of several kinds to choose from."""
        for one in wanted:
            self._count(one)

    def _count(self, one: PlacementRequest) -> None:
        for task in one.must:
            self._needed[self._kind(task)] += 1
        if not one.short:
            return
        rest = [self._kind(task) for task in one.rest]
        if one.short == len(rest) or len(set(rest)) == 1:  # nothing to choose
            for kind in rest[: one.short]:
                self._needed[kind] += 1
            return
        self.choosers += 1
        self.short = one.short
        for kind in rest:
            self._optional[kind] += 1

    def _kind(self, task: Task) -> int:
        like = _like(task)
        known = self._of_class.get(like)
        if known is None:
            allowed = self._open_rows(task)
            key = (task.cls.request, allowed.tobytes())
            known = self._of_class[like] = self._numbers.setdefault(key, len(self._numbers))
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
            Kind(tuple(asked.get(column, 0) for column in columns), allowed, needed, optional)
            for asked, allowed, needed, optional in zip(
                amounts, self._allowed, self._needed, self._optional, strict=True
            )
        ]

    def shared_out(self, found: Packed) -> list[tuple[list[Task], list[int]]]:
        """Who goes where: in the order of O2, the lowest of the rows that a kind has. Neighbours of one class and role
        together."""
        spare = [len(rows) - needed for rows, needed in zip(found.rows, self._needed, strict=True)]
        rows = [iter(of_kind) for of_kind in found.rows]
        shared: list[tuple[list[Task], list[int]]] = []
        for one in self._wanted:
            chosen = [*one.must, *self._chosen(one, spare)]
            for _, alike in groupby(chosen, key=lambda task: (_like(task), task.role)):
                tasks = list(alike)
                of_kind = rows[self._of_class[_like(tasks[0])]]
                shared.append((tasks, [next(of_kind) for _ in tasks]))
        return shared

    def _chosen(self, one: PlacementRequest, spare: list[int]) -> list[Task]:
        """The first of the rest for which there is a place."""
        if not one.short:
            return []
        kinds = [self._of_class[_like(task)] for task in one.rest]
        if one.short == len(kinds) or len(set(kinds)) == 1:
            return list(one.rest[: one.short])
        chosen: list[Task] = []
        for task, kind in zip(one.rest, kinds, strict=True):
            if len(chosen) < one.short and spare[kind]:
                spare[kind] -= 1
                chosen.append(task)
        return chosen


def _like(task: Task) -> tuple[int, int | None]:
    """Equal for tasks that fare alike: of one class, and, where nodes are reserved, of one run time."""
    return (task.cls.id, task.run_time_ns)
