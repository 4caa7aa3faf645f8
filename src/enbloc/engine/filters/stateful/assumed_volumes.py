"""Free volumes that tasks placed meanwhile count on: no two claims of one plan are given the same.

A claim that waits for a node gets the smallest volume that is left there when its task is placed, and keeps it until
the task is removed or the claim waits no longer. Whoever carries the placement out binds those volumes (it writes the
volume's `claimRef`); a claim that got none is one for which a volume will be made: it gets its selected node.

What is given depends on the order in which tasks come. Taking them back in reverse, as a transaction does, restores it
exactly; in any other order what is left is still given only once.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.volumes import NO_VOLUME, VolumeBook, Wait, obtain
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints

ClaimKey = tuple[str, str]
"""Namespace and name."""


class AssumedVolumes:
    """Which volume each waiting claim of a placed task is to get."""

    def __init__(self, nodes: NodeTable, book: VolumeBook) -> None:
        self._nodes = nodes
        self._book = book
        self._volume_of: dict[ClaimKey, str] = {}
        self._users: dict[ClaimKey, int] = {}
        self._claims_of: dict[str, tuple[ClaimKey, ...]] = {}
        self._waits: dict[int, list[Wait]] = {}
        self._version = book.version

    def applies(self, task: Placeable) -> bool:
        """Only where a claim could take a volume from another: not if all are made as they are asked for."""
        return bool(task.cls.spec.volumes) and any(wait.fitting for wait in self._waits_of(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        rows = np.arange(self._nodes.count)
        return [(NO_VOLUME, obtain(self._waits_of(task.cls), rows, self._assumed())[0])]

    def score(self, task: Placeable) -> Ints | None:
        return None

    def add(self, task: Placeable, row: int) -> None:
        if not self.applies(task):
            return
        _, picks = obtain(self._waits_of(task.cls), np.array([row]), self._assumed())
        claims: list[ClaimKey] = []
        for claim, volume, taken in picks:
            if taken[0]:
                claims.append(claim)
                self._volume_of[claim] = volume
                self._users[claim] = self._users.get(claim, 0) + 1
        self._claims_of[task.uid] = tuple(claims)

    def remove(self, task: Placeable, row: int) -> None:
        for claim in self._claims_of.pop(task.uid, ()):
            self._users[claim] -= 1
            if not self._users[claim]:
                del self._users[claim], self._volume_of[claim]

    def assumes(self, claim: ClaimKey) -> bool:
        """Whether a volume is kept for a claim, as long as it waits."""
        return claim in self._volume_of

    def of(self, uid: str) -> dict[str, str]:
        """The volumes that a placed task's waiting claims are to be bound to: claim → volume."""
        assumed = self._assumed()
        return {claim[1]: assumed[claim] for claim in self._claims_of.get(uid, ()) if claim in assumed}

    def digest(self) -> object:
        return frozenset(self._volume_of.items()), frozenset(self._users.items()), frozenset(self._claims_of.items())

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._waits = {ident: waits for ident, waits in self._waits.items() if ident in alive}

    def _assumed(self) -> dict[ClaimKey, str]:
        """Without those whose claim was bound meanwhile: the book knows better then."""
        return {claim: volume for claim, volume in self._volume_of.items() if self._book.is_waiting(*claim)}

    def _waits_of(self, cls: TaskClass) -> list[Wait]:
        if self._version != self._book.version:
            self._version = self._book.version
            self._waits.clear()
        found = self._waits.get(cls.id)
        if found is None:
            found = self._waits[cls.id] = self._book.waits_of(cls, self._nodes)
        return found
