"""Classes of equal tasks.

Pods whose scheduling-relevant spec is equal share one class: what a node must be like, and how much is asked of it.
Masks and scores are kept per class, so a gang of 500 equal workers costs one class and not 500 passes. Labels are not
part of it (each pod of a job carries its own index): where a label matters to somebody else's affinity, the task says
so itself.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj
from enbloc.api.requests import pod_requests
from enbloc.engine.resources import PODS, Request, Resources


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


class ClassTable:
    """All classes that were ever seen, by what makes them equal."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._classes: dict[bytes, TaskClass] = {}
        self.by_id: list[TaskClass] = []
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
            known = self._classes[key] = TaskClass(len(self._classes), namespace, typed, request)
            self.by_id.append(known)
        return known


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
