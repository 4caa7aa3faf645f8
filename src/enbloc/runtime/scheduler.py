"""The scheduler on a cluster: translator, executor and status writer over one transport.

Watch events go in through `observe`; `cycle` decides and starts the writes. When cycles run, and what happens between
them, is the control plane's part: `control_plane` at an instant of time, `live_control_plane` on an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent, Write
from enbloc.config import Config
from enbloc.engine.decisions import Waits
from enbloc.engine.engine import Engine
from enbloc.gangs.model import GangKey
from enbloc.gangs.record_digests import Keyring
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.executor import Executor, Measure
from enbloc.runtime.status_writer import StatusWriter
from enbloc.runtime.translate import Translator
from enbloc.runtime.transport import Transport
from enbloc.runtime.write_plans import StatusUpdate, WritePlan

Known = Callable[[str], Iterable[Obj]]
"""The objects of a kind, as the API has them, as far as they were observed."""


def listed(kinds: Iterable[str], known: Known) -> Iterator[WatchEvent]:
    """All objects, as if they were new."""
    for kind in sorted(kinds, key=listing_order):
        for obj in known(kind):
            yield WatchEvent("ADDED", kind, obj)


def listing_order(kind: str) -> tuple[bool, str]:
    """Pods last: the objects that they belong to are known by then, and no pod is read twice."""
    return (kind == "Pod", kind)


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
        self.status_writer = StatusWriter(
            transport, lambda *about: self.translator.subject(*about), status_changed, self._fail_status
        )
        self.executor = Executor(
            transport,
            self._refused,
            self.status_writer.emit,
            wake,
            measure,
            lambda plan, failure: self.translator.fail(plan.decision, failure),
        )

    @property
    def engine(self) -> Engine:
        return self.translator.engine

    @property
    def torn(self) -> bool:
        """Whether the state is to be rebuilt before the next cycle (S8)."""
        return self.translator.torn

    def busy(self) -> bool:
        """Whether a cycle would have anything to look at."""
        return self.translator.busy()

    def due(self) -> int | None:
        return self.translator.due()

    def rebuild(self, known: Known) -> None:
        """Reads the state anew. No write may be under way."""
        self.translator = self.translator.anew()
        for event in listed(self.kinds, known):
            self.translator.observe(self.status_writer.observe(event))

    def _refused(self, plan: WritePlan, write: Write | None) -> None:
        try:
            self.translator.refused(plan, write)
        except Exception as failure:
            self.translator.fail(plan.decision, failure)

    def _fail_status(self, gang: GangKey | None, failure: Exception) -> None:
        self.translator.fail(Waits(gang, "", "", (), True) if gang is not None else None, failure)

    def observe(self, event: WatchEvent) -> None:
        if event.kind == "Pod":
            self.executor.observe(event)
        self.translator.observe(self.status_writer.observe(event))

    def cycle(self, now_ns: int) -> None:
        """One scheduling cycle; its writes are done, or under way, when it returns."""
        self.executor.begin_cycle()
        for one in self.translator.cycle(now_ns):
            if not isinstance(one, StatusUpdate):
                self.executor.take(one)
                continue
            try:
                self.status_writer.put(one)
            except Exception as failure:
                self._fail_status(one.gang, failure)
        recorder = self.translator.recorder
        if recorder is not None:
            at_rest = not (self.translator.decided or self.executor.is_busy or self.busy())
            recorder.decided(self.translator.decided, at_rest)
