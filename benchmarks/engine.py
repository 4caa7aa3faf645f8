"""The engine alone: how fast gangs are placed by class, compared with placing their pods one by one.

Both do the same work on the same cluster: the same events, the same cycle, the same decisions. The reference evaluates
every node again for each pod, vectorised over the nodes; the fast path must give exactly the same placements. Measured
is this process's CPU time, so a busy machine does not distort the ratio.
"""

from __future__ import annotations

import gc
import resource
import time
from typing import Any, NamedTuple

from benchmarks import load as loads
from enbloc import config as configs
from enbloc.engine.decisions import Bind
from enbloc.engine.engine import Engine
from enbloc.units import SECOND

_IDLE_ROUNDS = 200


class Measured(NamedTuple):
    """One engine's result, and its CPU time."""

    placements: dict[str, str]
    seconds: float
    idle_ms: float


def run(nodes: int, pods: int, gang_size: int, seed: int) -> dict[str, Any]:
    """Places the load twice, by class and one by one, and compares."""
    fast = _measure(nodes, pods, gang_size, seed, plain=False)
    reference = _measure(nodes, pods, gang_size, seed, plain=True)
    rate = len(fast.placements) / fast.seconds
    reference_rate = len(reference.placements) / reference.seconds
    return {
        "nodes": nodes,
        "pods": pods,
        "gang_size": gang_size,
        "bound": len(fast.placements),
        "pods_per_s": round(rate),
        "reference_pods_per_s": round(reference_rate),
        "ratio": round(rate / reference_rate, 2) if reference_rate else 0.0,
        "identical": fast.placements == reference.placements,
        "cycle_idle_ms": round(fast.idle_ms, 4),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _measure(nodes: int, pods: int, gang_size: int, seed: int, plain: bool) -> Measured:
    engine = Engine(configs.parse(None), plain=plain)
    loads.put_nodes(engine, nodes)
    engine.run(0)
    load = list(loads.gangs(pods, gang_size, seed))
    loads.put_gangs(engine, load)
    gc.collect()
    gc.freeze()  # the loaded objects stay: the garbage collector need not traverse them again
    begin = time.process_time()
    decisions = engine.run(0)
    seconds = time.process_time() - begin
    binds = [decision for decision in decisions if isinstance(decision, Bind)]
    placements = {placement.uid: placement.node for bind in binds for placement in bind.placements}
    loads.acknowledge(engine, load, binds)
    engine.run(SECOND)
    begin = time.process_time()
    for _ in range(_IDLE_ROUNDS):
        engine.run(2 * SECOND)
    idle_ms = (time.process_time() - begin) / _IDLE_ROUNDS * 1e3
    gc.unfreeze()
    return Measured(placements, seconds, idle_ms)
