"""Rounds of one controller: what it reads, and when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.runtime.controller_runner import HOLD_S, ControllerRunner
from enbloc.runtime.expectations import Observed
from enbloc.runtime.task_group import TaskGroup
from support.live_cluster import in_virtual_time


class Reader:
    """A controller that only notes what it reads."""

    kinds = frozenset({"Pod"})

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []

    def observe(self, event: WatchEvent) -> None:
        self.read.append((event.type, event.obj["metadata"]["uid"]))

    def reconcile(self, now_ns: int) -> list[Write]:
        return []

    def refused(self, write: Write, error: Refused, now_ns: int) -> None: ...

    def due(self) -> int | None:
        return None


def runner_of(reader: Reader, *, only_reports: bool) -> ControllerRunner:
    queue: Any = SimpleNamespace(decisions_wait=False)
    nothing: Any = lambda *_: None  # noqa: E731
    return ControllerRunner(reader, TaskGroup(), queue, Observed(), nothing, nothing, only_reports=only_reports)


def event(kind: str, uid: str) -> WatchEvent:
    return WatchEvent(kind, "Pod", {"metadata": {"namespace": "default", "name": uid, "uid": uid}})  # type: ignore[arg-type]


EVENTS = (("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("ADDED", "c"), ("DELETED", "c"))


def test_a_controller_that_only_reports_reads_the_last_event_of_each_object_when_its_round_begins() -> None:
    async def main() -> None:
        reader = Reader()
        runner = runner_of(reader, only_reports=True)
        for one in EVENTS:
            runner.observe(event(*one))
        runner.begin(0)
        assert (reader.read, runner.has_unread) == ([], True), "its round is held"
        await asyncio.sleep(HOLD_S)
        runner.begin(0)
        assert reader.read == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "c")]
        assert (runner.has_unread, runner.held_s()) == (False, None)

    in_virtual_time(main)


def test_where_no_round_begins_events_do_not_pile_up() -> None:
    """In a process that does not lead."""

    async def main() -> None:
        reader = Reader()
        runner = runner_of(reader, only_reports=True)
        runner.observe(event("ADDED", "a"))
        runner.catch_up()
        assert reader.read == [("ADDED", "a")]
        assert not runner.has_unread

    in_virtual_time(main)


def test_any_other_controller_reads_every_event_as_it_comes() -> None:
    async def main() -> None:
        reader = Reader()
        runner = runner_of(reader, only_reports=False)
        for one in EVENTS:
            runner.observe(event(*one))
        assert reader.read == list(EVENTS)

    in_virtual_time(main)
