"""A whole cluster in virtual time: the same API, admission, controllers and scheduler that run live.

At one instant everything that is due happens first: the scenario in order of appearance, then the nodes. Then, again
and again until nothing changes, the nodes react, the controllers run until they are quiet, the scheduler runs once.
Then time jumps to whatever comes next. It ends when nothing can come any more, or when it was told to.

Nothing may go on for ever: see `ROUNDS` and `RESTARTS`. What is cut off tells its story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues, refusal_text
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.settle import ROUNDS, Plane, Restless, settle
from enbloc.config import Config, scheduler_names
from enbloc.controllers.plugins.ssh import simulated_key_pair
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.player import Player
from enbloc.scenario.scenario import Scenario
from enbloc.scenario.timeline import Line, Recorder
from enbloc.sim.clock import EPOCH, Clock
from enbloc.sim.result import CUT_OFF, IDLE, UNTIL, Result
from enbloc.sim.statistics import Statistics
from enbloc.units import SECOND, format_duration

RESTARTS: Final = 500
"""How often one pod (by name) may start in a run without an end, and in any one instant."""
FRUITLESS: Final = 1_000
"""When nothing is left but timers, and so many in a row changed nothing (what they said about it does not count: a
creation that a quota refuses is tried again for ever), nothing can happen any more."""
_STORY_LINES: Final = 8
_DRAIN_EVERY: Final = 1_000


PlaneFactory = Callable[[Store, Config], Plane]
Progress = Callable[[float, int, int], None]
"""Told now and then: virtual seconds, happenings done, happenings in all."""


class _CutOff(Exception):
    """It would never end; the message tells why."""


def control_plane(store: Store, config: Config) -> Plane:
    """The real one, but for keys: nobody logs in here, and every run must be the same."""
    return ControlPlane(store, config, scheduler_names(config, alone=True), simulated_key_pair)


class Simulation:
    """One run of one scenario."""

    def __init__(self, scenario: Scenario, config: Config, plane: PlaneFactory = control_plane) -> None:
        self._clock = Clock()
        self._config = config
        self._make_plane = plane
        self._store = make_store(self._clock, config)
        provide_queues(self._store, (arrival.obj for arrival in scenario.arrivals if arrival.at == 0))
        self._watch = self._store.watch(None, self._store.version)
        self._nodes = NodePlayer(self._store)
        self._plane = plane(self._store, config)
        self._playbook = Player(scenario, self._store, self._nodes, self)
        namespaces = (name_of(arrival.obj) for arrival in scenario.arrivals if arrival.obj["kind"] == "Namespace")
        self._recorder = Recorder(self._clock, frozenset(namespaces))
        self._statistics = Statistics(self._clock, config)
        self._created: Counter[tuple[str, str]] = Counter()
        self._created_now: Counter[tuple[str, str]] = Counter()
        self._runaway: _CutOff | None = None
        self._has_end = False
        self._last_change = 0

    def run(self, until: int | None = None, progress: Progress | None = None) -> Result:
        """Runs to the end; `until` is in nanoseconds since the start. Never raises for what a scenario can do."""
        ended, story = IDLE, ""
        self._has_end = until is not None
        try:
            if self._run(until, progress):
                ended = UNTIL
        except _CutOff as why:
            ended, story = CUT_OFF, str(why)
        return self._result(ended, story)

    def _run(self, until: int | None, progress: Progress | None) -> bool:
        """True if there was more to come after `until`."""
        fruitless, told = 0, 0
        while (at := self._next_instant()) is not None:
            if until is not None and at > until:
                self._clock.now = EPOCH + until
                return True
            self._clock.now = EPOCH + at
            self._created_now.clear()
            self._happen()
            self._nodes.run(self._clock.now)
            self._settle()
            if not self._has_end:
                self._check_restarts()
            if self._last_change == at or self._playbook.due() is not None or self._nodes.due() is not None:
                fruitless, told = 0, len(self._recorder.lines)
            elif not self._has_end and (fruitless := fruitless + 1) >= FRUITLESS:
                self._recorder.forget_after(told)
                return False
            if progress is not None:
                progress(self._clock.elapsed_s, self._playbook.done, self._playbook.total)
        return False

    def _next_instant(self) -> int | None:
        """When something can happen next, since the start; `None`: never again."""
        dues = [due - EPOCH for due in (self._nodes.due(), self._plane.due()) if due is not None]
        coming = self._playbook.due()
        later = [due for due in dues if due > self._clock.elapsed]
        return min([*later, coming] if coming is not None else later, default=None)

    def _happen(self) -> None:
        """All that the scenario holds for this instant, in order."""
        for done in self._playbook.happen(self._clock.elapsed):
            if done % _DRAIN_EVERY == 0:
                self._record()
        self._record()

    def _settle(self) -> None:
        """Everything reacts until nothing changes."""
        try:
            for changed in settle(self._store, self._nodes, self._plane, limit=self._most_rounds):
                self._record()
                if changed and self._runaway is not None:
                    raise self._runaway
        except Restless as why:
            self._record()
            raise _CutOff(f"{self._at()} {why}.{self._last_lines()}") from None

    def _most_rounds(self) -> int:
        """Every pod that was created may cost some rounds."""
        return ROUNDS + 10 * len(self._created)

    def _record(self) -> None:
        for event in self._watch.drain():
            if event.kind != "Event":
                self._last_change = self._clock.elapsed
            self._recorder.observe(event)
            self._statistics.observe(event)
            if event.kind == "Pod" and event.type == "ADDED":
                who = (namespace_of(event.obj), name_of(event.obj))
                self._created[who] += 1
                self._created_now[who] += 1
                self._check_creations(who)

    def _check_creations(self, who: tuple[str, str]) -> None:
        """Nobody is created for ever: not within an instant, and in a run without an end not at all."""
        count = self._created_now[who] if self._has_end else self._created[who]
        if count > RESTARTS and self._runaway is None:
            self._runaway = self._endless(who, f"pod {'/'.join(who)} was created {count:,} times by {self._at()}")

    def _check_restarts(self) -> None:
        """In a run without an end, no pod starts for ever."""
        restarted = self._nodes.most_restarted()
        if restarted is not None and restarted[-1] > RESTARTS:
            namespace, name, count = restarted
            raise self._endless(
                (namespace, name), f"pod {namespace}/{name} was restarted {count:,} times by {self._at()}"
            )

    def _at(self) -> str:
        return f"t={format_duration(self._clock.elapsed)}"

    def _endless(self, who: tuple[str, str], what: str) -> _CutOff:
        lines = self._recorder.about("Pod", *who, last=_STORY_LINES)
        return _CutOff(f"{what} and would go on for ever; give --until to watch it.{_told(lines)}")

    def _last_lines(self) -> str:
        return _told(self._recorder.lines[-_STORY_LINES:])

    # What the scenario could not do

    def restart_scheduler(self) -> None:
        self._plane.close()
        self._plane = self._make_plane(self._store, self._config)

    def refused(self, obj: Obj, why: Refused) -> None:
        self._record()
        self._recorder.note("rejected", obj, refusal_text(why))
        self._last_change = self._clock.elapsed

    def warned(self, obj: Obj, message: str) -> None:
        self._record()
        self._recorder.note("warning", obj, message)
        self._last_change = self._clock.elapsed

    def _result(self, ended: str, story: str) -> Result:
        end = self._last_change
        self._statistics.finish(self._clock.elapsed if ended == UNTIL else end)
        pending = self._plane.pending()
        return Result(
            end=end / SECOND,
            ended=ended,
            timeline=self._recorder.lines,
            objects=list(self._store.objects()),
            pending=pending,
            summary=self._summary(len(pending)),
            gangs=list(self._statistics.gangs.values()),
            story=story,
        )

    def _summary(self, pending: int) -> dict[str, Any]:
        counts = self._recorder.counts
        told = ("created", "bound", "succeeded", "failed", "evicted", "deleted")
        return {
            "gangs": {"pending": pending, "started": len(self._statistics.gangs)},
            "makespan": self._statistics.makespan(),
            "pods": {what: counts[what, "Pod"] for what in told},
            "rejected": sum(count for (what, _), count in counts.items() if what == "rejected"),
            "utilisation": self._statistics.utilisation(),
            "waiting": self._statistics.waiting(),
            "warnings": sum(count for (what, _), count in counts.items() if what == "warning"),
        }


def _told(lines: list[Line]) -> str:
    return " What happened last: " + "; ".join(map(str, lines)) + "." if lines else ""
