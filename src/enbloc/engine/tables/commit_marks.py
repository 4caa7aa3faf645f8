"""The commit mark: how a gang that was satisfied is told from one that was cut off half-way (G7, G11).

The mark says which minima were bound. It rides on a Binding as an annotation, so it lives on a pod; a gang counts as
satisfied as long as a mark covers its present minima. A raised minimum is not covered: the gang has to earn it anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import quote, unquote

from enbloc.gangs.model import GangSpec

DECISION = "enbloc.dev/decision"
COMMITTED = "enbloc.dev/committed"


def mark_of(spec: GangSpec, without: Collection[str] = ()) -> str:
    """What is written when a gang's minima are bound: `5;master=3;work=2`. Odd characters in roles are escaped."""
    if not without:
        return _written(spec.minimum, spec.minima)
    bound = {role: count for role, count in spec.minima.items() if role not in without}
    return _written(spec.minimum - sum(spec.minima.values()) + sum(bound.values()), bound)


def _written(total: int, roles: Mapping[str, int]) -> str:
    parts = "".join(f";{quote(role, safe='', errors='replace')}={count}" for role, count in sorted(roles.items()))
    return f"{total}{parts}"


def covers(mark: str, spec: GangSpec) -> bool:
    """Whether minima that were bound once are still the gang's minima, or more."""
    if not mark:
        return False
    total, roles = _read(mark)
    return total >= spec.minimum and all(roles.get(role, 0) >= count for role, count in spec.minima.items())


def says_as_much(mark: str, other: str) -> bool:
    """Whether a mark covers all that another one does."""
    if not mark:
        return False
    (total, roles), (other_total, other_roles) = _read(mark), _read(other)
    return total >= other_total and all(roles.get(role, 0) >= count for role, count in other_roles.items())


def covered_roles(mark: str, spec: GangSpec) -> frozenset[str]:
    """The roles whose present minima were bound once."""
    roles = _read(mark)[1] if mark else {}
    return frozenset(role for role, count in spec.minima.items() if roles.get(role, 0) >= count)


def _read(mark: str) -> tuple[int, Mapping[str, int]]:
    """A mark that somebody else wrote over reads as nothing."""
    total, *roles = mark.split(";")
    found: dict[str, int] = {}
    for role in roles:
        name, _, count = role.rpartition("=")
        found[unquote(name)] = int(count) if count.isdecimal() and len(count) < 10 else 0
    return int(total) if total.isdecimal() and len(total) < 10 else -1, found
