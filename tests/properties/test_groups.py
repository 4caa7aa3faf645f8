"""Gangs that start together and gangs that hold, on random clusters and random orders of events (K5–K8, K12; I1–I7).

At every rest: counts are right, nothing is left to decide, a scheduler that starts now knows what is held and decides
nothing else, and no two groups wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from enbloc.api.meta import name_of
from enbloc.api.writes import EmitEvent, Patch, Write
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.features.groups.deadlocks import _claimants, _stuck
from enbloc.units import SECOND
from properties.at_rest import AtRest
from properties.test_cut_off import crash
from properties.world import World, bound_lines, replay, step
from support import manifests as m
from support.seeds import soak

names = st.sampled_from("abcd")
groups = st.sampled_from(
    [None, None, ["default/a", "default/b"], ["default/b", "default/c"], ["default/c", "default/d"]]
)
modes = st.sampled_from([None, "NonStrict", "NonStrict", "NonStrict"])
waits = st.sampled_from(["3s", "20s", "500s"])
runs = st.sampled_from(["2s", "20s", None])


class Gangs(AtRest):
    def matters(self, write: Write) -> bool:
        return not isinstance(write, EmitEvent) and not _is_status(write)

    @initialize(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
    def begin(self, sizes: list[int]) -> None:
        self.world.do(*[m.node(f"n{index}", cpu) for index, cpu in enumerate(sizes)])

    @rule(
        name=names,
        first=st.integers(0, 2),
        count=st.integers(1, 4),
        minimum=st.integers(0, 5),
        cpu=st.integers(1, 2),
        group=groups,
        mode=modes,
        wait=waits,
        run=runs,
    )
    def create_gang(self, name: str, first: int, count: int, minimum: int, cpu: int, **words: Any) -> None:
        keys = {"group": "groups", "mode": "mode", "wait": "wait", "run": "run_time"}
        said = {keys[key]: value for key, value in words.items() if value is not None}
        self.world.do(*m.koordinator_gang(name, count, minimum, cpu, first=first, **said))

    @rule(count=st.integers(1, 4), minimum=st.integers(1, 4), mode=modes, run=runs)
    def create_group(self, count: int, minimum: int, mode: str | None, run: str | None) -> None:
        said = {"mode": mode} if mode else {}
        self.world.do(m.sigs_podgroup("e", minimum, **said), *m.labelled_pods("e", count, run_time=run))

    @rule(cpu=st.integers(1, 3), run=runs, index=st.integers(0, 3))
    def create_pod(self, cpu: int, run: str | None, index: int) -> None:
        self.world.do(m.pod(f"p{index}", cpu, run_time=run))

    @rule(index=st.integers(0, 3), cpu=st.integers(1, 4))
    def create_node(self, index: int, cpu: int) -> None:
        self.world.do(m.node(f"n{index}", cpu))

    @rule(index=st.integers(0, 3))
    def delete_node(self, index: int) -> None:
        nodes = self.world.store.list("Node")[0]
        if len(nodes) > 1:
            self.world.step("delete", "Node", name_of(nodes[index % len(nodes)]))

    @rule(index=st.integers(0, 20))
    def delete_pod(self, index: int) -> None:
        pods = self.world.pods()
        if pods:
            self.world.step("delete", "Pod", name_of(pods[index % len(pods)]))

    @rule(after=st.sampled_from([1, 5, 50]))
    def wait(self, after: int) -> None:
        self.world.do(after=after)

    @precondition(lambda self: self.world.documents)
    @invariant()
    def nobody_waits_in_a_circle(self) -> None:
        """K12."""
        cycle = Cycle(self.world.engine.parts, 0, [])
        assert _stuck(cycle, _claimants(cycle)) == []

    def teardown(self) -> None:
        world = self.world
        if not world.documents:
            return
        until = world._seconds * SECOND
        plain = [each for each in world.documents if each.get("do") != "restart-scheduler"]
        first = replay(plain, world.config, until)
        assert first.timeline == replay(plain, world.config, until).timeline, "I6"
        assert bound_lines(first) == bound_lines(world.result()), "I5: restarts made a difference"
        often = [step("restart-scheduler", at=f"{second}.5s") for second in range(1, min(world._seconds, 100) + 1)]
        assert bound_lines(first) == bound_lines(replay([*plain, *often], world.config, until)), "I5"


def _is_status(write: Any) -> bool:
    return isinstance(write, Patch) and write.subresource == "status"


shapes = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), modes), min_size=1, max_size=3)


@given(shapes, st.integers(1, 3), st.integers(0, 30), st.booleans())
def test_g11_a_group_is_never_partly_started_for_long(found: list[Any], nodes: int, writes: int, shrink: bool) -> None:
    """The scheduler is killed at any write; each pair of gangs is a group."""
    world = World()
    assert world.overseer is not None
    world.overseer.writes_left = writes
    pairs = []
    for number, (first, second, mode) in enumerate(found):
        names = [f"{letter}{number}" for letter in "ab"]
        said = {"groups": [f"default/{name}" for name in names], "wait": "5000s", **({"mode": mode} if mode else {})}
        pairs.append(names)
        found_pods = [*m.koordinator_gang(names[0], first, **said), *m.koordinator_gang(names[1], second, **said)]
        crash(world, *(m.node(f"n{index}", 3) for index in range(nodes) if number == 0), *found_pods)
    if shrink:  # so that what was begun cannot always be completed
        world.step("patch", "Node", "n0", patch={"spec": {"unschedulable": True}})
    world.do(after=61)
    world.engine.state.validate()
    for names in pairs:
        bound = {bool(pod["spec"].get("nodeName")) for pod in world.pods() if name_of(pod).split("-")[0] in names}
        assert len(bound) <= 1, f"{names} stay partly started"


def test_invariants_of_groups_and_holds() -> None:
    run_state_machine_as_test(Gangs, settings=settings(max_examples=20, stateful_step_count=12))


@pytest.mark.soak
def test_invariants_of_groups_and_holds_for_long(rounds: Iterator[int]) -> None:
    soak(Gangs, rounds, steps=50)
