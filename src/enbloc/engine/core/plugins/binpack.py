"""Scores nodes by utilisation of the requested resources, with the task on them: higher is better."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from enbloc.engine.core.tables.headroom import PARTS, Headroom
from enbloc.engine.core.tables.resources import Ints


class Binpack:
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
