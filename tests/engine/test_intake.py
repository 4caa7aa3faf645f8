"""What keeps a gang from being attempted, and which gangs ask for admission (G4, M6, V5, S5, N1)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.allowed_namespaces import ALLOWED_NAMESPACES
from enbloc.config import parse
from enbloc.engine.decisions import Enqueue
from enbloc.engine.tables.tasks import GangState
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_EVICTIONS, flat


class Waiting:
    """Gang `g` on a node of 4 cpu."""

    def __init__(self, *objects: Any, config: dict[str, Any] | None = None) -> None:
        self.direct = DirectScheduler(parse(config or NO_EVICTIONS))
        for created_s, one in enumerate(flat(m.node("n"), *objects)):
            self.direct.put(one, created_s)
        self.direct.engine.state.settle()
        self.intake = self.direct.engine.parts.intake

    @property
    def gang(self) -> GangState:
        return next(gang for gang in self.direct.engine.state.gangs.values() if gang.spec.title == "default/g")

    def obstacle(self) -> str:
        found = self.intake.obstacle(self.gang)
        return found.message if found is not None else ""


def inqueue(minimum: int = 1, **fields: Any) -> m.Obj:
    return {**m.podgroup("g", minimum, **fields), "status": {"phase": "Inqueue"}}


def member(index: int = 0, **fields: Any) -> m.Obj:
    return m.pod(f"g-{index}", group="g", **fields)


SHUT = m.queue("shut")
SHUT["metadata"]["annotations"] = {ALLOWED_NAMESPACES: "team-a"}
OPEN = m.queue("open")
OPEN["metadata"]["annotations"] = {ALLOWED_NAMESPACES: "default"}


@pytest.mark.parametrize(
    ("objects", "obstacle"),
    [
        ([inqueue(), member()], ""),
        ([inqueue(2), member()], "1 of 2 pods exist"),
        ([inqueue(queue="q"), member()], "queue q does not exist"),
        ([m.queue("q", state="Closed"), m.pod("g", queue="q")], "queue q is closed"),
        ([m.queue("q", state="Closed"), inqueue(queue="q"), member()], ""),  # its object was admitted before (V4)
        ([SHUT, inqueue(queue="shut"), member()], "shut"),
        ([OPEN, inqueue(queue="open"), member()], ""),
        ([member()], "PodGroup default/g does not exist"),
    ],
)
def test_g4_what_keeps_a_gang_from_being_attempted(objects: list[m.Obj], obstacle: str) -> None:
    found = Waiting(*objects).obstacle()
    assert obstacle in found
    assert bool(found) is bool(obstacle)


@pytest.mark.parametrize(
    "objects",
    [
        [m.queue("q", state="Closed"), m.pod("g", queue="q")],
        [SHUT, inqueue(queue="shut"), member()],
        [inqueue(2), member()],
    ],
)
def test_g7_a_gang_that_has_started_has_none_of_these(objects: list[m.Obj]) -> None:
    waiting = Waiting(*objects)
    assert waiting.obstacle()
    waiting.gang.satisfied = True
    assert not waiting.obstacle()


def test_g4_members_are_missed_once_a_gang_is_enqueued() -> None:
    waiting = Waiting(m.podgroup("g", 2, resources={"cpu": "2"}), member())
    assert not waiting.obstacle()
    waiting.gang.assume(enqueued=True)
    assert "1 of 2 pods exist" in waiting.obstacle()


@pytest.mark.parametrize(
    ("asked", "config", "beyond"),
    [
        ({"cpu": "4"}, {}, ""),
        ({"cpu": "4001m"}, {}, "cpu"),
        ({"example.com/none": "1"}, {}, "example.com/none"),
        ({"pods": "999"}, {}, ""),
        ({"cpu": "9"}, {"enqueue": {"admitOversized": True}}, ""),
        (None, {}, ""),
    ],
)
def test_m6_min_resources_beyond_what_the_cluster_has(
    asked: dict[str, str] | None, config: dict[str, Any], beyond: str
) -> None:
    waiting = Waiting(m.podgroup("g", 1, resources=asked), config={**NO_EVICTIONS, **config})
    found = waiting.intake.beyond_cluster(waiting.gang)
    assert (found is not None) is bool(beyond)
    assert found is None or beyond in found.message
    waiting.gang.satisfied = True
    assert waiting.intake.beyond_cluster(waiting.gang) is None


def enqueued(waiting: Waiting) -> list[str]:
    return [one.gang.name for one in waiting.direct.engine.run(1) if isinstance(one, Enqueue)]


@pytest.mark.parametrize(
    ("objects", "config", "is_enqueued"),
    [
        ([m.podgroup("g", 1, resources={"cpu": "9"})], {}, False),
        ([m.podgroup("g", 1, resources={"cpu": "9"})], {"actions": "allocate"}, True),
        ([m.podgroup("g", 1)], {}, True),
        ([m.podgroup("g", 2, resources={"cpu": "9"}), member(nodeName="n")], {}, True),
        ([m.podgroup("g", 2, resources={"cpu": "9"}), member()], {}, False),
    ],
    ids=["no room", "without enqueue", "asks for nothing", "one pod runs (V5)", "its pods wait"],
)
def test_m6_which_gangs_wait_for_admission(objects: list[m.Obj], config: dict[str, Any], is_enqueued: bool) -> None:
    assert enqueued(Waiting(*objects, config={**NO_EVICTIONS, **config})) == (["g"] if is_enqueued else [])
