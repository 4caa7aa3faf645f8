"""Plans of evictions: who would have to leave so that a gang's minima fit for certain (P1, P2).

A plan is made whole on the arrays, in a transaction that is undone again; no pod is evicted for a plan that fails. It
looks for the lowest victims first, then for few: surplus members before anybody's minimum, and a gang below its minimum
only as a whole. Rows are chosen by arrays; single tasks are looked at only on the few rows that promise most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np

from enbloc.engine.eviction.evictable import Cell, is_evictable
from enbloc.engine.eviction.history import EvictionHistory
from enbloc.engine.placement.attempt import Placer, runs
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import Bools, Ints
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.model import GangKey

SHORTLIST = 12
"""So many rows are looked at task by task for each place that is made."""

LEAVING_BOUND = 2_000
"""So many that are leaving anyway are counted on."""

TIERS = 16
"""So many priorities are tried one by one; beyond them, several at once."""


class Victims(NamedTuple):
    """Tasks that leave together: one that is surplus, or a whole gang."""

    tasks: list[Task]
    whole: bool
    skips: int = 0
    """How many surplus members of its gang would have had to go before it (O2 in reverse)."""

    @property
    def key(self) -> GangKey:
        return self.tasks[0].gang.key


class Plan(NamedTuple):
    victims: list[Task]
    places: list[tuple[Task, str]]


class Rules(Protocol):
    """Who may be evicted for whom."""

    @property
    def by_use(self) -> bool:
        """Whether it matters how much queues use."""
        ...

    def cells(self) -> Sequence[Cell]:
        """The queues and priorities whose tasks may leave."""
        ...

    def allows(self, tasks: Sequence[Task]) -> bool:
        """Whether these may leave, as things stand within the plan."""
        ...

    def accepts(self, victims: Sequence[Task]) -> bool:
        """Whether the whole plan is in order, with its victims gone and its tasks placed."""
        ...


Offer = tuple[tuple[int, ...], list[Victims], object]
"""What it would cost to make one more place on a row, the row last; who would leave; and of what that is so."""


class _Offers:
    """Rows on which places could be made, looked at task by task only so far ahead as to choose among a few."""

    def __init__(self, rows: list[int]) -> None:
        self._rows = iter(rows)
        self._open: dict[int, Offer] = {}
        self._used: dict[int, None] = {}
        """Rows on which a place was made: more can be, when all others were asked."""

    def best(self, offer: Callable[[int], Offer | None], facts: Callable[[int, list[Victims]], object]) -> Offer | None:
        """The cheapest of a few; if what was evicted meanwhile may have changed it, it is looked at once more."""
        self._look_ahead(offer, self._rows)
        if not self._open:
            again, self._used = self._used, {}
            self._look_ahead(offer, iter(again))
        while self._open:
            cost, units, was = min(self._open.values(), key=itemgetter(0))
            row = cost[-1]
            again_now = self._open[row] if facts(row, units) == was else offer(row)
            if again_now is None:
                del self._open[row]
            elif again_now[0] != cost:
                self._open[row] = again_now
            else:
                del self._open[row]
                self._used[row] = None
                return again_now
        return None

    def _look_ahead(self, offer: Callable[[int], Offer | None], rows: Iterator[int]) -> None:
        while len(self._open) < SHORTLIST:
            row = next(rows, None)
            if row is None:
                return
            found = offer(row)
            if found is not None:
                self._open[row] = found


class Planner:
    """One plan for one gang, or for gangs that start together."""

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
        self._departures = evictions
        self._ledger = evictions.evictable
        self._disruptions = evictions.disruptions()
        self._rules = rules
        self._constraints = constraints
        self._mates = mates
        self._nodes_of: dict[str, str] = {}
        """Where those who were looked at are, whether they were taken off meanwhile or not."""
        self._transaction = Transaction(state)
        self._chosen: list[tuple[Victims, list[int]]] = []
        self._bad: set[int] = set()
        self._cells: set[Cell] = set()
        self._freed: Ints = np.zeros((0, 0), np.int64)
        """What could be freed, column by row, as of the beginning of the try that is under way."""
        self._offers: dict[object, _Offers] = {}
        self._whole: dict[GangKey, tuple[int, Victims | None]] = {}
        """What it would be to take a gang as a whole, as of its version."""

    def find(self, needs: Sequence[PlacementRequest], prepare: Callable[[Transaction], None]) -> Plan | None:
        """The plan, if there is one. `prepare` sets aside what is the gang's own, or others' to give up."""
        cells = sorted(self._rules.cells(), key=lambda cell: (cell[1], cell[0]))
        surplus = self._departures.surplus
        for surplus_only in (True, False) if surplus.has_surplus(cells) else (False,):
            for tier in _tiers(cells):
                self._cells = set(tier)
                self._see_off()
                prepare(self._transaction)
                self._freed = surplus.freed(tier) if surplus_only else self._ledger.freed(tier)
                if self._could(needs) and self._fill(needs, surplus_only):
                    self._spare()
                    victims = [task for unit, _ in self._chosen for task in unit.tasks]
                    if self._rules.accepts(victims):
                        places = [(task, task.node) for task in self._transaction.placed]
                        self._undo()
                        return Plan(victims, places)
                self._undo()
        return None

    def _see_off(self) -> None:
        """Those who are leaving anyway have left when the gang lands."""
        nodes = self._state.nodes
        for task in list(self._state.releasing.values())[:LEAVING_BOUND]:
            if task.node in nodes.rows:
                self._transaction.evict(task)

    def _undo(self) -> None:
        self._transaction.rollback()
        for unit, _ in self._chosen:
            self._disruptions.spare(unit.tasks)
        self._chosen = []
        self._bad = set()
        self._offers = {}
        self._whole = {}

    # ---- whether it could be

    def _could(self, needs: Sequence[PlacementRequest]) -> bool:
        """Whether there would be room for each class if all of the tier left: cheap, and mostly says no."""
        counts: dict[int, tuple[Task, int]] = {}
        for need in needs:
            for task in (task for task in need.needed if task.status is TaskStatus.PENDING):
                known = counts.get(task.cls.id)
                counts[task.cls.id] = (task, known[1] + 1 if known else 1)
        return all(int(self._capacity(task).sum()) >= count for task, count in counts.values())

    def _capacity(self, task: Task) -> Ints:
        """How many tasks of its class each row could hold."""
        nodes = self._state.nodes
        most: Ints | None = None
        for column, amount in task.cls.request:
            room = nodes.free[column, : nodes.count] + self._freed[column]
            fits = np.maximum(room, 0) // amount
            most = fits if most is None else np.minimum(most, fits)
        assert most is not None, "a request always asks for a pod"
        found: Ints = np.where(self._open(task), most, 0)
        return found

    def _open(self, task: Task) -> Bools:
        count = self._state.nodes.count
        passing = self._state.candidates(task.cls).passing()
        closed = self._constraints.closed_rows(task)
        return passing if closed is None else passing & ~closed[:count]

    # ---- how

    def _fill(self, needs: Sequence[PlacementRequest], surplus_only: bool) -> bool:
        """Places everyone who is needed, evicting where there is no room."""
        for need in needs:
            for run in runs(self._state, [task for task in need.needed if task.status is TaskStatus.PENDING]):
                if self._place(run, len(run), surplus_only) < len(run):
                    return False
            short = need.short - sum(task.status is TaskStatus.ASSUMED for task in need.rest)
            for run in runs(self._state, [task for task in need.rest if task.status is TaskStatus.PENDING]):
                short -= self._place(run, min(short, len(run)), surplus_only) if short > 0 else 0
            if short > 0:
                return False
        return True

    def _place(self, run: Sequence[Task], count: int, surplus_only: bool) -> int:
        """Places the first of a run: on room that is there, then on room that is made, a place at a time."""
        placed = self._placer.place(self._transaction, run[:count], count, self._constraints)
        while placed < count:
            task = run[placed]
            if not self._placer.queue_room(task):
                if not self._make_queue_room(task, surplus_only):
                    return placed
                placed += self._placer.place(self._transaction, run[placed:count], count - placed, self._constraints)
                continue
            made = self._make_room(task, surplus_only)
            if made is None:
                return placed
            if not self._fits(task, made):
                self._bad.add(made)  # something else than room is lacking there
                continue
            fitting = self._how_many(run[placed:count], made)
            self._transaction.place(run[placed : placed + fitting], [made] * fitting)
            placed += fitting
            if placed < count and len(self._chosen[-1][0].tasks) > 1:  # a whole gang left: elsewhere, too
                placed += self._placer.place(self._transaction, run[placed:count], count - placed, self._constraints)
        return placed

    def _how_many(self, run: Sequence[Task], row: int) -> int:
        """How many of a run fit on a row where one does."""
        if len(run) == 1 or self._state.stateful.applies(run[0]):
            return 1
        free, most = self._state.nodes.free, min(len(run), self._placer.queue_room(run[0]))
        return min(most, *(int(free[column, row]) // amount for column, amount in run[0].cls.request))

    def _make_room(self, task: Task, surplus_only: bool) -> int | None:
        """Evicts the tasks that have to leave so that one more task fits on one row. Returns that row."""
        look = self._victims_in_the_way if self._state.stateful.applies(task) else self._victims_on
        like = (task.cls.id, task.run_time_ns, surplus_only)
        offers = self._offers.get(like)
        if offers is None:
            offers = self._offers[like] = _Offers(self._rows_by_burden(task))

        def offer(row: int) -> Offer | None:
            found = look(row, task, surplus_only) if row not in self._bad else None
            return ((*_cost(found), row), found, self._facts(row, found)) if found else None

        best = offers.best(offer, self._facts)
        if best is None:
            return None
        self._evict(best[1])
        return best[0][-1]

    def _facts(self, row: int, units: list[Victims]) -> object:
        """What an offer depends on: the row, the gangs, and, where they count, what budgets and queues have left."""
        counted = len(self._chosen) if self._rules.by_use or self._state.budgets else 0
        return (int(self._state.nodes.stamp[row]), counted, [unit.tasks[0].gang.version for unit in units])

    def _rows_by_burden(self, task: Task) -> list[int]:
        """The rows on which enough could be freed, those first on which it is the smallest part of that."""
        nodes, count = self._state.nodes, self._state.nodes.count
        open_rows = self._open(task).copy()
        burden = np.zeros(count)
        for column, amount in task.cls.request:
            lacking = amount - nodes.free[column, :count]
            open_rows &= lacking <= self._freed[column, :count]
            burden += np.maximum(lacking, 0) / np.maximum(self._freed[column, :count], 1)
        rows = np.flatnonzero(open_rows)
        found: list[int] = rows[np.lexsort((rows, burden[rows]))].tolist()
        return found

    def _victims_on(self, row: int, task: Task, surplus_only: bool) -> list[Victims] | None:
        """The lowest and fewest on a row whose leaving makes room for the task."""
        nodes = self._state.nodes
        lacking = {column: amount - int(nodes.free[column, row]) for column, amount in task.cls.request}
        chosen: list[Victims] = []
        for unit in self._units_on(row, task, surplus_only, lacking):
            if _covered(lacking):
                break
            if self._allowed(unit):
                chosen.append(unit)
                self._count(unit, 1)
                self._free(lacking, unit, row, -1)
        enough = _covered(lacking)
        for unit in chosen:
            self._count(unit, -1)
        if not enough:
            return None
        for unit in sorted(chosen, key=_harm, reverse=True):  # no victim in vain, the most harmful spared first
            self._free(lacking, unit, row, 1)
            if _covered(lacking):
                chosen.remove(unit)
            else:
                self._free(lacking, unit, row, -1)
        return chosen

    def _victims_in_the_way(self, row: int, task: Task, surplus_only: bool) -> list[Victims] | None:
        """The same for a task to which it matters who else is there: ports, affinity, spread, volumes. Everybody who
        may leave does, and comes back one by one as long as the task still fits."""
        transaction, checkpoint = self._transaction, self._transaction.checkpoint
        chosen: list[Victims] = []
        for unit in self._units_on(row, task, surplus_only, {}):
            unit = unit._replace(tasks=[one for one in unit.tasks if one.status is TaskStatus.BOUND])
            if unit.tasks and self._allowed(unit):
                chosen.append(unit)
                self._rows_of(unit)
                self._disruptions.evict(unit.tasks)
                for one in unit.tasks:
                    transaction.evict(one)
        fits = self._fits(task, row)
        needed = list(chosen)
        for unit in sorted(chosen, key=_harm, reverse=True) if fits else ():
            before = transaction.checkpoint
            for one, place in zip(unit.tasks, self._rows_of(unit), strict=True):
                transaction.unevict(one, place)
            if self._fits(task, row):
                needed.remove(unit)
            else:
                transaction.rollback(before)
        transaction.rollback(checkpoint)
        for unit in chosen:
            self._disruptions.spare(unit.tasks)
        return needed if fits else None

    def _fits(self, task: Task, row: int) -> bool:
        free = self._state.nodes.free
        if any(free[column, row] < amount for column, amount in task.cls.request):
            return False
        if not self._state.stateful.applies(task):
            return True
        return all(passes[row] for _, passes in self._state.stateful.masks(task))

    def _units_on(self, row: int, task: Task, surplus_only: bool, lacking: dict[int, int]) -> list[Victims]:
        """Who could leave a row for a task, the ones to go first first."""
        units: dict[GangKey | str, Victims] = {}
        for one in self._state.stateful.assigned_to(self._state.nodes.names[row]):
            if one.gang is not task.gang:
                unit = self._unit(one, surplus_only)
                if unit is not None:
                    units[unit.key if unit.whole else one.uid] = unit
        return sorted(_last_first(units.values()), key=lambda unit: self._preference(unit, row, lacking))

    def _count(self, unit: Victims, by: int) -> None:
        """As if they had left (1), while others are chosen with them; or not after all (-1)."""
        (self._disruptions.evict if by > 0 else self._disruptions.spare)(unit.tasks)
        for task in unit.tasks if self._rules.by_use else ():
            self._state.queues.release(self._state.queue_of(task.gang), task.cls.request, by)

    def _unit(self, task: Task, surplus_only: bool) -> Victims | None:
        """Who would leave with a task, if it may leave at all."""
        gang = task.gang
        if task.status is not TaskStatus.BOUND or (gang.spec.queue, gang.priority) not in self._cells:
            return None
        if not self._leaves(task):
            return None
        surplus = self._departures.surplus.of(gang)
        if task in surplus:
            return Victims([task], whole=False, skips=surplus.index(task))
        if surplus_only:
            return None
        known = self._whole.get(gang.key)
        if known is None or known[0] != gang.version:
            known = self._whole[gang.key] = (gang.version, self._all_of(gang))
        return known[1]

    def _all_of(self, gang: GangState) -> Victims | None:
        """A whole gang, and those it starts with: they end together (K7)."""
        mates = [
            mate for mate in self._mates(gang) if any(one.status is TaskStatus.BOUND for one in mate.tasks.values())
        ]
        if not all((mate.spec.queue, mate.priority) in self._cells for mate in mates):
            return None
        members = [one for mate in mates for one in mate.tasks.values() if one.status is TaskStatus.BOUND]
        return Victims(members, whole=True) if all(map(self._leaves, members)) else None

    def _leaves(self, task: Task) -> bool:
        return is_evictable(task) and self._departures.may_go(task)

    def _allowed(self, unit: Victims) -> bool:
        return self._disruptions.allow(unit.tasks) and self._rules.allows(unit.tasks)

    def _preference(self, unit: Victims, row: int, lacking: dict[int, int]) -> tuple[object, ...]:
        """Surplus first, the lowest first, then the unit that frees most of what is lacking."""
        name = self._state.nodes.names[row]
        freed = 0.0
        for task in unit.tasks:
            if task.node == name:
                for column, amount in task.cls.request:
                    if lacking.get(column, 0) > 0:
                        freed = max(freed, min(1.0, amount / lacking[column]))
        return (unit.whole, unit.tasks[0].gang.priority, unit.skips, -freed, len(unit.tasks))

    def _free(self, lacking: dict[int, int], unit: Victims, row: int, by: int) -> None:
        name = self._state.nodes.names[row]
        for task in unit.tasks:
            if task.node == name:
                for column, amount in task.cls.request:
                    if column in lacking:
                        lacking[column] += by * amount

    def _make_queue_room(self, task: Task, surplus_only: bool) -> bool:
        """The queue may not use more: the lowest of its own leave first, wherever they are."""
        queue = task.gang.spec.queue
        found: dict[GangKey | str, Victims] = {}
        for gang in self._state.gangs.values():
            if gang.spec.queue == queue and gang is not task.gang and (queue, gang.priority) in self._cells:
                for one in gang.tasks.values():
                    unit = self._unit(one, surplus_only) if one.status is TaskStatus.BOUND else None
                    if unit is not None:
                        found[unit.key if unit.whole else one.uid] = unit
        for unit in sorted(_last_first(found.values()), key=_harm):
            if self._allowed(unit):
                self._evict([unit])
                return True
        return False

    def _evict(self, units: Sequence[Victims]) -> None:
        for unit in units:
            unit = unit._replace(tasks=[task for task in unit.tasks if task.status is TaskStatus.BOUND])
            self._chosen.append((unit, self._rows_of(unit)))
            self._disruptions.evict(unit.tasks)
            for task in unit.tasks:
                self._transaction.evict(task)

    def _rows_of(self, unit: Victims) -> list[int]:
        rows = self._state.nodes.rows
        return [rows[self._nodes_of.setdefault(task.uid, task.node)] for task in unit.tasks]

    def _queue_may_keep(self, unit: Victims) -> bool:
        """Whether its queue may have what those use who stay after all: by capability, and by what is guaranteed to
        others."""
        queues, queue, used = self._state.queues, self._state.queue_of(unit.tasks[0].gang), _sum(unit.tasks)
        if queues.over_capability(queue, used, with_enqueued=False) is not None:
            return False
        if not queues.guarantees:
            return True
        free, kept = self._state.free_total(), queues.guaranteed_to_others(queue)
        return all(not kept[column] or int(free[column]) - amount >= kept[column] for column, amount in used.items())

    def _spare(self) -> None:
        """No victim in vain: a victim that still fits where it was is spared, the most harmful one first."""
        nodes = self._state.nodes
        ending = {task.gang.key for unit, _ in self._chosen if unit.whole for task in unit.tasks}
        first_first = sorted(self._chosen, key=lambda pair: _turn(pair[0]))
        for unit, rows in sorted(first_first, key=lambda pair: _harm(pair[0]), reverse=True):
            if not unit.whole and unit.key in ending:
                continue  # what is left of it goes too
            wanted: dict[tuple[int, int], int] = {}
            for task, row in zip(unit.tasks, rows, strict=True):
                for column, amount in task.cls.request:
                    wanted[column, row] = wanted.get((column, row), 0) + amount
            fits = all(nodes.free[column, row] >= amount for (column, row), amount in wanted.items())
            if not fits or any(self._state.stateful.applies(task) for task in unit.tasks):
                continue
            if not self._queue_may_keep(unit):
                continue
            for task, row in zip(unit.tasks, rows, strict=True):
                self._transaction.unevict(task, row)
            self._disruptions.spare(unit.tasks)
            self._chosen.remove((unit, rows))


def _tiers(cells: Sequence[Cell]) -> Iterable[list[Cell]]:
    """No cell, then the lowest priority alone, then with the next, and so on to all."""
    yield []
    priorities = sorted({priority for _, priority in cells})
    step = max(1, -(-len(priorities) // TIERS))
    tops = priorities[step - 1 :: step]
    for top in [*tops, *priorities[-1:]] if tops[-1:] != priorities[-1:] else tops:
        yield [cell for cell in cells if cell[1] <= top]


def _has_bound(gang: GangState) -> bool:
    return any(task.status is TaskStatus.BOUND for task in gang.tasks.values())


def _covered(lacking: dict[int, int]) -> bool:
    return all(amount <= 0 for amount in lacking.values())


def _last_first(units: Iterable[Victims]) -> list[Victims]:
    """The last in order (G8, O2) first: among equals they leave."""
    return sorted(units, key=_turn, reverse=True)


def _turn(unit: Victims) -> tuple[object, ...]:
    spec = unit.tasks[0].gang.spec
    return (spec.created, spec.key.namespace, spec.title, max(task.order for task in unit.tasks))


def _harm(unit: Victims) -> tuple[int, ...]:
    first = unit.tasks[0]
    return (unit.whole, first.gang.priority, unit.skips, len(unit.tasks), -first.gang.spec.created)


def _cost(units: Sequence[Victims]) -> tuple[int, ...]:
    """Lower is better: gangs that end, the highest of them, how many pods, and whether it were the last ones."""
    return (
        sum(unit.whole for unit in units),
        max((unit.tasks[0].gang.priority for unit in units), default=0),
        sum(len(unit.tasks) for unit in units),
        sum(unit.skips for unit in units),
        -min((unit.tasks[0].gang.spec.created for unit in units), default=0),
    )


def _sum(tasks: Sequence[Task]) -> dict[int, int]:
    found: dict[int, int] = {}
    for task in tasks:
        for column, amount in task.cls.request:
            found[column] = found.get(column, 0) + amount
    return found
