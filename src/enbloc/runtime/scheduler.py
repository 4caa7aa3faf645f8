"""The scheduler on a cluster: translator, executor and status writer over one transport.

Watch events go in through `observe`; `cycle` decides and starts the writes. When cycles run, and what happens between
them, is the control plane's part: `control_plane` at an instant of time, `live_control_plane` on an event loop.
"""

from __future__ import annotations

from collections.abc import Callable

from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.engine.engine import Engine
from enbloc.gangs.record_digests import Keyring
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.executor import Executor, Measure
from enbloc.runtime.status_writer import StatusWriter
from enbloc.runtime.translate import Translator
from enbloc.runtime.transport import Transport
from enbloc.runtime.write_plans import StatusUpdate


class Scheduler:
    """One scheduler. It keeps nothing that the API does not know: a new one on the same cluster decides the same."""

    kinds: frozenset[str] = Translator.kinds

    def __init__(
        self,
        transport: Transport,
        config: Config,
        names: frozenset[str],
        keyring: Keyring,
        wake: Callable[[], None] = lambda: None,
        status_changed: Callable[[], None] = lambda: None,
        measure: Measure = lambda bound, seconds, uid: None,
        metrics: CycleMetrics | None = None,
    ) -> None:
        """`measure` is called with each Binding's outcome and time; `metrics` counts decisions."""
        self.translator = Translator(config, names, keyring, metrics)
        self.kinds = self.translator.kinds
        self.status_writer = StatusWriter(transport, self.translator.subject, status_changed)
        self.executor = Executor(transport, self.translator.refused, self.status_writer.emit, wake, measure)

    @property
    def engine(self) -> Engine:
        return self.translator.engine

    def observe(self, event: WatchEvent) -> None:
        if event.kind == "Pod":
            self.executor.observe(event)
        self.translator.observe(self.status_writer.observe(event))

    def cycle(self, now_ns: int) -> None:
        """One scheduling cycle; its writes are done, or under way, when it returns."""
        self.executor.begin_cycle()
        for one in self.translator.cycle(now_ns):
            if isinstance(one, StatusUpdate):
                self.status_writer.put(one)
            else:
                self.executor.take(one)
        recorder = self.translator.recorder
        if recorder is not None:
            at_rest = not (self.translator.decided or self.executor.is_busy or self.engine.busy())
            recorder.decided(self.translator.decided, at_rest)
