"""All that makes a gang wait meets in the scheduling queues: where the gang is then, and what it says (G9, G10)."""

from __future__ import annotations

import pytest

from enbloc.api.reasons import PendingReason
from enbloc.config import parse
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.engine.queueing import scheduling_queues as module
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass
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


def asleep(objects: list[m.Obj]) -> tuple[Scene, EquivalenceClass]:
    scene = Scene(*objects)
    equivalence = scene.direct.engine.parts.queues.equivalence_of(scene.gang("g"))
    assert equivalence is not None
    scene.direct.engine.state.events.clear()
    return scene, equivalence


@pytest.mark.parametrize(
    ("placed", "helpers", "is_woken"), [(False, 1, False), (True, 1, False), (False, 2, False), (True, 2, True)]
)
def test_g9_the_turn_of_a_class_that_sleeps_wakes_it_if_pods_were_placed_that_could_help_it(
    placed: bool, helpers: int, is_woken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods that it must be beside were where `1` says when it failed."""
    scene, equivalence = asleep(m.gang("g", 6))
    state, queues = scene.direct.engine.state, scene.direct.engine.parts.queues
    equivalence.helpers = 1
    monkeypatch.setattr(state.stateful, "helpers", lambda tasks: helpers)
    if placed:
        state.events.add(EventKind.POD_PLACED)
    assert queues.wake_in_turn(queues.placement, equivalence) is is_woken
    assert (scene.where("g") == "active") is is_woken


def test_g9_an_empty_class_is_not_woken_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, equivalence = asleep(m.gang("g", 6))
    state, queues = scene.direct.engine.state, scene.direct.engine.parts.queues
    queues.remove(scene.gang("g"))
    equivalence.helpers = 1
    state.events.add(EventKind.POD_PLACED)
    assert not queues.wake_in_turn(queues.placement, equivalence)
    assert not queues.placement.holds(equivalence)


# ---- gangs that start together (K7)

NAMES = '["default/g", "default/h"]'


def pair(count: int = 3) -> list[m.Obj]:
    """Two gangs that start together; on 4 cpus there is room for one of them."""
    return [*m.koordinator_gang("g", count, groups=NAMES), *m.koordinator_gang("h", count, groups=NAMES)]


def test_g10_k7_both_of_two_gangs_that_start_together_say_why() -> None:
    scene = Scene(*pair())
    assert (scene.where("g"), scene.where("h")) == ("unschedulable", "no queue")
    assert scene.why("g")
    assert scene.why("h")
    for name in "gh":
        assert "waits:" in scene.gang(name).story


def test_g10_k7_a_gang_of_a_group_that_fails_anew_says_the_new_reason() -> None:
    scene = Scene(*pair())
    queues = scene.direct.engine.parts.queues
    equivalence = queues.equivalence_of(scene.gang("g"))
    assert equivalence is not None
    mates = {scene.gang(name).key: Diagnosis(PendingReason.UNSCHEDULABLE, f"new of {name}") for name in "gh"}
    queues.diagnose_anew(equivalence, Diagnosis(PendingReason.UNSCHEDULABLE, "new", of_gangs=mates))
    assert (scene.why("g"), scene.why("h")) == ("new of g", "new of h")
    queues.diagnose_anew(equivalence, Diagnosis(PendingReason.UNSCHEDULABLE, "alone"))
    assert (scene.why("g"), scene.why("h")) == ("alone", "new of h")


@pytest.mark.parametrize(
    ("known", "is_behind"),
    [
        (None, True),
        (PendingReason.UNSCHEDULABLE, True),
        (PendingReason.QUEUE_FULL, True),
        (PendingReason.GROUP_NOT_READY, True),
        (PendingReason.BLOCKED_BY_FIFO, True),
        (PendingReason.NOT_ENOUGH_PODS, False),
        (PendingReason.GANG_INVALID, False),
    ],
)
def test_g8_k7_gangs_behind_another_in_a_fifo_queue_with_those_that_start_with_them(
    known: PendingReason | None, is_behind: bool
) -> None:
    """One that something else keeps waiting says that."""
    scene = Scene(*pair())
    queues, mate = scene.direct.engine.parts.queues, scene.gang("h")
    queues.remove(mate)
    if known is not None:
        queues.hold_back(mate, Diagnosis(known, "before"))
    queues.hold_behind(scene.gang("g"), lambda gang: Diagnosis(PendingReason.BLOCKED_BY_FIFO, "behind"))
    assert scene.why("h") == ("behind" if is_behind else "before")


@pytest.mark.parametrize(
    ("of_g", "of_h", "is_behind"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_g8_k7_a_gang_that_was_satisfied_waits_behind_none_for_others(of_g: bool, of_h: bool, is_behind: bool) -> None:
    scene = Scene(*pair())
    queues, mate = scene.direct.engine.parts.queues, scene.gang("h")
    queues.remove(mate)
    scene.gang("g").satisfied, mate.satisfied = of_g, of_h
    queues.hold_behind(scene.gang("g"), lambda gang: Diagnosis(PendingReason.BLOCKED_BY_FIFO, "behind"))
    assert scene.why("h") == ("behind" if is_behind else "")


def test_g10_a_bounded_number_of_gangs_of_a_class_is_reported_each_time_and_new_ones_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REPORTED_OF_A_CLASS", 2)
    scene = Scene(*(one for name in "abcd" for one in m.gang(name, 6)))
    queues, reported = scene.direct.engine.parts.queues, list[str]()
    equivalence = queues.equivalence_of(scene.gang("a"))
    assert equivalence is not None
    monkeypatch.setattr(queues, "_wait", lambda gang, why, of_gang: reported.append(gang.key.name))
    queues.mark_unschedulable(queues.placement, equivalence, Diagnosis(PendingReason.UNSCHEDULABLE, ""), of_gang=True)
    assert reported == ["a", "b"]


def test_all_classes_wake_when_that_is_asked_for() -> None:
    scene = Scene(*m.gang("g", 6))
    assert scene.where("g") == "unschedulable"
    scene.direct.engine.parts.queues.wake_all()
    assert scene.where("g") == "active"
    assert scene.why("g"), "what it said last"
