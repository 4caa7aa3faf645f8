"""A controller that no object ends (S8): what raises in it is logged and counted, and tried again.

What raises while one object is reconciled is caught by the controller itself (`controllers.guarded`). The rest is here:
an object that cannot be read is read again later. What raises outside any one object's ends the round; then the
controller is rebuilt from all objects, since part of what it knew may be lost.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator

from enbloc.api.meta import uid_of
from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.controllers.controller import Controller
from enbloc.faults import Faults
from enbloc.runtime.held_gangs import log_fault
from enbloc.runtime.scheduler import Known, listed


class GuardedController:
    def __init__(self, controller: Controller, known: Known, count: Callable[[], None] = lambda: None) -> None:
        """`count` is called for each fault."""
        self.kinds = controller.kinds
        self.inner = controller
        self._pristine = copy.deepcopy(controller)
        self._known = known
        self._count = count
        self._name = type(controller).__name__
        self.faults: Faults[str] = Faults()
        """By UID: objects that could not be read; by nothing: rounds."""
        self._unread: dict[str, WatchEvent] = {}
        self._torn = False

    def observe(self, event: WatchEvent) -> None:
        uid = uid_of(event.obj)
        if self._unread:
            self._unread.pop(uid, None)
            self.faults.forget(uid)
        try:
            self.inner.observe(event)
        except Exception as failure:
            self.faults.add(uid, failure)
            self._unread[uid] = event
            self._torn = self._torn or event.type == "DELETED"

    def reconcile(self, now_ns: int) -> Iterable[Write]:
        for key in self.faults.take_due(now_ns):
            if key in self._unread:
                self.observe(self._unread[key])
        if self.faults.text(""):
            return []
        try:
            if self._torn:
                self._rebuild()
            writes = self.inner.reconcile(now_ns)
        except Exception as failure:
            self._fail(failure)
            return []
        finally:
            self._report()
        return writes if isinstance(writes, list) else self._each(writes)

    def _each(self, writes: Iterable[Write]) -> Iterator[Write]:
        try:
            yield from writes
        except Exception as failure:
            self._fail(failure)
        finally:
            self._report()

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        try:
            self.inner.refused(write, error, now_ns)
        except Exception as failure:
            self._fail(failure)

    def due(self) -> int | None:
        dues = (self.inner.due(), self.inner.faults.due(), self.faults.due())
        return min((due for due in dues if due is not None), default=None)

    def _fail(self, failure: Exception) -> None:
        self.faults.add("", failure)
        self._torn = True

    def _rebuild(self) -> None:
        """As a new one that has read everything."""
        faults = self.inner.faults
        self.inner = copy.deepcopy(self._pristine)
        self.inner.faults = faults
        self._torn = False
        for event in listed(self.kinds, self._known):
            if uid_of(event.obj) not in self._unread:
                self.observe(event)

    def _report(self) -> None:
        for faults in (self.inner.faults, self.faults):
            for key, failure, is_new in faults.take_new():
                self._count()
                log_fault(f"{self._name} {key}".rstrip(), failure, is_new=is_new)
