"""Publishes when gangs that wait are expected to start, and keeps that up to date. Forecasts come from the mode of
backfill, and for gangs with reserved nodes from `run_times`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from enbloc.engine.core.claims.closed_nodes import ClosedNodes
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.run_times import ENDLESS, start_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.decisions import Decision, Expect
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

Amounts = dict[int, int]


class Start(NamedTuple):
    """When a gang could start, and what it leaves then on the rows it would use."""

    shadow_time_ns: int
    left: dict[int, Amounts]
    """Row → column → what is free there at the shadow time beside the gang (Slurm: extra nodes)."""


class ExpectedStarts(Feature):
    def __init__(self, state: State, closing: ClosedNodes, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._closing = closing
        self._decide = decide
        self._now_ns = 0
        self._published: dict[GangKey, int] = {}
        self._forecast_version: dict[GangKey, int] = {}
        """The nodes' version when a gang's start was last forecast."""
        self._changes: dict[GangKey, int | None] = {}
        """Starts to publish at the end of this cycle: the last one of each gang."""
        self._heads: dict[str, tuple[GangKey, Start]] = {}
        """Queue → its first gang after the last cycle, and its forecast start."""

    def cycle_begins(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def gangs_read(self) -> bool:
        if self._closing:
            self.forecast()
        return False

    def expected_start(self, gang: GangState) -> int | None:
        """The published start of a gang."""
        start_ns = self._published.get(gang.key, ENDLESS)
        return start_ns if start_ns != ENDLESS else None

    def forecast(self) -> None:
        """Forecasts when gangs with reservations could start: pods that end before that may use their nodes."""
        self._forget()
        nodes, due_ns = self._state.nodes, self._closing.due_ns
        for gang in self._closing.gangs():
            rows = [nodes.rows[node] for node in self._closing.of(gang).values() if node in nodes.rows]
            if gang.key in due_ns and not (nodes.stamp[rows] > self._forecast_version.get(gang.key, -1)).any():
                continue
            start_ns, was_ns = start_of(self._state, self._closing, gang, self._now_ns), due_ns.get(gang.key)
            due_ns[gang.key] = start_ns
            self._forecast_version[gang.key] = nodes.version
            if was_ns is not None and start_ns > was_ns:
                self._state.events.add(EventKind.FORECAST_CHANGED)  # more pods end in time
            self._publish(gang.key, start_ns)

    def gang_gone(self, gang: GangState) -> None:
        self._drop(gang.key)

    def _drop(self, key: GangKey) -> None:
        self._published.pop(key, None)
        self._forecast_version.pop(key, None)

    def set_heads(self, heads: Mapping[str, tuple[GangKey, Start]]) -> None:
        """If a gang that others must not delay, its start or its rows changed, the gangs behind it are retried."""
        if heads != self._heads:
            self._heads = dict(heads)
            self._state.events.add(EventKind.FORECAST_CHANGED)
        self._forget()
        for key, start in heads.values():
            if key not in self._closing.due_ns:  # the forecast of reserved nodes is more exact
                self._publish(key, start.shadow_time_ns)

    def _forget(self) -> None:
        """Withdraws the start of gangs that neither have a reservation nor are first in a queue."""
        heads = {key for key, _ in self._heads.values()}
        for key in [key for key in self._published if key not in self._closing.due_ns and key not in heads]:
            self._drop(key)
            self._changes[key] = None

    def _publish(self, key: GangKey, start_ns: int) -> None:
        """An overdue start is not published: it may be any moment."""
        if start_ns != self._published.get(key, 0) and start_ns > self._now_ns:
            self._published[key] = start_ns
            self._changes[key] = start_ns if start_ns != ENDLESS else None

    def cycle_ends(self, now_ns: int) -> None:
        """Published at the end, since a reservation may have been replaced within it."""
        changes, self._changes = self._changes, {}
        for key, start_ns in changes.items():
            self._decide(Expect(key, start_ns))
