"""Clusters of blocks and racks, the objects that describe them in each dialect, and gangs that ask for a place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support import manifests as m

Obj = dict[str, Any]
BLOCK, RACK = "example.com/block", "example.com/rack"


def nodes(
    racks: Mapping[str, int | list[int]], block: str = "", cpu: int | str = 4, start: int = 0, **fields: Any
) -> list[Obj]:
    """For each rack, nodes with this cpu: a number of nodes of `cpu` each, or the cpu of each node."""
    found = []
    for rack, sizes in racks.items():
        of_rack = [cpu] * sizes if isinstance(sizes, int) else sizes
        labels = {RACK: rack, **({BLOCK: block} if block else {})}
        found += [m.node(f"{rack}-{n}", size, labels=labels, **fields) for n, size in enumerate(of_rack, start)]
    return found


def hyper_node(name: str, tier: int, *members: str, of: str = "Node", tier_name: str = "", **fields: Any) -> Obj:
    """By names; `/pattern/` is a regular expression, `key=value` a label."""
    spec: Obj = {"tier": tier, "members": [{"type": of, "selector": _selector(text)} for text in members]}
    if tier_name:
        spec["tierName"] = tier_name
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": m.metadata(name, None, {f"{m.SIM}at": fields.get("at")}),
        "spec": spec,
    }


def _selector(text: str) -> Obj:
    if text.startswith("/"):
        return {"regexMatch": {"pattern": text.strip("/")}}
    if "=" in text:
        key, _, value = text.partition("=")
        return {"labelMatch": {"matchLabels": {key: value}}}
    return {"exactMatch": {"name": text}}


def topology(name: str, *levels: str, group: str = "kueue.x-k8s.io/v1beta1", at: str | None = None) -> Obj:
    return {
        "apiVersion": group,
        "kind": "Topology",
        "metadata": m.metadata(name, None, {f"{m.SIM}at": at}),
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }


KAI = "kai.scheduler/v1alpha1"


def network_topology(*layers: tuple[str, str]) -> Obj:
    """Koordinator's, its layers from the top down, each with its label."""
    parents = ["", *(name for name, _ in layers)]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "ClusterNetworkTopology",
        "metadata": {"name": "default"},
        "spec": {
            "networkTopologySpec": [
                {"topologyLayer": name, "parentTopologyLayer": parent, "labelKey": [key]}
                for (name, key), parent in zip(layers, parents, strict=False)
            ]
        },
    }


def gather(**strategies: str) -> dict[str, str]:
    """Koordinator's annotation: layer=MustGather or PreferGather."""
    listed = [{"layer": layer, "strategy": strategy} for layer, strategy in strategies.items()]
    return {"gang.scheduling.koordinator.sh/network-topology-spec": json.dumps({"gatherStrategy": listed})}


def native(name: str, count: int, minimum: int | None = None, key: str = RACK, **fields: Any) -> list[Obj]:
    """A gang of Kubernetes' own PodGroup that must be in one domain of a label."""
    policy = {"gang": {"minCount": count if minimum is None else minimum}}
    group = m.native_podgroup(name, policy, schedulingConstraints={"topology": [{"key": key}]})
    pods = m.native_pods(name, count, **fields)
    if fields.get("at"):
        group["metadata"].setdefault("annotations", {})[f"{m.SIM}at"] = fields["at"]
    return [group, *pods]


def volcano(name: str, count: int, tier: int | None = None, mode: str = "hard", **fields: Any) -> list[Obj]:
    """A gang of Volcano's PodGroup with a `networkTopology`."""
    wanted: Obj = {"mode": mode} if tier is None else {"mode": mode, "highestTierAllowed": tier}
    found = m.gang(name, count, **fields)
    found[0]["spec"]["networkTopology"] = wanted
    return found


def kueue(name: str, count: int, required: str = "", preferred: str = "", **fields: Any) -> list[Obj]:
    """A gang whose pods carry Kueue's annotations."""
    texts = {
        "kueue.x-k8s.io/podset-required-topology": required,
        "kueue.x-k8s.io/podset-preferred-topology": preferred,
    }
    found = m.gang(name, count, **fields)
    for pod in found[1:]:
        pod["metadata"].setdefault("annotations", {}).update({key: text for key, text in texts.items() if text})
    return found


def kai_annotations(tree: str, required: str = "", preferred: str = "") -> dict[str, str]:
    found = {"kai.scheduler/topology": tree}
    if required:
        found["kai.scheduler/topology-required-placement"] = required
    if preferred:
        found["kai.scheduler/topology-preferred-placement"] = preferred
    return found


def racks_of(where: Mapping[str, str]) -> list[str]:
    """The racks in which pods were bound, from the names of their nodes."""
    return sorted({node.rpartition("-")[0] for node in where.values()})
