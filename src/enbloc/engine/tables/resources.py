"""Resource names as columns of an integer matrix.

CPU is counted in thousandths, everything else in whole units, as kube-scheduler does. The engine never sees a
quantity's text: only `(column, amount)` pairs and vectors by column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from enbloc.units import NANO

CPU: Final = 0
MEMORY: Final = 1
PODS: Final = 2

CEILING: Final = 2**55
"""No node has more of anything (32 Pi units); larger figures are cut to it, so that sums never leave int64."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Request = tuple[tuple[int, int], ...]
"""What one task asks for: `(column, amount)`, only what is asked for, by column; one pod is always among it."""


class Resources:
    """The columns, in the order in which resources were first heard of. They only ever grow."""

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
        """Column → amount, rounded up. What is above the ceiling fits nowhere, and stays above it."""
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

    def vector(self, nanos: Mapping[str, int]) -> Ints:
        """Amounts as one vector over all columns known now."""
        amounts = self.amounts(nanos)
        found = np.zeros(len(self.names), np.int64)
        for column, amount in amounts.items():
            found[column] = amount
        return found

    def capacity(self, nanos: Mapping[str, int]) -> dict[int, int]:
        """Column → amount a node has, rounded down and cut to the ceiling."""
        found: dict[int, int] = {}
        for name, amount in nanos.items():
            column = self.column(name)
            found[column] = max(0, min(amount // _unit(column), CEILING))
        return found


def _unit(column: int) -> int:
    return 10**6 if column == CPU else NANO
