"""How much is free on every row over time, from known run times: the profile that conservative backfill plans in.

Times are ends of tasks and starts and ends of plans; between two of them nothing changes. At most `STEPS` times are
kept: tasks that end in between count as ending later, so that no plan relies on room that is not there yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

import numpy as np

from enbloc.engine.core.run_times import ENDLESS
from enbloc.engine.core.tables.resources import Ints
from enbloc.engine.features.backfill.easy_backfill import Releases

STEPS: Final = 256


class FreeProfile:
    def __init__(self, free: Ints, releases: Releases, now_ns: int) -> None:
        """`free`: what is free now, column by row."""
        # A task that has overrun ends at any moment, not now.
        ends_ns = np.maximum(releases.ends_ns, now_ns + 1)
        kept = np.unique(ends_ns)
        if len(kept) > STEPS:
            kept = kept[np.linspace(0, len(kept) - 1, STEPS).round().astype(np.int64)]
        self._times_ns: list[int] = [now_ns, *kept.tolist()]
        self._free: list[Ints] = [free.copy()]
        steps = np.searchsorted(kept, ends_ns)
        for number in range(len(kept)):
            chosen = steps == number
            more = np.zeros_like(free)
            for column in range(len(free)):
                np.add.at(more[column], releases.rows[chosen], releases.amounts[column, chosen])
            self._free.append(self._free[-1] + more)
        self._totals: list[Ints] = [one.sum(axis=1) for one in self._free]

    def free_now(self) -> Ints:
        """What is free on every row at the beginning."""
        return self._free[0]

    def between(self, start_ns: int, run_time_ns: int | None) -> Ints:
        """What is free on every row from a time on, for so long."""
        first, last = self._steps(start_ns, run_time_ns)
        found: Ints = np.min(self._free[first:last], axis=0)
        return found

    def slots(self, asked: Ints, run_time_ns: int | None) -> Iterator[int]:
        """The times at which as much as this, by column, is free in all, for so long: the earliest first."""
        enough = [bool((total >= asked).all()) for total in self._totals]
        for number, time_ns in enumerate(list(self._times_ns)):
            if enough[number]:
                _, last = self._steps(time_ns, run_time_ns)
                if all(enough[number:last]):
                    yield time_ns

    def take(self, start_ns: int, run_time_ns: int | None, amounts: Ints) -> None:
        """Room that is used from a time on, for so long."""
        if run_time_ns is not None:
            self._split(start_ns + run_time_ns)
        first, last = self._steps(start_ns, run_time_ns)
        for number in range(first, last):
            self._free[number] = self._free[number] - amounts
            self._totals[number] = self._free[number].sum(axis=1)

    def _steps(self, start_ns: int, run_time_ns: int | None) -> tuple[int, int]:
        first = max(0, bisect_right(self._times_ns, start_ns) - 1)
        last = len(self._times_ns) if run_time_ns is None else bisect_left(self._times_ns, start_ns + run_time_ns)
        return first, max(last, first + 1)

    def _split(self, time_ns: int) -> None:
        number = bisect_left(self._times_ns, time_ns)
        if time_ns < ENDLESS and (number == len(self._times_ns) or self._times_ns[number] != time_ns):
            self._times_ns.insert(number, time_ns)
            self._free.insert(number, self._free[number - 1])
            self._totals.insert(number, self._totals[number - 1])
