"""Every part that keeps facts between cycles is called at the same four moments (decision 0053)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.engine import Engine
from enbloc.engine.follower import Follower
from support import manifests as m
from support.direct_scheduler import DirectScheduler

MOMENTS = ("cycle_begins", "gang_read", "gang_gone", "due")
ALL_PARTS = {
    "actions": "enqueue, allocate, backfill, preempt, reclaim, reserve",
    "tiers": [{"plugins": [{"name": "fair"}]}],
}


def test_a_part_with_one_of_the_moments_is_a_follower() -> None:
    parts = Engine(parse(ALL_PARTS)).parts
    named = [part for part in parts if any(hasattr(part, moment) for moment in MOMENTS)]
    assert len(named) > 10
    assert [part for part in named if not isinstance(part, Follower)] == []
    assert list(parts.followers) == named


def noting(call: Callable[..., Any], noted: list[str], name: str) -> Callable[..., Any]:
    def noted_call(*arguments: Any) -> Any:
        noted.append(name)
        return call(*arguments)

    return noted_call


def test_each_follower_is_called_at_each_moment_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = DirectScheduler(parse(ALL_PARTS))
    direct.put(m.node("n"), 0)
    direct.put(m.pod("p"), 1)
    followers = direct.engine.parts.followers
    called: dict[str, list[str]] = {moment: [] for moment in MOMENTS}
    for part in followers:
        for moment, noted in called.items():
            monkeypatch.setattr(part, moment, noting(getattr(part, moment), noted, type(part).__name__))
    direct.engine.run(10**9)
    (gang,) = direct.engine.state.gangs.values()
    direct.engine.due()
    direct.engine.state.gang_table.when_forgotten(gang)
    in_order = [type(part).__name__ for part in followers]
    assert called == dict.fromkeys(MOMENTS, in_order)
