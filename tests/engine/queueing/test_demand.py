"""What a gang adds to its queue before its pods do: demand, and what it was enqueued with (M6, V4, S4)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.events import EventKind
from enbloc.engine.queueing.demand import PREEMPTING, RECLAIMING, STARVING, QueueDemand
from enbloc.engine.state.gang_demand import GangDemand
from enbloc.engine.tables.resources import CPU, MEMORY
from enbloc.engine.tables.tasks import GangState
from support import manifests as m
from support.direct_scheduler import DirectScheduler

CORE = 1000
"""One CPU, as resource columns count it."""


class Asking:
    """A PodGroup `g` with minResources of 3 cpu, and pods as given; it counts as enqueued for 10 ns at most."""

    def __init__(self, *pods: m.Obj, resources: dict[str, str] | None = None, phase: str = "Inqueue") -> None:
        self.direct = DirectScheduler(parse(None))
        self.direct.put(m.node("n"))
        asked = {"cpu": "3"} if resources is None else resources
        self.direct.put({**m.podgroup("g", 1, resources=asked), "status": {"phase": phase}})
        for pod in pods:
            self.direct.put(pod)
        self.state = self.direct.engine.state
        self.state.settle()
        self.demand = QueueDemand(self.state, self.direct.engine.parts.claims.waves, 10)
        self.gang: GangState = next(gang for gang in self.state.gangs.values() if gang.spec.title == "default/g")

    def read(self, now_ns: int = 0) -> tuple[int, int]:
        """What the queue demands, and what was enqueued there, in CPUs."""
        self.demand.cycle_begins(now_ns)
        self.demand.gang_read(self.gang)
        queue = self.state.queues.get("default")
        found = int(queue.demand[CPU]), int(queue.enqueued[CPU])
        assert all(amount % CORE == 0 for amount in found)
        return found[0] // CORE, found[1] // CORE


def member(name: str = "g-0", cpu: int = 1, **fields: Any) -> m.Obj:
    return m.pod(name, cpu, group="g", **fields)


@pytest.mark.parametrize(
    ("asking", "demand", "enqueued"),
    [
        (Asking, 3, 3),
        (lambda: Asking(member()), 1, 3),  # its pods demand for themselves
        (lambda: Asking(phase="Pending"), 3, 0),
        (lambda: Asking(resources={}), 0, 0),
        (lambda: Asking(phase="Completed"), 0, 0),
        (lambda: Asking(member(nodeName="n")), 1, 0),
        (lambda: Asking(member(schedulingGates=[{"name": "later"}])), 0, 0),
    ],
)
def test_m6_what_a_gang_adds_to_its_queue(asking: Any, demand: int, enqueued: int) -> None:
    assert asking().read() == (demand, enqueued)


@pytest.mark.parametrize("ground", [STARVING, PREEMPTING, RECLAIMING])
def test_m6_a_gang_enqueued_beyond_the_free_room_does_not_count_against_others(ground: str) -> None:
    asking = Asking()
    asking.gang.assume(enqueued_by=ground)
    assert asking.read() == (3, 0)
    asking.gang.assume(enqueued_by="Enqueued")
    assert asking.read() == (3, 3)


def test_m6_a_gang_that_is_satisfied_or_was_tried_does_not_count() -> None:
    asking = Asking(member())
    asking.gang.satisfied = True
    assert asking.read() == (1, 0)
    asking.gang.satisfied = False
    assert asking.read() == (1, 3)
    asking.gang.assume(tried=True)
    assert asking.demand.was_attempted(asking.gang)
    assert asking.read() == (1, 0)


def test_m6_an_attempt_counts_from_the_first_pods_until_the_next_enqueue() -> None:
    asking = Asking()
    asking.demand.note_attempt(asking.gang)
    assert not asking.demand.was_attempted(asking.gang)
    assert asking.read() == (3, 3)
    asking.direct.put(member())
    asking.demand.note_attempt(asking.gang)
    assert asking.demand.was_attempted(asking.gang)
    assert asking.read() == (1, 0)
    asking.demand.note_enqueued(asking.gang)
    assert not asking.demand.was_attempted(asking.gang)
    assert asking.read() == (1, 3)
    asking.demand.note_attempt(asking.gang)
    asking.direct.delete("Pod", "g-0")
    asking.demand.note_attempt(asking.gang)
    assert asking.read() == (3, 3)  # it has no pods again


def test_s4_a_gang_without_pods_counts_for_a_while_only() -> None:
    """From the engine's first look on: what its object says shortens that, and does not lengthen it."""
    asking = Asking()
    assert asking.demand.due() is None
    assert asking.read(now_ns=5) == (3, 3)
    assert asking.demand.due() == 15
    asking.gang.assume(enqueued_at_ns=14)
    asking.state.dirty.clear()
    assert asking.read(now_ns=14) == (3, 3)
    assert not asking.state.dirty
    asking.demand.cycle_begins(15)
    assert asking.state.dirty, "it is read again when its time is over"
    assert asking.demand.due() is None
    assert asking.read(now_ns=15) == (3, 0)
    asking.demand.note_enqueued(asking.gang)
    assert asking.read(now_ns=16) == (3, 3)
    assert asking.demand.due() == 25


@pytest.mark.parametrize(("enqueued_at_ns", "due_ns"), [(None, 30), (14, 24), (20, 30), (99, 30)])
def test_s4_the_time_that_an_object_gives_counts_if_it_is_in_the_past(enqueued_at_ns: int | None, due_ns: int) -> None:
    asking = Asking()
    asking.gang.assume(enqueued_at_ns=enqueued_at_ns)
    asking.read(now_ns=20)
    assert asking.demand.due() == due_ns


def test_what_is_known_of_a_gang_goes_with_it() -> None:
    asking = Asking(member())
    asking.read()
    asking.demand.gang_gone(asking.gang)
    assert asking.demand.due() is None
    asking.demand.note_attempt(asking.gang)
    asking.demand.gang_gone(asking.gang)
    assert not asking.demand.was_attempted(asking.gang)
    assert asking.read(now_ns=50) == (1, 3)
    assert asking.demand.due() == 60
    asking.gang.satisfied = True
    asking.read(now_ns=51)
    assert asking.demand.due() is None


def test_a_gang_that_ends_demands_nothing() -> None:
    asking = Asking()
    assert asking.read() == (3, 3)
    asking.gang.assume(finished=True)
    assert asking.read() == (0, 0)
    assert asking.demand.due() is None


def test_an_attempt_is_counted_at_once() -> None:
    asking = Asking(member())
    assert asking.read() == (1, 3)
    asking.demand.note_attempt(asking.gang)
    assert not asking.state.queues.get("default").enqueued.any()


def test_a_gang_may_ask_for_a_resource_that_no_node_has() -> None:
    asking = Asking(resources={f"example.com/r{number}": "1" for number in range(12)})
    asking.read()
    assert len(asking.state.nodes.totals()) == len(asking.state.resources)


# ---- the amounts themselves


def changes(asking: Asking, to_come: dict[int, int], enqueued: dict[int, int]) -> tuple[bool, bool, bool]:
    """Whether demands changed, whether the queue was touched, and whether it uses less."""
    queues, events = asking.state.queues, asking.state.events
    queues.take_touched()
    events.clear()
    version = queues.version
    asking.state.demand.set(asking.gang, to_come, enqueued)
    assert asking.state.demand.enqueued(asking.gang) == enqueued
    less = EventKind.QUEUE_USES_LESS in events.kinds
    return queues.version != version, bool(queues.take_touched()), less


def test_demand_is_replaced_only_as_far_as_it_changes() -> None:
    asking = Asking()
    assert changes(asking, {}, {}) == (False, False, False)
    assert list(asking.state.demand) == []
    assert changes(asking, {CPU: 3}, {CPU: 3}) == (True, True, False)
    assert changes(asking, {CPU: 3}, {CPU: 3}) == (False, False, False)
    assert changes(asking, {CPU: 4}, {CPU: 3}) == (True, True, True)
    assert changes(asking, {CPU: 3}, {CPU: 3}) == (True, True, True)
    assert changes(asking, {CPU: 3}, {}) == (False, True, True)
    assert changes(asking, {CPU: 3}, {MEMORY: 1}) == (False, True, False)
    assert changes(asking, {}, {MEMORY: 1}) == (True, True, True)
    assert changes(asking, {}, {MEMORY: 1}) == (False, False, False)
    assert changes(asking, {}, {}) == (False, True, True)
    assert list(asking.state.demand) == []
    queue = asking.state.queues.get("default")
    assert not queue.demand.any()
    assert not queue.enqueued.any()


def test_demand_moves_with_its_gang_to_another_queue() -> None:
    asking = Asking()
    changes(asking, {CPU: 3}, {})
    asking.direct.put(m.queue("other"))
    asking.direct.put({**m.podgroup("g", 1, queue="other"), "status": {"phase": "Inqueue"}})
    assert changes(asking, {CPU: 3}, {}) == (True, True, False)
    queues = asking.state.queues
    assert (int(queues.get("default").demand[CPU]), int(queues.get("other").demand[CPU])) == (0, 3)
    changes(asking, {}, {CPU: 3})
    asking.direct.put({**m.podgroup("g", 1, queue="default"), "status": {"phase": "Inqueue"}})
    changes(asking, {}, {CPU: 3})
    assert (int(queues.get("default").enqueued[CPU]), int(queues.get("other").enqueued[CPU])) == (3, 0)


def test_removing_what_is_not_there_changes_nothing() -> None:
    asking = Asking()
    demand = GangDemand(asking.state.queues, asking.state.events)
    asking.state.events.clear()
    demand.remove(asking.gang)
    assert not asking.state.events
    assert demand.enqueued(asking.gang) == {}
