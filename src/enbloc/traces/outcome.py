"""What became of the jobs of a replay."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from enbloc.traces.trace import TraceJob

Progress = Callable[[int, int], None]
"""Called now and then: jobs that ended, jobs in all."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """One job. Times are nanoseconds since the first submission; `None`: it never started, or never ended."""

    job: TraceJob
    start_ns: int | None
    end_ns: int | None
    nodes: tuple[int, ...] = ()
    """The numbers of the nodes it started on, the last time."""
    evicted: int = 0
    """How often it lost its nodes."""

    @property
    def wait_ns(self) -> int | None:
        """All the time that it did not get on: until its start, and after evictions."""
        if self.start_ns is None:
            return None
        if self.evicted and self.end_ns is not None:
            return self.end_ns - self.job.submit_ns - self.job.run_ns
        return self.start_ns - self.job.submit_ns
