"""When gangs starve (R1): the instant is known, and what was known is forgotten with what it was known of."""

from __future__ import annotations

from typing import Any, cast

import pytest

from enbloc.engine.queueing import starvation as module
from enbloc.engine.queueing.starvation import Starvation
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.hints import SchedulingHints
from enbloc.gangs.model import GangKey, GangSpec

AFTER = 60


class Known:
    """The gangs that exist, and those that the next cycle reads again."""

    def __init__(self) -> None:
        self.gangs: dict[GangKey, GangState] = {}
        self.touched: list[str] = []

    def touch(self, gang: GangState) -> None:
        self.touched.append(gang.key.name)


class Scene:
    def __init__(self, after_ns: int | None = AFTER) -> None:
        self.known = Known()
        self.starvation = Starvation(cast(State, self.known), after_ns)

    def gang(self, name: str = "g", created_ns: int = 0, **fields: Any) -> GangState:
        """A gang of two pods that exists, and is read."""
        made = GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", created_ns, 2, **fields))
        self.known.gangs[made.key] = made
        self.starvation.gang_read(made)
        return made

    def begin(self, now_ns: int) -> list[str]:
        """The gangs that are read again in a cycle."""
        self.known.touched.clear()
        self.starvation.cycle_begins(now_ns)
        return list(self.known.touched)


@pytest.mark.parametrize(
    ("created", "own", "at"), [(0, None, 60), (5, None, 65), (5, 10, 15), (5, 100, 105), (5, 0, 5)]
)
def test_r1_a_gang_starves_so_long_after_its_creation(created: int, own: int | None, at: int) -> None:
    """Its own annotation goes before the configured time."""
    scene = Scene()
    gang = scene.gang(created_ns=created, hints=SchedulingHints(sla_waiting_ns=own))
    scene.starvation.gang_read(gang)  # other facts of it changed
    assert scene.starvation.due() == at
    assert scene.begin(at - 1) == []
    assert not scene.starvation.is_starving(gang)
    assert scene.begin(at) == ["g"]
    assert scene.starvation.is_starving(gang)
    assert list(scene.starvation.gangs.values()) == [gang]
    assert scene.starvation.due() is None
    assert scene.begin(at + 1) == [], "once"


def test_r1_a_gang_that_is_first_read_when_its_time_has_passed_starves_at_once() -> None:
    scene = Scene()
    scene.begin(AFTER)
    assert scene.starvation.is_starving(scene.gang("old"))
    assert not scene.starvation.is_starving(scene.gang("young", created_ns=1))
    assert scene.starvation.due() == AFTER + 1


def test_r1_no_gang_starves_where_that_is_not_configured() -> None:
    scene = Scene(after_ns=None)
    gang = scene.gang()
    assert scene.starvation.due() is None
    assert scene.begin(10 * AFTER) == []
    assert not scene.starvation.is_starving(gang)


@pytest.mark.parametrize("why", ["no pod of it waits", "finished", "ready"])
@pytest.mark.parametrize("starves", [False, True])
def test_r1_a_gang_whose_minima_are_placed_does_not_starve(why: str, starves: bool) -> None:
    scene = Scene()
    gang = scene.gang()
    scene.begin(AFTER if starves else 1)
    assert scene.starvation.is_starving(gang) is starves
    if why == "finished":
        gang.assume(finished=True)
    elif why == "ready":
        gang.occupied = {"": 2}
    else:
        gang.covered = "2"
    scene.starvation.gang_read(gang)
    assert not scene.starvation.is_starving(gang)
    assert scene.starvation.due() is None
    assert scene.begin(AFTER) == []


@pytest.mark.parametrize("why", ["ready", "gone", "another object"])
def test_r1_a_gang_that_changed_since_it_was_read_is_not_read_for_starving(why: str) -> None:
    scene = Scene()
    gang = scene.gang()
    if why == "ready":
        gang.occupied = {"": 2}
    elif why == "gone":
        del scene.known.gangs[gang.key]
    else:
        scene.known.gangs[gang.key] = GangState(gang.spec)
    assert scene.begin(AFTER) == []
    assert not scene.starvation.gangs


def test_r1_nothing_is_kept_of_a_gang_that_is_gone() -> None:
    scene = Scene()
    starving, waiting = scene.gang("a"), scene.gang("b", created_ns=100)
    scene.begin(AFTER)
    for gang in (starving, waiting):
        scene.starvation.note_failed(gang, "facts")
        scene.starvation.gang_gone(gang)
        assert not scene.starvation.has_failed(gang, "facts")
    assert not scene.starvation.is_starving(starving)
    assert scene.starvation.due() is None


def test_r1_a_new_gang_of_the_same_name_waits_from_its_own_creation() -> None:
    scene = Scene()
    scene.gang()
    scene.begin(AFTER)
    again = scene.gang(created_ns=AFTER)
    assert not scene.starvation.is_starving(again)
    assert scene.starvation.due() == 2 * AFTER
    other = scene.gang(created_ns=AFTER)  # created at the same instant
    assert not scene.starvation.is_starving(again)
    scene.begin(2 * AFTER)
    assert scene.starvation.is_starving(other)
    assert not scene.starvation.is_starving(again)


def test_r1_another_waiting_time_counts_from_now_on() -> None:
    scene = Scene()
    gang = scene.gang()
    scene.begin(AFTER)
    gang.spec = GangSpec(gang.key, "ns/g", 0, 2, hints=SchedulingHints(sla_waiting_ns=100))
    scene.starvation.gang_read(gang)
    assert not scene.starvation.is_starving(gang)
    assert scene.starvation.due() == 100


def test_r1_the_next_instant_is_the_earliest_of_all_gangs() -> None:
    scene = Scene()
    for name, created_ns in (("c", 3), ("a", 1), ("b", 2)):
        scene.gang(name, created_ns)
    assert scene.starvation.due() == AFTER + 1
    assert scene.begin(AFTER + 2) == ["a", "b"]
    assert scene.starvation.due() == AFTER + 3


def test_r1_changes_of_a_gang_leave_one_instant_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stale entries are dropped; no instant is lost by that."""
    monkeypatch.setattr(module, "_STALE_BOUND", 2)
    scene = Scene()
    other = scene.gang("other", created_ns=500)
    starving = scene.gang("starving")
    scene.begin(AFTER)
    for created_ns in range(100, 130):
        gang = scene.gang("g", created_ns)
    assert len(scene.starvation._heap) <= 2 * 3 + 2
    assert scene.starvation.due() == AFTER + 129
    assert scene.begin(AFTER + 129) == ["g"]
    assert scene.starvation.is_starving(gang)
    assert scene.starvation.is_starving(starving)
    assert scene.begin(AFTER + 500) == ["other"]
    assert scene.starvation.is_starving(other)


def test_g9_a_reservation_that_failed_is_retried_when_facts_change_or_the_gang_is_read() -> None:
    scene = Scene()
    gang, other = scene.gang("a"), scene.gang("b")
    assert not scene.starvation.has_failed(gang, "facts")
    for one in (gang, other):
        scene.starvation.note_failed(one, "facts")
    assert scene.starvation.has_failed(gang, "facts")
    assert not scene.starvation.has_failed(gang, "other facts")
    scene.starvation.gang_read(gang)
    assert not scene.starvation.has_failed(gang, "facts")
    assert scene.starvation.has_failed(other, "facts")
    scene.starvation.retry_all()
    assert not scene.starvation.has_failed(other, "facts")
