"""The numeric kernels: the rows that the next tasks of a class go to.

Exactly greedy: pod for pod, the result equals placing the tasks one after the other by (score, then lowest row). In
bulk that needs no pass per pod: a task changes only the score of its own row, so none of `count` tasks goes to a row
beyond the `count` best ones. Among those, if every row's score only falls as it fills, the result is the sorted order
of all "n-th task on this row" keys; else a heap of "the next task on this row" yields it. Nothing is changed here.
"""

from __future__ import annotations

import heapq

import numpy as np

from enbloc.engine.core.state.candidates import Candidates
from enbloc.engine.core.tables.nodes import ROW_MASK
from enbloc.engine.core.tables.resources import Bools, Ints


def place_bulk(candidates: Candidates, count: int, closed: Bools | None = None) -> list[int]:
    """The rows of the next `count` tasks, in order; fewer if there is no room for more."""
    keys = candidates.passing_keys()
    if closed is not None:
        keys = keys[~closed[_row_of(keys)] & (keys >= 0)]
    if count == 1:
        best = int(keys.max(initial=-1))
        return [ROW_MASK - (best & ROW_MASK)] if best >= 0 else []
    first = _top(keys, count)
    if not len(first):
        return []
    rows = _row_of(first)
    width = min(count, max(2, 2 * -(-count // len(rows))))
    ahead = np.concatenate([first[:, None], candidates.table(rows, 1, width - 1)], axis=1)
    if bool((ahead[:, 1:] <= ahead[:, :-1]).all()):
        chosen = _falling(ahead, count)
        if chosen is not None:
            return chosen
    return _by_heap(candidates, rows, ahead, count)


def _row_of(keys: Ints) -> Ints:
    return ROW_MASK - (keys & ROW_MASK)


def _top(keys: Ints, count: int) -> Ints:
    """The `count` largest keys that are not -1; no two keys are equal. The array is the caller's: it is reordered."""
    if count < len(keys):
        keys.partition(len(keys) - count)
        keys = keys[len(keys) - count :]
    return keys[keys >= 0]


def _falling(ahead: Ints, count: int) -> list[int] | None:
    """If every row's keys fall: the largest keys, in order. `None` if a row may get more tasks than `ahead` covers."""
    keys = np.sort(ahead, axis=None)[::-1][:count]
    least = int(keys[-1])
    if ahead.shape[1] < count and int(ahead[:, -1].max()) >= max(least, 0):
        return None
    if least < 0:
        keys = keys[keys >= 0]
    found: list[int] = _row_of(keys).tolist()
    return found


def _by_heap(candidates: Candidates, rows: Ints, ahead: Ints, count: int) -> list[int]:
    """One task after the other, by a heap of the key of each row's next task."""
    lines: list[list[int]] = ahead.tolist()
    heap = [(-line[0], position) for position, line in enumerate(lines)]
    heapq.heapify(heap)
    used = [0] * len(lines)
    found: list[int] = []
    while heap and len(found) < count:
        key, position = heap[0]
        found.append(ROW_MASK - (-key & ROW_MASK))
        used[position] = placed = used[position] + 1
        line = lines[position]
        if placed == len(line) and placed < count:
            line += candidates.table(rows[position : position + 1], placed, len(line))[0].tolist()
        following = line[placed] if placed < len(line) else -1
        if following < 0:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (-following, position))
    return found


def place_one(candidates: Candidates, allowed: Bools | None, bonus: Ints | None) -> list[int]:
    """The row of one task that stateful filters concern: among the `allowed` rows, with its `bonus` added to scores."""
    keys = candidates.keys()
    if bonus is not None:
        keys = np.where(keys >= 0, keys + bonus, -1)
    if allowed is not None:
        keys = np.where(allowed, keys, -1)
    return _best(keys)


def place_plain(candidates: Candidates) -> list[int]:
    """The row of the next task, with every row computed without caches: the reference for tests of the fast path."""
    return _best(candidates.uncached_keys())


def _best(keys: Ints) -> list[int]:
    if not len(keys):
        return []
    row = int(keys.argmax())
    return [row] if keys[row] >= 0 else []
