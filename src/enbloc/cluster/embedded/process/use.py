"""What the processes of containers use, as /proc counts it: the source of `kubectl top` with real processes.

A container's processes are the descendants of its shim (see `supervisor.py`), whatever they have forked. Their CPU time
only grows: the kernel adds that of a child that has ended to its parent's, and orphans are the shim's. CPU use is the
growth since an earlier measurement; for a container that was not measured before, since its start. Nothing is measured
in the background.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from enbloc.cluster.embedded.nodes.runtime import Use
from enbloc.cluster.embedded.process.supervisor import all_processes, stat_of
from enbloc.units import SECOND

LEAST_WINDOW_NS: Final = SECOND
"""The kernel counts in hundredths of a second: over less than this, CPU use would be noise."""
_PPID, _OWN_TIMES, _CHILDREN_TIMES, _START, _PAGES = 1, slice(11, 13), slice(13, 15), 19, 21


class _Process(NamedTuple):
    parent: int
    ticks: int
    """Of CPU time, its own."""
    children_ticks: int
    """Of the children that it has waited for."""
    start: int
    pages: int


class _Sample(NamedTuple):
    at_ns: int
    cpu_ns: int


class UseMeter:
    """Measures containers by the pid of their first process. `clock` counts nanoseconds since the boot."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock or _since_boot_ns
        self._samples: dict[tuple[int, int], list[_Sample]] = {}  # pid and start -> the last two

    def measure(self, pids: Iterable[int]) -> dict[int, Use]:
        """Use by pid; processes that have ended, and all where there is no /proc, are left out."""
        now_ns = self._clock()
        table = _read_table()
        below = _children(table)
        found: dict[int, Use] = {}
        kept: dict[tuple[int, int], list[_Sample]] = {}
        for pid in pids:
            first = table.get(pid)
            shim = table.get(first.parent) if first is not None else None
            if first is None or shim is None:
                continue
            own = _below(first.parent, below)
            ticks = shim.children_ticks + sum(table[one].ticks + table[one].children_ticks for one in own)
            sample = _Sample(now_ns, ticks * SECOND // _ticks_per_second())
            key = (pid, first.start)
            samples = self._samples.get(key) or [_Sample(first.start * SECOND // _ticks_per_second(), 0)]
            kept[key] = _remembered(samples, sample)
            pages = sum(table[one].pages for one in own)
            found[pid] = _use(samples, sample, pages * os.sysconf("SC_PAGE_SIZE"))
        self._samples = kept
        return found


def _remembered(samples: list[_Sample], sample: _Sample) -> list[_Sample]:
    """The last two that are far enough apart to be compared."""
    if sample.at_ns - samples[-1].at_ns < LEAST_WINDOW_NS:
        return samples
    return [samples[-1], sample]


def _use(samples: list[_Sample], sample: _Sample, memory_bytes: int) -> Use:
    since = next((one for one in reversed(samples) if sample.at_ns - one.at_ns >= LEAST_WINDOW_NS), samples[0])
    window_ns = max(sample.at_ns - since.at_ns, 1)
    cpu_ns = max(sample.cpu_ns - since.cpu_ns, 0)
    return Use(cpu_ns * SECOND // max(window_ns, LEAST_WINDOW_NS), memory_bytes, window_ns)


def _read_table() -> dict[int, _Process]:
    table = {}
    for pid in all_processes():
        fields = stat_of(pid)
        if fields:
            table[pid] = _Process(
                int(fields[_PPID]),
                sum(map(int, fields[_OWN_TIMES])),
                sum(map(int, fields[_CHILDREN_TIMES])),
                int(fields[_START]),
                int(fields[_PAGES]),
            )
    return table


def _children(table: dict[int, _Process]) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for pid, process in table.items():
        below.setdefault(process.parent, []).append(pid)
    return below


def _below(root: int, children: dict[int, list[int]]) -> list[int]:
    found: list[int] = []
    queue = [root]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return found


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


def _since_boot_ns() -> int:
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # Linux has the first, and /proc
    return time.clock_gettime_ns(clock)
