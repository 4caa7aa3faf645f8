"""Host ports: one user per node, protocol, port and address; 0.0.0.0 conflicts with every address."""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar, Final

import numpy as np

from enbloc.api import core
from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.events import NODE_EVENTS, EventKind

REASON: Final = "node(s) didn't have free ports for the requested pod ports"
_ANY_ADDRESS: Final = "0.0.0.0"

HostPort = tuple[str, int, str]
"""Protocol, port, address."""


class HostPorts:
    """Which host ports are used on which rows. Keeps only tasks that use one."""

    wakes_on: ClassVar[frozenset[EventKind]] = NODE_EVENTS | {EventKind.ROOM_FREED}

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._ports_of_class: dict[int, tuple[HostPort, ...]] = {}
        self._users: dict[str, tuple[tuple[HostPort, ...], str]] = {}
        """By uid: the ports of a task and the name of its node."""
        self._used: dict[tuple[str, int], dict[str, Ints]] = {}
        """Protocol and port → address → number of users by row, as rows are numbered in `_numbering`."""
        self._numbering = (nodes.moves, nodes.count)

    def applies(self, task: Placeable) -> bool:
        return bool(self._ports(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        self._settle()
        size = self._nodes.count
        taken: Bools = np.zeros(size, np.bool_)
        for protocol, port, address in self._ports(task.cls):
            for other, rows in self._used.get((protocol, port), {}).items():
                if _ANY_ADDRESS in (address, other) or address == other:
                    taken |= rows[:size] > 0
        return [(REASON, ~taken)]

    def add(self, task: Placeable, row: int) -> None:
        ports = self._ports(task.cls)
        if ports:
            self._settle()
            self._users[task.uid] = (ports, self._nodes.names[row])
            self._use(ports, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is where it was added, or any number if its node was deleted since."""
        if not self._ports(task.cls):
            return
        self._settle()
        ports, name = self._users.pop(task.uid)
        now = self._nodes.rows.get(name)
        if now is not None:
            self._use(ports, now, -1)

    def digest(self) -> object:
        """The users of each port, and their number on each live node."""
        self._settle()
        used = [
            (key, address, self._nodes.names[row], int(rows[row]))
            for key, addresses in self._used.items()
            for address, rows in addresses.items()
            for row in np.flatnonzero(rows[: self._nodes.count] * self._nodes.alive[: self._nodes.count])
        ]
        return frozenset(used), frozenset(self._users.items())

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._ports_of_class = {ident: ports for ident, ports in self._ports_of_class.items() if ident in class_ids}

    def _use(self, ports: tuple[HostPort, ...], row: int, sign: int) -> None:
        """Counts one more user of the ports on a row (1), or one fewer (-1)."""
        for protocol, port, address in ports:
            addresses = self._used.setdefault((protocol, port), {})
            rows = addresses.get(address)
            if rows is None:
                rows = addresses[address] = np.zeros(len(self._nodes.alive), np.int64)
            rows[row] += sign
            if sign < 0 and not rows.any():
                del addresses[address]
                if not addresses:
                    del self._used[protocol, port]

    def _settle(self) -> None:
        """Rows were added or renumbered: counts again, which is rare and costs only the tasks with ports."""
        numbering = (self._nodes.moves, self._nodes.count)
        if numbering == self._numbering:
            return
        self._numbering = numbering
        self._used = {}
        for ports, name in self._users.values():
            row = self._nodes.rows.get(name)
            if row is not None:
                self._use(ports, row, 1)

    def _ports(self, cls: TaskClass) -> tuple[HostPort, ...]:
        found = self._ports_of_class.get(cls.id)
        if found is None:
            found = self._ports_of_class[cls.id] = host_ports(cls.spec)
        return found


def host_ports(spec: core.PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars, each once; other init containers have ended when they run."""
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    found = {
        (port.protocol or "TCP", port.host_port, port.host_ip or _ANY_ADDRESS)
        for container in [*spec.containers, *sidecars]
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(sorted(found))
