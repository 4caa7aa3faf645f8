"""Stories about Volcano's objects, told through the whole simulation: short ways to write documents and to ask what
became of them."""

from __future__ import annotations

import copy
from typing import Any

from enbloc.admission.settings import Settings
from enbloc.api.meta import Obj
from enbloc.config import parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.linting import Linted, lint
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import parse_duration

BATCH = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"


def _meta(name: str, namespaced: bool, at: str = "", delete_at: str = "", **more: Any) -> dict[str, Any]:
    notes = dict(more.pop("annotations", None) or {})
    if at:
        notes["sim.enbloc.dev/at"] = at
    if delete_at:
        notes["sim.enbloc.dev/delete-at"] = delete_at
    found: dict[str, Any] = {"name": name, **({"namespace": "default"} if namespaced else {}), **more}
    return found | ({"annotations": notes} if notes else {})


def _sim(run: str, exit_code: str, start: str, stop: str) -> dict[str, str]:
    given = {"run-time": run, "exit-code": exit_code, "start-delay": start, "stop-delay": stop}
    return {f"sim.enbloc.dev/{key}": value for key, value in given.items() if value}


def node(name: str, cpu: Any = 4, memory: str = "16Gi", at: str = "", **more: Any) -> Obj:
    room = {"cpu": str(cpu), "memory": memory, "pods": "110", **more.pop("extra", {})}
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(name, False, at, labels=labels),
        "spec": more,
        "status": {"capacity": room, "allocatable": dict(room)},
    }


def pod_spec(cpu: Any = 1, memory: str | None = "1Gi", priority: str = "", **more: Any) -> dict[str, Any]:
    asks = {**({"cpu": str(cpu)} if cpu is not None else {}), **({"memory": memory} if memory else {})}
    asks |= more.pop("extra", {})
    container: dict[str, Any] = {"name": "c", "image": "busybox"}
    if asks:
        container["resources"] = {"requests": asks}
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    return spec | ({"priorityClassName": priority} if priority else {})


def pod(name: str, group: str = "", role: str = "", at: str = "", queue: str = "", **more: Any) -> Obj:
    """A pod, of a PodGroup if it names one."""
    notes = _sim(more.pop("run", ""), more.pop("exit_code", ""), more.pop("start", ""), more.pop("stop", ""))
    notes |= {"scheduling.k8s.io/group-name": group} if group else {}
    notes |= {"volcano.sh/task-spec": role} if role else {}
    notes |= {"scheduling.volcano.sh/queue-name": queue} if queue else {}
    notes |= more.pop("annotations", {})
    metadata = _meta(name, True, at, more.pop("delete_at", ""), annotations=notes, labels=more.pop("labels", {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "enbloc", **pod_spec(**more)},
    }


def role(name: str, replicas: int | None, minimum: int | None = None, **more: Any) -> dict[str, Any]:
    notes = _sim(more.pop("run", ""), more.pop("exit_code", ""), more.pop("start", ""), more.pop("stop", ""))
    task: dict[str, Any] = {"name": name}
    if replicas is not None:
        task["replicas"] = replicas
    if minimum is not None:
        task["minAvailable"] = minimum
    for key in ("policies", "dependsOn"):
        if key in more:
            task[key] = more.pop(key)
    task["template"] = {"metadata": {"annotations": notes}, "spec": pod_spec(**more)}
    return task


def job(name: str, *roles: dict[str, Any], minimum: int | None = None, queue: str = "", **more: Any) -> Obj:
    metadata = _meta(
        name, True, more.pop("at", ""), more.pop("delete_at", ""), annotations=more.pop("annotations", None)
    )
    spec: dict[str, Any] = {"schedulerName": "enbloc", "tasks": list(roles), **more}
    spec |= {"minAvailable": minimum} if minimum is not None else {}
    spec |= {"queue": queue} if queue else {}
    return {"apiVersion": BATCH, "kind": "Job", "metadata": metadata, "spec": spec}


def small(name: str, cpu: int = 1, queue: str = "", run: str = "", **more: Any) -> Obj:
    """A job of one pod."""
    return job(name, role("w", 1, cpu=cpu, run=run), queue=queue, **more)


def podgroup(name: str, minimum: int, queue: str = "", at: str = "", **more: Any) -> Obj:
    spec = {"minMember": minimum, **({"queue": queue} if queue else {}), **more}
    return {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": _meta(name, True, at), "spec": spec}


def queue(name: str, weight: int = 1, at: str = "", state: str = "", **more: Any) -> Obj:
    if "guarantee" in more:
        more["guarantee"] = {"resource": more["guarantee"]}
    metadata = _meta(name, False, at, more.pop("delete_at", ""))
    obj = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": metadata, "spec": {"weight": weight, **more}}
    return obj | ({"status": {"state": state}} if state else {})


def priority(name: str, value: int) -> Obj:
    metadata = _meta(name, False)
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}


def step(at: str, do: str, kind: str = "", name: str = "", **more: Any) -> Obj:
    groups = {"Job": BATCH, "Queue": SCHEDULING, "PodGroup": SCHEDULING}
    target: dict[str, Any] = {"apiVersion": groups.get(kind, "v1"), "kind": kind, "name": name}
    if kind not in ("Queue", "Node"):
        target["namespace"] = "default"
    return {
        "apiVersion": "sim.enbloc.dev/v1",
        "kind": "Step",
        "at": at,
        "do": do,
        **({"target": target} if kind else {}),
        **more,
    }


def patch(at: str, kind: str, name: str, **body: Any) -> Obj:
    return step(at, "patch", kind, name, patch=body)


class Told:
    """A run, and questions to it."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.objects = result.objects
        self.pending = {gang["gang"]: gang for gang in result.pending}

    def lines(self, what: str, name: str = "") -> list[Any]:
        return [line for line in self.result.timeline if line.what == what and (not name or line.name == name)]

    def bound(self, prefix: str = "", until: float = 1e9) -> dict[str, float]:
        """When each pod was bound first."""
        found: dict[str, float] = {}
        for line in self.lines("bound"):
            if line.name.startswith(prefix) and line.t <= until:
                found.setdefault(line.name, line.t)
        return found

    def nodes(self, prefix: str = "") -> dict[str, str]:
        return {line.name: line.node for line in self.lines("bound") if line.name.startswith(prefix)}

    def rejected(self, name: str) -> str:
        lines = self.lines("rejected", name)
        assert lines, f"{name} was not rejected: {[str(line) for line in self.result.timeline]}"
        message: str = lines[0].message
        return message

    def obj(self, kind: str, name: str) -> Obj:
        found = [one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name]
        assert found, f"no {kind} {name}"
        return found[0]

    def pods(self, prefix: str = "") -> list[str]:
        return sorted(
            one["metadata"]["name"]
            for one in self.objects
            if one["kind"] == "Pod" and one["metadata"]["name"].startswith(prefix)
        )

    def group_of(self, job_name: str) -> Obj:
        return self.obj("PodGroup", f"{job_name}-{self.obj('Job', job_name)['metadata']['uid']}")

    def phase(self, job_name: str) -> str:
        found: str = self.obj("Job", job_name)["status"]["state"]["phase"]
        return found

    def phases(self, job_name: str) -> list[tuple[float, str]]:
        return [(line.t, line.to) for line in self.lines("phase", job_name) if line.kind == "Job"]


def documents(*objects: Obj | list[Obj]) -> list[Document]:
    flat: list[Obj] = []
    for one in objects:
        flat.extend(one if isinstance(one, list) else [one])
    return [Document("story.yaml", number, copy.deepcopy(value)) for number, value in enumerate(flat, 1)]


PLAIN: dict[str, Any] = {"actions": "enqueue, allocate, backfill"}
"""Nobody is evicted: what queues may take is seen, not what they take back."""


def play(*objects: Obj | list[Obj], config: dict[str, Any] | None = None, until: str = "") -> Told:
    simulation = Simulation(read_scenario(documents(*objects)), parse(config))
    return Told(simulation.run(parse_duration(until) if until else None))


def linted(*objects: Obj | list[Obj], relaxed: bool = False) -> Linted:
    return lint(documents(*objects), Settings(relaxed=relaxed))
