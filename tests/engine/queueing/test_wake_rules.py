"""Which events wake which gangs (G9): a table of what keeps a gang waiting × what happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.events import BEYOND_ROOM, VOLUME_CLAIMS_BOUND, ClusterEvent, ClusterEvents, EventKind
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass
from support import manifests as m
from support import racks
from support.direct_scheduler import DirectScheduler

KEY = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}
APART = {
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": KEY, "labelSelector": WEB}]}
}


class Waiting:
    """A small cluster in which gang `g` waits; `wakes` is whether the events since then wake it."""

    def __init__(self, *objects: m.Obj, actions: tuple[str, ...] = ("enqueue", "allocate")) -> None:
        self.direct = DirectScheduler(parse({"actions": [{"name": action} for action in actions]}))
        self.engine = self.direct.engine
        self.direct.put(m.node("n", 4, labels={KEY: "a"}))
        self.direct.put(m.node("small", 2, labels={KEY: "b"}))
        for one in objects:
            self.direct.put(one)
        for _ in range(3):
            self.engine.run(0)
        assert self.sleeps(), "the gang of the table waits"
        assert not self.engine.busy()

    def _class(self) -> EquivalenceClass:
        found = [
            self.engine.parts.queues.equivalence_of(gang)
            for gang in self.engine.state.gangs.values()
            if gang.key.name.startswith("g")
        ]
        assert len(found) == 1
        assert isinstance(found[0], EquivalenceClass)
        return found[0]

    def sleeps(self) -> bool:
        return self._class().unschedulable

    def wakes(self, happens: Callable[[DirectScheduler], object]) -> bool:
        happens(self.direct)
        self.engine.state.settle()
        self.engine.parts.queues.wake()
        return not self.sleeps()


def gang(cpu: int = 4, **more: Any) -> m.Obj:
    return m.pod("g", cpu, **more)


def full(**more: Any) -> Waiting:
    """Room is all that is missing."""
    return Waiting(m.pod("big", 1, nodeName="n"), m.pod("other", 1, nodeName="small"), gang(**more))


TIMED = {"annotations": {"enbloc.dev/expected-duration": "1h"}}
STARTED = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}


def full_for_an_hour() -> Waiting:
    return Waiting(m.pod("big", 1, nodeName="n", **TIMED), m.pod("other", 1, nodeName="small"), gang())


def kept_out_by_a_limit() -> Waiting:
    capped = m.queue("q", capability={"cpu": "1"})
    return Waiting(capped, *m.gang("a", 1, cpu=1, queue="q", nodeName="n"), *m.gang("g", 1, cpu=1, queue="q"))


def of_two_classes(**more: Any) -> Waiting:
    """The second pod has room nowhere else than the first."""
    group, *pods = m.gang("g", 2, cpu=4)
    pods[1] = m.pod("g-1", 3, group="g", **more)
    return Waiting(m.pod("other", 1, nodeName="small"), group, *pods)


def of_two_classes_with_a_volume() -> Waiting:
    return of_two_classes(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def kept_together() -> Waiting:
    together = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    return Waiting(racks.hyper_node("a", 1, "n"), m.podgroup("g", 2, **together), *m.gang("g", 2, cpu=3)[1:])


def kept_apart() -> Waiting:
    near = m.pod("web", 1, nodeName="n", labels={"app": "web"})
    return Waiting(near, m.pod("other", 1, nodeName="small"), gang(2, affinity=APART))


def waits_for_a_volume() -> Waiting:
    return Waiting(gang(1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))


def waits_for_admission(*actions: str) -> Callable[[], Waiting]:
    group = {**m.gang("g", 1, cpu=9)[0]}
    group["spec"] = {**group["spec"], "minResources": {"cpu": "9"}}
    return lambda: Waiting(group, m.pod("runs", 1, nodeName="n"), actions=("enqueue", "allocate", *actions))


def ends(name: str) -> Callable[[DirectScheduler], object]:
    return lambda direct: direct.delete("Pod", name)


def comes(*objects: m.Obj) -> Callable[[DirectScheduler], object]:
    return lambda direct: [direct.put(one) for one in objects]


PLACED = comes(m.pod("late", 1, nodeName="small"))
NODE = comes(m.node("new", 1))
QUEUE = comes(m.queue("new"))
BUDGET = comes(m.budget({"app": "web"}, minAvailable=1))
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "default"}, "spec": {}}


def claim(name: str) -> Callable[[DirectScheduler], object]:
    return comes({**CLAIM, "metadata": {"name": name, "namespace": "default"}})


@pytest.mark.parametrize(
    ("waiting", "happens", "wakes"),
    [
        pytest.param(full, NODE, True, id="no room: a node comes"),
        pytest.param(full, QUEUE, True, id="no room: a queue changes"),
        pytest.param(full, ends("big"), True, id="no room: a pod ends where it could go"),
        pytest.param(full, ends("other"), False, id="no room: a pod ends where it could not go"),
        pytest.param(full, PLACED, False, id="no room: a pod is placed"),
        pytest.param(full, BUDGET, False, id="no room: a budget changes"),
        pytest.param(full, claim("data"), False, id="no room: a volume claim changes"),
        pytest.param(full, comes(m.node("n", 4, labels={KEY: "c"})), True, id="no room: a node is relabelled"),
        pytest.param(full, lambda direct: direct.delete("Node", "small"), True, id="no room: a node goes"),
        pytest.param(
            full_for_an_hour,
            comes({**m.pod("big", 1, nodeName="n", **TIMED), "status": STARTED}),
            False,
            id="no room: it is known when a pod ends, and no nodes are reserved",
        ),
        pytest.param(kept_out_by_a_limit, ends("a-0"), True, id="queue full: it uses less"),
        pytest.param(kept_out_by_a_limit, PLACED, False, id="queue full: a pod is placed"),
        pytest.param(of_two_classes, PLACED, True, id="two classes: a pod is placed"),
        pytest.param(of_two_classes, BUDGET, False, id="two classes: a budget changes"),
        pytest.param(of_two_classes, ends("other"), True, id="two classes: room where neither could go alone"),
        pytest.param(of_two_classes_with_a_volume, claim("other"), False, id="two classes, volume: another claim"),
        pytest.param(of_two_classes_with_a_volume, claim("data"), True, id="two classes, volume: the claim"),
        pytest.param(full, comes(racks.hyper_node("b", 1, "small")), False, id="no room: a domain comes"),
        pytest.param(kept_together, comes(racks.hyper_node("b", 1, "small")), True, id="together: a domain comes"),
        pytest.param(kept_together, NODE, True, id="together: a node comes"),
        pytest.param(kept_together, BUDGET, False, id="together: a budget changes"),
        pytest.param(kept_apart, ends("web"), True, id="kept apart: the other pod ends"),
        pytest.param(kept_apart, claim("data"), False, id="kept apart: a volume claim changes"),
        pytest.param(waits_for_a_volume, claim("data"), True, id="volume: the claim that it names"),
        pytest.param(waits_for_a_volume, claim("other"), False, id="volume: another claim"),
        pytest.param(waits_for_a_volume, PLACED, False, id="volume: a pod is placed"),
        pytest.param(waits_for_admission(), ends("runs"), True, id="admission: a pod ends"),
        pytest.param(waits_for_admission(), PLACED, False, id="admission: a pod is placed"),
        pytest.param(waits_for_admission("preempt"), PLACED, True, id="admission, preempt: a pod is placed"),
        pytest.param(waits_for_admission("preempt"), BUDGET, True, id="admission, preempt: a budget changes"),
        pytest.param(waits_for_admission(), BUDGET, False, id="admission: a budget changes"),
    ],
)
def test_g9_an_event_wakes_the_gangs_that_it_could_help(
    waiting: Callable[[], Waiting], happens: Callable[[DirectScheduler], object], wakes: bool
) -> None:
    assert waiting().wakes(happens) is wakes


def test_g9_a_guarantee_that_is_used_keeps_less_from_others() -> None:
    """V4: any placement may free guaranteed room for the others."""
    guaranteed = m.queue("sure", guarantee={"cpu": "6"})
    waiting = Waiting(guaranteed, *m.gang("g", 1, cpu=1, queue="default"))
    assert waiting.wakes(comes(*m.gang("a", 1, cpu=1, queue="sure", nodeName="small")))


@pytest.mark.parametrize(
    ("happens", "wakes"),
    [(NODE, True), (QUEUE, True), (PLACED, True), (BUDGET, False), (claim("data"), False)],
    ids=["a node comes", "a queue changes", "a pod is placed", "a budget changes", "a volume claim changes"],
)
def test_g9_a_guarantee_adds_to_what_wakes_a_gang(happens: Callable[[DirectScheduler], object], wakes: bool) -> None:
    guaranteed = m.queue("sure", guarantee={"cpu": "6"})
    assert Waiting(guaranteed, *m.gang("g", 1, cpu=1)).wakes(happens) is wakes
    asks = {**m.podgroup("g", 1, resources={"cpu": "1"})}
    assert Waiting(guaranteed, asks).wakes(happens) is wakes


def test_g9_room_on_several_nodes_is_looked_at_node_by_node() -> None:
    """Each class is asked for once; that room was freed where it could not go does not hide that it was elsewhere."""
    waiting = full()
    assert not waiting.wakes(ends("other"))
    assert waiting.wakes(ends("big"))
    assert full().wakes(lambda direct: (ends("other")(direct), ends("big")(direct)))


def test_events_are_recorded_once_and_by_kind() -> None:
    events = ClusterEvents()
    assert not events
    events.add_room_freed("n")
    events.add_room_freed("n")
    events.add(EventKind.QUEUE_CHANGED)
    assert events.of(EventKind.ROOM_FREED) == {ClusterEvent(EventKind.ROOM_FREED, "n")}
    assert events.of(EventKind.QUEUE_CHANGED) == {ClusterEvent(EventKind.QUEUE_CHANGED)}
    assert events.of(EventKind.NODE_ADDED) == set()
    assert events.any_of(BEYOND_ROOM)
    events.clear()
    assert not events
    assert not events.any_of(BEYOND_ROOM)
    assert events.of(EventKind.ROOM_FREED) == set()


def test_changed_volume_claims_beyond_the_bound_may_be_any() -> None:
    events = ClusterEvents()
    for number in range(VOLUME_CLAIMS_BOUND):
        events.add_volume_claim_changed(("default", str(number)))
    assert EventKind.VOLUME_CHANGED not in events.kinds
    events.add_volume_claim_changed(("default", "one more"))
    assert len(events.of(EventKind.VOLUME_CLAIM_CHANGED)) == VOLUME_CLAIMS_BOUND
    assert EventKind.VOLUME_CHANGED in events.kinds
