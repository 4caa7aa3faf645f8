"""Random loads that contend for too little room.

A load is made from a number, so that a number is all it takes to have it again; one that fails is shortened by leaving
documents out (`shortened`), which is quicker than to have hypothesis shrink it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from enbloc.api.meta import Obj
from enbloc.gangs.hints import COOLDOWN, PREEMPTABLE, RUN_TIME
from support import manifests as m

CLASSES = [
    m.priority_class("low", 10),
    m.priority_class("mid", 100),
    m.priority_class("high", 1000),
    {**m.priority_class("nonpreempting", 1000), "preemptionPolicy": "Never"},
]


class Load(NamedTuple):
    """Documents and the config that they run under."""

    config: Obj
    documents: list[Obj]

    def __str__(self) -> str:
        return yaml.safe_dump_all([self.config, *self.documents], sort_keys=False)


class Kind(NamedTuple):
    """What may happen in a load."""

    evictions: bool = True
    reserve: bool = True
    easy: bool | None = None
    """`None`: drawn."""
    queues: bool = True
    losses: bool = False
    """Nodes fail and come back, and objects are deleted."""
    exact: bool = False
    """Every pod declares its run time, and runs so long."""


def make_load(seed: int, kind: Kind) -> Load:
    draw = random.Random(seed)
    documents = [*CLASSES, *_queues(draw, kind)]
    count = draw.randint(1, 3)
    size = draw.choice([2, 3, 4])
    documents += [m.node(f"n{i}", draw.choice([size, 3]), pods=draw.choice([110, 110, 3])) for i in range(count)]
    if kind.evictions and draw.random() < 0.3:
        documents.append(_budget(draw))
    gangs = draw.randint(2, 8)
    for number in range(gangs):
        early = number < gangs / 2
        at = draw.choice([0, 0, 1]) if early else draw.randint(1, 20)
        documents += _gang(draw, kind, f"g{number}", f"{at}s", early)
    if kind.losses:
        documents += _losses(draw, count)
    return Load(_config(draw, kind), documents)


def _config(draw: random.Random, kind: Kind) -> Obj:
    easy = draw.random() < 0.4 if kind.easy is None else kind.easy
    actions: list[Obj] = [{"name": "enqueue"}, {"name": "allocate"}]
    actions.append({"name": "backfill", "arguments": {"mode": "easy" if easy else "best-effort"}})
    if kind.evictions:
        actions += [{"name": "preempt"}, {"name": "reclaim"}]
    if kind.reserve:
        threshold, percent = draw.choice([1, 3, 8]), draw.choice([1, 34, 50, 100])
        actions.append(
            {
                "name": "reserve",
                "arguments": {"starvingJobTimeThreshold": threshold, "reservedNodePercent": percent},
            }
        )
    return {"actions": actions}


def _queues(draw: random.Random, kind: Kind) -> list[Obj]:
    if not kind.queues:
        return []
    explicit = draw.random() < 0.3
    found = []
    for name in ("a", "b"):
        spec: dict[str, Any] = {"weight": draw.choice([1, 1, 3])}
        if explicit and draw.random() < 0.8:
            spec["deserved"] = {"cpu": str(draw.randint(1, 5))}
        if draw.random() < 0.15:
            spec["guarantee"] = {"cpu": "1"}
        if draw.random() < 0.15:
            spec["capability"] = {"cpu": str(draw.randint(2, 6))}
        if draw.random() < 0.15:
            spec["reclaimable"] = False
        found.append(m.queue(name, **spec))
    return found


def _budget(draw: random.Random) -> Obj:
    limit = draw.choice([{"minAvailable": draw.randint(1, 3)}, {"maxUnavailable": draw.randint(0, 2)}])
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "pdb", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}, **limit},
    }


def _gang(draw: random.Random, kind: Kind, name: str, at: str, early: bool) -> list[Obj]:
    """Those that come early tend to be lower and to run longer, so that others contend with them."""
    runs = [5, 10, 30] if kind.exact else [10, 30, None]
    run = draw.choice(runs if early else [2, 5, 10, 30])
    notes: dict[str, str] = {}
    if kind.exact:
        notes[RUN_TIME] = f"{run}s"
    elif draw.random() < 0.5:
        notes[RUN_TIME] = f"{draw.choice([run or 7, 3, 12])}s"
    if not kind.exact and draw.random() < 0.1:
        notes[PREEMPTABLE] = "false"
    if not kind.exact and draw.random() < 0.15:
        notes[COOLDOWN] = draw.choice(["3s", "9s"])
    life = {
        "run_time": None if run is None else f"{run}s",
        "stop_delay": None if kind.exact else draw.choice([None, None, "2s", "7s"]),
    }
    classes = [None, "low", "low", "mid"] if early else [None, "low", "mid", "high", "high", "nonpreempting"]
    priority = draw.choice(classes)
    cpu: Any = draw.choice([1, 1, 1, 2, 3])
    if draw.random() < 0.07:
        cpu = None
    in_queue = draw.choice(["default", "a", "b"]) if kind.queues else None
    count = draw.choice([1, 1, 2, 3, 4])
    minimum = draw.choice([count, draw.randint(1, count)])
    labels = {"app": draw.choice(["db", "web"])}
    form = draw.choice(["job", "group", "group", "pod"])
    if kind.exact and form == "job":
        form = "group"  # a job is enqueued when there is room: it may come after those behind it
    if form == "pod":
        return [m.pod(name, cpu, at=at, annotations=notes, labels=labels, priority=priority, **life)]
    if form == "group":
        more = {"group_priority": priority, "queue": in_queue}
        return m.gang(name, count, minimum, cpu, at=at, annotations=notes, labels=labels, **more, **life)
    workers = m.role("w", count, minimum, cpu=cpu, **life)
    roles = [workers]
    if draw.random() < 0.3:
        roles.append(m.role("m", 1, 1, cpu=1, **life))
    for one in roles:
        one["template"]["metadata"]["annotations"] |= notes
        one["template"]["metadata"]["labels"] = labels
    return [m.job(name, *roles, at=at, priority=priority, queue=in_queue)]


def _losses(draw: random.Random, nodes: int) -> list[Obj]:
    found = []
    for _ in range(draw.randint(1, 4)):
        at, name = f"{draw.randint(1, 30)}s", f"n{draw.randrange(nodes)}"
        do = draw.choice(["fail", "delete", "cordon", "pod", "group", "job"])
        if do == "fail":
            found.append(m.step(at, "fail-node", "Node", name))
            if draw.random() < 0.7:
                found.append(m.step(f"{draw.randint(30, 45)}s", "recover-node", "Node", name))
        elif do == "delete":
            found.append(m.step(at, "delete", "Node", name))
        elif do == "cordon":
            found.append(m.step(at, "patch", "Node", name, patch={"spec": {"unschedulable": True}}))
            found.append(m.step("40s", "patch", "Node", name, patch={"spec": {"unschedulable": None}}))
        else:
            victim = f"g{draw.randrange(5)}"
            if do == "pod":
                found.append(m.step(at, "delete", "Pod", f"{victim}-{draw.randrange(2)}"))
            else:
                found.append(m.step(at, "delete", "PodGroup" if do == "group" else "Job", victim))
    return found


def shortened(load: Load, fails: Callable[[Load], bool], seconds: float = 10.0) -> Load:
    """As few documents as still fail, as far as there is time."""
    end = time.monotonic() + seconds
    documents, size = load.documents, max(1, len(load.documents) // 2)
    while time.monotonic() < end:
        for start in range(0, len(documents), size):
            fewer = [*documents[:start], *documents[start + size :]]
            if time.monotonic() < end and fails(load._replace(documents=fewer)):
                documents = fewer
                break
        else:
            if size == 1:
                break
            size //= 2
    return load._replace(documents=documents)
