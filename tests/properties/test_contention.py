"""I4 to I7, R and P on random loads that contend for too little room (see `contention` for what is looked at).

Nobody is evicted in vain, nobody else uses room that is reserved or being made, nobody is taken below a minimum but as
a whole, plans that fail leave no trace, every load comes to rest; neither questions nor restarts change what is done.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from enbloc.api.meta import Obj
from enbloc.gangs.hints import RUN_TIME
from properties.contention import check
from properties.loads import CLASSES, Kind, Load, make_load, shortened
from stories import gang, job, node, pod, queue, role

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
@settings(LOADS, max_examples=1_000)
@given(
    seeds, st.builds(Kind, reserve=st.booleans(), evictions=st.booleans(), queues=st.booleans(), losses=st.booleans())
)
def test_contention_for_long(seed: int, kind: Kind) -> None:
    hold(seed, kind)


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
    return {"run": f"{seconds}s", "notes": {RUN_TIME: f"{seconds}s", **notes}}


def told(config: Obj, *documents: Obj | list[Obj]) -> Load:
    flat = [one for each in documents for one in (each if isinstance(each, list) else [each])]
    return Load(config, [*CLASSES, *flat])


FOUND = {
    "r8_who_ended_unforeseen_makes_a_reservation_due_at_once": told(
        acting(evicting=False, after=3),
        [node("n", 3), queue("a"), queue("b"), pod("g", 3, at="0s", priority="high", run="30s")],
        job("j", role("w", 2, run="5s"), at="0s", queue="b", priority="mid"),
        gang("k", 1, cpu=2, at="4s", queue="a", group_priority="high", **lasting(10)),
    ),
    "i5_a_restart_knows_when_reservations_are_due": told(
        acting(evicting=False, after=3),
        [node("n", 3), *gang("a", 1, at="0s", run="30s"), *gang("b", 1, cpu=3, at="0s", run="30s")],
        job("c", role("w", 2, run="2s", activeDeadlineSeconds=3), at="11s", priority="mid"),
    ),
    "r3_a_guarantee_of_others_is_not_reserved": told(
        acting(after=3),
        [node("n", 3), queue("a", guarantee={"resource": {"cpu": "1"}}), pod("g", 3, at="0s", run="30s")],
        pod("k", 1, at="5s", run="30s"),
    ),
    "g9_a_guarantee_that_is_used_lets_others_reserve": told(
        acting(after=1),
        [node("n", 3), node("m", 3), queue("a", guarantee={"resource": {"cpu": "1"}})],
        gang("g", 2, cpu=3, at="15s", run="10s", group_priority="high"),
        gang("h", 1, at="18s", run="30s", queue="a"),
    ),
    "i5_a_restart_at_the_instant_of_starving": told(
        acting(after=8),
        [node("n", 3), pod("a", 2, at="0s", run="30s"), job("g", role("w", 1, cpu=3), at="1s", priority="polite")],
        pod("k", 1, at="10s", run="5s"),
    ),
    "p1_echoes_reach_the_ledger": told(
        acting(after=1, percent=34),
        [node("n", 4), queue("b", weight=3), *gang("a", 2, at="0s", group_priority="low", queue="b")],
        [pod("g", 3, at="0s", priority="high"), job("j", role("w", 1, cpu=2), at="9s", priority="high", queue="b")],
    ),
    "p1_surplus_is_not_spared_when_its_gang_goes": told(
        acting(),
        [node("n", 4), job("a", role("w", 3, 2, run="30s"), role("m", 1, 1, run="30s"), at="1s")],
        gang("g", 3, at="19s", group_priority="mid", run="30s"),
    ),
    "p3_nobody_reserves_room_that_is_being_made": told(
        acting(after=8),
        [node("n", 3), *gang("a", 3, at="0s", group_priority="mid", run="30s", stop="7s")],
        gang("b", 1, cpu=3, at="7s", group_priority="polite", run="2s"),
        gang("g", 2, at="14s", group_priority="high", run="30s"),
    ),
    "p3_a_victim_does_not_reserve_room_that_is_being_made": told(
        acting(after=1, percent=50),
        [node("n", 3), queue("a"), queue("b", guarantee={"resource": {"cpu": "1"}})],
        job("a", role("w", 3, 1, cpu=2, run="10s", stop="7s"), at="0s", priority="mid", queue="a"),
        gang("b", 1, at="1s", group_priority="low", queue="b", run="30s"),
        gang("g", 1, at="9s", group_priority="high", queue="a", run="10s"),
    ),
    "r5_nobody_makes_room_where_others_have_reserved": told(
        acting(after=3),
        [node("n", 3), queue("b"), pod("g", 3, at="1s", priority="mid", run="10s")],
        gang("a", 3, at="0s", group_priority="mid", queue="b", stop="7s", **lasting(30)),
        pod("k", 1, at="13s", priority="low", **lasting(10)),
    ),
    "p1_who_leaves_for_a_guarantee_is_not_spared": told(
        acting(),
        [queue(name, guarantee={"resource": {"cpu": "1"}}) for name in "ab"],
        [node("n", 3), node("m", 3), job("a", role("w", 1, cpu=2, run="10s"), role("m", 1, run="10s"), at="0s")],
        [
            job("g", role("w", 2, cpu=2), at="1s", priority="mid"),
            job("k", role("w", 1, run="30s"), at="1s", priority="low"),
        ],
    ),
    "g9_who_could_not_reserve_for_room_that_is_being_made": told(
        acting(after=3),
        [
            node("n", 4, pods=3),
            queue("a", weight=3),
            pod("p", 1, at="1s", priority="low", stop="2s"),
            pod("q", 1, at="1s"),
        ],
        job("b", role("w", 3), at="12s", queue="a"),
        job("g", role("w", 3, 2, run="2s"), at="16s", priority="mid"),
    ),
    "i7_a_forecast_leaves_nominations_alone": told(
        acting(easy=True),
        [node("n", 3), *gang("a", 3, at="0s", group_priority="low", stop="7s", run="30s")],
        [*gang("g", 2, at="5s", group_priority="high", run="10s"), pod("k", 1, at="6s", **lasting(2))],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    check(FOUND[name], Kind())


def test_r8_surplus_of_older_gangs_does_not_delay_the_first_one() -> None:
    load = told(
        acting(easy=True, evicting=False),
        [node("n", 2), pod("a", 1, at="0s", **lasting(10)), *gang("g", 2, 1, at="0s", **lasting(30))],
        pod("h", 2, at="1s", **lasting(5)),
    )
    check(load, Kind(evictions=False, reserve=False, easy=True, queues=False, exact=True))
