"""The numeric kernels: which rows do the next tasks of a class go to.

Exactly greedy: the answer is, pod for pod, the one that placing them one after the other by (score, then lowest row)
would give. In bulk that needs no pass per pod: a task changes only the score of its own row, so of `count`
tasks none can go beyond the `count` best rows. Among those, where a row's score only falls as it fills, the order is
that of all "n-th task on this row" keys sorted; else a heap of "the next task on this row" finds it.
"""

from __future__ import annotations

import heapq

import numpy as np

from enbloc.engine.candidates import ROW_MASK, Candidates
from enbloc.engine.resources import Bools, Ints

_AHEAD = 4
"""How many tasks a row's scores are computed ahead for; more are computed when they are needed."""


def place_bulk(candidates: Candidates, count: int, closed: Bools | None = None) -> list[int]:
    """The rows of the next `count` tasks, in order; fewer where there is no room for more. Changes nothing."""
    keys = candidates.keys()
    if closed is not None:
        keys = np.where(closed[: len(keys)], -1, keys)
    if count == 1:
        return _best(keys)
    rows = _top(keys, count)
    if not len(rows):
        return []
    width = min(count, max(_AHEAD, 2 * -(-count // len(rows))))
    ahead = candidates.table(rows, 0, width)
    if bool((ahead[:, 1:] <= ahead[:, :-1]).all()):
        chosen = _falling(ahead, count)
        if chosen is not None:
            return chosen
    return _by_heap(candidates, rows, ahead, count)


def _falling(ahead: Ints, count: int) -> list[int] | None:
    """Every row's scores fall: the largest keys of all, in order. `None` if a row may be wanted beyond the table."""
    keys = np.sort(ahead, axis=None)[::-1][:count]
    keys = keys[keys >= 0]
    last = ahead[:, -1]
    if ahead.shape[1] < count and bool((last >= max(int(keys[-1]) if len(keys) == count else 0, 0)).any()):
        return None
    found: list[int] = (ROW_MASK - (keys & ROW_MASK)).tolist()
    return found


def _by_heap(candidates: Candidates, rows: Ints, ahead: Ints, count: int) -> list[int]:
    """One after the other, looking only at the next task of each row."""
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
    """The row of one task that others' placements bear on: `allowed` rows only, with what it prefers added."""
    keys = candidates.keys()
    if bonus is not None:
        keys = np.where(keys >= 0, keys + bonus, -1)
    if allowed is not None:
        keys = np.where(allowed, keys, -1)
    return _best(keys)


def place_plain(candidates: Candidates) -> list[int]:
    """The row of the next task by a fresh look at every row: the reference that the fast path is held to."""
    return _best(candidates.fresh_keys())


def _best(keys: Ints) -> list[int]:
    if not len(keys):
        return []
    row = int(keys.argmax())
    return [row] if keys[row] >= 0 else []


def _top(keys: Ints, count: int) -> Ints:
    """The rows of the `count` largest keys (which are all different) that are not -1."""
    if count < len(keys):
        rows = np.argpartition(keys, len(keys) - count)[len(keys) - count :]
        return rows[keys[rows] >= 0]
    return np.flatnonzero(keys >= 0)
