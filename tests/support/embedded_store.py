"""An embedded store with a clock of its own, and objects with no more in them than its tests need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api.store import Store
from enbloc.units import SECOND
from support import manifests as m

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


def pod(name: str = "p", *, cpu: str | None = None, annotations: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    """A pod of the default scheduler; `annotations` are those of the simulation, without their prefix."""
    script = {m.SIM + key: value for key, value in (annotations or {}).items()}
    found = m.pod(name, cpu, namespace=None, annotations=script, **spec)
    return {**found, "spec": {key: value for key, value in found["spec"].items() if key in spec or key == "containers"}}


def node(name: str = "n1", **allocatable: str) -> Obj:
    found = m.node(name, 64, "256Gi")
    return {**found, "status": {"allocatable": allocatable}} if allocatable else found


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
