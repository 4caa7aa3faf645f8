"""A load for benchmarks: nodes of several sizes, gangs of several classes, some with selectors, some with tolerations.
The same numbers and seed give the same load."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from enbloc.engine.core.tables.nodes import NodeFacts, TaintFact
from enbloc.engine.core.tables.queues import QueueFacts
from enbloc.engine.core.tables.tasks import PodFacts, TaskStatus
from enbloc.engine.decisions import Bind
from enbloc.engine.engine import Engine
from enbloc.gangs.model import GangKey, GangSpec, Membership
from enbloc.units import NANO

_GI = 2**30 * NANO
_DEDICATED = TaintFact("dedicated", "batch", "NoSchedule")
_TOLERATES = [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]


class Gang(NamedTuple):
    spec: GangSpec
    pods: list[PodFacts]


def nodes(count: int) -> Iterator[NodeFacts]:
    """Three pools of different size in four zones; every tenth node is tainted."""
    for number in range(count):
        pool = number % 3
        yield NodeFacts(
            name=f"node-{number:05d}",
            created_ns=0,
            labels={"pool": "abc"[pool], "zone": f"z{number % 4}", "kubernetes.io/hostname": f"node-{number:05d}"},
            allocatable={
                "cpu": (16, 32, 64)[pool] * NANO,
                "memory": (64, 128, 256)[pool] * _GI,
                "pods": 110 * NANO,
                "nvidia.com/gpu": (0, 0, 8)[pool] * NANO,
            },
            taints=(_DEDICATED,) if number % 10 == 0 else (),
            unschedulable=False,
            ready=True,
        )


_CLASSES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plain", {}),
    ("pool-a", {"nodeSelector": {"pool": "a"}}),
    ("zone", {"nodeSelector": {"zone": "z1"}}),
    ("tolerant", {"tolerations": _TOLERATES}),
    ("tolerant-b", {"nodeSelector": {"pool": "b"}, "tolerations": _TOLERATES}),
)
_SIZES = (("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"))


def gangs(pods: int, size: int, seed: int) -> Iterator[Gang]:
    """Gangs of `size` equal pods, each gang of one of fifteen classes."""
    dice = random.Random(seed)
    for number in range(-(-pods // size)):
        _, placement = dice.choice(_CLASSES)
        cpu, memory = dice.choice(_SIZES)
        spec = {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}], **placement}
        key = GangKey("volcano", "bench", f"gang-{number:06d}")
        members = min(size, pods - number * size)
        gang = GangSpec(
            key=key, title=f"bench/{key.name}", created_ns=number, minimum=members, minima={"worker": members}
        )
        yield Gang(gang, [pod(key, index, spec, number) for index in range(members)])


def pod(key: GangKey, index: int, spec: dict[str, Any], created_ns: int) -> PodFacts:
    name = f"{key.name}-worker-{index}"
    return PodFacts(
        uid=name,
        namespace="bench",
        name=name,
        labels={"job": key.name},
        spec=spec,
        created_ns=created_ns,
        priority=0,
        node="",
        status=TaskStatus.PENDING,
        ours=True,
    )


def put_queues(engine: Engine) -> None:
    engine.state.put_queue(QueueFacts("root"))
    engine.state.put_queue(QueueFacts("default", parent="root"))


def put_nodes(engine: Engine, count: int) -> None:
    put_queues(engine)
    for facts in nodes(count):
        engine.state.put_node(facts)


def put_gangs(engine: Engine, load: list[Gang]) -> None:
    for gang in load:
        engine.state.put_gang(gang.spec)
        for index, facts in enumerate(gang.pods):
            put_pod(engine, gang, facts, index)


def put_pod(engine: Engine, gang: Gang, facts: PodFacts, index: int) -> None:
    engine.state.put_pod(facts, Membership(gang.spec.key, "worker", index), lambda: gang.spec)


def acknowledge(engine: Engine, load: list[Gang], binds: list[Bind]) -> None:
    """The API's echo: every Binding comes back as a pod with a node."""

    nodes_of = {placement.uid: placement.node for bind in binds for placement in bind.placements}
    marks = {bind.gang: bind.mark for bind in binds}
    for gang in load:
        for index, facts in enumerate(gang.pods):
            if facts.uid in nodes_of:
                mark = marks[gang.spec.key]
                bound = msgspec.structs.replace(facts, node=nodes_of[facts.uid], status=TaskStatus.BOUND, mark=mark)
                put_pod(engine, gang, bound, index)
