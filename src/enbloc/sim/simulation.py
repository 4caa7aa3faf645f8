"""A cluster in virtual time, with the API, admission, controllers and scheduler that run live.

At an instant all that is due is done first: the scenario in the order of its files, then the nodes. Then nodes,
controllers and scheduler react until nothing changes (`cluster.embedded.settle`). Then time jumps to the next event or
timer. The run ends when there is none, or at `until`.

A run that would not end is cut off, with the last lines of its timeline: see `ROUNDS`, `MOST_RESTARTS` and
`IDLE_TIMERS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from enbloc.admission.settings import settings_of
from enbloc.api import workloads
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref, controller_of, name_of, namespace_of
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues, refusal_text
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.settle import ROUNDS, Plane, Restless, settle
from enbloc.config import Config, scheduler_names, where_alone
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.workloads.controller import WorkloadController
from enbloc.gangs.record_digests import SIMULATED, TRUSTING, Keyring
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.live_objects import stored
from enbloc.scenario.player import Player
from enbloc.scenario.scenario import Scenario, ScenarioEvent
from enbloc.scenario.timeline import Line, Recorder
from enbloc.sim.clock import Clock
from enbloc.sim.result import CUT_OFF, IDLE, UNTIL, Result
from enbloc.sim.statistics import Statistics
from enbloc.sim.without_effect import without_effect
from enbloc.units import SECOND, format_duration

MOST_RESTARTS: Final = 500
"""At most this many creations or restarts of one pod (by name) in a run without `until`, and at any one instant."""
IDLE_TIMERS: Final = 1_000
"""The run has ended when only timers are left and this many in a row changed nothing but Events: a creation that a
quota refuses is retried without end."""
_MADE_BY: Final = {workloads.CRON_JOB: "Job", workloads.REPLICA_SET: "pod", workloads.DAEMON_SET: "pod"}
"""Kinds whose objects create others under ever new names."""
_REASON_LINES: Final = 8
_DRAIN_EVERY: Final = 1_000


PlaneFactory = Callable[[Store, Config], Plane]
Progress = Callable[[float, int, int], None]
"""Called after each instant: virtual seconds, scenario events done, scenario events in total."""


class Stop(NamedTuple):
    """When a run stops before its end."""

    when: Callable[[], bool]
    """Asked after each instant."""
    most_instants: int
    quiet_ns: int
    """It also stops where only timers are left, before one that fires so long after the last change."""


class _CutOff(Exception):
    """The run would not end; the message says why."""


class Records(Enum):
    """What becomes of the scheduler's own annotations in a scenario's files (S2)."""

    STRIPPED = "stripped"
    """They are removed at admission, as on a cluster with our webhook."""
    AS_WRITTEN = "as-written"
    """They are stored, and count only if their digests verify: as on a cluster without our webhook."""
    TRUSTED = "trusted"
    """They are stored and count, as the records of the cluster that the files come from."""


def control_plane(store: Store, config: Config, keyring: Keyring = SIMULATED) -> Plane:
    """The real one, except for SSH keys: no process runs here, and every run must give the same objects."""
    names = scheduler_names(config, alone=True)
    return ControlPlane(store, config, names, simulated_key_pair, (WorkloadController(),), keyring)


class Simulation:
    """One run of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        config: Config,
        plane: PlaneFactory = control_plane,
        records: Records = Records.STRIPPED,
    ) -> None:
        self._clock = Clock(scenario.begin_ns) if scenario.existing and scenario.begin_ns is not None else Clock()
        config = self._config = where_alone(config)
        if records is Records.TRUSTED:
            plane = partial(control_plane, keyring=TRUSTING)
        self._make_plane = plane
        existing = stored(scenario.existing, self._clock.now_ns)
        restore = partial(_restore, existing) if existing else None
        guards = records is Records.STRIPPED
        self._store = make_store(self._clock, config, restore, guards_records=guards)
        provide_queues(self._store, (arrival.obj for arrival in scenario.arrivals if arrival.at_ns == 0))
        self._watch = self._store.watch(None, self._store.version)
        self._nodes = NodePlayer(self._store)
        self._plane = plane(self._store, config)
        self._player = Player(scenario, self._store, self._nodes, self)
        namespaces = (name_of(arrival.obj) for arrival in scenario.arrivals if arrival.obj["kind"] == "Namespace")
        self._recorder = Recorder(self._clock, frozenset(namespaces))
        self._statistics = Statistics(self._clock, config)
        self._recorder.adopt(existing)
        self._statistics.adopt(existing)
        self._created: Counter[Ref] = Counter()
        self._created_now: Counter[Ref] = Counter()
        self._runaway: _CutOff | None = None
        self._has_end = False
        self._has_begun = not existing
        self._last_change_ns = 0

    def keep_progress(self, checkpoint: Callable[[Store, Obj, int], None]) -> None:
        """Pods that are deleted while they run are continued by the next pod of their name; `checkpoint` is called with
        the store, the deleted pod and the part of its run time that is done."""
        self._nodes.keep_progress(partial(checkpoint, self._store))

    def run(self, until_ns: int | None = None, progress: Progress | None = None) -> Result:
        """Runs to the end; `until_ns` is since the start. Raises nothing, whatever the scenario does."""
        ended, reason = IDLE, ""
        self._has_end = until_ns is not None
        try:
            if self._run(until_ns, progress):
                ended = UNTIL
        except _CutOff as why:
            ended, reason = CUT_OFF, str(why)
        return self._result(ended, reason)

    def go_on(self, events: Iterable[ScenarioEvent], stop: Stop) -> bool:
        """After `run`: plays these events, and none of the scenario that were still to come; runs until `stop.when`
        holds after an instant. Whether it came to that within the bounds of `stop`."""
        self._player.replace_rest(events)
        self._has_end = False
        self._created.clear()
        try:
            self._run(None, None, stop)
        except _CutOff:
            return False
        return stop.when()

    @property
    def store(self) -> Store:
        return self._store

    @property
    def nodes(self) -> NodePlayer:
        return self._nodes

    @property
    def plane(self) -> Plane:
        return self._plane

    @property
    def config(self) -> Config:
        return self._config

    @property
    def begin_ns(self) -> int:
        """The instant at which its virtual time began."""
        return self._clock.begin_ns

    @property
    def elapsed_ns(self) -> int:
        """The present, in nanoseconds since the start."""
        return self._clock.elapsed_ns

    def _run(self, until_ns: int | None, progress: Progress | None, stop: Stop | None = None) -> bool:
        """Whether events or timers are left after `until_ns`."""
        idle, lines, instants, began_ns = 0, 0, 0, self._clock.elapsed_ns
        while (at_ns := self._next_instant()) is not None:
            if until_ns is not None and at_ns > until_ns:
                self._clock.now_ns = self._clock.begin_ns + until_ns
                return True
            if stop is not None and self._only_timers() and at_ns - max(began_ns, self._last_change_ns) > stop.quiet_ns:
                return True
            self._clock.now_ns = self._clock.begin_ns + at_ns
            self._created_now.clear()
            self._play()
            self._nodes.run(self._clock.now_ns)
            self._settle()
            if not self._has_end:
                self._check_restarts()
            if self._last_change_ns == at_ns or not self._only_timers():
                idle, lines = 0, len(self._recorder.lines)
            elif not self._has_end and (idle := idle + 1) >= IDLE_TIMERS:
                self._recorder.truncate(lines)
                return False
            instants += 1
            if stop is not None and (stop.when() or instants >= stop.most_instants):
                return True
            if progress is not None:
                progress(self._clock.elapsed_s, self._player.done, self._player.total)
        return False

    def _next_instant(self) -> int | None:
        """The next event or timer, in nanoseconds since the start; `None` if there is none. With objects that exist
        from the start, the start is one."""
        if not self._has_begun:
            self._has_begun = True
            return 0
        dues = [due - self._clock.begin_ns for due in (self._nodes.due(), self._plane.due()) if due is not None]
        coming = self._player.due()
        later = [due for due in dues if due > self._clock.elapsed_ns]
        return min([*later, coming] if coming is not None else later, default=None)

    def _only_timers(self) -> bool:
        """Whether no event of the scenario and no end of a pod is to come."""
        return self._player.due() is None and self._nodes.due() is None

    def _play(self) -> None:
        """All scenario events of this instant, in order."""
        for done in self._player.run(self._clock.elapsed_ns):
            if done % _DRAIN_EVERY == 0:
                self._record()
        self._record()

    def _settle(self) -> None:
        """Every component reacts until nothing changes."""
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
                self._last_change_ns = self._clock.elapsed_ns
            self._recorder.observe(event)
            self._statistics.observe(event)
            created = _created_object(event)
            if created is not None:
                self._created[created] += 1
                self._created_now[created] += 1
                self._check_creations(created)

    def _check_creations(self, ref: Ref) -> None:
        """Nothing is created without end: not within an instant, and in a run without `until` not at all."""
        count = self._created_now[ref] if self._has_end else self._created[ref]
        if count > MOST_RESTARTS and self._runaway is None:
            what = "pod" if ref.kind == "Pod" else f"another {_MADE_BY[ref.kind]} of {ref.kind.partition('.')[0]}"
            text = f"{what} {ref.namespace}/{ref.name} was created {count:,} times by {self._at()}"
            self._runaway = self._endless(ref, text)

    def _check_restarts(self) -> None:
        """In a run without `until` no pod restarts without end."""
        restarted = self._nodes.most_restarted()
        if restarted is not None and restarted[-1] > MOST_RESTARTS:
            namespace, name, count = restarted
            text = f"pod {namespace}/{name} was restarted {count:,} times by {self._at()}"
            raise self._endless(Ref("Pod", namespace, name), text)

    def _at(self) -> str:
        return f"t={format_duration(self._clock.elapsed_ns)}"

    def _endless(self, ref: Ref, what: str) -> _CutOff:
        lines = self._recorder.about(ref.kind.partition(".")[0], ref.namespace, ref.name, last=_REASON_LINES)
        return _CutOff(f"{what} and would go on without end; set --until to run it for a time.{_last(lines)}")

    def _last_lines(self) -> str:
        return _last(self._recorder.lines[-_REASON_LINES:])

    # ---- the host of the player

    def restart_scheduler(self) -> None:
        self._plane.close()
        self._plane = self._make_plane(self._store, self._config)

    def refused(self, obj: Obj, why: Refused) -> None:
        self._record()
        self._recorder.note("rejected", obj, refusal_text(why))
        self._last_change_ns = self._clock.elapsed_ns

    def warned(self, obj: Obj, message: str) -> None:
        self._record()
        self._recorder.note("warning", obj, message)
        self._last_change_ns = self._clock.elapsed_ns

    def _result(self, ended: str, reason: str) -> Result:
        end_ns = self._last_change_ns
        self._statistics.finish(self._clock.elapsed_ns if ended == UNTIL else end_ns)
        pending = self._plane.pending()
        objects = list(self._store.objects())
        return Result(
            end=end_ns / SECOND,
            ended=ended,
            timeline=self._recorder.lines,
            objects=objects,
            pending=pending,
            summary=self._summary(len(pending)),
            gangs=list(self._statistics.gangs.values()),
            all_gangs=self._statistics.shown(pending, self._clock.elapsed_ns if ended == UNTIL else end_ns),
            without_effect=without_effect(objects, settings_of(self._config, alone=True)),
            series=self._statistics.series(self._clock.elapsed_ns if ended == UNTIL else end_ns),
            reason=reason,
        )

    def _summary(self, pending: int) -> dict[str, Any]:
        counts = self._recorder.counts
        counted = ("created", "bound", "succeeded", "failed", "evicted", "deleted")
        return {
            "gangs": {"pending": pending, "started": self._statistics.started()},
            "makespan": self._statistics.makespan(),
            "pods": {what: counts[what, "Pod"] for what in counted},
            "rejected": sum(count for (what, _), count in counts.items() if what == "rejected"),
            "utilisation": self._statistics.utilisation(),
            "waiting": self._statistics.waiting(),
            "warnings": sum(count for (what, _), count in counts.items() if what == "warning"),
        }


def _restore(existing: list[Obj], store: Store) -> None:
    """Some kinds may not have been read: owners that are missing exist in the cluster."""
    store.restore(existing, max(int(obj["metadata"]["resourceVersion"]) for obj in existing), complete=False)


def _last(lines: list[Line]) -> str:
    return " Last lines of the timeline: " + "; ".join(map(str, lines)) + "." if lines else ""


def _created_object(event: WatchEvent) -> Ref | None:
    """What is created again by an event: a pod of this name; or what an owner creates under ever new names: a Job of a
    CronJob, a pod in place of one that failed."""
    obj = event.obj
    owner = controller_of(obj) or {}
    maker = kind_id(owner) if owner.get("apiVersion") and owner.get("kind") else ""
    if event.kind == workloads.JOB and event.type == "ADDED" and maker == workloads.CRON_JOB:
        return Ref(maker, namespace_of(obj), owner.get("name") or "")
    if event.kind != "Pod":
        return None
    if event.type == "ADDED":
        return Ref("Pod", namespace_of(obj), name_of(obj))
    before = ((event.old or {}).get("status") or {}).get("phase")
    failed = event.type == "MODIFIED" and (obj.get("status") or {}).get("phase") == "Failed" != before
    return Ref(maker, namespace_of(obj), owner.get("name") or "") if failed and maker in _MADE_BY else None
