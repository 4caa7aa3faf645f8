"""The objects that describe where nodes are, and the keys by which pods ask for a place, under their own names (T5).

Volcano's HyperNode, the Topology of Kueue and of KAI, Koordinator's ClusterNetworkTopology.
"""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import TypedObject, View

HYPER_NODE = "HyperNode.topology.volcano.sh"
KUEUE_TOPOLOGY = "Topology.kueue.x-k8s.io"
KAI_TOPOLOGY = "Topology.kai.scheduler"
CLUSTER_NETWORK_TOPOLOGY = "ClusterNetworkTopology.scheduling.koordinator.sh"

TREE_KINDS = frozenset({HYPER_NODE, KUEUE_TOPOLOGY, KAI_TOPOLOGY, CLUSTER_NETWORK_TOPOLOGY})
"""The kinds that describe node trees."""

KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_SLICE_REQUIRED = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
KUEUE_SLICE_LAYERS = f"{KUEUE_SLICE_REQUIRED}-constraints"
KUEUE_GROUP = "kueue.x-k8s.io/podset-group-name"

KAI_TREE = "kai.scheduler/topology"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"
KAI_SEGMENT_SIZE = "kai.scheduler/segment-size"
KAI_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
KAI_SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"

VOLCANO_MODE = "volcano.sh/network-topology-mode"
VOLCANO_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"
"""On the owner of ordinary pods, as annotations or labels: Volcano's `networkTopology` of all of them."""

NODE_LAYER = "NodeTopologyLayer"
"""Koordinator's lowest layer: each node is a domain of its own."""
HOST_NAME = "kubernetes.io/hostname"

NETWORK_TOPOLOGY_SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"


class NameMatch(View):
    name: str = ""


class PatternMatch(View):
    pattern: str = ""


class MemberSelector(View):
    """One of the three."""

    exact_match: NameMatch | None = None
    regex_match: PatternMatch | None = None
    label_match: dict[str, Any] | None = None


class Member(View):
    type: str = "Node"
    """`Node` or `HyperNode`."""
    selector: MemberSelector = msgspec.field(default_factory=MemberSelector)


class HyperNodeSpec(View):
    tier: int = 0
    tier_name: str = ""
    members: list[Member] | None = None


class HyperNode(TypedObject):
    spec: HyperNodeSpec = msgspec.field(default_factory=HyperNodeSpec)


class TopologyLevel(View):
    node_label: str = ""
    alias: str = ""
    """KAI: another name of the level."""


class TopologySpec(View):
    levels: list[TopologyLevel] | None = None


class Topology(TypedObject):
    """Kueue's and KAI's: levels from the top down."""

    spec: TopologySpec = msgspec.field(default_factory=TopologySpec)


class NetworkLayer(View):
    topology_layer: str = ""
    parent_topology_layer: str = ""
    label_key: list[str] | None = None


class NetworkTopologySpec(View):
    network_topology_spec: list[NetworkLayer] | None = None


class ClusterNetworkTopology(TypedObject):
    spec: NetworkTopologySpec = msgspec.field(default_factory=NetworkTopologySpec)
