"""G11: a scheduler that is cut off at any write leaves no gang partly started for long, and binds nothing twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.writes import BindPod, Refused, Write
from enbloc.gangs.registry import GangRegistry
from properties import strategies
from properties.world import Crash, World, fresh_scheduler, members, missing
from support import manifests as m

gang_shapes = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 2), st.sampled_from(["500m", "1", "2"]), st.sampled_from(["", "high"])),
    min_size=1,
    max_size=3,
)


def objects(shapes: list[Any], nodes: int) -> list[m.Obj]:
    found = [m.priority_class("high", 100), *[m.node(f"n{i}", "3") for i in range(nodes)]]
    for number, (minimum, surplus, cpu, priority) in enumerate(shapes):
        more = {"priorityClassName": priority} if priority else {}
        found.append(m.podgroup(f"g{number}", minimum, **more))
        spec = strategies.pod_spec({"cpu": cpu})
        found += [m.pod(f"g{number}-{i}", group=f"g{number}", **spec) for i in range(minimum + surplus)]
    return found


def crash(world: World, *values: m.Obj) -> None:
    """As much as the scheduler can write before its end; then a new one starts, as a supervisor would have it."""
    assert world.overseer is not None
    try:
        world.do(*values)
    except Crash:
        world.sim._record()
    world.overseer.writes_left = None
    world.overseer.open.clear()
    world.step("restart-scheduler")


def nobody_is_partly_started(world: World) -> None:
    for pod in world.pods():
        gang = GangRegistry().member(pod).gang
        bound = [each for each in members(world.store, gang) if each["spec"].get("nodeName")]
        assert not bound or not missing(world.store, gang, world.engine), f"G11: {gang} stays partly started"


@given(gang_shapes, st.integers(1, 3), st.integers(0, 25), st.booleans())
def test_g11_a_crash_at_any_write(shapes: list[Any], nodes: int, writes: int, shrink: bool) -> None:
    world = World()
    assert world.overseer is not None
    world.overseer.writes_left = writes
    crash(world, *objects(shapes, nodes))
    if shrink:  # so that what was begun cannot always be completed
        world.step("patch", "Node", "n0", patch={"spec": {"unschedulable": True}})
    world.do(after=61)
    nobody_is_partly_started(world)
    world.engine.state.validate()
    scheduler, cluster = fresh_scheduler(world.store, world.config)
    scheduler.schedule(world.now)
    assert cluster.tried == []


@given(gang_shapes, st.integers(1, 3), st.sets(st.integers(0, 12), max_size=4), st.booleans())
def test_g11_refused_bindings(shapes: list[Any], nodes: int, refused: set[int], shrink: bool) -> None:
    """K10: a Binding that is refused is tried again; the commit waits for those before it."""
    world = World()
    overseer = world.overseer
    assert overseer is not None
    tries = iter(range(10_000))
    execute = overseer.execute

    def sometimes(write: Write) -> Any:
        if isinstance(write, BindPod) and next(tries) in refused:
            raise Refused(500, "InternalError", "try again")
        return execute(write)

    overseer.execute = sometimes  # type: ignore[method-assign]
    overseer.cycle_ended = lambda: None  # type: ignore[method-assign]
    world.do(*objects(shapes, nodes))
    if shrink:
        world.step("patch", "Node", "n0", patch={"spec": {"unschedulable": True}})
    for _ in range(5):  # what was evicted may be refused again
        world.do(after=61)
    nobody_is_partly_started(world)
    world.engine.state.validate()
