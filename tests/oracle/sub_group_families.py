"""Seeded random scenarios of T0: gangs whose groups of members are grouped again, and leave a choice."""

from __future__ import annotations

import copy
import random
from typing import Any

from oracle import generate

Obj = dict[str, Any]
Scenario = tuple[list[Obj], dict[str, Any]]


def sub_groups(rng: random.Random) -> Scenario:
    """T0: Volcano's `subGroupPolicy` and KAI's sub-groups, with pods that are missing, come late, leave and come again,
    and nodes that come and go."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    for number in range(rng.randint(1, 3)):
        made = (by_policy if rng.random() < 0.5 else of_kai)(rng, f"g{number}")
        documents += [*made, *again(rng, made)]
    if rng.random() < 0.5:
        documents += generate.podgroup(rng, "plain", None, 0)
    kinds = ("restart", "restart", "delete", "delete", "delete", "node", "cordon", "class")
    documents += generate.edits(rng, documents, kinds)
    actions = ["enqueue", "allocate", "backfill", *rng.choice([[], [], ["preempt"]])]
    if rng.random() < 0.25:
        return documents, generate.starving_settings(rng, actions)
    return documents, {"actions": ", ".join(actions), "koordinator": {"defaultWaitingTime": "60s"}}


def of_kai(rng: random.Random, name: str) -> list[Obj]:
    """Sub-groups, or halves that have sub-groups, of which some are needed."""
    spec: Obj = {"subGroups": []}
    sizes: dict[str, int] = {}
    tops = [f"{name}{letter}" for letter in "abcd"[: rng.randint(1, 4)]]
    halves = rng.random() < 0.4
    for top in tops[:2] if halves else tops:
        below = [f"{top}{number}" for number in range(rng.randint(1, 3))] if halves else []
        if below:
            spec["subGroups"].append({"name": top, **some_minimum(rng, "minSubGroup", len(below))})
        for one in below or [top]:
            sizes[one] = rng.randint(1, 3)
            parent = {"parent": top} if below else {}
            spec["subGroups"].append({"name": one, "minMember": sizes[one], **parent})
    spec |= some_minimum(rng, "minSubGroup", len(tops[:2] if halves else tops))
    if rng.random() < 0.3:
        spec["priorityClassName"] = rng.choice(["low", "mid", "high"])
    when = generate.instant(rng)
    metadata = {"name": name, "namespace": "default", "annotations": generate.at(when)}
    found: list[Obj] = [
        {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    ]
    labels = {one: {"kai.scheduler/subgroup-name": one} for one in sizes}
    return [*found, *members(rng, name, when, {"pod-group-name": name}, sizes, labels)]


def some_minimum(rng: random.Random, key: str, most: int) -> Obj:
    return {key: rng.randint(1, most)} if rng.random() < 0.8 else {}


def by_policy(rng: random.Random, name: str) -> list[Obj]:
    """A policy with a sub-group for each value of a label, alone or beside one that selects its pods."""
    count, size = rng.randint(1, 4), rng.randint(1, 3)
    least = rng.randint(1, count)
    policy: Obj = {"name": "w", "subGroupSize": size, "matchLabelKeys": ["index"], "minSubGroups": least}
    sizes = {f"w{number}": size for number in range(count)}
    labels = {f"w{number}": {"index": str(number)} for number in range(count)}
    spec: Obj = {"minMember": rng.choice([0, least * size, least * size, count * size]), "subGroupPolicy": [policy]}
    if rng.random() < 0.4:
        sizes["head"] = 1
        labels["head"] = {"clique": "head"}
        selector = {"matchLabels": labels["head"]}
        spec["subGroupPolicy"].append({"name": "head", "subGroupSize": 1, "minSubGroups": 1, "labelSelector": selector})
        spec["minMember"] += 1 if spec["minMember"] else 0
    if rng.random() < 0.3:
        spec["priorityClassName"] = rng.choice(["low", "mid", "high"])
    when = generate.instant(rng)
    metadata = {"name": name, "namespace": "default", "annotations": generate.at(when)}
    found: list[Obj] = [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    ]
    return [*found, *members(rng, name, when, {"scheduling.k8s.io/group-name": name}, sizes, labels)]


def members(
    rng: random.Random,
    name: str,
    when: int,
    notes: dict[str, str],
    sizes: dict[str, int],
    labels: dict[str, dict[str, str]],
) -> list[Obj]:
    """Of each sub-group as many pods as it needs, some more or fewer; at once or later; each sub-group of one size."""
    found = []
    for one, size in sizes.items():
        spec = generate.pod_spec(rng, None, 0, 3)
        late = rng.choice([0, 0, 0, 5, 12])
        for index in range(max(0, size + rng.choice([-1, 0, 0, 0, 0, 1, 2]))):
            own = spec if rng.random() < 0.8 else generate.pod_spec(rng, None, 0, 3)
            texts = {**notes, **generate.life(rng), **generate.at(when + late + rng.choice([0, 0, 0, 0, 5]))}
            found.append(generate.pod(f"{name}-{one}-{index}", copy.deepcopy(own), texts, labels[one]))
    return found


def again(rng: random.Random, made: list[Obj]) -> list[Obj]:
    """Some pods come again, under other names."""
    found = []
    for one in made:
        if one["kind"] == "Pod" and rng.random() < 0.2:
            copied = copy.deepcopy(one)
            copied["metadata"]["name"] += "9"
            copied["metadata"]["annotations"].update(generate.at(rng.choice([12, 20, 33, 40])))
            found.append(copied)
    return found
