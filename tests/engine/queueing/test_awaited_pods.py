"""Gangs whose pods are being created (G3, G8, S4): for how long others wait for them, and what they will use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pytest

from enbloc.engine.events import ClusterEvents
from enbloc.engine.ordering import Band, GangOrder, Order
from enbloc.engine.queueing import awaited_pods as module
from enbloc.engine.queueing.awaited_pods import MINIMA_WITHIN_NS, PODS_WITHIN_NS, AwaitedPods
from enbloc.engine.state.gang_demand import GangDemand
from enbloc.engine.tables.queues import QueueFacts, QueueTree
from enbloc.engine.tables.resources import CPU, MEMORY, Resources
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey, GangSpec, Template


def order(gang: GangState) -> Order:
    """By priority, then by age."""
    return Order((-gang.priority,), False, True, gang.spec.created_ns, "ns", gang.spec.title, Band.MINIMA)


WAVE = {"w": Template(2, {})}


class Scene:
    """Queues `q` and `r`; `q` deserves 4 cpu. Every gang has a minimum of two pods, and was enqueued at 0."""

    def __init__(self) -> None:
        self.tree = QueueTree(Resources())
        for name in "qr":
            self.tree.put(QueueFacts(name))
        self.demand = GangDemand(self.tree, ClusterEvents())
        self.awaited = AwaitedPods(cast(GangOrder, order), self.demand)
        self.gangs: dict[str, GangState] = {}

    def gang(
        self, name: str, queue: str = "q", cpu: int = 2, priority: int = 0, at_ns: int | None = 0, **spec: Any
    ) -> GangState:
        fields = {"first_wave": WAVE, **spec}
        made = GangState(GangSpec(GangKey("t", "ns", name), f"ns/{name}", len(self.gangs), 2, queue=queue, **fields))
        made.priority = priority
        made.assume(enqueued=True, enqueued_at_ns=at_ns)
        self.gangs[name] = made
        return self.read(made, cpu)

    def read(self, gang: GangState, cpu: int) -> GangState:
        """So much was enqueued with it."""
        self.demand.set(gang, {}, {CPU: cpu} if cpu else {})
        self.awaited.gang_read(gang)
        return gang

    def in_queues(self) -> dict[str, list[str]]:
        return {queue: names(self.awaited.in_queue(queue)) for queue in self.awaited.queues()}


def names(gangs: Iterable[GangState]) -> list[str]:
    return [gang.key.name for gang in gangs]


def test_g8_pods_are_awaited_of_gangs_that_count_as_enqueued_and_lack_members() -> None:
    scene = Scene()
    gang = scene.gang("a")
    scene.gang("b", "r")
    scene.gang("not counted", cpu=0)
    assert scene.in_queues() == {"q": ["a"], "r": ["b"]}
    gang.pending = {"": 2}
    scene.read(gang, 2)
    assert scene.in_queues() == {"r": ["b"]}
    gang.pending = {}
    scene.read(gang, 2)
    assert scene.in_queues() == {"r": ["b"], "q": ["a"]}
    scene.awaited.gang_gone(gang)
    assert scene.in_queues() == {"r": ["b"]}
    assert scene.awaited.in_queue("q") == []


def test_g8_a_gang_that_moves_is_awaited_in_its_new_queue() -> None:
    scene = Scene()
    gang = scene.gang("a")
    gang.spec = GangSpec(gang.key, "ns/a", 0, 2, queue="r")
    scene.read(gang, 2)
    assert scene.in_queues() == {"r": ["a"]}
    assert scene.awaited.beyond_share(scene.tree.get("q"), scene.tree) == {CPU: 2}
    assert not +scene.awaited.beyond_share(scene.tree.get("r"), scene.tree)


@pytest.mark.parametrize(
    ("used", "beyond"),
    [(0, 1), (1, 2), (4, 5), (9, 5)],
)
def test_s4_what_awaited_pods_of_other_queues_use_beyond_their_share(used: int, beyond: int) -> None:
    """Gangs of `q`, which deserves 4, await 5 cpu."""
    scene = Scene()
    scene.gang("a", cpu=2)
    scene.gang("b", cpu=3)
    queue = scene.tree.get("q")
    queue.deserved = np.array([4, 0, 0], np.int64)
    scene.tree.allocate(queue, ((CPU, used), (MEMORY, 7)))
    assert scene.awaited.beyond_share(scene.tree.get("r"), scene.tree)[CPU] == beyond
    assert not scene.awaited.beyond_share(queue, scene.tree), "not its own"
    scene.read(scene.gangs["b"], 8)
    assert scene.awaited.beyond_share(scene.tree.get("r"), scene.tree)[CPU] == beyond + 5
    scene.awaited.gang_gone(scene.gangs["b"])
    assert scene.awaited.beyond_share(scene.tree.get("r"), scene.tree)[CPU] == max(0, beyond - 3)


def test_s4_what_is_awaited_adds_up_over_all_queues_but_one() -> None:
    scene = Scene()
    for queue, cpu in (("q", 2), ("r", 3), ("s", 5)):
        scene.gang(queue, queue, cpu)
    beyond = {name: scene.awaited.beyond_share(scene.tree.get(name), scene.tree)[CPU] for name in "qrst"}
    assert beyond == {"q": 8, "r": 7, "s": 5, "t": 10}


# ---- surplus (G3)


@pytest.mark.parametrize(
    ("fields", "now_ns", "blocks"),
    [
        ({}, 0, True),
        ({}, PODS_WITHIN_NS - 1, True),
        ({}, PODS_WITHIN_NS, False),
        ({"at_ns": 5}, PODS_WITHIN_NS + 4, True),
        ({"at_ns": None}, 0, False),  # it is not known since when
        ({"queue": "r"}, 0, False),
        ({"priority": 9}, 0, True),
        ({"priority": -9}, 0, False),  # it comes later in order
    ],
)
def test_g3_surplus_waits_for_the_pods_of_a_gang_before_it(fields: dict[str, Any], now_ns: int, blocks: bool) -> None:
    scene = Scene()
    scene.gang("a", **fields)
    surplus = scene.gang("surplus", cpu=0)
    scene.awaited.cycle_begins(now_ns)
    assert scene.awaited.block_surplus("q", order(surplus)) is blocks
    assert scene.awaited.due() == ((fields.get("at_ns") or 0) + PODS_WITHIN_NS if blocks else None)


def test_g3_a_gang_of_the_same_order_does_not_wait_for_itself() -> None:
    scene = Scene()
    gang = scene.gang("a")
    scene.awaited.cycle_begins(0)
    assert not scene.awaited.block_surplus("q", order(gang))


def test_g3_the_cycle_is_due_when_the_first_wait_ends() -> None:
    scene = Scene()
    for name, queue, at_ns in (("a", "q", 7), ("b", "r", 3)):
        scene.gang(name, queue, at_ns=at_ns)
    surplus = order(scene.gang("surplus", cpu=0))
    scene.awaited.cycle_begins(8)
    assert scene.awaited.block_surplus("q", surplus)
    assert scene.awaited.due() == 7 + PODS_WITHIN_NS
    assert scene.awaited.block_surplus("r", surplus)
    assert scene.awaited.block_surplus("q", surplus)
    assert scene.awaited.due() == 3 + PODS_WITHIN_NS
    scene.awaited.cycle_begins(9)
    assert scene.awaited.due() is None


# ---- minima (G8)


@pytest.mark.parametrize(
    ("fields", "now_ns", "above"),
    [
        ({"priority": 6}, 0, True),
        ({"priority": 6}, MINIMA_WITHIN_NS - 1, True),
        ({"priority": 6}, MINIMA_WITHIN_NS, False),
        ({"priority": 6, "queue": "r"}, 0, True),
        ({"priority": 5}, 0, False),
        ({"priority": 6, "at_ns": None}, 0, False),
        ({"priority": 6, "failed_create": "quota"}, 0, False),
        ({"priority": 6, "first_wave": {}}, 0, False),  # nothing is known of its pods
    ],
)
def test_g8_room_is_left_for_gangs_of_higher_priority_whose_pods_are_being_created(
    fields: dict[str, Any], now_ns: int, above: bool
) -> None:
    scene = Scene()
    scene.gang("a", **fields)
    scene.awaited.cycle_begins(now_ns)
    assert names(scene.awaited.above(5)) == (["a"] if above else [])
    assert scene.awaited.due() == (MINIMA_WITHIN_NS if above else None)


def test_g8_the_first_in_order_of_them_and_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ABOVE_BOUND", 2)
    scene = Scene()
    scene.gang("low", "r", priority=1, at_ns=4)
    scene.gang("high", priority=3, at_ns=2)
    scene.gang("middle", priority=2, at_ns=9)
    scene.awaited.cycle_begins(10)
    assert names(scene.awaited.above(0)) == ["high", "middle"]
    assert names(scene.awaited.above(2)) == ["high"]
    assert scene.awaited.due() == 2 + MINIMA_WITHIN_NS
