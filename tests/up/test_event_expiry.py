"""Events of a local cluster expire an hour after they were last written; those of an earlier run too."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Ref, name_of
from enbloc.api.writes import EmitEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.units import SECOND
from enbloc.up.event_expiry import KEPT_NS, MOST_AT_ONCE, EventExpiry
from support.embedded_store import Clock, make_store


def emit(store: Store, reason: str, pod: str = "p") -> None:
    store.emit(EmitEvent(Ref("Pod", "default", pod), f"uid-{pod}", "Normal", reason, "said"))


def reasons(store: Store) -> list[str]:
    return sorted(one["reason"] for one in store.list("Event")[0])


@pytest.fixture
def world() -> tuple[Store, Clock, EventExpiry]:
    store, clock = make_store()
    return store, clock, EventExpiry(store)


def test_an_event_expires_after_an_hour(world: tuple[Store, Clock, EventExpiry]) -> None:
    store, clock, expiry = world
    assert expiry.due() is None
    emit(store, "First")
    begun = store.now()
    clock.now += 10 * SECOND
    emit(store, "Second")
    assert expiry.due() == begun + KEPT_NS
    clock.now = begun + KEPT_NS - 1
    expiry.run(clock.now)
    assert reasons(store) == ["First", "Second"]
    clock.now += 1
    expiry.run(clock.now)
    assert reasons(store) == ["Second"]
    assert expiry.due() == begun + KEPT_NS + 10 * SECOND


def test_one_that_is_repeated_stays_and_one_that_is_deleted_is_forgotten(
    world: tuple[Store, Clock, EventExpiry],
) -> None:
    store, clock, expiry = world
    emit(store, "Again")
    emit(store, "Deleted")
    [deleted] = [one for one in store.list("Event")[0] if one["reason"] == "Deleted"]
    store.delete(Ref("Event", "default", name_of(deleted)))
    clock.now += KEPT_NS - 1
    emit(store, "Again")
    clock.now += 1
    expiry.run(clock.now)
    assert reasons(store) == ["Again"]
    clock.now += KEPT_NS
    expiry.run(clock.now)
    assert (reasons(store), expiry.due()) == ([], None)
    emit(store, "Again")
    [again] = store.list("Event")[0]
    assert again["count"] == 1, "it is another one"


def test_those_of_an_earlier_run_expire_too(world: tuple[Store, Clock, EventExpiry]) -> None:
    store, clock, _ = world
    emit(store, "Old")
    clock.now += 1800 * SECOND
    emit(store, "Newer")
    later, after = make_store()
    later.restore(store.list("Event")[0], store.version)
    after.now = clock.now + KEPT_NS - 1800 * SECOND
    expiry = EventExpiry(later)
    expiry.run(after.now)
    assert reasons(later) == ["Newer"]


def test_many_are_deleted_in_parts(world: tuple[Store, Clock, EventExpiry]) -> None:
    store, clock, expiry = world
    for number in range(MOST_AT_ONCE + 10):
        emit(store, "Many", f"p{number}")
    clock.now += KEPT_NS
    expiry.run(clock.now)
    assert len(store.list("Event")[0]) == 10
    assert expiry.due() == clock.now, "the rest is due at once"
