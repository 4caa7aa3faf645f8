"""All that makes a gang wait meets in the scheduling queues: where the gang is then, and what it says (G9, G10)."""

from __future__ import annotations

import pytest

from enbloc.config import parse
from enbloc.engine.tables.tasks import GangState
from support import manifests as m
from support.direct_scheduler import DirectScheduler


class Scene:
    def __init__(self, *objects: m.Obj) -> None:
        self.direct = DirectScheduler(parse({"actions": [{"name": "enqueue"}, {"name": "allocate"}]}))
        self.direct.put(m.node("n", 4))
        self.put(*objects)

    def put(self, *objects: m.Obj | list[m.Obj]) -> None:
        for one in objects:
            for each in one if isinstance(one, list) else [one]:
                self.direct.put(each)
        for _ in range(3):
            self.direct.engine.run(0)

    def gang(self, name: str) -> GangState:
        (found,) = [gang for gang in self.direct.engine.state.gangs.values() if gang.key.name == name]
        return found

    def where(self, name: str) -> str:
        """`active`, `unschedulable`, or `no queue`."""
        equivalence = self.direct.engine.parts.queues.equivalence_of(self.gang(name))
        return "no queue" if equivalence is None else "unschedulable" if equivalence.unschedulable else "active"

    def why(self, name: str) -> str:
        found = self.direct.engine.parts.queues.why(self.gang(name))
        return found.message if found is not None else ""


@pytest.mark.parametrize(
    ("objects", "where", "why"),
    [
        (m.gang("g", 1, minimum=2), "no queue", "1 of 2 pods exist"),
        (m.gang("g", 1, queue="lost"), "no queue", "queue lost does not exist"),
        (m.gang("g", 6), "unschedulable", "2 of 6 pods do not fit"),
        (m.gang("g", 4), "no queue", ""),
    ],
    ids=["too few pods", "no such queue", "no room", "it is bound"],
)
def test_where_a_gang_is_while_it_waits(objects: list[m.Obj], where: str, why: str) -> None:
    scene = Scene(*objects)
    assert scene.where("g") == where
    assert why in scene.why("g")
    assert bool(scene.why("g")) == bool(why), "a gang that does not wait says nothing"
    assert ("waits:" in scene.gang("g").story) == bool(why)


def test_a_gang_behind_another_in_a_fifo_queue_stays_queued() -> None:
    fifo = m.queue("q", dequeueStrategy="fifo")
    scene = Scene(fifo, *m.gang("a", 6, queue="q"), *m.gang("b", 1, queue="q"))
    assert (scene.where("a"), scene.where("b")) == ("unschedulable", "active")
    assert "default/a" in scene.why("b")


def test_an_equal_gang_that_comes_later_shares_the_diagnosis_and_is_not_attempted() -> None:
    scene = Scene(*m.gang("a", 6))
    scene.put(m.gang("b", 6))
    queues = scene.direct.engine.parts.queues
    assert queues.equivalence_of(scene.gang("a")) is queues.equivalence_of(scene.gang("b"))
    assert scene.why("a") == scene.why("b") != ""


def test_an_obstacle_takes_a_queued_gang_out_and_its_end_queues_it_again() -> None:
    scene = Scene(*m.gang("g", 6))
    scene.direct.delete("Pod", "g-5")
    scene.put()
    assert (scene.where("g"), scene.why("g")[:14]) == ("no queue", "5 of 6 pods ex")
    scene.put(*m.gang("g", 6)[-1:])
    assert scene.where("g") == "unschedulable"
    assert "2 of 6 pods do not fit" in scene.why("g")


def test_nothing_is_kept_of_a_gang_that_is_gone() -> None:
    scene = Scene(*m.gang("g", 6))
    gone = scene.gang("g")
    for number in range(6):
        scene.direct.delete("Pod", f"g-{number}")
    scene.direct.delete(m.gang("g", 1)[0]["kind"] + ".scheduling.volcano.sh", "g")
    scene.put()
    queues = scene.direct.engine.parts.queues
    assert (queues.equivalence_of(gone), queues.why(gone)) == (None, None)
