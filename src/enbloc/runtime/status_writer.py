"""Writes status updates and Events over a transport: the one implementation for virtual time and for a real cluster.

Of the updates for one object only the latest counts. Over a network an update is held for a moment, since most
updates of a new gang are outdated a moment later, and is sent at the lowest priority. For one object one write is
under way at a time: the next waits for the watch event of the last one. Over an immediate transport nothing is
held: an update is written when `put` returns.

A phase (`StatusUpdate.phase`) is different: controllers wait for it, so it is sent at once. Until its watch event has
come it is laid over older versions of the object, so that an older event does not undo the decision.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import EmitEvent, Patch, Refused, WatchEvent, merge_patch
from enbloc.gangs.model import GangKey
from enbloc.runtime.damping import Damper
from enbloc.runtime.expectations import is_as_new, version_of
from enbloc.runtime.transport import MOST_STATUS, Transport, WritePriority
from enbloc.runtime.write_plans import StatusUpdate, conditions_of, merged_status

if TYPE_CHECKING:
    from asyncio import Task

CONFLICT_PAUSE_S: Final = 0.125
EVENT_WITHIN_S: Final = 10.0
"""The next write to an object waits at most this long for the watch event of the last one."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
MOST_EVENTS: Final = 8
"""At most this many Events wait for one object; the oldest is dropped."""
_GONE: Final = frozenset({404, 410, 422})

Subject = Callable[[GangKey | None, Ref, str], Obj | None]
"""The object of a gang, reference and UID as it is known now; `None`: gone, or the update no longer applies to it."""


class _Entry(msgspec.Struct):
    """What is to be written to one object."""

    gang: GangKey | None
    ref: Ref
    uid: str
    ready_at_s: float
    conditions: dict[str, dict[str, Any]] = {}
    phase: str = ""
    events: dict[str, EmitEvent] = {}
    """By what they are about: a condition's type, else their reason."""
    refusals: int = 0

    def update(self, obj: Obj) -> StatusUpdate:
        return StatusUpdate(self.gang, obj, tuple(self.conditions.values()), self.phase)

    def set_event(self, about: str, event: EmitEvent | None) -> None:
        """Replaces the Event about one thing; `None` drops it."""
        if event is None and about not in self.events:
            return
        events = [(key, known) for key, known in self.events.items() if key != about]
        if event is not None:
            events.append((about, event))
        self.events = dict(events[-MOST_EVENTS:])


class _Unobserved(msgspec.Struct):
    """A version that was written and has had no watch event, and until when that is waited for."""

    version: str
    until_s: float
    phase: bool


class StatusWriter:
    """All updates that are to be written, by the UID of their object."""

    def __init__(
        self,
        transport: Transport,
        subject: Subject,
        changed: Callable[[], None] = lambda: None,
        failed: Callable[[GangKey | None, Exception], None] | None = None,
    ) -> None:
        """`changed` is called when `due_s` may be another, `failed` if something raised while an update was made; that
        update is dropped (S8)."""
        self._failed = failed
        self._transport = transport
        self._subject = subject
        self._entries: dict[str, _Entry] = {}
        self._unobserved: dict[str, _Unobserved] = {}
        self._overlays: dict[str, dict[str, Any]] = {}
        """The status of objects that were given a phase, until its watch event."""
        self._timers: list[tuple[float, str]] = []
        self._sending: dict[str, Task[None]] = {}
        self._damper: Damper[str] = Damper()
        """Over a network: a tenant may undo what was written as often as it likes."""
        self._changed = changed
        self.is_terse = False
        """Only what controllers act on is written: phases, and conditions whose status or reason is new. For trials."""

    @property
    def waiting(self) -> int:
        return len(self._entries)

    @property
    def is_busy(self) -> bool:
        return bool(self.is_sending or self._unobserved)

    @property
    def is_sending(self) -> bool:
        """Whether updates wait or are under way, apart from watch events that have not come."""
        return bool(self._entries or self._sending)

    def put(self, update: StatusUpdate) -> None:
        obj, uid = update.obj, uid_of(update.obj)
        if self.is_terse and not update.phase and _says_nothing_new(update):
            return
        if not update.conditions:
            if update.event is not None:
                self.emit(update.event)
            return
        entry = self._entry(update.gang, ref_of(obj), uid)
        for one in update.conditions:
            entry.conditions = entry.conditions | {one["type"]: one}
            entry.set_event(one["type"], None)  # the last Event no longer holds
        entry.set_event(update.conditions[0]["type"], update.event)
        if update.phase:
            entry.phase, entry.ready_at_s = update.phase, self._transport.time_s()
            self._overlays[uid] = merged_status(entry.update(obj), conditions_of(obj)) or {}
        if update.phase or not self._transport.hold_s:
            self._start(entry)

    def emit(self, event: EmitEvent) -> None:
        """An Event that goes with no condition."""
        if self.is_terse:
            return
        entry = self._entry(None, event.ref, event.uid)
        entry.set_event(event.reason, event)
        if not self._transport.hold_s:
            self._start(entry)

    def _entry(self, gang: GangKey | None, ref: Ref, uid: str) -> _Entry:
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry(gang, ref, uid, self._transport.time_s() + self._transport.hold_s)
            if self._transport.hold_s:
                self._remind(entry.ready_at_s, uid)
        entry.gang = gang or entry.gang  # its object may be of another gang by now
        return entry

    # ---- watch events

    def observe(self, event: WatchEvent) -> WatchEvent:
        """The event with the phase that is still under way laid over its object."""
        if not self._unobserved and not self._overlays:
            return event
        uid = uid_of(event.obj)
        awaited = self._unobserved.get(uid)
        if event.type == "DELETED":
            self._forget(uid)
        elif awaited is not None and is_as_new(version_of(event.obj), awaited.version):
            self._observed(uid, awaited.phase)
        status = self._overlays.get(uid)
        if status is None:
            return event
        return WatchEvent(event.type, event.kind, merge_patch(event.obj, {"status": status}))

    def _observed(self, uid: str, phase: bool) -> None:
        self._unobserved.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None:
            self._remind(entry.ready_at_s, uid)
        if phase and (entry is None or not entry.phase):
            self._overlays.pop(uid, None)

    def _forget(self, uid: str) -> None:
        self._damper.forget(uid)
        self._unobserved.pop(uid, None)
        self._overlays.pop(uid, None)

    # ---- sending

    def due_s(self) -> float | None:
        """When `send_ready` has something to do, on the transport's clock; `None`: not before the next `changed`."""
        return self._timers[0][0] if self._timers and len(self._sending) < MOST_STATUS else None

    def send_ready(self) -> None:
        """Starts the writes whose time has come, a bounded number at once."""
        now_s = self._transport.time_s()
        while self._timers and self._timers[0][0] <= now_s and len(self._sending) < MOST_STATUS:
            _, uid = heapq.heappop(self._timers)
            unobserved = self._unobserved.get(uid)
            if unobserved is not None and unobserved.until_s <= now_s:
                self._observed(uid, unobserved.phase)
            entry = self._entries.get(uid)
            if entry is not None and entry.ready_at_s <= now_s:
                self._start(entry)

    def release(self) -> None:
        """What is held is ready now."""
        for entry in self._entries.values():
            entry.ready_at_s = 0.0
            self._remind(0.0, entry.uid)

    def _remind(self, at_s: float, uid: str) -> None:
        heapq.heappush(self._timers, (at_s, uid))
        self._changed()

    def _start(self, entry: _Entry) -> None:
        """Sends an entry, unless a write to its object is under way or its watch event has not come."""
        if entry.uid in self._sending or entry.uid in self._unobserved:
            return
        now_s = self._transport.time_s()
        if self._transport.hold_s and not self._damper.admit(entry.uid, now_s):
            entry.ready_at_s = self._damper.next_s(entry.uid)
            self._remind(entry.ready_at_s, entry.uid)
            return
        self._entries.pop(entry.uid, None)
        task = self._transport.start(self._send(entry))
        if task is not None:
            self._sending[entry.uid] = task
            task.add_done_callback(lambda _: self._sent(entry.uid))

    def _sent(self, uid: str) -> None:
        self._sending.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None:
            self._remind(entry.ready_at_s, uid)
        self._changed()

    async def _send(self, entry: _Entry) -> None:
        try:
            if entry.conditions:
                conditions = list(entry.conditions)
                if not await self._send_status(entry):
                    for about in conditions:  # its Event was emitted when the condition was written, or is moot
                        entry.set_event(about, None)
            for about, event in list(entry.events.items()):
                for one in event.each():
                    await self._transport.send(one, WritePriority.STATUS)
                entry.set_event(about, None)
        except Refused as why:
            if why.code in _GONE:
                self._forget(entry.uid)
            else:
                self._retry(entry, why.code)
        except Exception as failure:
            if self._failed is None:
                raise
            self._forget(entry.uid)
            self._failed(entry.gang, failure)

    async def _send_status(self, entry: _Entry) -> bool:
        """Whether anything had to be written."""
        obj = self._known(entry)
        status = merged_status(entry.update(obj), conditions_of(obj)) if obj is not None else None
        if obj is None or status is None:
            self._forget(entry.uid)
            return False
        if entry.phase:
            self._overlays[entry.uid] = status  # its watch event may come before its answer
        # Other components write a pod's conditions too: the version keeps theirs.
        version = version_of(obj) if entry.ref.kind == "Pod" else ""
        priority = WritePriority.DECISION if entry.phase else WritePriority.STATUS
        made = await self._transport.send(Patch(entry.ref, {"status": status}, "status", entry.uid, version), priority)
        phase = bool(entry.phase)
        entry.conditions, entry.phase = {}, ""
        known = self._known(entry)
        if made is None or known is None or is_as_new(version_of(known), version_of(made)):
            self._observed(entry.uid, phase)  # its watch event came before the answer, or nothing changed
        else:
            awaited = _Unobserved(version_of(made), self._transport.time_s() + EVENT_WITHIN_S, phase)
            self._unobserved[entry.uid] = awaited
            self._remind(awaited.until_s, entry.uid)
        return True

    def _known(self, entry: _Entry) -> Obj | None:
        obj = self._subject(entry.gang, entry.ref, entry.uid)
        return self._transport.newest(obj) if obj is not None else None

    def _retry(self, entry: _Entry, code: int) -> None:
        """After a refusal: at once after a first conflict, whose newer version is about to be observed; else after a
        pause that grows. Updates that came since are merged over it."""
        entry.refusals += 1
        pause_s = min(FIRST_PAUSE_S * 2 ** min(entry.refusals - 1, 10), LONGEST_PAUSE_S)
        if code == 409 and entry.refusals == 1:
            pause_s = CONFLICT_PAUSE_S
        entry.ready_at_s = self._transport.time_s() + pause_s
        newer = self._entries.get(entry.uid)
        if newer is not None:
            newer.conditions = entry.conditions | newer.conditions
            newer.phase = newer.phase or entry.phase
            newer.events = entry.events | newer.events
            newer.ready_at_s = max(newer.ready_at_s, entry.ready_at_s)
            newer.refusals = entry.refusals
        self._entries[entry.uid] = newer or entry
        self._remind((newer or entry).ready_at_s, entry.uid)


def _says_nothing_new(update: StatusUpdate) -> bool:
    """Whether the object has these conditions, but for their numbers."""
    known = {one.get("type"): one for one in conditions_of(update.obj)}
    return all(
        (had := known.get(one["type"])) is not None
        and all(had.get(key) == one.get(key) for key in ("status", "reason"))
        for one in update.conditions
    )
