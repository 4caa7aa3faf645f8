"""Manifests in kube-arbitrator's dialect, for stories: SchedulingSpec, QueueJob, and a kind that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stories import SIM, Obj

ARBITRATOR = "arbitrator.incubator.k8s.io/v1alpha1"
ALLOCATE_ONLY = {"actions": "enqueue, allocate"}

CRD: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crdjobs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "CRDJob", "plural": "crdjobs", "singular": "crdjob"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


def owner(name: str = "c", uid: str = "u-1", kind: str = "CRDJob", api_version: str = "example.com/v1") -> Obj:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def crdjob(name: str = "c", uid: str = "u-1", gone: str | None = None) -> Obj:
    notes = {SIM + "delete-at": gone} if gone else {}
    metadata = {"name": name, "namespace": "default", "uid": uid, "annotations": notes}
    return {"apiVersion": "example.com/v1", "kind": "CRDJob", "metadata": metadata, "spec": {}}


def owned(*objects: Obj, by: Mapping[str, Any] | None = None) -> list[Obj]:
    """The objects, owned by a controller."""
    return [one | {"metadata": one["metadata"] | {"ownerReferences": [dict(by or owner())]}} for one in objects]


def scheduling_spec(
    name: str = "c",
    minimum: int | None = None,
    *,
    by: Mapping[str, Any] | None = None,
    at: str | None = None,
    **spec: Any,
) -> Obj:
    """Owned by the CRDJob `c`, unless `by` says otherwise; an empty `by` is nobody."""
    metadata: Obj = {"name": name, "namespace": "default"}
    if by is None or by:
        metadata["ownerReferences"] = [dict(by or owner())]
    if at is not None:
        metadata["annotations"] = {SIM + "at": at}
    if minimum is not None:
        spec["minAvailable"] = minimum
    return {"apiVersion": ARBITRATOR, "kind": "SchedulingSpec", "metadata": metadata, "spec": spec}


def queue_job(
    name: str,
    *roles: Obj,
    minimum: int | None = None,
    at: str | None = None,
    gone: str | None = None,
    notes: Mapping[str, str] | None = None,
    **sched: Any,
) -> Obj:
    """`roles` as `stories.role` makes them; `sched` goes into `schedSpec`."""
    annotations = dict(notes or {})
    for key, value in (("at", at), ("delete-at", gone)):
        if value is not None:
            annotations[SIM + key] = value
    if minimum is not None:
        sched["minAvailable"] = minimum
    return {
        "apiVersion": ARBITRATOR,
        "kind": "QueueJob",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"schedSpec": sched, "schedulerName": "enbloc", "taskSpecs": list(roles)},
    }


def quota(pods: int, at: str | None = None) -> Obj:
    metadata: Obj = {"name": "q", "namespace": "default"}
    if at is not None:
        metadata["annotations"] = {SIM + "at": at}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(pods)}}}


def change(at: str, name: str, **spec: Any) -> Obj:
    """A step that patches a QueueJob's spec."""
    return on(at, "patch", "QueueJob", name, patch={"spec": spec})


def on(at: str, do: str, kind: str, name: str, **fields: Any) -> Obj:
    """A step about one of kube-arbitrator's kinds."""
    target = {"apiVersion": ARBITRATOR, "kind": kind, "name": name, "namespace": "default"}
    return {"apiVersion": SIM + "v1", "kind": "Step", "at": at, "do": do, "target": target, **fields}
