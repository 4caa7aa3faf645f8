"""Which jobs win and lose under another policy: by size, user and queue, and those that changed most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from enbloc.traces.outcome import Outcome
from enbloc.traces.replay import Replayed
from enbloc.units import SECOND

_MOST_JOBS: Final = 10
_MOST_GROUPS: Final = 20
"""Groups are listed by their number of jobs."""


def size_class(units: int) -> str:
    """Powers of two: `1`, `2`, `3-4`, `5-8`, …"""
    if units <= 2:
        return str(units)
    high = 1 << (units - 1).bit_length()
    return f"{high // 2 + 1}-{high}"


_GROUPINGS: Final[dict[str, Callable[[Outcome], str]]] = {
    "by_size": lambda outcome: size_class(outcome.job.units),
    "by_user": lambda outcome: outcome.job.user,
    "by_queue": lambda outcome: outcome.job.queue,
}


def compare(before: Replayed, after: Replayed) -> dict[str, Any]:
    """The second policy against the first, job by job; negative changes are shorter waits."""
    pairs = [
        (old, new)
        for old, new in zip(before.outcomes, after.outcomes, strict=True)
        if old.wait_ns is not None and new.wait_ns is not None
    ]
    return {
        "before": before.policy,
        "after": after.policy,
        "sooner": sum(_change(pair) < 0 for pair in pairs),
        "later": sum(_change(pair) > 0 for pair in pairs),
        **{name: list(_groups(pairs, key, by_size=name == "by_size")) for name, key in _GROUPINGS.items()},
        "most_changed": _most_changed(pairs),
    }


Pairs = list[tuple[Outcome, Outcome]]


def _groups(pairs: Pairs, key: Callable[[Outcome], str], *, by_size: bool) -> Iterator[dict[str, Any]]:
    groups: dict[str, Pairs] = {}
    for pair in pairs:
        groups.setdefault(key(pair[0]), []).append(pair)
    if by_size:
        names = sorted(groups, key=lambda name: int(name.split("-")[0]))
    else:
        names = sorted((name for name in groups if name), key=lambda name: (-len(groups[name]), name))[:_MOST_GROUPS]
    for name in names:
        members = groups[name]
        old = sum(pair[0].wait_ns or 0 for pair in members) / len(members) / SECOND
        new = sum(pair[1].wait_ns or 0 for pair in members) / len(members) / SECOND
        yield {
            "name": name,
            "jobs": len(members),
            "sooner": sum(_change(pair) < 0 for pair in members),
            "later": sum(_change(pair) > 0 for pair in members),
            "mean_wait_before_s": old,
            "mean_wait_after_s": new,
        }


def _change(pair: tuple[Outcome, Outcome]) -> int:
    """How much longer the job waits."""
    return (pair[1].wait_ns or 0) - (pair[0].wait_ns or 0)


def _most_changed(pairs: Pairs) -> list[dict[str, Any]]:
    changed = sorted((pair for pair in pairs if _change(pair)), key=lambda pair: (-abs(_change(pair)), pair[0].job.id))
    return [
        {
            "job": old.job.id,
            "units": old.job.units,
            "user": old.job.user,
            "queue": old.job.queue,
            "wait_before_s": (old.wait_ns or 0) / SECOND,
            "wait_after_s": (new.wait_ns or 0) / SECOND,
        }
        for old, new in changed[:_MOST_JOBS]
    ]
