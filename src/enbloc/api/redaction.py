"""Objects without what may be secret, for files that leave a cluster: snapshots, recordings, traces.

Of containers only names, images, resources, ports and restart policies are kept: no commands, no arguments, no values
of environment variables. What kubectl last applied, and what managers wrote, is dropped: it repeats all of that.
"""

from __future__ import annotations

from typing import Any, Final

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_KEPT_OF_CONTAINERS: Final = ("name", "image", "resources", "ports", "restartPolicy")
_DROPPED_METADATA: Final = ("managedFields", "selfLink")
_DROPPED_ANNOTATIONS: Final = ("kubectl.kubernetes.io/last-applied-configuration",)
_DROPPED_STATUS: Final = {"Node": ("images", "volumesInUse", "volumesAttached", "daemonEndpoints")}


def without_secrets(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED_METADATA}
    annotations = metadata.get("annotations")
    if annotations:
        metadata["annotations"] = {key: text for key, text in annotations.items() if key not in _DROPPED_ANNOTATIONS}
    if obj.get("kind") == "Pod" and isinstance(obj.get("spec"), dict):  # nothing else of a pod has containers in it
        return {**obj, "metadata": metadata, "spec": _pod_spec(obj["spec"])}
    kept = {**{key: _pruned(value) for key, value in obj.items()}, "metadata": metadata}
    dropped = _DROPPED_STATUS.get(kind_id(obj), ())
    if dropped and kept.get("status"):
        kept["status"] = {key: value for key, value in kept["status"].items() if key not in dropped}
    return kept


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    kept = dict(spec)
    for key in _CONTAINERS:
        if isinstance(kept.get(key), list):
            kept[key] = [_container(one) for one in kept[key]]
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
