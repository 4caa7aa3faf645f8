"""ReadWriteOncePod: a claim of that access mode has one user in the whole cluster.

Users are counted for every claim, whatever its mode, since a claim may be observed after its pods. From which nodes a
claim's volume is reachable is checked in `volumes`.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.events import NODE_EVENTS, PODS_REMOVED, VOLUME_EVENTS, EventKind

REASON: Final = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


class ExclusiveClaims:
    """How many assigned pods use each claim. A pod whose node was deleted uses its claims until it is removed."""

    wakes_on: ClassVar[frozenset[EventKind]] = NODE_EVENTS | VOLUME_EVENTS | PODS_REMOVED

    def __init__(self, nodes: NodeTable, volumes: VolumeTable) -> None:
        self._nodes = nodes
        self._volumes = volumes
        self._users: dict[tuple[str, str], int] = {}

    def applies(self, task: Placeable) -> bool:
        return bool(task.cls.spec.volumes) and bool(self._volumes.exclusive_claims_of(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        used = any((task.namespace, name) in self._users for name in self._volumes.exclusive_claims_of(task.cls))
        return [(REASON, np.full(self._nodes.count, not used, np.bool_))]

    def add(self, task: Placeable, row: int) -> None:
        if task.cls.spec.volumes:
            for name in self._volumes.claims_of(task.cls):
                claim = (task.namespace, name)
                self._users[claim] = self._users.get(claim, 0) + 1

    def remove(self, task: Placeable, row: int) -> None:
        if task.cls.spec.volumes:
            for name in self._volumes.claims_of(task.cls):
                claim = (task.namespace, name)
                self._users[claim] -= 1
                if not self._users[claim]:
                    del self._users[claim]

    def digest(self) -> object:
        return frozenset(self._users.items())
