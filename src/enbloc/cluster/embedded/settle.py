"""The settle loop of an embedded cluster: garbage collection, nodes, controllers and scheduler, round by round, until a
round changes nothing.

The clock, recording and waiting for the next timer are the caller's: `sim` at an instant of virtual time, `up` whenever
something was written or is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node_player import NodePlayer

ROUNDS: Final = 1_000
"""At most this many rounds in a row may write: components that answer each other's writes for longer have a bug."""


class Restless(Exception):
    """The components of a cluster do not settle."""


class Plane(Protocol):
    """Controllers and scheduler of one cluster, stepped by the owner of the clock."""

    def reconcile(self, now_ns: int, /) -> bool:
        """Runs the controllers until none has a write left; whether any was written."""
        ...

    def schedule(self, now_ns: int, /) -> bool:
        """Runs a scheduling cycle; whether anything was written."""
        ...

    def due(self) -> int | None:
        """The next instant (ns) at which a timer fires; `None` without one."""
        ...

    def pending(self) -> list[dict[str, Any]]:
        """The gangs that wait, as JSON."""
        ...

    def close(self) -> None: ...


class Timed(Protocol):
    """Something that acts at times of its own, such as a scenario."""

    def due(self) -> int | None: ...

    def run(self, now_ns: int, /) -> None: ...


def settle(
    store: Store,
    nodes: NodePlayer,
    plane: Plane,
    others: tuple[Timed, ...] = (),
    limit: Callable[[], int] = lambda: ROUNDS,
) -> Iterator[bool]:
    """Runs rounds until one changes nothing. Yields after each whether it changed something. Raises `Restless`."""
    rounds = 0
    while True:
        version = store.version
        for other in others:
            other.run(store.now())
        store.collect_garbage()
        store.settle()
        nodes.observe()
        nodes.run(store.now())
        plane.reconcile(store.now())
        store.settle()  # as an API server has it: what a pod uses of a quota is known when the pod is
        plane.schedule(store.now())
        yield store.version != version
        if store.version == version:
            return
        rounds += 1
        if rounds > limit():
            raise Restless(f"objects kept changing for {rounds:,} rounds")
