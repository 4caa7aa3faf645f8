"""The phase of a gang: a row for each situation, and what it allows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.engine.core.tables.phase import ALLOWS, Attempted, Phase
from enbloc.gangs.model import ONLY_WAITING
from engine.gang_states import gang, task

ROWS: list[tuple[Phase, dict[str, Any]]] = [
    (Phase.INCOMPLETE, {}),
    (Phase.INCOMPLETE, {"pending": {"a": 2}}),
    (Phase.WAITS, {"pending": {"a": 3}}),
    (Phase.WAITS, {"pending": {"a": 1}, "occupied": {"a": 2}}),
    (Phase.INCOMPLETE, {"minima": {"b": 1}, "pending": {"a": 3}}),
    (Phase.WAITS, {"minima": {"b": 1}, "pending": {"a": 2, "b": 1}}),
    (Phase.HOLDS, {"pending": {"a": 1}, "held": {"a": 2}}),
    (Phase.HOLDS, {"pending": {"a": 1}, "held": {"a": 1}}),
    (Phase.HOLDS, {"minimum": 0, "held": {"a": 1}}),
    (Phase.RUNNING, {"occupied": {"a": 3}}),
    (Phase.RUNNING, {"occupied": {"a": 3}, "satisfied": True}),
    (Phase.SURPLUS, {"occupied": {"a": 3}, "pending": {"a": 1}}),
    (Phase.SURPLUS, {"occupied": {"a": 3}, "pending": {"a": 1}, "satisfied": True}),
    (Phase.SURPLUS, {"minimum": 0, "pending": {"a": 1}}),
    (Phase.RUNNING, {"minimum": 0}),
    (Phase.DEGRADED, {"occupied": {"a": 2}, "satisfied": True}),
    (Phase.DEGRADED, {"occupied": {"a": 2}, "pending": {"a": 1}, "satisfied": True}),
    (Phase.DEGRADED, {"minima": {"b": 1}, "occupied": {"a": 3}, "satisfied": True}),
    # D3: role b is of the present wave
    (Phase.INCOMPLETE, {"minima": {"a": 1, "b": 2}, "occupied": {"a": 1}, "pending": {"b": 1}, "ran": "a"}),
    (Phase.WAITS, {"minima": {"a": 1, "b": 2}, "occupied": {"a": 1}, "pending": {"b": 2}, "ran": "a"}),
    (Phase.WAITS, {"minima": {"a": 1, "b": 2}, "pending": {"a": 1}, "ran": "a"}),
    (Phase.WAITS, {"minima": {"a": 1, "b": 2}, "pending": {"a": 1}, "behind": "b"}),
    # K9: what runs does not count any more
    (Phase.RUNNING, {"occupied": {"a": 1}, "match_policy": ONLY_WAITING, "covered": "3"}),
    (Phase.INCOMPLETE, {"pending": {"a": 1}, "occupied": {"a": 3}, "match_policy": ONLY_WAITING, "covered": "3"}),
]


@pytest.mark.parametrize(("phase", "fields"), ROWS)
def test_the_phase_follows_from_what_is_there(phase: Phase, fields: dict[str, Any]) -> None:
    made = gang(**fields)
    assert (made.phase, made.starts) == (phase, ALLOWS[phase].starts)


def test_m6_a_gang_that_is_not_enqueued_is_gated_until_it_has_started() -> None:
    made = gang(pending={"a": 3})
    made.assume(enqueued=False)
    assert made.phase is Phase.GATED
    made.occupied, made.pending = {"a": 3}, {}
    made.version += 1
    assert made.phase is Phase.RUNNING


def test_what_a_phase_allows() -> None:
    assert {one for one in Phase if ALLOWS[one].attempted is Attempted.AS_UNIT} == {Phase.WAITS, Phase.HOLDS}
    assert {one for one in Phase if ALLOWS[one].may_claim} == {Phase.WAITS, Phase.HOLDS, Phase.DEGRADED}
    assert {one for one in Phase if not ALLOWS[one].starts} == {Phase.DEGRADED, Phase.SURPLUS, Phase.RUNNING}


def test_the_need_is_computed_anew_once_a_member_or_the_spec_changes() -> None:
    made = gang(2, pending={"a": 2})
    assert made.need is made.need
    assert (made.need.missing, made.need.ready) == ({}, False)
    task(made, "a-0", role="a")
    made.pending, made.occupied = {}, {"a": 2}
    made.version += 1
    assert made.need.ready
    made.spec = msgspec.structs.replace(made.spec, match_policy=ONLY_WAITING)
    made.covered = "2"
    made.version += 1
    assert made.need.missing == {"": 2}
