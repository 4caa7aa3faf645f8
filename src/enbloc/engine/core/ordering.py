"""The order in which gangs are served (G8): inside a queue, and across queues.

Partially bound gangs, victims, advice and `inspect` sort by age and name without plugins: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import Any, NamedTuple

from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.queues import QueueOrder
from enbloc.engine.core.tables.tasks import GangState


class Band(IntEnum):
    """What a gang waits for: minima come before surplus among gangs that are otherwise equal (G3)."""

    MINIMA = 0
    SURPLUS = 1


class Order(NamedTuple):
    """The sort key of a gang inside its queue: lower is served first."""

    keys: tuple[Any, ...]
    """The keys of the plugins that order gangs, in the order of the config's tiers."""
    is_last: bool
    """Whether it comes after the minima of other gangs: surplus does (G3), unless it is left over of a gang that was
    satisfied before and whose dialect schedules that as ordinary pods (G7)."""
    is_whole: bool
    """False for a partially bound gang: it is completed before others (G11)."""
    created_ns: int
    namespace: str
    title: str
    band: Band
    account: str = ""
    """Whose usage over time is among the keys (G12): keys of two accounts may be equal now and differ later."""

    @property
    def level(self) -> tuple[Hashable, ...]:
        """Equal for gangs that differ only in age and name: such gangs may share an equivalence class."""
        keys = (self.keys, self.account) if self.account else self.keys
        return (keys, self.is_last, self.is_whole, self.band)


class OrderAcrossQueues(NamedTuple):
    """The sort key of a gang among those of all queues."""

    of_queue: QueueOrder
    order: Order


class GangOrder:
    """Computes order keys from facts; comparing them changes nothing (O4)."""

    def __init__(self, state: State, plugins: Plugins) -> None:
        self._state = state
        self._plugins = plugins

    def __call__(self, gang: GangState, band: Band = Band.MINIMA) -> Order:
        """The order of a gang inside its queue."""
        keys = tuple(key for order in self._plugins.gang_order for key in order(gang))
        return self._with(keys, gang, band)

    def running(self, gang: GangState, now_ns: int) -> Order:
        """The order of a gang that runs among gangs that wait for their minima, by what is left of it."""
        keys = tuple(key for order in self._plugins.running_order for key in order(gang, now_ns))
        return self._with(keys, gang, Band.MINIMA)

    def _with(self, keys: tuple[Any, ...], gang: GangState, band: Band) -> Order:
        spec = gang.spec
        is_last = band is Band.SURPLUS and not (gang.satisfied and spec.leftovers_in_turn)
        is_whole = gang.partial_since_ns is None
        account = "".join(of(gang) for of in self._plugins.accounts)
        return Order(keys, is_last, is_whole, spec.created_ns, spec.key.namespace, spec.title, band, account)

    def across_queues(self, gang: GangState) -> OrderAcrossQueues:
        """The order of gangs of different queues: by queue first, then inside the queue."""
        queues = self._state.queues
        of_queue = queues.order(queues.get(gang.spec.queue), self._state.foreign_room.shared())
        return OrderAcrossQueues(of_queue, self(gang))
