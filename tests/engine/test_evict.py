"""Evictions take several writes, and their echoes come one by one (P3)."""

from __future__ import annotations

from enbloc.config import parse
from enbloc.engine.cycle import cycle
from enbloc.engine.decisions import Bind, Evict
from enbloc.engine.tables.tasks import TaskStatus
from properties import making
from properties.making import Told


def bound(name: str) -> making.Obj:
    return making.pod(name, making.pod_spec({"cpu": "1"}, nodeName="n", priority=10))


def test_p3_whoever_is_marked_and_not_yet_terminating_is_still_leaving() -> None:
    """The first echo of an eviction is a pod with one more condition: nobody else is evicted because of it."""
    told = Told(parse(None))
    told.tell(making.node("n", cpu="2"))
    for name in ("a", "b"):
        told.tell(bound(name))
    told.tell(making.pod("vip", making.pod_spec({"cpu": "1"}, priority=1000)))
    (evicted,) = [one for one in cycle(told.engine, 1) if isinstance(one, Evict)]
    marked = bound(evicted.name)
    marked["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    told.tell(marked)
    assert told.engine.state.tasks[evicted.uid].status is TaskStatus.RELEASING
    assert not [one for one in cycle(told.engine, 2) if isinstance(one, Evict | Bind)]
    told.engine.state.validate()
    told.gone("Pod", evicted.name)
    (placed,) = [one for one in cycle(told.engine, 3) if isinstance(one, Bind)]
    assert [(one.name, one.node) for one in placed.placements] == [("vip", "n")]


def test_p3_whose_eviction_was_refused_stays() -> None:
    told = Told(parse(None))
    told.tell(making.node("n", cpu="1"))
    told.tell(bound("a"))
    told.tell(making.pod("vip", making.pod_spec({"cpu": "1"}, priority=1000)))
    (evicted,) = [one for one in cycle(told.engine, 1) if isinstance(one, Evict)]
    told.engine.evictions.stays(evicted.uid)
    assert told.engine.state.tasks[evicted.uid].status is TaskStatus.BOUND
    assert not [one for one in cycle(told.engine, 2) if isinstance(one, Evict | Bind)]
    told.engine.state.validate()
