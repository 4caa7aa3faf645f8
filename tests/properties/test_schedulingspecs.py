"""Gangs of owners of unknown kinds, whose SchedulingSpecs come, change and go (A1, A2, V5).

With backfill and without it: nothing is miscounted, no wake-up is lost, and a restart makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    rule,
    run_state_machine_as_test,
)

from enbloc.api import arbitrator
from enbloc.api.meta import Obj, name_of
from enbloc.config import Config, parse
from enbloc.units import SECOND
from properties.at_rest import AtRest
from properties.world import World, bound_lines, replay, step
from support import manifests as m
from support.seeds import soak

OWNERS = (0, 1, 2)
owners = st.sampled_from(OWNERS)


def owned_by(number: int, name: str) -> Obj:
    reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": f"t{number}", "uid": f"u{number}"}
    return {"name": name, "namespace": "default", "ownerReferences": [reference | {"controller": True}]}


def spec(number: int, name: int, minimum: int, selects: bool, priority: str) -> Obj:
    asked: Obj = {"minAvailable": minimum}
    if selects:
        asked["nodeSelector"] = {"disk": "ssd"}
    if priority:
        asked["priorityClassName"] = priority
    metadata = owned_by(number, f"s{number}-{name}")
    return {"apiVersion": arbitrator.API_VERSION, "kind": "SchedulingSpec", "metadata": metadata, "spec": asked}


def pod(number: int | None, name: str, cpu: str, scheduler: str, run: str | None) -> Obj:
    found = m.pod(name, cpu, scheduler=scheduler, run_time=run)
    return found if number is None else {**found, "metadata": found["metadata"] | owned_by(number, name)}


def node(name: str, cpu: str, disk: str) -> Obj:
    return m.node(name, cpu, labels={"disk": disk})


class Specs(AtRest):
    """Whatever can happen to SchedulingSpecs and the pods of their owners."""

    config: Config = parse(None)

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.config)
        self.made = 0

    @initialize(cpus=st.lists(st.sampled_from(["1", "2", "4"]), min_size=1, max_size=3))
    def begin(self, cpus: list[str]) -> None:
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        self.world.do(high, *(node(f"n{index}", cpu, "ssd" if index else "hdd") for index, cpu in enumerate(cpus)))

    # ---- what happens

    @rule(
        number=owners,
        name=st.integers(0, 1),
        minimum=st.integers(0, 4),
        selects=st.booleans(),
        priority=st.sampled_from(["", "", "high"]),
    )
    def create_spec(self, number: int, name: int, minimum: int, selects: bool, priority: str) -> None:
        made = spec(number, name, minimum, selects, priority)
        if self.world.store.get(arbitrator.SCHEDULING_SPEC, "default", name_of(made)) is None:
            self.world.do(made)

    @rule(index=st.integers(0, 5))
    def delete_spec(self, index: int) -> None:
        found = self.specs()
        if found:
            self.world.step("delete", "SchedulingSpec", found[index % len(found)])

    @rule(index=st.integers(0, 5), minimum=st.integers(0, 5))
    def change_spec(self, index: int, minimum: int) -> None:
        found = self.specs()
        if found:
            patch = {"spec": {"minAvailable": minimum}}
            self.world.step("patch", "SchedulingSpec", found[index % len(found)], patch=patch)

    @rule(
        number=st.sampled_from([*OWNERS, None]),
        count=st.integers(1, 4),
        cpu=st.sampled_from(["1", "1", "2"]),
        scheduler=st.sampled_from(["enbloc", "enbloc", "kar-scheduler"]),
        run=st.sampled_from([None, None, "5s", "30s"]),
    )
    def create_pods(self, number: int | None, count: int, cpu: str, scheduler: str, run: str | None) -> None:
        pods = [pod(number, f"p{self.made + index}", cpu, scheduler, run) for index in range(count)]
        self.made += count
        self.world.do(*pods)

    @rule(index=st.integers(0, 20), verb=st.sampled_from(["delete", "fail-pod"]))
    def hit_a_pod(self, index: int, verb: str) -> None:
        pods = self.world.pods()
        if pods:
            self.world.step(verb, "Pod", name_of(pods[index % len(pods)]))

    @rule(cpu=st.sampled_from(["1", "2"]), disk=st.sampled_from(["hdd", "ssd"]))
    def add_a_node(self, cpu: str, disk: str) -> None:
        self.made += 1
        self.world.do(node(f"m{self.made}", cpu, disk))

    @rule(after=st.sampled_from([1, 10, 40]))
    def wait(self, after: int) -> None:
        self.world.do(after=after)

    def specs(self) -> list[str]:
        return [name_of(found) for found in self.world.store.list(arbitrator.SCHEDULING_SPEC)[0]]

    # ---- what must hold at rest

    def teardown(self) -> None:
        world = self.world
        if not world.documents:
            return
        until = world._seconds * SECOND
        plain = [one for one in world.documents if one["kind"] != "Step" or one["do"] != "restart-scheduler"]
        first = replay(plain, world.config, until)
        assert bound_lines(first) == bound_lines(world.result()), "I5: restarts made a difference"
        # Who is down at the very instant at which a SchedulingSpec goes cannot know that there was one (decision 0018).
        unseen = {one["at"] for one in plain if one["kind"] == "Step" and one["target"]["kind"] == "SchedulingSpec"}
        instants = [f"{second}s" for second in range(1, min(world._seconds, 150))]
        often = [step("restart-scheduler", at=at) for at in instants if at not in unseen]
        assert bound_lines(replay([*plain, *often], world.config, until)) == bound_lines(first), "I5: many restarts"


class SpecsWithoutBackfill(Specs):
    """A2: what a gang got that could not get enough is kept from others."""

    config = parse({"actions": "enqueue, allocate"})


MACHINES = pytest.mark.parametrize("machine", [Specs, SpecsWithoutBackfill])


@MACHINES
def test_a_specs_come_and_go(machine: type[Specs]) -> None:
    default = settings()
    run_state_machine_as_test(
        machine, settings=settings(max_examples=min(default.max_examples, 200) // 2, stateful_step_count=15)
    )


@pytest.mark.soak
@MACHINES
def test_a_specs_come_and_go_for_long(machine: type[Specs], rounds: Iterator[int]) -> None:
    soak(machine, rounds)


# ---- what the machine has found


def test_i5_a_failed_pod_whose_spec_came_and_went_is_known_after_a_restart() -> None:
    """The SchedulingSpec's gang, of minimum 0, had written its own mark on the pod."""
    machine = Specs()
    machine.begin(cpus=["1"])
    machine.create_pods(number=0, count=1, cpu="1", scheduler="enbloc", run=None)
    machine.create_spec(number=0, name=0, minimum=0, selects=False, priority="")
    machine.delete_spec(index=0)
    machine.hit_a_pod(index=0, verb="fail-pod")
    machine.known_again_after_a_restart()
