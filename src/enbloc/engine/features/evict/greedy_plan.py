"""Greedy eviction plans: the tasks of a gang are placed one after the other, and where there is no room for one, the
cheapest victims are evicted.

Rows are chosen by arrays; single tasks are examined only on the few rows that suit best. What greedy placement misses,
and victims that it takes in vain, are left to `planner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import walk
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domains import part_of
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.resources import Bools, Ints, total
from enbloc.engine.core.tables.tasks import Task
from enbloc.engine.features.evict.planned_evictions import PlannedEvictions, bound
from enbloc.engine.features.evict.victims import (
    Offer,
    Shortlist,
    VictimCandidates,
    Victims,
    cost,
    disruption,
    order_key,
)


class GreedyPlan:
    """One try of a plan, with the victims of some queues and priorities."""

    def __init__(
        self,
        cycle: Cycle,
        constraints: Constraints,
        planned: PlannedEvictions,
        candidates: VictimCandidates,
        freed: Ints,
    ) -> None:
        """`freed`: what evicting all candidates would free, column by row."""
        self._state = cycle.state
        self._placer = cycle.placer
        self._rules = planned.rules
        self._constraints = constraints
        self._transaction = planned.transaction
        self._planned = planned
        self._candidates = candidates
        self._freed = freed
        self._rejected_rows: set[int] = set()
        """Rows on which the task did not fit though there was room."""
        self._shortlists: dict[object, Shortlist] = {}

    def run(self, requests: Sequence[PlacementRequest]) -> bool:
        """Whether everything is placed, and the victims evicted, within the transaction."""
        if not all(walk(self._state, request.remaining(), self._place) for request in requests):
            return False
        self._spare()
        return True

    def _place(self, run: Sequence[Task], count: int, of_total: bool) -> int:
        """Places the first `count` tasks of a run: in free room first, then in room that is made place by place."""
        placed = self._place_free(run[:count])
        while placed < count:
            task = run[placed]
            if not self._placer.queue_room(task):
                if not self._make_queue_room(task):
                    return placed
                placed += self._place_free(run[placed:count])
                continue
            row = self._make_room(task)
            if row is None:
                return placed
            if not self._fits(task, row):
                self._rejected_rows.add(row)  # a filter rejects the row, not a lack of room
                continue
            fitting = self._how_many_fit(run[placed:count], row)
            self._transaction.place(run[placed : placed + fitting], [row] * fitting)
            placed += fitting
            if placed < count and len(self._planned.units[-1].tasks) > 1:  # a gang: it freed room on other rows too
                placed += self._place_free(run[placed:count])
        return placed

    def _place_free(self, run: Sequence[Task]) -> int:
        return self._placer.place(self._transaction, run, len(run), self._constraints)

    def _how_many_fit(self, run: Sequence[Task], row: int) -> int:
        """How many tasks of a run fit on a row on which one does."""
        if len(run) == 1 or self._state.stateful.applies(run[0]):
            return 1
        free, most = self._state.nodes.free, min(len(run), self._placer.queue_room(run[0]))
        return min(most, *(int(free[column, row]) // amount for column, amount in run[0].cls.request))

    def _fits(self, task: Task, row: int) -> bool:
        free = self._state.nodes.free
        if any(free[column, row] < amount for column, amount in task.cls.request):
            return False
        if not self._state.stateful.applies(task):
            return True
        return all(passes[row] for _, passes in self._state.stateful.masks(task))

    def _make_room(self, task: Task) -> int | None:
        """Evicts the cheapest victims that make room for one more task. Returns the row."""
        find_victims = self._victims_by_filters if self._state.stateful.applies(task) else self._victims_by_room
        like = (task.cls.id, task.run_time_ns, part_of(task))
        shortlist = self._shortlists.get(like)
        if shortlist is None:
            shortlist = self._shortlists[like] = Shortlist(self._rows_by_burden(task))

        def examine(row: int) -> Offer | None:
            found = find_victims(row, task) if row not in self._rejected_rows else None
            return Offer(cost(found), row, found, self._facts(row, found)) if found else None

        best = shortlist.best(examine, self._facts)
        if best is None:
            return None
        for unit in best.victims:
            self._planned.evict(unit)
        return best.row

    def _facts(self, row: int, units: list[Victims]) -> object:
        """What an offer depends on: the row, the gangs, and what budgets and queues have left where they matter."""
        evicted = len(self._planned.units) if self._rules.by_use or self._state.budgets else 0
        return (int(self._state.nodes.stamp[row]), evicted, [unit.tasks[0].gang.version for unit in units])

    def _open_rows(self, task: Task) -> Bools:
        return self._constraints.open_rows(task, self._state.candidates(task.cls).passing())

    def _rows_by_burden(self, task: Task) -> list[int]:
        """The rows on which enough could be freed, those first on which that is the smallest part of what could be."""
        nodes, count = self._state.nodes, self._state.nodes.count
        rows_open = self._open_rows(task).copy()
        burden = np.zeros(count)
        for column, amount in task.cls.request:
            lacking = amount - nodes.free[column, :count]
            rows_open &= lacking <= self._freed[column, :count]
            burden += np.maximum(lacking, 0) / np.maximum(self._freed[column, :count], 1)
        rows = np.flatnonzero(rows_open)
        found: list[int] = rows[np.lexsort((rows, burden[rows]))].tolist()
        return found

    def _make_queue_room(self, task: Task) -> bool:
        """The queue may not use more: evicts the least disruptive unit of its own, on whatever node."""
        for unit in sorted(self._candidates.of_queue(task.gang), key=disruption):
            if self._planned.allow(unit):
                self._planned.evict(unit)
                return True
        return False

    # ---- the victims on one row

    def _victims_by_room(self, row: int, task: Task) -> list[Victims] | None:
        """The lowest and fewest victims on a row whose eviction makes room for the task."""
        nodes = self._state.nodes
        lacking = {column: amount - int(nodes.free[column, row]) for column, amount in task.cls.request}
        chosen: list[tuple[Victims, Victims]] = []
        for unit in self._by_preference(row, task, lacking):
            if _covered(lacking):
                break
            if self._helps(lacking, unit, row) and self._planned.allow(unit):
                counted = self._planned.assume(unit)
                chosen.append((unit, counted))
                self._add_lacking(lacking, counted, row, -1)
        enough = _covered(lacking)
        for _, counted in chosen:
            self._planned.assume_spared(counted)
        if not enough:
            return None
        for entry in sorted(chosen, key=lambda entry: disruption(entry[0]), reverse=True):  # spare what is not needed
            self._add_lacking(lacking, entry[1], row, 1)
            if _covered(lacking):
                chosen.remove(entry)
            else:
                self._add_lacking(lacking, entry[1], row, -1)
        return [unit for unit, _ in chosen]

    def _victims_by_filters(self, row: int, task: Task) -> list[Victims] | None:
        """The same for a task that stateful filters concern: ports, affinity, spread, volumes. All that may be evicted
        are, and put back one by one as long as the task still fits."""
        transaction, planned, mark = self._transaction, self._planned, self._planned.mark()
        chosen: list[Victims] = []
        for unit in self._by_preference(row, task, {}):
            unit = bound(unit)
            if unit.tasks and planned.allow(unit):
                chosen.append(unit)
                planned.evict(unit)
        fits = self._fits(task, row)
        needed = list(chosen)
        for unit in sorted(chosen, key=disruption, reverse=True) if fits else ():
            before = transaction.checkpoint
            for one in unit.tasks:
                transaction.unevict(one, planned.rows[one.uid])
            if self._fits(task, row):
                needed.remove(unit)
            else:
                transaction.rollback(before)
        planned.back_to(mark)
        return needed if fits else None

    def _by_preference(self, row: int, task: Task, lacking: dict[int, int]) -> list[Victims]:
        """The units on a row in the order in which they are chosen as victims: the lowest priority, surplus members,
        then those that free most of what is lacking; among equals the last in order."""

        def preference(unit: Victims) -> tuple[object, ...]:
            parts = (
                min(1.0, amount / lacking[column])
                for column, amount in self._requests(unit, row)
                if lacking.get(column, 0) > 0
            )
            return (unit.rank, unit.whole_gang, unit.skips, -max(parts, default=0.0), len(unit.tasks))

        return sorted(self._candidates.on_row(row, task.gang), key=preference)

    def _requests(self, unit: Victims, row: int) -> Iterator[tuple[int, int]]:
        """What the tasks of a unit use on a row."""
        name = self._state.nodes.names[row]
        return (one for task in unit.tasks if task.node == name for one in task.cls.request)

    def _helps(self, lacking: dict[int, int], unit: Victims, row: int) -> bool:
        """Whether a unit frees any of what is lacking on a row: if not, budgets would count it for nothing."""
        return any(lacking.get(column, 0) > 0 for column, _ in self._requests(unit, row))

    def _add_lacking(self, lacking: dict[int, int], unit: Victims, row: int, sign: int) -> None:
        """What is lacking on a row if a unit stays there (1), or is evicted (-1)."""
        for column, amount in self._requests(unit, row):
            if column in lacking:
                lacking[column] += sign * amount

    def _spare(self) -> None:
        """Spares the victims that still have room where they are, the most disruptive first."""
        planned = self._planned
        ending = {key for unit in planned.units for key in unit.ending}
        for unit in sorted(sorted(planned.units, key=order_key), key=disruption, reverse=True):
            if not unit.whole_gang and unit.key in ending:
                continue  # the rest of its gang is evicted too
            if self._has_room(unit) and self._queue_allows(unit):
                planned.spare(unit)

    def _has_room(self, unit: Victims) -> bool:
        """Whether the tasks of a unit still have room where they are."""
        free, needed = self._state.nodes.free, Counter[tuple[int, int]]()
        for task in unit.tasks:
            for column, amount in task.cls.request:
                needed[column, self._planned.rows[task.uid]] += amount
        fits = all(free[column, row] >= amount for (column, row), amount in needed.items())
        return fits and not any(self._state.stateful.applies(task) for task in unit.tasks)

    def _queue_allows(self, unit: Victims) -> bool:
        """Whether the queue of a unit may use what it uses, if it is spared: by capability and by what is guaranteed to
        other queues."""
        queues, queue = self._state.queues, self._state.queue_of(unit.tasks[0].gang)
        used = total(task.cls.request for task in unit.tasks)
        if queues.over_capability(queue, used, with_enqueued=False) is not None:
            return False
        if not queues.guarantees:
            return True
        free, reserved = self._state.free_total(), queues.guaranteed_to_others(queue)
        return all(
            not reserved[column] or int(free[column]) - amount >= reserved[column] for column, amount in used.items()
        )


def _covered(lacking: dict[int, int]) -> bool:
    return all(amount <= 0 for amount in lacking.values())
