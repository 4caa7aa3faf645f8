"""Trials on forks of a simulation: when would a gang start, as things are and after a change.

The simulation goes on from the objects of a cluster at an instant, as after a restart of the scheduler (I5), with API,
admission, controllers, scheduler and nodes. A trial continues a fork of it in virtual time. The number of trials is
bounded by `WORK`, their length by `MOST_INSTANTS`. All times are nanoseconds since that instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from enbloc.advice.change import StepDoc, events
from enbloc.advice.fork import on_a_copy
from enbloc.api.meta import Obj, annotations_of, uid_of
from enbloc.cluster.embedded.nodes.pod_script import RUN_TIME
from enbloc.config import Config
from enbloc.engine.engine import Engine
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.scenario import Scenario
from enbloc.sim.simulation import Records, Simulation
from enbloc.units import parse_duration, parse_timestamp

MOST_INSTANTS: Final = 500
"""A trial ends after this many instants at which something happened."""
MOST_FORECAST_INSTANTS: Final = 5_000
MOST_TRIALS: Final = 240
WORK: Final = 200_000
"""Objects that all trials of one answer may carry along: a large cluster gets fewer trials."""
LEAST_TRIALS: Final = 6


class Trials:
    def __init__(self, objects: Sequence[Obj], now_ns: int, config: Config) -> None:
        """`objects`: as an API server stores them; their records are those of the scheduler (S2)."""
        existing = [_still_running(obj, now_ns) for obj in objects if obj["kind"] != "Event"]
        self.simulation = Simulation(Scenario([], existing=existing, begin_ns=now_ns), config, records=Records.TRUSTED)
        self.simulation.run(until_ns=0)
        self.left = max(LEAST_TRIALS, min(MOST_TRIALS, WORK // max(1, len(existing))))

    @property
    def engine(self) -> Engine:
        return engine_of(self.simulation)

    def start_after(self, title: str, steps: Iterable[StepDoc]) -> int | None:
        """When the gang starts if the Steps are carried out now; `None`: it does not, or the trials are used up."""
        if self.left <= 0:
            return None
        self.left -= 1
        simulation = self.simulation

        def run() -> int:
            plan = events(steps, simulation.elapsed_ns)
            started = simulation.go_on(plan, lambda: has_started(engine_of(simulation), title), MOST_INSTANTS)
            return simulation.elapsed_ns if started else -1

        found = on_a_copy(run, int)
        return None if found is None or found < 0 else found

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
            simulation.go_on((), all_started, MOST_FORECAST_INSTANTS)
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


def engine_of(simulation: Simulation) -> Engine:
    plane = simulation.plane
    assert isinstance(plane, ControlPlane), "trials need the real control plane"
    return plane.engine


def has_started(engine: Engine, title: str) -> bool:
    """Whether the minima of a gang are placed."""
    return any(
        gang.spec.title == title and gang.total_occupied > 0 and gang.ready() for gang in engine.state.gangs.values()
    )


def expected_run_time(engine: Engine, pod: Obj) -> int | None:
    """The run time that a pod's author expects, in nanoseconds; `None`: not given."""
    task = engine.state.tasks.get(uid_of(pod))
    return task.run_time_ns if task is not None else None
