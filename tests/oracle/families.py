"""More seeded random scenarios, each around one rule that the layers of `generate` meet seldom or not at all. They come
after the layers: a seed of a layer stays what it was."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from oracle import generate
from oracle.generate import KOORDINATOR

Obj = dict[str, Any]
Scenario = tuple[list[Obj], dict[str, Any]]


def scenario(seed: int, layer: str) -> Scenario:
    """The documents and the settings of one scenario of a layer or a family."""
    if layer not in FAMILIES:
        return generate.scenario(seed, layer)
    return FAMILIES[layer](random.Random(f"{layer}/{seed}"))


def policies(rng: random.Random) -> Scenario:
    """K9: most gangs of groups say what counts towards their minimum, lose pods and get others."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    for number in range(rng.randint(1, 4)):
        documents += generate.koordinator(rng, f"g{number}", None, by_plugins=False, level=2)
    chosen: dict[str, str | None] = {}
    for one in documents:
        notes = one["metadata"].get("annotations", {})
        if KOORDINATOR + "name" in notes or one["apiVersion"].startswith("scheduling.sigs"):
            name = one["metadata"]["name"].partition("-")[0]
            words = [None, "waiting-and-running", "waiting-and-running", "only-waiting"]
            policy = chosen.setdefault(name, rng.choice(words))
            if policy:
                notes[KOORDINATOR + "match-policy"] = policy
    documents += generate.edits(rng, documents, ("delete", "delete", "restart", "scale", "node", "mark"))
    documents += pods_that_come_later(rng, documents)
    return documents, plain_settings("allocate, backfill")


def relaxed(rng: random.Random) -> Scenario:
    """M1, D2, D3: jobs whose minimum is any number up to their replicas, with roles that have none, in waves."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    for number in range(rng.randint(2, 5)):
        made = generate.job(rng, f"g{number}")
        roles = made["spec"]["tasks"]
        for role in roles:
            if rng.random() < 0.6:
                role.pop("minAvailable", None)
        least = sum(role.get("minAvailable", 0) for role in roles)
        made["spec"]["minAvailable"] = rng.randint(max(1, least), sum(role["replicas"] for role in roles))
        documents.append(generate.waves(rng, made) if rng.random() < 0.7 else made)
    documents += generate.edits(rng, documents, ("restart", "restart", "node", "delete", "replicas"))
    return documents, {**plain_settings("enqueue, allocate, backfill"), "admission": {"minAvailable": "relaxed"}}


def affinities(rng: random.Random) -> Scenario:
    """G6: pods that must be beside others, or away from them, on a node or in a zone."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    for one in documents:
        if one["kind"] == "Node":
            one["metadata"]["labels"]["kubernetes.io/hostname"] = one["metadata"]["name"]
    for number in range(rng.randint(2, 5)):
        made = generate.gang(rng, f"g{number}", None, rng.choice([0, 0, 2]))
        templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
        shared = some_affinity(rng)
        for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
            one["metadata"].setdefault("labels", {})["app"] = rng.choice(["a", "a", "b"])
            one["metadata"]["annotations"].pop(KOORDINATOR + "mode", None)
            one["spec"] = {**one["spec"], **(shared if rng.random() < 0.8 else some_affinity(rng))}
        for one in made:
            if one["kind"] == "PodGroup":
                one["metadata"]["annotations"].pop(KOORDINATOR + "mode", None)
        documents += made
    documents += generate.edits(rng, documents, ("restart", "delete", "node", "cordon"))
    return documents, plain_settings("enqueue, allocate, backfill")


def some_affinity(rng: random.Random) -> Obj:
    kind = rng.choice([None, None, "podAntiAffinity", "podAntiAffinity", "podAffinity"])
    if kind is None:
        return {}
    topology = rng.choice(["kubernetes.io/hostname", "zone"])
    term = {"labelSelector": {"matchLabels": {"app": rng.choice(["a", "b"])}}, "topologyKey": topology}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def pods_that_come_later(rng: random.Random, documents: list[Obj]) -> list[Obj]:
    """Some pods come again, under other names."""
    found = []
    for one in documents:
        if one["kind"] == "Pod" and rng.random() < 0.3:
            again = copy.deepcopy(one)
            again["metadata"]["name"] += "9"
            again["metadata"]["annotations"].update(generate.at(rng.choice([12, 20, 33, 40])))
            found.append(again)
    return found


def plain_settings(actions: str) -> dict[str, Any]:
    return {"actions": actions, "koordinator": {"defaultWaitingTime": "60s"}}


FAMILIES: dict[str, Callable[[random.Random], Scenario]] = {
    "policies": policies,
    "relaxed": relaxed,
    "affinities": affinities,
}
LAYERS = (*generate.LAYERS, *FAMILIES)
