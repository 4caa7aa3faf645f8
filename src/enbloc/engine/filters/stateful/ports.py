"""Host ports: one holder per node, protocol, port and address; the address 0.0.0.0 is every address."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import numpy as np

from enbloc.api import core
from enbloc.engine.filters.filter import Placeable
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints

REASON: Final = "node(s) didn't have free ports for the requested pod ports"
_EVERY: Final = "0.0.0.0"

HostPort = tuple[str, int, str]
"""Protocol, port, address."""


class HostPorts:
    """Which host ports are held on which rows. Knows only of tasks that hold one."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._wanted: dict[int, tuple[HostPort, ...]] = {}
        self._holders: dict[str, tuple[tuple[HostPort, ...], str]] = {}
        """Uid → its ports and the name of its node."""
        self._held: dict[tuple[str, int], dict[str, Ints]] = {}
        """Protocol and port → address → number of holders by row, as rows are numbered in `_numbering`."""
        self._numbering = (nodes.moves, nodes.count)

    def applies(self, task: Placeable) -> bool:
        return bool(self._ports(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        self._settle()
        size = self._nodes.count
        taken: Bools = np.zeros(size, np.bool_)
        for protocol, port, address in self._ports(task.cls):
            for other, rows in self._held.get((protocol, port), {}).items():
                if _EVERY in (address, other) or address == other:
                    taken |= rows[:size] > 0
        return [(REASON, ~taken)]

    def score(self, task: Placeable) -> Ints | None:
        return None

    def add(self, task: Placeable, row: int) -> None:
        ports = self._ports(task.cls)
        if ports:
            self._settle()
            self._holders[task.uid] = (ports, self._nodes.names[row])
            self._hold(ports, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is where it was added, or any number if its node has gone since."""
        if not self._ports(task.cls):
            return
        self._settle()
        ports, name = self._holders.pop(task.uid)
        now = self._nodes.rows.get(name)
        if now is not None:
            self._hold(ports, now, -1)

    def digest(self) -> object:
        """Whom each port is held by, and how often by row, of nodes that are there."""
        self._settle()
        held = [
            (key, address, self._nodes.names[row], int(rows[row]))
            for key, addresses in self._held.items()
            for address, rows in addresses.items()
            for row in np.flatnonzero(rows[: self._nodes.count] * self._nodes.alive[: self._nodes.count])
        ]
        return frozenset(held), frozenset(self._holders.items())

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._wanted = {ident: ports for ident, ports in self._wanted.items() if ident in alive}

    def _hold(self, ports: tuple[HostPort, ...], row: int, by: int) -> None:
        for protocol, port, address in ports:
            addresses = self._held.setdefault((protocol, port), {})
            rows = addresses.get(address)
            if rows is None:
                rows = addresses[address] = np.zeros(len(self._nodes.alive), np.int64)
            rows[row] += by
            if by < 0 and not rows.any():
                del addresses[address]
                if not addresses:
                    del self._held[protocol, port]

    def _settle(self) -> None:
        """Rows came, or got new numbers: what is held is written anew, which is rare and costs only the holders."""
        numbering = (self._nodes.moves, self._nodes.count)
        if numbering == self._numbering:
            return
        self._numbering = numbering
        self._held = {}
        for ports, name in self._holders.values():
            row = self._nodes.rows.get(name)
            if row is not None:
                self._hold(ports, row, 1)

    def _ports(self, cls: TaskClass) -> tuple[HostPort, ...]:
        found = self._wanted.get(cls.id)
        if found is None:
            found = self._wanted[cls.id] = host_ports(cls.spec)
        return found


def host_ports(spec: core.PodSpec) -> tuple[HostPort, ...]:
    """Each port once: of containers and of sidecars, which run as long; other init containers are over by then."""
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    found = {
        (port.protocol or "TCP", port.host_port, port.host_ip or _EVERY)
        for container in [*spec.containers, *sidecars]
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(sorted(found))
