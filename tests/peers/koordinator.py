"""Koordinator: gather strategies and pod count multiples of a layer (its tests of the network topology solver). One
spine has the blocks b1 (n1 and n2 with room for 5 and 7 pods) and b2 (n3 and n4, for 6 and 4)."""

from __future__ import annotations

import json
from typing import Any

from peers.case import Case, cluster
from support import manifests as m

Obj = dict[str, Any]
KEY = "gang.scheduling.koordinator.sh/network-topology-spec"
TREE = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1",
    "kind": "ClusterNetworkTopology",
    "metadata": {"name": "default"},
    "spec": {
        "networkTopologySpec": [
            {"topologyLayer": "SpineLayer", "labelKey": ["spine"]},
            {"topologyLayer": "BlockLayer", "parentTopologyLayer": "SpineLayer", "labelKey": ["block"]},
            {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
        ]
    },
}
SPINE = cluster("s1/b1: n1=5 n2=7; s1/b2: n3=6 n4=4", "spine", "block")
HOST = "kubernetes.io/hostname"


def gang(count: int, **rules: str | int) -> list[Obj]:
    """`BlockLayer=8`: multiples of 8; `BlockLayer="MustGather"`: a strategy."""
    listed = [
        {"layer": layer, "strategy": "PreferGather", "podCountMultiple": rule}
        if isinstance(rule, int)
        else {"layer": layer, "strategy": rule}
        for layer, rule in rules.items()
    ]
    texts = m.koordinator_annotations("g", count) | {KEY: json.dumps({"gatherStrategy": listed})}
    return [m.pod(f"p-{n}", annotations=texts) for n in range(count)]


def case(name: str, count: int, *, nodes: list[Obj] = SPINE, where: str = "", **rules: str | int) -> Case:
    objects = [TREE, nodes, gang(count, SpineLayer="MustGather", **rules)]
    return Case(name, objects, all_of={"p-*": where}) if where else Case(name, objects, waits="p-*")


def in_slices(name: str, count: int, label: str, size: int, **rules: str | int) -> Case:
    slices = [" ".join(f"p-{n}" for n in range(first, first + size)) for first in range(0, count, size)]
    objects = [TREE, SPINE, gang(count, SpineLayer="MustGather", **rules)]
    return Case(name, objects, together=dict.fromkeys(slices, label))


TWO = cluster("s1/b1: n1=5 n2=5", "spine", "block")
SPINES = cluster("s1/b1: n1=2; s1/b2: n2=2; s2/b3: n3=2; s2/b4: n4=3", "spine", "block")
CASES = [
    Case("15 pods without multiples fit", [TREE, SPINE, gang(15, SpineLayer="MustGather")], together={"p-*": "spine"}),
    in_slices("multiples of 4 on a node: 16 pods", 16, HOST, 4, NodeTopologyLayer=4),
    case("multiples of 4 on a node: 20 pods do not fit", 20, NodeTopologyLayer=4),
    in_slices("multiples of 8 in a block: 16 pods", 16, "block", 8, BlockLayer=8),
    case("multiples of 8 in a block: 20 pods do not fit", 20, BlockLayer=8),
    in_slices("multiples of 8 in a block and of 2 on a node: 16 pods", 16, HOST, 2, BlockLayer=8, NodeTopologyLayer=2),
    case("multiples of 8 in a block and of 2 on a node: 20 pods do not fit", 20, BlockLayer=8, NodeTopologyLayer=2),
    case("multiples of 4 on two nodes of 5: 8 pods", 8, nodes=TWO, where="n1 n2", NodeTopologyLayer=4),
    case("multiples of 4 on two nodes of 5: 10 pods do not fit", 10, nodes=TWO, NodeTopologyLayer=4),
    Case("a multiple of 1 has no effect", [TREE, TWO, gang(10, BlockLayer=1)], on={"p-*": "n1 n2"}),
    case("the block with the least room", 2, nodes=SPINES, where="n1", BlockLayer="MustGather"),
    case("a block with more room", 3, nodes=SPINES, where="n4", BlockLayer="MustGather"),
    case("of two equal spines the smaller one", 4, nodes=SPINES, where="n1 n2"),
    case("no block is large enough", 4, nodes=SPINES, BlockLayer="MustGather"),
]
