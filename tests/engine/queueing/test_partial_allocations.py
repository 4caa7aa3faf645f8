"""Partial allocations (A2): room that a gang keeps within a cycle, and when it keeps nothing any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.events import ClusterEvents, EventKind
from enbloc.engine.queueing.partial_allocations import PartialAllocations
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey, GangSpec


class Scene:
    """Gangs `a` and `b` keep a partial allocation each."""

    def __init__(self, backfills: bool = False) -> None:
        self.rolled_back: list[str] = []
        self.gangs = {name: self.make(name) for name in "ab"}
        self.state = SimpleNamespace(
            gangs={gang.key: gang for gang in self.gangs.values()}, dirty={}, events=ClusterEvents()
        )
        self.kept = PartialAllocations(cast(State, self.state), backfills)
        for name, gang in self.gangs.items():
            undo = SimpleNamespace(rollback=lambda name=name: self.rolled_back.append(name))
            self.kept.keep(gang, cast(Transaction, undo), cast(Diagnosis, f"why {name}"))

    def make(self, name: str) -> GangState:
        return GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", 0, 1, keep_partial_allocation=True))

    def names(self) -> list[str]:
        return [gang.key.name for gang in self.kept.gangs()]


@pytest.mark.parametrize(("backfills", "applies"), [(False, True), (True, False)])
def test_a2_only_gangs_that_ask_for_it_and_where_backfill_does_not_run(backfills: bool, applies: bool) -> None:
    scene = Scene(backfills)
    assert scene.kept.applies_to(scene.gangs["a"]) is applies
    assert not scene.kept.applies_to(GangState(GangSpec(GangKey("t", "ns", "x"), "ns/x", 0, 1)))


def test_a2_what_is_kept_is_given_back_the_last_first_when_all_were_attempted() -> None:
    scene = Scene()
    assert scene.kept.roll_back() == [(scene.gangs["a"], "why a"), (scene.gangs["b"], "why b")]
    assert scene.rolled_back == ["b", "a"]
    assert scene.kept.roll_back() == []
    assert scene.names() == ["a", "b"], "they are attempted whenever any other gang is"


def test_a2_only_the_attempt_that_just_failed_is_suspended() -> None:
    scene = Scene()
    assert not scene.kept.suspend(scene.gangs["a"])
    assert scene.kept.suspend(scene.gangs["b"])
    assert scene.rolled_back == ["b"]
    assert scene.kept.suspend(scene.gangs["a"])
    assert not scene.kept.suspend(scene.gangs["a"])


def test_a2_the_gangs_that_it_kept_out_wake_when_a_gang_keeps_nothing_any_more() -> None:
    scene = Scene()
    scene.kept.release(scene.gangs["a"])
    assert scene.state.events.kinds == {EventKind.NODES_REOPENED}
    assert scene.names() == ["b"]
    scene.state.events.clear()
    scene.kept.release(scene.gangs["a"])
    assert not scene.state.events


@pytest.mark.parametrize(
    ("change", "left"), [("nothing", ["a", "b"]), ("changed", ["b"]), ("gone", ["b"]), ("another", ["b"])]
)
def test_a2_a_gang_that_changed_or_went_keeps_nothing(change: str, left: list[str]) -> None:
    scene = Scene()
    gang = scene.gangs["a"]
    if change == "changed":
        scene.state.dirty[gang.key] = gang
    elif change == "gone":
        del scene.state.gangs[gang.key]
    elif change == "another":
        scene.state.gangs[gang.key] = scene.make("a")
    scene.kept.cycle_begins(1)
    assert scene.names() == left
    assert bool(scene.state.events) is (change != "nothing")
