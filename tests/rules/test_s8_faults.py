"""One gang's fault is its own: whatever raises while its objects are looked at holds that gang alone (S8, H1)."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from enbloc.advice.explanation import explain
from enbloc.api.meta import name_of
from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.api.quota import Quotas
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.config import parse, scheduler_names
from enbloc.controllers import queuejob
from enbloc.controllers import volcano as volcano_status
from enbloc.controllers.job import JobController
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.queue import QueueController
from enbloc.controllers.queuejob import QueueJobController
from enbloc.controllers.workloads.controller import WorkloadController
from enbloc.engine.core import spine
from enbloc.engine.core.intake import Intake
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.state.gang_table import GangTable
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.task_counts import TaskCounts
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.why.reporter import Reporter
from enbloc.engine.features.evict import evict
from enbloc.gangs.volcano import Volcano
from enbloc.runtime import event_reader
from enbloc.runtime.control_plane import ControlPlane
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.executor import Executor
from enbloc.runtime.scheduler import listing_order
from enbloc.runtime.shadow import Shadow
from enbloc.runtime.status_writer import StatusWriter
from enbloc.runtime.translate import Translator
from enbloc.sim.clock import EPOCH
from enbloc.sim.recording import replay_recording
from enbloc.sim.simulation import control_plane
from enbloc.units import SECOND
from support import manifests as m
from support.answers import Answer
from support.live_cluster import LiveWorld, in_virtual_time
from support.simulation import simulate

pytestmark = pytest.mark.faults

BAD = "bad"
INTERNAL_ERROR = "InternalError"


class Throws:
    """Makes a function raise for one gang, `times` times or `until_s`; before or after it has done its work."""

    def __init__(self, patch: pytest.MonkeyPatch, place: Place, times: int = 10**9, until_s: float = math.inf) -> None:
        self.calls = 0
        self.now_s = 0.0
        self.at: list[float] = []
        original = getattr(place.owner, place.name)

        def throwing(*args: Any, **kwargs: Any) -> Any:
            may = self.calls < times and self.now_s < until_s
            hit = may and place.concerns(*args, **kwargs) and _by_the_control_plane()
            if hit and not place.after:
                self._throw()
            result = original(*args, **kwargs)
            if hit and place.after:
                self._throw()
            return result

        patch.setattr(place.owner, place.name, throwing)

    def _throw(self) -> None:
        self.calls += 1
        if self.now_s not in self.at:
            self.at.append(self.now_s)
        raise RuntimeError("thrown on purpose")

    def plane(self, *about: Any) -> Any:
        """A control plane whose time is known here."""
        return Timed(control_plane(*about), self)


class Timed:
    def __init__(self, plane: Any, thrown: Throws) -> None:
        self._plane, self._thrown = plane, thrown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)

    def reconcile(self, now_ns: int) -> Any:
        self._thrown.now_s = (now_ns - EPOCH) / SECOND
        return self._plane.reconcile(now_ns)


class Place(NamedTuple):
    owner: Any
    name: str
    concerns: Callable[..., bool]
    after: bool = False
    """Whether half of the work is done when it raises."""


def _by_the_control_plane() -> bool:
    """Not by what only counts or shows: that is lenient."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_back is not None:
        if frame.f_globals["__name__"].startswith("enbloc.runtime."):
            return True
        frame = frame.f_back
    return False


def of_key(_: object, key: Any, *more: object) -> bool:
    return bool(key.name == BAD)


def of_object(_: object, obj: Any, *more: object) -> bool:
    return name_of(obj) == BAD


def of_pod(_: object, pod: Any, *more: object) -> bool:
    return name_of(pod).startswith(BAD)


def of_gang(_: object, gang: Any, *more: object, **named: object) -> bool:
    return bool(gang.key.name == BAD)


def of_task(_: object, task: Any, *more: object) -> bool:
    return bool(task.gang.key.name == BAD)


def of_step(_: object, step: Any) -> bool:
    return bool(step.by > 0 and step.tasks[0].gang.key.name == BAD)


READ = {
    "the gang's spec": Place(Volcano, "spec", of_key),
    "the event of its object": Place(Volcano, "_observe_group", of_object),
    "the event of its object, half read": Place(Volcano, "_observe_group", of_object, after=True),
    "the gang of a pod": Place(Volcano, "member", of_pod),
    "the event of a pod": Place(Volcano, "observe_pod", of_pod),
    "a pod's facts": Place(
        event_reader, "pod_facts", lambda pod, *more: "annotations" in pod["metadata"] and of_pod(0, pod)
    ),
    "put_gang": Place(State, "put_gang", lambda _, spec: spec.key.name == BAD and not spec.fault),
    "put_pod": Place(State, "put_pod", lambda _, facts, *more: facts.name.startswith(BAD) and facts.labels is not None),
    "in the middle of put_pod": Place(TaskCounts, "add", of_task, after=True),
    "in the middle of a count": Place(TaskCounts, "count_gang", of_task, after=True),
    "the end of put_pod": Place(
        GangTable, "touch", lambda _, gang: gang.key.name == BAD and bool(gang.tasks), after=True
    ),
}
DECIDED = {
    "intake": Place(Intake, "read", of_gang),
    "the end of intake": Place(Intake, "read", of_gang, after=True),
    "an attempt": Place(spine, "attempt", lambda _, requests, *more, **named: requests[0].gang.key.name == BAD),
    "an attempt that fits": Place(
        spine, "attempt", lambda _, requests, *more, **named: requests[0].gang.key.name == BAD, after=True
    ),
    "in the middle of a transaction": Place(Transaction, "_count", of_step, after=True),
    "at the end of a transaction": Place(Transaction, "_execute", of_step, after=True),
    "the binding": Place(Reporter, "withdraw", of_gang),
}
REPORTED = {
    "the writes of a binding": Place(Translator, "_bind", lambda _, decision: decision.gang.name == BAD),
    "carrying a plan out": Place(
        Executor, "_send_step", lambda _, plan, *more: any(key.name == BAD for key in plan.gangs)
    ),
}
WAITS = {
    "a report": Place(Reporter, "report", of_gang),
    "the conditions": Place(Translator, "_waits", lambda _, decision, now_ns: decision.gang.name == BAD),
    "a status update": Place(
        StatusWriter, "put", lambda _, update: update.gang is not None and update.gang.name == BAD
    ),
    "sending a status": Place(
        StatusWriter, "_send_status", lambda _, entry: entry.gang is not None and entry.gang.name == BAD
    ),
}
EVICTING = {
    "a plan": Place(evict, "_try_evictions", lambda _, unit, *more: unit[0].key.name == BAD),
    "a plan that is carried out": Place(
        evict, "_carry_out", lambda search, *more: search.unit[0].key.name == BAD, after=True
    ),
}
STARTS = {**READ, **DECIDED, **REPORTED}


def gangs(*more: m.Obj, bad_cpu: int = 1) -> list[m.Obj]:
    """One bad gang among many, of several dialects, and room for all."""
    return [
        m.node("n0", 16),
        m.node("n1", 16),
        *m.gang("before", 2),
        *m.gang(BAD, 2, cpu=bad_cpu),
        *m.gang("behind", 3),
        *m.koordinator_gang("annotated", 2),
        m.pod("alone"),
        m.job("made", m.role("w", 2)),
        *m.gang("later", 2, at="5s"),
        *more,
    ]


OTHERS = {"before": [0.0] * 2, "behind": [0.0] * 3, "annotated": [0.0] * 2, "alone": [0.0], "later": [5.0] * 2}


def assert_others_start(answer: Answer) -> None:
    for name, times in OTHERS.items():
        assert answer.times(name) == times, name
    assert len(answer.times("made")) == 2


def why(answer: Answer, name: str) -> dict[str, Any]:
    found = [one for one in answer.data["pending"] if one["gang"] == f"default/{name}"]
    assert found, answer.data["pending"]
    return dict(found[0])


DONE_ALL_THE_SAME = {"in the middle of put_pod", "in the middle of a count"}
"""Places where the work was done when it raised: once it is tried again, nothing is left to do there."""


@pytest.mark.parametrize("place", STARTS)
def test_s8_what_raises_for_one_gang_holds_that_gang_alone(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thrown = Throws(monkeypatch, STARTS[place])
    answer = simulate(gangs(), until="8s")
    assert thrown.calls
    assert_others_start(answer)
    if place not in DONE_ALL_THE_SAME:
        assert not answer.times(BAD)
        said = why(answer, f"{BAD}-0" if place == "the gang of a pod" else BAD)
        assert said["reason"] == INTERNAL_ERROR
        assert "RuntimeError: thrown on purpose" in said["message"]


@pytest.mark.parametrize("place", STARTS)
def test_s8_it_is_tried_again_by_itself(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten seconds; after one where an object of it came since."""
    Throws(monkeypatch, STARTS[place], times=1)
    answer = simulate(gangs(), until="60s")
    assert_others_start(answer)
    assert answer.times(BAD) in ([1.0, 1.0], [10.0, 10.0]), place
    assert not answer.data["pending"]


def test_s8_pauses_grow_from_ten_seconds_to_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And our own conditions on its objects are no change of them."""
    thrown = Throws(monkeypatch, DECIDED["an attempt"])
    assert_others_start(simulate(gangs(), until="1500s", plane=thrown.plane))
    assert thrown.at == [0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 610.0, 910.0, 1210.0]


@pytest.mark.parametrize("place", [place for place in STARTS if place not in DONE_ALL_THE_SAME])
def test_s8_it_is_tried_again_when_its_objects_change(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thrown = Throws(monkeypatch, STARTS[place], until_s=6.0)
    change = m.patch("6s", "Pod" if place == "the gang of a pod" else "PodGroup", BAD, metadata={"labels": {"a": "b"}})
    changes = [m.patch("6s", "Pod", f"{BAD}-{n}", metadata={"labels": {"a": "b"}}) for n in range(2)]
    answer = simulate(gangs(*(changes if place == "the gang of a pod" else [change])), until="60s", plane=thrown.plane)
    assert_others_start(answer)
    assert answer.times(BAD) == [6.0, 6.0]


@pytest.mark.parametrize("place", ["the gang's spec", "in the middle of put_pod", "an attempt"])
def test_s8_it_is_tried_again_at_a_restart(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Throws(monkeypatch, STARTS[place], times=1)
    answer = simulate(gangs(m.restart("0.5s")), until="60s")
    assert_others_start(answer)
    assert answer.times(BAD) == [0.5, 0.5]


@pytest.mark.parametrize("place", WAITS)
def test_s8_a_gang_that_cannot_be_reported_on_stops_nobody(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thrown = Throws(monkeypatch, WAITS[place])
    answer = simulate(gangs(*m.gang("huge", 1, cpu=99), bad_cpu=100), until="8s")
    assert thrown.calls
    assert_others_start(answer)
    assert why(answer, "huge")["reason"] == "Unschedulable"
    assert why(answer, BAD)["reason"] == INTERNAL_ERROR


@pytest.mark.parametrize("place", EVICTING)
def test_s8_what_raises_for_one_preemptor_holds_it_alone(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gang preempts, and its victims go."""
    thrown = Throws(monkeypatch, EVICTING[place])
    answer = simulate(
        m.node("n0", 4),
        m.priority_class("high", 100),
        m.gang("victim", 4, 1),
        m.gang(BAD, 1, at="5s", priority="high"),
        m.gang("good", 1, at="6s", priority="high"),
        until="20s",
    )
    assert thrown.calls
    assert [name for _, name in answer.evicted()], "nothing was evicted"
    assert len(answer.times("good")) == 1
    assert not answer.times(BAD)
    assert why(answer, BAD)["reason"] == INTERNAL_ERROR


def test_s8_what_raises_outside_any_gang_ends_that_cycle_and_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Place(SchedulingQueues, "wake", lambda queues: True)
    Throws(monkeypatch, outside, times=1)
    answer = simulate(gangs(), until="60s")
    assert len(answer.times(BAD)) == 2
    assert answer.times("before") == [1.0, 1.0]
    assert not answer.data["pending"]


def test_s8_a_held_gang_is_not_in_line_in_a_fifo_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """G8: those behind it start."""
    Throws(monkeypatch, DECIDED["an attempt"])
    queue = m.queue("fifo", dequeueStrategy="fifo")
    answer = simulate(
        m.node("n0", 4), queue, m.gang(BAD, 2, queue="fifo"), m.gang("behind", 2, queue="fifo"), until="8s"
    )
    assert answer.times("behind") == [0.0, 0.0]
    assert why(answer, BAD)["reason"] == INTERNAL_ERROR


def test_s8_room_of_a_pod_that_cannot_be_read_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on, and no other pod is bound into its room."""
    thrown = Throws(monkeypatch, READ["a pod's facts"])
    thrown.calls = 10**9  # not yet
    change = m.patch("5s", "Pod", f"{BAD}-0", metadata={"labels": {"a": "b"}})

    class Later(Timed):
        def reconcile(self, now_ns: int) -> Any:
            if now_ns - EPOCH >= 5 * SECOND:
                thrown.calls = 0
            return super().reconcile(now_ns)

    answer = simulate(
        m.node("n0", 4),
        m.gang(BAD, 1, cpu=3),
        change,
        m.gang("next", 1, cpu=2, at="6s"),
        until="30s",
        plane=lambda *about: Later(control_plane(*about), thrown),
    )
    assert answer.times(BAD) == [0.0]
    assert not answer.times("next")
    assert not answer.lines("failed")


def deployment(name: str) -> m.Obj:
    template = {"metadata": {"labels": {"app": name}}, "spec": m.pod_spec(1) | {"restartPolicy": "Always"}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m.metadata(name), "spec": spec}


CONTROLLERS = {
    "a Job": (Place(JobController, "_sync", lambda _, plan, now_ns: plan.name == BAD), [m.job(BAD, m.role("w", 2))]),
    "a Job's event": (
        Place(JobController, "_observe_job", lambda _, event: name_of(event.obj) == BAD),
        [m.job(BAD, m.role("w", 2))],
    ),
    "the status of a PodGroup": (
        Place(volcano_status.VolcanoGroups, "status", lambda _, group, *more: name_of(group) == BAD),
        m.gang(BAD, 2),
    ),
    "a QueueJob": (
        Place(QueueJobController, "_sync", lambda _, plan, now_ns: plan.name == BAD),
        [m.queue_job(BAD, m.role("w", 2))],
    ),
    "the pods of a QueueJob": (
        Place(queuejob, "new_pod", lambda plan, *more: plan.name == BAD),
        [m.queue_job(BAD, m.role("w", 2))],
    ),
    "a Deployment": (
        Place(WorkloadController, "_sync", lambda _, owner, now_ns: name_of(owner) == BAD),
        [deployment(BAD)],
    ),
    "a Queue": (Place(QueueController, "_sync", lambda _, name, *more: name == BAD), [m.queue(BAD)]),
}


@pytest.mark.parametrize("place", CONTROLLERS)
def test_s8_what_raises_for_one_object_in_a_controller_holds_it_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, objects = CONTROLLERS[place]
    thrown = Throws(monkeypatch, where, until_s=9.0)
    others = [one for one in gangs() if not name_of(one).startswith(BAD)]
    beside = [m.queue_job("queued", m.role("w", 2)), deployment("deployed")]
    answer = simulate(others, objects, beside, until="60s", plane=thrown.plane)
    assert thrown.at[0] == 0.0
    assert_others_start(answer)
    for name in ("made", "queued", "deployed"):  # of the same controller: they do not wait until it is mended
        assert len(answer.times(name)) == 2
        assert max(answer.times(name)) < 1.0, name
    if place not in ("a Queue", "the status of a PodGroup"):
        assert answer.times(BAD) == [10.0, 10.0]


def test_s8_a_round_of_a_controller_that_raises_outside_any_object_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is lost by it."""
    Throws(monkeypatch, Place(JobController, "_execute_commands", lambda *about: True, after=True), times=1)
    answer = simulate(gangs(), until="60s")
    assert len(answer.times("made")) == 2


# ---- live


LIVE = {**STARTS, **{place: where for place, (where, _) in CONTROLLERS.items() if place == "the status of a PodGroup"}}


@pytest.mark.parametrize("place", LIVE)
def test_s8_live_what_raises_for_one_gang_holds_that_gang_alone(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the process goes on; it is tried again by itself."""

    async def main() -> None:
        world = LiveWorld(*(one for one in gangs() if not name_of(one).startswith("later")), seed=1)
        thrown = Throws(monkeypatch, LIVE[place])
        await world.begin()
        await asyncio.sleep(5)
        assert thrown.calls
        for obj in m.gang("later", 2):
            world.store.create(obj)
        await asyncio.sleep(3)
        world.check()
        started = {name.rpartition("-")[0] or name for name in world.bound()}
        assert started >= {"before", "behind", "annotated", "alone", "made-w", "later"}, place
        if place in STARTS and place not in DONE_ALL_THE_SAME:
            assert BAD not in started
            if place != "the gang of a pod":
                group = world.store.get("PodGroup.scheduling.volcano.sh", "default", BAD)
                assert group is not None
                reasons = [one["reason"] for one in group["status"]["conditions"] if one["type"] == "Unschedulable"]
                assert reasons == [INTERNAL_ERROR]
        thrown.now_s = math.inf  # it is mended
        await asyncio.sleep(30)
        assert len([name for name in world.bound() if name.startswith(BAD)]) == 2, place
        assert len(world.binds()) == len({write.uid for write in world.binds()})
        await world.end()

    in_virtual_time(main)


# ---- how it is seen


def test_s8_it_is_logged_with_its_key_counted_and_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Throws(monkeypatch, DECIDED["an attempt"])
    metrics = CycleMetrics()
    names = scheduler_names(parse(None), alone=True)

    def plane(store: Any, config: Any) -> ControlPlane:
        return ControlPlane(store, config, names, simulated_key_pair, metrics=metrics)

    answer = simulate(gangs(), until="15s", plane=plane)
    first, again = [one for one in caplog.records if one.name == "enbloc.faults"]
    assert first.getMessage().startswith("volcano/default/bad: ")
    assert first.exc_info is not None
    assert again.exc_info is None
    [counted] = metrics._faults.collect()
    assert [one.value for one in counted.samples if one.name.endswith("total")] == [2.0]
    explained = explain(answer.objects, EPOCH + 15 * SECOND, parse(None), f"default/{BAD}")
    assert explained is not None
    assert explained.reason == INTERNAL_ERROR
    assert "RuntimeError: thrown on purpose" in explained.sentence


def test_s8_a_job_that_cannot_be_reconciled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    where, objects = CONTROLLERS["a Job"]
    Throws(monkeypatch, where)
    answer = simulate(m.node("n", 4), objects, until="5s")
    said = [one for one in answer.objects if one["kind"] == "Event" and one["reason"] == INTERNAL_ERROR]
    assert [one["involvedObject"]["name"] for one in said] == [BAD]
    assert "RuntimeError: thrown on purpose" in said[0]["message"]


def test_s8_a_command_that_makes_a_controller_fail_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Throws(monkeypatch, Place(JobController, "_execute_on", lambda _, plan, *more: plan.name == BAD))
    commands = [m.command("stop", "AbortJob", "1s", BAD), m.command("stop-other", "AbortJob", "1s", "other")]
    jobs = [m.job(name, m.role("w", 1)) for name in (BAD, "other")]
    answer = simulate(m.node("n", 4), jobs, commands, until="20s")
    assert "Aborted" in [phase for _, phase in answer.phases("other")]
    assert "Aborted" not in [phase for _, phase in answer.phases(BAD)]
    assert not [one for one in answer.objects if one["kind"] == "Command"]


def test_s8_admission_that_fails_refuses_that_write_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that creates such a pod goes on, and tries it again."""
    Throws(monkeypatch, Place(Quotas, "admit", lambda _, operation, obj, old: name_of(obj).startswith(BAD)), times=1)
    jobs = [m.job(name, m.role("w", 1)) for name in (BAD, "other")]
    answer = simulate(m.node("n", 4), jobs, until="20s")
    assert len(answer.times("other")) == 1
    assert len(answer.times(BAD)) == 1


@pytest.mark.parametrize("place", ["in the middle of put_pod", "in the middle of a transaction"])
def test_s8_a_recording_of_it_is_replayed(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The state was rebuilt: what is decided afterwards is decided again."""
    thrown = Throws(monkeypatch, STARTS[place], times=1)

    async def main() -> None:
        world = LiveWorld(*gangs()[:8], seed=1, record=tmp_path)
        await world.begin()
        await asyncio.sleep(30)
        assert len([name for name in world.bound() if name.startswith(BAD)]) == 2
        await world.end()

    in_virtual_time(main)
    thrown.calls = 0
    found = replay_recording(tmp_path / "0")
    assert found.decisions
    assert found.differences == []


def test_s8_g8_a_gang_that_n1_holds_is_not_in_line_in_a_fifo_queue() -> None:
    """It was enqueued before one of its pods asked for what is not honoured."""
    queue = m.queue("fifo", dequeueStrategy="fifo")
    held = m.podgroup("held", 2, queue="fifo", resources={"cpu": "1"})
    first = m.pod("held-0", group="held", at="2s", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    answer = simulate(m.node("n", 4), queue, held, first, m.gang("behind", 1, queue="fifo", at="3s"), until="30s")
    assert why(answer, "held")["reason"] == "UnsupportedConstraint"
    assert answer.times("behind") == [3.0]


@pytest.mark.parametrize("place", ["in the middle of a count", "the end of intake", "the gang's spec"])
def test_s8_a_shadow_goes_on(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Throws(monkeypatch, STARTS[place])
    store = make_store(lambda: EPOCH, parse(None))
    provide_queues(store, ())
    for obj in (m.node("n", 8), *m.gang(BAD, 2), *m.gang("good", 2)):
        store.create(obj)
    shadow = Shadow(parse(None), scheduler_names(parse(None), alone=True))
    shadow.known = lambda kind: store.list(kind)[0]
    for kind in sorted(shadow.kinds, key=listing_order):
        for obj in store.list(kind)[0]:
            shadow.observe(WatchEvent("ADDED", kind, obj))
    for second in range(3):
        shadow.cycle(EPOCH + second * SECOND // 10)
    would = {gang["gang"]: gang["would_start"] for gang in shadow.report(EPOCH + SECOND)["gangs"]}
    assert would["default/good"] is not None
    assert would.get(f"default/{BAD}") is None
