"""One line for each transition of an object: the output of `enbloc up` where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import refusal_text
from enbloc.scenario.timeline import Line, PhaseLine, Recorder
from enbloc.up.clock import StopWatch

_UNLOGGED_KINDS: Final = frozenset({"PriorityClass.scheduling.k8s.io", "Lease.coordination.k8s.io", "ConfigMap"})


class EventLog:
    """Reads a watch of its own; `write` receives each line."""

    def __init__(self, store: Store, write: Callable[[str], None]) -> None:
        self._recorder = Recorder(StopWatch())
        self._write = write
        self._watch = store.watch(None, store.version)
        self._recorder.adopt(store.objects())

    def update(self) -> None:
        """Logs the events since the last call."""
        for event in self._watch.drain():
            if event.kind not in _UNLOGGED_KINDS:
                self._recorder.observe(event)
        self._flush()

    def refused(self, obj: Obj, why: Refused) -> None:
        self._recorder.note("rejected", obj, refusal_text(why))
        self._flush()

    def warned(self, obj: Obj, message: str) -> None:
        self._recorder.note("warning", obj, message)
        self._flush()

    def _flush(self) -> None:
        lines, self._recorder.lines = self._recorder.lines, []
        for line in lines:
            self._write(_formatted(line))


def _formatted(line: Line) -> str:
    name = f"{line.namespace}/{line.name}" if line.namespace else line.name
    text = f"{time.strftime('%H:%M:%S')} {line.what:<9} {line.kind} {name}"
    if line.node:
        text += f" on {line.node}"
    if isinstance(line, PhaseLine):
        text += f": {line.from_ or '(none)'} -> {line.to or '(none)'}"
    return f"{text}: {line.message}" if line.message else text
