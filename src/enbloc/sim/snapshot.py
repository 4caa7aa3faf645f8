"""A snapshot of a cluster: the objects that scheduling depends on, without secrets.

Of containers only names, images, resources, ports and restart policies are kept: no commands, no arguments, no values
of environment variables. Secrets and ConfigMaps are not read at all. Listing the objects is left to the caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from enbloc.api.kinds import KINDS as KNOWN
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.scenario.scenario import STEP
from enbloc.units import format_timestamp

NEEDED: Final = ("Node", "Pod")
"""Without these there is nothing to simulate."""
_NOT_READ: Final = frozenset(
    {"Secret", "ConfigMap", "Event", "Service", "ServiceAccount", "Endpoints", "PodTemplate"}
    | {"Lease.coordination.k8s.io", "Command.bus.volcano.sh", "CustomResourceDefinition.apiextensions.k8s.io"}
)
_GROUPS_NOT_READ: Final = ("rbac.authorization.k8s.io", "networking.k8s.io", "discovery.k8s.io", "autoscaling") + (
    "admissionregistration.k8s.io",
)
KINDS: Final = tuple(
    kind.id for kind in KNOWN.values() if kind.id not in _NOT_READ and kind.group not in _GROUPS_NOT_READ
)
"""The kinds that are read, where the cluster serves them."""

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_KEPT_OF_CONTAINERS: Final = ("name", "image", "resources", "ports", "restartPolicy")
_DROPPED_METADATA: Final = ("managedFields", "selfLink")
_DROPPED_ANNOTATIONS: Final = ("kubectl.kubernetes.io/last-applied-configuration",)
_DROPPED_STATUS: Final = {"Node": ("images", "volumesInUse", "volumesAttached", "daemonEndpoints")}


def snapshot(lists: Mapping[str, Sequence[Obj]], now_ns: int) -> list[Obj]:
    """The documents of a snapshot: when it was taken, then every object."""
    taken = {"apiVersion": STEP, "kind": "Snapshot", "at": format_timestamp(now_ns)}
    return [taken, *(without_secrets(obj) for kind in KINDS for obj in lists.get(kind, ()))]


def without_secrets(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED_METADATA}
    annotations = metadata.get("annotations")
    if annotations:
        metadata["annotations"] = {key: text for key, text in annotations.items() if key not in _DROPPED_ANNOTATIONS}
    kept = {**{key: _pruned(value) for key, value in obj.items()}, "metadata": metadata}
    dropped = _DROPPED_STATUS.get(kind_id(obj), ())
    if dropped and kept.get("status"):
        kept["status"] = {key: value for key, value in kept["status"].items() if key not in dropped}
    return kept


def _pruned(value: Any) -> Any:
    """The value with every container in it, at any depth, reduced to what is kept."""
    if isinstance(value, dict):
        return {
            key: [_container(one) for one in child]
            if key in _CONTAINERS and isinstance(child, list)
            else _pruned(child)
            for key, child in value.items()
        }
    return [_pruned(child) for child in value] if isinstance(value, list) else value


def _container(container: Any) -> Any:
    if not isinstance(container, dict):
        return {}
    kept = {key: container[key] for key in _KEPT_OF_CONTAINERS if key in container}
    names = [{"name": one["name"]} for one in container.get("env") or () if isinstance(one, dict) and "name" in one]
    return {**kept, "env": names} if names else kept


def as_json(documents: Iterable[Obj]) -> Iterator[str]:
    """One List, an object a line."""
    yield '{"apiVersion": "v1", "kind": "List", "items": [\n'
    separator = ""
    for document in documents:
        yield separator + json.dumps(document)
        separator = ",\n"
    yield "\n]}\n"
