"""Accounts: what each queue, namespace or user has used of the cluster over time (G12).

The unit is the nanosecond of the whole cluster: half of its GPUs for two seconds are 10⁹ of them. What is used at a
moment is the dominant share, as for queues (V4). Usage halves with every half-life. An account is three numbers (how
much, as of when, at which rate since), changed only when the rate changes: so a record of them is all that a scheduler
that starts later needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.core.tables.resources import PODS, Ints

WHOLE: Final = 10**15
"""The whole cluster as a rate: parts that are small enough to add up to less than a microsecond in years."""
BILLIONTH: Final = WHOLE // 10**9
MICROSECOND: Final = 1_000
"""Less than a microsecond of the whole cluster is nothing: neither usage, nor a difference between accounts."""
_LN2: Final = math.log(2)


class UsageOrder(NamedTuple):
    """Both against the account's share: less comes first."""

    used: int
    """Over time, in microseconds of the whole cluster."""
    rate: int
    """At the moment, in billionths of the cluster."""


class Account:
    """As part of an order key: the account that has used less of its share comes first; of equal ones that which uses
    less now. `order` is set once a cycle, and when a gang of the account is bound: comparing changes nothing (O4)."""

    __slots__ = ("as_of_ns", "gangs", "name", "order", "queue", "rate", "share", "usage_ns", "used", "used_ns")

    def __init__(self, queue: str, name: str, share: int) -> None:
        self.queue = queue
        self.name = name
        self.share = share
        self.usage_ns = 0
        self.as_of_ns = 0
        self.rate = 0
        """Of `WHOLE`."""
        self.used_ns = 0.0
        """Usage at the time of the cycle."""
        self.used: dict[int, int] = {}
        """By column: what its pods that are assigned to nodes request."""
        self.gangs = 0
        """Gangs that are charged to it, or wait."""
        self.order = UsageOrder(0, 0)

    def usage_at(self, now_ns: int, half_life_ns: int) -> float:
        """Usage at an instant, if the rate has not changed since `as_of_ns`."""
        passed = max(0, now_ns - self.as_of_ns) / half_life_ns
        left = math.exp2(-passed)
        gained = self.rate / WHOLE * half_life_ns / _LN2 * -math.expm1(-passed * _LN2)
        found = self.usage_ns * left + gained
        return found if found >= MICROSECOND else 0.0

    def set_rate(self, rate: int, now_ns: int, half_life_ns: int) -> bool:
        """Uses this part of the cluster from now on. Whether that is a change."""
        if rate == self.rate:
            return False
        self.usage_ns, self.as_of_ns, self.rate = round(self.usage_at(now_ns, half_life_ns)), now_ns, rate
        return True

    def clear(self) -> None:
        """Its record is gone with its queue."""
        self.usage_ns = self.as_of_ns = self.rate = 0

    def update_order(self, now_ns: int, half_life_ns: int) -> None:
        self.used_ns = self.usage_at(now_ns, half_life_ns)
        self.order = UsageOrder(in_microseconds(self.used_ns / self.share), round(self.rate / self.share / BILLIONTH))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Account) and self.order == other.order

    def __lt__(self, other: Account) -> bool:
        return self.order < other.order

    def __le__(self, other: Account) -> bool:
        return self.order <= other.order

    def __gt__(self, other: Account) -> bool:
        return self.order > other.order

    def __ge__(self, other: Account) -> bool:
        return self.order >= other.order

    def __hash__(self) -> int:
        """The same for all, since any two may become equal; what tells accounts apart is `Order.account`."""
        return hash(Account)

    def __repr__(self) -> str:
        return f"Account({self.queue}: {self.name} {self.usage_ns} as of {self.as_of_ns}, {self.rate / WHOLE})"


def in_microseconds(used_ns: float) -> int:
    """What usages are compared by: what differs less is equal, however it came about."""
    return round(used_ns / MICROSECOND)


def rate_of(used: Mapping[int, int], totals: Ints) -> int:
    """The dominant share of these amounts in the cluster, of `WHOLE`; of a resource that no node has: all of it."""
    most = 0
    for column, amount in used.items():
        if column != PODS and amount > 0:  # numbers of pods are not shared out
            total = int(totals[column]) if column < len(totals) else 0
            most = max(most, amount * WHOLE // total if total > 0 else WHOLE)
    return most


def ranked(accounts: Sequence[Account]) -> tuple[tuple[str, ...], ...]:
    """The names of accounts by their order; those that are equal together."""
    by_order: dict[UsageOrder, list[str]] = {}
    for account in accounts:
        by_order.setdefault(account.order, []).append(account.name)
    return tuple(tuple(sorted(by_order[order])) for order in sorted(by_order))


def next_change(accounts: Sequence[Account], now_ns: int, half_life_ns: int) -> int | None:
    """When two of these accounts come to change places, if no rate changes until then; `None`: never.

    With x = 2^(-t / half-life) the usage of each is a straight line in x, so two of them cross at most once, and the
    first two that cross are neighbours in the present order."""
    if len(accounts) < 2:
        return None
    in_order = sorted(accounts, key=lambda account: (account.used_ns / account.share, account.order))
    steady = np.array([one.rate / WHOLE * half_life_ns / _LN2 / one.share for one in in_order])
    present = np.array([one.used_ns / one.share for one in in_order])
    falls = np.diff(present - steady)
    rises = np.diff(steady)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = -rises / falls
    crossings = crossings[(rises < 0) & (crossings > 0) & (crossings < 1)]
    if not len(crossings):
        return None
    after_ns = half_life_ns * -math.log2(float(crossings.max()))
    return now_ns + max(1, math.ceil(after_ns))
