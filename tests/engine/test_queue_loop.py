"""FIFO queues: which gang blocks those behind it, and which are served all the same (G8)."""

from __future__ import annotations

import pytest

from enbloc.engine.actions import allocate
from enbloc.engine.actions.queue_loop import blocker, is_blocked
from engine.claims.scenes import group, name_of
from engine.cycles import CycleScene
from support import manifests as m


def served(strategy: str, **gangs: tuple[int, int]) -> CycleScene:
    """A node of 4 cpu, a queue, and gangs of one pod by name: its cpu and priority. Allocate has run."""
    queue = m.queue("q", dequeueStrategy=strategy)
    made = [
        one
        for name, (cpu, priority) in gangs.items()
        for one in (group(name, 1, queue="q"), m.pod(f"{name}-0", cpu, group=name, priority=priority))
    ]
    scene = CycleScene(m.node("n"), queue, made)
    allocate.run(scene.cycle)
    return scene


def bound(scene: CycleScene) -> str:
    return "".join(sorted(name_of(task.gang) for task in scene.cycle.state.tasks.values() if task.node))


@pytest.mark.parametrize(
    ("strategy", "gangs", "expected"),
    [
        pytest.param("fifo", {"a": (5, 0), "b": (1, 0)}, "", id="the first does not fit: none behind it starts"),
        pytest.param("traverse", {"a": (5, 0), "b": (1, 0)}, "b", id="in another queue they start"),
        pytest.param("fifo", {"a": (1, 0), "b": (5, 0), "c": (1, 0)}, "a", id="those before it start"),
        pytest.param("fifo", {"a": (5, 0), "b": (1, 9)}, "b", id="one of higher priority is before it"),
        pytest.param("fifo", {"a": (2, 0), "b": (2, 0), "c": (1, 0)}, "ab", id="as long as they fit"),
    ],
)
def test_g8_which_gangs_of_a_queue_start(strategy: str, gangs: dict[str, tuple[int, int]], expected: str) -> None:
    assert bound(served(strategy, **gangs)) == expected


def test_g8_the_first_in_order_that_does_not_fit_blocks_those_behind_it() -> None:
    scene = served("fifo", a=(5, 1), b=(6, 5), c=(1, 0))
    cycle = scene.cycle
    assert [is_blocked(cycle, scene.gang(name)) for name in "abc"] == [True, False, True]
    ahead = blocker(cycle, cycle.queues.placement, "q", cycle.order(scene.gang("c")))
    assert ahead is scene.gang("b")
    assert blocker(cycle, cycle.queues.placement, "default", cycle.order(scene.gang("c"))) is None
    why = cycle.queues.why(scene.gang("c"))
    assert why is not None
    assert "default/b" in why.message


def test_g8_no_gang_is_blocked_in_a_queue_that_is_not_fifo() -> None:
    scene = served("traverse", a=(5, 0), b=(6, 0))
    assert [is_blocked(scene.cycle, scene.gang(name)) for name in "ab"] == [False, False]


def test_g8_fifo_does_not_block_surplus() -> None:
    scene = CycleScene(
        m.node("n"), m.queue("q", dequeueStrategy="fifo"), group("a", 1, queue="q"), m.pod("a-0", 5, group="a"),
        group("b", 0, queue="q"), m.pod("b-0", 1, group="b"),
    )  # fmt: skip
    allocate.run(scene.cycle)
    assert bound(scene) == "b"


def test_g8_a_gang_that_is_not_enqueued_blocks_too() -> None:
    waiting = m.podgroup("a", 1, queue="q", resources={"cpu": "99"})
    scene = CycleScene(
        m.node("n"), m.queue("q", dequeueStrategy="fifo"), waiting, group("b", 1, queue="q"), m.pod("b-0", 1, group="b")
    )
    allocate.run(scene.cycle)
    assert bound(scene) == ""
    assert is_blocked(scene.cycle, scene.gang("b"))
