"""Evictions take several writes, and their echoes come one by one (P3)."""

from __future__ import annotations

from enbloc.config import parse
from enbloc.engine.decisions import Bind, Evict
from enbloc.engine.tables.tasks import TaskStatus
from support import manifests as m
from support.direct_scheduler import DirectScheduler


def bound(name: str) -> m.Obj:
    return m.pod(name, "1", nodeName="n", priority=10)


def test_p3_a_pod_with_an_eviction_condition_that_is_not_terminating_yet_is_releasing() -> None:
    """The first echo of an eviction is a pod with one more condition: no other pod is evicted because of it."""
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="2"))
    for name in ("a", "b"):
        direct.put(bound(name))
    direct.put(m.pod("vip", "1", priority=1000))
    (evicted,) = [one for one in direct.engine.run(1) if isinstance(one, Evict)]
    marked = bound(evicted.name)
    marked["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    direct.put(marked)
    assert direct.engine.state.tasks[evicted.uid].status is TaskStatus.RELEASING
    assert not [one for one in direct.engine.run(2) if isinstance(one, Evict | Bind)]
    direct.engine.state.validate()
    direct.delete("Pod", evicted.name)
    (placed,) = [one for one in direct.engine.run(3) if isinstance(one, Bind)]
    assert [(one.name, one.node) for one in placed.placements] == [("vip", "n")]


def test_p3_whose_eviction_was_refused_stays() -> None:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", cpu="1"))
    direct.put(bound("a"))
    direct.put(m.pod("vip", "1", priority=1000))
    (evicted,) = [one for one in direct.engine.run(1) if isinstance(one, Evict)]
    direct.engine.report(evicted, evicted.uid)
    assert direct.engine.state.tasks[evicted.uid].status is TaskStatus.BOUND
    assert not [one for one in direct.engine.run(2) if isinstance(one, Evict | Bind)]
    direct.engine.state.validate()
