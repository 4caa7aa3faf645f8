"""Kubernetes' own kinds, as far as they are read."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import LabelSelector, ObjectMeta, Quantities, TypedObject, View

DISRUPTED = "DisruptionTarget"
"""The condition of a pod, and of a gang's object, whose eviction was decided; it says for which gang."""


class ResourceRequirements(View):
    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(View):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"
    name: str = ""


class Container(View):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class NodeSelectorRequirement(View):
    key: str
    operator: str
    values: list[str] | None = None


class NodeSelectorTerm(View):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(View):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(View):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(View):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None


class PodAffinityTerm(View):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(View):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(View):
    """Affinity and anti-affinity have the same shape."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None


class Affinity(View):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(View):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(View):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class ClaimSource(View):
    claim_name: str
    read_only: bool = False


class Volume(View):
    """A volume; only claims are read."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None


class SchedulingGate(View):
    name: str


class SchedulingGroup(View):
    pod_group_name: str | None = None


class PodSpec(View):
    containers: list[Container]
    init_containers: list[Container] | None = None
    restart_policy: str = "Always"
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[Volume] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""


class Condition(View):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(View):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    start_time: str | None = None


class Pod(TypedObject):
    spec: PodSpec
    status: PodStatus | None = None


class PodTemplate(View):
    """A pod's template: its metadata has no name."""

    spec: PodSpec
    metadata: ObjectMeta | None = None


class Taint(View):
    key: str
    effect: str
    value: str = ""


class NodeSpec(View):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(View):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None


class Node(TypedObject):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Namespace(TypedObject):
    pass


class ResourceQuotaSpec(View):
    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None


class ResourceQuota(TypedObject):
    spec: ResourceQuotaSpec | None = None


class VolumeClaimResources(View):
    requests: Quantities | None = None


class PersistentVolumeClaimSpec(View):
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    resources: VolumeClaimResources | None = None
    selector: LabelSelector | None = None


class PhaseStatus(View):
    phase: str = ""


class PersistentVolumeClaim(TypedObject):
    spec: PersistentVolumeClaimSpec
    status: PhaseStatus | None = None


class VolumeNodeAffinity(View):
    required: NodeSelector | None = None


class ObjectReference(View):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(View):
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None


class PersistentVolume(TypedObject):
    spec: PersistentVolumeSpec
    status: PhaseStatus | None = None


class TopologySelectorLabelRequirement(View):
    key: str
    values: list[str]


class TopologySelectorTerm(View):
    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None


class StorageClass(TypedObject):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] | None = None


class PriorityClass(TypedObject):
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class PodDisruptionBudgetSpec(View):
    """A budget is a number or a share of the pods (`50%`)."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudget(TypedObject):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)


class CustomResourceNames(View):
    kind: str
    plural: str
    singular: str = ""
    short_names: list[str] | None = None


class CustomResourceVersion(View):
    name: str
    served: bool = True
    storage: bool = True


class CustomResourceDefinitionSpec(View):
    group: str
    scope: str
    names: CustomResourceNames
    versions: list[CustomResourceVersion]


class CustomResourceDefinition(TypedObject):
    spec: CustomResourceDefinitionSpec
