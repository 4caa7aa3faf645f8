"""Jobs, whatever becomes of their pods, policies and controllers (V2, D2, M2, M5).

After every step, at rest: no pod of a run that is past, of an index that is not wanted or of a job that is gone, no
PodGroup of one, no Command left; a phase that leads somewhere has something to wait for; and controllers that are
started now have nothing to write. At the end, with all the room and time there is, every job has ended, or says that
too many of its pods failed for the others to start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from enbloc.api import volcano
from enbloc.api.meta import Obj, controller_of, is_terminating, name_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.settle import Plane
from enbloc.config import Config
from enbloc.controllers import volcano as volcano_controller
from enbloc.controllers.controller import Controller
from enbloc.controllers.job import JobController
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.job_pod_counts import member_of
from enbloc.controllers.job_states import DRAINING, FINAL
from enbloc.controllers.lifecycle import runs_of
from enbloc.controllers.queue import QueueController
from enbloc.scenario.documents import Document
from enbloc.sim.linting import lint
from enbloc.sim.simulation import control_plane
from enbloc.units import SECOND
from properties.world import ReadOnly, World, replay, step
from support import manifests as m
from support.seeds import soak

NODES = ("n1", "n2")
JOBS = ("j0", "j1")
JOB_ACTIONS = ("AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "ResumeJob")
ACTIONS = (*JOB_ACTIONS, "RestartTask", "RestartPod")
scripts = st.fixed_dictionaries(
    {"sim.enbloc.dev/run-time": st.sampled_from(["0s", "3s", "10s", "40s"])},
    optional={
        "sim.enbloc.dev/exit-code": st.sampled_from(["1", "1,0", "3,1,0"]),
        "sim.enbloc.dev/start-delay": st.sampled_from(["2s", "8s"]),
        "sim.enbloc.dev/stop-delay": st.sampled_from(["4s", "12s"]),
    },
)
causes = st.one_of(
    st.sampled_from(["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "*", "Unknown"]).map(
        lambda event: {"event": event}
    ),
    st.just({"events": ["PodFailed", "PodEvicted"]}),
    st.just({"exitCode": 3}),
)
policies = st.lists(
    st.builds(
        lambda cause, action, timeout: {**cause, "action": action} | ({"timeout": timeout} if timeout else {}),
        causes,
        st.sampled_from(ACTIONS),
        st.sampled_from([None, None, "5s", "20s"]),
    ),
    max_size=2,
)
roles = st.lists(
    st.fixed_dictionaries(
        {
            "replicas": st.integers(0, 3),
            "minimum": st.sampled_from([None, None, 0, 1]),
            "script": scripts,
            "policies": policies,
            "restart": st.sampled_from(["Never", "Never", "OnFailure"]),
            "deadline": st.sampled_from([None, None, 6]),
            "after": st.sampled_from([None, 0]),
        }
    ),
    min_size=1,
    max_size=3,
)


def job(name: str, parts: list[Obj], policies: list[Obj], more: Obj) -> Obj:
    tasks = []
    for index, part in enumerate(parts):
        script = dict(part["script"])
        if part["restart"] == "OnFailure" and script.get("sim.enbloc.dev/exit-code") == "1":
            script["sim.enbloc.dev/exit-code"] = "1,0"  # else it would be restarted for ever
        deadline = {"activeDeadlineSeconds": part["deadline"]} if part["deadline"] else {}
        spec = m.pod_spec(restartPolicy=part["restart"], **deadline)
        task: Obj = {
            "name": f"r{index}",
            "replicas": part["replicas"],
            "policies": part["policies"],
            "template": {"metadata": {"annotations": script}, "spec": spec},
        }
        if part["minimum"] is not None:
            task["minAvailable"] = min(part["minimum"], part["replicas"])
        if part["after"] is not None and index:
            task["dependsOn"] = {"name": ["r0"]}
        tasks.append(task)
    return m.job(name, *tasks, policies=policies, **more)


class Quiet(World):
    """Bindings are not checked one by one: waves are gangs of their own (D3), and others test that."""

    def _plane(self, store: Store, config: Config) -> Plane:
        return control_plane(store, config)


class Jobs(RuleBasedStateMachine):
    """Whatever can happen to jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Quiet()
        self.commands = 0

    @initialize(cpu=st.sampled_from(["2", "4", "16"]), parts=roles, policies=policies)
    def begin(self, cpu: str, parts: list[Obj], policies: list[Obj]) -> None:
        self.world.do(*(m.node(name, cpu) for name in NODES))
        self.create("j0", parts, policies, {})

    # ---- what happens

    def create(self, name: str, parts: list[Obj], policies: list[Obj], more: Obj) -> None:
        made = job(name, parts, policies, more)
        if name not in self.jobs() and not lint([Document("f", 1, made)]).faults:
            self.world.do(made)

    @rule(
        parts=roles,
        policies=policies,
        more=st.fixed_dictionaries(
            {},
            optional={
                "maxRetry": st.integers(0, 3),
                "minSuccess": st.just(1),
                "ttlSecondsAfterFinished": st.sampled_from([0, 15]),
                "plugins": st.just({"svc": []}),
            },
        ),
    )
    def create_another(self, parts: list[Obj], policies: list[Obj], more: Obj) -> None:
        for name in JOBS:
            self.create(name, parts, policies, more)

    @rule(name=st.sampled_from(JOBS))
    def delete(self, name: str) -> None:
        if self.jobs().get(name):
            self.world.step("delete", "Job", name)

    @rule(name=st.sampled_from(JOBS), parts=roles, policies=policies)
    def delete_and_create_at_once(self, name: str, parts: list[Obj], policies: list[Obj]) -> None:
        made = job(name, parts, policies, {"plugins": {"svc": []}})
        if self.jobs().get(name) and not lint([Document("f", 1, made)]).faults:
            self.world.do(step("delete", "Job", name), made)

    @rule(name=st.sampled_from(JOBS), counts=st.lists(st.integers(0, 4), min_size=3, max_size=3))
    def scale(self, name: str, counts: list[int]) -> None:
        found = self.jobs().get(name)
        if found:
            pairs = zip(found["spec"]["tasks"], counts, strict=False)
            tasks = [task | {"replicas": count} for task, count in pairs]
            self.world.step("patch", "Job", name, patch={"spec": {"tasks": tasks}})

    @rule(name=st.sampled_from(JOBS), action=st.sampled_from([*JOB_ACTIONS, "ResumeJob", "Explode"]))
    def command(self, name: str, action: str, after: int = 1) -> None:
        self.commands += 1
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name}
        metadata = {"name": f"c{self.commands}", "namespace": "default"}
        found = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata}
        self.world.do({**found, "action": action, "target": target}, after=after)

    @rule(name=st.sampled_from(JOBS), after=st.sampled_from([1, 20]))
    def abort_and_resume(self, name: str, after: int) -> None:
        if self.jobs().get(name):
            self.command(name, "AbortJob")
            self.command(name, "ResumeJob", after)

    @rule(index=st.integers(0, 20), verb=st.sampled_from(["delete", "fail-pod"]))
    def hit_a_pod(self, index: int, verb: str) -> None:
        pods = self.world.pods()
        if pods:
            self.world.step(verb, "Pod", name_of(pods[index % len(pods)]))

    @rule(name=st.sampled_from(NODES), verb=st.sampled_from(["fail-node", "recover-node"]))
    def hit_a_node(self, name: str, verb: str) -> None:
        self.world.step(verb, "Node", name)

    @rule(after=st.sampled_from([1, 5, 30]))
    def wait(self, after: int) -> None:
        self.world.do(after=after)

    @rule()
    def restart(self) -> None:
        self.world.step("restart-scheduler")

    # ---- what must hold at rest

    def jobs(self) -> dict[str, Obj]:
        return {name_of(found): found for found in self.world.store.list(volcano.JOB)[0]}

    @invariant()
    def nothing_is_left_over(self) -> None:
        world, jobs = self.world, {uid_of(found): found for found in self.jobs().values()}
        assert not world.store.list(volcano.COMMAND)[0]
        for group in world.store.list(volcano.POD_GROUP)[0]:
            assert (controller_of(group) or {}).get("uid") in jobs, "a PodGroup without its job"
        seen: Counter[tuple[str, str, int]] = Counter()
        for pod in world.pods():
            owner = (controller_of(pod) or {})["uid"]
            member = member_of(pod)
            seen[owner, member.role, member.index] += 1
            if is_terminating(pod):
                continue
            assert owner in jobs, f"{member.name} has no job"
            found = jobs[owner]
            replicas = {task["name"]: task["replicas"] for task in found["spec"]["tasks"]}
            ended = phase_of(found) in (*FINAL, *DRAINING, "Aborted")
            assert ended or member.index < replicas[member.role], f"{member.name} is not wanted"
            assert not runs_of(found).is_outdated(member), f"{member.name} is of an earlier run"
        assert all(count == 1 for count in seen.values())

    @invariant()
    def every_phase_has_something_to_wait_for(self) -> None:
        for found in self.jobs().values():
            phase = phase_of(found)
            pods = [pod for pod in self.world.pods() if (controller_of(pod) or {}).get("uid") == uid_of(found)]
            leaves = [pod for pod in pods if is_terminating(pod)]
            lives = [p for p in pods if not is_terminating(p) and p["status"]["phase"] in ("Pending", "Running")]
            if phase in DRAINING:
                assert leaves, f"{phase}, and nothing leaves"
                assert not lives
            elif phase in (*FINAL, "Aborted"):
                assert not lives, f"{phase}, and something lives"
            else:
                self._waits(found, bool(leaves or lives))

    def _waits(self, found: Obj, alive: bool) -> None:
        """A job that is Pending or Running waits for its pods, for being enqueued, for taken names, or for time."""
        world = self.world
        wanted = sum(task["replicas"] for task in found["spec"]["tasks"])
        group = world.store.get(volcano.POD_GROUP, "default", f"{name_of(found)}-{uid_of(found)}")
        assert group is not None
        enqueued = (group.get("status") or {}).get("phase", "Pending") != "Pending"
        timed = world.sim._plane.due() is not None
        assert alive or not wanted or not enqueued or timed or self._names_taken(found), found["status"]

    def _names_taken(self, found: Obj) -> bool:
        return any(is_terminating(pod) and name_of(pod).startswith(f"{name_of(found)}-") for pod in self.world.pods())

    @precondition(lambda self: self.world.documents)
    @invariant()
    def new_controllers_have_nothing_to_write(self) -> None:
        store = self.world.store
        cluster = ReadOnly(store)
        controllers: tuple[Controller, ...] = (
            JobController(simulated_key_pair),
            volcano_controller.controller(),
            QueueController(),
        )
        for controller in controllers:
            for kind in sorted(controller.kinds, key=lambda kind: (kind == "Pod", kind)):
                for obj in store.list(kind)[0]:
                    controller.observe(WatchEvent("ADDED", kind, obj))
            for write in controller.reconcile(self.world.now):
                cluster.execute(write)
        waiting = [write for write in cluster.tried if not self._retried(write)]
        assert waiting == []

    def _retried(self, write: Any) -> bool:
        """A pod whose name is taken by one that terminates is tried again, and refused again."""
        if not hasattr(write, "obj"):
            return False
        return self.world.store.get(write.obj["kind"], "default", name_of(write.obj)) is not None

    def teardown(self) -> None:
        """With room and time enough every job ends, whatever it went through."""
        world = self.world
        if not world.documents:
            return
        for name in NODES:
            world.step("recover-node", "Node", name)
        world.do(m.node("ample", 64))
        world.do(after=3600)
        for found in self.jobs().values():
            wanted = sum(task["replicas"] for task in found["spec"]["tasks"])
            status = found["status"]
            out_of_reach = status["failed"] and status["state"].get("reason") == "BelowMinimum"
            assert not wanted or out_of_reach or phase_of(found) in (*FINAL, "Aborted"), status
        self.nothing_is_left_over()
        until = world._seconds * SECOND
        assert replay(world.documents, world.config, until).timeline == world.result().timeline, "I6"


def phase_of(found: Obj) -> str:
    phase: str = ((found.get("status") or {}).get("state") or {}).get("phase") or ""
    return phase


def test_v2_jobs_end_whatever_happens() -> None:
    default = settings()
    run_state_machine_as_test(
        Jobs, settings=settings(max_examples=min(default.max_examples, 200) // 2, stateful_step_count=15)
    )


@pytest.mark.soak
def test_v2_jobs_end_whatever_happens_for_long(rounds: Iterator[int]) -> None:
    soak(Jobs, rounds)
