"""How much is free over time (R8): tasks that end, and plans that are made, from a time on and for so long."""

from __future__ import annotations

import numpy as np
import pytest

from enbloc.engine.core.run_times import ENDLESS
from enbloc.engine.core.tables.resources import Ints
from enbloc.engine.features.backfill import free_profile
from enbloc.engine.features.backfill.free_profile import FreeProfile, Releases

NOW = 100


def releases(*found: tuple[int, int, int]) -> Releases:
    """Tasks that end: when, on which row, and how much they release of the first column."""
    ends, rows, amounts = (np.array(column, np.int64) for column in zip(*found, strict=True)) if found else (EMPTY,) * 3
    return Releases(ends, np.arange(len(ends)), rows, np.stack([amounts, np.zeros_like(amounts)]))


EMPTY = np.zeros(0, np.int64)


def room(*rows: int) -> Ints:
    """So much of the first column on every row, and 5 of the second."""
    return np.array([rows, [5] * len(rows)], np.int64)


def taken(*rows: int) -> Ints:
    return np.array([rows, [0] * len(rows)], np.int64)


def asked(first: int, second: int = 0) -> Ints:
    return np.array([first, second], np.int64)


def profile() -> FreeProfile:
    """Rows of 1 and 2: two more on the first from 110 on, one more on the second from 120 on."""
    return FreeProfile(room(1, 2), releases((110, 0, 2), (120, 1, 1)), NOW)


@pytest.mark.parametrize(
    ("start", "run_time", "free"),
    [
        (100, None, [1, 2]),
        (100, 5, [1, 2]),
        (100, 999, [1, 2]),
        (109, 5, [1, 2]),  # from before a task ends
        (110, 10, [3, 2]),
        (110, None, [3, 2]),
        (119, 1, [3, 2]),
        (120, 1, [3, 3]),
        (500, None, [3, 3]),
        (90, 5, [1, 2]),  # a start in the past is now
        (110, 0, [3, 2]),
    ],
)
def test_r8_what_is_free_from_a_time_on_for_so_long(start: int, run_time: int | None, free: list[int]) -> None:
    assert profile().between(start, run_time)[0].tolist() == free
    assert profile().between(start, run_time)[1].tolist() == [5, 5]


@pytest.mark.parametrize(
    ("amount", "run_time", "slots"),
    [
        (3, None, [100, 110, 120]),
        (4, None, [110, 120]),
        (5, 7, [110, 120]),
        (6, None, [120]),
        (7, None, []),
    ],
)
def test_r8_the_times_at_which_so_much_is_free(amount: int, run_time: int | None, slots: list[int]) -> None:
    assert list(profile().slots(asked(amount), run_time)) == slots
    assert list(profile().slots(asked(amount, 10), run_time)) == slots
    assert list(profile().slots(asked(amount, 11), run_time)) == [], "the second column never suffices"


@pytest.mark.parametrize(
    ("start", "run_time", "free"),
    [
        (110, 5, {100: [1, 2], 109: [1, 2], 110: [1, 2], 114: [1, 2], 115: [3, 2], 120: [3, 3]}),
        (110, 10, {109: [1, 2], 110: [1, 2], 119: [1, 2], 120: [3, 3]}),
        (110, None, {109: [1, 2], 110: [1, 2], 120: [1, 3], 999: [1, 3]}),
        (100, 15, {100: [-1, 2], 109: [-1, 2], 110: [1, 2], 115: [3, 2]}),
        (110, 200, {110: [1, 2], 120: [1, 3], 309: [1, 3], 310: [3, 3]}),
    ],
)
def test_r8_a_plan_takes_room_for_its_run_time(start: int, run_time: int | None, free: dict[int, list[int]]) -> None:
    planned = profile()
    planned.take(start, run_time, taken(2, 0))
    assert {time: planned.between(time, 1)[0].tolist() for time in free} == free
    assert planned.free_now()[0].tolist() == free.get(100, [1, 2])


@pytest.mark.parametrize(
    ("amount", "run_time", "slots"),
    [
        (3, 5, [100, 115, 120]),  # it ends when the plan begins
        (3, 10, [100, 115, 120]),
        (3, 11, [115, 120]),  # it would last into the plan
        (3, None, [115, 120]),
        (5, None, [115, 120]),
    ],
)
def test_r8_a_slot_lasts_for_the_whole_run_time(amount: int, run_time: int | None, slots: list[int]) -> None:
    planned = profile()
    planned.take(110, 5, taken(3, 0))
    assert list(planned.slots(asked(amount), run_time)) == slots


def test_r8_a_plan_of_an_endless_run_time_has_no_end() -> None:
    planned = profile()
    planned.take(110, ENDLESS - 110, taken(1, 0))
    assert planned.between(110, None)[0].tolist() == [2, 2]
    assert list(planned.slots(asked(0), None)) == [100, 110, 120]


def test_r8_a_task_that_has_overrun_ends_at_any_moment_and_not_now() -> None:
    late = FreeProfile(room(0), releases((90, 0, 4)), NOW)
    assert late.between(NOW, 1)[0].tolist() == [0]
    assert list(late.slots(asked(4), None)) == [NOW + 1]


def test_r8_tasks_that_end_at_one_time_release_together() -> None:
    both = FreeProfile(room(0, 0), releases((110, 0, 1), (110, 0, 2), (110, 1, 4)), NOW)
    assert both.between(110, None)[0].tolist() == [3, 4]
    assert list(both.slots(asked(7), None)) == [110]


def test_r8_without_any_end_what_is_free_now_is_free_for_ever() -> None:
    still = FreeProfile(room(2), releases(), NOW)
    assert list(still.slots(asked(2), None)) == [NOW]
    assert list(still.slots(asked(3), None)) == []


@pytest.mark.parametrize(("steps", "slots"), [(3, [110, 120, 130]), (2, [110, 130])])
def test_r8_of_many_ends_some_count_as_later_and_none_as_earlier(
    steps: int, slots: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_profile, "STEPS", steps)
    many = FreeProfile(room(0), releases((110, 0, 1), (120, 0, 1), (130, 0, 1)), NOW)
    assert list(many.slots(asked(1), None)) == slots
    assert many.between(130, None)[0].tolist() == [3]
    assert many.between(125, None)[0].tolist() == ([2] if steps == 3 else [1])
