"""QueueJobs, whatever becomes of their pods, quotas, nodes and controllers (A3 to A7).

After every step, at rest: no pod of an index that is not wanted, none twice, none of a job that is gone, nor its
SchedulingSpec; what lacks a pod has something to wait for; controllers and a scheduler that are started now have
nothing to write. At the end, with all the room and time there is, every job is done.
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

from enbloc.api import arbitrator
from enbloc.api.meta import Obj, controller_of, is_terminating, labels_of, name_of, uid_of
from enbloc.api.writes import Create, Refused, WatchEvent
from enbloc.controllers.queuejob import QueueJobController
from enbloc.scenario.documents import Document
from enbloc.sim.linting import lint
from enbloc.units import SECOND
from properties.world import ReadOnly, World, fresh_scheduler, replay, step
from support import manifests as m
from support.seeds import soak

NODES = ("n1", "n2")
JOBS = ("j0", "j1", "j2")
CLASSES = {"high": 100, "low": 10}
scripts = st.fixed_dictionaries(
    {"sim.enbloc.dev/run-time": st.sampled_from(["0s", "3s", "10s", "40s"])},
    optional={
        "sim.enbloc.dev/exit-code": st.sampled_from(["1,0", "3,1,0", "0,1,0"]),
        "sim.enbloc.dev/start-delay": st.sampled_from(["2s", "8s"]),
        "sim.enbloc.dev/stop-delay": st.sampled_from(["4s", "12s"]),
    },
)
roles = st.lists(
    st.fixed_dictionaries(
        {"replicas": st.integers(0, 3), "script": scripts, "class": st.sampled_from(["", "", "high", "low"])}
    ),
    min_size=1,
    max_size=2,
)
scheduling = st.fixed_dictionaries(
    {},
    optional={
        "minAvailable": st.integers(0, 5),
        "priorityClassName": st.sampled_from(["high", "low"]),
        "nodeSelector": st.just({"disk": "ssd"}),
    },
)


def task_specs(parts: list[Obj]) -> list[Obj]:
    found = []
    for index, part in enumerate(parts):
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        spec = {"restartPolicy": "Never", "containers": [container]}
        if part["class"]:
            spec["priorityClassName"] = part["class"]
        template = {"metadata": {"annotations": part["script"]}, "spec": spec}
        found.append({"name": f"r{index}", "replicas": part["replicas"], "template": template})
    return found


def queue_job(name: str, parts: list[Obj], sched: Obj) -> Obj:
    total = sum(part["replicas"] for part in parts)
    if "minAvailable" in sched:
        sched = {**sched, "minAvailable": min(sched["minAvailable"], total)}
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": "QueueJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "enbloc", "schedSpec": sched, "taskSpecs": task_specs(parts)},
    }


def quota(pods: int) -> Obj:
    hard = {"hard": {"pods": str(pods)}}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": hard,
    }


def phase_of(found: Obj) -> str:
    phase: str = ((found.get("status") or {}).get("state") or {}).get("phase") or ""
    return phase


class QueueJobs(RuleBasedStateMachine):
    """Whatever can happen to QueueJobs."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(cpu=st.sampled_from(["2", "4", "16"]), pods=st.sampled_from([None, 3, 6]))
    def begin(self, cpu: str, pods: int | None) -> None:
        self.world.do(
            *(m.node(name, cpu, labels={"disk": "ssd"}) for name in NODES),
            *(
                {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": n}, "value": value}
                for n, value in CLASSES.items()
            ),
            quota(99 if pods is None else pods),
        )

    # ---- what happens

    @rule(name=st.sampled_from(JOBS), parts=roles, sched=scheduling)
    def create(self, name: str, parts: list[Obj], sched: Obj) -> None:
        made = queue_job(name, parts, sched)
        assert not lint([Document("f", 1, made)]).faults
        self.world.do(made)

    @rule(name=st.sampled_from(JOBS))
    def delete(self, name: str) -> None:
        if name in self.jobs():
            self.world.step("delete", "QueueJob", name)

    @rule(name=st.sampled_from(JOBS), parts=roles, sched=scheduling)
    def delete_and_create_at_once(self, name: str, parts: list[Obj], sched: Obj) -> None:
        if name in self.jobs():
            self.world.do(step("delete", "QueueJob", name), queue_job(name, parts, sched))

    @rule(name=st.sampled_from(JOBS), parts=roles, sched=scheduling)
    def change(self, name: str, parts: list[Obj], sched: Obj) -> None:
        """Templates, replicas, roles and the minimum, all at once."""
        if name in self.jobs():
            new = queue_job(name, parts, sched)["spec"]
            if "minAvailable" not in new["schedSpec"]:
                new["schedSpec"] = {**new["schedSpec"], "minAvailable": None}
            self.world.step("patch", "QueueJob", name, patch={"spec": new})

    @rule(name=st.sampled_from(JOBS), counts=st.lists(st.integers(0, 4), min_size=2, max_size=2))
    def scale(self, name: str, counts: list[int]) -> None:
        found = self.jobs().get(name)
        if found:
            pairs = zip(found["spec"]["taskSpecs"], counts, strict=False)
            tasks = [task | {"replicas": count} for task, count in pairs]
            least = min(found["spec"]["schedSpec"].get("minAvailable", 9), sum(task["replicas"] for task in tasks))
            sched = {"minAvailable": least}
            self.world.step("patch", "QueueJob", name, patch={"spec": {"taskSpecs": tasks, "schedSpec": sched}})

    @rule(pods=st.sampled_from([2, 4, 9]))
    def change_the_quota(self, pods: int) -> None:
        self.world.step("patch", "ResourceQuota", "q", patch={"spec": quota(pods)["spec"]})

    @rule(index=st.integers(0, 20), verb=st.sampled_from(["delete", "fail-pod"]))
    def hit_a_pod(self, index: int, verb: str) -> None:
        pods = self.world.pods()
        if pods:
            self.world.step(verb, "Pod", name_of(pods[index % len(pods)]))

    @rule(name=st.sampled_from(JOBS))
    def delete_a_spec(self, name: str) -> None:
        if name in self.jobs() and self.specs().get(name):
            self.world.step("delete", "SchedulingSpec", name)

    @rule(name=st.sampled_from(NODES), verb=st.sampled_from(["fail-node", "recover-node"]))
    def hit_a_node(self, name: str, verb: str) -> None:
        self.world.step(verb, "Node", name)

    @rule(after=st.sampled_from([1, 5, 30, 400]))
    def wait(self, after: int) -> None:
        self.world.do(after=after)

    @rule()
    def restart(self) -> None:
        self.world.step("restart-scheduler")

    # ---- what must hold at rest

    def jobs(self) -> dict[str, Obj]:
        return {name_of(found): found for found in self.world.store.list(arbitrator.QUEUE_JOB)[0]}

    def specs(self) -> dict[str, Obj]:
        return {name_of(found): found for found in self.world.store.list(arbitrator.SCHEDULING_SPEC)[0]}

    def pods_of(self, found: Obj) -> list[Obj]:
        return [pod for pod in self.world.pods() if (controller_of(pod) or {}).get("uid") == uid_of(found)]

    @invariant()
    def nothing_is_left_over(self) -> None:
        jobs = {uid_of(found): found for found in self.jobs().values()}
        for spec in self.specs().values():
            assert (controller_of(spec) or {}).get("uid") in jobs, "a SchedulingSpec without its job"
        seen: Counter[tuple[str, str, str]] = Counter()
        for pod in self.world.pods():
            uid, labels = (controller_of(pod) or {})["uid"], labels_of(pod)
            role, index = labels["volcano.sh/task-spec"], labels["volcano.sh/task-index"]
            seen[uid, role, index] += 1
            if is_terminating(pod):
                continue
            assert uid in jobs, f"{name_of(pod)} has no job"
            assert phase_of(jobs[uid]) != "Restarting", f"{name_of(pod)} lives on"
            replicas = {task["name"]: task["replicas"] for task in jobs[uid]["spec"]["taskSpecs"]}
            assert int(index) < replicas.get(role, 0), f"{name_of(pod)} is not wanted"
        assert all(count == 1 for count in seen.values())

    @invariant()
    def who_lacks_a_pod_has_something_to_wait_for(self) -> None:
        timed = self.world.plane.due() is not None
        for found in self.jobs().values():
            pods, phase = self.pods_of(found), phase_of(found)
            wanted = sum(task["replicas"] for task in found["spec"]["taskSpecs"])
            leaves = any(map(is_terminating, self.world.pods()))
            if phase == "Completed" or len(pods) >= wanted:
                continue
            assert timed or leaves, f"{name_of(found)} lacks pods: {found['status']}"

    @invariant()
    def status_counts(self) -> None:
        for found in self.jobs().values():
            counts = Counter(pod["status"]["phase"] for pod in self.pods_of(found) if not is_terminating(pod))
            for phase in ("Pending", "Running", "Succeeded", "Failed"):
                assert found["status"][phase.lower()] == counts[phase]

    @precondition(lambda self: self.world.documents)
    @invariant()
    def a_controller_started_now_has_nothing_to_write(self) -> None:
        store = self.world.store
        cluster, controller = ReadOnly(store), QueueJobController()
        for kind in sorted(controller.kinds, key=lambda kind: (kind == "Pod", kind)):
            for obj in store.list(kind)[0]:
                controller.observe(WatchEvent("ADDED", kind, obj))
        for write in controller.reconcile(self.world.now):
            why = self._refusal(write)
            if why is None:
                cluster.execute(write)
            else:
                controller.refused(write, why, self.world.now)
        assert cluster.tried == []
        scheduler, cluster = fresh_scheduler(store, self.world.config)
        scheduler.schedule(self.world.now)
        assert cluster.tried == [], "I5"

    def _refusal(self, write: Any) -> Refused | None:
        """A pod whose name is taken or for which the quota has no room is tried again, and refused again."""
        if not isinstance(write, Create):
            return None
        store = self.world.store
        if store.get(write.obj["kind"], "default", name_of(write.obj)) is not None:
            return Refused(409, "AlreadyExists", "already exists")
        found = store.get("ResourceQuota", "default", "q")
        assert found is not None
        used, hard = (int(found["status"][which]["pods"]) for which in ("used", "hard"))
        return Refused(403, "Forbidden", "exceeded quota") if used >= hard else None

    def teardown(self) -> None:
        """With room and time enough every job is done, whatever it went through."""
        world = self.world
        if not world.documents:
            return
        for name in NODES:
            world.step("recover-node", "Node", name)
        world.step("patch", "ResourceQuota", "q", patch={"spec": quota(99)["spec"]})
        world.do(m.node("ample", 64, labels={"disk": "ssd"}))
        world.do(after=7200)
        for found in self.jobs().values():
            wanted = sum(task["replicas"] for task in found["spec"]["taskSpecs"])
            assert not wanted or phase_of(found) == "Completed", found["status"]
        self.nothing_is_left_over()
        until = world._seconds * SECOND
        assert replay(world.documents, world.config, until).timeline == world.result().timeline, "I6"


def test_a_queue_jobs_are_done_whatever_happens() -> None:
    default = settings()
    run_state_machine_as_test(
        QueueJobs, settings=settings(max_examples=min(default.max_examples, 200) // 2, stateful_step_count=15)
    )


@pytest.mark.soak
def test_a_queue_jobs_are_done_whatever_happens_for_long(rounds: Iterator[int]) -> None:
    soak(QueueJobs, rounds)
