"""Eviction plans: which tasks have to be evicted so that the minima of a gang fit for certain (P1).

A plan is computed as a whole, in a transaction that is always rolled back; if there is none, nothing is evicted. The
queues and priorities whose tasks may be evicted come in an order (`rules`): a plan uses as many of them as it takes, of
the last one surplus members only if that suffices. Greedy placement is tried first (`greedy_plan`). If it fails, all
candidates are evicted, the gang is placed by any assignment that fits, and those that need not leave are spared. Either
way no victim is evicted in vain (`minimal_victims`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.core.tables.tasks import Task
from enbloc.engine.features.evict.elastic import can_spare
from enbloc.engine.features.evict.evictable import Cell
from enbloc.engine.features.evict.greedy_plan import GreedyPlan
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.minimal_victims import Capacity, minimal
from enbloc.engine.features.evict.planned_evictions import PlannedEvictions, bound
from enbloc.engine.features.evict.rules import Rules
from enbloc.engine.features.evict.victims import VictimCandidates, Victims, cost

TERMINATING_BOUND = 2_000
"""At most 2,000 terminating tasks count as gone in a plan: each is a step of the transaction."""

EVICT_ALL_BOUND = 2_000
"""If greedy placement fails, at most 2,000 units are evicted all at once in search of a plan."""

SPARED_TRIES = 16
SPARED_BOUND = 32
"""If shares or budgets limit what may be evicted, at most 16 choices are tried, none after one of over 32 units."""

PARTS_TRIED = 64
"""At most 64 choices of surplus members are tried in place of a gang as a whole."""


class Plan(NamedTuple):
    victims: list[Task]
    places: list[tuple[Task, str]]
    """The tasks of the gang, and the node of each."""


class _PlanStep(NamedTuple):
    """The queues and priorities whose tasks one try may evict: the first ones of the order."""

    cells: int
    surplus_only: bool
    """Whether of the last of them only surplus members."""


class Planner:
    """Plans evictions for one gang, or for gangs that start together."""

    def __init__(self, cycle: Cycle, rules: Rules, constraints: Constraints) -> None:
        self._cycle = cycle
        self._state = cycle.state
        self._evictions = cycle.features.get(EvictionHistory)
        self._rules = rules
        self._constraints = constraints
        self._cells = list(rules.cells())
        self._transaction = Transaction(cycle.state)
        self._requests: Sequence[PlacementRequest] = ()
        self._suffices: Callable[[], bool] | None = None
        self._kept: Sequence[Victims] = ()
        """The units that the last plan evicts."""

    @property
    def harm(self) -> tuple[int, ...]:
        """Sort key: how much the victims of the plan that was found cost."""
        return cost(self._kept)

    def find(
        self,
        requests: Sequence[PlacementRequest],
        prepare: Callable[[Transaction], None],
        suffices: Callable[[], bool] | None = None,
    ) -> Plan | None:
        """The plan, if there is one. `prepare` releases claims of the gang itself, and those that it may take over;
        `suffices`: what must hold besides once the victims are gone. Leaves the state as it was."""
        self._requests, self._suffices = requests, suffices
        self._remove_terminating()
        prepare(self._transaction)
        self._rules.begin(requests)
        is_enough = suffices is None or suffices()
        plan = self._without_victims()
        if plan is None and self._cells:
            plan = self._with_victims()
        elif not is_enough:
            plan = None  # nothing is evicted or released for minResources alone (K7)
        self._transaction.rollback()
        return plan

    def _remove_terminating(self) -> None:
        """Counts terminating pods as gone: they will be when the gang is bound."""
        nodes = self._state.nodes
        for task in list(self._state.counts.releasing.values())[:TERMINATING_BOUND]:
            if task.node in nodes.rows:
                self._transaction.evict(task)

    def _without_victims(self) -> Plan | None:
        nodes = self._state.nodes
        if not Capacity(nodes.free[:, : nodes.count], self._requests, self._open_rows).suffices():
            return None
        return self._fitting(self._planned(), ())

    def _with_victims(self) -> Plan | None:
        """The plan of the first step that has one. A later step may evict all that an earlier one may: the first is
        found by halves."""
        self._cells = list(self._rules.not_barred(self._cells))
        steps = self._steps()
        first = _first(lambda number: self._capacity(steps[number]).suffices(), 0, len(steps))
        if first == len(steps):
            return None
        plans: dict[int, Plan | None] = {}

        def has_plan(number: int) -> bool:
            plans[number] = self._plan_of(steps[number])
            return plans[number] is not None

        if has_plan(first):
            return plans[first]
        last = len(steps) - 1
        if first == last or not has_plan(last):
            return None
        return plans[_first(has_plan, first + 1, last)]

    def _steps(self) -> list[_PlanStep]:
        steps: list[_PlanStep] = []
        with_surplus = self._evictions.surplus.cells()
        for count, cell in enumerate(self._cells, 1):
            if cell in with_surplus:
                steps.append(_PlanStep(count, surplus_only=True))
            steps.append(_PlanStep(count, surplus_only=False))
        return steps

    # ---- one step

    def _plan_of(self, step: _PlanStep) -> Plan | None:
        """The plan of a step. Budgets, shares and minima bound the number of victims, and these must not take the room
        back: where that is in the way, plans without one of the victims are tried, then without two
        (`SPARED_TRIES`)."""
        waiting: list[frozenset[str]] = [frozenset()]
        known = set(waiting)
        is_limited = self._rules.by_use or self._state.budgets or step.surplus_only
        for _ in range(SPARED_TRIES if is_limited else 1):
            if not waiting:
                return None
            spared = waiting.pop(0)
            planned = self._planned(spared)
            plan = self._try(step, planned)
            if plan is not None:
                return plan
            for unit in planned.in_vain:
                more = spared | {task.uid for task in unit.tasks}
                if more not in known:
                    known.add(more)
                    waiting.append(more)
        return None

    def _try(self, step: _PlanStep, planned: PlannedEvictions) -> Plan | None:
        candidates = self._candidates(step)
        greedy = GreedyPlan(self._cycle, self._constraints, planned, candidates, self._freed(step))
        if greedy.run(self._requests):
            plan: Plan | None = self._present(planned)
        else:
            planned.start_over()
            plan = self._evict_all(planned, candidates)
        if plan is not None:
            plan = self._minimal(planned, plan)
            if not self._is_accepted(planned, plan):
                plan, planned.in_vain = None, list(self._kept)
        planned.start_over()
        return plan

    def _evict_all(self, planned: PlannedEvictions, candidates: VictimCandidates) -> Plan | None:
        """All candidates are evicted, and the gang is placed by any assignment that fits."""
        units = candidates.all(self._requests[0].gang)
        if len(units) > EVICT_ALL_BOUND:
            return None
        for unit in units:
            left = bound(unit)
            if left.tasks and planned.allow(left):
                planned.evict(left)
        evicted = list(planned.units)
        plan = self._fitting(planned, evicted)
        if planned.is_limited and len(evicted) <= SPARED_BOUND:
            planned.in_vain = evicted  # counts only if there is no plan
        return plan

    def _fitting(self, planned: PlannedEvictions, units: Sequence[Victims]) -> Plan | None:
        """Places the gang with just these units evicted."""
        planned.start_over(units)
        if attempt(self._cycle.placer, self._requests, self._transaction, self._constraints, keep=True) is None:
            return self._present(planned)
        planned.start_over()
        return None

    def _present(self, planned: PlannedEvictions) -> Plan:
        return Plan(planned.tasks, [(task, task.node) for task in self._transaction.placed])

    def _minimal(self, planned: PlannedEvictions, plan: Plan) -> Plan:
        """The plan without victims in vain."""
        found = plan
        units = planned.closed_units()

        def fits(left: Sequence[Victims]) -> bool:
            nonlocal found
            smaller = self._fitting(planned, left)
            found = smaller or found
            return smaller is not None

        evicted = [(planned.rows[task.uid], task.cls.request) for task in planned.tasks]
        planned.start_over()
        room = self._state.nodes.free[:, : self._state.nodes.count].copy()
        capacity = Capacity(room, self._requests, self._open_rows)
        capacity.take(evicted, -1)
        self._kept = minimal(units, planned.rows, capacity, fits)
        for unit in [unit for unit in self._kept if unit.whole_gang]:
            others = [other for other in self._kept if other is not unit]
            self._kept = [*others, *(self._surplus_in_place_of(unit, others, planned, fits) or [unit])]
        return found

    def _surplus_in_place_of(
        self,
        unit: Victims,
        others: Sequence[Victims],
        planned: PlannedEvictions,
        fits: Callable[[Sequence[Victims]], bool],
    ) -> list[Victims]:
        """Surplus members of a gang that suffice in place of all of it, the last in order if possible; else none."""
        planned.start_over()
        spare = sorted(filter(can_spare, unit.tasks), key=lambda task: task.order, reverse=True)
        gangs = {task.gang.key: task.gang for task in spare}
        count = min(len(spare), sum(gang.total_occupied - gang.minima.total for gang in gangs.values()))
        choices = combinations(spare, count) if 0 < len(spare) <= SPARED_BOUND else iter(())
        for chosen in islice(choices, PARTS_TRIED):
            singles = [Victims([task], whole_gang=False, rank=unit.rank, skips=spare.index(task)) for task in chosen]
            if self._may_go(planned, others, singles) and fits([*others, *singles]):
                for single in reversed(singles):
                    fewer = [one for one in singles if one is not single]
                    singles = fewer if fits([*others, *fewer]) else singles
                return singles
        return []

    def _may_go(self, planned: PlannedEvictions, others: Sequence[Victims], singles: Sequence[Victims]) -> bool:
        """Whether surplus members may be evicted one by one beside others."""
        planned.start_over(others)
        for single in singles:
            if not planned.allow(single):
                return False
            planned.evict(single)
        return True

    def _is_accepted(self, planned: PlannedEvictions, plan: Plan) -> bool:
        if self._suffices is None and not self._rules.by_use:
            return True
        planned.start_over(self._kept)
        if self._suffices is not None and not self._suffices():
            return False
        rows = self._state.nodes.rows
        for task, node in plan.places:
            if not task.node:
                self._transaction.place([task], [rows[node]])
        return self._rules.accepts(plan.victims)

    # ---- what a step may evict

    def _planned(self, spared: frozenset[str] = frozenset()) -> PlannedEvictions:
        return PlannedEvictions(self._state, self._rules, self._transaction, spared)

    def _candidates(self, step: _PlanStep) -> VictimCandidates:
        ranks = {cell: rank for rank, cell in enumerate(self._cells[: step.cells])}
        surplus_only = self._cells[step.cells - 1 : step.cells] if step.surplus_only else []
        return VictimCandidates(self._cycle, ranks, surplus_only)

    def _freed(self, step: _PlanStep) -> Ints:
        whole: Sequence[Cell] = self._cells[: step.cells - step.surplus_only]
        freed = self._evictions.evictable.freed(whole)
        if step.surplus_only:
            freed = freed + self._evictions.surplus.freed([self._cells[step.cells - 1]])
        return freed

    def _capacity(self, step: _PlanStep) -> Capacity:
        """With all candidates of a step evicted."""
        nodes = self._state.nodes
        return Capacity(nodes.free[:, : nodes.count] + self._freed(step), self._requests, self._open_rows)

    def _open_rows(self, task: Task) -> Bools:
        return self._constraints.open_rows(task, self._state.candidates(task.cls).passing())


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number from `low` for which it holds, if it holds for all that follow one; `high`: for none below."""
    if low < high and not holds(high - 1):
        return high
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
