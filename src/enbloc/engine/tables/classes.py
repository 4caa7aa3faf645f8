"""Classes of equal tasks.

Pods whose scheduling-relevant spec is equal share one class: what a node must be like, and how much is asked of it.
Masks and scores are kept per class, so a gang of 500 equal workers costs one class and not 500 passes. Labels are not
part of it (each pod of a job carries its own index): where a label matters to somebody else's affinity, the task says
so itself.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

import msgspec

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj
from enbloc.api.requests import pod_requests
from enbloc.engine.tables.resources import PODS, Request, Resources


class TaskClass:
    """What its tasks have in common. Caches of masks and scores hang on it by `id`."""

    __slots__ = ("best_effort", "id", "namespace", "plain", "request", "spec")

    def __init__(self, ident: int, namespace: str, spec: core.PodSpec, request: Request) -> None:
        self.id = ident
        self.namespace = namespace
        self.spec = spec
        """Only what bears on where a pod may go; containers are reduced to resources and ports."""
        self.request = request
        self.best_effort = all(column == PODS for column, _ in request)
        self.plain = not (spec.affinity or spec.topology_spread_constraints or spec.volumes or _host_ports(spec))
        """Whether it asks nothing about who else is placed where."""

    def __repr__(self) -> str:
        return f"TaskClass({self.id}, {self.request})"


def _host_ports(spec: core.PodSpec) -> bool:
    """Of ports only those of the host are left in a class."""
    return any(container.ports for container in (*spec.containers, *(spec.init_containers or ())))


_RELEVANT: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources")
_OF_CONTAINER: Final = ("resources", "ports", "restartPolicy")


UNUSED_BOUND: Final = 512
"""So many classes that nobody may use any more are kept: templates come again."""


class ClassTable:
    """All classes, by what makes them equal. Jobs that name themselves in their affinity, or volumes of their own, have
    classes of their own: those that are not used any more are forgotten from time to time, and a number never comes
    again."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._classes: dict[bytes, TaskClass] = {}
        self.by_id: dict[int, TaskClass] = {}
        self._made = 0
        self._used = 0
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def of(self, namespace: str, spec: dict[str, Any], node_selector: dict[str, str] | None = None) -> TaskClass:
        """The class of a pod with that spec (raw JSON); `node_selector` is what its gang asks for besides (A2)."""
        facts = _relevant(spec)
        if node_selector:
            facts["nodeSelector"] = {**(facts.get("nodeSelector") or {}), **node_selector}
        if "affinity" in facts or "volumes" in facts or "topologySpreadConstraints" in facts:
            facts["namespace"] = namespace
        key = self._encode(facts)
        known = self._classes.get(key)
        if known is None:
            typed = view(facts, core.PodSpec)
            request = self._resources.request(pod_requests(typed))
            known = self._classes[key] = self.by_id[self._made] = TaskClass(self._made, namespace, typed, request)
            self._made += 1
        return known

    def is_crowded(self) -> bool:
        """Whether so many came since it was last tidied that it pays to do so."""
        return len(self.by_id) > 2 * self._used + UNUSED_BOUND

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._classes = {key: known for key, known in self._classes.items() if known.id in alive}
        self.by_id = {known.id: known for known in self._classes.values()}
        self._used = len(self.by_id)


def _relevant(spec: dict[str, Any]) -> Obj:
    facts: dict[str, Any] = {key: spec[key] for key in _RELEVANT if spec.get(key)}
    facts["containers"] = [_reduced(container) for container in spec.get("containers") or ()]
    if spec.get("initContainers"):
        facts["initContainers"] = [_reduced(container) for container in spec["initContainers"]]
    if spec.get("volumes"):
        claims = [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume or "ephemeral" in volume]
        if claims:
            facts["volumes"] = claims
    return facts


def _reduced(container: dict[str, Any]) -> dict[str, Any]:
    """Of its ports only those that a host has but once."""
    found = {key: container[key] for key in _OF_CONTAINER if container.get(key)}
    if "ports" in found:
        ports = [port for port in found["ports"] if port.get("hostPort")]
        found["ports"] = ports
        if not ports:
            del found["ports"]
    return found
