"""Eviction plans: which tasks have to be evicted so that the minima of a gang fit for certain (P1, P2).

A plan is computed as a whole, in a transaction that is always rolled back; if there is none, nothing is evicted. It
prefers victims of the lowest priority, then few of them: surplus members before members of a minimum, and a gang that
would fall below its minimum only as a whole. Rows are chosen by arrays; single tasks are examined only on the few rows
that suit best. Which tasks may be evicted for whom is decided by `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.eviction.history import EvictionHistory
from enbloc.engine.eviction.rules import Rules
from enbloc.engine.eviction.victims import (
    Offer,
    Shortlist,
    VictimCandidates,
    Victims,
    cost,
    disruption,
    order_key,
)
from enbloc.engine.placement.attempt import Placer, runs
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import Bools, Ints, total
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus

TERMINATING_BOUND = 2_000
"""At most 2,000 terminating tasks count as gone in a plan: each is a step of the transaction."""

TIERS = 16
"""At most 16 priorities are tried one by one; if there are more, several at once: each try costs a whole plan."""


class Plan(NamedTuple):
    victims: list[Task]
    places: list[tuple[Task, str]]
    """The tasks of the gang, and the node of each."""


class Planner:
    """Plans evictions for one gang, or for gangs that start together."""

    def __init__(
        self,
        state: State,
        placer: Placer,
        evictions: EvictionHistory,
        rules: Rules,
        constraints: Constraints,
        mates: Callable[[GangState], list[GangState]],
    ) -> None:
        self._state = state
        self._placer = placer
        self._evictions = evictions
        self._rules = rules
        self._constraints = constraints
        self._mates = mates

    def find(self, requests: Sequence[PlacementRequest], prepare: Callable[[Transaction], None]) -> Plan | None:
        """The plan, if there is one. `prepare` releases claims of the gang itself, and those that it may take over."""
        cells = sorted(self._rules.cells(), key=lambda cell: (cell[1], cell[0]))
        surplus = self._evictions.surplus
        for surplus_only in (True, False) if surplus.has_surplus(cells) else (False,):
            for tier in _tiers(cells):
                freed = surplus.freed(tier) if surplus_only else self._evictions.evictable.freed(tier)
                victims = VictimCandidates(
                    self._state, self._evictions, self._mates, frozenset(tier), surplus_only=surplus_only
                )
                attempt = _Attempt(
                    self._state, self._placer, self._evictions, self._rules, self._constraints, victims, freed
                )
                plan = attempt.run(requests, prepare)
                if plan is not None:
                    return plan
        return None


class _Attempt:
    """One try of a plan, with the victims of some queues and priorities."""

    def __init__(
        self,
        state: State,
        placer: Placer,
        evictions: EvictionHistory,
        rules: Rules,
        constraints: Constraints,
        candidates: VictimCandidates,
        freed: Ints,
    ) -> None:
        """`freed`: what evicting all candidates would free, column by row."""
        self._state = state
        self._placer = placer
        self._disruptions = evictions.disruptions()
        self._rules = rules
        self._constraints = constraints
        self._candidates = candidates
        self._freed = freed
        self._transaction = Transaction(state)
        self._nodes_of: dict[str, str] = {}
        """By uid: the node of a victim, also after the transaction took it off."""
        self._evicted: list[tuple[Victims, list[int]]] = []
        """The units that the plan evicts, with the rows of their tasks."""
        self._rejected_rows: set[int] = set()
        """Rows on which the task did not fit though there was room."""
        self._shortlists: dict[object, Shortlist] = {}

    def run(self, requests: Sequence[PlacementRequest], prepare: Callable[[Transaction], None]) -> Plan | None:
        """The plan, if these candidates suffice. Leaves the state as it was."""
        self._remove_terminating()
        prepare(self._transaction)
        plan: Plan | None = None
        if self._could_fit(requests) and self._place_all(requests):
            self._spare()
            victims = [task for unit, _ in self._evicted for task in unit.tasks]
            if self._rules.accepts(victims):
                plan = Plan(victims, [(task, task.node) for task in self._transaction.placed])
        self._transaction.rollback()
        return plan

    def _remove_terminating(self) -> None:
        """Counts terminating pods as gone: they will be when the gang is bound."""
        nodes = self._state.nodes
        for task in list(self._state.releasing.values())[:TERMINATING_BOUND]:
            if task.node in nodes.rows:
                self._transaction.evict(task)

    # ---- whether a plan is possible

    def _could_fit(self, requests: Sequence[PlacementRequest]) -> bool:
        """Whether each class alone would fit if all candidates were evicted: cheap, and mostly false."""
        counts: dict[int, tuple[Task, int]] = {}
        for request in requests:
            for task in _pending(request.needed):
                known = counts.get(task.cls.id)
                counts[task.cls.id] = (task, known[1] + 1 if known else 1)
        return all(int(self._capacity(task).sum()) >= count for task, count in counts.values())

    def _capacity(self, task: Task) -> Ints:
        """By row, how many tasks of the class it could hold if all candidates were evicted."""
        nodes = self._state.nodes
        most: Ints | None = None
        for column, amount in task.cls.request:
            room = nodes.free[column, : nodes.count] + self._freed[column]
            fits = np.maximum(room, 0) // amount
            most = fits if most is None else np.minimum(most, fits)
        assert most is not None, "a request always asks for a pod"
        found: Ints = np.where(self._open_rows(task), most, 0)
        return found

    def _open_rows(self, task: Task) -> Bools:
        passing, closed = self._state.candidates(task.cls).passing(), self._constraints.closed_rows(task)
        return passing if closed is None else passing & ~closed[: len(passing)]

    # ---- placing, and evicting where there is no room

    def _place_all(self, requests: Sequence[PlacementRequest]) -> bool:
        for request in requests:
            for run in runs(self._state, _pending(request.needed)):
                if self._place(run, len(run)) < len(run):
                    return False
            short = request.short - sum(task.status is TaskStatus.ASSUMED for task in request.rest)
            for run in runs(self._state, _pending(request.rest)):
                short -= self._place(run, min(short, len(run))) if short > 0 else 0
            if short > 0:
                return False
        return True

    def _place(self, run: Sequence[Task], count: int) -> int:
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
            if placed < count and len(self._evicted[-1][0].tasks) > 1:  # a whole gang: it freed room on other rows too
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
        like = (task.cls.id, task.run_time_ns)
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
            self._evict(unit)
        return best.row

    def _facts(self, row: int, units: list[Victims]) -> object:
        """What an offer depends on: the row, the gangs, and what budgets and queues have left where they matter."""
        evicted = len(self._evicted) if self._rules.by_use or self._state.budgets else 0
        return (int(self._state.nodes.stamp[row]), evicted, [unit.tasks[0].gang.version for unit in units])

    def _rows_by_burden(self, task: Task) -> list[int]:
        """The rows on which enough could be freed, those first on which that is the smallest part of what could be."""
        nodes, count = self._state.nodes, self._state.nodes.count
        open_rows = self._open_rows(task).copy()
        burden = np.zeros(count)
        for column, amount in task.cls.request:
            lacking = amount - nodes.free[column, :count]
            open_rows &= lacking <= self._freed[column, :count]
            burden += np.maximum(lacking, 0) / np.maximum(self._freed[column, :count], 1)
        rows = np.flatnonzero(open_rows)
        found: list[int] = rows[np.lexsort((rows, burden[rows]))].tolist()
        return found

    def _make_queue_room(self, task: Task) -> bool:
        """The queue may not use more: evicts the least disruptive unit of its own, on whatever node."""
        for unit in sorted(self._candidates.of_queue(task.gang), key=disruption):
            if self._may_evict(unit):
                self._evict(unit)
                return True
        return False

    # ---- the victims on one row

    def _victims_by_room(self, row: int, task: Task) -> list[Victims] | None:
        """The lowest and fewest victims on a row whose eviction makes room for the task."""
        nodes = self._state.nodes
        lacking = {column: amount - int(nodes.free[column, row]) for column, amount in task.cls.request}
        chosen: list[Victims] = []
        for unit in self._by_preference(row, task, lacking):
            if _covered(lacking):
                break
            if self._may_evict(unit):
                chosen.append(unit)
                self._assume_evicted(unit)
                self._add_lacking(lacking, unit, row, -1)
        enough = _covered(lacking)
        for unit in chosen:
            self._assume_spared(unit)
        if not enough:
            return None
        for unit in sorted(chosen, key=disruption, reverse=True):  # spare those that are not needed
            self._add_lacking(lacking, unit, row, 1)
            if _covered(lacking):
                chosen.remove(unit)
            else:
                self._add_lacking(lacking, unit, row, -1)
        return chosen

    def _victims_by_filters(self, row: int, task: Task) -> list[Victims] | None:
        """The same for a task that stateful filters concern: ports, affinity, spread, volumes. All that may be evicted
        are, and put back one by one as long as the task still fits."""
        transaction, checkpoint = self._transaction, self._transaction.checkpoint
        chosen: list[Victims] = []
        for unit in self._by_preference(row, task, {}):
            unit = _bound(unit)
            if unit.tasks and self._may_evict(unit):
                chosen.append(unit)
                self._rows_of(unit)
                self._disruptions.evict(unit.tasks)
                for one in unit.tasks:
                    transaction.evict(one)
        fits = self._fits(task, row)
        needed = list(chosen)
        for unit in sorted(chosen, key=disruption, reverse=True) if fits else ():
            before = transaction.checkpoint
            for one, own_row in zip(unit.tasks, self._rows_of(unit), strict=True):
                transaction.unevict(one, own_row)
            if self._fits(task, row):
                needed.remove(unit)
            else:
                transaction.rollback(before)
        transaction.rollback(checkpoint)
        for unit in chosen:
            self._disruptions.spare(unit.tasks)
        return needed if fits else None

    def _by_preference(self, row: int, task: Task, lacking: dict[int, int]) -> list[Victims]:
        """The units on a row in the order in which they are chosen as victims: surplus members, the lowest priority,
        then those that free most of what is lacking; among equals the last in order."""
        name = self._state.nodes.names[row]

        def preference(unit: Victims) -> tuple[object, ...]:
            freed = 0.0
            for one in unit.tasks:
                if one.node == name:
                    for column, amount in one.cls.request:
                        if lacking.get(column, 0) > 0:
                            freed = max(freed, min(1.0, amount / lacking[column]))
            return (unit.whole_gang, unit.tasks[0].gang.priority, unit.skips, -freed, len(unit.tasks))

        return sorted(self._candidates.on_row(row, task.gang), key=preference)

    def _add_lacking(self, lacking: dict[int, int], unit: Victims, row: int, sign: int) -> None:
        """What is lacking on a row if a unit stays there (1), or is evicted (-1)."""
        name = self._state.nodes.names[row]
        for task in unit.tasks:
            if task.node == name:
                for column, amount in task.cls.request:
                    if column in lacking:
                        lacking[column] += sign * amount

    # ---- evicting and sparing

    def _may_evict(self, unit: Victims) -> bool:
        return self._disruptions.allow(unit.tasks) and self._rules.allows(unit.tasks)

    def _assume_evicted(self, unit: Victims) -> None:
        """Counts a unit as evicted for budgets and queues, while others are chosen with it."""
        self._disruptions.evict(unit.tasks)
        for task in unit.tasks if self._rules.by_use else ():
            self._state.queues.release(self._state.queue_of(task.gang), task.cls.request)

    def _assume_spared(self, unit: Victims) -> None:
        """The exact inverse of `_assume_evicted`."""
        self._disruptions.spare(unit.tasks)
        for task in unit.tasks if self._rules.by_use else ():
            self._state.queues.allocate(self._state.queue_of(task.gang), task.cls.request)

    def _evict(self, unit: Victims) -> None:
        unit = _bound(unit)
        self._evicted.append((unit, self._rows_of(unit)))
        self._disruptions.evict(unit.tasks)
        for task in unit.tasks:
            self._transaction.evict(task)

    def _rows_of(self, unit: Victims) -> list[int]:
        rows = self._state.nodes.rows
        return [rows[self._nodes_of.setdefault(task.uid, task.node)] for task in unit.tasks]

    def _spare(self) -> None:
        """Spares the victims that still have room where they are, the most disruptive first."""
        nodes = self._state.nodes
        ending = {task.gang.key for unit, _ in self._evicted if unit.whole_gang for task in unit.tasks}
        in_order = sorted(self._evicted, key=lambda pair: order_key(pair[0]))
        for unit, rows in sorted(in_order, key=lambda pair: disruption(pair[0]), reverse=True):
            if not unit.whole_gang and unit.key in ending:
                continue  # the rest of its gang is evicted too
            needed: dict[tuple[int, int], int] = {}
            for task, row in zip(unit.tasks, rows, strict=True):
                for column, amount in task.cls.request:
                    needed[column, row] = needed.get((column, row), 0) + amount
            fits = all(nodes.free[column, row] >= amount for (column, row), amount in needed.items())
            if not fits or any(self._state.stateful.applies(task) for task in unit.tasks):
                continue
            if not self._queue_allows(unit):
                continue
            for task, row in zip(unit.tasks, rows, strict=True):
                self._transaction.unevict(task, row)
            self._disruptions.spare(unit.tasks)
            self._evicted.remove((unit, rows))

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


def _tiers(cells: Sequence[Cell]) -> Iterable[list[Cell]]:
    """None, then the cells of the lowest priority, then also those of the next one, and so on to all."""
    yield []
    priorities = sorted({priority for _, priority in cells})
    step = max(1, -(-len(priorities) // TIERS))
    tops = priorities[step - 1 :: step]
    for top in [*tops, *priorities[-1:]] if tops[-1:] != priorities[-1:] else tops:
        yield [cell for cell in cells if cell[1] <= top]


def _pending(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.status is TaskStatus.PENDING]


def _bound(unit: Victims) -> Victims:
    """The unit without tasks that were evicted already."""
    return unit._replace(tasks=[task for task in unit.tasks if task.status is TaskStatus.BOUND])


def _covered(lacking: dict[int, int]) -> bool:
    return all(amount <= 0 for amount in lacking.values())
