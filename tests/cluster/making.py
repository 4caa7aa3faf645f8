"""What the tests of the embedded cluster make over and over: a clock, a store, a pod, a node."""

from __future__ import annotations

from typing import Any

from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api.store import Store
from enbloc.units import SECOND

START = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


def make_store(**options: Any) -> tuple[Store, Clock]:
    clock = Clock()
    return Store(clock, **{"auto_namespaces": True, **options}), clock


def pod(name: str = "p", *, cpu: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    container: dict[str, Any] = {"name": "main", "image": "busybox"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata: dict[str, Any] = {"name": name}
    if annotations:
        metadata["annotations"] = {f"sim.enbloc.dev/{key}": value for key, value in annotations.items()}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def node(name: str = "n1", **allocatable: str) -> Obj:
    status = {"allocatable": allocatable or {"cpu": "64", "memory": "256Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def config_map(name: str = "cm", **metadata: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def owner(of: Obj) -> dict[str, Any]:
    return {
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
    }


POD = Ref("Pod", "default", "p")
CM = Ref("ConfigMap", "default", "cm")
