"""One gang that waits, with what a candidate change is made from: its diagnosis, its sources, the nodes and queues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from enbloc.advice.sources import own_object, pod_parts, sources_of
from enbloc.api import core, volcano
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.requests import pod_requests
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import Config
from enbloc.engine.core.filters.taints import tolerated
from enbloc.engine.core.tables.nodes import TaintFact
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.engine import Engine
from enbloc.gangs.lenient import LenientRegistry
from enbloc.units import natural_key, parse_quantity

_PLACEMENT: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "schedulerName")


class Case:
    def __init__(self, store: Store, engine: Engine, config: Config, gang: GangState) -> None:
        self.store = store
        self.engine = engine
        self.config = config
        self.gang = gang
        self.why: Diagnosis = engine.diagnosis(gang)

    @property
    def title(self) -> str:
        return self.gang.spec.title

    @property
    def namespace(self) -> str:
        return self.gang.key.namespace

    @cached_property
    def sources(self) -> list[Obj]:
        return sources_of(self.store, self.gang, self.foreign_pods)

    @cached_property
    def foreign_pods(self) -> list[Obj]:
        """Its pods that name another scheduler: the engine knows only their number."""
        if not self.engine.state.foreign.of(self.gang.key):
            return []
        registry = LenientRegistry(self.config.arbitrator, self.config.koordinator, self.config.tenancy)
        pods = (pod for pod in self.store.list("Pod")[0] if namespace_of(pod) == self.namespace)
        return [pod for pod in pods if not pod["spec"].get("nodeName") and registry.member(pod).gang == self.gang.key]

    @cached_property
    def own(self) -> Obj | None:
        """Its PodGroup or SchedulingSpec."""
        return own_object(self.store, self.gang)

    @cached_property
    def job(self) -> Obj | None:
        """The Volcano Job that it comes from."""
        return next((obj for obj in self.sources if kind_id(obj) == volcano.JOB), None)

    @cached_property
    def waiting(self) -> list[Task]:
        return [task for task in self.gang.tasks.values() if not task.node]

    @cached_property
    def roles(self) -> dict[str, Mapping[str, Any]]:
        """The pod spec of each role that lacks something (all roles where none is named)."""
        found = {role: part["spec"] for source in self.sources for role, part in pod_parts(source)}
        lacking = {role: spec for role, spec in found.items() if role in self.why.missing}
        return lacking or found

    @cached_property
    def shape(self) -> str:
        """Equal for gangs of one queue and priority that ask for the same and wait for the same reason."""
        pods = {role: requests_of(spec) | _placement(spec) for role, spec in self.roles.items()}
        minima = {"": self.gang.minima.total, **self.gang.minima.by_role}
        kind = (self.namespace, self.gang.spec.queue, self.gang.priority, str(self.why.reason), self.why.missing)
        return json.dumps([*kind, minima, pods], sort_keys=True, default=str)

    def needs(self, role: str) -> int:
        """How many pods of a role its minimum lacks."""
        missing = self.why.missing
        return missing.get(role) or missing.get("") or self.gang.minima.by_role.get(role) or self.gang.minima.total

    @cached_property
    def nodes(self) -> list[Obj]:
        return sorted(self.store.list("Node")[0], key=lambda node: natural_key(name_of(node)))

    def untolerated(self, node: Obj) -> list[TaintFact]:
        """The taints of a node that keep pods of some role away; those of its condition (not ready, …) aside."""
        hard = [fact for fact in own_taints(node) if fact.effect != "PreferNoSchedule"]
        return [fact for fact in hard if not all(tolerated(one, fact) for one in self._tolerations)]

    def tainted(self) -> dict[TaintFact, list[Obj]]:
        """The nodes by their taints, the taint of most nodes first; those of their condition aside."""
        found: dict[TaintFact, list[Obj]] = {}
        for node in self.nodes:
            for fact in own_taints(node):
                found.setdefault(fact, []).append(node)
        return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))

    @cached_property
    def _tolerations(self) -> list[list[core.Toleration]]:
        return [list(view(spec, core.PodSpec).tolerations or ()) for spec in self.roles.values()]

    @cached_property
    def queues(self) -> list[Obj]:
        return sorted(self.store.list(volcano.QUEUE)[0], key=lambda queue: natural_key(name_of(queue)))


def own_taints(node: Obj) -> dict[TaintFact, Any]:
    """As its manifest has them; without those of its condition, which come and go with it."""
    taints = (node.get("spec") or {}).get("taints") or ()
    facts = {TaintFact(taint["key"], taint.get("value") or "", taint["effect"]): taint for taint in taints}
    return {fact: taint for fact, taint in facts.items() if not fact.key.startswith("node.kubernetes.io/")}


def requests_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """The requests of a pod spec in nano-units, without zeros."""
    found = pod_requests(view(spec, core.PodSpec))
    return {name: nanos for name, nanos in found.items() if nanos > 0}


def _placement(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What else of a pod's spec decides where it may run."""
    return {key: spec[key] for key in _PLACEMENT if spec.get(key)}


def allocatable_of(node: Obj) -> dict[str, int]:
    """In nano-units."""
    status = node.get("status") or {}
    stated = status.get("allocatable") or status.get("capacity") or {}
    return {name: parse_quantity(amount).nanos for name, amount in stated.items()}
