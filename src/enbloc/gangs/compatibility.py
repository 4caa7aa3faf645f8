"""The fields that bear on where and when pods run, by dialect, and what each does here (N1).

The table decides: gangs are held by it, `lint` and admission warn by it, and `docs/compatibility.md` is generated from
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from enbloc.api import arbitrator, coscheduling, kai, koordinator, kubernetes, topology, volcano, workloads, yunikorn
from enbloc.api.job_plugins import WITHOUT_EFFECT
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.gangs import hints
from enbloc.gangs.constraints import Effect, Field, Unhonoured, unhonoured

_HONOURED, _HELD, _PREFERENCE, _NONE = Effect.HONOURED, Effect.HELD, Effect.PREFERENCE, Effect.NONE

_USE_LABELS: Final = "use a required pod affinity or a nodeSelector on a label of the nodes, or remove it"
_USE_QUEUE: Final = f"name a Queue with the annotation {volcano.QUEUE_KEYS[1]}, or remove it"
_USE_PARENT: Final = "use spec.parent and spec.weight of the queues"
_OWN_CONFIG: Final = "give the pods its data by a ConfigMap of your own, or remove it"
_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
_NODE_POOL: Final = "kai.scheduler/node-pool"
_USE_NODE_SELECTOR: Final = f"use a nodeSelector on {_NODE_POOL} in the pods"
_REMOVE_HINT: Final = "remove it if it is not needed"


def _has(key: str, *values: str) -> Callable[[Any], bool]:
    """Whether a mapping, or the JSON of one, has one of these values; without values: any."""

    def applies(value: Any) -> bool:
        found = _mapping(value).get(key)
        return found in values if values else bool(found)

    return applies


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _is(*values: str) -> Callable[[Any], bool]:
    return lambda value: value in values


def _is_set(value: Any) -> bool:
    """Whether it is there: for keys that mean something with an empty value."""
    return value is not None


def _has_several(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1


def _requires_affinity(value: Any) -> bool:
    return any(_mapping(part).get(_REQUIRED) for part in _mapping(value).values())


def _prefers_affinity(value: Any) -> bool:
    parts = [_mapping(part) for part in _mapping(value).values()]
    return any(part.get(_PREFERRED) for part in parts) and not any(part.get(_REQUIRED) for part in parts)


_DEVICE_CONDITIONS: Final = ("selector", "vfSelector", "requiredTopologyScope", "exclusivePolicy")


def _restricts_devices(value: Any) -> bool:
    """Whether hints of Koordinator, by type of device, say which devices are not to be taken."""
    return any(_mapping(hint).get(key) for hint in _mapping(value).values() for key in _DEVICE_CONDITIONS)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _annotation(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _label(key: str) -> str:
    return f"metadata.labels[{key}]"


def _honoured(dialect: str, kind: str, *paths: str) -> tuple[Field, ...]:
    return tuple(Field(dialect, kind, path, _HONOURED) for path in paths)


_POD: Final = (
    *_honoured(
        "Kubernetes",
        "Pod",
        "spec.nodeSelector",
        f"spec.affinity.nodeAffinity.{_REQUIRED}",
        f"spec.affinity.podAffinity.{_REQUIRED}",
        f"spec.affinity.podAntiAffinity.{_REQUIRED}",
        "spec.topologySpreadConstraints",
        "spec.tolerations",
        "spec.schedulingGates",
        "spec.overhead",
        "spec.runtimeClassName",
        "spec.resources",
        "spec.priorityClassName",
        "spec.schedulingGroup.podGroupName",
    ),
    Field(
        "Kubernetes",
        "Pod",
        "spec.resourceClaims",
        _HELD,
        way_out="request the device as an extended resource (resources.limits), or remove the claim",
    ),
    *_honoured("Kubernetes", "Pod", "spec.workloadRef"),
    *_honoured("Volcano", "Pod", _annotation(volcano.GROUP_NAME_KEYS[0]), _annotation(volcano.QUEUE_KEYS[1])),
    Field(
        "Volcano",
        "Pod",
        _annotation("volcano.sh/numa-topology-policy"),
        _HELD,
        "restricted, single-numa-node",
        _USE_LABELS,
        _is("restricted", "single-numa-node"),
    ),
    Field(
        "Volcano",
        "Pod",
        _annotation("volcano.sh/numa-topology-policy"),
        _PREFERENCE,
        "best-effort",
        _REMOVE_HINT,
        _is("best-effort"),
    ),
    Field("Volcano", "Pod", _annotation("volcano.sh/revocable-zone"), _PREFERENCE, way_out=_REMOVE_HINT),
    Field("Volcano", "Pod", _annotation(_ALLOCATION_GATE), _PREFERENCE, "true", _REMOVE_HINT, _is("true")),
    *_honoured(
        "Koordinator",
        "Pod",
        _annotation(koordinator.MIN_AVAILABLE),
        _annotation(koordinator.MODE),
        _annotation(koordinator.GROUPS),
        _label(koordinator.POD_GROUP_KEY),
    ),
    Field("Koordinator", "Pod", _label(hints.KOORDINATOR_PREEMPTIBLE), _HONOURED, "false: no victim"),
    Field("Koordinator", "Pod", _label(hints.KOORDINATOR_NOT_PREEMPTIBLE), _HONOURED, "true: no victim"),
    Field("Koordinator", "Pod", _annotation(koordinator.TOTAL_NUMBER), _NONE, "shown, as Koordinator does"),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/numa-topology-spec"),
        _HELD,
        "numaTopologyPolicy: Restricted, SingleNUMANode",
        _USE_LABELS,
        _has("numaTopologyPolicy", "Restricted", "SingleNUMANode"),
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/resource-spec"),
        _HELD,
        "requiredCPUBindPolicy",
        "use preferredCPUBindPolicy, or remove it",
        _has("requiredCPUBindPolicy"),
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/reservation-affinity"),
        _HELD,
        "requiredDuringSchedulingIgnoredDuringExecution, name",
        _USE_LABELS,
        lambda value: _has(_REQUIRED)(value) or _has("name")(value),
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/device-joint-allocate"),
        _HELD,
        "requiredScope",
        "remove requiredScope",
        _has("requiredScope"),
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/device-allocate-hint"),
        _HELD,
        ", ".join(_DEVICE_CONDITIONS),
        _USE_LABELS,
        _restricts_devices,
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/device-allocate-hint"),
        _PREFERENCE,
        "allocateStrategy alone",
        _REMOVE_HINT,
        lambda value: bool(value) and not _restricts_devices(value),
    ),
    Field("Koordinator", "Pod", _label("quota.scheduling.koordinator.sh/name"), _HELD, way_out=_USE_QUEUE),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/gpu-partition-spec"),
        _HELD,
        "allocatePolicy: Restricted",
        "use allocatePolicy: BestEffort, or remove it",
        _has("allocatePolicy", "Restricted"),
    ),
    Field(
        "Koordinator",
        "Pod",
        _annotation("scheduling.koordinator.sh/gpu-partition-spec"),
        _PREFERENCE,
        "allocatePolicy: BestEffort",
        _REMOVE_HINT,
        _has("allocatePolicy", "BestEffort"),
    ),
    Field(
        "Koordinator",
        "Pod",
        _label("koordinator.sh/qosClass"),
        _PREFERENCE,
        "LSE, LSR: no CPUs are bound",
        _REMOVE_HINT,
        _is("LSE", "LSR"),
    ),
    *_honoured("scheduler-plugins", "Pod", _label(coscheduling.POD_GROUP_LABEL)),
    *_honoured("KAI", "Pod", _annotation(kai.GROUP_NAME), _label(kai.SUBGROUP), _label(kai.QUEUE)),
    *_honoured("KAI", "Pod", _annotation(topology.KAI_REQUIRED), _annotation(topology.KAI_PREFERRED)),
    *_honoured(
        "KAI",
        "Pod",
        _annotation(topology.KAI_SEGMENT_SIZE),
        _annotation(topology.KAI_SEGMENT_REQUIRED),
        _annotation(topology.KAI_SEGMENT_PREFERRED),
    ),
    *_honoured("Kueue", "Pod", _annotation(topology.KUEUE_REQUIRED), _annotation(topology.KUEUE_PREFERRED)),
    Field("Kueue", "Pod", _annotation(topology.KUEUE_UNCONSTRAINED), _NONE, "the pods may be anywhere"),
    *_honoured(
        "Kueue",
        "Pod",
        _annotation(topology.KUEUE_SLICE_REQUIRED),
        _annotation(topology.KUEUE_SLICE_SIZE),
        _annotation(topology.KUEUE_SLICE_LAYERS),
        _annotation(topology.KUEUE_GROUP),
    ),
    Field("KAI", "Pod", _label(hints.KAI_PREEMPTIBILITY), _HONOURED, "non-preemptible: no victim"),
    Field("KAI", "Pod", _label(_NODE_POOL), _HELD, way_out=_USE_NODE_SELECTOR),
    Field("KAI", "Pod", _annotation("gpu-fraction"), _HELD, way_out="request whole GPUs (nvidia.com/gpu)"),
    Field("KAI", "Pod", _annotation("gpu-memory"), _HELD, way_out="request whole GPUs (nvidia.com/gpu)"),
    *_honoured(
        "YuniKorn",
        "Pod",
        _annotation(yunikorn.TASK_GROUPS),
        _annotation(yunikorn.TASK_GROUP_NAME),
        _label(yunikorn.APP_ID_LABELS[0]),
        _label(yunikorn.QUEUE),
    ),
    Field("YuniKorn", "Pod", _annotation(yunikorn.POLICY_PARAMETERS), _PREFERENCE, way_out=_REMOVE_HINT),
)

_TASK_TOPOLOGY: Final = (
    "volcano.sh/task-topology-affinity",
    "volcano.sh/task-topology-anti-affinity",
    "volcano.sh/task-topology-task-order",
)


def _network_topology(kind: str, path: str) -> tuple[Field, ...]:
    return (
        Field("Volcano", kind, path, _HONOURED, "mode: hard (the default)"),
        Field("Volcano", kind, path, _HONOURED, "mode: soft"),
    )


_VOLCANO: Final = (
    *_honoured(
        "Volcano",
        volcano.JOB,
        "spec.minAvailable",
        "spec.tasks[].minAvailable",
        "spec.tasks[].dependsOn",
        "spec.queue",
        "spec.priorityClassName",
    ),
    *_network_topology(volcano.JOB, "spec.networkTopology"),
    Field("Volcano", volcano.JOB, "spec.tasks[].partitionPolicy", _HONOURED, "without dependsOn also minPartitions"),
    Field(
        "Volcano",
        volcano.JOB,
        "spec.tasks[].topologyPolicy",
        _HELD,
        "restricted, single-numa-node",
        _USE_LABELS,
        _is("restricted", "single-numa-node"),
    ),
    Field(
        "Volcano",
        volcano.JOB,
        "spec.tasks[].topologyPolicy",
        _PREFERENCE,
        "best-effort",
        _REMOVE_HINT,
        _is("best-effort"),
    ),
    Field("Volcano", volcano.JOB, "spec.runningEstimate", _NONE),
    *(
        Field("Volcano", volcano.JOB, f"spec.plugins.{name}", _PREFERENCE, way_out=_OWN_CONFIG, applies=_is_set)
        for name in WITHOUT_EFFECT
    ),
    *(Field("Volcano", volcano.JOB, _annotation(key), _PREFERENCE, way_out=_REMOVE_HINT) for key in _TASK_TOPOLOGY),
    *_honoured(
        "Volcano",
        volcano.POD_GROUP,
        "spec.minMember",
        "spec.minTaskMember",
        "spec.minResources",
        "spec.queue",
        "spec.priorityClassName",
        _annotation(hints.PREEMPTABLE),
    ),
    *_network_topology(volcano.POD_GROUP, "spec.networkTopology"),
    *_honoured("Volcano", volcano.POD_GROUP, "spec.subGroupPolicy"),
    *(
        Field("Volcano", volcano.POD_GROUP, _annotation(key), _PREFERENCE, way_out=_REMOVE_HINT)
        for key in _TASK_TOPOLOGY
    ),
    *_honoured(
        "Volcano",
        workloads.REPLICA_SET,
        _annotation(volcano.GROUP_MIN_MEMBER),
        _annotation(topology.VOLCANO_MODE),
        _annotation(topology.VOLCANO_HIGHEST_TIER),
    ),
    *_honoured(
        "Volcano",
        volcano.QUEUE,
        "spec.weight",
        "spec.capability",
        "spec.guarantee",
        "spec.deserved",
        "spec.reclaimable",
        "spec.priority",
        "spec.parent",
        "spec.dequeueStrategy",
        _annotation(volcano.DEQUEUE_STRATEGY),
    ),
    *(Field("Volcano", volcano.QUEUE, _annotation(key), _PREFERENCE, way_out=_USE_PARENT) for key in volcano.HIERARCHY),
    Field(
        "Volcano",
        volcano.QUEUE,
        "spec.affinity",
        _HELD,
        f"{_REQUIRED} of nodeGroupAffinity or nodeGroupAntiAffinity",
        "use a nodeSelector in the jobs, or remove it",
        _requires_affinity,
    ),
    Field("Volcano", volcano.QUEUE, "spec.affinity", _PREFERENCE, _PREFERRED, _REMOVE_HINT, _prefers_affinity),
    Field("Volcano", volcano.QUEUE, "spec.extendClusters", _NONE),
    Field("Volcano", volcano.QUEUE, "spec.type", _NONE),
)


def _gather_strategy(kind: str) -> tuple[Field, ...]:
    path = _annotation(topology.NETWORK_TOPOLOGY_SPEC)
    return (
        Field("Koordinator", kind, path, _HONOURED, "strategy: MustGather"),
        Field("Koordinator", kind, path, _HONOURED, "strategy: PreferGather"),
        Field("Koordinator", kind, path, _HONOURED, "podCountMultiple"),
    )


def _kai_topology(path: str) -> tuple[Field, ...]:
    required, preferred = f"{path}.requiredTopologyLevel", f"{path}.preferredTopologyLevel"
    return _honoured("KAI", kai.POD_GROUP, required, preferred)


def _native_topology(kind: str) -> tuple[Field, ...]:
    path = "spec.schedulingConstraints.topology"
    return (
        Field("Kubernetes", kind, path, _HONOURED, "one key"),
        Field("Kubernetes", kind, path, _HELD, "several keys", "name one key", _has_several),
    )


def _start(dialect: str, kind: str) -> tuple[Field, ...]:
    """Koordinator's annotations on how a gang starts count on objects of other dialects as well (K1)."""
    return _honoured(dialect, kind, _annotation(koordinator.MODE), _annotation(koordinator.GROUPS))


_OTHERS: Final = (
    *_start("Volcano", volcano.JOB),
    *_start("Volcano", volcano.POD_GROUP),
    *_start("Kubernetes", kubernetes.POD_GROUP),
    *_gather_strategy("Pod"),
    *_honoured("Koordinator", koordinator.POD_GROUP, "spec.minMember", "spec.minResources"),
    *_gather_strategy(koordinator.POD_GROUP),
    *_honoured("scheduler-plugins", coscheduling.POD_GROUP, "spec.minMember", "spec.minResources"),
    *_honoured(
        "Kubernetes",
        kubernetes.POD_GROUP,
        "spec.schedulingPolicy.gang.minCount",
        "spec.priorityClassName",
        "spec.preemptionPolicy",
        "spec.disruptionMode",
    ),
    *_honoured("Kubernetes", kubernetes.WORKLOAD, "spec.podGroups[].policy"),
    *_native_topology(kubernetes.POD_GROUP),
    Field(
        "Kubernetes",
        kubernetes.POD_GROUP,
        "spec.resourceClaims",
        _HELD,
        way_out="request the device as an extended resource of the pods, or remove the claim",
    ),
    *_honoured("Kubernetes", kubernetes.POD_GROUP, "spec.parentCompositePodGroupName"),
    *_honoured(
        "Kubernetes",
        kubernetes.COMPOSITE_POD_GROUP,
        "spec.schedulingPolicy.gang.minGroupCount",
        "spec.priorityClassName",
        "spec.preemptionPolicy",
        "spec.disruptionMode",
        "spec.parentCompositePodGroupName",
    ),
    *_native_topology(kubernetes.COMPOSITE_POD_GROUP),
    Field(
        "Kubernetes",
        kubernetes.COMPOSITE_POD_GROUP,
        "spec.resourceClaims",
        _HELD,
        way_out="request the device as an extended resource of the pods, or remove the claim",
    ),
    *_honoured(
        "KAI",
        kai.POD_GROUP,
        "spec.minMember",
        "spec.queue",
        "spec.priorityClassName",
        "spec.preemptibility",
        "spec.minSubGroup",
        "spec.subGroups[].minMember",
        "spec.subGroups[].minSubGroup",
        "spec.subGroups[].parent",
    ),
    *_kai_topology("spec.topologyConstraint"),
    *_kai_topology("spec.subGroups[].topologyConstraint"),
    Field("KAI", kai.POD_GROUP, _label(_NODE_POOL), _HELD, way_out=_USE_NODE_SELECTOR),
    Field("KAI", kai.POD_GROUP, "spec.markUnschedulable", _NONE),
    Field("KAI", kai.POD_GROUP, "spec.schedulingBackoff", _NONE),
    Field("KAI", kai.POD_GROUP, "spec.backoffLimit", _NONE),
    Field("KAI", kai.POD_GROUP, "spec.completions", _NONE),
    Field("KAI", kai.POD_GROUP, "spec.parallelism", _NONE),
    *_honoured(
        "kube-arbitrator",
        arbitrator.SCHEDULING_SPEC,
        "spec.minAvailable",
        "spec.nodeSelector",
        "spec.priorityClassName",
    ),
)

FIELDS: Final = (*_POD, *_VOLCANO, *_OTHERS)

_CHECKED: Final[dict[str, tuple[Field, ...]]] = {
    kind: tuple(field for field in FIELDS if field.kind == kind and field.effect in (Effect.HELD, Effect.PREFERENCE))
    for kind in dict.fromkeys(field.kind for field in FIELDS)
}


def constraints_of(obj: Obj) -> list[Unhonoured]:
    """What an object sets and this version does not honour, its pod templates aside."""
    fields = _CHECKED.get(kind_id(obj))
    return unhonoured(obj, fields) if fields else []


def template_constraints(template: Any) -> list[Unhonoured]:
    """The same of a pod template."""
    return unhonoured(template, _CHECKED["Pod"]) if isinstance(template, dict) else []


def pod_constraints(pod: Obj) -> list[Unhonoured]:
    return unhonoured(pod, _CHECKED["Pod"])


def markdown() -> str:
    """The table of `docs/compatibility.md`."""
    lines = ["| dialect | object | field | value | effect | instead |", "|---|---|---|---|---|---|"]
    for field in sorted(FIELDS, key=lambda field: (field.dialect.lower(), field.kind)):
        kind = field.kind.partition(".")[0]
        way_out = field.way_out if field.effect is Effect.HELD else ""
        cells = (field.dialect, kind, f"`{field.path}`", field.case, str(field.effect), way_out)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
