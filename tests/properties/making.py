"""Objects for random clusters, as the API would hand them out, and the strategies that draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, name_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Config, parse, scheduler_names
from enbloc.config.model import Binpack, Scoring
from enbloc.engine.engine import Engine
from enbloc.runtime.scheduler import Scheduler
from enbloc.units import format_timestamp

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU = "example.com/gpu"
ZONE, HOST = "zone", "kubernetes.io/hostname"

Spec = dict[str, Any]


def node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    gpu: int = 0,
    labels: Mapping[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
) -> Obj:
    room: Spec = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpu:
        room[GPU] = str(gpu)
    spec: Spec = {}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": room},
    }


def pod_spec(requests: Mapping[str, str] | None = None, **more: Any) -> Spec:
    container: Spec = {"name": "c", "image": "i", "resources": {"requests": dict(requests or {})}}
    ports = more.pop("ports", None)
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    return {"schedulerName": "enbloc", "restartPolicy": "Never", "containers": [container], **more}


def pod(
    name: str,
    spec: Spec,
    group: str = "",
    role: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Obj:
    notes = dict(annotations or {})
    if group:
        notes["scheduling.k8s.io/group-name"] = group
    if role:
        notes["volcano.sh/task-spec"] = role
    metadata = {"name": name, "namespace": "default", "labels": dict(labels or {}), "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pod_group(name: str, minimum: int, minima: Mapping[str, int] | None = None, **spec: Any) -> Obj:
    if minima:
        spec["minTaskMember"] = dict(minima)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": minimum, **spec},
    }


def job(name: str, tasks: list[Spec], **spec: Any) -> Obj:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "enbloc", "tasks": tasks, **spec},
    }


def role(
    name: str, replicas: int, spec: Spec, minimum: int | None = None, annotations: Mapping[str, str] | None = None
) -> Spec:
    template = {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}
    found: Spec = {"name": name, "replicas": replicas, "template": template}
    if minimum is not None:
        found["minAvailable"] = minimum
    return found


def queue(name: str, **spec: Any) -> Obj:
    api_version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}


def priority_class(name: str, value: int) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


# ---- a scheduler that is told of objects directly, without an API


class Told:
    """A scheduler over no cluster: it is told what there is, and decides; nobody carries it out."""

    def __init__(self, config: Config, plain: bool = False) -> None:
        self.scheduler = Scheduler(None, config, scheduler_names(config, alone=True))  # type: ignore[arg-type]
        self.engine = self.scheduler.engine = Engine(config, plain=plain)
        self.made: dict[tuple[str, str], Obj] = {}
        for name in ("root", "default"):
            self.tell(queue(name))

    def tell(self, obj: Obj, created: int = 0) -> Obj:
        """The object came or changed."""
        key = (kind_id(obj), name_of(obj))
        known = self.made.get(key)
        given = {"uid": f"{key[0]}/{key[1]}", "creationTimestamp": format_timestamp(created * 10**9)}
        metadata = {**obj["metadata"], **(known["metadata"] if known else given)}
        self.made[key] = {**obj, "metadata": metadata}
        self.scheduler.observe(WatchEvent("MODIFIED" if known else "ADDED", key[0], self.made[key]))
        return self.made[key]

    def gone(self, kind: str, name: str) -> None:
        obj = self.made.pop((kind, name))
        self.scheduler.observe(WatchEvent("DELETED", kind, obj))


def configured(scoring: Scoring) -> Config:
    config = parse(None)
    return Config(**{name: getattr(config, name) for name in config.__struct_fields__} | {"scoring": scoring})


# ---- strategies

weights = st.sampled_from([0, 0, 1, 2, 5])
scorings = st.builds(
    Scoring,
    least=weights,
    most=weights,
    balanced=weights,
    node_affinity=weights,
    pod_affinity=weights,
    taint_toleration=weights,
    spread=weights,
    binpack=st.builds(
        Binpack,
        weight=weights,
        resources=st.fixed_dictionaries({}, optional={"cpu": weights, "memory": weights, GPU: weights}),
    ),
)
zones = st.sampled_from("abc")
taints = st.sampled_from(
    [
        {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
        {"key": "old", "effect": "PreferNoSchedule"},
    ]
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Obj:
    return node(
        name,
        cpu=draw(st.sampled_from(["1", "2", "3", "4500m", "7", "16"])),
        memory=draw(st.sampled_from(["1Gi", "3Gi", "4Gi", "4100Mi", "16Gi"])),
        pods=draw(st.sampled_from([1, 3, 5, 110, 110])),
        gpu=draw(st.sampled_from([0, 0, 1, 4])),
        labels={ZONE: draw(zones)} if draw(st.booleans()) else {},
        taints=draw(st.lists(taints, max_size=2, unique_by=lambda taint: taint["key"])),
        unschedulable=draw(st.integers(0, 7)) == 7,
    )


requests = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["0", "100m", "100m", "333m", "500m", "1", "2"]),
        "memory": st.sampled_from(["0", "1", "128Mi", "128Mi", "500Mi", "1Gi", "3Gi"]),
        GPU: st.sampled_from(["0", "0", "0", "0", "1", "2"]),
    }
)
plain_requests = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["100m", "500m", "1", "2"])}, optional={"memory": st.sampled_from(["128Mi", "1Gi", "2Gi"])}
)


@st.composite
def standing(draw: st.DrawFn) -> Spec:
    """What a pod asks of a node itself."""
    found: Spec = {}
    if draw(st.integers(0, 3)) == 3:
        found["nodeSelector"] = {ZONE: draw(zones)}
    if draw(st.integers(0, 2)) == 2:
        found["tolerations"] = [draw(st.sampled_from([{"operator": "Exists"}, {"key": "slow", "operator": "Exists"}]))]
    if draw(st.integers(0, 2)) == 2:
        preferred = [
            {"weight": weight, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}}
            for weight, zone in draw(st.lists(st.tuples(st.integers(1, 100), zones), min_size=1, max_size=2))
        ]
        found["affinity"] = {"nodeAffinity": {PREFERRED: preferred}}
    return found


TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
PER_HOST = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
stateful = st.sampled_from(
    [
        {"affinity": {"podAffinity": {REQUIRED: [TERM]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [PER_HOST]}}},
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": TERM}]}}},
        {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": PER_HOST}]}}},
        {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}]},
        {"topologySpreadConstraints": [{"maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", **PER_HOST}]},
        {"ports": [8080]},
        {"ports": [8080, 9090]},
    ]
)


@st.composite
def pod_specs(draw: st.DrawFn, moving_share: int = 4) -> Spec:
    """Any pod; one of `moving_share` looks at where others are."""
    looks = draw(stateful) if draw(st.integers(1, moving_share)) == moving_share else {}
    return pod_spec(draw(requests), **{**draw(standing()), **looks})


labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}])

QUEUE, POD_GROUP, JOB = volcano.QUEUE, volcano.POD_GROUP, volcano.JOB
