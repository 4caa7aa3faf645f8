"""Notices on their way to objects: off the critical path, and no more of them than needed.

Of what is to be said about one object only the latest counts. It is held for a moment, since most of what is said of a
gang that was just made is no longer so a moment later, and sent when nothing better is to be done. On one object one
notice is under way at a time: the next goes when the last one has come back.

A phase (`Notice.phase`) is different: a job's pods wait for it. It goes at once. Until it has come back it is laid over
what the API says of the object, so that an older event does not undo what was decided.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, Final

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import EmitEvent, Patch, Refused, WatchEvent, merge_patch
from enbloc.gangs.model import GangKey
from enbloc.runtime.expectations import is_as_new, version_of
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.write_plans import StatusUpdate, status_of
from enbloc.runtime.write_queue import SAID_MOST, WritePriority, WriteQueue

HELD_S: Final = 0.5
ECHO_WITHIN_S: Final = 10.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
EVENTS_MOST: Final = 8
"""Different things that may be told of one object at once."""
_GONE: Final = frozenset({404, 410, 422})


class _Entry(msgspec.Struct):
    """What one object is to be told."""

    gang: GangKey | None
    ref: Ref
    uid: str
    ready_at: float
    conditions: dict[str, dict[str, Any]] = {}
    phase: str = ""
    events: dict[str, EmitEvent] = {}
    """By what they are about: a condition, or else their reason."""
    refusals: int = 0

    def notice(self, obj: Obj) -> StatusUpdate:
        return StatusUpdate(self.gang, obj, tuple(self.conditions.values()), self.phase)


class _Unechoed(msgspec.Struct):
    """A version of an object that has not come back, and how long it is waited for."""

    version: str
    until: float
    phase: bool


class StatusWriter:
    """All that is to be said, by the UID of the object."""

    def __init__(
        self, crew: TaskGroup, outbox: WriteQueue, subject: Callable[[GangKey | None, Ref, str], Obj | None]
    ) -> None:
        """`subject` gives an object as it is known now; `None`: it is gone, or what was to be said of it is moot."""
        self._crew = crew
        self._outbox = outbox
        self._subject = subject
        self._entries: dict[str, _Entry] = {}
        self._unechoed: dict[str, _Unechoed] = {}
        self._laid_over: dict[str, dict[str, Any]] = {}
        """The status of objects that were given a phase, until it comes back."""
        self._timers: list[tuple[float, str]] = []
        self._posting: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        return len(self._entries)

    @property
    def is_busy(self) -> bool:
        return bool(self._entries or self._posting or self._unechoed)

    def put(self, notice: StatusUpdate) -> None:
        obj, uid = notice.obj, uid_of(notice.obj)
        if not notice.conditions:
            if notice.event is not None:
                self.tell(notice.event)
            return
        entry = self._entry(notice.gang, ref_of(obj), uid)
        for one in notice.conditions:
            entry.conditions = entry.conditions | {one["type"]: one}
            self._add_event(entry, one["type"], notice.event)  # or what was said of it before is no longer so
        if notice.phase:
            entry.phase, entry.ready_at = notice.phase, _now_s()
            self._laid_over[uid] = status_of(entry.notice(obj), _conditions(obj)) or {}
            self._post(entry)

    def tell(self, event: EmitEvent) -> None:
        """Something that is told as an Event alone."""
        self._add_event(self._entry(None, event.ref, event.uid), event.reason, event)

    def _entry(self, gang: GangKey | None, ref: Ref, uid: str) -> _Entry:
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry(gang, ref, uid, _now_s() + HELD_S)
            self._remind(entry.ready_at, uid)
        entry.gang = gang or entry.gang  # its object may be of another gang by now
        return entry

    def _add_event(self, entry: _Entry, about: str, event: EmitEvent | None) -> None:
        events = [(key, told) for key, told in entry.events.items() if key != about]
        if event is not None:
            events.append((about, event))
        entry.events = dict(events[-EVENTS_MOST:])

    # ---- what comes back

    def observe(self, event: WatchEvent) -> WatchEvent:
        """An object as it is to be understood: with the phase that is still under way laid over it."""
        if not self._unechoed and not self._laid_over:
            return event
        uid = uid_of(event.obj)
        awaited = self._unechoed.get(uid)
        if event.type == "DELETED":
            self._forget(uid)
        elif awaited is not None and is_as_new(version_of(event.obj), awaited.version):
            self._come_back(uid, awaited.phase)
        status = self._laid_over.get(uid)
        if status is None:
            return event
        return WatchEvent(event.type, event.kind, merge_patch(event.obj, {"status": status}))

    def _come_back(self, uid: str, phase: bool) -> None:
        self._unechoed.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None:
            self._remind(entry.ready_at, uid)
        if phase and (entry is None or not entry.phase):
            self._laid_over.pop(uid, None)

    def _forget(self, uid: str) -> None:
        self._unechoed.pop(uid, None)
        self._laid_over.pop(uid, None)

    # ---- sending

    async def run(self) -> None:
        """Posts what is ready, for ever."""
        while True:
            self._changed.clear()
            now = _now_s()
            while self._timers and self._timers[0][0] <= now and len(self._posting) < SAID_MOST:
                _, uid = heapq.heappop(self._timers)
                unechoed = self._unechoed.get(uid)
                if unechoed is not None and unechoed.until <= now:
                    self._come_back(uid, unechoed.phase)
                entry = self._entries.get(uid)
                if entry is not None and entry.ready_at <= now:
                    self._post(entry)
            full = len(self._posting) >= SAID_MOST
            wait_s = None if full or not self._timers else max(0.001, self._timers[0][0] - _now_s())
            try:
                await asyncio.wait_for(self._changed.wait(), wait_s)
            except TimeoutError:
                pass

    async def flush(self, within_s: float) -> None:
        """Before the end: what can still be said is said, as far as time allows."""
        until = _now_s() + within_s
        for entry in self._entries.values():
            entry.ready_at = 0.0
            self._remind(0.0, entry.uid)
        while (self._entries or self._posting) and _now_s() < until:
            await asyncio.sleep(0.01)

    def _remind(self, at: float, uid: str) -> None:
        heapq.heappush(self._timers, (at, uid))
        self._changed.set()

    def _post(self, entry: _Entry) -> None:
        """Sends somebody off with it, unless somebody is under way to that object, or was and is not back."""
        if entry.uid in self._posting or entry.uid in self._unechoed:
            return
        self._entries.pop(entry.uid, None)
        task = self._crew.send(self._go(entry))
        self._posting[entry.uid] = task
        task.add_done_callback(lambda _: self._back(entry.uid))

    def _back(self, uid: str) -> None:
        self._posting.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None:
            self._remind(entry.ready_at, uid)
        self._changed.set()

    async def _go(self, entry: _Entry) -> None:
        try:
            if entry.conditions:
                conditions = list(entry.conditions)
                if not await self._write(entry):
                    for about in conditions:  # what stands there already was told; the rest was not
                        self._add_event(entry, about, None)
            for about, event in list(entry.events.items()):
                await self._outbox.send(event, WritePriority.SAID)
                self._add_event(entry, about, None)
        except Refused as why:
            if why.code in _GONE:
                self._forget(entry.uid)
            else:
                self._again(entry, why.code)

    async def _write(self, entry: _Entry) -> bool:
        """Says whether the object was told something new."""
        obj = self._subject(entry.gang, entry.ref, entry.uid)
        status = status_of(entry.notice(obj), _conditions(obj)) if obj is not None else None
        if obj is None or status is None:
            self._forget(entry.uid)
            return False
        if entry.phase:
            self._laid_over[entry.uid] = status  # its echo may come before its answer
        # A pod's conditions are others' too: they are written over what was seen, or not at all.
        version = version_of(obj) if entry.ref.kind == "Pod" else ""
        lane = WritePriority.DECIDED if entry.phase else WritePriority.SAID
        made = await self._outbox.send(Patch(entry.ref, {"status": status}, "status", entry.uid, version), lane)
        phase = bool(entry.phase)
        entry.conditions, entry.phase = {}, ""
        seen = self._subject(entry.gang, entry.ref, entry.uid)
        if made is None or seen is None or is_as_new(version_of(seen), version_of(made)):
            self._come_back(entry.uid, phase)  # it was back before the answer, or nothing changed
        else:
            awaited = _Unechoed(version_of(made), _now_s() + ECHO_WITHIN_S, phase)
            self._unechoed[entry.uid] = awaited
            self._remind(awaited.until, entry.uid)
        return True

    def _again(self, entry: _Entry, code: int) -> None:
        """It was refused. After a conflict what was seen was old, and the newer is about to be seen; else there is a
        pause that grows. What has been said since counts more."""
        entry.refusals += 1
        pause_s = min(FIRST_PAUSE_S * 2 ** min(entry.refusals - 1, 10), LONGEST_PAUSE_S)
        if code == 409 and entry.refusals == 1:
            pause_s = HELD_S / 4
        entry.ready_at = _now_s() + pause_s
        newer = self._entries.get(entry.uid)
        if newer is not None:
            newer.conditions = entry.conditions | newer.conditions
            newer.phase = newer.phase or entry.phase
            newer.events = entry.events | newer.events
            newer.ready_at = max(newer.ready_at, entry.ready_at)
            newer.refusals = entry.refusals
        self._entries[entry.uid] = newer or entry
        self._remind((newer or entry).ready_at, entry.uid)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _conditions(obj: Obj) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []
