"""Figures of the engine and of simulations, for the page, in CPU time: other load distorts them little."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from benchmarks import engine as engine_bench
from benchmarks import load as loads
from benchmarks.growth_cases import CASES
from enbloc import config as configs
from enbloc import garbage_collector
from enbloc.engine.decisions import Bind
from enbloc.engine.engine import Engine
from enbloc.gangs.model import GangKey
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation

ROUNDS: Final = 200
PENDING: Final = 5_000
_WRITES: Final = ("create", "provide", "patch", "replace", "delete", "remove_pod", "bind", "evict", "emit", "execute")


def figures(nodes: int = 5_000, pods: int = 20_000) -> dict[str, Any]:
    """Everything that needs no API server."""
    return {
        "engine": {str(size): engine_bench.run(nodes, pods, size, 1) for size in (20, 64)},
        "pending_cycle_ratio": round(cycle_ms(PENDING) / cycle_ms(0), 2),
        "simulation_share": round(statistics.median(simulation_share() for _ in range(3)), 3),
    }


def cycle_ms(pending: int) -> float:
    """A cycle in which one gang of 20 arrives and is bound, while other gangs wait that do not fit."""
    engine = Engine(configs.parse(None))
    loads.put_nodes(engine, 500)
    engine.run(0)
    for gang in loads.gangs(pending, 1, 1):
        key = GangKey("volcano", "bench", f"large-{gang.spec.key.name}")
        large = {"containers": [{"resources": {"requests": {"cpu": "500", "memory": "1Gi"}}}]}
        spec = msgspec.structs.replace(gang.spec, key=key, title=f"bench/{key.name}")
        loads.put_gangs(engine, [loads.Gang(spec, [loads.pod(key, 0, large, 0)])])
    engine.run(0)
    arriving = list(loads.gangs(20 * ROUNDS, 20, 2))
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    for gang in arriving:
        loads.put_gangs(engine, [gang])
        assert any(isinstance(one, Bind) for one in engine.run(0)), "it fits"
    taken = time.process_time() - begun
    gc.unfreeze()
    return taken / ROUNDS * 1e3


def simulation_share(size: int = 200) -> float:
    """What a store needs for the writes of a simulation, as a part of what the simulation takes; Python's garbage
    collector is set as by `enbloc sim`."""
    with garbage_collector.relaxed(garbage_collector.BATCH):
        return _simulation_share(size)


def _simulation_share(size: int) -> float:
    calls: list[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = []
    simulation = _simulation(size)
    _follow(simulation, calls)
    begun = time.process_time()
    simulation.run()
    whole = time.process_time() - begun
    bare = _simulation(size)
    store, clock = bare._store, bare._clock
    begun = time.process_time()
    for at_ns, name, given, named in calls:
        clock.now_ns = at_ns
        getattr(store, name)(*given, **named)
    return (time.process_time() - begun) / whole


def _simulation(size: int) -> Simulation:
    objects = CASES["jobs-of-four"].objects(size)
    documents = (Document("bench", number, obj) for number, obj in enumerate(objects, 1))
    return Simulation(read_scenario(documents), configs.parse(None))


def _follow(simulation: Simulation, calls: list[tuple[int, str, tuple[Any, ...], dict[str, Any]]]) -> None:
    """Notes every write to the simulation's store that was accepted; not those which a write makes itself."""
    store, clock, inside = simulation._store, simulation._clock, [False]

    def followed(name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if inside[0]:
                return write(*given, **named)
            inside[0] = True
            try:
                found = write(*given, **named)
            finally:
                inside[0] = False
            calls.append((clock.now_ns, name, given, named))
            return found

        return call

    for name in _WRITES:
        setattr(store, name, followed(name, getattr(store, name)))
