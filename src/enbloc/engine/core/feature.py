"""Optional rules stand beside the core as features: one class a rule, asked at fixed points by kube-scheduler's names.

The spine knows this module and no feature. `features.catalogue` lists the features of a config in a fixed order. At
each point they are asked in that order, and one that does not override a point is not called there. Where order matters
a point is divided into stages that have names: `time_passes` before `cycle_begins`, `reserve` before `post_bind`.

No point before `reserve` changes anything but the transaction of the attempt, so that `rediagnose` runs the same spine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.events import EventKind

if TYPE_CHECKING:
    from enbloc.api.reasons import PendingReason
    from enbloc.engine.core.cycle import Cycle
    from enbloc.engine.core.ordering import Order
    from enbloc.engine.core.placement.constraints import Constraints
    from enbloc.engine.core.placement.request import PlacementRequest
    from enbloc.engine.core.queueing.scheduling_queue import Head, SchedulingQueue
    from enbloc.engine.core.state.transaction import Transaction
    from enbloc.engine.core.state.units import Unit
    from enbloc.engine.core.tables.resources import Bools
    from enbloc.engine.core.why.diagnosis import Diagnosis
    from enbloc.engine.decisions import Decision
    from enbloc.engine.events import ClusterEvents
    from enbloc.gangs.model import GangKey

F = TypeVar("F", bound="Feature")


class Tried(NamedTuple):
    """A feature attempted a gang in a way of its own."""

    failure: Diagnosis | None


class Unsignable(NamedTuple):
    """Returned by `sign`: no other gang is equal to this one."""

    own: Hashable = None
    """What decides about it besides what it asks for."""


class KeptRoom(Protocol):
    """Room that gangs of lower priority leave to others for now: a gang that does not fit beside it is tried again in
    the next cycle."""

    def take_for(self, gang: GangState) -> bool:
        """Takes the room that this gang must leave to others; whether there is any."""
        ...

    def uncounted(self) -> AbstractContextManager[None]:
        """While it lasts, queues do not use that room: it is no part of their share."""
        ...

    def release(self) -> None: ...


class Feature:
    """One optional rule. The order below is that of a cycle."""

    retried_on: frozenset[EventKind] = frozenset()
    """EventsToRegister: the events after which `retry_all` is called."""
    reorders = False
    """QueueSort: whether `gangs_read` and `reserve` change the sort keys of gangs."""

    # ---- moments of a cycle (Volcano, KAI: OnSessionOpen, OnSessionClose)

    def time_passes(self, now_ns: int) -> None:
        """Timers: gangs whose time has come are touched, so that they are read in this cycle."""

    def cycle_begins(self, now_ns: int) -> None:
        """After all timers: what changed gangs, or events, make void ends."""

    def gang_read(self, gang: GangState) -> None:
        """Facts of a gang changed. Whether it is satisfied is known (G7)."""

    def unit_read(self, unit: Sequence[GangState]) -> None:
        """Gangs that start together were read, and are queued as one."""

    def unit_judged(self, unit: Unit, obstacles: Mapping[GangKey, Diagnosis]) -> None:
        """Gangs that start together and have not were read: what keeps each from being attempted."""

    def attempted_apart(self, unit: Unit) -> Sequence[GangState]:
        """Of a unit of which some gangs cannot start: those that are attempted all the same, in order."""
        return ()

    def gang_gone(self, gang: GangState) -> None:
        """Nothing is left of a gang: one that comes later under its name is another one."""

    def time_out(self, now_ns: int) -> bool:
        """All gangs that changed were read. Whether gangs were touched since their time is up: they are read, too."""
        return False

    def gangs_read(self) -> bool:
        """After all time-outs. Whether gangs may start because the order changed: all are woken."""
        return False

    def cycle_ends(self, now_ns: int) -> None:
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

    # ---- the queues: PreEnqueue, Sign

    def pre_enqueue(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from being attempted, whatever room there is."""
        return None

    def never_fits(self, gang: GangState) -> Diagnosis | None:
        """What keeps a gang from starting whatever room becomes free."""
        return None

    def gates(self, gang: GangState) -> bool:
        """Whether a gang has to be enqueued by an action before it is attempted (M6)."""
        return False

    def why_gated(self, cycle: Cycle, gang: GangState) -> Diagnosis | None:
        """Why a gang that has to be enqueued is not, as things are."""
        return None

    def enqueued(self, gang: GangState) -> None:
        """A gang is enqueued: from now on its pods are created and attempted."""

    def held_back(self, gang: GangState) -> None:
        """A gang is not in line, since nothing about the cluster can help it (N1, S8)."""

    def attempted(self, gang: GangState) -> None:
        """A gang was attempted, or an equal one was, whether it fits or not."""

    def sign(self, gang: GangState) -> Hashable:
        """What else makes gangs of equal requests unequal when they are placed; `Unsignable`: equal to none."""
        return None

    def sign_at_admission(self, gang: GangState) -> Hashable:
        """The same for gangs that have to be enqueued."""
        return None

    def separates_run_times(self) -> bool:
        """Whether gangs of equal requests and different run times are unequal now."""
        return False

    def constrains_by_order(self) -> bool:
        """Whether constraints depend on a gang's place in the order: failures are not shared between orders."""
        return False

    # ---- serving one scheduling queue: QueueSort, PreFilter, Filter, PostFilter, Reserve, PostBind

    def serving_begins(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """Before the first gang of the queue is attempted."""

    def keeps_room(self, cycle: Cycle) -> KeptRoom | None:
        """Room that gangs of lower priority leave to others while a queue is served."""
        return None

    def in_line(self, queue: str) -> Sequence[GangState]:
        """Gangs that have a turn in a queue though they cannot be attempted yet."""
        return ()

    def not_now(self, queue: str, order: Order) -> bool:
        """Whether surplus of this order waits for the next cycle."""
        return False

    def during_turn(self, cycle: Cycle, head: Head) -> AbstractContextManager[object]:
        """For `rediagnose`: while it lasts, the state is as it would be in the turn of this gang."""
        return nullcontext()

    def filter(self, gang: GangState) -> Sequence[tuple[str, Bools]]:
        """Rows that are closed to all tasks of a gang, in whatever way it is placed, with the reason."""
        return ()

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """What else limits where a gang may be placed in its turn."""
        return constraints

    def attempt(self, cycle: Cycle, gang: GangState, constraints: Constraints, *, dry: bool) -> Tried | None:
        """For gangs that are placed in a way of their own: does so. `dry`: nothing stays placed."""
        return None

    def later(self, gang: GangState) -> Sequence[Task]:
        """Tasks of pods that do not exist yet and are placed with the minima of a gang (D5)."""
        return ()

    def rejects(self, cycle: Cycle, unit: Unit, gangs: Sequence[GangState]) -> Diagnosis | None:
        """Why gangs that start together do not start, wherever they might be placed. They are not attempted."""
        return None

    def alternatives(
        self, cycle: Cycle, gangs: Sequence[GangState], transaction: Transaction
    ) -> Iterator[list[PlacementRequest]]:
        """The gangs do not fit: what else they may ask for. Each is tried in the transaction as it is left here."""
        return iter(())

    def alike(self, cycle: Cycle, gang: GangState) -> Hashable:
        """Of gangs that are unequal to others: what they ask for, if of two that ask for the same the second fails in
        the same cycle as the first did; `None`: it depends on more."""
        return None

    def permit(self, cycle: Cycle, gang: GangState, constraints: Constraints, failure: Diagnosis) -> None:
        """The gang does not fit: tasks that do may wait on their nodes. Before any other way is looked for."""

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        """The gang does not fit. Whether it was started after all: then no other feature is asked."""
        return False

    def pre_bind(self, cycle: Cycle, gangs: Sequence[GangState], transaction: Transaction) -> Diagnosis | None:
        """Gangs fit as the transaction has placed them: what has to be decided before their Bindings. A diagnosis says
        why it cannot be; then nothing stays placed."""
        return None

    def reserve(self, gangs: Sequence[GangState]) -> None:
        """A decision is to bind tasks of these gangs: their room is taken from now on."""

    def post_bind(self, gang: GangState, *, commits: bool) -> None:
        """It was decided that tasks of a gang are bound. `commits`: its minima are met by them."""

    def served(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        """The turn of a gang is over, in which tasks of it were bound."""

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """All gangs of the queue had their turn."""

    # ---- words

    def says_later(self, gang: GangState) -> bool:
        """Whether a gang says why it waits only once the queue was served, since until then its pods have places."""
        return False

    def explain(self, gang: GangState, reason: PendingReason) -> Iterator[str]:
        """What is added to the reason for which a gang waits."""
        return iter(())

    def about_room(self, gang: GangState) -> Iterator[str]:
        """Where room is kept for the gang, or why none is: it ends what the gang says."""
        return iter(())

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        """Gangs that keep room which this one could use, and how they do."""
        return iter(())

    def expected_start(self, gang: GangState) -> int | None:
        """When the gang is expected to start, if that was forecast."""
        return None


POINTS: Final = tuple(name for name, member in vars(Feature).items() if callable(member) and not name.startswith("_"))

_Asked = tuple[Callable[..., Any], ...]


def _tell(asked: _Asked) -> Callable[..., None]:
    def tell(*facts: Any, **named: Any) -> None:
        for ask in asked:
            ask(*facts, **named)

    return tell


def _first(asked: _Asked) -> Callable[..., Any]:
    """The first answer: the others are not asked."""

    def first(*facts: Any, **named: Any) -> Any:
        for ask in asked:
            if (answer := ask(*facts, **named)) is not None:
                return answer
        return None

    return first


def _all_of(asked: _Asked) -> Callable[..., list[Any]]:
    return lambda *facts: [answer for ask in asked for answer in ask(*facts)]


def _chained(asked: _Asked) -> Callable[..., Iterator[Any]]:
    """One after the other, as far as answers are asked for."""
    return lambda *facts: (answer for ask in asked for answer in ask(*facts))


def _from_each(asked: _Asked) -> Callable[..., Hashable]:
    return lambda *facts: tuple([ask(*facts) for ask in asked])


def _any(asked: _Asked) -> Callable[..., bool]:
    return lambda *facts: any([ask(*facts) for ask in asked])  # noqa: C419  each is asked


def _until_one(asked: _Asked) -> Callable[..., bool]:
    return lambda *facts: any(ask(*facts) for ask in asked)


def _least(asked: _Asked) -> Callable[[], int | None]:
    return lambda: min((answer for ask in asked if (answer := ask()) is not None), default=None)


def _narrowed(asked: _Asked) -> Callable[..., Constraints]:
    def narrowed(cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints) -> Constraints:
        for ask in asked:
            constraints = ask(cycle, queue, gang, constraints)
        return constraints

    return narrowed


def _within_all(asked: _Asked) -> Callable[..., ExitStack]:
    def within(cycle: Cycle, head: Head) -> ExitStack:
        stack = ExitStack()
        for ask in asked:
            stack.enter_context(ask(cycle, head))
        return stack

    return within


_Combine = Callable[[_Asked], Callable[..., Any]]
_TOGETHER: Final[Mapping[_Combine, str]] = {
    _first: "pre_enqueue never_fits why_gated keeps_room attempt rejects alike pre_bind expected_start",
    _all_of: "attempted_apart in_line later filter",
    _chained: "alternatives explain about_room in_the_way",
    _from_each: "sign sign_at_admission",
    _any: "time_out gangs_read",
    _until_one: "busy gates separates_run_times constrains_by_order not_now post_filter says_later",
    _least: "due",
    _narrowed: "pre_filter",
    _within_all: "during_turn",
}
"""How the answers of several features are put together; of all other points none is expected."""


class Features(Feature):
    """The features of one engine, asked as one. Parts of the core are given it when it is still empty."""

    if TYPE_CHECKING:

        def sign(self, gang: GangState) -> tuple[Hashable, ...]: ...

    def __init__(self) -> None:
        self.fill(())

    def fill(self, features: Sequence[Feature]) -> None:
        """Sets the features, in the order in which they are asked. One that does not override a point is not asked
        there."""
        self.all = tuple(features)
        self._by_type: dict[type, Any] = {type(feature): feature for feature in features}
        self.reorders = any(feature.reorders for feature in self.all)
        together = {point: how for how, points in _TOGETHER.items() for point in points.split()}
        for point in POINTS:
            base = getattr(Feature, point)
            asked = tuple(getattr(one, point) for one in self.all if getattr(type(one), point) is not base)
            combine: _Combine = together.get(point, _tell)
            is_alone = len(asked) == 1 and combine in (_tell, _first, _narrowed)
            setattr(self, point, asked[0] if is_alone else combine(asked))

    def find(self, kind: type[F]) -> F | None:
        """For those above the engine, and features that build on another one."""
        found: F | None = self._by_type.get(kind)
        return found

    def get(self, kind: type[F]) -> F:
        """The same of a feature that is in every catalogue."""
        found = self.find(kind)
        assert found is not None, f"{kind.__name__} is not in the catalogue"
        return found

    def begin(self, now_ns: int) -> None:
        """Timers first: what they touch is looked at by those that review what changed."""
        self.time_passes(now_ns)
        self.cycle_begins(now_ns)

    def retry(self, events: ClusterEvents) -> None:
        """What failed may succeed after these events."""
        for feature in self.all:
            if feature.retried_on and events.any_of(feature.retried_on):
                feature.retry_all()
