"""Volumes assumed for the waiting claims of placed tasks: no two claims are assumed to get the same volume.

When a task is placed, each of its claims that waits for a node gets the smallest volume that is left there. It keeps
it until the task is removed or the claim no longer waits. Carrying out the placement binds those volumes (by writing
the volume's `claimRef`); for a claim that got none a volume will be provisioned: it gets a `selected-node`.

Which volume a claim gets depends on the order in which tasks are placed. Removing them in reverse order, as a
transaction does, restores the state exactly; in any other order each volume is still assumed at most once.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar

import numpy as np

from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.volumes import NO_VOLUME, WAKES_ON, UnboundClaim, VolumeTable, find_volumes
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.events import PODS_REMOVED, EventKind

ClaimKey = tuple[str, str]
"""Namespace and name."""


class AssumedVolumes:
    """The volume assumed for each waiting claim of a placed task."""

    wakes_on: ClassVar[frozenset[EventKind]] = WAKES_ON | PODS_REMOVED

    def __init__(self, nodes: NodeTable, volumes: VolumeTable) -> None:
        self._nodes = nodes
        self._volumes = volumes
        self._volume_of: dict[ClaimKey, str] = {}
        self._users: dict[ClaimKey, int] = {}
        self._claims_of: dict[str, tuple[ClaimKey, ...]] = {}
        self._unbound: dict[int, list[UnboundClaim]] = {}
        """By class id, as of `_version` of the volumes."""
        self._version = volumes.version

    def applies(self, task: Placeable) -> bool:
        """Only if a claim could take a volume from another claim: not if all volumes are provisioned."""
        return bool(task.cls.spec.volumes) and any(claim.available for claim in self._unbound_claims(task.cls))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        rows = np.arange(self._nodes.count)
        return [(NO_VOLUME, find_volumes(self._unbound_claims(task.cls), rows, self._assumed())[0])]

    def add(self, task: Placeable, row: int) -> None:
        if not self.applies(task):
            return
        _, picks = find_volumes(self._unbound_claims(task.cls), np.array([row]), self._assumed())
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
        """Whether a volume is assumed for a claim."""
        return claim in self._volume_of

    def of(self, uid: str) -> dict[str, str]:
        """The volumes to bind for a placed task's waiting claims: claim → volume."""
        assumed = self._assumed()
        return {claim[1]: assumed[claim] for claim in self._claims_of.get(uid, ()) if claim in assumed}

    def digest(self) -> object:
        return frozenset(self._volume_of.items()), frozenset(self._users.items()), frozenset(self._claims_of.items())

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._unbound = {ident: claims for ident, claims in self._unbound.items() if ident in class_ids}

    def _assumed(self) -> dict[ClaimKey, str]:
        """Claim → volume, without claims that were bound since: the volume table has those."""
        return {claim: volume for claim, volume in self._volume_of.items() if self._volumes.is_waiting(*claim)}

    def _unbound_claims(self, cls: TaskClass) -> list[UnboundClaim]:
        if self._version != self._volumes.version:
            self._version = self._volumes.version
            self._unbound.clear()
        found = self._unbound.get(cls.id)
        if found is None:
            found = self._unbound[cls.id] = self._volumes.unbound_claims(cls, self._nodes)
        return found
