"""Classes of tasks with equal scheduling-relevant specs (kube-scheduler: pod signature).

Pods of one class have the same requirements on nodes and the same request. Masks and scores are cached by class, so a
gang of 500 equal workers costs one class, not 500 passes. Labels are not part of it, since each pod of a job has its
own index label: where labels matter, to the affinity terms of other pods, filters read them from the task.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

import msgspec

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj
from enbloc.api.requests import pod_requests
from enbloc.engine.core.tables.resources import PODS, Request, Resources


class TaskClass:
    """The spec and request that its tasks have in common. Masks and scores are cached by its `id`."""

    __slots__ = ("best_effort", "id", "namespace", "plain", "request", "spec")

    def __init__(self, ident: int, namespace: str, spec: core.PodSpec, request: Request) -> None:
        self.id = ident
        self.namespace = namespace
        self.spec = spec
        """Only the fields that decide on which nodes a pod fits; containers are reduced to resources and ports."""
        self.request = request
        self.best_effort = all(column == PODS for column, _ in request)
        self.plain = not (spec.affinity or spec.topology_spread_constraints or spec.volumes or _host_ports(spec))
        """Whether none of its requirements depends on other pods (see `filters/stateful`)."""

    def __repr__(self) -> str:
        return f"TaskClass({self.id}, {self.request})"


def _host_ports(spec: core.PodSpec) -> bool:
    """A class keeps host ports only."""
    return any(container.ports for container in (*spec.containers, *(spec.init_containers or ())))


_RELEVANT: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources")
_OF_CONTAINER: Final = ("resources", "ports", "restartPolicy")


UNUSED_BOUND: Final = 512
"""At most 512 classes without tasks, plus as many as are in use, are kept: a template may be used again."""


class ClassTable:
    """All classes, by encoded spec. Jobs whose affinity names themselves, or with their own volumes, have classes of
    their own: unused classes are dropped from time to time (`retain`), and an id is never used again."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._classes: dict[bytes, TaskClass] = {}
        self.by_id: dict[int, TaskClass] = {}
        self._next_id = 0
        self._used = 0
        """How many were retained last."""
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def of(self, namespace: str, spec: dict[str, Any], node_selector: dict[str, str] | None = None) -> TaskClass:
        """The class of a pod with that spec (raw JSON); `node_selector` is that of its gang (A2)."""
        facts = _relevant(spec)
        if node_selector:
            facts["nodeSelector"] = _both_selectors(facts.get("nodeSelector") or {}, node_selector)
        if "affinity" in facts or "volumes" in facts or "topologySpreadConstraints" in facts:
            facts["namespace"] = namespace
        key = self._encode(facts)
        known = self._classes.get(key)
        if known is None:
            typed = view(facts, core.PodSpec)
            request = self._resources.request(pod_requests(typed))
            known = self._classes[key] = self.by_id[self._next_id] = TaskClass(self._next_id, namespace, typed, request)
            self._next_id += 1
        return known

    def needs_compaction(self) -> bool:
        """Whether enough classes were added since the last `retain` that another one pays."""
        return len(self.by_id) > 2 * self._used + UNUSED_BOUND

    def retain(self, class_ids: Container[int]) -> None:
        """Drops all other classes."""
        self._classes = {key: known for key, known in self._classes.items() if known.id in class_ids}
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
    """A container's resources, restart policy and host ports."""
    found = {key: container[key] for key in _OF_CONTAINER if container.get(key)}
    if "ports" in found:
        ports = [port for port in found["ports"] if port.get("hostPort")]
        found["ports"] = ports
        if not ports:
            del found["ports"]
    return found


def _both_selectors(own: dict[str, str], of_gang: dict[str, str]) -> dict[str, str]:
    """A node selector that passes where both do (A2, G6). Two values of one label are never both there: no label value
    contains a space, so no node has theirs together."""
    found = {**own, **of_gang}
    for key in own.keys() & of_gang.keys():
        if own[key] != of_gang[key]:
            found[key] = f"{own[key]} {of_gang[key]}"
    return found
