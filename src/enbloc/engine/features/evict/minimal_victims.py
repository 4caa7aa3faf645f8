"""No victim in vain: of the units that make a gang fit, a set is kept of which no proper subset would do.

The most disruptive units are spared first. Units are tested in halves, so that a few victims out of many are found in
few tests. Most tests are decided by arrays alone: `Capacity` proves that the gang cannot fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from enbloc.engine.core.placement.domains import part_of
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.resources import Bools, Ints, Request
from enbloc.engine.core.tables.tasks import WAITS, Task
from enbloc.engine.features.evict.victims import Victims, disruption, order_key

Place = tuple[int, Request]
"""A row, and what is requested there."""


class Capacity:
    """How many tasks of each class the rows hold, by arrays alone: each class as if it were the only one. Tasks of one
    class that must be in different domains count as different classes (T7)."""

    def __init__(self, room: Ints, requests: Sequence[PlacementRequest], open_rows: Callable[[Task], Bools]) -> None:
        """`room`: what is free, column by row; it is changed in place."""
        self._room = room
        self._classes: list[tuple[Request, Bools, int]] = []
        self._most: list[Ints] = []
        """By class: how many tasks of it each row holds."""
        counts: dict[object, tuple[Task, int]] = {}
        for task in _surely_placed(requests):
            alike = (task.cls.id, part_of(task))
            counts[alike] = (task, counts[alike][1] + 1 if alike in counts else 1)
        for task, count in counts.values():
            self._classes.append((task.cls.request, open_rows(task), count))
            self._most.append(self._most_on(slice(None), task.cls.request, self._classes[-1][1]))

    def suffices(self) -> bool:
        """Whether each class alone fits; if not, the requests do not fit."""
        return all(int(most.sum()) >= count for most, (_, _, count) in zip(self._most, self._classes, strict=True))

    def take(self, places: Iterable[Place], sign: int = 1) -> None:
        """Room on these rows is no longer free (1), or is again (-1)."""
        rows: set[int] = set()
        for row, request in places:
            rows.add(row)
            for column, amount in request:
                self._room[column, row] -= sign * amount
        changed = np.fromiter(rows, np.intp)
        for number, (request, open_rows, _) in enumerate(self._classes):
            self._most[number][changed] = self._most_on(changed, request, open_rows)

    def _most_on(self, rows: Ints | slice, request: Request, open_rows: Bools) -> Ints:
        most: Ints | None = None
        for column, amount in request:
            fits = np.maximum(self._room[column, rows], 0) // amount
            most = fits if most is None else np.minimum(most, fits)
        assert most is not None, "a request always asks for a pod"
        found: Ints = np.where(open_rows[rows], most, 0)
        return found


def _surely_placed(requests: Sequence[PlacementRequest]) -> Iterable[Task]:
    """The tasks that are placed whatever else is."""
    for request in requests:
        rest = [task for task in request.rest if task.status in WAITS]
        short = request.short - (len(request.rest) - len(rest))
        yield from (task for task in request.must if task.status in WAITS)
        if short > 0 and len({task.cls.id for task in rest}) == 1:
            yield from rest[:short]


def minimal(
    units: Sequence[Victims], rows: Mapping[str, int], capacity: Capacity, fits: Callable[[Sequence[Victims]], bool]
) -> list[Victims]:
    """The units without those that are spared: the most disruptive first, and among equals the first in order. `rows`:
    where tasks run, by uid. `capacity`: with all units evicted. `fits`: whether the gang fits if just these are."""
    evicted = Counter(task.uid for task in _tasks(units))
    kept = list(units)
    chunks = [sorted(sorted(units, key=order_key), key=disruption, reverse=True)]
    while chunks:
        chunk = chunks.pop()
        spared = _spare(chunk, evicted)
        places = [(rows[task.uid], task.cls.request) for task in spared]
        capacity.take(places)
        numbers = set(map(id, chunk))
        left = [unit for unit in kept if id(unit) not in numbers]
        if not spared or (capacity.suffices() and fits(left)):
            kept = left
            continue
        capacity.take(places, -1)
        evicted.update(task.uid for task in _tasks(chunk))
        if len(chunk) > 1:
            half = len(chunk) // 2
            chunks += [chunk[half:], chunk[:half]]
    return kept


def _spare(chunk: Sequence[Victims], evicted: Counter[str]) -> list[Task]:
    """The tasks that are not evicted if these units are not. `evicted`: how many units that are kept contain a task."""
    spared: list[Task] = []
    for task in _tasks(chunk):
        evicted[task.uid] -= 1
        if not evicted[task.uid]:
            spared.append(task)
    return spared


def _tasks(units: Iterable[Victims]) -> Iterator[Task]:
    return (task for unit in units for task in unit.tasks)
