"""The commit mark: distinguishes a gang whose minima were bound from one that was bound only in part (G7, G11).

The mark lists the minima that were bound. It is an annotation of a Binding, which the API server copies to the pod. A
gang is satisfied as long as a mark covers its present minima; a raised minimum is not covered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from enbloc.gangs.model import GangSpec


def mark_of(spec: GangSpec, without: Collection[str] = (), most: int | None = None) -> str:
    """The mark of a gang's minima: `5;master=3;work=2`, with a total of no more than `most`. Special characters in
    roles are percent-escaped."""
    if not without:
        return _encode(spec.minimum, spec.minima)
    bound = {role: count for role, count in spec.minima.items() if role not in without}
    total = spec.minimum - sum(spec.minima.values()) + sum(bound.values())
    return _encode(total if most is None else min(total, most), bound)


def _encode(total: int, roles: Mapping[str, int]) -> str:
    parts = [f";{_quoted(role)}={count}" for role, count in sorted(roles.items())]
    return f"{total}{''.join(parts)}"


def _quoted(role: str) -> str:
    if role.isascii() and role.isalnum():  # most roles: nothing to escape
        return role
    return quote(role, safe="", errors="replace")


def covers(mark: str, spec: GangSpec) -> bool:
    """Whether the bound minima are at least the gang's present minima."""
    if not mark:
        return False
    total, roles = _decode(mark)
    return total >= spec.minimum and all(roles.get(role, 0) >= count for role, count in spec.minima.items())


def covers_mark(mark: str, other: str) -> bool:
    """Whether a mark covers all that another mark covers."""
    if not mark:
        return False
    (total, roles), (other_total, other_roles) = _decode(mark), _decode(other)
    return total >= other_total and all(roles.get(role, 0) >= count for role, count in other_roles.items())


def merged(mark: str, other: str) -> str:
    """The mark of all that either of two marks covers."""
    if not mark or not other or covers_mark(mark, other):
        return mark or other
    (total, roles), (other_total, other_roles) = _decode(mark), _decode(other)
    most = {role: max(roles.get(role, 0), other_roles.get(role, 0)) for role in {*roles, *other_roles}}
    return _encode(max(total, other_total), most)


def covered_roles(mark: str, spec: GangSpec) -> frozenset[str]:
    """The roles whose present minima a mark covers."""
    roles = _decode(mark)[1] if mark else {}
    return frozenset(role for role, count in spec.minima.items() if roles.get(role, 0) >= count)


def minima_of(mark: str) -> Mapping[str, int]:
    """The minima by role that a mark lists."""
    return _decode(mark)[1] if mark else {}


@lru_cache(maxsize=1024)  # a gang's mark is asked for whenever one of its pods changes
def _decode(mark: str) -> tuple[int, Mapping[str, int]]:
    """Total and minima by role; a malformed mark covers nothing."""
    total, *roles = mark.split(";")
    found: dict[str, int] = {}
    for role in roles:
        name, _, count = role.rpartition("=")
        found[unquote(name)] = int(count) if count.isdecimal() and len(count) < 10 else 0
    return int(total) if total.isdecimal() and len(total) < 10 else -1, found
