"""Gangs that must be in one rack: how fast they are placed, compared with the same gangs without that constraint.

Three figures of one run: the ratio of pods per second with and without the constraint; whether the placements are those
of a reference that attempts every rack; what a gang costs that fits in no rack, against one that fits. CPU time of this
process is measured.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from benchmarks import load as loads
from enbloc import config as configs
from enbloc.engine.decisions import Bind
from enbloc.engine.engine import Engine
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.topology import BY_LABEL, TopologyConstraint
from enbloc.units import SECOND

RACK: Final = "bench/rack"
_IN_RACK: Final = TopologyConstraint(f"{BY_LABEL}{RACK}", required=RACK)
_SIZES: Final = (4, 8, 16, 32, 64, 128, 256, 512)
_ROUNDS: Final = 15
_SMALL: Final = "100m"
_TOO_LARGE: Final = "16"
"""The CPUs of pods of which a whole gang fits in no rack, though some of them fit in each."""
_REFERENCE_ATTEMPTS: Final = 20_000
"""The reference attempts every rack for every gang: it places as many gangs as makes 20,000 attempts, which are all of
them in 50 racks."""


def run(nodes: int, racks: int, pods: int, seed: int) -> dict[str, Any]:
    plain, _ = _place(nodes, racks, pods, seed, None)
    with_racks, placements = _place(nodes, racks, pods, seed, _IN_RACK)
    first = _compared_pods(nodes, racks, pods, seed)
    fast = placements if first == pods else _place(nodes, racks, first, seed, _IN_RACK)[1]
    _, reference = _place(nodes, racks, first, seed, _IN_RACK, every_domain=True)
    fitting, unfittable = _single_gangs(nodes, racks)
    return {
        "nodes": nodes,
        "racks": racks,
        "pods": pods,
        "bound": len(placements),
        "pods_per_s": round(with_racks),
        "pods_per_s_without_topology": round(plain),
        "ratio": round(with_racks / plain, 2),
        "identical": fast == reference,
        "compared_pods": len(reference),
        "fitting_gang_ms": round(fitting * 1e3, 3),
        "unfittable_gang_ms": round(unfittable * 1e3, 3),
        "unfittable_ratio": round(unfittable / fitting, 2),
    }


def _compared_pods(nodes: int, racks: int, pods: int, seed: int) -> int:
    """How many of the first pods the reference places."""
    gangs = list(_gangs(pods, _capacity(nodes, racks), seed, None))[: _REFERENCE_ATTEMPTS // racks]
    return sum(len(gang.pods) for gang in gangs)


def _gangs(pods: int, most: int, seed: int, place: TopologyConstraint | None) -> Iterator[loads.Gang]:
    """Gangs of 4 to 512 equal pods, each of at most `most`."""
    dice = random.Random(seed)
    sizes = [size for size in _SIZES if size <= most]
    number = 0
    while pods > 0:
        size = min(dice.choice(sizes), pods)
        cpu = dice.choice(("500m", "1"))
        yield _gang(number, size, cpu, place)
        number, pods = number + 1, pods - size


def _gang(number: int, size: int, cpu: str, place: TopologyConstraint | None) -> loads.Gang:
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}
    key = GangKey("volcano", "bench", f"gang-{number:06d}")
    gang = GangSpec(
        key=key, title=f"bench/{key.name}", created_ns=number, minimum=size, minima={"worker": size}, topology=place
    )
    return loads.Gang(gang, [loads.pod(key, index, spec, number) for index in range(size)])


def _engine(nodes: int, racks: int, *, every_domain: bool = False) -> Engine:
    engine = Engine(configs.parse(None))
    engine.parts.placer.tries_every_domain = every_domain
    loads.put_queues(engine)
    for number, facts in enumerate(loads.nodes(nodes)):
        labels = {**facts.labels, RACK: f"rack-{number * racks // nodes}"}
        engine.state.put_node(msgspec.structs.replace(facts, labels=labels, taints=()))
    engine.run(0)
    return engine


def _place(
    nodes: int, racks: int, pods: int, seed: int, place: TopologyConstraint | None, *, every_domain: bool = False
) -> tuple[float, dict[str, str]]:
    """Pods per second, and where each pod was placed."""
    engine = _engine(nodes, racks, every_domain=every_domain)
    loads.put_gangs(engine, list(_gangs(pods, _capacity(nodes, racks), seed, place)))
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    decisions = engine.run(0)
    seconds = time.process_time() - begin
    gc.unfreeze()
    binds = [decision for decision in decisions if isinstance(decision, Bind)]
    found = {placement.uid: placement.node for bind in binds for placement in bind.placements}
    return len(found) / seconds, found


def _capacity(nodes: int, racks: int) -> int:
    """The pods of 1 CPU that an empty rack holds at least."""
    return nodes // racks // 3 * (16 + 32 + 64)


def _single_gangs(nodes: int, racks: int) -> tuple[float, float]:
    """The median seconds of a cycle for a gang that fits in a rack, and for one that fits in none."""
    engine = _engine(nodes, racks)
    size = min(256, _capacity(nodes, racks) // 2)
    times: dict[str, list[float]] = {_SMALL: [], _TOO_LARGE: []}
    for number in range(2 * _ROUNDS):
        cpu = (_SMALL, _TOO_LARGE)[number % 2]
        gang = _gang(number, size - number // 2, cpu, _IN_RACK)  # another size: another equivalence class
        loads.put_gangs(engine, [gang])
        begin = time.process_time()
        engine.run(SECOND)
        times[cpu].append(time.process_time() - begin)
        for pod in gang.pods:
            engine.state.remove_pod(pod.uid)
        engine.state.remove_gang(gang.spec.key)
        engine.run(SECOND)
    return statistics.median(times[_SMALL]), statistics.median(times[_TOO_LARGE])
