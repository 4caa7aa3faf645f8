"""Seeded random scenarios in which usage over time decides (G12)."""

from __future__ import annotations

import copy
import random
from typing import Any

from oracle import generate
from oracle.generate import KOORDINATOR

Obj = dict[str, Any]
USER = "enbloc.dev/user"
HOMES = ("default", "team-a", "team-b")


def usage(rng: random.Random) -> tuple[list[Obj], dict[str, Any]]:
    """G12: gangs of several namespaces and users, in few queues and on few nodes, most of equal priority: they come and
    end at different times; schedulers restart, nodes and queues go and come."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 2)]
    names: list[str | None] = [None]
    in_turn = rng.random() < 0.4
    if in_turn or rng.random() < 0.6:
        made_queues = some_queues(rng, in_turn)
        documents += made_queues
        parents = {one["spec"].get("parent") for one in made_queues}
        leaves = [one["metadata"]["name"] for one in made_queues if one["metadata"]["name"] not in parents]
        names = leaves[:1] if in_turn else [None, *leaves, *leaves]
    equal = rng.random() < 0.8
    mode = rng.choice([*[None] * 6, "easy", "conservative"])
    levels = [0] if mode else [0, 0, 0, 2]  # of R8 the oracle knows no groups
    homes: dict[str, str] = {}
    for number in range(rng.randint(6, 12)):
        queue = rng.choice(names)
        if in_turn and rng.random() < 0.8:
            made = [long_pod(rng, f"g{number}", queue)]
        else:
            made = generate.gang(rng, f"g{number}", queue, rng.choice(levels))
        homes[f"g{number}"] = home = rng.choice(HOMES)
        say_run_times(rng, made)
        name_users(rng, made)
        for one in made:
            in_namespace(one, home)
            if equal:
                without_priority(one)
        documents += made
    for one in generate.edits(rng, documents, ("restart", "restart", "restart", "delete", "node", "cordon")):
        target = one.get("target") or {}
        if "namespace" in target:
            target["namespace"] = homes.get(target["name"].partition("-")[0].rstrip("xy"), "default")
        documents.append(one)
    if names != [None] and rng.random() < 0.15:
        documents += gone_and_back(rng, documents)
    return documents, usage_settings(rng, in_turn, mode)


def some_queues(rng: random.Random, in_turn: bool) -> list[Obj]:
    """Queues of different weights, without limits; some have a parent. Strict FIFO are all, if `in_turn`, or some."""
    found = []
    is_tree = rng.random() < 0.3
    for name in (["top"] if is_tree else []) + ["q1", "q2"][: rng.randint(1, 2)]:
        spec: Obj = {"weight": rng.choice([1, 1, 2, 3])}
        if is_tree and name != "top" and rng.random() < 0.7:
            spec["parent"] = "top"
        if in_turn or rng.random() < 0.2:
            spec["dequeueStrategy"] = "fifo"
        if rng.random() < 0.1:
            spec["priority"] = 5
        version = "scheduling.volcano.sh/v1beta1"
        found.append({"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": spec})
    return found


def gone_and_back(rng: random.Random, documents: list[Obj]) -> list[Obj]:
    """A queue is deleted, and made again later: its usage is gone."""
    chosen = rng.choice([one for one in documents if one["kind"] == "Queue"])
    gone = rng.choice([8, 12, 20])
    again = copy.deepcopy(chosen)
    again["metadata"]["annotations"] = generate.at(gone + rng.choice([1, 5]))
    return [generate.step(f"{gone}s", "delete", target=generate.target_of(chosen)), again]


def long_pod(rng: random.Random, name: str, queue: str | None) -> Obj:
    """One pod alone: many of different sizes wait for each other, and their accounts change places meanwhile."""
    notes = generate.at(rng.choice([0, 0, 1, 2, 5, 8]))
    notes[generate.SIM + "run-time"] = f"{rng.choice([10, 20, 40, 60])}s"
    if queue:
        notes["volcano.sh/queue-name"] = queue
    spec = generate.pod_spec(rng, None, 1, 4)
    spec.pop("nodeSelector", None)
    return generate.pod(name, spec, notes)


def name_users(rng: random.Random, made: list[Obj]) -> None:
    """On the gang's object, on its pods, or on some of them; by annotation or by label."""
    user = rng.choice(["", "", "x", "y", "y", "u" * 64])
    where = rng.choice(["annotations", "annotations", "labels"]) if len(user) < 64 else "annotations"
    for one in made:
        if user and (len(made) == 1 or one["kind"] != "Pod" or rng.random() < 0.7):
            one["metadata"].setdefault(where, {})[USER] = user


def say_run_times(rng: random.Random, made: list[Obj]) -> None:
    """Most say truly how long they run (R8)."""
    templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
    for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
        notes = one["metadata"]["annotations"]
        if generate.SIM + "run-time" in notes and rng.random() < 0.8:
            notes["enbloc.dev/expected-duration"] = notes[generate.SIM + "run-time"]


def in_namespace(one: Obj, namespace: str) -> None:
    one["metadata"]["namespace"] = namespace
    notes = one["metadata"].get("annotations", {})
    if KOORDINATOR + "groups" in notes:
        notes[KOORDINATOR + "groups"] = notes[KOORDINATOR + "groups"].replace("default/", namespace + "/")


def without_priority(one: Obj) -> None:
    spec = one["spec"]
    templates = [role["template"]["spec"] for role in spec.get("tasks") or spec.get("taskSpecs") or ()]
    for each in (spec, spec.get("schedSpec") or {}, *templates):
        each.pop("priorityClassName", None)


def usage_settings(rng: random.Random, in_turn: bool, mode: str | None) -> dict[str, Any]:
    """`in_turn`: mostly such that accounts change places while gangs wait."""
    arguments: Obj = {}
    if rng.random() < (0.1 if in_turn else 0.4):
        arguments["by"] = "queue"
    half_life = rng.choice(["8s", "15s", "10m"] if in_turn else [None, "8s", "15s", "15s", "10m"])
    if half_life:
        arguments["halfLife"] = half_life
    if rng.random() < 0.4:
        arguments["shares"] = {rng.choice(["team-a", "default", "team-a/x", "default/y", "x"]): rng.choice([2, 3, 5])}
    actions: list[Obj] = [{"name": name} for name in rng.choice([["enqueue"], ["enqueue"], []])]
    actions += [{"name": "allocate"}, {"name": "backfill", **({"arguments": {"mode": mode}} if mode else {})}]
    tiers = [{"plugins": [{"name": "fair", "arguments": arguments}]}]
    return {"actions": actions, "tiers": tiers, "koordinator": {"defaultWaitingTime": "60s"}}
