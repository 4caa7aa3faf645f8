"""Victims of an eviction plan: tasks that are evicted together, their order, and which rows to evict them from.

Which tasks may be evicted for a gang is in `rules` and `evictable`; the plan itself is made in `planner`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.features.evict.elastic import can_spare
from enbloc.engine.features.evict.evictable import Cell
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.gangs.model import GangKey

SHORTLIST = 12
"""At most 12 rows are examined task by task for each place that is made: the rows come sorted by how well they suit."""


class Victims(NamedTuple):
    """Tasks that are evicted together: one surplus member, or all members of a gang."""

    tasks: list[Task]
    whole_gang: bool
    rank: int
    """The place of its queue and priority in the order in which victims are taken."""
    skips: int = 0
    """How many surplus members of its gang come before it in eviction order (O2 in reverse)."""
    ending: Sequence[GangKey] = ()
    """The gangs that end with it, those too of which nothing is left but surplus that was evicted before."""

    @property
    def key(self) -> GangKey:
        return self.tasks[0].gang.key


def last_in_order_first(units: Iterable[Victims]) -> list[Victims]:
    """By age and name of gangs, then the order of tasks (O2), in reverse: among equals the last is evicted."""
    return sorted(units, key=order_key, reverse=True)


def order_key(unit: Victims) -> tuple[object, ...]:
    """Without the plugins of G8: those order gangs that wait."""
    spec = unit.tasks[0].gang.spec
    return (spec.created_ns, spec.key.namespace, spec.title, max(task.order for task in unit.tasks))


def disruption(unit: Victims) -> tuple[int, ...]:
    """Sort key: how disruptive the eviction of one unit is (P1)."""
    return (unit.rank, unit.whole_gang, unit.skips, len(unit.tasks), -unit.tasks[0].gang.spec.created_ns)


def cost(units: Sequence[Victims]) -> tuple[int, ...]:
    """Sort key of a set of units: the highest rank, whole gangs, pods, skipped surplus members, the oldest gang."""
    return (
        max((unit.rank for unit in units), default=0),
        sum(unit.whole_gang for unit in units),
        sum(len(unit.tasks) for unit in units),
        sum(unit.skips for unit in units),
        -min((unit.tasks[0].gang.spec.created_ns for unit in units), default=0),
    )


class Offer(NamedTuple):
    """The cheapest victims that make room for one more task on a row."""

    cost: tuple[int, ...]
    row: int
    victims: list[Victims]
    valid_for: object
    """The facts that it was computed from."""


class Shortlist:
    """Rows on which room can be made, examined task by task only as far ahead as needed to choose among a few."""

    def __init__(self, rows: list[int]) -> None:
        self._rows = iter(rows)
        self._open: dict[int, Offer] = {}
        self._used: dict[int, None] = {}
        """Rows on which room was made: they are examined again when there are no others."""

    def best(
        self, examine: Callable[[int], Offer | None], facts: Callable[[int, list[Victims]], object]
    ) -> Offer | None:
        """The cheapest offer of the shortlist; it is examined again if evictions since may have changed it."""
        self._fill(examine, self._rows)
        if not self._open:
            again, self._used = self._used, {}
            self._fill(examine, iter(again))
        while self._open:
            offer = min(self._open.values(), key=lambda offer: (offer.cost, offer.row))
            row = offer.row
            present = offer if facts(row, offer.victims) == offer.valid_for else examine(row)
            if present is None:
                del self._open[row]
            elif present.cost != offer.cost:
                self._open[row] = present
            else:
                del self._open[row]
                self._used[row] = None
                return present
        return None

    def _fill(self, examine: Callable[[int], Offer | None], rows: Iterator[int]) -> None:
        while len(self._open) < SHORTLIST:
            row = next(rows, None)
            if row is None:
                return
            found = examine(row)
            if found is not None:
                self._open[row] = found


class VictimCandidates:
    """The units that one try of a plan may evict: of some queues and priorities; of some of them surplus only."""

    def __init__(self, cycle: Cycle, ranks: Mapping[Cell, int], surplus_only: Collection[Cell]) -> None:
        """`ranks`: the queues and priorities, by their place in the order in which victims are taken."""
        self._state = cycle.state
        self._starting = cycle.units
        self._evictions = cycle.features.get(EvictionHistory)
        self._ranks = ranks
        self._surplus_only = surplus_only
        self._whole_gangs: dict[GangKey, tuple[int, Victims | None]] = {}
        """By gang: all of its members as one unit, as of the gang's version."""
        self._needed: dict[GangKey, set[GangKey]] = {}
        """By preemptor: the gangs without which it could not start."""

    def on_row(self, row: int, gang: GangState) -> list[Victims]:
        """The units with a task on a row that may be evicted for a gang, the last in order first."""
        return self._units(self._state.stateful.assigned_to(self._state.nodes.names[row]), gang)

    def of_queue(self, gang: GangState) -> list[Victims]:
        """The units of a gang's own queue that may be evicted for it, the last in order first."""
        return self._units_of((other for other in self._gangs() if other.spec.queue == gang.spec.queue), gang)

    def all(self, gang: GangState) -> list[Victims]:
        """All units that may be evicted for a gang, in the order in which they are taken: the last in order first
        among equals. A gang with surplus members is listed member by member, and then as a whole."""
        singles = self._units_of(self._gangs(), gang)
        whole = [self._whole_of(unit.tasks[0].gang, gang) for unit in singles if not unit.whole_gang]
        rest = {unit.key: unit for unit in whole if unit is not None}
        return sorted(last_in_order_first([*singles, *rest.values()]), key=lambda unit: (unit.rank, unit.whole_gang))

    def _gangs(self) -> Iterator[GangState]:
        return (gang for gang in self._state.gangs.values() if (gang.spec.queue, gang.priority) in self._ranks)

    def _units_of(self, others: Iterable[GangState], gang: GangState) -> list[Victims]:
        return self._units((task for other in others for task in other.tasks.values()), gang)

    def _units(self, tasks: Iterable[Task], gang: GangState) -> list[Victims]:
        units: dict[GangKey | str, Victims] = {}
        for task in tasks:
            unit = self._unit_of(task, gang) if task.gang is not gang else None
            if unit is not None:
                units[unit.key if unit.whole_gang else task.uid] = unit
        return last_in_order_first(units.values())

    def _unit_of(self, task: Task, by: GangState) -> Victims | None:
        """The tasks that are evicted with a task, if it may be evicted at all."""
        gang = task.gang
        rank = self._ranks.get((gang.spec.queue, gang.priority))
        if rank is None or not self._may_evict(task):
            return None
        if can_spare(task):
            return Victims([task], whole_gang=False, rank=rank, skips=self._evictions.surplus.position(task))
        return self._whole_of(gang, by)

    def _whole_of(self, gang: GangState, by: GangState) -> Victims | None:
        """All of a gang; one that the preemptor starts with, or that its group names, is not evicted as a whole: the
        preemptor could not start then."""
        needed = self._needed.get(by.key)
        if needed is None:
            needed = self._needed[by.key] = self._starting.needed_by(by)
        if gang.key in needed:
            return None
        known = self._whole_gangs.get(gang.key)
        if known is None or known[0] != gang.version:
            known = self._whole_gangs[gang.key] = (gang.version, self._whole_gang(gang))
        return known[1]

    def _whole_gang(self, gang: GangState) -> Victims | None:
        """All members of a gang and of the gangs that it starts with: they end together (K7). Gangs of the group that
        have no bound task have nothing to evict. Of a gang without a minimum each pod goes for itself."""
        if not _goes_as_a_whole(gang):
            return None
        together = self._starting.mates(gang)
        if _of_status(together, TaskStatus.ASSUMED):
            return None  # what was placed in this cycle would stay, without the others
        members = _of_status(together, TaskStatus.BOUND)
        mates = {task.gang.key: task.gang for task in members}
        cells = [(mate.spec.queue, mate.priority) for mate in mates.values()]
        if any(cell not in self._ranks or cell in self._surplus_only for cell in cells):
            return None
        if not all(map(self._may_evict, members)):
            return None
        rank = max(self._ranks[cell] for cell in cells)
        return Victims(members, whole_gang=True, rank=rank, ending=[mate.key for mate in together])

    def _may_evict(self, task: Task) -> bool:
        immunity = self._evictions.immunity
        return immunity.is_evictable(task) and immunity.may_go(task)


def _of_status(gangs: Iterable[GangState], status: TaskStatus) -> list[Task]:
    return [task for gang in gangs for task in gang.tasks.values() if task.status is status]


def _goes_as_a_whole(gang: GangState) -> bool:
    return bool(gang.minima.total or any(gang.minima.by_role.values()) or gang.spec.evict_as_unit)
