"""Scores nodes by utilisation: least-allocated spreads, most-allocated packs, balanced evens cpu and memory out.

Computed in integers from the node's own row, so that placing a class in bulk gives the same nodes as placing its pods
one by one. Ties between equally utilised nodes go to the one with fewer (when packing: more) pods: tasks that request
nothing would otherwise all be placed on one node.
"""

from __future__ import annotations

import numpy as np

from enbloc.engine.core.tables.headroom import PARTS, Headroom
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Ints

TIE = PARTS
"""One point of a score (0..100) in the finer units in which scores are summed, so that ties can be broken."""


class NodeOrder:
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
