"""Cluster events since the last cycle: by kind, and by the object that they concern where that is known (G9)."""

from __future__ import annotations

import pytest

from enbloc.engine import events as module
from enbloc.engine.events import BEYOND_ROOM, ClusterEvent, ClusterEvents, EventKind


def test_g9_events_are_known_until_the_next_cycle() -> None:
    events = ClusterEvents()
    assert not events
    events.add(EventKind.NODE_ADDED)
    assert events
    assert events.any_of(BEYOND_ROOM)
    assert not events.any_of(frozenset({EventKind.ROOM_FREED}))
    assert events.of(EventKind.NODE_ADDED) == {ClusterEvent(EventKind.NODE_ADDED)}
    assert events.of(EventKind.ROOM_FREED) == set()
    events.add_room_freed("n")
    events.clear()
    assert not events
    assert events.of(EventKind.ROOM_FREED) == set()


def test_g9_room_that_was_freed_is_known_by_node() -> None:
    events = ClusterEvents()
    for node in ("a", "b", "a"):
        events.add_room_freed(node)
    assert events.of(EventKind.ROOM_FREED) == {ClusterEvent(EventKind.ROOM_FREED, node) for node in "ab"}
    assert events.any_of(frozenset({EventKind.ROOM_FREED}))


@pytest.mark.parametrize(("claims", "any_volume"), [(1, False), (2, False), (3, True)])
def test_g9_volume_claims_are_known_by_name_up_to_a_bound(
    claims: int, any_volume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VOLUME_CLAIMS_BOUND", 2)
    events = ClusterEvents()
    for number in range(claims):
        events.add_volume_claim_changed(("ns", f"c{number}"))
    names = {event.subject for event in events.of(EventKind.VOLUME_CLAIM_CHANGED)}
    assert names == {("ns", f"c{number}") for number in range(min(claims, 2))}
    assert events.any_of(frozenset({EventKind.VOLUME_CHANGED})) is any_volume
