"""Tasks that did not fit by themselves, and may fit beside others that were placed since (G6).

Each is found by the pods that could help it, and tried again when one of them is placed: a gang whose tasks must be
beside one another costs what these help, not the square of its size (S8).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.pod_terms import PodSelector
from enbloc.engine.core.filters.stateful.pod_index import PodIndex
from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.tasks import WAITS, Task


class Helped:
    """Tasks by the pods that could help them."""

    def __init__(self, stateful: StatefulFilters[Task], tasks: Sequence[Task]) -> None:
        self._index: PodIndex[tuple[int, Sequence[PodSelector]]] = PodIndex()
        for at, task in enumerate(tasks):
            for number, pods in enumerate(stateful.helped_by(task)):
                scope = next((one.namespaces for one in pods if one.namespaces is not None), None)
                anchor = next((one.anchor for one in pods if one.anchor is not None), None)
                self._index.put((at, number), scope, anchor, (at, pods))

    def by(self, task: Placeable) -> set[int]:
        """The positions of the tasks that a pod could help."""
        return {at for at, pods in self._index.lookup(task) if all(one.matches(task) for one in pods)}


def place_helped(
    stateful: StatefulFilters[Task],
    requests: Sequence[PlacementRequest],
    placed: Iterable[Task],
    place: Callable[[Task], bool],
) -> bool:
    """Places what is left of requests after a pass in which the `placed` ones were: in the order of the requests, pass
    after pass, each task that one placed since its last try could help. Whether all of it is placed in the end."""
    tasks = [task for one in requests for task in chain(one.needed, one.later, one.rest)]
    of = [number for number, one in enumerate(requests) for _ in chain(one.needed, one.later, one.rest)]
    optional = [is_rest for one in requests for is_rest in [*[False] * len(one.must), *[True] * len(one.rest)]]
    short = [one.short for one in requests]
    helped = Helped(stateful, tasks)
    due = set[int]().union(*map(helped.by, placed))
    while due:
        line, due = sorted(due), set()
        lined_up = set(line)
        while line:
            at = heapq.heappop(line)
            if tasks[at].status not in WAITS or (optional[at] and not short[of[at]]) or not place(tasks[at]):
                continue
            short[of[at]] -= optional[at]
            for other in helped.by(tasks[at]):
                if other < at:
                    due.add(other)
                elif other not in lined_up:
                    lined_up.add(other)
                    heapq.heappush(line, other)
    return not any(short) and all(task.status not in WAITS for one in requests for task in one.must)
