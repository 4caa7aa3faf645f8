"""The embedded API with admission and controllers; the test does what the scheduler and the nodes would do."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from enbloc.admission.review import Settings, admit
from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.cluster.embedded.api.admission import bootstrap, invalid
from enbloc.cluster.embedded.api.store import Store
from enbloc.controllers import volcano as volcano_controller
from enbloc.controllers.controller import Controller
from enbloc.controllers.job import JobController
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.queue import QueueController
from enbloc.units import SECOND
from support import manifests as m

START = 1_700_000_000 * SECOND
ROUNDS = 100


class World:
    """`settle` runs the controllers until they are quiet. Everything they wrote is in `written`."""

    def __init__(self, *, relaxed: bool = False) -> None:
        self.now = START
        self.relaxed = relaxed
        self.store = Store(lambda: self.now, (self._review,), auto_namespaces=True)
        bootstrap(self.store)
        self.written: list[Write] = []
        for name in ("root", "default"):
            self.store.create(m.queue(name))
        self.restart()

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self.store.get(kind, namespace, name)

    def list(self, kind: str) -> list[Obj]:
        return self.store.list(kind)[0]

    def complete(self, kind: str) -> bool:
        return True

    def _review(self, operation: Any, obj: Obj, old: Obj | None) -> Obj:
        admitted, faults = admit(operation, obj, old, self, Settings(relaxed=self.relaxed))
        if faults:
            raise invalid(obj, faults)
        return admitted

    def restart(self) -> None:
        """New controllers, which know nothing but the API."""
        self.controllers: Sequence[Controller] = (
            JobController(simulated_key_pair),
            volcano_controller.controller(),
            QueueController(),
        )
        self.watches = [self.store.watch(controller.kinds, self.store.version) for controller in self.controllers]
        for controller in self.controllers:
            for kind in sorted(controller.kinds):
                for obj in self.list(kind):
                    controller.observe(WatchEvent("ADDED", kind, obj))

    def settle(self) -> builtins.list[Write]:
        """Runs the controllers until they are quiet, and returns what they wrote."""
        before = len(self.written)
        for _ in range(ROUNDS):
            if not self._round():
                return self.written[before:]
        raise AssertionError(f"controllers do not settle: {self.written[-5:]}")

    def _round(self) -> bool:
        busy = False
        for controller, watch in zip(self.controllers, self.watches, strict=True):
            for event in watch.drain():
                controller.observe(event)
            writes = controller.reconcile(self.now)
            busy = busy or bool(writes)
            for write in writes:
                self.written.append(write)
                try:
                    self.store.execute(write)
                except Refused as why:
                    controller.refused(write, why, self.now)
        return busy

    # The scheduler and the nodes

    def submit(self, obj: Obj) -> Obj:
        made = self.store.create(obj)
        self.settle()
        return made

    def job(self, name: str = "train") -> Obj:
        job = self.store.get(volcano.JOB, "default", name)
        assert job is not None
        return job

    def phase(self, name: str = "train") -> str:
        phase: str = self.job(name)["status"]["state"]["phase"]
        return phase

    def group(self, name: str = "train") -> Obj:
        (group,) = [obj for obj in self.list(volcano.POD_GROUP) if obj["metadata"]["name"].startswith(f"{name}-")]
        return group

    def enqueued(self, name: str = "train") -> None:
        self.set_group_phase("Inqueue", name)

    def set_group_phase(self, phase: str, name: str = "train") -> None:
        group = self.group(name)["metadata"]["name"]
        self.store.patch(Ref(volcano.POD_GROUP, "default", group), {"status": {"phase": phase}}, "status")
        self.settle()

    def pods(self) -> builtins.list[str]:
        return [pod["metadata"]["name"] for pod in self.list("Pod")]

    def pod(self, name: str) -> Obj:
        pod = self.store.get("Pod", "default", name)
        assert pod is not None
        return pod

    def turn(self, phase: str, *names: str, **status: Any) -> None:
        """Pods change their phase, as their kubelet says."""
        for name in names:
            if not self.pod(name)["spec"].get("nodeName"):
                self.store.bind("default", name, self.pod(name)["metadata"]["uid"], "n1")
            ready = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
            patch = {"status": {"phase": phase, "conditions": ready} | status}
            self.store.patch(Ref("Pod", "default", name), patch, "status")
        self.settle()

    def ref(self, kind: str, name: str) -> Ref:
        return Ref(kind, "default", name)

    def vanish(self, *names: str) -> None:
        for name in names:
            self.store.delete(Ref("Pod", "default", name), grace_s=0)
        self.settle()

    def change(self, patch: dict[str, Any], name: str = "train") -> None:
        self.store.patch(Ref(volcano.JOB, "default", name), patch)
        self.settle()

    def scale(self, replicas: dict[str, int], name: str = "train") -> None:
        tasks = [
            task | {"replicas": replicas.get(task["name"], task["replicas"])}
            for task in self.job(name)["spec"]["tasks"]
        ]
        self.change({"spec": {"tasks": tasks}}, name)


def role(name: str, replicas: int = 1, minimum: int | None = None, cpu: str = "1", **task: Any) -> Obj:
    """`task`: fields beside the pod template."""
    return m.role(name, replicas, minimum, cpu=cpu, memory="1Gi") | task


def job(*roles: Obj, name: str = "train", **spec: Any) -> Obj:
    return m.job(name, *roles, **spec)
