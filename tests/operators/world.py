"""A cluster with Enbloc and operators on it, as the tests see it: nodes, samples, pods, and what is said of them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from e2e.api import Json
from e2e.control_plane import CONTROLLERS, ControlPlane
from e2e.running import ENBLOC, NAMESPACE, define, run
from enbloc.cluster.embedded.nodes.pod_script import EXIT_CODE, RUN_TIME
from operators.installation import Installed, install, remove
from operators.known import OPERATORS
from operators.programs import built
from operators.releases import Release

WITHIN_S = 120
POLL_S = 0.2
DECISION = "enbloc.dev/decision"
ROOM = {"cpu": "500", "memory": "2000Gi", "nvidia.com/gpu": "64", "google.com/tpu": "64", "ephemeral-storage": "9000Gi"}
"""Of every node, so that the number of pods is what is scarce."""
WORKLOADS = (
    "cronjob-controller",
    "deployment-controller",
    "job-controller",
    "replicaset-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
CONFIG = {"compat": ["volcano", "scheduler-plugins"], "groupByOwner": {"enabled": True}}


class World:
    """Starts on entry; operators are built and installed when a test needs them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._installed: dict[str, Installed] = {}

    def __enter__(self) -> World:
        self.plane.__enter__()
        try:
            self._start_enbloc()
        except BaseException:
            self.plane.stop()
            raise
        return self

    def _start_enbloc(self) -> None:
        """`enbloc up` has it already."""

    def __exit__(self, *_: object) -> None:
        self.plane.stop()

    def need(self, *names: str) -> None:
        """These operators run, and no others. The last is started first: those before it watch its kinds."""
        for name in [name for name in self._installed if name not in names]:
            remove(self.plane, self._installed.pop(name))
        for name in reversed(names):
            if name not in self._installed:
                self._installed[name] = install(self.plane, OPERATORS[name], built(OPERATORS[name].program))

    # -- objects

    def apply(self, *objects: Json, namespace: str) -> None:
        text = yaml.safe_dump_all(objects)
        self.plane.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=text)

    def create(self, *objects: Json, namespace: str) -> None:
        self.plane.kubectl("create", "-n", namespace, "-f", "-", stdin=yaml.safe_dump_all(objects))

    def delete(self, *objects: Json, namespace: str, check: bool = True) -> None:
        words = ["delete", "-n", namespace, "--ignore-not-found", "-f", "-"]
        self.plane.kubectl(*words, stdin=yaml.safe_dump_all(reversed(objects)), timeout_s=WITHIN_S, check=check)

    def ensure_namespace(self, name: str) -> None:
        answer = self.plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert answer.status in (201, 409), answer

    def get(self, kind: str, name: str, namespace: str) -> Json:
        return dict(json.loads(self.plane.kubectl("get", kind, name, "-n", namespace, "-o", "json")))

    def items(self, kind: str, namespace: str, selector: str = "") -> list[Json]:
        words = ["get", kind, "-n", namespace, "-o", "json", *(["-l", selector] if selector else [])]
        return list(json.loads(self.plane.kubectl(*words))["items"])

    # -- nodes

    def add_node(self, name: str, pods: int) -> None:
        self.plane.add_node(name, None, pods=str(pods), **ROOM)

    def remove_nodes(self) -> None:
        self.plane.api.delete("/api/v1/nodes")
        self.plane.api.wait("/api/v1/nodes", lambda listed: not listed["items"], WITHIN_S)

    # -- pods

    def pods(self, namespace: str, selector: str) -> list[Json]:
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
        return [one for one in self.plane.api.items(path) if not one["metadata"].get("deletionTimestamp")]

    def wait_pods(self, namespace: str, selector: str, until: Callable[[list[Json]], object], what: str) -> list[Json]:
        end = time.monotonic() + WITHIN_S
        while not until(found := self.pods(namespace, selector)):
            for one in self._installed.values():
                one.revive()
            assert time.monotonic() < end, f"not within {WITHIN_S} s: {what}; {self._shown(found, namespace)}"
            time.sleep(POLL_S)
        return found

    def fail(self, pod: Json, code: int = 1) -> None:
        """The pod's container ends with this exit code, at once."""
        notes = {RUN_TIME: "0s", EXIT_CODE: str(code)}
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self.plane.api.patch(path, {"metadata": {"annotations": notes}})

    def explain(self, gang: str) -> Json:
        """What `enbloc explain` says of a gang, `NAMESPACE/NAME`."""
        words = [*ENBLOC, "explain", gang, "-o", "json", f"--kubeconfig={self.plane.kubeconfig}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN_S)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def _shown(self, pods: list[Json], namespace: str) -> str:
        lines = [f"{name(one)} on {node(one) or 'no node'}: {phase(one)} {why(one)}" for one in pods]
        events = self.plane.kubectl("get", "events", "-n", namespace, "--sort-by=.lastTimestamp", check=False)
        return "\n".join([*lines, *events.splitlines()[-15:]])


class RealWorld(World):
    """On a real control plane, with `enbloc run`."""

    def __init__(self, release: Release, folder: Path) -> None:
        controllers = (*CONTROLLERS, *WORKLOADS)
        plane = ControlPlane(
            release.programs(), folder, controllers=controllers, features=release.features, apis=release.apis
        )
        super().__init__(plane)

    def _start_enbloc(self) -> None:
        define(self.plane)
        self.plane.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        config = self.plane.folder / "enbloc.yaml"
        config.write_text(yaml.safe_dump(CONFIG))
        run(self.plane, "enbloc", None, "scheduler,controllers", f"--config={config}")


def name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase") or "")


def why(pod: Json) -> str:
    """Why the pod is not scheduled, as its condition says."""
    conditions: list[Any] = pod.get("status", {}).get("conditions") or []
    found = [one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
    return str(found[0].get("message") or "") if found else ""


def decision(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(DECISION) or "")


def uids(pods: list[Json]) -> set[str]:
    return {str(one["metadata"]["uid"]) for one in pods}
