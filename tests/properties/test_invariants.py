"""I1 to I7 on whole clusters and random orders of events (architecture, Invariants).

I1, I2 and I3 are checked at every single Binding (see `world.Overseer`), the others after every step, once the cluster
has come to rest. At the end all that was done is run again: as it was (I6), and with restarts in between (I5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from enbloc.api.meta import Obj, name_of
from enbloc.engine.core.tables.classes import ClassTable
from enbloc.units import SECOND
from properties import strategies
from properties.at_rest import AtRest
from properties.world import bound_lines, replay, step
from support import manifests as m
from support.seeds import soak

names = st.integers(0, 5)
sizes = st.sampled_from([("1", "1Gi", 3), ("2", "2Gi", 5), ("4", "8Gi", 110), ("8", "3Gi", 110)])
priorities = st.sampled_from(["", "", "", "high"])
queues = st.sampled_from(["default", "default", "q1", "q2"])
scripts = st.fixed_dictionaries(
    {},
    optional={
        "sim.enbloc.dev/run-time": st.sampled_from(["1s", "10s", "60s"]),
        "sim.enbloc.dev/exit-code": st.sampled_from(["0", "1", "1,0"]),
        "sim.enbloc.dev/stop-delay": st.sampled_from(["0s", "5s"]),
    },
)
waits = st.sampled_from([1, 1, 1, 5, 70])
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **strategies.PER_HOST}
APART = {"affinity": {"podAntiAffinity": {strategies.REQUIRED: [strategies.PER_HOST]}}}
TOGETHER = {"affinity": {"podAffinity": {strategies.REQUIRED: [strategies.PER_HOST]}}}
GATED = {"schedulingGates": [{"name": "g"}]}
kinds_of_pod = st.sampled_from(
    [{}, {}, {}, {"ports": [80]}, {"topologySpreadConstraints": [SPREAD]}, APART, TOGETHER, GATED]
)


class Cluster(AtRest):
    """Whatever can happen to a cluster."""

    # ---- what there is

    def _nodes(self) -> list[Obj]:
        return self.world.store.list("Node")[0]

    def _some(self, kind: str, index: int) -> str:
        found = self.world.store.list(kind)[0]
        return name_of(found[index % len(found)]) if found else ""

    @initialize(count=st.integers(1, 3), size=sizes)
    def begin(self, count: int, size: tuple[str, str, int]) -> None:
        self.world.do(
            m.priority_class("high", 100),
            m.queue("q1", capability={"cpu": "3"}),
            m.queue("q2", weight=3),
            *[m.node(f"n{index}", *size) for index in range(count)],
        )

    # ---- nodes

    @rule(name=names, size=sizes, after=waits)
    def create_node(self, name: int, size: tuple[str, str, int], after: int) -> None:
        self.world.do(m.node(f"n{name}", *size), after=after)

    @rule(index=names)
    def delete_node(self, index: int) -> None:
        if name := self._some("Node", index):
            self.world.step("delete", "Node", name)

    @rule(index=names, unschedulable=st.booleans())
    def cordon(self, index: int, unschedulable: bool) -> None:
        if name := self._some("Node", index):
            self.world.step("patch", "Node", name, patch={"spec": {"unschedulable": unschedulable}})

    @rule(index=names, size=sizes)
    def resize(self, index: int, size: tuple[str, str, int]) -> None:
        if name := self._some("Node", index):
            room = {"cpu": size[0], "memory": size[1], "pods": str(size[2])}
            self.world.step("patch", "Node", name, patch={"status": {"allocatable": room}})

    @rule(index=names, do=st.sampled_from(["fail-node", "recover-node"]), after=waits)
    def fail_or_recover(self, index: int, do: str, after: int) -> None:
        if name := self._some("Node", index):
            self.world.step(do, "Node", name, after=after)

    # ---- gangs

    @rule(
        name=names,
        roles=st.lists(
            st.tuples(st.integers(1, 4), st.integers(0, 4), strategies.plain_requests, scripts, kinds_of_pod),
            min_size=1,
            max_size=2,
        ),
        priority=priorities,
        queue=queues,
        restarts=st.booleans(),
    )
    def create_job(self, name: int, roles: list[Any], priority: str, queue: str, restarts: bool) -> None:
        tasks = [
            m.role(
                f"r{number}",
                replicas,
                minimum=min(minimum, replicas) or None,
                annotations=script,
                **strategies.pod_spec(requests, **dict(looks)),
            )
            for number, (replicas, minimum, requests, script, looks) in enumerate(roles)
        ]
        more: dict[str, Any] = {"queue": queue}
        if priority:
            more["priorityClassName"] = priority
        if restarts:
            more |= {"policies": [{"event": "PodFailed", "action": "RestartJob"}], "maxRetry": 2}
        self.world.do(m.job(f"j{name}", *tasks, **more))

    @rule(index=names, task=st.integers(0, 1), replicas=st.integers(0, 5), minimum=st.integers(0, 5))
    def scale_job(self, index: int, task: int, replicas: int, minimum: int) -> None:
        if name := self._some(strategies.JOB, index):
            job = self.world.store.get(strategies.JOB, "default", name)
            assert job is not None
            tasks = [dict(each) for each in job["spec"]["tasks"]]
            tasks[task % len(tasks)] |= {"replicas": replicas, "minAvailable": min(minimum, replicas)}
            least = sum(each.get("minAvailable", each["replicas"]) for each in tasks)
            self.world.step("patch", "Job", name, patch={"spec": {"tasks": tasks, "minAvailable": least}})

    @rule(index=names)
    def delete_job(self, index: int) -> None:
        if name := self._some(strategies.JOB, index):
            self.world.step("delete", "Job", name)

    @rule(name=names, minimum=st.integers(0, 3), queue=queues, resources=st.booleans(), priority=priorities)
    def create_group(self, name: int, minimum: int, queue: str, resources: bool, priority: str) -> None:
        more: dict[str, Any] = {"queue": queue}
        if resources:
            more["minResources"] = {"cpu": str(minimum)}
        if priority:
            more["priorityClassName"] = priority
        self.world.do(m.podgroup(f"g{name}", minimum, **more))

    @rule(index=names, minimum=st.integers(0, 4))
    def change_group(self, index: int, minimum: int) -> None:
        groups = [group for group in self.world.store.list(strategies.POD_GROUP)[0] if name_of(group).startswith("g")]
        if groups:
            group = name_of(groups[index % len(groups)])
            self.world.step("patch", "PodGroup", group, patch={"spec": {"minMember": minimum}})

    @rule(index=names)
    def delete_group(self, index: int) -> None:
        groups = [group for group in self.world.store.list(strategies.POD_GROUP)[0] if name_of(group).startswith("g")]
        if groups:
            self.world.step("delete", "PodGroup", name_of(groups[index % len(groups)]))

    # ---- pods

    @rule(
        group=names,
        first=st.integers(0, 3),
        count=st.integers(1, 3),
        requests=strategies.plain_requests,
        script=scripts,
        looks=kinds_of_pod,
    )
    def create_members(
        self, group: int, first: int, count: int, requests: Any, script: dict[str, str], looks: dict[str, Any]
    ) -> None:
        spec = strategies.pod_spec(requests, **dict(looks))
        self.world.do(
            *[
                m.pod(f"g{group}-{number}", group=f"g{group}", labels={"app": "web"}, annotations=script, **spec)
                for number in range(first, first + count)
            ]
        )

    @rule(name=names, requests=strategies.requests, priority=priorities, script=scripts, looks=kinds_of_pod)
    def create_pod(self, name: int, requests: Any, priority: str, script: dict[str, str], looks: Any) -> None:
        spec = strategies.pod_spec(requests, **dict(looks))
        if priority:
            spec["priorityClassName"] = priority
        self.world.do(m.pod(f"p{name}", labels={"app": "web"}, annotations=script, **spec))

    @rule(name=names, index=names, requests=strategies.plain_requests)
    def create_foreign_pod(self, name: int, index: int, requests: Any) -> None:
        """Another scheduler put it there, room or not."""
        node = self._some("Node", index) or "n0"
        spec = strategies.pod_spec(requests, schedulerName="another", nodeName=node)
        self.world.do(m.pod(f"f{name}", **spec))

    @rule(index=st.integers(0, 30))
    def delete_pod(self, index: int) -> None:
        if name := self._some("Pod", index):
            self.world.step("delete", "Pod", name)

    @rule(index=st.integers(0, 30), requests=strategies.plain_requests)
    def replace_pod(self, index: int, requests: Any) -> None:
        """It goes, and comes again under its name with another size."""
        made = [pod for pod in self.world.pods() if name_of(pod)[0] in "gp"]
        if made:
            old = made[index % len(made)]
            metadata = {key: old["metadata"].get(key) or {} for key in ("name", "namespace", "labels", "annotations")}
            spec = {key: value for key, value in old["spec"].items() if key != "nodeName"}
            spec["containers"] = [{**spec["containers"][0], "resources": {"requests": dict(requests)}}]
            self.world.step("delete", "Pod", name_of(old))
            self.world.do({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    @rule(index=st.integers(0, 30))
    def fail_pod(self, index: int) -> None:
        if name := self._some("Pod", index):
            self.world.step("fail-pod", "Pod", name)

    # ---- the rest

    @rule(
        name=st.sampled_from(["q1", "q2", "default"]),
        patch=st.sampled_from(
            [
                {"spec": {"capability": {"cpu": "1"}}},
                {"spec": {"capability": {"cpu": "3"}}},
                {"spec": {"capability": {"cpu": "9", "memory": "1Gi"}}},
                {"spec": {"dequeueStrategy": "fifo"}},
                {"spec": {"dequeueStrategy": "traverse"}},
                {"spec": {"guarantee": {"resource": {"cpu": "2"}}}},
                {"spec": {"guarantee": None}},
                {"spec": {"priority": 5}},
                {"spec": {"weight": 7}},
            ]
        ),
    )
    def change_queue(self, name: str, patch: dict[str, Any]) -> None:
        self.world.step("patch", "Queue", name, patch=patch)

    @rule(index=st.integers(0, 30))
    def open_gate(self, index: int) -> None:
        gated = [pod for pod in self.world.pods() if pod["spec"].get("schedulingGates")]
        if gated:
            name = name_of(gated[index % len(gated)])
            self.world.step("patch", "Pod", name, patch={"spec": {"schedulingGates": None}})

    @rule(after=st.sampled_from([3, 30, 300]))
    def wait(self, after: int) -> None:
        self.world.do(after=after)

    # ---- what must hold at rest

    @invariant()
    def nobody_is_lost(self) -> None:
        """I3: every pod that waits for us is known."""
        engine = self.world.engine
        for pod in self.world.pods():
            if not pod["spec"].get("nodeName") and pod["spec"]["schedulerName"] == "enbloc":
                assert pod["metadata"]["uid"] in engine.state.tasks

    def teardown(self) -> None:
        world = self.world
        if not world.documents:
            return
        until = world._seconds * SECOND
        restarts = [each for each in world.documents if each["kind"] == "Step" and each["do"] == "restart-scheduler"]
        plain = [each for each in world.documents if each not in restarts]
        first = replay(plain, world.config, until)
        assert first.timeline == replay(plain, world.config, until).timeline, "I6"
        assert bound_lines(first) == bound_lines(world.result()), "I5: restarts made a difference"
        often: list[Obj] = []
        for second in range(1, world._seconds + 1) if world._seconds < 200 else ():
            often.append(step("restart-scheduler", at=f"{second}s"))
        again = replay([*plain, *often], world.config, until)
        assert bound_lines(again) == bound_lines(first), "I5: many restarts made a difference"


def test_invariants_hold_whatever_happens() -> None:
    default = settings()
    run_state_machine_as_test(
        Cluster, settings=settings(max_examples=min(default.max_examples, 200) // 2, stateful_step_count=20)
    )


def test_invariants_hold_where_classes_are_forgotten_after_every_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassTable, "needs_compaction", lambda classes: True)
    run_state_machine_as_test(Cluster, settings=settings(max_examples=20, stateful_step_count=20))


@pytest.mark.soak
def test_invariants_hold_whatever_happens_for_long(rounds: Iterator[int]) -> None:
    soak(Cluster, rounds)


# ---- what the machine has found


def test_i5_minima_that_were_raised_and_met_are_known_after_a_restart() -> None:
    """The pods carried only the mark of the lower minimum."""
    machine = Cluster()
    machine.begin(count=1, size=("4", "8Gi", 110))
    machine.create_group(name=0, minimum=1, queue="default", resources=False, priority="")
    machine.create_members(group=0, first=0, count=2, requests={"cpu": "1"}, script={}, looks={})
    machine.change_group(index=0, minimum=2)
    machine.cordon(index=0, unschedulable=True)
    machine.delete_pod(index=1)
    machine.create_members(group=0, first=1, count=1, requests={"cpu": "1"}, script={}, looks={})
    machine.known_again_after_a_restart()
    machine.teardown()


def test_i5_a_mark_of_lower_minima_does_not_replace_the_one_that_went() -> None:
    machine = Cluster()
    machine.begin(count=2, size=("1", "1Gi", 3))
    machine.create_group(name=0, minimum=1, queue="default", resources=False, priority="")
    machine.create_members(group=0, first=0, count=1, requests={"cpu": "1"}, script={}, looks={})
    machine.change_group(index=0, minimum=2)
    machine.create_members(group=0, first=1, count=1, requests={"cpu": "1"}, script={}, looks={})
    machine.delete_node(index=1)
    machine.create_members(group=0, first=1, count=1, requests={"cpu": "1"}, script={}, looks={})
    machine.known_again_after_a_restart()
    machine.teardown()


def test_i5_a_gang_that_lost_its_object_is_known_by_what_it_has_earned_since() -> None:
    """Its pod carried the mark of a minimum of 0, and failed."""
    machine = Cluster()
    machine.begin(count=1, size=("4", "8Gi", 110))
    machine.create_group(name=2, minimum=0, queue="default", resources=False, priority="")
    machine.create_members(group=2, first=0, count=1, requests={"cpu": "1"}, script={}, looks={})
    machine.delete_group(index=0)
    machine.fail_pod(index=0)
    machine.known_again_after_a_restart()
    machine.teardown()


def test_g8_in_a_fifo_queue_no_gang_is_enqueued_past_one_that_was_woken() -> None:
    """A gang ahead that was awake, and not tried yet in this cycle, did not count as being ahead."""
    machine = Cluster()
    machine.begin(count=3, size=("1", "1Gi", 3))
    machine.create_pod(name=2, priority="", requests={"cpu": "2"}, script={}, looks={})
    machine.change_queue(name="default", patch={"spec": {"dequeueStrategy": "fifo"}})
    machine.create_job(name=3, priority="", queue="default", restarts=False, roles=[(2, 2, {"cpu": "1"}, {}, {})])
    machine.decided_all_there_was_to_decide()
    machine.known_again_after_a_restart()
    machine.teardown()


def test_i5_pods_whose_group_went_count_in_the_queue_that_they_name() -> None:
    """They went on counting in the queue that only the PodGroup had named."""
    machine = Cluster()
    machine.begin(count=1, size=("8", "3Gi", 110))
    machine.create_members(group=5, first=3, count=2, requests={"cpu": "100m"}, script={}, looks={})
    machine.create_group(name=5, minimum=3, queue="q1", resources=True, priority="")
    machine.delete_group(index=0)
    machine.known_again_after_a_restart()
    machine.teardown()
