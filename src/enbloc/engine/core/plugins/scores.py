"""The built-in plugins that score nodes by utilisation with the task on them: `binpack` and `nodeorder`.

Computed in integers from the node's own row, so that placing a class in bulk gives the same nodes as placing its pods
one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from enbloc.engine.core.tables.headroom import PARTS, Headroom
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Ints


class Binpack:
    """The fuller by the requested resources, the higher."""

    def __init__(self, weight: int, resources: Mapping[str, int]) -> None:
        self._weight = weight
        self._resources = dict(resources)

    def score(self, headroom: Headroom) -> Ints:
        total, weights = None, 0
        requested = dict(headroom.request)
        for name, weight in self._resources.items():
            column = headroom.column(name)
            if weight > 0 and column in requested:
                part = (PARTS - headroom.free_part(column)) * weight
                total = part if total is None else total + part
                weights += weight
        if total is None:
            return np.zeros_like(headroom.after(0))
        found: Ints = total * (100 * self._weight) // weights
        return found


TIE = PARTS
"""One point of a score (0..100) in the finer units in which scores are summed, so that ties can be broken."""


class NodeOrder:
    """Least-allocated spreads, most-allocated packs, balanced evens cpu and memory out. Ties between equally utilised
    nodes go to the one with fewer (when packing: more) pods: else all tasks that request nothing would be on one."""

    def __init__(self, least: int, most: int, balanced: int) -> None:
        self._free = 50 * (least - most)
        """Score of one 128th of free cpu or memory: all of both are 100 points."""
        self._balanced = 50 * balanced
        self._base = 100 * TIE * (most + balanced)
        self._spreads = least >= most

    def score(self, headroom: Headroom) -> Ints:
        free = headroom.free_parts(3)
        cpu, memory, pods = free[CPU], free[MEMORY], free[PODS]
        total: Ints = (cpu + memory) * self._free
        if self._balanced:
            total -= np.abs(cpu - memory) * self._balanced
        total += pods >> 1 if self._spreads else (PARTS - pods) >> 1
        total += self._base
        return total
