"""One scheduling cycle: what actions may see and do.

An action is a function of a `Cycle`. It reads gangs from the queues, plans on the state in transactions, and ends each
gang's turn with `bind` (it starts), a claim (it keeps room), or `queues.mark_unschedulable` (it waits, and says why).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from enbloc.config import Config
from enbloc.engine.core.claims.claims import Claims
from enbloc.engine.core.claims.room import fits_now
from enbloc.engine.core.commits import Commits
from enbloc.engine.core.faults import culprit
from enbloc.engine.core.feature import Features
from enbloc.engine.core.intake import Intake
from enbloc.engine.core.obstacles import Obstacles
from enbloc.engine.core.ordering import GangOrder, Order
from enbloc.engine.core.placement.attempt import Placer, attempt
from enbloc.engine.core.placement.binding import binding
from enbloc.engine.core.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.commit_marks import Minima
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.reporter import Reporter
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.decisions import Decision, InDomains, PlannedDomains
from enbloc.engine.events import EventKind
from enbloc.faults import last_line
from enbloc.gangs.model import GangKey


class Parts(NamedTuple):
    """The parts of the engine that actions use, made once."""

    config: Config
    plugins: Plugins
    state: State
    placer: Placer
    order: GangOrder
    units: Units
    titles: Titles
    obstacles: Obstacles
    intake: Intake
    queues: SchedulingQueues
    claims: Claims
    commits: Commits
    reporter: Reporter
    features: Features
    """Of the parts above and of the optional rules, in the order in which they are asked."""
    faults: list[tuple[GangKey, Exception]]
    """What raised in turns of gangs that were undone; the runtime takes it (S8)."""


class Turn:
    """The turn of one gang in an action: what raises in it is this gang's own fault (S8)."""

    __slots__ = ("_cycle", "_decided", "_gang", "failed")

    def __init__(self, cycle: Cycle, gang: GangState) -> None:
        self._cycle = cycle
        self._gang = gang
        self.failed = False

    def __enter__(self) -> Turn:
        self._cycle.state.transactions.clear()
        self._decided = self._cycle.decided
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: object) -> bool:
        if isinstance(failure, Exception) and self._cycle.decided == self._decided:
            self.failed = self._cycle.undo(self._gang, failure)
        return self.failed


class Cycle:
    def __init__(self, parts: Parts, now_ns: int, decisions: list[Decision]) -> None:
        self.parts = parts
        self.now_ns = now_ns
        self._decisions = decisions
        self.served: list[tuple[str, Order]] = []
        """Queue and order of every gang that was bound in this cycle (R3)."""
        self.config = parts.config
        self.state = parts.state
        self.placer = parts.placer
        self.order = parts.order
        self.units = parts.units
        self.claims = parts.claims
        self.queues = parts.queues
        self.intake = parts.intake
        self.obstacles = parts.obstacles
        self.reporter = parts.reporter
        self.titles = parts.titles
        self.features = parts.features

    def facts(self) -> object:
        """Differs if anything was placed, even for a moment, or queues may use more or less."""
        queues = self.state.queues
        return (self.state.nodes.version, queues.used_version, queues.version, len(self.served))

    # ---- faults

    @property
    def decided(self) -> int:
        """How much was decided so far."""
        return len(self._decisions)

    def undo(self, gang: GangState, failure: Exception) -> bool:
        """Something raised in a gang's turn, before anything was decided: what it tried is undone, and the gang whose
        objects made it raise is held (S8). `False`: that the state is as it was cannot be shown."""
        state = self.state
        try:
            for transaction in reversed(state.transactions):
                transaction.rollback()
        except Exception:
            return False
        if not state.is_intact():
            return False
        blamed = state.gangs.get(culprit(failure) or gang.key, gang)
        self.parts.faults.append((blamed.key, failure))
        state.put_gang(msgspec.structs.replace(blamed.spec, fault=last_line(failure)))
        for one in (blamed, *self.units.mates(gang)):
            self.queues.remove(one)
            state.touch(one)
        return True

    # ---- what is placed in a turn

    def starting(self, gang: GangState) -> list[GangState]:
        """The gangs that are placed in the turn of a gang, in order: all that start with it, or itself."""
        unit = self.units.of(gang)
        return [gang] if gang.satisfied or unit.is_alone else unit.to_start(self.order)

    def asked(self, gang: GangState, choice: Minima | None = None) -> PlacementRequest:
        """What a gang needs to start, room for pods that do not exist yet among it (D5). `choice`: other minima than
        those that count now (T0)."""
        request, later = request_of(gang, choice=choice), self.features.later(gang) if gang.spec.later else ()
        return request._replace(later=later) if later else request

    # ---- room that is kept for other gangs, and for the gang itself

    def constraints(
        self,
        gang: GangState,
        exclude: frozenset[GangKey] = frozenset(),
        *,
        honor_run_times: bool = True,
        together: bool = True,
    ) -> Constraints:
        """Closes nodes that are reserved for other gangs (R5), or needed by partially bound ones (G11). Reservations of
        the gangs in `exclude` are ignored; so are those of the gangs that it starts `together` with: they are its own.
        `honor_run_times=False` disables R8: pods that wait for evictions, or are held, may not end before a reservation
        is due."""
        closing, kept = self.claims.closing, list(self.features.filter(gang))
        if not kept and not closing:
            return UNCONSTRAINED
        mates = self.units.partners(gang)
        if together and len(mates) > 1:
            exclude |= {mate.key for mate in mates}
        freed_rows = [row for _, row in self.freed(mates)]
        now_ns = self.now_ns if honor_run_times else None

        def closed(task: Task) -> list[tuple[str, Bools]]:
            reserved = closing.closed_to(task.gang, task, now_ns, exclude)
            if reserved is not None and freed_rows:  # room that is freed for the gang is its own
                reserved = reserved.copy()
                reserved[freed_rows] = False
            return [*kept, (diagnosis.RESERVED, reserved)] if reserved is not None else kept

        return Constraints(closed)

    def take_claimed_room(
        self, transaction: Transaction, gang: GangState, later: Sequence[Task] = ()
    ) -> list[tuple[Task, int]]:
        """Within a transaction: room that is freed for the gang is free, and its reserved tasks, with pods of `later`
        waves, are placed on their nodes as far as they fit (R7). Other gangs nominated to those nodes are taken off
        meanwhile, and returned: `restore` puts them back."""
        return self.claims.take(self.placer, transaction, gang, later)

    def freed(self, gangs: Sequence[GangState]) -> list[tuple[Task, int]]:
        """Tasks of the gangs and the rows where room was, or is being, freed for them (P3)."""
        rows = self.state.nodes.rows
        return [(task, rows[task.node]) for gang in gangs for task in self.claims.nominated(gang)]

    def attempt_where_freed(
        self,
        requests: Sequence[PlacementRequest],
        places: Sequence[tuple[Task, int]],
        transaction: Transaction,
        constraints: Constraints,
    ) -> bool:
        """Whether gangs fit with their pods in the places that were `freed` for them. The plan found these (P1); task
        after task finds others first, which may not do where pods bear on each other (G6). `False`: nothing is
        placed."""
        if not places:
            return False
        lifted: list[tuple[Task, int]] = []
        for request in requests:
            lifted += self.take_claimed_room(transaction, request.gang, request.later)
        for task, row in places:
            if task.status is TaskStatus.PENDING and self.placer.queue_room(task) and fits_now(self.state, task, row):
                transaction.place([task], [row])
        failure = attempt(self.placer, requests, transaction, constraints)
        self.restore(transaction, lifted)
        return failure is None

    def restore(self, transaction: Transaction, lifted: Sequence[tuple[Task, int]]) -> None:
        """Nominates the tasks that were taken off again, unless the transaction was rolled back anyway."""
        for task, row in lifted:
            if task.status is TaskStatus.PENDING:
                transaction.restore(task, row, TaskStatus.NOMINATED)

    # ---- decisions

    def decide(self, decision: Decision) -> None:
        self._decisions.append(decision)

    def publish(self, planned: Mapping[GangKey, Sequence[PlannedDomains]]) -> None:
        """Publishes where pods that must or should be together were placed (T2)."""
        for key, parts in planned.items():
            self.decide(InDomains(key, tuple(parts)))

    def bind(self, gangs: Sequence[GangState], placed: Sequence[Task], commits: bool) -> None:
        """Binds the tasks that were placed, of one gang or of gangs that start together, by one decision. If it
        `commits`, its very last Binding completes the minima of all of them (K7, G11)."""
        for gang in gangs:
            self.features.attempted(gang)
            gang.note("is bound with", len(placed), "pods")
            self.claims.drop_notes(gang)
            self.served.append((gang.spec.queue, self.order(gang)))
        self.features.reserve(gangs)
        self.state.events.add(EventKind.POD_PLACED)
        self.decide(binding(self.state, gangs, placed, commits))
        for gang in gangs:
            self.features.post_bind(gang, commits=commits)
            if commits or gang.need.ready:
                self.reporter.withdraw(gang)
