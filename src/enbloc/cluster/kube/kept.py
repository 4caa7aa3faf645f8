"""What is kept of a watched pod: all but what only a kubelet reads, and equal parts of different pods only once.

A cluster has hundreds of thousands of pods and hundreds of templates. Most of a pod is commands, mounts and addresses,
which no part of this program reads from a watch. What differs from pod to pod is little. Objects never change once
they were reported, so parts of them may be shared.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import msgspec

from enbloc.api.meta import Obj

_CONTAINERS: Final = ("containers", "initContainers")
_OF_CONTAINER: Final = ("name", "image", "resources", "ports", "restartPolicy")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_OF_STATUS: Final = ("name", "ready", "restartCount", "state", "lastState")
_VOLUMES: Final = ("persistentVolumeClaim", "ephemeral")
"""Volumes of other kinds do not decide where a pod can run."""
_DROPPED: Final = {
    "spec": (
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "imagePullSecrets",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
    ),
    "status": ("ephemeralContainerStatuses", "hostIP", "hostIPs", "podIP", "podIPs", "qosClass"),
}
_SHARED: Final = {
    "metadata": ("labels", "ownerReferences"),
    "spec": (*_CONTAINERS, "affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "volumes"),
    "status": ("conditions", *_STATUSES),
}
_NAMES: Final = {
    "metadata": ("namespace", "creationTimestamp", "generateName"),
    "spec": ("nodeName", "schedulerName", "priorityClassName", "restartPolicy", "preemptionPolicy"),
    "status": ("phase", "startTime"),
}
"""Texts that many pods have in common."""
MOST_PARTS: Final = 4096
"""At most this many parts are known for sharing; beyond that it starts anew."""


class Kept:
    """Reduces pods of one cluster, as they are decoded."""

    def __init__(self) -> None:
        self._parts: dict[bytes, Any] = {}
        self._encode = msgspec.json.Encoder().encode

    def reduced(self, pod: Obj) -> Obj:
        """The pod, not shared yet, without what is not read."""
        spec, status = pod.get("spec"), pod.get("status")
        if isinstance(spec, dict):
            for key in _CONTAINERS:
                self._only(spec, key, _OF_CONTAINER)
            volumes = spec.get("volumes")
            if isinstance(volumes, list):
                spec["volumes"] = [one for one in volumes if isinstance(one, dict) and any(map(one.get, _VOLUMES))]
                if not spec["volumes"]:
                    del spec["volumes"]
        if isinstance(status, dict):
            for key in _STATUSES:
                self._only(status, key, _OF_STATUS)
        for place, keys in _SHARED.items():
            part = pod.get(place)
            if not isinstance(part, dict):
                continue
            for key in _DROPPED.get(place, ()):
                part.pop(key, None)
            for key in keys:
                if key in part:
                    part[key] = self._shared(part[key])
            for key in _NAMES[place]:
                text = part.get(key)
                if isinstance(text, str):
                    part[key] = sys.intern(text)
            pod[place] = dict(part)  # without the room of what was dropped
        return pod

    def _only(self, part: Obj, key: str, fields: tuple[str, ...]) -> None:
        """Of each item of a list, these fields alone."""
        items = part.get(key)
        if isinstance(items, list):
            part[key] = [
                {field: one[field] for field in fields if field in one} if isinstance(one, dict) else one
                for one in items
            ]

    def _shared(self, part: Any) -> Any:
        """An equal part that another pod has, if there is one."""
        encoded = self._encode(part)
        known = self._parts.get(encoded)
        if known is None:
            if len(self._parts) >= MOST_PARTS:
                self._parts.clear()
            known = self._parts[encoded] = part
        return known
