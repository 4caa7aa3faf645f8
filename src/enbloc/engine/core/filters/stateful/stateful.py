"""All stateful filters behind one interface: those that depend on which pods are assigned where.

A task that none of them concerns may be placed in bulk. `add` and `remove` are called for every task all the same: the
requirements of other pods may match it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Generic, Literal

from enbloc.engine.core.filters.filter import Placeable, StatefulFilter
from enbloc.engine.core.filters.pod_terms import PodSelector
from enbloc.engine.core.filters.stateful.affinity import PodAffinity
from enbloc.engine.core.filters.stateful.assigned_pods import AssignedPods, PlaceableT
from enbloc.engine.core.filters.stateful.assumed_volumes import AssumedVolumes
from enbloc.engine.core.filters.stateful.exclusive_claims import ExclusiveClaims
from enbloc.engine.core.filters.stateful.ports import HostPorts, host_ports
from enbloc.engine.core.filters.stateful.spread import TopologySpread
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.events import EventKind

ScoreKind = Literal["affinity", "spread"]


class StatefulFilters(Generic[PlaceableT]):
    """Ports, volumes, spread and affinity over one index of assigned pods."""

    def __init__(self, nodes: NodeTable, volumes: VolumeTable, rules: bool = True) -> None:
        """Without `rules` affinity and spread reject no node; ports and volumes still have one user at a time."""
        self._assigned: AssignedPods[PlaceableT] = AssignedPods(nodes)
        self._ports = HostPorts(nodes)
        self._claims = ExclusiveClaims(nodes, volumes)
        self._volumes = AssumedVolumes(nodes, volumes)
        self._affinity = PodAffinity(self._assigned)
        self._spread = TopologySpread(self._assigned)
        self._all = (self._ports, self._claims, self._volumes, self._spread, self._affinity)
        self._enforced = self._all if rules else (self._ports, self._claims, self._volumes)
        self._counting: dict[int, tuple[StatefulFilter, ...]] = {}
        """By class id: the filters that count its tasks."""

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        return self._affinity.set_namespace(name, labels)

    @property
    def has_terms(self) -> bool:
        """Whether an assigned pod has an affinity term. If not, none of the filters concerns a plain class."""
        return bool(self._affinity.existing)

    def assumes_volume(self, claim: tuple[str, str]) -> bool:
        """Whether a volume is assumed for a waiting claim (namespace, name): its change concerns other claims too."""
        return self._volumes.assumes(claim)

    def applies(self, task: Placeable) -> bool:
        if task.cls.plain and not self._affinity.existing:
            return False
        return (
            self._affinity.applies(task)
            or self._spread.applies(task)
            or self._ports.applies(task)
            or self._claims.applies(task)
            or self._volumes.applies(task)
        )

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        """`(reason, rows that pass)`, in the order of kube-scheduler's filters."""
        found: list[tuple[str, Bools]] = []
        for one in self._enforced:
            if one.applies(task):
                found += one.masks(task)
        return found

    def wakes_on(self, tasks: Iterable[Placeable]) -> frozenset[EventKind]:
        """The events that can make one more row pass the filters that concern one of the tasks."""
        found: frozenset[EventKind] = frozenset()
        left: list[StatefulFilter] = list(self._enforced)
        for task in tasks:
            if task.cls.plain and not self._affinity.existing:
                continue
            applying = [one for one in left if one.applies(task)]
            found = found.union(*(one.wakes_on for one in applying))
            left = [one for one in left if one not in applying]
        return found

    def helpers(self, tasks: Iterable[Placeable]) -> int | None:
        """A digest of where the pods are of which more could make a row pass for one of the tasks: those that it must
        be beside, or that its spread constraints count. `None`: no placement could."""
        filters = [one for one in (self._affinity, self._spread) if one in self._enforced]
        found: dict[int, Ints] = {}
        for task in tasks:
            for one in filters if not task.cls.plain else ():
                found.update((id(rows), rows) for rows in one.helpers(task))
        return hash(tuple(rows.tobytes() for rows in found.values())) if found else None

    def helped_by(self, task: Placeable) -> list[tuple[PodSelector, ...]]:
        """The same as selectors: a pod that matches all of one of these could make a row pass for the task."""
        filters = [one for one in (self._affinity, self._spread) if one in self._enforced]
        return [pods for one in filters if not task.cls.plain for pods in one.helped_by(task)]

    def scores(self, task: Placeable, among: Bools | None = None) -> list[tuple[ScoreKind, Ints]]:
        """0..100 by row, over the rows `among` (default: all live nodes). Plugins weight them."""
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
        """Claim → volume to bind for a placed task; its other waiting claims get a `selected-node`."""
        return self._volumes.of(uid)

    def add(self, task: PlaceableT, row: int) -> None:
        """The task is placed on the row. If it was placed before, it must be removed first."""
        for one in self._filters_counting(task.cls):
            one.add(task, row)
        self._assigned.add(task, row)

    def add_all(self, tasks: Sequence[PlaceableT], rows: Sequence[int]) -> None:
        """The same for several tasks of one class."""
        for one in self._filters_counting(tasks[0].cls):
            for task, row in zip(tasks, rows, strict=True):
                one.add(task, row)
        self._assigned.add_all(tasks, rows)

    def remove(self, task: Placeable, row: int) -> None:
        """The exact inverse of `add`: removes the task object that was added, also if the pod has a newer one now."""
        placed = self._assigned.task(task.uid)
        for one in self._filters_counting(placed.cls):
            one.remove(placed, row)
        self._assigned.remove(placed, row)

    def assigned_to(self, node: str) -> Collection[PlaceableT]:
        """The tasks that are placed on a node, terminating ones included."""
        return self._assigned.on_node(node)

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._counting = {ident: filters for ident, filters in self._counting.items() if ident in class_ids}
        for one in (self._ports, self._volumes, self._affinity, self._spread):
            one.retain(class_ids)

    def digest(self) -> object:
        return (self._assigned.digest(), *[one.digest() for one in self._all])

    def validate(self) -> None:
        """Asserts that every count equals a recount: called by tests after each step."""
        self._assigned.validate()

    def _filters_counting(self, cls: TaskClass) -> tuple[StatefulFilter, ...]:
        """The filters that count tasks of that class, besides the index of assigned pods: none for a plain class."""
        found = self._counting.get(cls.id)
        if found is None:
            filters: list[StatefulFilter] = []
            if host_ports(cls.spec):
                filters.append(self._ports)
            if cls.spec.volumes:
                filters += (self._claims, self._volumes)
            if cls.spec.affinity is not None:
                filters.append(self._affinity)
            found = self._counting[cls.id] = tuple(filters)
        return found
