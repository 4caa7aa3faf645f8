"""The cost of decisions under contention: preempt, reclaim and reserve, compared with placing the same gang on free
nodes.

A cluster is filled with pods: single ones and gangs, some elastic, of several priorities and run times. A gang arrives;
measured is the whole cycle that decides for it, as in a running scheduler: all caches are warm, and the changes since
the cycle before are those of an earlier decision.

- allocate: part of the nodes is still empty; the gang is bound there;
- preempt: the cluster is full; the gang does not fit, and victims of lower priority in its queue are chosen;
- reclaim: the same between queues: the gang's queue is below its share, the others are above theirs;
- reserve: the gang begins to starve, and nodes are reserved for it.

After each decision the state is restored, and the next round has a new gang. Measured is this process's CPU time. Each
figure is the median of several rounds, and the decisions are measured in turn, since the load of a machine varies.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks import load as loads
from enbloc import config as configs
from enbloc.engine.core.tables.nodes import NodeFacts
from enbloc.engine.core.tables.queues import QueueFacts
from enbloc.engine.core.tables.tasks import PodFacts, TaskStatus
from enbloc.engine.decisions import Bind, Decision, Evict, SetAside
from enbloc.engine.engine import Engine
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.hints import SchedulingHints
from enbloc.gangs.model import GangKey, GangSpec, Membership
from enbloc.units import NANO, SECOND

PASSES, ROUNDS = 3, 6
"""How often all decisions are measured in turn, and how often each; the first of each time is not counted."""
STARVES_AFTER = 60 * SECOND

_HIGH = 1_000_000
_RICH, _POOR = "default", "poor"
"""The queues that use everything, and the one that uses nothing yet."""
_HEADROOM = 20
"""One in this many nodes is empty at first."""
_REQUEST = {"cpu": "4", "memory": "8Gi"}


Slot = tuple[str, dict[str, str]]
"""A node, and a pod's requests on it."""


class Kind(NamedTuple):
    """What fills the cluster."""

    gang_size: int = 20
    alone: float = 0.5
    """The share of pods without a gang."""
    priorities: int = 4
    queues: int = 1
    budgets: int = 0


KINDS = {
    "mixed": Kind(),
    "alone": Kind(alone=1.0),
    "gangs": Kind(alone=0.0),
    "large-gangs": Kind(gang_size=1000, alone=0.0),
    "priorities": Kind(priorities=20),
    "budgets": Kind(budgets=50),
    "queues": Kind(queues=200),
}


def run(
    nodes: int, pods: int, gang_size: int, kind: str, seed: int, passes: int = PASSES, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Fills a cluster and measures every decision in it."""
    filled = KINDS[kind]._replace(queues=min(KINDS[kind].queues, max(1, pods // 200)))
    bench = _Bench(nodes, pods, gang_size, filled, random.Random(seed))
    taken: dict[str, list[float]] = {"allocate": [], "preempt": [], "reclaim": [], "reserve": []}
    first = 0.0
    for number in range(passes):
        taken["allocate"] += bench.measure(rounds, bench.allocate)[1:]
        bench.fill_up()
        for name, decision in (("preempt", bench.preempt), ("reclaim", bench.reclaim), ("reserve", bench.reserve)):
            seconds = bench.measure(rounds, decision)
            taken[name] += seconds[1:]
            first = seconds[0] if name == "preempt" and number == 0 else first
        bench.vacate()
    middle = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return {
        "nodes": nodes,
        "pods": pods,
        "gang_size": gang_size,
        "load": kind,
        **{f"{name}_ms": round(seconds * 1e3, 3) for name, seconds in middle.items()},
        **{
            f"{name}_ratio": round(seconds / middle["allocate"], 2)
            for name, seconds in middle.items()
            if name != "allocate"
        },
        "preempt_first_ms": round(first * 1e3, 3),
        "victims": bench.victims,
    }


class Unmeasurable(Exception):
    """The decision to be measured was not made: the gang is too large for such a cluster."""


class _Bench:
    """A cluster, and gangs that arrive one after the other."""

    def __init__(self, nodes: int, pods: int, gang_size: int, kind: Kind, dice: random.Random) -> None:
        reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": STARVES_AFTER // SECOND}}
        actions = ["enqueue", "allocate", "backfill", "preempt", "reclaim", reserve]
        self._engine = Engine(configs.parse({"actions": actions}))
        self._gang_size = gang_size
        self._now = 1000 * SECOND
        self._comers = 0
        self.victims = 0
        """How many pods the last preempt decided to evict."""
        cluster = list(loads.nodes(nodes))
        for facts in _queues(cluster, kind):
            self._engine.state.put_queue(facts)
        for number in range(kind.budgets):
            self._engine.state.put_budget(_budget(number), gone=False)
        for node in cluster:
            self._engine.state.put_node(node)
        full = [node for number, node in enumerate(cluster) if number % _HEADROOM != 1]
        empty = [node for number, node in enumerate(cluster) if number % _HEADROOM == 1]
        self._later = list(_filling("late", empty, pods * len(empty) // nodes, kind, dice))
        """Pods that are added to fill the empty nodes."""
        for spec, pod, index in _filling("early", full, pods - len(self._later), kind, dice):
            self._put(spec, pod, index)
        self._cycle()
        self._cycle()

    def fill_up(self) -> None:
        """Fills the empty nodes."""
        for spec, pod, index in self._later:
            self._put(spec, pod, index)
        self._cycle()
        self._cycle()

    def vacate(self) -> None:
        """Empties them again."""
        for spec, pod, _ in self._later:
            self._engine.state.remove_pod(pod.uid)
            self._engine.state.remove_gang(spec.key)
        self._cycle()
        self._cycle()

    def measure(self, rounds: int, decision: Callable[[], float]) -> list[float]:
        gc.collect()
        gc.freeze()  # the loaded objects stay: the garbage collector need not traverse them again
        found = [decision() for _ in range(rounds)]
        gc.unfreeze()
        return found

    # ---- the decisions

    def allocate(self) -> float:
        spec = self._come(_HIGH, _RICH)
        seconds, decisions = self._cycle()
        bound = sum(len(one.placements) for one in decisions if isinstance(one, Bind))
        self._expect(bound == self._gang_size, "is not placed on the empty nodes")
        self._go(spec)
        return seconds

    def preempt(self) -> float:
        return self._evicting(self._come(_HIGH, _RICH))

    def reclaim(self) -> float:
        return self._evicting(self._come(0, _POOR))

    def reserve(self) -> float:
        spec = self._come(0, _RICH)
        self._cycle()
        self._now += STARVES_AFTER
        seconds, decisions = self._cycle()
        reserved = [
            one for one in decisions if isinstance(one, SetAside) and one.kind is ClaimKind.RESERVE and one.record
        ]
        self._expect([one.gang for one in reserved] == [spec.key], "gets no reservation")
        self._go(spec)
        return seconds

    def _evicting(self, spec: GangSpec) -> float:
        seconds, decisions = self._cycle()
        evicted = [one for one in decisions if isinstance(one, Evict)]
        self._expect({one.preemptor for one in evicted} == {spec.key}, "gets no victims")
        self.victims = self.victims or len(evicted)
        self._go(spec)
        for one in evicted:
            self._engine.state.unevict(one.uid)
        self._cycle()
        return seconds

    def _expect(self, so: bool, otherwise: str) -> None:
        if not so:
            raise Unmeasurable(f"a gang of {self._gang_size} pods {otherwise}")

    # ---- gangs and pods that come and go

    def _come(self, priority: int, queue: str) -> GangSpec:
        self._comers += 1
        key = GangKey("volcano", "bench", f"comer-{self._comers:06d}")
        size = self._gang_size
        spec = GangSpec(key, f"bench/{key.name}", self._now, size, {"worker": size}, queue, priority)
        containers = [{"resources": {"requests": _REQUEST}}]
        for index in range(size):
            pod = _pod(f"{key.name}-worker-{index}", {"containers": containers}, priority, "", TaskStatus.PENDING)
            self._put(spec, pod, index)
        return spec

    def _put(self, spec: GangSpec, pod: PodFacts, index: int) -> None:
        if index == 0:
            self._engine.state.put_gang(spec)
        self._engine.state.put_pod(pod, Membership(spec.key, "worker", index), lambda: spec)

    def _go(self, spec: GangSpec) -> None:
        for index in range(self._gang_size):
            self._engine.state.remove_pod(f"{spec.key.name}-worker-{index}")
        self._engine.state.remove_gang(spec.key)
        self._cycle()

    def _cycle(self) -> tuple[float, list[Decision]]:
        self._now += SECOND
        begin = time.process_time()
        decisions = self._engine.run(self._now)
        return time.process_time() - begin, decisions


def _queues(cluster: list[NodeFacts], kind: Kind) -> Iterator[QueueFacts]:
    """The poor queue deserves a tenth of everything, the others share the rest."""
    totals = {name: sum(node.allocatable[name] for node in cluster) for name in ("cpu", "memory")}
    tenth = {name: amount // 10 for name, amount in totals.items()}
    part = {name: (amount - tenth[name]) // kind.queues for name, amount in totals.items()}
    yield QueueFacts("root")
    yield QueueFacts(_POOR, parent="root", deserved=tenth)
    for number in range(kind.queues):
        yield QueueFacts(_queue(number), parent="root", deserved=part)


def _queue(number: int) -> str:
    return _RICH if number == 0 else f"queue-{number}"


def _budget(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "bench", "name": f"budget-{number}"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": f"app-{number}"}}},
    }


def _filling(
    prefix: str, cluster: list[NodeFacts], pods: int, kind: Kind, dice: random.Random
) -> Iterator[tuple[GangSpec, PodFacts, int]]:
    """Pods that leave no node free, in gangs spread over the cluster."""
    slots = [
        slot for number, node in enumerate(cluster) for slot in _slots(node, _part(pods, len(cluster), number), dice)
    ]
    dice.shuffle(slots)
    alone = round(len(slots) * kind.alone)
    cuts = [*range(alone), *range(alone, len(slots), kind.gang_size), len(slots)]
    for number, (first, end) in enumerate(itertools.pairwise(cuts)):
        name = f"{prefix}-{number:06d}"
        size = end - first
        minimum = size if number % 4 else max(1, size // 2)
        spec = GangSpec(
            GangKey("volcano", "bench", name),
            f"bench/{name}",
            number,
            minimum,
            {"worker": minimum},
            _queue(number % kind.queues),
            dice.randrange(kind.priorities),
            hints=SchedulingHints(run_time_ns=dice.randrange(600, 36_000) * SECOND if number % 2 else None),
        )
        for index, (node, request) in enumerate(slots[first:end]):
            containers = [{"resources": {"requests": request}}]
            labels = {"app": f"app-{number % 200}"}
            pod = _pod(
                f"{name}-worker-{index}", {"containers": containers}, spec.priority or 0, node, TaskStatus.BOUND, labels
            )
            yield spec, pod, index


def _part(pods: int, nodes: int, number: int) -> int:
    """How many of the pods are on this node."""
    return pods * (number + 1) // nodes - pods * number // nodes


def _slots(node: NodeFacts, count: int, dice: random.Random) -> list[Slot]:
    """Requests that divide a node among `count` pods, small and large ones."""
    parts = [dice.choice((1, 2, 4)) for _ in range(count)]
    milli = node.allocatable["cpu"] // (NANO // 1000)
    mebi = node.allocatable["memory"] // NANO // 2**20
    total = sum(parts)
    return [(node.name, {"cpu": f"{milli * part // total}m", "memory": f"{mebi * part // total}Mi"}) for part in parts]


def _pod(
    name: str, spec: dict[str, Any], priority: int, node: str, status: TaskStatus, labels: dict[str, str] | None = None
) -> PodFacts:
    return PodFacts(
        uid=name,
        namespace="bench",
        name=name,
        labels=labels or {},
        spec=spec,
        created_ns=0,
        priority=priority,
        node=node,
        status=status,
        ours=True,
        since_ns=0 if node else None,
    )
