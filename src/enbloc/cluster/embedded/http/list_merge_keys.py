"""How lists of Kubernetes' own kinds are merged: some are sets, some are maps by a key, the others are replaced.

Identified by the field's name, which is enough: no name but `ports` has two meanings.
"""

from __future__ import annotations

from typing import Any

from enbloc.api.messages import LONG_GROUPS

BUILT_IN_GROUPS = ("", "apps", "autoscaling", "batch", "policy", "apiextensions.k8s.io", *LONG_GROUPS)
"""The groups of the API server itself; all other groups are custom, and their lists are replaced."""

_BY_NAME = ("containers", "env", "ephemeralContainers", "imagePullSecrets", "initContainers", "resourceClaims")
_KEYS = {
    **dict.fromkeys((*_BY_NAME, "schedulingGates", "secrets", "volumes"), "name"),
    **dict.fromkeys(("addresses", "conditions"), "type"),
    **dict.fromkeys(("hostAliases", "hostIPs", "podIPs"), "ip"),
    "ownerReferences": "uid",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
}
_SETS = ("finalizers",)


def merge_key(field: str, items: list[Any]) -> str | None:
    """The key by which this list is merged; `None` if it is not."""
    if field == "ports":
        return "containerPort" if any(isinstance(item, dict) and "containerPort" in item for item in items) else "port"
    return _KEYS.get(field)


def is_set(field: str) -> bool:
    return field in _SETS
