"""Manifests of gangs in the dialects of Koordinator, scheduler-plugins and Kubernetes, for stories (see `stories`)."""

from __future__ import annotations

import json
from typing import Any

from stories import Obj, pod

K = "gang.scheduling.koordinator.sh/"
SIGS = "scheduling.sigs.k8s.io/v1alpha1"
PLUGINS = "scheduling.x-k8s.io/v1alpha1"
SIGS_LABEL = "pod-group.scheduling.sigs.k8s.io"
PLUGINS_LABEL = "scheduling.x-k8s.io/pod-group"
NON_STRICT = "NonStrict"


def notes(gang: str | None = None, minimum: int | str | None = None, **more: Any) -> dict[str, str]:
    """Koordinator's annotations: `mode`, `groups`, `wait`, `total`, `policy`."""
    keys = {
        "mode": "mode",
        "groups": "groups",
        "wait": "waiting-time",
        "total": "total-number",
        "policy": "match-policy",
    }
    found = {K + "name": gang, K + "min-available": minimum, **{K + keys[key]: value for key, value in more.items()}}
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items() if value is not None
    }


WORDS = ("mode", "groups", "wait", "total", "policy")


def kgang(name: str, count: int, minimum: int | str | None = None, cpu: int | str = 1, **more: Any) -> list[Obj]:
    """Pods `name-0`, `name-1`, … that are a gang by annotation."""
    words = {key: more.pop(key) for key in WORDS if key in more}
    said = notes(name, count if minimum is None else minimum, **words)
    first = more.pop("first", 0)
    return [pod(f"{name}-{index}", cpu, notes=said, **more) for index in range(first, first + count)]


def kgroup(
    name: str, minimum: int, *, api: str = SIGS, at: str | None = None, gone: str | None = None, **more: Any
) -> Obj:
    """A PodGroup of Koordinator's or scheduler-plugins'; `mode`, `groups`, … become its annotations."""
    words = {key: more.pop(key) for key in WORDS if key in more}
    annotations = notes(**words)
    for key, when in (("at", at), ("delete-at", gone)):
        if when:
            annotations[f"sim.enbloc.dev/{key}"] = when
    metadata: Obj = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": minimum, **more}}


def labelled(name: str, count: int, label: str = SIGS_LABEL, cpu: int | str = 1, **more: Any) -> list[Obj]:
    """Pods that name their PodGroup by label."""
    return [pod(f"{name}-{index}", cpu, labels={label: name}, **more) for index in range(count)]


def own_group(name: str, policy: Obj, version: str = "v1beta1", **spec: Any) -> Obj:
    """Kubernetes' own PodGroup."""
    metadata = {"name": name, "namespace": "default"}
    found = {"schedulingPolicy": policy, **spec}
    return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": metadata, "spec": found}


def own_pods(name: str, count: int, **more: Any) -> list[Obj]:
    return [pod(f"{name}-{index}", schedulingGroup={"podGroupName": name}, **more) for index in range(count)]
