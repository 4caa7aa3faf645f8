"""What raises while one object is reconciled holds that object alone (S8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, as_written, uid_of
from enbloc.api.reasons import PendingReason
from enbloc.api.writes import EmitEvent, Write
from enbloc.faults import Faults, last_line

Key = TypeVar("Key")


def guarded(faults: Faults[Key], key: Key, obj: Obj, reconcile: Callable[[], Iterable[Write]]) -> Iterator[Write]:
    """The writes of one object. If something raises it is held, and says so: then nothing is done for it."""
    if faults.text(key):
        faults.see(key, as_written(obj))
        return
    try:
        yield from reconcile()
    except Exception as failure:
        faults.add(key, failure, as_written(obj))
        yield EmitEvent(ref_of(obj), uid_of(obj), "Warning", PendingReason.INTERNAL_ERROR, message(failure))


def message(failure: BaseException) -> str:
    return f"this program failed on it: {last_line(failure)}; it is tried again when it changes, and by itself"
