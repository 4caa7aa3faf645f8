"""N1: no constraint is dropped. Every row of the table is tried: a gang runs, one field is set, and what follows is as
the row says."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from enbloc.api import coscheduling, kai, koordinator, kubernetes, topology, volcano, workloads, yunikorn
from enbloc.gangs.compatibility import FIELDS
from enbloc.gangs.constraints import Effect, Field
from support import manifests as m
from support import racks as r
from support.answers import Answer, waits_because
from support.simulation import lint, simulate

Obj = dict[str, Any]

HIGH = m.priority_class("high", 1000)
NO_ROOM = m.queue("none", capability={"cpu": "0"})
FIRST = "of two that do not fit together, the older one"
MOST = "of six pods five fit"


def alone(kind: str) -> list[Obj]:
    """A gang of one pod that fits; `x` is the object of this kind."""
    node, pod, group = m.node("n"), m.pod("p"), {"group": "x"}
    match kind:
        case "Pod":
            return [node, m.pod("x")]
        case volcano.JOB:
            return [node, NO_ROOM, m.job("x", m.role("a", 1), m.role("b", 1, start_delay="10s"))]
        case volcano.POD_GROUP:
            return [node, NO_ROOM, m.podgroup("x", 1), m.pod("p", role="w", **group)]
        case volcano.QUEUE:
            return [node, m.queue("top", capability={"cpu": "0"}), m.queue("x"), m.pod("p", queue="x")]
        case koordinator.POD_GROUP:
            return [node, m.sigs_podgroup("x", 1), *m.labelled_pods("x", 1)]
        case coscheduling.POD_GROUP:
            return [node, m.sigs_podgroup("x", 1, api=m.PLUGINS), *m.labelled_pods("x", 1, m.PLUGINS_LABEL)]
        case kubernetes.POD_GROUP:
            return [node, m.native_podgroup("x", {"gang": {"minCount": 1}}), *m.native_pods("x", 1)]
        case kubernetes.COMPOSITE_POD_GROUP:
            group = m.native_podgroup("g", {"gang": {"minCount": 1}}, parentCompositePodGroupName="x")
            return [node, composite("x"), group, *m.native_pods("g", 1)]
        case workloads.REPLICA_SET:
            return [node, replica_set(1)]
        case kubernetes.WORKLOAD:
            return [node, m.native_workload("x", {"w": {"basic": {}}}), *m.workload_pods("x", "w", 1)]
        case kai.POD_GROUP:
            return [node, NO_ROOM, m.kai_podgroup("x", 1, {"w": 1}), *m.kai_pods("x", 1, subgroup="w")]
    return [node, m.CRDJOB_DEFINITION, m.crdjob(), m.scheduling_spec("x", 1), *m.owned(pod)]


def composite(name: str) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": m.metadata(name),
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}},
    }


def contended(kind: str) -> list[Obj]:
    """The same with room for one pod, which an older pod takes unless `x` has priority."""
    rest = [one for one in alone(kind) if one["kind"] != "Node"]
    if kind == volcano.JOB:
        rest[-1]["spec"]["tasks"].pop()
    return [m.node("n", 1), HIGH, m.node("late", 1, at="9s"), m.pod("a", 1), *rest]


def most_fit(kind: str) -> list[Obj]:
    """A gang `x` of six pods of which five fit."""
    gang: list[Obj] = [m.job("x", m.role("a", 6))]
    if kind == volcano.POD_GROUP:
        gang = m.gang("x", 6)
    elif kind == kubernetes.POD_GROUP:
        gang = [m.native_podgroup("x", {"gang": {"minCount": 6}}), *m.native_pods("x", 6)]
    return [m.node("n", 8), HIGH, m.pod("busy", 3, priority="high"), *gang]


def two_queues(**of_both: Any) -> list[Obj]:
    """Four cpu for eight pods of two queues."""
    pods = [m.pod(f"{queue}{n}", queue=queue) for n in range(4) for queue in ("r", "x")]
    return [m.node("n"), m.queue("x", **of_both), m.queue("r", **of_both), *pods]


def victim(*members: Obj) -> list[Obj]:
    """Three cpu are used when a pod of high priority comes."""
    return [m.node("n", 3), HIGH, *members, m.pod("boss", 1, priority="high", at="5s")]


def preemptor(*members: Obj) -> list[Obj]:
    """One cpu is used by a pod that came before."""
    return [m.node("n", 1), HIGH, m.pod("a"), *members]


def reclaimed() -> list[Obj]:
    return [m.node("n"), m.queue("x"), m.queue("r"), *m.pods(4, "a", queue="x"), *m.pods(2, "b", queue="r", at="5s")]


def fifo() -> list[Obj]:
    return [m.node("n"), m.queue("x"), m.pod("large", 9, queue="x"), m.pod("small", queue="x", at="1s")]


def koordinator_pair() -> list[Obj]:
    """A gang of two with room for one."""
    mates = m.koordinator_gang("g", 2)
    mates[0]["metadata"]["name"] = "x"
    return [m.node("n", 1), *mates]


def replica_set(pods: int) -> Obj:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template: Obj = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"schedulerName": "enbloc", "containers": [container]},
    }
    spec: Obj = {"replicas": pods, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": m.metadata("x"), "spec": spec}


def kai_pod() -> list[Obj]:
    [pod] = m.kai_pods("g", 1, subgroup="w")
    pod["metadata"]["name"] = "x"
    return [pod]


def yunikorn_pair() -> list[Obj]:
    mates = m.yunikorn_pods("a", {"w": 2}, w=2)
    mates[1]["metadata"]["name"] = "x"
    return mates


def two_racks(kind: str) -> list[Obj]:
    """Without a preference the pods go to the large node; the small one is a domain of its own."""
    trees = [
        r.topology("dc", r.RACK, group=r.KAI),
        r.network_topology(("RackLayer", r.RACK)),
        *(r.hyper_node(f"h{name}", 1, name) for name in ("large-0", "small-0")),
    ]
    rest = [one for one in alone(kind) if one["kind"] != "Node"]
    for one in rest:
        if one["kind"] == "Pod" and one["metadata"]["name"] == "x":
            one["metadata"]["annotations"] = {topology.KAI_TREE: "dc"}
        if kind == kai.POD_GROUP and one["kind"] == "PodGroup":
            for vertex in (one["spec"], *one["spec"].get("subGroups", ())):
                vertex["topologyConstraint"] = {"topology": "dc"}
    return [*trees, *r.nodes({"large": [16]}), *r.nodes({"small": [4]}), *rest]


def in_no_hyper_node(kind: str) -> list[Obj]:
    return [r.hyper_node("h", 1, "other"), *alone(kind)]


def segments(annotations: dict[str, str], *nodes: Obj) -> list[Obj]:
    """A pod that names a tree; without `nodes` there is one, which is in no rack."""
    texts = {topology.KAI_TREE: "dc", **annotations}
    return [r.topology("dc", r.RACK, group=r.KAI), *(nodes or (m.node("n"),)), m.pod("x", annotations=texts)]


def leader_and_worker() -> list[Obj]:
    """Two roles in a rack each; `x` is not of the other's group."""
    texts = {topology.KUEUE_REQUIRED: r.RACK}
    mates = [m.pod("x", group="g", role="leader", annotations=texts)]
    mates.append(m.pod("y", group="g", role="worker", annotations={**texts, topology.KUEUE_GROUP: "one"}))
    return [*r.nodes({"a": [1], "b": [1]}), m.podgroup("g", 2), *mates]


def with_neighbour() -> list[Obj]:
    return [m.node("n"), m.pod("neighbour", labels={"app": "a"}), m.pod("x", at="1s")]


TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
ABSENT = {"labelSelector": {"matchLabels": {"app": "absent"}}, "topologyKey": "kubernetes.io/hostname"}
NEEDS_LABEL = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# Path, or path and case → a value; with a stage of its own where a gang that fits is not enough.
VALUES: dict[str, Any] = {
    "spec.nodeSelector": {"gpu": "a100"},
    f"spec.affinity.nodeAffinity.{REQUIRED}": {"nodeSelectorTerms": NEEDS_LABEL},
    f"spec.affinity.podAffinity.{REQUIRED}": [ABSENT],
    f"spec.affinity.podAntiAffinity.{REQUIRED}": ([TERM], with_neighbour()),
    "spec.topologySpreadConstraints": SPREAD,
    "spec.tolerations": (
        [{"operator": "Exists"}],
        [m.node("n", taints=[{"key": "k", "effect": "NoSchedule"}]), m.pod("x")],
    ),
    "spec.schedulingGates": [{"name": "example.com/hold"}],
    "spec.overhead": {"cpu": "9"},
    "spec.runtimeClassName": ("heavy", [m.node("n"), m.runtime_class("heavy", {"cpu": "9"}), m.pod("x")]),
    "spec.resources": {"requests": {"cpu": "9"}},
    "spec.priorityClassName": ("high", FIRST),
    "spec.schedulingGroup.podGroupName": "absent",
    "spec.resourceClaims": [{"name": "gpu", "resourceClaimName": "absent"}],
    "spec.workloadRef": {"name": "absent", "podGroup": "workers"},
    "spec.podGroups[].policy": {"gang": {"minCount": 2}},
    f"metadata.annotations[{m.GROUP_NAME}]": "absent",
    f"metadata.annotations[{m.QUEUE_NAME}]": "absent",
    "metadata.annotations[volcano.sh/numa-topology-policy] restricted, single-numa-node": "restricted",
    "metadata.annotations[volcano.sh/numa-topology-policy] best-effort": "best-effort",
    "metadata.annotations[volcano.sh/revocable-zone]": "rz1",
    "metadata.annotations[scheduling.volcano.sh/queue-allocation-gate] true": "true",
    f"metadata.annotations[{koordinator.MIN_AVAILABLE}]": (
        "2",
        [m.node("n"), m.pod("x", annotations=m.koordinator_annotations("g", 1))],
    ),
    f"Job metadata.annotations[{koordinator.MODE}]": ("NonStrict", MOST),
    f"PodGroup metadata.annotations[{koordinator.MODE}]": ("NonStrict", MOST),
    f"Job metadata.annotations[{koordinator.GROUPS}]": ["default/x", "default/none"],
    f"PodGroup metadata.annotations[{koordinator.GROUPS}]": ["default/x", "default/none"],
    f"metadata.annotations[{koordinator.MODE}]": ("NonStrict", koordinator_pair()),
    f"metadata.annotations[{koordinator.GROUPS}]": (
        '["default/g","default/absent"]',
        koordinator_pair() + [m.node("late", at="5s")],
    ),
    f"metadata.annotations[{koordinator.TOTAL_NUMBER}]": ("9", koordinator_pair() + [m.node("late", at="5s")]),
    f"metadata.labels[{koordinator.POD_GROUP_KEY}]": "absent",
    "metadata.annotations[scheduling.koordinator.sh/numa-topology-spec]": {"numaTopologyPolicy": "SingleNUMANode"},
    "metadata.annotations[scheduling.koordinator.sh/resource-spec]": {"requiredCPUBindPolicy": "FullPCPUs"},
    "metadata.annotations[scheduling.koordinator.sh/reservation-affinity]": {"name": "r1"},
    "metadata.annotations[scheduling.koordinator.sh/device-joint-allocate]": {"requiredScope": "SamePCIe"},
    "metadata.annotations[scheduling.koordinator.sh/device-allocate-hint] "
    "selector, vfSelector, requiredTopologyScope, exclusivePolicy": {
        "gpu": {"selector": {"matchLabels": {"model": "a100"}}}
    },
    "metadata.annotations[scheduling.koordinator.sh/device-allocate-hint] allocateStrategy alone": {
        "rdma": {"allocateStrategy": "ApplyForAll"}
    },
    "metadata.labels[quota.scheduling.koordinator.sh/name]": "team-a",
    "metadata.annotations[scheduling.koordinator.sh/gpu-partition-spec] allocatePolicy: Restricted": {
        "allocatePolicy": "Restricted"
    },
    "metadata.annotations[scheduling.koordinator.sh/gpu-partition-spec] allocatePolicy: BestEffort": {
        "allocatePolicy": "BestEffort"
    },
    "metadata.labels[koordinator.sh/qosClass]": "LSR",
    "metadata.labels[kai.scheduler/node-pool]": "fast",
    f"metadata.labels[{coscheduling.POD_GROUP_LABEL}]": "absent",
    f"metadata.annotations[{kai.GROUP_NAME}]": "absent",
    f"metadata.labels[{kai.SUBGROUP}]": ("other", [m.node("n"), m.kai_podgroup("g", 1, {"w": 1}), *kai_pod()]),
    f"metadata.annotations[{topology.KAI_REQUIRED}]": "rack",
    f"metadata.annotations[{topology.KAI_PREFERRED}]": ("example.com/rack", two_racks("Pod")),
    f"metadata.annotations[{topology.KAI_SEGMENT_SIZE}]": ("1", segments({topology.KAI_SEGMENT_REQUIRED: r.RACK})),
    f"metadata.annotations[{topology.KAI_SEGMENT_REQUIRED}]": (r.RACK, segments({topology.KAI_SEGMENT_SIZE: "1"})),
    f"metadata.annotations[{topology.KAI_SEGMENT_PREFERRED}]": (
        r.RACK,
        segments({topology.KAI_SEGMENT_SIZE: "1"}, *r.nodes({"large": [16]}), *r.nodes({"small": [4]})),
    ),
    f"metadata.annotations[{topology.KUEUE_REQUIRED}]": "rack",
    f"metadata.annotations[{topology.KUEUE_PREFERRED}]": ("example.com/rack", two_racks("Pod")),
    "metadata.annotations[kueue.x-k8s.io/podset-unconstrained-topology]": "true",
    f"metadata.annotations[{topology.KUEUE_SLICE_REQUIRED}]": "rack",
    f"metadata.annotations[{topology.KUEUE_SLICE_REQUIRED}-constraints]": "[]",
    f"metadata.annotations[{topology.KUEUE_SLICE_SIZE}]": (
        "1",
        [*r.nodes({"a": 1}), m.pod("x", annotations={topology.KUEUE_SLICE_REQUIRED: r.RACK})],
    ),
    f"metadata.annotations[{topology.KUEUE_GROUP}]": ("one", leader_and_worker()),
    "metadata.annotations[gpu-fraction]": "0.5",
    "metadata.annotations[gpu-memory]": "2000",
    "metadata.labels[kai.scheduler/queue]": "team-a",
    f"metadata.annotations[{yunikorn.TASK_GROUPS}]": [{"name": "w", "minMember": 3, "minResource": {"cpu": "3"}}],
    f"metadata.annotations[{yunikorn.TASK_GROUP_NAME}]": "w",
    "metadata.annotations[yunikorn.apache.org/schedulingPolicyParameters]": "gangSchedulingStyle=Hard",
    "metadata.labels[applicationId]": ("b", [m.node("n"), *yunikorn_pair()]),
    f"metadata.labels[{yunikorn.QUEUE}]": "root.absent",
    "spec.preemptibility": ("non-preemptible", victim(m.kai_podgroup("x", 1), *m.kai_pods("x", 1, cpu=3))),
    "spec.subGroups[].minMember": 2,
    f"metadata.annotations[{volcano.GROUP_MIN_MEMBER}]": "2",
    f"metadata.annotations[{topology.VOLCANO_MODE}]": (
        "soft",
        [*r.nodes({"a": 1, "b": 1}), r.hyper_node("ha", 1, "/^a-/"), r.hyper_node("hb", 1, "/^b-/"), replica_set(4)],
    ),
    f"metadata.annotations[{topology.VOLCANO_HIGHEST_TIER}]": ("1", in_no_hyper_node(workloads.REPLICA_SET)),
    "spec.topologyConstraint.requiredTopologyLevel": "rack",
    "spec.topologyConstraint.preferredTopologyLevel": (r.RACK, two_racks(kai.POD_GROUP)),
    "spec.subGroups[].topologyConstraint.requiredTopologyLevel": "rack",
    "spec.subGroups[].topologyConstraint.preferredTopologyLevel": (r.RACK, two_racks(kai.POD_GROUP)),
    "spec.minSubGroup": (
        1,
        [m.node("n"), m.kai_podgroup("x", None, {"w": 1, "v": 1}), *m.kai_pods("x", 1, subgroup="w")],
    ),
    "spec.subGroups[].minSubGroup": (
        1,
        [
            m.node("n"),
            m.kai_podgroup("x", None, subGroups=[{"name": "p"}, *({"name": n, "parent": "p"} for n in ("w", "v"))]),
            *m.kai_pods("x", 1, subgroup="w"),
        ],
    ),
    "spec.subGroups[].parent": "p",
    "spec.markUnschedulable": True,
    "spec.schedulingBackoff": 1,
    "PodGroup spec.backoffLimit": 1,
    "PodGroup spec.completions": 1,
    "PodGroup spec.parallelism": 1,
    "metadata.annotations[gang.scheduling.koordinator.sh/network-topology-spec] strategy: MustGather": {
        "gatherStrategy": [{"layer": "hostLayer", "strategy": "MustGather"}]
    },
    "PodGroup metadata.annotations[gang.scheduling.koordinator.sh/network-topology-spec] strategy: PreferGather": (
        {"gatherStrategy": [{"layer": "RackLayer", "strategy": "PreferGather"}]},
        two_racks(koordinator.POD_GROUP),
    ),
    "metadata.annotations[gang.scheduling.koordinator.sh/network-topology-spec] strategy: PreferGather": (
        {"gatherStrategy": [{"layer": "RackLayer", "strategy": "PreferGather"}]},
        two_racks("Pod"),
    ),
    "metadata.annotations[gang.scheduling.koordinator.sh/network-topology-spec] podCountMultiple": {
        "gatherStrategy": [{"layer": "hostLayer", "strategy": "PreferGather", "podCountMultiple": 2}]
    },
    "spec.minAvailable": 3,
    "Job spec.minAvailable": (1, [m.node("n", 1), m.job("x", m.role("a", 2))]),
    "spec.tasks[].minAvailable": (1, [m.node("n", 1), m.job("x", m.role("a", 2))]),
    "spec.tasks[].dependsOn": {"name": ["b"]},
    "spec.queue": "none",
    "Job spec.networkTopology mode: hard (the default)": ({"highestTierAllowed": 1}, in_no_hyper_node(volcano.JOB)),
    "spec.networkTopology mode: hard (the default)": ({"highestTierAllowed": 1}, in_no_hyper_node(volcano.POD_GROUP)),
    "Job spec.networkTopology mode: soft": ({"mode": "soft"}, two_racks(volcano.JOB)),
    "spec.networkTopology mode: soft": ({"mode": "soft"}, two_racks(volcano.POD_GROUP)),
    "spec.tasks[].partitionPolicy without dependsOn also minPartitions": (
        {"totalPartitions": 2, "partitionSize": 1, "networkTopology": {"highestTierAllowed": 1}},
        in_no_hyper_node(volcano.JOB),
    ),
    "spec.tasks[].topologyPolicy restricted, single-numa-node": "single-numa-node",
    "spec.tasks[].topologyPolicy best-effort": "best-effort",
    "spec.runningEstimate": "1h",
    "spec.plugins.hcclrank": [],
    "spec.plugins.ringsconfigmap": ["-volume-name", "rings"],
    "metadata.annotations[volcano.sh/task-topology-affinity]": "a,b",
    "metadata.annotations[volcano.sh/task-topology-anti-affinity]": "a,b",
    "metadata.annotations[volcano.sh/task-topology-task-order]": "a,b",
    "spec.minMember": 2,
    "spec.minTaskMember": {"w": 2},
    "spec.minResources": {"cpu": "100"},
    "metadata.labels[kai.scheduler/preemptibility] non-preemptible: no victim": (
        "non-preemptible",
        victim(m.pod("x", 3)),
    ),
    "metadata.labels[quota.scheduling.koordinator.sh/preemptible] false: no victim": ("false", victim(m.pod("x", 3))),
    "metadata.labels[scheduling.koordinator.sh/disable-preemptible] true: no victim": ("true", victim(m.pod("x", 3))),
    "metadata.annotations[volcano.sh/preemptable]": ("false", victim(m.podgroup("x", 1), m.pod("p", 3, group="x"))),
    "spec.subGroupPolicy": [{"name": "a", "subGroupSize": 2, "minSubGroups": 1}],
    "spec.weight": (3, two_queues()),
    "spec.capability": {"cpu": "0"},
    "spec.guarantee": ({"resource": {"cpu": "4"}}, [m.node("n"), m.queue("x"), m.pod("p")]),
    "spec.deserved": ({"cpu": "3"}, two_queues(deserved={"cpu": "1"})),
    "spec.reclaimable": (False, reclaimed()),
    "spec.priority": (10, two_queues()),
    "spec.parent": "top",
    "spec.dequeueStrategy": ("fifo", fifo()),
    "metadata.annotations[volcano.sh/dequeue-strategy]": ("fifo", fifo()),
    "metadata.annotations[volcano.sh/hierarchy]": "root/eng/prod",
    "metadata.annotations[volcano.sh/hierarchy-weights]": "1/2/8",
    f"spec.affinity {REQUIRED} of nodeGroupAffinity or nodeGroupAntiAffinity": {"nodeGroupAffinity": {REQUIRED: ["a"]}},
    "spec.affinity preferredDuringSchedulingIgnoredDuringExecution": {
        "nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["a"]}
    },
    "spec.extendClusters": [{"name": "other"}],
    "spec.type": "t",
    "spec.schedulingPolicy.gang.minCount": 2,
    "spec.disruptionMode": (
        {"all": {}},
        victim(m.native_podgroup("x", {"gang": {"minCount": 1}}), *m.native_pods("x", 3)),
    ),
    "spec.preemptionPolicy any other": "Sometimes",
    "spec.disruptionMode any other": {"half": {}},
    "spec.preemptibility any other": "semi",
    "metadata.labels[kai.scheduler/preemptibility] any other": "semi",
    "PodGroup spec.preemptionPolicy": (
        "Never",
        preemptor(
            m.native_podgroup("x", {"gang": {"minCount": 1}}, priorityClassName="high"), *m.native_pods("x", 1, at="5s")
        ),
    ),
    "CompositePodGroup spec.preemptionPolicy": (
        "Never",
        preemptor(
            composite("x")
            | {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "priorityClassName": "high"}},
            m.native_podgroup("g", {"gang": {"minCount": 1}}, parentCompositePodGroupName="x"),
            *m.native_pods("g", 1, at="5s"),
        ),
    ),
    "spec.schedulingPolicy.gang.minGroupCount": 2,
    "CompositePodGroup spec.disruptionMode": (
        {"all": {}},
        victim(
            composite("x"),
            m.native_podgroup("g", {"gang": {"minCount": 1}}, parentCompositePodGroupName="x"),
            *m.native_pods("g", 3),
        ),
    ),
    "spec.schedulingConstraints.topology one key": [{"key": "rack"}],
    "spec.schedulingConstraints.topology several keys": [{"key": "rack"}, {"key": "block"}],
    "spec.parentCompositePodGroupName": "c",
}


def example(field: Field) -> tuple[Any, list[Obj]]:
    """A value for a row, and the documents in which it is set."""
    kind = field.kind.partition(".")[0]
    with_case = f"{field.path} {field.case}"
    keys = (f"{kind} {with_case}", with_case, f"{kind} {field.path}", field.path)
    value = next(VALUES[key] for key in keys if key in VALUES)
    value, stage = value if isinstance(value, tuple) else (value, alone(field.kind))
    if stage in (FIRST, MOST):
        stage = contended(field.kind) if stage == FIRST else most_fit(field.kind)
    if field.path.startswith("metadata.") and not isinstance(value, str):
        value = json.dumps(value)
    return value, copy.deepcopy(stage)


def with_value(documents: list[Obj], field: Field, value: Any) -> list[Obj]:
    """The documents with the field set in the object `x`; in a list, in its first item."""
    found = copy.deepcopy(documents)
    target: Any = next(
        one for one in found if one["metadata"]["name"] == "x" and one["kind"] == field.kind.split(".")[0]
    )
    head, bracket, key = field.path.partition("[")
    steps = [*head.split("."), key.removesuffix("]")] if bracket and key[0] != "]" else field.path.split(".")
    for step in steps[:-1]:
        name = step.removesuffix("[]")
        target = target.setdefault(name, {})
        if name != step:
            target = target[0]
    target[steps[-1]] = value
    return found


def outcome(answer: Answer) -> tuple[Any, ...]:
    return answer.bound(), answer.evicted(), len(answer.lines("held")), answer.data["pending"] == []


def warned(answer: Answer) -> list[str]:
    events = [event for event in answer.all("Event") if event["type"] == "Warning"]
    return [event["message"] for event in events if event["reason"].startswith("Unsupported")]


def row_id(field: Field) -> str:
    return f"{field.kind.partition('.')[0]}-{field.path.rpartition('.')[2]}-{field.case}"[:60]


@pytest.mark.parametrize("field", FIELDS, ids=row_id)
def test_n1_every_row_of_the_table_is_true(field: Field) -> None:
    value, stage = example(field)
    before = simulate(stage, until="20s")
    changed = with_value(stage, field, value)
    after = simulate(changed, until="20s")
    assert not after.lines("rejected")
    leaf = field.path.rpartition(".")[2] if "[" not in field.path else field.path.rpartition("[")[2].strip("].")
    match field.effect:
        case Effect.HONOURED:
            assert outcome(after) != outcome(before)
            assert not [one for one in after.data["pending"] if one["reason"] == "UnsupportedConstraint"]
        case Effect.HELD:
            assert not before.data["pending"]
            assert not after.bound()
            [found] = after.data["pending"]
            assert found["reason"] == "UnsupportedConstraint"
            assert leaf in found["message"]
            assert field.way_out in found["message"]
            loose = simulate(changed, until="20s", config={"unsupported": "warn"})
            assert outcome(loose) == outcome(before)
            assert any(leaf in text for text in warned(loose))
        case Effect.PREFERENCE:
            assert outcome(after) == outcome(before)
            assert any(leaf in text for text in warned(after))
        case Effect.NONE:
            assert outcome(after) == outcome(before)
            assert not warned(after)
    if field.effect in (Effect.HELD, Effect.PREFERENCE):
        assert any(leaf in one.field for one in lint(changed).warnings)


@pytest.mark.parametrize("value", [None, [], {}, ""])
def test_n1_empty_values_are_not_set(value: Any) -> None:
    group = m.podgroup("x", 1, networkTopology=value or None, subGroupPolicy=value or None)
    answer = simulate(m.node("n"), group, m.pod("p", group="x", resourceClaims=value))
    assert answer.times() == [0.0]
    assert not warned(answer)


def test_n1_the_gang_starts_when_the_constraint_is_removed() -> None:
    group = m.native_podgroup("x", {"gang": {"minCount": 1}}, resourceClaims=[{"name": "gpu"}])
    removed = m.patch("9s", "PodGroup", "x", spec={"resourceClaims": None})
    removed["target"]["apiVersion"] = group["apiVersion"]
    answer = simulate(m.node("n"), group, m.native_pods("x", 1), removed)
    assert answer.times() == [9.0]


def test_n1_the_pod_and_its_group_say_so() -> None:
    held = m.pod("p", group="x", resourceClaims=[{"name": "gpu", "resourceClaimName": "absent"}])
    answer = simulate(m.node("n"), m.podgroup("x", 1), held)
    for one in (answer.obj("PodGroup", "x"), answer.obj("Pod", "p")):
        assert waits_because(one).startswith("Pod default/p: spec.resourceClaims: [")


def test_n1_a_replacement_in_a_satisfied_gang_is_warned_of_and_runs() -> None:
    late = m.pod("p1", group="x", resourceClaims=[{"name": "gpu", "resourceClaimName": "absent"}], at="5s")
    answer = simulate(m.node("n"), m.podgroup("x", 1), m.pod("p0", group="x"), late)
    assert answer.times() == [0.0, 5.0]
    assert warned(answer)


def test_n1_a_member_that_comes_as_the_minimum_is_raised_holds_the_gang() -> None:
    """Both at one instant, whatever is seen first: the gang is not satisfied then."""
    pods = m.gang("g", 2, minimum=2)
    raised = m.step("5s", "patch", "PodGroup", "g", patch={"spec": {"minMember": 3}})
    late = m.pod("late", group="g", at="5s", annotations={"volcano.sh/numa-topology-policy": "restricted"})
    for story in ([raised, late], [late, raised]):
        answer = simulate(m.node("n"), pods, *story)
        assert answer.at("late") is None
        assert "numa-topology-policy" in answer.why("default/g")


def test_n1_all_constraints_are_named() -> None:
    keys = {"topology": [{"key": "rack"}, {"key": "block"}]}
    held = m.native_podgroup("x", {"gang": {"minCount": 1}}, resourceClaims=[{"name": "a"}], schedulingConstraints=keys)
    text = simulate(m.node("n"), held, m.native_pods("x", 1)).why("default/x")
    assert "spec.resourceClaims" in text
    assert "spec.schedulingConstraints.topology" in text


def test_n1_a_template_is_checked_by_lint() -> None:
    job = m.job("j", m.role("w", 1, resourceClaims=[{"name": "gpu"}]))
    assert [one.field for one in lint(job).warnings] == ["spec.tasks[0].template.spec.resourceClaims"]
