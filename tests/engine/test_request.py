"""What an attempt is asked to place: minima by role, then the total, then replacements (O1, G7, D3)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from engine.gang_states import gang, task


def waiting(made: GangState, **roles: int) -> GangState:
    """So many pending tasks of each role: `m0`, `m1`, …"""
    for role, count in roles.items():
        for index in range(count):
            task(made, f"{role}{index}", index, role)
        made.pending[role] = count
    return made


def names(tasks: Any) -> str:
    return " ".join(one.name for one in tasks)


@pytest.mark.parametrize(
    ("made", "needed", "rest", "short"),
    [
        (gang(2, {"w": 2}), "w0 w1", "w2", 0),
        (gang(3, {"w": 2}), "w0 w1", "w2", 1),
        (gang(3, {"w": 2}, occupied={"w": 1}), "w0", "w1 w2", 1),
        (gang(3, {"w": 2}, occupied={"w": 5}), "", "w0 w1 w2", 0),
        (gang(2, {"w": 2}, held={"w": 1}), "w0", "w1 w2", 0),
        (gang(2), "", "w0 w1 w2", 2),
        (gang(3, {"m": 1, "w": 1}), "w0", "w1 w2", 2),
        (gang(9, {"w": 9}), "w0 w1 w2", "", 6),
        (gang(4, {"m": 1, "w": 3}, occupied={"w": 2}), "w0", "w1 w2", 1),
        (gang(3, {"m": 1, "w": 2}, ran="m"), "w0 w1", "w2", 0),
        (gang(3, {"m": 1, "w": 2}, behind="w"), "", "", 1),
    ],
)
def test_o1_of_three_tasks_of_one_role(made: GangState, needed: str, rest: str, short: int) -> None:
    made.tasks.clear()
    found = request_of(waiting(made, w=3))
    assert (names(found.needed), names(found.rest), found.short) == (needed, rest, short)


def test_o1_role_minima_come_before_the_total_in_the_order_of_tasks() -> None:
    found = request_of(waiting(gang(4, {"m": 1, "w": 1}), m=2, w=2, x=1))
    assert (names(found.needed), names(found.rest), found.short) == ("m0 w0", "x0 m1 w1", 2)
    assert request_of(found.gang, [found.rest[0]]).rest == [found.rest[0]], "the tasks that are given"
    assert names(found.must) == "m0 w0"
    assert names(found.minimum) == "m0 w0 x0 m1"
    later = [task(gang(), "later")]
    assert names(found._replace(later=later).must) == "m0 w0 later"
    assert names(found._replace(later=later).everything) == "m0 w0 x0 m1 later"


def test_o1_several_roles_of_several_waves() -> None:
    made = waiting(gang(6, {"a": 1, "b": 3, "c": 2}, ran="a", behind="c"), a=2, b=4, c=2)
    found = request_of(made)
    assert (names(found.needed), names(found.rest), found.short) == ("b0 b1 b2", "b3", 0)
    made.behind = frozenset()
    found = request_of(made)
    assert (names(found.needed), names(found.rest), found.short) == ("b0 c0 b1 c1 b2", "b3", 0)


def test_what_remains_of_a_request_when_some_tasks_are_placed() -> None:
    made = waiting(gang(5, {"w": 2}), w=5)
    found = request_of(made)
    assert (names(found.needed), names(found.rest), found.short) == ("w0 w1", "w2 w3 w4", 3)
    for one in (found.needed[0], found.rest[1]):
        one.status = TaskStatus.ASSUMED
    left = found.remaining()
    assert (names(left.needed), names(left.rest), left.short) == ("w1", "w2 w4", 2)
    for one in found.rest:
        one.status = TaskStatus.ASSUMED
    assert found.remaining().short == 0
    for one in (found.rest[0], found.rest[2]):
        one.status = TaskStatus.PENDING
    found.rest[0].status = TaskStatus.BOUND  # by another decision: it does not count for this one
    assert (names(found.remaining().rest), found.remaining().short) == ("w4", 2)


def test_what_remains_of_the_minima_alone_and_of_later_waves() -> None:
    made = gang(2)
    first, second, later = (task(made, name) for name in ("first", "second", "later"))
    first.status = TaskStatus.ASSUMED
    assert names(PlacementRequest(made, [first, second]).remaining().needed) == "second"
    waits = PlacementRequest(made, [first, second], later=[later])
    assert names(waits.remaining().everything) == "second later"
    later.status = TaskStatus.ASSUMED
    assert names(waits.remaining().everything) == "second"


@pytest.mark.parametrize(
    ("ran", "occupied", "found"),
    [
        ("", {}, ""),
        ("m", {"m": 1}, ""),
        ("m", {}, "m0"),
        ("mw", {"m": 0, "w": 1}, "m0 w0"),
        ("mw", {"m": 1}, "w0 w1"),
        ("w", {"w": 9}, ""),
    ],
)
def test_g7_replacements_of_lost_members_of_earlier_waves(ran: str, occupied: dict[str, int], found: str) -> None:
    made = waiting(gang(3, {"m": 1, "w": 2}, ran=ran, occupied=occupied), m=2, w=3)
    lost: list[Task] = replacements(made)
    assert names(lost) == found
