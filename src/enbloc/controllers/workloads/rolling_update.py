"""How many pods each ReplicaSet of a Deployment gets next: arithmetic on plain numbers.

At most `replicas + surge` pods exist, and at least `replicas - unavailable` are available, at every step.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Size(msgspec.Struct):
    """One ReplicaSet: how many pods it wants and how many of them are available. `replicas` is changed in place."""

    replicas: int
    available: int
    most: int = 0
    """The most pods that the Deployment could have when this set was scaled last; 0 if not known."""


class Limits(msgspec.Struct, frozen=True):
    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge if self.replicas else 0

    @property
    def fewest_available(self) -> int:
        return self.replicas - self.unavailable


def roll(limits: Limits, new: Size, old: Sequence[Size]) -> None:
    """One step: the new set grows, or else old ones (oldest first) shrink."""
    if new.replicas > limits.replicas:
        new.replicas = limits.replicas
        return
    total = new.replicas + sum(one.replicas for one in old)
    room = min(limits.replicas + limits.surge - total, limits.replicas - new.replicas)
    if room > 0:
        new.replicas += room
        return
    _shrink(limits, new, old)


def _shrink(limits: Limits, new: Size, old: Sequence[Size]) -> None:
    total = new.replicas + sum(one.replicas for one in old)
    waiting = new.replicas - new.available
    spare = total - limits.fewest_available - waiting
    for one in old:  # pods that are not available are of no use
        count = min(max(spare, 0), max(one.replicas - one.available, 0))
        one.replicas -= count
        spare -= count
    spare = min(spare, new.available + sum(one.available for one in old) - limits.fewest_available)
    for one in old:
        count = min(max(spare, 0), one.replicas)
        one.replicas -= count
        spare -= count


def rescale(limits: Limits, new: Size | None, old: Sequence[Size]) -> None:
    """The Deployment's own number changed: its sets grow or shrink in proportion, so that a rollout can go on."""
    sets = [one for one in (*([new] if new is not None else []), *reversed(old)) if one.replicas]
    if not sets and new is not None:
        sets = [new]
    if len(sets) == 1:
        sets[0].replicas = limits.replicas
        return
    change = limits.most - sum(one.replicas for one in sets)
    left = change
    for one in sorted(sets, key=lambda one: -one.replicas):
        exact = round(one.replicas * limits.most / one.most) - one.replicas if one.most else 0
        part = max(min(exact, left), 0) if change > 0 else min(max(exact, left, -one.replicas), 0)
        one.replicas += part
        left -= part
    for one in sets:  # what rounding left over
        part = left if left > 0 else max(left, -one.replicas)
        one.replicas += part
        left -= part
