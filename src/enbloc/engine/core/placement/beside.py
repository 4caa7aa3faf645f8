"""Tasks that did not fit by themselves, and may fit beside others that were placed since (G6).

Each is found by the pods that could help it, and tried again when one of them is placed: a gang whose tasks must be
beside one another costs what these help, not the square of its size (S8).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

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
    short = [one.short for one in requests]
    asked = [_Asked(task, number, False) for number, one in enumerate(requests) for task in one.must]
    asked += [_Asked(task, number, True) for number, one in enumerate(requests) for task in one.rest]
    asked.sort(key=attrgetter("number"))  # as the requests ask for them
    helped = Helped(stateful, [one.task for one in asked])

    def try_one(at: int) -> bool:
        task, number, is_rest = asked[at]
        if task.status not in WAITS or (is_rest and not short[number]) or not place(task):
            return False
        short[number] -= is_rest
        return True

    due = set[int]().union(*map(helped.by, placed))
    while due:
        due = _pass_over(due, try_one, lambda at: helped.by(asked[at].task))
    return not any(short) and all(task.status not in WAITS for one in requests for task in one.must)


class _Asked(NamedTuple):
    """A task, and the number of the request that asks for it."""

    task: Task
    number: int
    is_rest: bool


def _pass_over(due: set[int], try_one: Callable[[int], bool], helped_by: Callable[[int], set[int]]) -> set[int]:
    """Tries what is due in order, with what that helps further on. Returns what it helps further back."""
    line, behind = sorted(due), set[int]()
    lined_up = set(line)
    while line:
        at = heapq.heappop(line)
        for other in helped_by(at) if try_one(at) else ():
            if other < at:
                behind.add(other)
            elif other not in lined_up:
                lined_up.add(other)
                heapq.heappush(line, other)
    return behind
