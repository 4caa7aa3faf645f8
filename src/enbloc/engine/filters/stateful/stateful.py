"""All predicates that depend on what else is placed, as one: what the engine calls.

A task that none of them has anything to say about may be placed in bulk; `add` and `remove` are called for every
task all the same, since others may look for it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Literal

from enbloc.engine.filters.filter import MovingPredicate, Placeable
from enbloc.engine.filters.stateful.affinity import PodAffinity
from enbloc.engine.filters.stateful.assigned_pods import AssignedPods
from enbloc.engine.filters.stateful.assumed_volumes import AssumedVolumes
from enbloc.engine.filters.stateful.exclusive_claims import ExclusiveClaims
from enbloc.engine.filters.stateful.ports import HostPorts, host_ports
from enbloc.engine.filters.stateful.spread import TopologySpread
from enbloc.engine.filters.volumes import VolumeBook
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints

ScoreKind = Literal["affinity", "spread"]


class StatefulFilters:
    """Ports, volumes, spread and affinity over one census of placed tasks."""

    def __init__(self, nodes: NodeTable, book: VolumeBook, rules: bool = True) -> None:
        """Without `rules` nobody is turned away by affinity or spread; ports and volumes can be used only once."""
        self._census = AssignedPods(nodes)
        self._ports = HostPorts(nodes)
        self._claims = ExclusiveClaims(nodes, book)
        self._volumes = AssumedVolumes(nodes, book)
        self._affinity = PodAffinity(self._census)
        self._spread = TopologySpread(self._census)
        self._order = (self._ports, self._claims, self._volumes, self._spread, self._affinity)
        self._asked = self._order if rules else (self._ports, self._claims, self._volumes)
        self._tellings: dict[int, tuple[MovingPredicate, ...]] = {}

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        return self._affinity.set_namespace(name, labels)

    @property
    def carries(self) -> bool:
        """Whether anybody who is placed has a term about others: if not, a plain class concerns nobody."""
        return self._affinity.carries

    def assumes_volume(self, claim: tuple[str, str]) -> bool:
        """Whether a volume is kept for a claim that waits, by namespace and name: then it concerns others too."""
        return self._volumes.assumes(claim)

    def applies(self, task: Placeable) -> bool:
        if task.cls.plain and not self._affinity.carries:
            return False
        return (
            self._affinity.applies(task)
            or self._spread.applies(task)
            or self._ports.applies(task)
            or self._claims.applies(task)
            or self._volumes.applies(task)
        )

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        """`(reason, rows that pass)`, in the order in which kube-scheduler would ask."""
        found: list[tuple[str, Bools]] = []
        for predicate in self._asked:
            if predicate.applies(task):
                found += predicate.masks(task)
        return found

    def scores(self, task: Placeable, among: Bools | None = None) -> list[tuple[ScoreKind, Ints]]:
        """0..100 by row, over the rows `among` (all living ones if not given). Weights are the plugins' business."""
        found: list[tuple[ScoreKind, Ints]] = []
        if self._affinity.applies(task):
            affinity = self._affinity.score(task, among)
            if affinity is not None:
                found.append(("affinity", affinity))
        if self._spread.applies(task):
            spread = self._spread.score(task, among)
            if spread is not None:
                found.append(("spread", spread))
        return found

    def volumes_to_bind(self, uid: str) -> dict[str, str]:
        """Claim → volume that a placed task's claims are to be bound to; other waiting ones get a selected node."""
        return self._volumes.of(uid)

    def add(self, task: Placeable, row: int) -> None:
        """The task is placed on the row. One that is placed already must be removed first."""
        for predicate in self._told(task.cls):
            predicate.add(task, row)
        self._census.add(task, row)

    def add_all(self, tasks: Sequence[Placeable], rows: Sequence[int]) -> None:
        """The same for tasks of one class."""
        for predicate in self._told(tasks[0].cls):
            for task, row in zip(tasks, rows, strict=True):
                predicate.add(task, row)
        self._census.add_all(tasks, rows)

    def remove(self, task: Placeable, row: int) -> None:
        """The exact inverse. What is taken back is what was added, were the task another object by now."""
        placed = self._census.task(task.uid)
        for predicate in self._told(placed.cls):
            predicate.remove(placed, row)
        self._census.remove(placed, row)

    def residents(self, name: str) -> Collection[Placeable]:
        """All that is placed on a node, the terminating included."""
        return self._census.residents(name)

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone: what was worked out for them is forgotten."""
        self._tellings = {ident: told for ident, told in self._tellings.items() if ident in alive}
        for keeper in (self._ports, self._volumes, self._affinity, self._spread):
            keeper.keep(alive)

    def digest(self) -> object:
        return (self._census.digest(), *[predicate.digest() for predicate in self._order])

    def validate(self) -> None:
        """Every count equals one that is taken anew: for the tests, after each step."""
        self._census.validate()

    def _told(self, cls: TaskClass) -> tuple[MovingPredicate, ...]:
        """Who keeps anything of a task of that class, besides the census: for a plain one nobody."""
        found = self._tellings.get(cls.id)
        if found is None:
            told: list[MovingPredicate] = []
            if host_ports(cls.spec):
                told.append(self._ports)
            if cls.spec.volumes:
                told += (self._claims, self._volumes)
            if cls.spec.affinity is not None:
                told.append(self._affinity)
            found = self._tellings[cls.id] = tuple(told)
        return found
