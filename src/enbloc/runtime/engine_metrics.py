"""Metrics that are read from the engine when Prometheus asks: gangs by queue and reason, queues by resource, nodes.

They cost nothing while no one asks. With `metrics.compat: volcano` in the config the queues also have the names that
Volcano's Grafana boards query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import numpy as np
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from enbloc.engine.core.tables.queues import Queue
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Ints
from enbloc.engine.core.tables.tasks import TaskStatus
from enbloc.engine.engine import Engine

_MILLI: Final = 1_000
MOST_DOMAINS: Final = 1_000
"""At most 1,000 topology domains are shown, from the top levels down: each costs series for good."""
OF_QUEUES: Final = {
    "used": "What pods of a queue and of the queues below it use.",
    "demand": "What they use plus what waiting gangs request.",
    "deserved": "What is a queue's share of the cluster, by weight or as it says.",
    "guarantee": "What is kept free for a queue.",
    "capability": "What a queue may use at most.",
}
REFERENCE: Final = {
    "enbloc_gangs": ("Gangs by queue, state and reason.", ("queue", "state", "reason")),
    **{f"enbloc_queue_{name}": (text, ("queue", "resource")) for name, text in OF_QUEUES.items()},
    "enbloc_queue_share": ("The largest part of what it deserves that a queue uses, over resources.", ("queue",)),
    "enbloc_node_allocatable": ("What all nodes have.", ("resource",)),
    "enbloc_node_used": ("What pods and claims occupy on all nodes.", ("resource",)),
    "enbloc_domain_allocatable": ("What the nodes of a topology domain have.", ("tree", "level", "domain", "resource")),
    "enbloc_domain_used": ("What pods and claims occupy there.", ("tree", "level", "domain", "resource")),
    "enbloc_claimed_pods": ("Pods that hold, or are nominated to, room without being bound.", ("kind",)),
}
_VOLCANO: Final = {"allocated": "used", "request": "demand", "deserved": "deserved", "capacity": "capability"}
"""Volcano's word for each amount of a queue. `real_capacity` is what `capability` leaves of the cluster."""

VOLCANO_REFERENCE: Final = {
    **{
        f"volcano_queue_{word}_{unit}": (f"{word} {what} of a queue", ("queue_name", *labels))
        for word in (*_VOLCANO, "real_capacity")
        for unit, what, labels in (
            ("milli_cpu", "CPU", ()),
            ("memory_bytes", "memory", ()),
            ("scalar_resources", "other resources in thousandths", ("resource",)),
        )
    },
    "volcano_queue_share": ("used of deserved", ("queue_name",)),
    "volcano_queue_weight": ("weight of a queue", ("queue_name",)),
    "volcano_queue_overused": ("whether a queue uses more than it deserves", ("queue_name",)),
    "volcano_unschedule_job_count": ("gangs that wait", ()),
    "volcano_unschedule_task_count": ("pods that a waiting gang lacks", ("job_id",)),
}


class EngineMetrics(Collector):
    """Registered once; `engine` is called at each scrape, and may return none while there is no scheduler."""

    def __init__(self, engine: Callable[[], Engine | None], *, volcano: bool = False) -> None:
        self._engine = engine
        self._volcano = volcano

    def collect(self) -> Iterator[GaugeMetricFamily]:
        engine = self._engine()
        if engine is None:
            return
        yield _gangs(engine)
        queues = [queue for _, queue in sorted(engine.state.queues.queues.items()) if queue.exists]
        with _as_deserved_now(engine):
            of_queues = [_amounts(engine, queues, name) for name in OF_QUEUES]
            share = _family("enbloc_queue_share")
            for queue in queues:
                share.add_metric([queue.name], engine.state.queues.share(queue))
            volcano = list(_volcano_names(engine, queues)) if self._volcano else []
        yield from (*of_queues, share)
        yield from _nodes(engine)
        yield from _domains(engine)
        yield _claims(engine)
        yield from volcano


def _family(name: str) -> GaugeMetricFamily:
    text, labels = REFERENCE[name]
    return GaugeMetricFamily(name, text, labels=labels)


def _volcano_family(name: str) -> GaugeMetricFamily:
    text, labels = VOLCANO_REFERENCE[name]
    return GaugeMetricFamily(name, text, labels=labels)


def _gangs(engine: Engine) -> GaugeMetricFamily:
    counts: Counter[tuple[str, str, str]] = Counter()
    waiting = set()
    for entry in engine.pending():
        counts[entry.queue, "waiting", str(entry.reason)] += 1
        waiting.add(entry.gang)
    for gang in engine.state.gangs.values():
        if gang.spec.title not in waiting and any(task.node for task in gang.tasks.values()):
            counts[gang.spec.queue, "running", ""] += 1
    family = _family("enbloc_gangs")
    for labels, count in sorted(counts.items()):
        family.add_metric(labels, count)
    return family


def deserved_of(engine: Engine) -> dict[str, dict[str, float]]:
    """By queue and resource, what each deserves, in base units."""
    names = engine.state.resources.names
    with _as_deserved_now(engine):
        return {
            queue.name: {
                names[column]: _in_units(column, amount)
                for column, amount in _of_queue(engine, queue, "deserved")
                if amount and column != PODS
            }
            for queue in engine.state.queues.queues.values()
            if queue.exists
        }


def _as_deserved_now(engine: Engine) -> AbstractContextManager[None]:
    return engine.state.queues.as_deserved_now(engine.state.foreign_room.shared())


def _of_queue(engine: Engine, queue: Queue, name: str) -> Iterator[tuple[int, int]]:
    """`(column, amount)`; only what is set for limits, every resource in use for the others."""
    resources = engine.state.resources
    if name == "capability":
        yield from queue.limits.items()
    elif name == "guarantee":
        yield from resources.amounts(queue.facts.guarantee).items()
    else:
        amounts: Ints = getattr(queue, name)
        yield from ((column, int(amounts[column])) for column in range(min(len(amounts), len(resources))))


def _amounts(engine: Engine, queues: Sequence[Queue], name: str) -> GaugeMetricFamily:
    family = _family(f"enbloc_queue_{name}")
    names = engine.state.resources.names
    for queue in queues:
        for column, amount in _of_queue(engine, queue, name):
            if amount or name in ("used", "capability"):
                family.add_metric([queue.name, names[column]], _in_units(column, amount))
    return family


def _in_units(column: int, amount: int) -> float:
    return amount / _MILLI if column == CPU else float(amount)


def _nodes(engine: Engine) -> Iterator[GaugeMetricFamily]:
    allocatable, used = _family("enbloc_node_allocatable"), _family("enbloc_node_used")
    totals, free = engine.state.nodes.totals(), engine.state.free_total()
    for column, name in enumerate(engine.state.resources.names):
        if column < len(totals) and totals[column]:
            allocatable.add_metric([name], _in_units(column, int(totals[column])))
            used.add_metric([name], _in_units(column, int(totals[column] - free[column])))
    yield allocatable
    yield used


def _domains(engine: Engine) -> Iterator[GaugeMetricFamily]:
    """The fill of topology domains, in the resource that is scarce: accelerators where there are any, else CPUs."""
    allocatable, used = _family("enbloc_domain_allocatable"), _family("enbloc_domain_used")
    nodes, names = engine.state.nodes, engine.state.resources.names
    columns = [column for column, name in enumerate(names) if "/" in name and nodes.totals()[column]] or [CPU]
    left = MOST_DOMAINS
    for name in engine.state.trees.names():
        tree = engine.state.trees.tree(name)
        for level in tree.levels if tree is not None else ():
            for number, domain in enumerate(level.names):
                rows = np.flatnonzero((level.ids[: nodes.count] == number) & nodes.alive[: nodes.count])
                if not len(rows) or left <= 0:
                    continue
                left -= 1
                for column in columns:
                    total, free = int(nodes.allocatable[column, rows].sum()), int(nodes.free[column, rows].sum())
                    labels = [name, level.name, domain, names[column]]
                    allocatable.add_metric(labels, _in_units(column, total))
                    used.add_metric(labels, _in_units(column, total - free))
    yield allocatable
    yield used


def _claims(engine: Engine) -> GaugeMetricFamily:
    family = _family("enbloc_claimed_pods")
    statuses = Counter(task.status for gang in engine.state.gangs.values() for task in gang.tasks.values())
    family.add_metric(["held"], statuses[TaskStatus.HELD])
    family.add_metric(["nominated"], statuses[TaskStatus.NOMINATED])
    return family


def _volcano_names(engine: Engine, queues: Sequence[Queue]) -> Iterator[GaugeMetricFamily]:
    """The gauges of Volcano's queues, under its names and labels."""
    totals = engine.state.nodes.totals()
    for theirs, ours in (*_VOLCANO.items(), ("real_capacity", "capability")):
        cpu, memory, scalar = (
            _volcano_family(f"volcano_queue_{theirs}_{unit}")
            for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
        )
        for queue in queues:
            amounts = dict(_of_queue(engine, queue, ours))
            if theirs == "real_capacity":
                amounts = {column: amounts.get(column, int(total)) for column, total in enumerate(totals.tolist())}
            cpu.add_metric([queue.name], amounts.pop(CPU, 0))
            memory.add_metric([queue.name], amounts.pop(MEMORY, 0))
            amounts.pop(PODS, None)
            for column, amount in sorted(amounts.items()):
                if amount and column < len(engine.state.resources):
                    # Volcano has thousandths of these, too: 2 GPUs are 2,000.
                    scalar.add_metric([queue.name, engine.state.resources.names[column]], amount * _MILLI)
        yield from (cpu, memory, scalar)
    share = _volcano_family("volcano_queue_share")
    weight, overused = _volcano_family("volcano_queue_weight"), _volcano_family("volcano_queue_overused")
    for queue in queues:
        part = engine.state.queues.share(queue)
        share.add_metric([queue.name], part)
        weight.add_metric([queue.name], queue.facts.weight)
        overused.add_metric([queue.name], part > 1)
    yield from (share, weight, overused)
    waiting = engine.pending()
    jobs = _volcano_family("volcano_unschedule_job_count")
    jobs.add_metric([], len(waiting))
    yield jobs
    tasks = _volcano_family("volcano_unschedule_task_count")
    for entry in waiting[:MOST_DOMAINS]:
        tasks.add_metric([entry.gang], sum(entry.missing.values()))
    yield tasks
