"""Resource names as columns of integer matrices.

CPU is counted in millis, everything else in whole units, as in kube-scheduler. The engine handles no quantities as
text: only `(column, amount)` pairs and vectors by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from enbloc.units import NANO

CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2

CEILING: Final = 2**55
"""At most 32 Pi units of a resource per node; larger amounts are cut to it, so that sums never overflow int64."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Request = tuple[tuple[int, int], ...]
"""The request of one task: `(column, amount)` by column, positive amounts only; one pod is always in it."""


class Resources:
    """The columns, in the order in which resource names were first used. They are only ever added."""

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._columns: dict[str, int] = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self.names)
            self.names.append(name)
        return column

    def amounts(self, nanos: Mapping[str, int]) -> dict[int, int]:
        """Column → amount, rounded up. An amount above the ceiling fits no node, and stays above it."""
        found: dict[int, int] = {}
        for name, amount in nanos.items():
            column = self.column(name)
            found[column] = min(-(-amount // _unit(column)), CEILING + 1)
        return found

    def request(self, nanos: Mapping[str, int]) -> Request:
        """The request of one task: its amounts and one pod."""
        amounts = {column: amount for column, amount in self.amounts(nanos).items() if amount > 0}
        amounts[PODS] = 1
        return tuple(sorted(amounts.items()))

    def nanos(self, amounts: Iterable[tuple[int, int]]) -> dict[str, int]:
        """Amounts by column, in nano-units by name; without pods, and what is zero."""
        return {self.names[column]: amount * _unit(column) for column, amount in amounts if amount and column != PODS}

    def capacity(self, nanos: Mapping[str, int]) -> dict[int, int]:
        """Column → allocatable amount of a node, rounded down and cut to the ceiling."""
        found: dict[int, int] = {}
        for name, amount in nanos.items():
            column = self.column(name)
            found[column] = max(0, min(amount // _unit(column), CEILING))
        return found


def total(requests: Iterable[Request]) -> dict[int, int]:
    """Column → summed amount of several requests."""
    found: dict[int, int] = {}
    for request in requests:
        for column, amount in request:
            found[column] = found.get(column, 0) + amount
    return found


def least(requests: Sequence[Request], count: int) -> dict[int, int]:
    """Column → what any `count` of these requests come to at least; every column that one of them names is in it."""
    found: dict[int, int] = {}
    for column in {column for request in requests for column, _ in request}:
        found[column] = sum(sorted(dict(request).get(column, 0) for request in requests)[:count])
    return found


def _unit(column: int) -> int:
    return 10**6 if column == CPU else NANO
