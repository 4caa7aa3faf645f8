"""Shortest job first: gangs of equal priority are served by their expected run time; unknown ones last."""

from __future__ import annotations

from enbloc.engine.core.tables.tasks import GangState

_UNKNOWN_NS = 2**63


class ShortestFirst:
    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        run_time_ns = gang.run_time_ns
        return (_UNKNOWN_NS if run_time_ns is None else run_time_ns,)
