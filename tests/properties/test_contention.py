"""I4 to I7, R and P on random loads that contend for too little room (see `contention` for what is looked at).

Nobody is evicted in vain, nobody else uses room that is reserved or being made, nobody is taken below a minimum but as
a whole, plans that fail leave no trace, every load comes to rest; neither questions nor restarts change what is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from enbloc.api.meta import Obj
from enbloc.gangs.hints import RUN_TIME
from properties.contention import check
from properties.loads import CLASSES, Kind, Load, make_load, shortened
from support import manifests as m

seeds = st.integers(0, 2**32 - 1)
LOADS = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
"""A load is shortened by leaving documents out, not by drawing smaller numbers."""


def hold(seed: int, kind: Kind) -> None:
    load = make_load(seed, kind)
    try:
        check(load, kind)
    except AssertionError as why:
        message = str(why)

        def fails(fewer: Load) -> bool:
            try:
                check(fewer, kind)
            except AssertionError as other:
                return str(other)[:12] == message[:12]
            return False

        note(f"seed {seed}, {kind}: {message}\n{shortened(load, fails)}")
        raise


@settings(LOADS, max_examples=4)
@given(seeds)
def test_preempt_reclaim_and_reserve(seed: int) -> None:
    hold(seed, Kind())


@settings(LOADS, max_examples=4)
@given(seeds)
def test_preempt_and_reclaim(seed: int) -> None:
    hold(seed, Kind(reserve=False, easy=False))


@settings(LOADS, max_examples=4)
@given(seeds)
def test_reserve(seed: int) -> None:
    hold(seed, Kind(evictions=False))


@settings(LOADS, max_examples=4)
@given(seeds)
def test_while_nodes_and_objects_are_lost(seed: int) -> None:
    hold(seed, Kind(losses=True))


@settings(LOADS, max_examples=6)
@given(seeds)
def test_r8_in_easy_mode_the_first_one_is_never_late(seed: int) -> None:
    hold(seed, Kind(evictions=False, reserve=False, easy=True, queues=False, exact=True))


@pytest.mark.soak
def test_contention_for_long(rounds: Iterator[int]) -> None:
    """Each seed with another of the 16 kinds of load."""
    for seed in rounds:
        reserve, evictions, queues, losses = (bool(seed >> bit & 1) for bit in range(4))
        hold(seed, Kind(reserve=reserve, evictions=evictions, queues=queues, losses=losses))


# ---- what the loads have found


def acting(*, easy: bool = False, evicting: bool = True, after: int | None = None, percent: int = 100) -> Obj:
    """`after`: how many seconds it takes to starve."""
    names = ["enqueue", "allocate", "backfill", *(["preempt", "reclaim"] if evicting else [])]
    actions: list[Obj] = [{"name": name} for name in names]
    actions[2]["arguments"] = {"mode": "easy" if easy else "best-effort"}
    if after is not None:
        arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
        actions.append({"name": "reserve", "arguments": arguments})
    return {"actions": actions}


def lasting(seconds: int, **notes: str) -> dict[str, Any]:
    """It runs so long, and says so."""
    return {"run_time": f"{seconds}s", "annotations": {RUN_TIME: f"{seconds}s", **notes}}


def load_of(config: Obj, *documents: Obj | list[Obj]) -> Load:
    flat = [one for each in documents for one in (each if isinstance(each, list) else [each])]
    return Load(config, [*CLASSES, *flat])


FOUND = {
    "r8_who_ended_unforeseen_makes_a_reservation_due_at_once": load_of(
        acting(evicting=False, after=3),
        [m.node("n", 3), m.queue("a"), m.queue("b"), m.pod("g", 3, at="0s", priority="high", run_time="30s")],
        m.job("j", m.role("w", 2, run_time="5s"), at="0s", queue="b", priority="mid"),
        m.gang("k", 1, cpu=2, at="4s", queue="a", group_priority="high", **lasting(10)),
    ),
    "i5_a_restart_knows_when_reservations_are_due": load_of(
        acting(evicting=False, after=3),
        [m.node("n", 3), *m.gang("a", 1, at="0s", run_time="30s"), *m.gang("b", 1, cpu=3, at="0s", run_time="30s")],
        m.job("c", m.role("w", 2, run_time="2s", activeDeadlineSeconds=3), at="11s", priority="mid"),
    ),
    "r3_a_guarantee_of_others_is_not_reserved": load_of(
        acting(after=3),
        [m.node("n", 3), m.queue("a", guarantee={"cpu": "1"}), m.pod("g", 3, at="0s", run_time="30s")],
        m.pod("k", 1, at="5s", run_time="30s"),
    ),
    "g9_a_guarantee_that_is_used_lets_others_reserve": load_of(
        acting(after=1),
        [m.node("n", 3), m.node("m", 3), m.queue("a", guarantee={"cpu": "1"})],
        m.gang("g", 2, cpu=3, at="15s", run_time="10s", group_priority="high"),
        m.gang("h", 1, at="18s", run_time="30s", queue="a"),
    ),
    "i5_a_restart_at_the_instant_of_starving": load_of(
        acting(after=8),
        [
            m.node("n", 3),
            m.pod("a", 2, at="0s", run_time="30s"),
            m.job("g", m.role("w", 1, cpu=3), at="1s", priority="nonpreempting"),
        ],
        m.pod("k", 1, at="10s", run_time="5s"),
    ),
    "p1_echoes_reach_the_ledger": load_of(
        acting(after=1, percent=34),
        [m.node("n", 4), m.queue("b", weight=3), *m.gang("a", 2, at="0s", group_priority="low", queue="b")],
        [
            m.pod("g", 3, at="0s", priority="high"),
            m.job("j", m.role("w", 1, cpu=2), at="9s", priority="high", queue="b"),
        ],
    ),
    "p1_surplus_is_not_spared_when_its_gang_goes": load_of(
        acting(),
        [m.node("n", 4), m.job("a", m.role("w", 3, 2, run_time="30s"), m.role("m", 1, 1, run_time="30s"), at="1s")],
        m.gang("g", 3, at="19s", group_priority="mid", run_time="30s"),
    ),
    "p3_nobody_reserves_room_that_is_being_made": load_of(
        acting(after=8),
        [m.node("n", 3), *m.gang("a", 3, at="0s", group_priority="mid", run_time="30s", stop_delay="7s")],
        m.gang("b", 1, cpu=3, at="7s", group_priority="nonpreempting", run_time="2s"),
        m.gang("g", 2, at="14s", group_priority="high", run_time="30s"),
    ),
    "p3_a_victim_does_not_reserve_room_that_is_being_made": load_of(
        acting(after=1, percent=50),
        [m.node("n", 3), m.queue("a"), m.queue("b", guarantee={"cpu": "1"})],
        m.job("a", m.role("w", 3, 1, cpu=2, run_time="10s", stop_delay="7s"), at="0s", priority="mid", queue="a"),
        m.gang("b", 1, at="1s", group_priority="low", queue="b", run_time="30s"),
        m.gang("g", 1, at="9s", group_priority="high", queue="a", run_time="10s"),
    ),
    "r5_nobody_makes_room_where_others_have_reserved": load_of(
        acting(after=3),
        [m.node("n", 3), m.queue("b"), m.pod("g", 3, at="1s", priority="mid", run_time="10s")],
        m.gang("a", 3, at="0s", group_priority="mid", queue="b", stop_delay="7s", **lasting(30)),
        m.pod("k", 1, at="13s", priority="low", **lasting(10)),
    ),
    "p1_who_leaves_for_a_guarantee_is_not_spared": load_of(
        acting(),
        [m.queue(name, guarantee={"cpu": "1"}) for name in "ab"],
        [
            m.node("n", 3),
            m.node("m", 3),
            m.job("a", m.role("w", 1, cpu=2, run_time="10s"), m.role("m", 1, run_time="10s"), at="0s"),
        ],
        [
            m.job("g", m.role("w", 2, cpu=2), at="1s", priority="mid"),
            m.job("k", m.role("w", 1, run_time="30s"), at="1s", priority="low"),
        ],
    ),
    "g9_who_could_not_reserve_for_room_that_is_being_made": load_of(
        acting(after=3),
        [
            m.node("n", 4, pods=3),
            m.queue("a", weight=3),
            m.pod("p", 1, at="1s", priority="low", stop_delay="2s"),
            m.pod("q", 1, at="1s"),
        ],
        m.job("b", m.role("w", 3), at="12s", queue="a"),
        m.job("g", m.role("w", 3, 2, run_time="2s"), at="16s", priority="mid"),
    ),
    "i7_a_forecast_leaves_nominations_alone": load_of(
        acting(easy=True),
        [m.node("n", 3), *m.gang("a", 3, at="0s", group_priority="low", stop_delay="7s", run_time="30s")],
        [*m.gang("g", 2, at="5s", group_priority="high", run_time="10s"), m.pod("k", 1, at="6s", **lasting(2))],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    check(FOUND[name], Kind())


def test_r8_surplus_of_older_gangs_does_not_delay_the_first_one() -> None:
    load = load_of(
        acting(easy=True, evicting=False),
        [m.node("n", 2), m.pod("a", 1, at="0s", **lasting(10)), *m.gang("g", 2, 1, at="0s", **lasting(30))],
        m.pod("h", 2, at="1s", **lasting(5)),
    )
    check(load, Kind(evictions=False, reserve=False, easy=True, queues=False, exact=True))
