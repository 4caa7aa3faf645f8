"""Optional rules stand beside the core as features: one class a rule, asked at fixed points by kube-scheduler's names.

The spine (`intake`, `queue_loop`, `allocate`, `cycle`) knows this module and no feature. `features.catalogue` lists the
features of a config in a fixed order; at each point they are asked in that order. A feature that does not override a
point is not called there. All points before `reserve` change nothing but the transaction of the attempt, so that
`rediagnose` may ask them too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.events import EventKind

if TYPE_CHECKING:
    from enbloc.api.reasons import PendingReason
    from enbloc.engine.core.cycle import Cycle
    from enbloc.engine.core.placement.constraints import Constraints
    from enbloc.engine.core.queueing.scheduling_queue import Head, SchedulingQueue
    from enbloc.engine.core.why.diagnosis import Diagnosis
    from enbloc.engine.decisions import Decision

F = TypeVar("F", bound="Feature")

UNSIGNABLE: Final = object()
"""Returned by `sign`: no other gang is equal to this one."""


class Feature:
    """One optional rule. The order below is that of a cycle."""

    retried_on: frozenset[EventKind] = frozenset()
    """EnqueueExtensions: the events after which `retry_all` is called."""
    reorders = False
    """QueueSort: whether `reserve` changes the sort keys of gangs that are lined up."""

    # ---- moments of a cycle (KAI, Volcano: OnSessionOpen, OnSessionClose)

    def cycle_begins(self, now_ns: int) -> None:
        """Time has passed, objects have changed; gangs were not read yet."""

    def gang_read(self, gang: GangState) -> None:
        """Facts of a gang changed. Whether it is satisfied is known (G7)."""

    def unit_read(self, unit: Sequence[GangState]) -> None:
        """Gangs that start together were read, and are queued as one."""

    def gang_gone(self, gang: GangState) -> None:
        """Nothing is left of a gang: one that comes later under its name is another one."""

    def gangs_read(self) -> bool:
        """All gangs that changed were read. Whether gangs may start because the order changed: all are woken."""
        return False

    def cycle_ends(self) -> None:
        """Decisions that sum up the cycle."""

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens."""
        return None

    def busy(self) -> bool:
        """Whether a cycle is needed though nothing happened."""
        return False

    def refused(self, decision: Decision, uid: str) -> None:
        """A write of a decision was refused."""

    def retry_all(self) -> None:
        """An event of `retried_on` happened: what failed may succeed now."""

    # ---- the queue: PreEnqueue, Sign

    def pre_enqueue(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from being attempted, whatever room there is."""
        return None

    def sign(self, gang: GangState) -> Hashable:
        """What else makes gangs of equal requests unequal when they are placed; `UNSIGNABLE`: equal to none."""
        return None

    def sign_at_admission(self, gang: GangState) -> Hashable:
        """The same for gangs that wait to be enqueued (M6)."""
        return None

    def separates_run_times(self) -> bool:
        """Whether gangs of equal requests and different run times are unequal now."""
        return False

    def constrains_by_order(self) -> bool:
        """Whether `pre_filter` depends on a gang's place in the order: failures are not shared between orders."""
        return False

    # ---- serving one scheduling queue: PreFilter, PostFilter, Reserve, PostBind

    def serving_begins(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """Before the first gang of the queue is attempted."""

    def during_turn(self, cycle: Cycle, head: Head) -> AbstractContextManager[object]:
        """For `rediagnose`: while it lasts, the state is as it would be in the turn of this gang."""
        return nullcontext()

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """What else limits where the gang may be placed."""
        return constraints

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        """The gang does not fit. Whether it was started after all: then no other feature is asked."""
        return False

    def reserve(self, gangs: Sequence[GangState]) -> None:
        """A decision binds tasks of these gangs: their room is taken from now on."""

    def post_bind(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        """The turn of a gang is over: it was bound."""

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """All gangs of the queue had their turn."""

    # ---- words

    def explain(self, gang: GangState, reason: PendingReason) -> str:
        """What is added to the reason for which a gang waits; empty: nothing."""
        return ""

    def about_room(self, gang: GangState) -> Iterator[str]:
        """Where room is kept for the gang, or why none is: it ends what the gang says."""
        return iter(())

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        """Gangs that keep room which this one could use, and how they do."""
        return iter(())

    def expected_start(self, gang: GangState) -> int | None:
        """When the gang is expected to start, if that was forecast."""
        return None


class Features:
    """The features of one engine, by point. Only those that override a point are asked there."""

    def __init__(self, features: Sequence[Feature] = ()) -> None:
        self.all = tuple(features)
        self.reorders = any(feature.reorders for feature in self.all)
        self.cycle_begins = self._at("cycle_begins")
        self.gang_read = self._at("gang_read")
        self.unit_read = self._at("unit_read")
        self.gang_gone = self._at("gang_gone")
        self.retry_all = [(one.retried_on, one.retry_all) for one in self.all if one.retried_on]
        self._during_turn = self._at("during_turn")
        self.gangs_read = self._at("gangs_read")
        self.cycle_ends = self._at("cycle_ends")
        self.due = self._at("due")
        self.busy = self._at("busy")
        self.refused = self._at("refused")
        self.serving_begins = self._at("serving_begins")
        self.serving_ends = self._at("serving_ends")
        self.reserve = self._at("reserve")
        self.post_bind = self._at("post_bind")
        self._pre_enqueue = self._at("pre_enqueue")
        self._sign = self._at("sign")
        self._sign_at_admission = self._at("sign_at_admission")
        self._separates_run_times = self._at("separates_run_times")
        self._constrains_by_order = self._at("constrains_by_order")
        self._pre_filter = self._at("pre_filter")
        self._post_filter = self._at("post_filter")
        self._explain = self._at("explain")
        self._about_room = self._at("about_room")
        self._in_the_way = self._at("in_the_way")
        self._expected_start = self._at("expected_start")

    def _at(self, point: str) -> tuple[Callable[..., Any], ...]:
        base = getattr(Feature, point)
        return tuple(getattr(one, point) for one in self.all if getattr(type(one), point) is not base)

    def find(self, kind: type[F]) -> F | None:
        """For those above the engine, and features that build on another one."""
        return next((one for one in self.all if isinstance(one, kind)), None)

    def pre_enqueue(self, gang: GangState) -> Diagnosis | None:
        return next((why for ask in self._pre_enqueue if (why := ask(gang)) is not None), None)

    def sign(self, gang: GangState) -> tuple[Hashable, ...]:
        return tuple(ask(gang) for ask in self._sign)

    def sign_at_admission(self, gang: GangState) -> tuple[Hashable, ...]:
        return tuple(ask(gang) for ask in self._sign_at_admission)

    def separates_run_times(self) -> bool:
        return any(ask() for ask in self._separates_run_times)

    def constrains_by_order(self) -> bool:
        return any(ask() for ask in self._constrains_by_order)

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        for ask in self._pre_filter:
            constraints = ask(cycle, queue, gang, constraints)
        return constraints

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        return any(ask(cycle, queue, gang, constraints, failure) for ask in self._post_filter)

    def during_turn(self, cycle: Cycle, head: Head) -> ExitStack:
        stack = ExitStack()
        for ask in self._during_turn:
            stack.enter_context(ask(cycle, head))
        return stack

    def explain(self, gang: GangState, reason: PendingReason) -> Iterator[str]:
        return (text for ask in self._explain if (text := ask(gang, reason)))

    def about_room(self, gang: GangState) -> Iterator[str]:
        return (text for ask in self._about_room for text in ask(gang))

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        return (found for ask in self._in_the_way for found in ask(gang, why))

    def expected_start(self, gang: GangState) -> int | None:
        return next((at for ask in self._expected_start if (at := ask(gang)) is not None), None)
