"""Objects in which gangs are written down, as the API would hand them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent

CREATED = "2026-01-01T00:00:10Z"


def metadata(
    name: str,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    owner: Obj | None = None,
) -> Obj:
    found: Obj = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    if annotations:
        found["annotations"] = dict(annotations)
    if labels:
        found["labels"] = dict(labels)
    if owner:
        found["ownerReferences"] = [{**owner, "controller": True}]
    return found


def owned_by(obj: Obj) -> Obj:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }


def pod(name: str = "p", spec: Mapping[str, Any] | None = None, **meta: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, **meta),
        "spec": {"containers": [], **(spec or {})},
    }


def group(name: str = "g", phase: str = "", meta: Mapping[str, Any] | None = None, **spec: Any) -> Obj:
    found: Obj = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(name, **(meta or {})),
        "spec": spec,
    }
    return {**found, "status": {"phase": phase}} if phase else found


def job(name: str = "train", *tasks: tuple[str, str], **spec: Any) -> Obj:
    """Tasks are (role, priority class)."""
    roles = [
        {"name": role, "template": {"spec": {"containers": [], "priorityClassName": named}}} for role, named in tasks
    ]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata(name),
        "spec": {"tasks": roles, **spec},
    }


def priority_class(name: str, value: int, everywhere: bool = False) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": everywhere,
    }


def scheduling_spec(name: str, owner: Obj | None, **spec: Any) -> Obj:
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": "SchedulingSpec",
        "metadata": metadata(name, owner=owner),
        "spec": spec,
    }


def came(obj: Obj) -> WatchEvent:
    return WatchEvent("ADDED", kind_id(obj), obj)


def went(obj: Obj) -> WatchEvent:
    return WatchEvent("DELETED", kind_id(obj), obj)


GROUP = volcano.GROUP_NAME_KEYS[0]
