"""The engine: cluster state in, decisions out. Nothing here knows a clock or a cluster.

Events go into `state`. `run` is one scheduling cycle, and reads from top to bottom:

    settle      nodes that came get their rows; tasks on them their room; gangs that name each other become units
    features    look at what changed: claims that no longer help end here
    set timed   whether run times distinguish gangs: they do while nodes are reserved or starts planned (R8)
    wake        gangs that the events could help become active (G9)
    read        gangs whose facts changed are put into the queue where they belong, or say why they are in none
    time out    gangs whose time is over give up what they hold; gangs are woken and read again
    reorder     features may have changed the order of gangs: units stand where the first of them does
    actions     enqueue, allocate, backfill, preempt, reclaim, reserve: as the config lists them
    end         features decide what sums up the cycle

What became of a decision's writes comes back through `report`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import msgspec

from enbloc.config import Config
from enbloc.engine.core.claims.claims import Claims
from enbloc.engine.core.commits import Commits, mark_others
from enbloc.engine.core.cycle import Cycle, Parts
from enbloc.engine.core.feature import Features
from enbloc.engine.core.intake import Intake
from enbloc.engine.core.obstacles import Obstacles
from enbloc.engine.core.ordering import GangOrder
from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.placement.request import surplus
from enbloc.engine.core.plugins.plugin import Plugins, load
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.rediagnose import rediagnose
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.tasks import GangState, pending_tasks
from enbloc.engine.core.why.cause import Cause
from enbloc.engine.core.why.details import Details, Obstacle, details
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter, next_to_be_attempted
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.decisions import Bind, Decision, Pending, TimeOut
from enbloc.engine.features import catalogue
from enbloc.engine.features.awaited.demand import QueueDemand
from enbloc.engine.tree_facts import of_config
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey

Timed = Callable[[str], AbstractContextManager[object]]
_UNTIMED: Final = nullcontext()


def _untimed(part: str) -> AbstractContextManager[object]:
    return _UNTIMED


class Engine:
    def __init__(self, config: Config, plain: bool = False) -> None:
        """`plain`: tasks are placed one at a time, every node scored anew; the reference for tests and benchmarks."""
        self.config = config
        self._decisions: list[Decision] = []
        self.now_ns = 0
        """When the last cycle ran."""
        self._parts = self._make_parts(config, plain)
        self.state = self._parts.state
        self.state.gang_table.when_forgotten = self._gang_gone
        self.features = self._parts.features
        self.features.fill(catalogue.of(self._parts, self._decide))

    def _make_parts(self, config: Config, plain: bool) -> Parts:
        runs = {action.name for action in config.actions}
        plugins, weights = load(config), config.scoring
        state = _make_state(config, plugins)
        placer = Placer(state, weights.pod_affinity, weights.spread, plain)
        order = GangOrder(state, plugins)
        units = Units(state, isolated=config.tenancy.isolated)
        features = Features()
        obstacles = Obstacles(config, state, units, order, features)
        commits = Commits(state, units)
        claims = Claims(state, units, obstacles, commits, self._decide)
        reporter = Reporter(state, self._decide, surplus, features)
        queues = SchedulingQueues(state, units, reporter, features, evicts=bool(runs & {"preempt", "reclaim"}))
        intake = Intake(config, state, units, order, queues, obstacles, commits, reporter, features, self._decide)
        return Parts(
            config=config,
            plugins=plugins,
            state=state,
            placer=placer,
            order=order,
            units=units,
            titles=Titles(config.tenancy.isolated),
            obstacles=obstacles,
            intake=intake,
            queues=queues,
            claims=claims,
            commits=commits,
            reporter=reporter,
            features=features,
            faults=[],
        )

    @property
    def parts(self) -> Parts:
        return self._parts

    # ---- a cycle

    def run(self, now_ns: int, timed: Timed = _untimed) -> list[Decision]:
        """One cycle: decides all that can be decided now. On an unchanged cluster that is nothing, at no cost (G9).
        `timed` is called with the name of each part that runs: a caller that has a clock measures it."""
        with timed("begin"):
            cycle = self.begin(now_ns)
        for action in self.config.actions:
            run = catalogue.ACTIONS.get(action.name)
            if run is not None:
                with timed(action.name):
                    run(cycle)
        with timed("end"):
            return self.end(cycle)

    def begin(self, now_ns: int) -> Cycle:
        """Takes in what changed since the last cycle."""
        self._decisions.clear()
        self.state.transactions.clear()
        self.now_ns = now_ns
        parts, state = self._parts, self.state
        state.settle()
        # Features look at gangs with those that they start with: units first. `Intake.read_all` settles them again.
        for complaint in parts.units.settle(state.dirty.values()):
            self._decide(complaint)
        self.features.begin(now_ns)
        self._set_timed()
        self._wake()
        self._read()
        if self.features.time_out(now_ns):
            parts.claims.cycle_begins(now_ns)  # what was held bears on what others may claim (R7)
            self._wake()
            self._read()
        is_reordered = self.features.gangs_read()
        if self.features.reorders and parts.intake.queue_units_anew():
            self._read()
        if is_reordered:
            parts.queues.wake_all()
        return Cycle(parts, now_ns, self._decisions)

    def _wake(self) -> None:
        """Activates gangs that the events could help (G9), and lets actions retry what failed."""
        events, parts = self.state.events, self._parts
        if not events:
            return
        self.features.retry(events)
        parts.queues.wake()
        events.clear()

    def _read(self) -> None:
        self._parts.intake.read_all()
        unmarked = list(self.state.unmarked.values())
        self.state.unmarked.clear()
        for gang in unmarked:
            for marked in mark_others(gang):
                self._decide(marked)

    def _set_timed(self) -> None:
        """Whether gangs of equal requests and different run times are equal may have changed (R8)."""
        timed = self.features.separates_run_times()
        if timed == self.state.timed:
            return
        self.state.timed = timed
        queues = self._parts.queues
        for gang in self.state.gangs.values():
            if queues.equivalence_of(gang) is not None and any(
                task.run_time_ns is not None for task in pending_tasks(gang)
            ):
                self.state.touch(gang)

    def end(self, cycle: Cycle) -> list[Decision]:
        self.features.cycle_ends(cycle.now_ns)
        self.compact()
        return list(self._decisions)

    def _decide(self, decision: Decision) -> None:
        self._decisions.append(decision)

    # ---- what the runtime asks and reports

    def was_attempted(self, key: GangKey) -> bool:
        """Whether a gang was attempted since it was enqueued (M6)."""
        gang, demand = self.state.gangs.get(key), self.features.find(QueueDemand)
        return gang is not None and demand is not None and demand.was_attempted(gang)

    def report(self, decision: Decision, uid: str = "", node: str = "") -> None:
        """A write of a decision was refused, or not sent because another one was refused: what was assumed does not
        hold. `uid`, `node`: the pod of that write, and where it was to be bound."""
        self.features.refused(decision, uid)
        if isinstance(decision, Bind | TimeOut):
            task = self.state.tasks.get(uid)
            if task is not None and (isinstance(decision, TimeOut) or task.node == node):
                self.state.forget_assumed(uid)

    def adopt_report(self, gang: GangState) -> None:
        """The gang's object says from before a restart that it waits: withdrawn when that no longer holds (G10)."""
        self._parts.reporter.was_reported(gang)

    def adopt_note(self, gang: GangState, note: str) -> None:
        """The gang says from before a restart that it released its claims: it does until it starts (K12)."""
        self._parts.claims.note(gang, ClaimKind.HOLD, note)

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens."""
        return self.features.due()

    def busy(self) -> bool:
        """Whether a cycle would have anything to look at. An idle cluster costs nothing."""
        state = self.state
        return bool(state.dirty or state.unmarked or state.events) or self.features.busy()

    def repeat(self, gangs: Sequence[GangKey]) -> None:
        """In the next cycle these gangs say again why they wait."""
        self._parts.reporter.repeat(gangs)

    def pending(self) -> list[Pending]:
        """Every gang whose minima are not all placed, and why (G10)."""
        return self._parts.reporter.pending(self._parts.queues.why)

    def causes(self) -> dict[str, Cause]:
        """By title, what each gang waits for whose minima are not all placed, as it was last found."""
        return self._parts.reporter.causes(self._parts.queues.why)

    def rediagnose(self) -> None:
        """Makes the numbers of all diagnoses anew, for the state that is going to be shown (G10)."""
        rediagnose(Cycle(self._parts, self.now_ns, []))

    def diagnosis(self, gang: GangState) -> Diagnosis:
        """Why a gang waits, as it was last found."""
        return self._parts.queues.why(gang) or next_to_be_attempted(gang)

    def details(self, gang: GangState) -> Details:
        """The figures behind the diagnosis of a gang that waits, and what is in its way."""
        why, titles = self.diagnosis(gang), self._parts.titles
        closed = Cycle(self._parts, self.now_ns, []).constraints(gang).closed
        found = details(self.state, gang, why, titles, closed) if closed else details(self.state, gang, why, titles)
        others = self.features.in_the_way(gang, why)
        names = dict.fromkeys((titles.of(other, gang.key.namespace), text) for other, text in others)
        kept = tuple(Obstacle("gang", name, text) for name, text in names)
        return msgspec.structs.replace(found, in_the_way=kept + found.in_the_way) if kept else found

    def compact(self) -> None:
        """Drops what is no longer used, once it is much. Where no cycles run the runtime has to call it."""
        if self.state.classes.needs_compaction():
            self.state.tidy(self._parts.queues.needed_classes())
        if self.state.queues.needs_compaction():
            self.state.tidy_queues()

    def force(self) -> None:
        """Wakes all gangs: after quiet this must decide nothing (G9, for tests)."""
        self._parts.queues.wake_all()
        for gang in self.state.gangs.values():
            self.state.touch(gang)

    def _gang_gone(self, gang: GangState) -> None:
        self.features.gang_gone(gang)


def _make_state(config: Config, plugins: Plugins) -> State:
    state = State(plugins, config.scoring.node_affinity, config.scoring.taint_toleration)
    for topology in config.topologies:
        state.trees.put(of_config(topology))
    for by_remaining in plugins.by_remaining:
        by_remaining.resources = state.resources
    return state
