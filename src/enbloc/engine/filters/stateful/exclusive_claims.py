"""ReadWriteOncePod: a claim of that access mode has one user in the whole cluster.

Users are counted for every claim, whatever its mode, since a claim may become known after its pods. Where a claim's
volume can be reached is for `volumes` to say.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.volumes import VolumeBook
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints

REASON: Final = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


class ExclusiveClaims:
    """How many placed tasks use each claim. A task whose node has gone uses its claims until it is removed."""

    def __init__(self, nodes: NodeTable, book: VolumeBook) -> None:
        self._nodes = nodes
        self._book = book
        self._users: dict[tuple[str, str], int] = {}

    def applies(self, task: Placeable) -> bool:
        return bool(task.cls.spec.volumes) and bool(self._book.exclusive_claims_of(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        used = any((task.namespace, name) in self._users for name in self._book.exclusive_claims_of(task.cls))
        return [(REASON, np.full(self._nodes.count, not used, np.bool_))]

    def score(self, task: Placeable) -> Ints | None:
        return None

    def add(self, task: Placeable, row: int) -> None:
        if task.cls.spec.volumes:
            for name in self._book.claims_of(task.cls):
                claim = (task.namespace, name)
                self._users[claim] = self._users.get(claim, 0) + 1

    def remove(self, task: Placeable, row: int) -> None:
        if task.cls.spec.volumes:
            for name in self._book.claims_of(task.cls):
                claim = (task.namespace, name)
                self._users[claim] -= 1
                if not self._users[claim]:
                    del self._users[claim]

    def digest(self) -> object:
        return frozenset(self._users.items())
