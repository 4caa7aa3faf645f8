"""Which of the things that waiting gangs say are written, and when: a bound on writes, however many gangs wait (G10).

With each wave of jobs that ends, what is missing is another number for every gang that waits. To write all of them and
their pods each time costs the square of the backlog, and on a live cluster more requests than the Bindings do. So a
gang of which only numbers changed says so on one object and not too often, and a bounded number of gangs at a time says
that it lacks another number of pods, or stands behind another gang. Those beyond the bound come later, the longest late
first, with what they say then: what is written last is always what holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from enbloc.api.meta import Obj, condition_of
from enbloc.api.reasons import PendingReason
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.released import note_in
from enbloc.engine.decisions import Decision, Waits
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

NUMBERS_EVERY_NS: Final = 30 * SECOND
"""A text of which only numbers changed is written at most this often, and never on every pod."""
SPAN_NS: Final = 30 * SECOND
OBJECTS_PER_SPAN: Final = 64
_NUMBER: Final = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:[numkKMGTPE]i?)?(?![\w-])")


class _Written(msgspec.Struct):
    """What was last written of a gang."""

    text: str = ""
    missing: Mapping[str, int] = {}
    pods: dict[str, str] = {}
    """UID → reason of the pods that say so."""
    numbers_after_ns: int = 0
    """From when on numbers alone may be written again."""

    def has_said(self, waits: Waits) -> None:
        self.text, self.missing = _text(waits), waits.missing


class WaitsWritten:
    def __init__(self, gangs: Mapping[GangKey, GangState]) -> None:
        """`gangs`: all that exist."""
        self._existing = gangs
        self._written: dict[GangKey, _Written] = {}
        self._numbers: dict[GangKey, None] = {}
        """Gangs of which only numbers changed, too soon after they were written."""
        self._gangs = _InTurn()
        """Gangs that say the same as before of other numbers of pods, or behind another gang."""
        self._pods = _InTurn()
        """Those of them whose object says it, and whose pods do not yet."""
        self._in_turn: dict[GangKey, bool] = {}
        """The gangs whose turn has come in this cycle, and whether it is that of their pods."""

    def sift(self, decisions: Iterable[Decision], now_ns: int) -> Iterator[Decision]:
        """The decisions, with that part of what gangs say which is written now."""
        for one in decisions:
            if not isinstance(one, Waits):
                yield one
            elif (waits := self._admit(one, now_ns)) is not None and (waits.of_gang or waits.pods):
                yield waits

    def late(self, now_ns: int) -> list[GangKey]:
        """The gangs whose time has come after they said something too soon: they are to say again what holds now."""
        if len(self._written) > len(self._existing):
            for key in self._written.keys() - self._existing.keys():
                self._forget(key)
        numbers = [key for key in self._numbers if now_ns >= self._written[key].numbers_after_ns]
        for key in numbers:
            del self._numbers[key]
        gangs, pods = self._gangs.admitted(now_ns), self._pods.admitted(now_ns)
        self._in_turn = dict.fromkeys(gangs, False) | dict.fromkeys(pods, True)
        return list(dict.fromkeys([*numbers, *gangs, *pods]))

    def due_ns(self) -> int | None:
        numbers_ns = (self._written[key].numbers_after_ns for key in self._numbers)
        late_ns = (one for one in (self._gangs.due_ns(), self._pods.due_ns()) if one is not None)
        return min((*numbers_ns, *late_ns), default=None)

    def _forget(self, key: GangKey) -> None:
        self._written.pop(key, None)
        self._in_turn.pop(key, None)
        self._forget_late(key)

    def _forget_late(self, key: GangKey) -> None:
        self._numbers.pop(key, None)
        self._gangs.drop(key)
        self._pods.drop(key)

    def _admit(self, waits: Waits, now_ns: int) -> Waits | None:
        """What of it is written now."""
        known = self._written.get(waits.gang)
        if not waits.message:
            self._forget(waits.gang)
            return waits
        if known is None or waits.anew:
            return self._write_all(waits)
        if waits.gang in self._in_turn:
            return self._write_all(waits) if self._in_turn.pop(waits.gang) else self._rewrite(waits, now_ns)
        self._numbers.pop(waits.gang, None)
        tasks = self._existing[waits.gang].tasks
        known.pods = {uid: reason for uid, reason in known.pods.items() if uid in tasks}
        if known.text == _text(waits) or _numbers_alone(known, waits):
            return self._admit_numbers(known, waits, now_ns)
        if not _is_alike(known, waits):
            return self._write_all(waits)
        if self._gangs.admit(waits.gang, now_ns):
            return self._rewrite(waits, now_ns)
        return _part(known, waits, _unreported(known, waits), of_gang=False)

    def _admit_numbers(self, known: _Written, waits: Waits, now_ns: int) -> Waits | None:
        """Only numbers changed, or nothing: they are written once for the gang, on its object or else on its first pod.
        Pods that have said nothing yet say it now, and the object with them."""
        if known.text != _text(waits):
            if now_ns >= known.numbers_after_ns and self._gangs.admit(waits.gang, now_ns):
                return self._rewrite(waits, now_ns)
            if now_ns < known.numbers_after_ns and waits.of_gang:
                self._numbers[waits.gang] = None
        unreported = _unreported(known, waits)
        if known.text == _text(waits) or unreported:
            self._gangs.drop(waits.gang)
            known.has_said(waits)
        return _part(known, waits, unreported, of_gang=waits.of_gang) if unreported else None

    def _write_all(self, waits: Waits) -> Waits:
        """The gang's object and all its pods say it."""
        if waits.anew or waits.gang not in self._written:
            self._written[waits.gang] = _Written()
        self._forget_late(waits.gang)
        known = self._written[waits.gang]
        known.has_said(waits)
        known.pods = {uid: reason for uid, reason, _ in waits.pods}
        return waits

    def _rewrite(self, waits: Waits, now_ns: int) -> Waits:
        """The gang's object says it, or its first pod if it has none; all its pods, if it is their turn and more than
        a number is another."""
        known = self._written[waits.gang]
        numbers_alone = known.missing == waits.missing and waits.reason != PendingReason.BLOCKED_BY_FIFO
        known.has_said(waits)
        is_on_object = waits.of_gang and self._existing[waits.gang].spec.object is not None
        first = {uid for uid, _, _ in waits.pods[:1]} if not is_on_object else set()
        if numbers_alone:
            known.numbers_after_ns = now_ns + NUMBERS_EVERY_NS
        elif self._pods.admit(waits.gang, now_ns, len(waits.pods)):
            return self._write_all(waits)
        return _part(known, waits, first | _unreported(known, waits), of_gang=waits.of_gang)


class _InTurn:
    """A bounded number of objects per span of time, and the gangs that have to wait. Objects of a gang are written
    together: what is beyond the bound is owed by later spans, and no gang is too large for it."""

    def __init__(self) -> None:
        self._left = OBJECTS_PER_SPAN
        self._ends_ns = 0
        self._late: dict[GangKey, int] = {}
        """How many objects of each are to be written."""

    def admit(self, key: GangKey, now_ns: int, objects: int = 1) -> bool:
        """Whether that many `objects` of a gang may be written now; else it is late."""
        if not self._late and self._take(objects, now_ns):
            return True
        self._late[key] = objects
        return False

    def drop(self, key: GangKey) -> None:
        self._late.pop(key, None)

    def admitted(self, now_ns: int) -> list[GangKey]:
        """The late gangs whose turn has come."""
        found = []
        for key, objects in self._late.items():
            if not self._take(objects, now_ns):
                break
            found.append(key)
        for key in found:
            del self._late[key]
        return found

    def due_ns(self) -> int | None:
        """When the next late gang may be written."""
        return self._ends_ns + max(0, -self._left) // OBJECTS_PER_SPAN * SPAN_NS if self._late else None

    def _take(self, objects: int, now_ns: int) -> bool:
        if now_ns >= self._ends_ns:
            spans = 1 + (now_ns - self._ends_ns) // SPAN_NS
            self._left = min(OBJECTS_PER_SPAN, self._left + spans * OBJECTS_PER_SPAN)
            self._ends_ns = now_ns + SPAN_NS
        if self._left <= 0:
            return False
        self._left -= objects
        return True


def _text(waits: Waits) -> str:
    return f"{waits.reason}: {waits.message}"


def _unreported(known: _Written, waits: Waits) -> set[str]:
    """Pods that have not said why they wait, or said another reason."""
    return {uid for uid, reason, _ in waits.pods if known.pods.get(uid) != reason}


def _part(known: _Written, waits: Waits, uids: Collection[str], *, of_gang: bool) -> Waits:
    """What these pods say, and the gang's object if `of_gang`."""
    pods = tuple(pod for pod in waits.pods if pod[0] in uids)
    known.pods.update((uid, reason) for uid, reason, _ in pods)
    return msgspec.structs.replace(waits, pods=pods, of_gang=of_gang)


def shape(text: str) -> str:
    """The text without its numbers."""
    return _NUMBER.sub("#", text)


def _numbers_alone(known: _Written, waits: Waits) -> bool:
    return known.missing == waits.missing and shape(known.text) == shape(_text(waits))


def _is_alike(known: _Written, waits: Waits) -> bool:
    """Whether the same roles wait for the same reason, but for how many pods of them, or behind which gang."""
    if waits.reason == PendingReason.BLOCKED_BY_FIFO:
        return known.text.startswith(f"{waits.reason}: ")
    return known.missing.keys() == waits.missing.keys() and _singular(known.text) == _singular(_text(waits))


def _singular(text: str) -> str:
    """The text of one pod, whatever its number."""
    return shape(text).replace("pods", "pod").replace("do not", "does not")


# ---- what an earlier scheduler wrote, and is recorded nowhere else


def waited_before(obj: Obj | None) -> bool:
    """Whether the condition of a gang's object says that it waits, written before the object was observed."""
    condition = condition_of(obj, UNSCHEDULABLE) if obj is not None else None
    return condition is not None and condition.get("status") == "True"


def released_before(home: Obj | None) -> str:
    """That a gang released its claims and has not started since (K12): from the condition of its object or, if it has
    none, of its oldest pod; empty if it did not."""
    if home is None:
        return ""
    is_pod = home.get("kind") == "Pod"
    condition = condition_of(home, "PodScheduled" if is_pod else UNSCHEDULABLE)
    if condition is None or condition.get("status") != ("False" if is_pod else "True"):
        return ""
    return note_in(str(condition.get("message") or ""))
