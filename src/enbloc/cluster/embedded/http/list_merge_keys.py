"""How lists of Kubernetes' own kinds are merged: some are sets, some are maps by a key, the others are replaced.

Identified by the field's name, which is enough: no name but `ports` has two meanings.
"""

from __future__ import annotations

from typing import Any

BUILT_IN_GROUPS = (
    "",
    "apps",
    "autoscaling",
    "batch",
    "policy",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
)
"""The groups of the API server itself; all other groups are custom, and their lists are replaced."""

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
    """The key by which this list is merged; `None` if it is not."""
    if field == "ports":
        return "containerPort" if any(isinstance(item, dict) and "containerPort" in item for item in items) else "port"
    return _KEYS.get(field)


def is_set(field: str) -> bool:
    return field in _SETS
