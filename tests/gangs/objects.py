"""Objects in which gangs are written down, as the API would hand them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent
from support import manifests as m

CREATED = "2026-01-01T00:00:10Z"


def _served(obj: Obj, owner: Obj | None = None) -> Obj:
    """As the API returns it."""
    name = obj["metadata"]["name"]
    given: Obj = {"namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    if owner:
        given["ownerReferences"] = [{**owner, "controller": True}]
    return {**obj, "metadata": {**obj["metadata"], **given}}


def owned_by(obj: Obj) -> Obj:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }


def pod(
    name: str = "p",
    spec: Mapping[str, Any] | None = None,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    owner: Obj | None = None,
) -> Obj:
    found = m.pod(name, annotations=annotations, labels=labels)
    return _served({**found, "spec": {"containers": [], **(spec or {})}}, owner)


def group(name: str = "g", phase: str = "", meta: Mapping[str, Any] | None = None, **spec: Any) -> Obj:
    """A PodGroup with this spec and no more; `meta`: annotations, labels, owner."""
    given = dict(meta or {})
    owner = given.pop("owner", None)
    found = {**m.podgroup(name, 0), "metadata": m.metadata(name, **given), "spec": spec}
    return _served({**found, "status": {"phase": phase}} if phase else found, owner)


def job(name: str = "train", *tasks: tuple[str, str], **spec: Any) -> Obj:
    """Tasks are (role, priority class)."""
    found = m.job(name, **spec)
    roles = [
        {"name": role, "template": {"spec": {"containers": [], "priorityClassName": named}}} for role, named in tasks
    ]
    return _served({**found, "spec": {"tasks": roles, **spec}})


def scheduling_spec(name: str, owner: Obj | None, **spec: Any) -> Obj:
    return _served(m.scheduling_spec(name, by={}, **spec), owner)


def came(obj: Obj) -> WatchEvent:
    return WatchEvent("ADDED", kind_id(obj), obj)


def went(obj: Obj) -> WatchEvent:
    return WatchEvent("DELETED", kind_id(obj), obj)


GROUP = volcano.GROUP_NAME_KEYS[0]
