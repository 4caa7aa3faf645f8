"""The commit mark: distinguishes a gang whose minima were bound from one that was bound only in part (G7, G11).

The mark lists the minima that were bound. It is an annotation of a Binding, which the API server copies to the pod. A
gang is satisfied as long as a mark covers its present minima; a raised minimum is not covered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, islice
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

_ID_BITS: Final = 80
_ID: Final = re.compile(rf"([0-9a-f]{{{_ID_BITS // 4}}})-([0-9]{{1,9}})")
SETS_TRIED: Final = 10_000
"""So many sets of waiting pods are compared with what is left of a decision."""


def decision_id(uids: Collection[str]) -> str:
    """The same for the same pods, different for any others: no counter has to survive a restart. It is a sum over the
    pods, and their number: from those that were bound follows what is left (see `is_cut_off`)."""
    return f"{sum(map(_number, uids)) % 2**_ID_BITS:0{_ID_BITS // 4}x}-{len(uids)}"


def _number(uid: str) -> int:
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=_ID_BITS // 8).digest())


def is_cut_off(decision: str, bound: Collection[str], waiting: Sequence[str]) -> bool:
    """Whether the pods that a decision did not bind are all among those that wait, which are given by how likely they
    were meant. `False`: some of them are gone. An id that is no sum counts as cut off."""
    found = _ID.fullmatch(decision)
    if found is None:
        return True
    left = (int(found[1], 16) - sum(map(_number, bound))) % 2**_ID_BITS
    numbers = [_number(uid) for uid in waiting]
    sets = combinations(numbers, max(0, int(found[2]) - len(bound)))
    return any(sum(one) % 2**_ID_BITS == left for one in islice(sets, SETS_TRIED))


class Minima(NamedTuple):
    """How many members must be placed before any is bound, in all and by role."""

    total: int
    by_role: Mapping[str, int]


def mark_of(minima: Minima, without: Collection[str] = (), most: int | None = None) -> str:
    """The mark of a gang's minima: `5;master=3;work=2`, with a total of no more than `most`. Special characters in
    roles are percent-escaped."""
    if not without:
        return _encode(minima.total, minima.by_role)
    bound = {role: count for role, count in minima.by_role.items() if role not in without}
    total = minima.total - sum(minima.by_role.values()) + sum(bound.values())
    return _encode(total if most is None else min(total, most), bound)


def _encode(total: int, roles: Mapping[str, int]) -> str:
    parts = [f";{_quoted(role)}={count}" for role, count in sorted(roles.items())]
    return f"{total}{''.join(parts)}"


def _quoted(role: str) -> str:
    if role.isascii() and role.isalnum():  # most roles: nothing to escape
        return role
    return quote(role, safe="", errors="replace")


def covers(mark: str, minima: Minima) -> bool:
    """Whether the bound minima are at least the gang's present minima."""
    if not mark:
        return False
    total, roles = _decode(mark)
    return total >= minima.total and all(roles.get(role, 0) >= count for role, count in minima.by_role.items())


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


def covered_roles(mark: str, minima: Minima) -> frozenset[str]:
    """The roles whose present minima a mark covers."""
    roles = _decode(mark)[1] if mark else {}
    return frozenset(role for role, count in minima.by_role.items() if roles.get(role, 0) >= count)


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
