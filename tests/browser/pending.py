"""A cluster in which gangs wait for every reason that a new user meets, and the words that name each cause."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from browser.served import GPU
from enbloc import Cluster
from support import manifests as m

RACK: Final = "topology.kubernetes.io/rack"
_CONFIG: Final = {"actions": "enqueue, allocate, backfill, reserve"}
_SETTLED_S: Final = 60.0
_STARVES: Final = {"volcano.sh/sla-waiting-time": "1s"}

CAUSES: Final = {
    "team-a/quota": "exceeded quota: q",
    "default/over-the-cap": "queue capped would use 6 nvidia.com/gpu, its capability is 4",
    "default/second-in-line": "behind default/first-in-line in the FIFO queue line",
    "default/two-of-four": "2 of 4 pods exist, 2 more are needed",
    "default/no-toleration": "untolerated taint {dedicated: infra}",
    "default/typo": "No node has label gpu-type=a10O; they have a100",
    "default/beside-a-reservation": "node(s) resource was(were) reserved",
    "default/beside-a-hold": "Insufficient nvidia.com/gpu",
    "default/pipeline": "pods of role worker are created once server is running (dependsOn)",
    "default/one-rack": "7 pods must fit in one domain of topology.kubernetes.io/rack",
    "default/too-large": "one pod needs 16 nvidia.com/gpu, the largest node has 8",
    "default/lost": "queue nowhere does not exist",
    "default/after-hours": "queue night is closed",
}
"""Each gang with words of its sentence that name the true cause."""
IN_THE_WAY: Final = {
    "default/beside-a-reservation": {"default/starving", "default/holder", "default/llama"},
    "default/beside-a-hold": {"default/starving", "default/holder", "default/llama"},
    "default/second-in-line": {"default/first-in-line"},
}
"""Whom the page of a gang names: those that hold what it waits for."""
REMEDIES: Final = {
    "default/typo": "select gpu-type=a100 instead of gpu-type=a10O",
    "default/no-toleration": "tolerate taint dedicated=infra:NoSchedule",
    "team-a/quota": "raise pods of quota q from 1 to 3",
}
"""What the page of a gang proposes."""


_ATTEMPTED_AGAIN: Final = {"default/over-the-cap"}
"""Its numbers of nodes change with those that come after it."""


def _nodes() -> list[m.Obj]:
    made = [
        m.node(f"n{number}", cpu=64, extra={GPU: 8}, labels={RACK: f"rack-{number // 2 + 1}", "gpu-type": "a100"})
        for number in range(7)
    ]
    taints = [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]
    return [*made, m.node("infra", cpu=64, extra={GPU: 8}, labels={RACK: "rack-4", "pool": "infra"}, taints=taints)]


def _queues() -> list[m.Obj]:
    return [
        m.queue("research", weight=2),
        m.queue("capped", capability={GPU: "4"}),
        m.queue("line", dequeueStrategy="fifo"),
        m.queue("night", state="Closed"),
    ]


def _waiting() -> list[list[m.Obj]]:
    one_gpu = {GPU: 1}
    rack = m.native_podgroup("one-rack", {"gang": {"minCount": 7}}, schedulingConstraints={"topology": [{"key": RACK}]})
    server = m.role("server", 1, cpu=1, start_delay="2h")
    workers = m.role("worker", 2, extra=one_gpu, depends_on={"name": ["server"]})
    return [
        [m.job("quota", m.role("worker", 3, extra=one_gpu), namespace="team-a")],
        m.gang("over-the-cap", 2, extra={GPU: 3}, queue="capped"),
        m.gang("first-in-line", 40, extra=one_gpu, queue="line"),
        m.gang("second-in-line", 1, extra=one_gpu, queue="line"),
        m.gang("two-of-four", 2, 4, extra=one_gpu),
        m.gang("no-toleration", 2, extra=one_gpu, nodeSelector={"pool": "infra"}),
        m.gang("typo", 2, extra=one_gpu, nodeSelector={"gpu-type": "a10O"}),
        m.gang("too-large", 1, extra={GPU: 16}),
        [m.pod("lost", extra=one_gpu, queue="nowhere")],
        [m.pod("after-hours", extra=one_gpu, queue="night")],
        [rack, *m.native_pods("one-rack", 7, extra=one_gpu)],
        [m.job("pipeline", server, workers)],
        [m.job("starving", m.role("worker", 2, extra={GPU: 8}), annotations=_STARVES)],
    ]


def _last() -> list[list[m.Obj]]:
    """They wait for what others reserved and hold by then."""
    return [
        m.gang("beside-a-reservation", 7, extra={GPU: 3}),
        m.koordinator_gang("holder", 6, mode=m.NON_STRICT, wait="2h", extra={GPU: 2}),
        m.gang("beside-a-hold", 4, extra={GPU: 2}),
    ]


@contextmanager
def pending_cluster() -> Iterator[Cluster]:
    quota = m.resource_quota(1) | {"metadata": m.metadata("q", "team-a")}
    with Cluster([*_nodes(), *_queues(), quota], config=_CONFIG) as cluster:
        for obj in m.gang("llama", 7, extra={GPU: 5}, queue="research"):
            cluster.create(obj)
        _until(cluster, lambda model: {gang["state"] for gang in model["gangs"]} == {"Running"})
        for objects in _waiting():
            for obj in objects:
                cluster.create(obj)
        _until(
            cluster,
            lambda model: any(gang["setAside"] for gang in model["gangs"] if gang["gang"] == "default/starving"),
        )
        for objects in _last():
            for obj in objects:
                cluster.create(obj)
        _until(cluster, _all_wait)
        yield cluster


def _all_wait(model: m.Obj) -> bool:
    states = {gang["gang"]: gang["sentence"] for gang in model["gangs"]}
    return all(words in states.get(name, "") for name, words in CAUSES.items() if name not in _ATTEMPTED_AGAIN)


def _until(cluster: Cluster, holds: Callable[[m.Obj], bool]) -> None:
    """Until the page's own model says so."""
    end_s = time.monotonic() + _SETTLED_S
    while True:
        with urllib.request.urlopen(f"{cluster.address}api/model", timeout=30) as answer:
            model = json.load(answer)
        if holds(model):
            return
        assert time.monotonic() < end_s, [(gang["gang"], gang["state"], gang["sentence"]) for gang in model["gangs"]]
        time.sleep(0.2)
