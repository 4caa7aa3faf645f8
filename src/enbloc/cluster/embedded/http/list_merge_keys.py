"""How the lists of Kubernetes' own kinds are merged: which are sets, which are maps by some key. Others are replaced.

Known by the field's name, which is enough: no name has two meanings but `ports`.
"""

from __future__ import annotations

from typing import Any

BUILT_IN_GROUPS = ("", "policy", "storage.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "apiextensions.k8s.io")
"""The groups that an API server has by itself; the kinds of all others are custom ones, whose lists are replaced."""

_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SETS = ("finalizers",)


def merge_key(field: str, items: list[Any]) -> str | None:
    """The key by which this list is a map; `None` if it is none."""
    if field == "ports":
        return "containerPort" if any(isinstance(item, dict) and "containerPort" in item for item in items) else "port"
    return _KEYS.get(field)


def is_set(field: str) -> bool:
    return field in _SETS
