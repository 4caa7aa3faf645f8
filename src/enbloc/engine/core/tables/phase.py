"""The phase of a gang: how far its minima are, computed from its members, its commit mark and its status.

A gang has no transitions of its own: its phase changes as its tasks do. `ALLOWS` is all that a phase decides;
docs/gang-phases.md is made of it. With waves the phase is that of the present wave (D3).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from enbloc.engine.core.tables.tasks import GangState


class Phase(StrEnum):
    GATED = "Gated"
    INCOMPLETE = "Incomplete"
    WAITS = "Waits"
    HOLDS = "Holds"
    DEGRADED = "Degraded"
    SURPLUS = "Surplus"
    RUNNING = "Running"


class Attempted(StrEnum):
    """How the tasks of a gang are placed."""

    NOT = "not"
    AS_UNIT = "as a unit"
    """With all that start with it, or not at all (G2)."""
    SINGLY = "one by one"


class Allows(NamedTuple):
    """What a phase allows."""

    means: str
    attempted: Attempted
    may_claim: bool
    """Whether nodes may be reserved, and pods evicted, for it (R, P)."""
    says_why: str
    """What carries the reason for which it waits (G10)."""
    next: Mapping[Phase, str]
    """Which phases follow it as a rule, and when."""

    @property
    def starts(self) -> bool:
        """Whether its minima are to be placed yet, with those of all that start with it."""
        return self.attempted is not Attempted.SINGLY


_UNIT, _SINGLY, _BOTH, _PODS = Attempted.AS_UNIT, Attempted.SINGLY, "object and pods", "the pods that wait"

ALLOWS: Final[Mapping[Phase, Allows]] = {
    Phase.GATED: Allows(
        "it is not enqueued (M6)", Attempted.NOT, False, "its object", {Phase.INCOMPLETE: "it is enqueued"}
    ),
    Phase.INCOMPLETE: Allows(
        "members that its minima need do not exist (G4)", Attempted.NOT, False, _BOTH, {Phase.WAITS: "its pods exist"}
    ),
    Phase.WAITS: Allows(
        "all members exist, and its minima are not placed",
        _UNIT,
        True,
        _BOTH,
        {Phase.RUNNING: "all fits", Phase.HOLDS: "a part fits (NonStrict)", Phase.INCOMPLETE: "a pod is deleted"},
    ),
    Phase.HOLDS: Allows(
        "members keep room until the others fit (K6)",
        _UNIT,
        True,
        _BOTH,
        {Phase.RUNNING: "all fits", Phase.INCOMPLETE: "its time is up (K8)"},
    ),
    Phase.DEGRADED: Allows(
        "it started, and lost members (G7)", _SINGLY, True, _PODS, {Phase.RUNNING: "they are replaced"}
    ),
    Phase.SURPLUS: Allows(
        "its minima are placed, and more pods wait (G3)", _SINGLY, False, _PODS, {Phase.RUNNING: "they fit"}
    ),
    Phase.RUNNING: Allows(
        "its minima are placed, and no pod waits",
        _SINGLY,
        False,
        "nothing",
        {Phase.SURPLUS: "more pods are created", Phase.DEGRADED: "members are lost", Phase.WAITS: "its next wave"},
    ),
}


def phase_of(gang: GangState) -> Phase:
    ready, waits = gang.need.ready, gang.total_pending > 0
    if ready and (gang.satisfied or not gang.total_held):
        return Phase.SURPLUS if waits else Phase.RUNNING
    if gang.satisfied:
        return Phase.DEGRADED
    if not gang.status.enqueued:
        return Phase.GATED
    if gang.total_held:
        return Phase.HOLDS
    return Phase.INCOMPLETE if gang.need.missing and not _replaces_lost(gang) else Phase.WAITS


def _replaces_lost(gang: GangState) -> bool:
    """Whether pods wait that replace lost members of an earlier wave: those need none of the present one (D3)."""
    minima, occupied = gang.minima.by_role, gang.occupied
    return any(gang.pending.get(role, 0) and occupied.get(role, 0) < minima[role] for role in gang.ran)
