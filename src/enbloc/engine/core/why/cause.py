"""In a few words, what a gang waits for: by these, waiting gangs are grouped for people (N6).

Taken from the fields of a diagnosis, never from its sentence: what rejects most nodes, where nodes were looked at, else
the reason. Nodes that a pod does not select count only where it selects none.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.filters import node_affinity, readiness, unschedulable
from enbloc.engine.decisions import Reason

_NODES = "node(s) "
_BEFORE_LABELS = frozenset({readiness.REASON, unschedulable.REASON, node_affinity.REASON})
"""Reasons of nodes of which it is not known that the pod selects them. Filters after these see only nodes that it
selects."""


class Cause(msgspec.Struct, frozen=True):
    reason: PendingReason
    nodes_say: str = ""
    """What rejects most nodes; empty where no node was looked at."""
    level: str = ""
    """The level of which no domain has room for its pods."""

    @property
    def words(self) -> str:
        return self.nodes_say or (f"no domain of {self.level} has room" if self.level else self.reason)


def cause_of(reason: PendingReason, reasons: Iterable[Reason], level: str = "") -> Cause:
    """`reasons`: of the diagnosis, by role. Of those that reject as many nodes the first is taken."""
    found = list(reasons)
    selected = {one.role for one in found if one.reason not in _BEFORE_LABELS}
    most = max(found, key=lambda one: (not _is_elsewhere(one, selected), one.nodes), default=None)
    return Cause(reason, most.reason.removeprefix(_NODES) if most is not None else "", level)


def _is_elsewhere(reason: Reason, selected: Set[str]) -> bool:
    """Whether these nodes are not those that the role selects. `selected`: roles that select some node."""
    return reason.reason == node_affinity.REASON and reason.role in selected
