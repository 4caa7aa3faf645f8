"""What the minima of a gang ask for, and what of it is there: one value, computed once for each change of the gang.

Three rules are in it, a function each: which minima count of a gang with waves (D3, `_of_wave`), which sub-groups are
meant (T0, `choices`), and which members count once the minima were met (K9, `_found`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from enbloc.engine.core.tables.commit_marks import Minima, minima_of
from enbloc.gangs import gang_tree
from enbloc.gangs.model import ONLY_WAITING, GangSpec

if TYPE_CHECKING:
    from enbloc.engine.core.tables.tasks import GangState


class Need(NamedTuple):
    """Of the present wave of a gang; without waves of all of it."""

    minima: Mapping[str, int]
    """The minima by role."""
    total: int
    """The minimum of all roles together."""
    others: frozenset[str]
    """The roles of other waves."""
    found: Mapping[str, int]
    """Role → members that count towards its minimum, held ones included; of all waves."""
    missing: Mapping[str, int]
    """Role → members that do not exist but are required; `""` is the total (G4)."""
    ready: bool
    """Whether the minima of all waves are placed: each role first, then the total (M4). With a minimum of 0 all that
    waits is surplus (K3, K9)."""

    def short_of(self, counts: Mapping[str, int]) -> int:
        """How far these counts by role are from the total."""
        return self.total - sum([count for role, count in counts.items() if role not in self.others])


_NOTHING: Final[Mapping[str, int]] = {}


def need_of(gang: GangState, minima: Minima) -> Need:
    found = _found(gang)
    by_role, total, others = _of_wave(gang, minima)
    return Need(by_role, total, others, found, _missing(gang, by_role, total, others, found), _is_ready(gang, minima))


def _found(gang: GangState) -> Mapping[str, int]:
    if not gang.held and not gang.only_waiting:  # most gangs
        return gang.occupied.copy()
    occupied = {} if gang.only_waiting else gang.occupied
    return {role: occupied.get(role, 0) + gang.held.get(role, 0) for role in {*gang.occupied, *gang.held}}


def _of_wave(gang: GangState, minima: Minima) -> tuple[Mapping[str, int], int, frozenset[str]]:
    if not gang.ran and not gang.behind:  # most gangs
        return minima.by_role, minima.total, gang.ran
    others = gang.ran | gang.behind
    by_role = {role: minimum for role, minimum in minima.by_role.items() if role not in others}
    return by_role, minima.total - sum(minima.by_role.values()) + sum(by_role.values()), others


def _missing(
    gang: GangState, by_role: Mapping[str, int], total: int, others: frozenset[str], found: Mapping[str, int]
) -> Mapping[str, int]:
    missing: dict[str, int] = {}
    for role, minimum in by_role.items():
        lacking = minimum - found.get(role, 0) - gang.pending.get(role, 0)
        if lacking > 0:
            missing[role] = lacking
            total -= lacking
    for counts in (found, gang.pending):
        total -= sum(counts.values()) if not others else sum([n for role, n in counts.items() if role not in others])
    if total > 0:
        missing[""] = total
    return missing or _NOTHING


def _is_ready(gang: GangState, minima: Minima) -> bool:
    if gang.only_waiting and (minima.total or minima.by_role):
        return not gang.total_pending
    occupied = gang.occupied
    for role, minimum in minima.by_role.items():
        if occupied.get(role, 0) < minimum:
            return False
    return sum(occupied.values()) >= minima.total


def is_only_waiting(spec: GangSpec, covered: str) -> bool:
    """Whether only waiting pods count towards its minimum, since that was met once (K9)."""
    return spec.match_policy == ONLY_WAITING and bool(covered)


def declared(spec: GangSpec) -> Minima:
    return Minima(spec.minimum, spec.minima)


def choices(gang: GangState, spec: GangSpec) -> Iterator[Minima]:
    """The minima of the sub-groups that might start together, the best choice first (T0)."""
    if spec.tree is None:
        yield declared(spec)
        return
    for by_role in gang_tree.choices(spec.tree, members_of(gang)):
        yield Minima(max(spec.total, sum(by_role.values())), by_role)


def members_of(gang: GangState) -> gang_tree.Members:
    placed = _found(gang)
    exist = {role: placed.get(role, 0) + gang.pending.get(role, 0) for role in {*placed, *gang.pending}}
    return gang_tree.Members(exist, placed, minima_of(gang.covered))
