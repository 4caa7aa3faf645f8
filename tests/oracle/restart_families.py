"""Seeded random scenarios in which several things happen at one instant, with a restart of the scheduler among them:
what a record or a mark was on is gone before the next scheduler reads it."""

from __future__ import annotations

import copy
import random
from typing import Any

from oracle import generate

Obj = dict[str, Any]
Scenario = tuple[list[Obj], dict[str, Any]]
EDITS = ("scale", "scale", "pod", "pod", "pod", "pods", "delete", "node", "cordon", "minimum", "mark", "mode", "names")


def restarts(rng: random.Random) -> Scenario:
    """G11, R7, K8, I5: jobs in waves, groups (NonStrict ones too) and gangs that lose members of their minimum, on a
    few nodes that small pods keep busy; at each of some instants one to four changes, mostly a restart among them."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    for number in range(rng.randint(2, 5)):
        documents += some_gang(rng, f"g{number}")
    documents += stream(rng) if rng.random() < 0.6 else []
    if rng.random() < 0.3:
        generate.patience(rng, documents)
    for when in sorted(rng.sample([1, 3, 5, 8, 10, 12, 15, 20, 22, 30, 33], rng.randint(1, 4))):
        documents += moment(rng, documents, when)
    actions = ["enqueue", "allocate", "backfill", *rng.choice([[], [], ["preempt"], ["preempt", "reclaim"]])]
    if rng.random() < 0.6:
        return documents, generate.starving_settings(rng, actions)
    return documents, {"actions": ", ".join(actions), "koordinator": {"defaultWaitingTime": "60s"}}


def some_gang(rng: random.Random, name: str) -> list[Obj]:
    kind = rng.choice(["waves", "waves", "waves", "groups", "groups", "any", "any", "whole"])
    if kind == "any":
        return generate.gang(rng, name, None, 3)
    if kind == "groups":
        return generate.koordinator(rng, name, None, by_plugins=rng.random() < 0.2, level=2)
    made = generate.job(rng, name)
    while len(made["spec"]["tasks"]) < 2:
        made = generate.job(rng, name)
    generate.waves(rng, made)
    first, second = made["spec"]["tasks"][:2]
    second.setdefault("dependsOn", {"name": [first["name"]]})
    if rng.random() < 0.5:  # minima follow their replicas (M1, M2)
        for role in made["spec"]["tasks"]:
            role.pop("minAvailable", None)
    if kind == "whole":
        made["metadata"]["annotations"]["enbloc.dev/depends-on-gang"] = "true"
    return [made]


def stream(rng: random.Random) -> list[Obj]:
    """Small pods that come one after the other and keep nodes busy."""
    every, life = rng.choice([2, 3, 5]), rng.choice([7, 11, 20])
    notes = {generate.SIM + "run-time": f"{life}s"}
    spec = generate.pod_spec(rng, rng.choice([None, None, None, "low", "high"]), 1, 2)
    return [
        generate.pod(f"s{number}", spec, {**notes, **generate.at(number * every)})
        for number in range(rng.randint(4, 9))
    ]


def moment(rng: random.Random, documents: list[Obj], when: int) -> list[Obj]:
    """Changes of one instant; where the restart stands among them, the old scheduler sees those before it no more than
    the new one does."""
    found: list[Obj] = []
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        found += change(rng, documents, rng.choice(EDITS), when)
    if rng.random() < 0.85:
        now = [position for position, one in enumerate(found) if one.get("at") == f"{when}s"]
        place = rng.choice([*now, len(found)])
        found.insert(place, generate.step(f"{when}s", "restart-scheduler"))
    return found


def change(rng: random.Random, documents: list[Obj], kind: str, when: int) -> list[Obj]:
    if kind == "scale":
        return scaled(rng, documents, when)
    if kind in ("pod", "pods"):
        return pods_gone(rng, documents, when, 1 if kind == "pod" else rng.randint(2, 3))
    at = f"{when}s"
    if kind in ("mode", "names"):
        return generate.change(rng, documents, kind, at)
    return generate.edit(rng, documents, "scale" if kind == "minimum" else kind, at)


def scaled(rng: random.Random, documents: list[Obj], when: int) -> list[Obj]:
    """A role of a job has more or fewer replicas from now on, mostly fewer; a minimum that is written falls too."""
    jobs = [one for one in documents if one["kind"] == "Job"]
    if not jobs:
        return []
    chosen = rng.choice(jobs)
    roles = copy.deepcopy(chosen["spec"]["tasks"])
    role = rng.choice(roles)
    role["replicas"] = max(1, role["replicas"] + rng.choice([-1, -1, -1, -2, 1]))
    if "minAvailable" in role:
        role["minAvailable"] = min(role["minAvailable"], role["replicas"])
    return [
        generate.step(f"{when}s", "patch", target=generate.target_of(chosen), patch={"spec": {"tasks": roles}}),
    ]


def pods_gone(rng: random.Random, documents: list[Obj], when: int, count: int) -> list[Obj]:
    """Pods of one gang are deleted. Those of jobs are made again; of others some come again, under other names."""
    gangs: dict[str, list[Obj]] = {}
    for one in documents:
        if one["kind"] == "Pod" and not one["metadata"]["name"].startswith("s"):
            gangs.setdefault(one["metadata"]["name"].partition("-")[0], []).append(one)
    jobs = {one["metadata"]["name"]: one for one in documents if one["kind"] in ("Job", "QueueJob")}
    if not gangs and not jobs:
        return []
    name = rng.choice(sorted({*gangs, *jobs}))
    found = []
    if name in jobs:
        spec = jobs[name]["spec"]
        pods = [
            f"{name}-{role['name']}-{index}"
            for role in spec.get("tasks") or spec["taskSpecs"]
            for index in range(role["replicas"])
        ]
        for one in rng.sample(pods, min(count, len(pods))):
            target = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": one}
            found.append(generate.step(f"{when}s", "delete", target=target))
        return found
    for chosen in rng.sample(gangs[name], min(count, len(gangs[name]))):
        found.append(generate.step(f"{when}s", "delete", target=generate.target_of(chosen)))
        if rng.random() < 0.7:
            again = copy.deepcopy(chosen)
            again["metadata"]["name"] += "9"
            again["metadata"]["annotations"].update(generate.at(when + rng.choice([0, 0, 1, 5])))
            found.append(again)
    return found


def marks(rng: random.Random) -> Scenario:
    """G11, I5: the same gangs, and at some instants at which a scheduler starts the pods go that carry their commit
    marks."""
    documents, settings = restarts(rng)
    for when in sorted(rng.sample([2, 4, 6, 9, 11, 14, 18, 25], rng.randint(1, 3))):
        found: list[Obj] = []
        for gang in gangs_of(documents).values():
            found += marked_pod_goes(rng, gang, when) if rng.random() < 0.7 else []
        now = [position for position, one in enumerate(found) if one.get("at") == f"{when}s"]
        found.insert(rng.choice([*now, len(found)]), generate.step(f"{when}s", "restart-scheduler"))
        documents += found
    return documents, settings


def gangs_of(documents: list[Obj]) -> dict[str, list[Obj]]:
    """By name: the objects and pods of each gang."""
    found: dict[str, list[Obj]] = {}
    for one in documents:
        name = one.get("metadata", {}).get("name", "").partition("-")[0]
        if name.startswith("g"):
            found.setdefault(name, []).append(one)
    return found


def marked_pod_goes(rng: random.Random, gang: list[Obj], when: int) -> list[Obj]:
    """The last pod of the minima, in order (O2), carries the mark, if priorities do not change that. A pod that no
    controller makes again may come again, under another name."""
    at, first = f"{when}s", gang[0]
    if first["kind"] in ("Job", "QueueJob"):
        roles = first["spec"].get("tasks") or first["spec"]["taskSpecs"]
        begin = [role for role in roles if not role.get("dependsOn")]
        needed = [
            (max(1, role.get("minAvailable", role["replicas"])) - 1, role["name"])
            for role in (begin if rng.random() < 0.5 else roles)
        ]
        number, role = max(needed)
        name = f"{first['metadata']['name']}-{role}-{number}"
        target = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name}
        return [generate.step(at, "delete", target=target)]
    pods = [one for one in gang if one["kind"] == "Pod"]
    chosen = pods[min(len(pods), max(1, minimum_of(gang))) - 1] if pods else None
    if chosen is None:
        return []
    found = [generate.step(at, "delete", target=generate.target_of(chosen))]
    if rng.random() < 0.5:
        again = copy.deepcopy(chosen)
        again["metadata"]["name"] += "8"
        again["metadata"]["annotations"].update(generate.at(when + rng.choice([0, 1, 5])))
        found.append(again)
    return found


def minimum_of(gang: list[Obj]) -> int:
    """How many pods a gang that no job makes needs; 1 for a pod that is alone."""
    spec, notes = gang[0].get("spec") or {}, gang[0]["metadata"].get("annotations") or {}
    told = spec.get("minMember") or (spec.get("schedulingPolicy") or {}).get("gang", {}).get("minCount")
    return int(told or spec.get("minAvailable") or notes.get(generate.KOORDINATOR + "min-available") or 1)


def mixed_groups(rng: random.Random) -> Scenario:
    """K1, K7, M6: groups of gangs of several dialects: Jobs and PodGroups of Volcano's, Koordinator's and Kubernetes'
    own, Strict and NonStrict; some come late, and some are not enqueued at once."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    for number in range(rng.randint(1, 3)):
        documents += mixed_group(rng, f"g{number}")
    for number in range(3, rng.randint(3, 6)):
        documents += generate.gang(rng, f"g{number}", None, 0)
    for when in sorted(rng.sample([3, 5, 10, 15, 22, 33], rng.randint(0, 2))):
        documents += moment(rng, documents, when)
    actions = ["enqueue", "allocate", "backfill", *rng.choice([[], [], ["preempt"]])]
    if rng.random() < 0.3:
        return documents, generate.starving_settings(rng, actions)
    return documents, {"actions": ", ".join(actions), "koordinator": {"defaultWaitingTime": "60s"}}


def mixed_group(rng: random.Random, name: str) -> list[Obj]:
    mates = [f"{name}x", f"{name}y"]
    named = ",".join(f"default/{mate}" for mate in mates)
    mode = rng.choice(["NonStrict", "NonStrict", "Strict"])
    waiting = rng.choice([None, "10s", "20s"])
    found: list[Obj] = []
    for mate in mates if rng.random() < 0.85 else mates[:1]:
        notes = {generate.KOORDINATOR + "mode": mode}
        if mate.endswith("x") or rng.random() < 0.85:
            notes[generate.KOORDINATOR + "groups"] = named
        if waiting:
            notes[generate.KOORDINATOR + "waiting-time"] = waiting
        kind = rng.choice(["job", "job", "podgroup", "podgroup", "native", "koordinator"])
        if kind == "koordinator":
            when, own = generate.instant(rng), generate.some_priority(rng)
            found += generate.koordinator_gang(rng, mate, notes, when, None, None, False, own)
            continue
        if kind == "job":
            made = [generate.job(rng, mate)]
            made = [generate.waves(rng, made[0])] if rng.random() < 0.3 else made
        else:
            made = generate.podgroup(rng, mate, None, 0) if kind == "podgroup" else generate.native(rng, mate, None)
        made[0]["metadata"]["annotations"].update(notes)
        found += made
    return found
