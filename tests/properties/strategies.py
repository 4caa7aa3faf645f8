"""Strategies that draw the objects of random clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from enbloc.api import volcano
from enbloc.api.meta import Obj
from enbloc.config import Config, parse
from enbloc.config.model import Binpack, Scoring
from support import manifests as m

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU = "example.com/gpu"
ZONE, HOST = "zone", "kubernetes.io/hostname"


def pod_spec(requests: Mapping[str, str] | None = None, ports: Iterable[int] = (), **spec: Any) -> Obj:
    """`ports`: of the host."""
    found = m.pod_spec(None, extra=requests, **{"schedulerName": "enbloc", **spec})
    if ports:
        found["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    return found


def configured(scoring: Scoring) -> Config:
    config = parse(None)
    return Config(**{name: getattr(config, name) for name in config.__struct_fields__} | {"scoring": scoring})


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
    return m.node(
        name,
        cpu=draw(st.sampled_from(["1", "2", "3", "4500m", "7", "16"])),
        memory=draw(st.sampled_from(["1Gi", "3Gi", "4Gi", "4100Mi", "16Gi"])),
        pods=draw(st.sampled_from([1, 3, 5, 110, 110])),
        extra={GPU: gpu} if (gpu := draw(st.sampled_from([0, 0, 1, 4]))) else {},
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
def standing(draw: st.DrawFn) -> Obj:
    """What a pod asks of a node itself."""
    found: Obj = {}
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
def pod_specs(draw: st.DrawFn, moving_share: int = 4) -> Obj:
    """Any pod; one of `moving_share` looks at where others are."""
    looks = draw(stateful) if draw(st.integers(1, moving_share)) == moving_share else {}
    return pod_spec(draw(requests), **{**draw(standing()), **looks})


labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}])

QUEUE, POD_GROUP, JOB = volcano.QUEUE, volcano.POD_GROUP, volcano.JOB
