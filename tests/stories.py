"""Black-box stories: manifests built in a line each, a whole simulation, and questions about what became of it.

The run is what `enbloc sim -o json` does, in this process; answers are asked of the very JSON it would print.
Everything here knows the interfaces of the project (manifests in, JSON out) and none of its insides.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from enbloc.config import Config, parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation, control_plane
from enbloc.units import parse_duration

Obj = dict[str, Any]

SIM = "sim.enbloc.dev/"
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
BATCH = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
ALLOCATE_ONLY = {"actions": "allocate, backfill"}


# ---- manifests


def _metadata(name: str, namespace: str | None, notes: Mapping[str, str | None], labels: Mapping[str, str]) -> Obj:
    found: Obj = {"name": name}
    if namespace is not None:
        found["namespace"] = namespace
    kept = {key: text for key, text in notes.items() if text is not None}
    if kept:
        found["annotations"] = kept
    if labels:
        found["labels"] = dict(labels)
    return found


def _when(at: str | None, gone: str | None) -> dict[str, str | None]:
    return {SIM + "at": at, SIM + "delete-at": gone}


def _life(run: str | None, code: str | None, start: str | None, stop: str | None) -> dict[str, str | None]:
    return {SIM + "run-time": run, SIM + "exit-code": code, SIM + "start-delay": start, SIM + "stop-delay": stop}


def node(
    name: str,
    cpu: int | str = 4,
    memory: str = "16Gi",
    pods: int = 110,
    *,
    at: str | None = None,
    gone: str | None = None,
    labels: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Obj:
    """`more`: further resources; `spec`: taints, unschedulable."""
    room = {"cpu": str(cpu), "memory": memory, "pods": str(pods), **{key: str(n) for key, n in (more or {}).items()}}
    metadata = _metadata(name, None, _when(at, gone), {"kubernetes.io/hostname": name, **(labels or {})})
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"allocatable": room}}


def requests(cpu: int | str | None, memory: str | None = None, more: Mapping[str, Any] | None = None) -> Obj:
    asked = {"cpu": cpu, "memory": memory, **(more or {})}
    return {key: str(amount) for key, amount in asked.items() if amount is not None}


def _pod_spec(
    cpu: int | str | None, memory: str | None, more: Mapping[str, Any] | None, priority: str | None, spec: Obj
) -> Obj:
    container: Obj = {"name": "main", "image": "busybox"}
    asked = requests(cpu, memory, more)
    if asked:
        container["resources"] = {"requests": asked}
    found: Obj = {"restartPolicy": "Never", "containers": [container], **spec}
    if priority:
        found["priorityClassName"] = priority
    return found


def pod(
    name: str,
    cpu: int | str | None = 1,
    *,
    group: str | None = None,
    role: str | None = None,
    memory: str | None = None,
    more: Mapping[str, Any] | None = None,
    namespace: str = "default",
    scheduler: str = "enbloc",
    priority: str | None = None,
    at: str | None = None,
    gone: str | None = None,
    run: str | None = None,
    code: str | None = None,
    start: str | None = None,
    stop: str | None = None,
    notes: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A pod; `group` and `role` make it a member of a PodGroup, `spec` is added to its spec."""
    annotations = {
        **_when(at, gone),
        **_life(run, code, start, stop),
        GROUP_NAME: group,
        TASK_SPEC: role,
        **(notes or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, annotations, labels or {}),
        "spec": {"schedulerName": scheduler, **_pod_spec(cpu, memory, more, priority, spec)},
    }


def pods(count: int, prefix: str, cpu: int | str | None = 1, **more: Any) -> list[Obj]:
    return [pod(f"{prefix}{index}", cpu, **more) for index in range(count)]


def role(
    name: str,
    replicas: int,
    minimum: int | None = None,
    *,
    cpu: int | str | None = 1,
    memory: str | None = None,
    more: Mapping[str, Any] | None = None,
    priority: str | None = None,
    run: str | None = None,
    code: str | None = None,
    start: str | None = None,
    stop: str | None = None,
    policies: list[Obj] | None = None,
    **spec: Any,
) -> Obj:
    """A role of a job."""
    life = {key: text for key, text in _life(run, code, start, stop).items() if text is not None}
    template = {"metadata": {"annotations": life}, "spec": _pod_spec(cpu, memory, more, priority, spec)}
    found: Obj = {"name": name, "replicas": replicas, "template": template}
    if minimum is not None:
        found["minAvailable"] = minimum
    if policies:
        found["policies"] = policies
    return found


def job(
    name: str,
    *roles: Obj,
    at: str | None = None,
    gone: str | None = None,
    minimum: int | None = None,
    priority: str | None = None,
    queue: str | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Obj:
    found: Obj = {"schedulerName": "enbloc", "tasks": list(roles), **spec}
    for key, value in (("minAvailable", minimum), ("priorityClassName", priority), ("queue", queue)):
        if value is not None:
            found[key] = value
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": _metadata(name, namespace, _when(at, gone), {}),
        "spec": found,
    }


def podgroup(
    name: str,
    minimum: int,
    *,
    roles: Mapping[str, int] | None = None,
    resources: Mapping[str, Any] | None = None,
    at: str | None = None,
    gone: str | None = None,
    priority: str | None = None,
    queue: str | None = None,
    namespace: str = "default",
) -> Obj:
    spec: Obj = {"minMember": minimum}
    for key, value in (
        ("minTaskMember", roles),
        ("minResources", resources),
        ("priorityClassName", priority),
        ("queue", queue),
    ):
        if value is not None:
            spec[key] = value
    return {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": _metadata(name, namespace, _when(at, gone), {}),
        "spec": spec,
    }


def gang(name: str, count: int, minimum: int | None = None, cpu: int | str | None = 1, **more: Any) -> list[Obj]:
    """A PodGroup `name` and its pods `name-0`, `name-1`, …; `at` and `namespace` count for both."""
    shared = {key: more[key] for key in ("at", "namespace") if key in more}
    of_group = {key: more.pop(key) for key in ("queue", "resources", "group_priority") if key in more}
    of_group = {"priority" if key == "group_priority" else key: value for key, value in of_group.items()}
    members = [pod(f"{name}-{index}", cpu, group=name, **more) for index in range(count)]
    return [podgroup(name, count if minimum is None else minimum, **shared, **of_group), *members]


def queue(name: str, *, at: str | None = None, gone: str | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": _metadata(name, None, _when(at, gone), {}),
        "spec": {"weight": 1, **spec},
    }


def priority_class(name: str, value: int, *, default: bool = False) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


HIGH_LOW = [priority_class("high", 1000), priority_class("low", 10)]


_API_VERSIONS = {"Job": BATCH, "PodGroup": SCHEDULING, "Queue": SCHEDULING}
_CLUSTER_WIDE = {"Node", "Queue", "PersistentVolume"}


def step(at: str, do: str, kind: str = "", name: str = "", **fields: Any) -> Obj:
    """`step("5s", "delete", "Pod", "p")`; `patch=`, `object=`, `exitCode=` as the verb needs."""
    found: Obj = {"apiVersion": SIM + "v1", "kind": "Step", "at": at, "do": do, **fields}
    if kind:
        target = {"apiVersion": _API_VERSIONS.get(kind, "v1"), "kind": kind, "name": name}
        found["target"] = target if kind in _CLUSTER_WIDE else {**target, "namespace": "default"}
    return found


def restart(at: str) -> Obj:
    return step(at, "restart-scheduler")


# ---- the run


class Answer:
    """What `enbloc sim -o json` printed, and questions about it."""

    def __init__(self, data: Obj) -> None:
        self.data = data
        self.timeline: list[Obj] = data["timeline"]
        self.objects: list[Obj] = data["objects"]

    def lines(self, what: str | None = None, name: str = "", kind: str = "") -> list[Obj]:
        return [
            line
            for line in self.timeline
            if what in (None, line["what"]) and name in ("", line["name"]) and kind in ("", line["kind"])
        ]

    def bound(self, prefix: str = "", *, by: float | None = None) -> dict[str, tuple[float, str]]:
        """When and where each pod was bound last, perhaps only up to some time."""
        return {
            line["name"]: (line["t"], line["node"])
            for line in self.lines("bound")
            if line["name"].startswith(prefix) and (by is None or line["t"] <= by)
        }

    def times(self, prefix: str = "") -> list[float]:
        """When pods were bound, one entry a binding."""
        return [line["t"] for line in self.lines("bound") if line["name"].startswith(prefix)]

    def order(self, prefix: str = "") -> list[str]:
        """Pods in the order in which they were bound."""
        return [line["name"] for line in self.lines("bound") if line["name"].startswith(prefix)]

    def at(self, name: str, what: str = "bound") -> float | None:
        found = self.lines(what, name)
        return found[0]["t"] if found else None

    def obj(self, kind: str, name: str, namespace: str = "default") -> Obj:
        for one in self.objects:
            metadata = one["metadata"]
            if one["kind"] == kind and metadata["name"] == name and metadata.get("namespace", namespace) == namespace:
                return one
        raise AssertionError(f"there is no {kind} {namespace}/{name} at the end")

    def all(self, kind: str, prefix: str = "") -> list[Obj]:
        return [one for one in self.objects if one["kind"] == kind and one["metadata"]["name"].startswith(prefix)]

    def group_of(self, job_name: str) -> Obj:
        """The PodGroup of a job."""
        uid = self.obj("Job", job_name)["metadata"]["uid"]
        return self.obj("PodGroup", f"{job_name}-{uid}")

    def pending(self, gang_name: str) -> Obj | None:
        return next((one for one in self.data["pending"] if one["gang"] == gang_name), None)

    def why(self, gang_name: str) -> str:
        """Why a gang waits; an empty text if it does not."""
        found = self.pending(gang_name)
        return found["message"] if found else ""


def condition(obj: Obj, kind: str) -> Obj | None:
    found = [one for one in (obj.get("status") or {}).get("conditions") or () if one["type"] == kind]
    assert len(found) < 2, f"{kind} stands there twice: {found}"
    return found[0] if found else None


def waits_because(obj: Obj) -> str:
    """What a pod or a PodGroup says of why it waits; an empty text if it says that it does not."""
    kind, waits = ("PodScheduled", "False") if obj["kind"] == "Pod" else ("Unschedulable", "True")
    found = condition(obj, kind)
    return found["message"] if found is not None and found["status"] == waits else ""


def documents(*values: Obj | Iterable[Obj]) -> list[Obj]:
    found: list[Obj] = []
    for value in values:
        found.extend([value] if isinstance(value, dict) else value)
    return copy.deepcopy(found)


Spy = Callable[[Any, Config], Any]


NO_EVICTIONS = {"actions": "enqueue, allocate, backfill"}
"""For stories in which nobody has to make room, and nobody starves."""


def simulate(
    *values: Obj | Iterable[Obj],
    config: Mapping[str, Any] | None = None,
    until: str | None = None,
    plane: Spy = control_plane,
) -> Answer:
    """Runs the documents; `plane` may put something between the control plane and its cluster."""
    read = [Document("story.yaml", number, value) for number, value in enumerate(documents(*values), 1)]
    simulation = Simulation(read_scenario(read), parse(config), plane)
    result = simulation.run(None if until is None else parse_duration(until))
    assert result.ended != "cut-off", result.reason
    out = io.BytesIO()
    result.write_json(out)
    return Answer(json.loads(out.getvalue()))
