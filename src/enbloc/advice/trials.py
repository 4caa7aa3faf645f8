"""Trials on forks of a simulation: when would a gang start, as things are and after a change.

The simulation goes on from the objects of a cluster at an instant, as after a restart of the scheduler (I5), with API,
admission, controllers, scheduler and nodes. A trial continues a fork of it in virtual time. What the trials for a gang
cost is bounded by `WORK`, the length of each by `MOST_INSTANTS` (that of a forecast by `MOST_FORECAST_INSTANTS`) and,
where only timers are left, by `QUIET_NS`. All times are nanoseconds since that instant.

Work is bounded, not time: two runs of `sim` must agree.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from enbloc.advice.change import StepDoc, events
from enbloc.advice.fork import on_a_copy
from enbloc.api.meta import Obj, annotations_of, uid_of
from enbloc.cluster.embedded.nodes.pod_script import RUN_TIME
from enbloc.config import Config
from enbloc.engine.engine import Engine
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.scenario import Scenario
from enbloc.sim.simulation import Records, Simulation, Stop
from enbloc.units import SECOND, parse_duration, parse_timestamp

MOST_INSTANTS: Final = 500
"""A trial ends after this many instants: times of an event, of a pod's end or of a timer, whatever comes of them."""
MOST_FORECAST_INSTANTS: Final = 5_000
"""A forecast ends after as many: one serves all gangs that wait."""
QUIET_NS: Final = 3_600 * SECOND
"""Both also end where only timers are left, before one that fires so long after the last change: what a timer of a day
does later is no effect of the change."""
WORK: Final = 3_000
"""What the trials for one gang may cost: each its writes, and one for every `OBJECTS_A_WRITE` objects of the cluster,
since a fork costs as long as its memory is large. Counted, not timed: the same input gives the same answer."""
OBJECTS_A_WRITE: Final = 400


class Trials:
    def __init__(self, objects: Sequence[Obj], now_ns: int, config: Config) -> None:
        """`objects`: as an API server stores them; their records are those of the scheduler (S2)."""
        existing = [_still_running(obj, now_ns) for obj in objects if obj["kind"] != "Event"]
        self.simulation = Simulation(Scenario([], existing=existing, begin_ns=now_ns), config, records=Records.TRUSTED)
        self.simulation.run(until_ns=0)
        plane_of(self.simulation).scheduler.status_writer.is_terse = True
        self._cost_of_fork = 1 + len(existing) // OBJECTS_A_WRITE
        self.left = WORK
        self.futile: set[Hashable] = set()
        """Kinds of changes that did not help a gang of some shape."""

    @property
    def engine(self) -> Engine:
        return engine_of(self.simulation)

    def begin_gang(self) -> None:
        """What is left for the trials of the next gang."""
        self.left = WORK

    def start_after(self, title: str, steps: Iterable[StepDoc], before_ns: int | None = None) -> int | None:
        """When the gang starts if the Steps are carried out now; `None`: it does not, or only at `before_ns` or later,
        or the cluster comes to no rest at that instant, or the trials are used up."""
        if self.left <= 0:
            return None
        simulation, version, left = self.simulation, self.simulation.store.version, self.left

        def run() -> tuple[int, int]:
            plan = events(steps, simulation.elapsed_ns)

            def is_over() -> bool:
                late = before_ns is not None and simulation.elapsed_ns >= before_ns
                return late or simulation.store.version - version > left or has_started(engine_of(simulation), title)

            is_at_rest = simulation.go_on(plan, Stop(is_over, MOST_INSTANTS, QUIET_NS))
            started = is_at_rest and has_started(engine_of(simulation), title)
            in_time = before_ns is None or simulation.elapsed_ns < before_ns
            return simulation.elapsed_ns if started and in_time else -1, simulation.store.version - version

        at_ns, writes = on_a_copy(run, tuple[int, int]) or (-1, 0)
        self.left -= self._cost_of_fork + writes
        return None if at_ns < 0 else at_ns

    def forecast(self, titles: Sequence[str]) -> dict[str, int]:
        """When gangs start if nothing is changed and pods run as long as their authors expect; without those that do
        not start."""
        simulation = self.simulation

        def run() -> dict[str, int]:
            found: dict[str, int] = {}

            def all_started() -> bool:
                for title in titles:
                    if title not in found and has_started(engine_of(simulation), title):
                        found[title] = simulation.elapsed_ns
                return len(found) == len(titles)

            simulation.nodes.assume_run_times(lambda pod: expected_run_time(engine_of(simulation), pod))
            simulation.go_on((), Stop(all_started, MOST_FORECAST_INSTANTS, QUIET_NS))
            return found

        return on_a_copy(run, dict[str, int]) or {}


def _still_running(obj: Obj, now_ns: int) -> Obj:
    """A pod that runs though its run time is over runs on: when it ends is not known."""
    annotations = annotations_of(obj)
    run_time = annotations.get(RUN_TIME)
    status = obj.get("status") or {}
    if obj["kind"] != "Pod" or run_time is None or status.get("phase") != "Running" or not status.get("startTime"):
        return obj
    if parse_timestamp(status["startTime"]) + parse_duration(run_time) > now_ns:
        return obj
    kept = {key: text for key, text in annotations.items() if key != RUN_TIME}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def plane_of(simulation: Simulation) -> ControlPlane:
    plane = simulation.plane
    assert isinstance(plane, ControlPlane), "trials need the real control plane"
    return plane


def engine_of(simulation: Simulation) -> Engine:
    return plane_of(simulation).engine


def has_started(engine: Engine, title: str) -> bool:
    """Whether the minima of a gang are placed."""
    return any(
        gang.spec.title == title and gang.total_occupied > 0 and gang.need.ready for gang in engine.state.gangs.values()
    )


def expected_run_time(engine: Engine, pod: Obj) -> int | None:
    """The run time that a pod's author expects, in nanoseconds; `None`: not given."""
    task = engine.state.tasks.get(uid_of(pod))
    return task.run_time_ns if task is not None else None
