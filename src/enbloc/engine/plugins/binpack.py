"""Scores nodes by how full they would be in what the task asks for: the fuller the better."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from enbloc.engine.scoring.headroom import PARTS, Headroom
from enbloc.engine.tables.resources import Ints


class Binpack:
    def __init__(self, weight: int, resources: Mapping[str, int]) -> None:
        self._weight = weight
        self._resources = dict(resources)

    def score(self, room: Headroom) -> Ints:
        total, weights = None, 0
        asked = dict(room.request)
        for name, weight in self._resources.items():
            column = room.column(name)
            if weight > 0 and column in asked:
                part = (PARTS - room.free_part(column)) * weight
                total = part if total is None else total + part
                weights += weight
        if total is None:
            return np.zeros_like(room.after(0))
        found: Ints = total * (100 * self._weight) // weights
        return found
