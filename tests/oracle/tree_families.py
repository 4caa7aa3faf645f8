"""Random scenarios around T: node trees of every dialect, and gangs that must or should be in one domain of them."""

from __future__ import annotations

import json
import random
from typing import Any

from oracle import generate
from oracle.generate import KOORDINATOR

Obj = dict[str, Any]
Scenario = tuple[list[Obj], dict[str, Any]]

HOST = "kubernetes.io/hostname"
SPEC = KOORDINATOR + "network-topology-spec"
KUEUE, KAI = "kueue.x-k8s.io/", "kai.scheduler/"


def trees(rng: random.Random) -> Scenario:
    """T1 to T6: gangs of all dialects with required and preferred levels, slices, and trees and labels that change."""
    documents = [*generate.priority_classes(), *tree_nodes(rng), *tree_objects(rng)]
    for number in range(rng.randint(2, 6)):
        documents += tree_gang(rng, f"g{number}", None)
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "delete", "node", "cordon"))
    documents += tree_edits(rng, documents)
    settings: dict[str, Any] = {"actions": "enqueue, allocate, backfill", "koordinator": {"defaultWaitingTime": "60s"}}
    if rng.random() < 0.3:
        settings["topologies"] = [{"name": rng.choice(["dc", "other"]), "levels": ["zone", "rack", HOST]}]
    return documents, settings


def freed_trees(rng: random.Random) -> Scenario:
    """T7: such gangs preempt, reclaim and starve in crowded clusters."""
    documents = [*generate.priority_classes(), *tree_nodes(rng), *tree_objects(rng)]
    names: list[str | None] = [None]
    if rng.random() < 0.4:
        found = generate.queues(rng)
        documents += found
        parents = {one["spec"].get("parent") for one in found}
        names += [one["metadata"]["name"] for one in found if one["metadata"]["name"] not in parents]
    for number in range(rng.randint(5, 10)):
        documents += tree_gang(rng, f"g{number}", rng.choice(names))
    if rng.random() < 0.5:
        generate.protect(rng, documents)
    generate.patience(rng, documents)
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon"))
    documents += tree_edits(rng, documents) if rng.random() < 0.4 else []
    actions = ["enqueue", "allocate", "backfill"]
    actions += rng.choice([[], ["preempt"], ["preempt"], ["preempt", "reclaim"]])
    if rng.random() < 0.6:
        return documents, generate.starving_settings(rng, actions)
    return documents, {"actions": ", ".join(actions), "koordinator": {"defaultWaitingTime": "60s"}}


def tree_nodes(rng: random.Random) -> list[Obj]:
    found = generate.nodes(rng, 5)
    more = rng.randint(1, 3)
    for one in generate.nodes(rng, more):
        one["metadata"]["name"] = f"m{one['metadata']['name']}"
        found.append(one)
    for one in found:
        labels = one["metadata"]["labels"]
        labels.update({"rack": rng.choice("xyz"), HOST: one["metadata"]["name"]})
        for key in ("zone", "rack"):
            if rng.random() < 0.08:
                del labels[key]
    return found


def tree_objects(rng: random.Random) -> list[Obj]:
    """The trees that exist; some come late, some not at all."""
    found: list[Obj] = []
    for version, kind in ((f"{KAI}v1alpha1", "kai"), (f"{KUEUE}v1beta1", "kueue")):
        if rng.random() < 0.8:
            levels: list[Obj] = [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}, {"nodeLabel": HOST}]
            if kind == "kai" and rng.random() < 0.3:
                levels[1]["alias"] = "shelf"
            found.append(tree_object(rng, version, "Topology", "dc", {"levels": levels[: rng.choice([2, 2, 3])]}))
    if rng.random() < 0.8:
        layers: list[Obj] = [
            {"topologyLayer": "Zone", "parentTopologyLayer": "", "labelKey": ["zone"]},
            {"topologyLayer": "Rack", "parentTopologyLayer": "Zone", "labelKey": ["shelf", "rack"]},
            {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "Rack"},
        ]
        version = "scheduling.koordinator.sh/v1alpha1"
        spec = {"networkTopologySpec": layers[: rng.choice([2, 2, 3])]}
        found.append(tree_object(rng, version, "ClusterNetworkTopology", "default", spec))
    if rng.random() < 0.85:
        found += hyper_nodes(rng)
    return found


def tree_object(rng: random.Random, version: str, kind: str, name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "annotations": generate.at(rng.choice([0, 0, 0, 0, 12]))}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def hyper_nodes(rng: random.Random) -> list[Obj]:
    """Tier 1 by racks, names or patterns; tier 2, and perhaps 3, above."""
    found = []
    version = "topology.volcano.sh/v1alpha1"
    for rack in "xyz":
        selector = rng.choice(
            [
                {"labelMatch": {"matchLabels": {"rack": rack}}},
                {"labelMatch": {"matchLabels": {"rack": rack}}},
                {"regexMatch": {"pattern": {"x": "^n", "y": "^m", "z": "2$"}[rack]}},
                {"exactMatch": {"name": rng.choice(["n1", "n2", "mn1"])}},
            ]
        )
        spec: Obj = {"tier": 1, "members": [{"type": "Node", "selector": selector}]}
        if rng.random() < 0.5:
            spec["tierName"] = "leaf"
        found.append(tree_object(rng, version, "HyperNode", f"h{rack}", spec))
    for number in range(rng.randint(0, 2)):
        below = rng.sample(["hx", "hy", "hz"], rng.randint(1, 2))
        members: list[Obj] = [{"type": "HyperNode", "selector": {"exactMatch": {"name": one}}} for one in below]
        if rng.random() < 0.2:
            members.append({"type": "Node", "selector": {"exactMatch": {"name": "n3"}}})
        found.append(tree_object(rng, version, "HyperNode", f"s{number}", {"tier": 2, "members": members}))
    if rng.random() < 0.3:
        members = [{"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^s"}}}]
        found.append(tree_object(rng, version, "HyperNode", "top", {"tier": 4, "members": members}))
    return found


def tree_gang(rng: random.Random, name: str, queue: str | None) -> list[Obj]:
    """A gang that asks for a place in one of the dialects, or for none."""
    how = rng.choice(["none", "native", "volcano", "volcano", "volcano", "kueue", "kueue", "kai", "kai", "koordinator"])
    if how == "native":
        made = generate.native(rng, name, queue)
        made[0]["spec"]["schedulingConstraints"] = {"topology": [{"key": rng.choice(["zone", "rack", "rack", "row"])}]}
        return made
    if how == "volcano":
        return in_hyper_nodes(rng, name, queue)
    if how == "koordinator":
        return gathered(rng, name, queue)
    made = generate.gang(rng, name, queue, rng.choice([0, 0, 2]))
    if how != "none":
        templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
        notes = kueue_notes(rng) if how == "kueue" else kai_notes(rng)
        for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
            one["metadata"].setdefault("annotations", {}).update(notes)
    return made


def some_network_topology(rng: random.Random) -> Obj:
    return rng.choice(
        [
            {"mode": "hard", "highestTierAllowed": 1},
            {"mode": "hard", "highestTierAllowed": 1},
            {"mode": "hard", "highestTierAllowed": 2},
            {"mode": "hard", "highestTierAllowed": 3},
            {"mode": "hard", "highestTierName": rng.choice(["leaf", "leaf", "none"])},
            {"mode": "hard"},
            {"mode": "soft"},
            {"mode": "soft", "highestTierAllowed": 1},
        ]
    )


def in_hyper_nodes(rng: random.Random, name: str, queue: str | None) -> list[Obj]:
    if rng.random() < 0.5:
        made = generate.podgroup(rng, name, queue, 0)
        made[0]["spec"]["networkTopology"] = some_network_topology(rng)
        return made
    job = generate.job(rng, name, queue)
    if rng.random() < 0.7:
        job["spec"]["networkTopology"] = some_network_topology(rng)
    for role in job["spec"]["tasks"]:
        if rng.random() < 0.25:
            size = rng.choice([one for one in range(1, role["replicas"] + 1) if role["replicas"] % one == 0])
            policy: Obj = {"totalPartitions": role["replicas"] // size, "partitionSize": size}
            role["partitionPolicy"] = {**policy, "networkTopology": some_network_topology(rng)}
    return [job]


def kueue_notes(rng: random.Random) -> dict[str, str]:
    level = ["zone", "rack", "rack", HOST, "row"]
    kind = rng.choice(["required", "required", "preferred", "preferred", "both", "slice", "slice", "layers", "bad"])
    if kind == "both":
        return {KUEUE + "podset-required-topology": "zone", KUEUE + "podset-preferred-topology": rng.choice(level)}
    found: dict[str, str] = {}
    if kind in ("required", "preferred"):
        found[f"{KUEUE}podset-{kind}-topology"] = rng.choice(level)
    elif rng.random() < 0.5:
        found[KUEUE + "podset-required-topology"] = rng.choice(["zone", "zone", "rack"])
    if kind in ("slice", "bad"):
        found[KUEUE + "podset-slice-required-topology"] = rng.choice(level)
    if kind == "slice":
        found[KUEUE + "podset-slice-size"] = rng.choice(["1", "2", "2", "3"])
    if kind == "layers":
        layers = [{"topology": "zone", "size": rng.choice([2, 4])}, {"topology": "rack", "size": rng.choice([1, 2, 3])}]
        found[KUEUE + "podset-slice-required-topology-constraints"] = json.dumps(layers)
    if rng.random() < 0.3:
        found[KUEUE + "podset-group-name"] = "all"
    return found


def kai_notes(rng: random.Random) -> dict[str, str]:
    level = ["zone", "rack", "rack", HOST, "row", "shelf"]
    found = {KAI + "topology": rng.choice(["dc", "dc", "dc", "other"])}
    kind = rng.choice(["required", "required", "preferred", "preferred", "both", "segment", "segment"])
    if kind in ("required", "both"):
        found[KAI + "topology-required-placement"] = rng.choice(level)
    if kind in ("preferred", "both"):
        found[KAI + "topology-preferred-placement"] = rng.choice(level)
    if kind == "segment":
        found[KAI + "segment-size"] = rng.choice(["1", "2", "2", "3"])
        found[f"{KAI}segment-topology-{rng.choice(['required', 'required', 'preferred'])}-placement"] = rng.choice(
            level
        )
    return found


def gathered(rng: random.Random, name: str, queue: str | None) -> list[Obj]:
    """Koordinator's, on the PodGroup or on the pods."""
    rules: list[Obj] = []
    for layer in rng.sample(["Zone", "Rack", "Rack", "NodeTopologyLayer", "Row"], rng.choice([1, 1, 2])):
        if any(rule["layer"] == layer for rule in rules):
            continue
        one: Obj = {"layer": layer, "strategy": rng.choice(["MustGather", "PreferGather"])}
        if rng.random() < 0.2:
            one["podCountMultiple"] = rng.choice([2, 2, 3])
        rules.append(one)
    made = generate.koordinator(rng, name, queue, by_plugins=False, level=2)
    groups = [one for one in made if one["kind"] == "PodGroup"]
    for one in groups if groups and rng.random() < 0.5 else [one for one in made if one["kind"] == "Pod"]:
        one["metadata"]["annotations"][SPEC] = json.dumps({"gatherStrategy": rules})
    return made


def tree_edits(rng: random.Random, documents: list[Obj]) -> list[Obj]:
    """T8: nodes get other labels, trees come and go."""
    found = []
    names = [one["metadata"]["name"] for one in documents if one["kind"] == "Node"]
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        target = {"apiVersion": "v1", "kind": "Node", "name": rng.choice(names)}
        label = rng.choice([{"rack": rng.choice(["x", "y", None])}, {"zone": rng.choice(["a", "b", None])}])
        when = f"{rng.choice([6, 11, 18, 26])}s"
        found.append(generate.step(when, "patch", target=target, patch={"metadata": {"labels": label}}))
    kinds = ("HyperNode", "Topology", "ClusterNetworkTopology")
    objects = [one for one in documents if one["kind"] in kinds]
    if objects and rng.random() < 0.25:
        one = rng.choice(objects)
        target = {"apiVersion": one["apiVersion"], "kind": one["kind"], "name": one["metadata"]["name"]}
        found.append(generate.step(f"{rng.choice([14, 21])}s", "delete", target=target))
    return found
