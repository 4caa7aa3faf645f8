"""A whole cluster in virtual time, driven step by step: the API, simulated nodes, scheduler and all controllers."""

from __future__ import annotations

from typing import Any

from enbloc.api.meta import Obj, Ref, controller_of
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.settle import settle
from enbloc.config import parse
from enbloc.sim.simulation import control_plane
from enbloc.units import SECOND
from support import manifests as m

START_NS = 1_700_000_000 * SECOND - 20 * SECOND  # on a full minute


class WorkloadCluster:
    """Every method leaves the cluster settled."""

    def __init__(self, nodes: int = 3, cpu: int = 8) -> None:
        self.now_ns = START_NS
        self._config = parse(None)
        self.store = make_store(lambda: self.now_ns, self._config)
        provide_queues(self.store, ())
        self.nodes = NodePlayer(self.store)
        self._plane = control_plane(self.store, self._config)
        for number in range(nodes):
            self.store.create(m.node(f"n{number}", cpu=cpu))
        self.settle()

    def settle(self) -> None:
        for _ in settle(self.store, self.nodes, self._plane):
            pass

    def restart(self) -> None:
        """New controllers and a new scheduler, which know nothing but the API."""
        self._plane.close()
        self._plane = control_plane(self.store, self._config)
        self.settle()

    def advance(self, seconds: float) -> None:
        """Lets time pass: every timer fires at its instant."""
        end_ns = self.now_ns + round(seconds * SECOND)
        while True:
            dues = [due for due in (self.nodes.due(), self._plane.due()) if due is not None and due > self.now_ns]
            if not dues or min(dues) > end_ns:
                break
            self.now_ns = min(dues)
            self.settle()
        self.now_ns = end_ns
        self.settle()

    # what a user does

    def create(self, obj: Obj) -> Obj:
        made = self.store.create(obj)
        self.settle()
        return made

    def patch(self, kind: str, name: str, change: dict[str, Any], subresource: Any = "") -> None:
        self.store.patch(Ref(kind, "default", name), change, subresource)
        self.settle()

    def delete(self, kind: str, name: str) -> None:
        self.store.delete(Ref(kind, "default", name))
        self.settle()

    # what a user sees

    def get(self, kind: str, name: str) -> Obj:
        found = self.store.get(kind, "default", name)
        assert found is not None, f"no {kind} {name}"
        return found

    def status(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(kind, name)["status"]
        return found

    def condition(self, kind: str, name: str, type_: str) -> tuple[str, str] | None:
        for one in self.status(kind, name).get("conditions") or ():
            if one["type"] == type_:
                return one["status"], one["reason"]
        return None

    def owned(self, kind: str, owner: str) -> list[Obj]:
        return [obj for obj in self.store.list(kind)[0] if (controller_of(obj) or {}).get("name") == owner]

    def pods(self, **labels: str) -> list[Obj]:
        return [
            pod for pod in self.store.list("Pod")[0] if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def names(self, **labels: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(**labels)]

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.store.list("Event")[0] if event["reason"] == reason]


def workload(kind: str, name: str, image: str = "app:1", **spec: Any) -> Obj:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet; its pods have the label `app`, and run until they are
    deleted."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(image, app=name), **spec},
    }


def template(image: str = "app:1", cpu: str = "1", annotations: dict[str, str] | None = None, **labels: str) -> Obj:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}
    metadata: Obj = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [container]}}


def job(name: str, run_time: str = "10s", exit_code: str = "0", policy: str = "Never", **spec: Any) -> Obj:
    made = template(annotations={m.SIM + "run-time": run_time, m.SIM + "exit-code": exit_code})
    made["spec"]["restartPolicy"] = policy
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": made, **spec},
    }


def image_change(image: str) -> dict[str, Any]:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}
