"""Seeded random scenarios, in layers: each layer adds a family of features to those before it.

Clusters are small, requests whole CPUs and times few, so that rules meet often. A scenario is a list of documents and
the settings of the config file; the same seed and layer always give the same.
"""

from __future__ import annotations

import random
from typing import Any

Obj = dict[str, Any]
SIM = "sim.enbloc.dev/"
KOORDINATOR = "gang.scheduling.koordinator.sh/"

LAYERS = ("jobs", "queues", "koordinator", "waves", "edits", "evict", "reserve", "all")
ALL = 7


def scenario(seed: int, layer: str) -> tuple[list[Obj], dict[str, Any]]:
    """The documents and the settings of one scenario."""
    rng = random.Random(f"{layer}/{seed}")
    level = LAYERS.index(layer)
    crowded = level == ALL and rng.random() < 0.7
    documents: list[Obj] = [*priority_classes(), *nodes(rng, 3 if crowded else 5)]
    names: list[str | None] = [None]
    if level >= 1 and (level == 1 or rng.random() < 0.4):
        found = queues(rng)
        documents += found
        parents = {one["spec"].get("parent") for one in found}
        names += [one["metadata"]["name"] for one in found if one["metadata"]["name"] not in parents] * 2
    for number in range(rng.randint(5, 9) if crowded else rng.randint(2, 7)):
        documents += gang(rng, f"g{number}", rng.choice(names), level)
    if level >= 4:
        documents += edits(rng, documents, MORE_KINDS if level == ALL else KINDS)
        if rng.random() < 0.1:
            documents.insert(0, quota(rng))
    if level in (5, ALL):
        protect(rng, documents)
    if level == ALL:
        budgets(rng, documents)
        patience(rng, documents)
        policies(rng, documents)
    return documents, settings(rng, level)


def settings(rng: random.Random, level: int) -> dict[str, Any]:
    actions = ["enqueue", "allocate", "backfill"]
    if level >= 1 and rng.random() < 0.1:
        actions.remove("enqueue")
    if level >= 1 and rng.random() < 0.1:
        actions.remove("backfill")
    if level == ALL and rng.random() < 0.7:
        actions += rng.choice([["preempt"], ["reclaim"], ["preempt", "reclaim"], []])
        return starving_settings(rng, actions)
    if level == 6:
        return starving_settings(rng, actions)
    if level >= 5:
        actions += rng.choice([["preempt"], ["reclaim"], ["preempt", "reclaim"], ["preempt", "reclaim"]])
    return {"actions": ", ".join(actions), "koordinator": {"defaultWaitingTime": "60s"}}


def starving_settings(rng: random.Random, actions: list[str]) -> dict[str, Any]:
    if rng.random() < 0.3 and "preempt" not in actions:
        actions.append("preempt")
    arguments = {"starvingJobTimeThreshold": rng.choice([5, 10, 20]), "reservedNodePercent": rng.choice([30, 50, 100])}
    listed: list[Obj] = [{"name": name} for name in actions]
    listed.append({"name": "reserve", "arguments": arguments})
    return {"actions": listed, "koordinator": {"defaultWaitingTime": "60s"}}


def gang(rng: random.Random, name: str, queue: str | None, level: int) -> list[Obj]:
    kinds = ["pod", "pods", "job", "job", "job", "podgroup", "podgroup"]
    if level == 2:
        kinds += ["koordinator", "koordinator", "koordinator", "coscheduling", "native", "spec", "queuejob"]
    elif level > 2:
        kinds += ["koordinator", "coscheduling", "native", "spec", "queuejob"]
    if level == ALL:
        kinds += ["koordinator", "koordinator", "koordinator", "koordinator"]
    kind = rng.choice(kinds)
    if kind in ("koordinator", "coscheduling"):
        return koordinator(rng, name, queue, by_plugins=kind == "coscheduling", level=level)
    if kind == "native":
        return native(rng, name, queue)
    if kind in ("spec", "queuejob"):
        return arbitrator(rng, name, queue, by_job=kind == "queuejob")
    if kind in ("pod", "pods"):
        notes = {"volcano.sh/queue-name": queue} if queue else {}
        spec, when = pod_spec(rng, some_priority(rng)), instant(rng)
        members = [name] if kind == "pod" else [f"{name}-{index}" for index in range(rng.randint(2, 4))]
        return [pod(one, spec, {**at(when), **life(rng), **notes}) for one in members]
    if kind == "job":
        return [waves(rng, job(rng, name, queue)) if level >= 3 and rng.random() < 0.6 else job(rng, name, queue)]
    return podgroup(rng, name, queue, level)


# ---- parts


def at(seconds: int) -> dict[str, str]:
    return {SIM + "at": f"{seconds}s"} if seconds else {}


def instant(rng: random.Random) -> int:
    return rng.choice([0, 0, 0, 5, 10, 10, 15, 20, 30])


def priority_classes() -> list[Obj]:
    found = []
    for name, value in (("low", 10), ("mid", 50), ("high", 100)):
        metadata = {"name": name}
        found.append(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        )
    return found


def nodes(rng: random.Random, most: int) -> list[Obj]:
    found = []
    for number in range(1, rng.randint(1, most) + 1):
        room = {
            "cpu": str(rng.choice([2, 3, 4, 4, 6, 8])),
            "memory": rng.choice(["4Gi", "8Gi", "8Gi", "16Gi"]),
            "pods": str(rng.choice([2, 4, 110, 110, 110])),
        }
        late = rng.choice([0, 0, 0, 0, 0, 0, 20])
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"n{number}", "labels": {"zone": rng.choice("ab")}, "annotations": at(late)},
                "status": {"allocatable": room},
            }
        )
    return found


def pod_spec(rng: random.Random, priority: str | None = None, least: int = 0, most: int = 4) -> Obj:
    asked: Obj = {}
    cpu = rng.choice([one for one in [0, 1, 1, 1, 2, 2, 3, 4] if least <= one <= most])
    if cpu:
        asked["cpu"] = str(cpu)
        if rng.random() < 0.4:
            asked["memory"] = rng.choice(["1Gi", "2Gi", "4Gi"])
    spec: Obj = {
        "schedulerName": "enbloc",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}],
    }
    if rng.random() < 0.1:
        spec["nodeSelector"] = {"zone": rng.choice("ab")}
    if priority:
        spec["priorityClassName"] = priority
    return spec


def member_specs(rng: random.Random) -> tuple[int, int]:
    """The least and most CPUs that members of one gang ask for."""
    return (0, 4)


def life(rng: random.Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.75:
        found[SIM + "run-time"] = f"{rng.choice([5, 10, 20, 40])}s"
    if rng.random() < 0.1:
        found[SIM + "exit-code"] = "1"
    if rng.random() < 0.1:
        found[SIM + "start-delay"] = "3s"
    return found


def some_priority(rng: random.Random) -> str | None:
    return rng.choice([None, None, "low", "mid", "high"])


def pod(name: str, spec: Obj, notes: dict[str, str], labels: dict[str, str] | None = None) -> Obj:
    metadata = {"name": name, "namespace": "default", "annotations": dict(notes), "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# ---- layer 1: jobs and PodGroups


def job(rng: random.Random, name: str, queue: str | None = None) -> Obj:
    roles: list[Obj] = []
    minimal = rng.random() < 0.6
    bounds = member_specs(rng)
    for role in ["a", "b", "c"][: rng.choice([1, 1, 2, 2, 3])]:
        replicas = rng.randint(1, 4)
        template = {"metadata": {"annotations": life(rng)}, "spec": pod_spec(rng, some_priority(rng), *bounds)}
        one: Obj = {"name": role, "replicas": replicas, "template": template}
        if minimal:
            one["minAvailable"] = rng.randint(0 if roles else 1, replicas)
        roles.append(one)
    spec: Obj = {"schedulerName": "enbloc", "tasks": roles}
    priority = some_priority(rng)
    if priority:
        spec["priorityClassName"] = priority
    if queue:
        spec["queue"] = queue
    when = instant(rng)
    notes = at(when)
    if rng.random() < 0.15:
        notes[SIM + "delete-at"] = f"{when + rng.choice([3, 12, 25])}s"
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "annotations": notes},
        "spec": spec,
    }


def podgroup(rng: random.Random, name: str, queue: str | None, level: int) -> list[Obj]:
    count = rng.randint(1, 5)
    spec: Obj = {"minMember": rng.randint(0, count + (rng.random() < 0.1))}
    roles = ["x", "y"]
    if rng.random() < 0.4:
        spec["minTaskMember"] = {"x": rng.randint(0, 2), "y": rng.randint(0, 1)}
    if rng.random() < 0.4:
        spec["minResources"] = {"cpu": str(rng.randint(1, 6))}
    priority = some_priority(rng)
    if priority:
        spec["priorityClassName"] = priority
    if queue:
        spec["queue"] = queue
    when = instant(rng)
    found: list[Obj] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "annotations": at(when)},
            "spec": spec,
        }
    ]
    bounds = member_specs(rng)
    shared = pod_spec(rng, some_priority(rng), *bounds)
    same = rng.random() < 0.6
    for index in range(count):
        notes = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": rng.choice(roles), **life(rng)}
        notes.update(at(rng.choice([when, when, when, when + 5, 0])))
        one = shared if same else pod_spec(rng, some_priority(rng), *bounds)
        found.append(pod(f"{name}-{index}", one, notes))
    return found


# ---- layer 2: queues


def queues(rng: random.Random) -> list[Obj]:
    found = []
    names = ["q1", "q2", "q3"][: rng.randint(1, 3)]
    tree = rng.random() < 0.4
    explicit = rng.random() < 0.3
    if tree:
        found.append(queue_object(rng, "top", None, explicit))
    for name in names:
        parent = "top" if tree and rng.random() < 0.7 else None
        found.append(queue_object(rng, name, parent, explicit))
    return found


def queue_object(rng: random.Random, name: str, parent: str | None, explicit: bool) -> Obj:
    spec: Obj = {"weight": rng.choice([1, 1, 2, 3])}
    if parent:
        spec["parent"] = parent
    if rng.random() < 0.35:
        spec["capability"] = {"cpu": str(rng.choice([2, 3, 4, 6, 8]))}
    if rng.random() < 0.2 and name != "top":
        spec["guarantee"] = {"resource": {"cpu": str(rng.choice([1, 2, 2]))}}
    if explicit and rng.random() < 0.8:
        most = int((spec.get("capability") or {"cpu": "6"})["cpu"])
        spec["deserved"] = {"cpu": str(min(most, rng.choice([2, 3, 4, 6])))}
    if rng.random() < 0.2:
        spec["priority"] = rng.choice([1, 5])
    if rng.random() < 0.25:
        spec["dequeueStrategy"] = "fifo"
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


# ---- layer 3: the other dialects


def koordinator(rng: random.Random, name: str, queue: str | None, *, by_plugins: bool, level: int) -> list[Obj]:
    """One gang, or a group of two: by PodGroup or by annotations alone, Strict or NonStrict, with a waiting time."""
    together = rng.random() < 0.5
    mates = [f"{name}x", f"{name}y"] if together else [name]
    names_all = '["' + '","'.join(f"default/{mate}" for mate in mates) + '"]'
    loose = rng.random() < 0.4
    found: list[Obj] = []
    when, waiting = instant(rng), rng.choice([None, None, 10, 15, 30])
    for mate in mates:
        notes: dict[str, str] = {}
        if len(mates) > 1 and (mate.endswith("x") or rng.random() < 0.8):
            notes[KOORDINATOR + "groups"] = names_all
        if loose and (len(mates) == 1 or rng.random() < 0.8):
            notes[KOORDINATOR + "mode"] = "NonStrict"
        came = rng.choice([when, when, instant(rng)])
        own = some_priority(rng)
        found += koordinator_gang(rng, mate, notes, came, waiting, queue, by_plugins, own)
    return found


def koordinator_gang(
    rng: random.Random,
    name: str,
    notes: dict[str, str],
    when: int,
    waiting: int | None,
    queue: str | None,
    by_plugins: bool,
    priority: str | None,
) -> list[Obj]:
    count = rng.randint(1, 4)
    minimum = rng.randint(0 if rng.random() < 0.2 else 1, count + (rng.random() < 0.1))
    spec = pod_spec(rng, priority, *member_specs(rng))
    queue_note = {"volcano.sh/queue-name": queue} if queue else {}
    found: list[Obj] = []
    own: dict[str, str] = {}
    labels: dict[str, str] = {}
    if by_plugins or rng.random() < 0.5:
        group: Obj = {"minMember": minimum}
        if waiting is not None:
            group["scheduleTimeoutSeconds"] = waiting
        if rng.random() < 0.15:
            group["minResources"] = {"cpu": str(rng.randint(1, 6))}
        version = "scheduling.x-k8s.io/v1alpha1" if by_plugins else "scheduling.sigs.k8s.io/v1alpha1"
        metadata = {"name": name, "namespace": "default", "annotations": {**notes, **queue_note, **at(when)}}
        found.append({"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": group})
        labels = {"scheduling.x-k8s.io/pod-group" if by_plugins else "pod-group.scheduling.sigs.k8s.io": name}
    else:
        own = {KOORDINATOR + "name": name, KOORDINATOR + "min-available": str(minimum), **notes, **queue_note}
        if waiting is not None:
            own[KOORDINATOR + "waiting-time"] = f"{waiting}s"
    for index in range(count):
        late = rng.choice([when, when, when, when, when + 5])
        found.append(pod(f"{name}-{index}", spec, {**own, **at(late), **life(rng)}, labels))
    return found


def native(rng: random.Random, name: str, queue: str | None) -> list[Obj]:
    count, when = rng.randint(1, 4), instant(rng)
    policy: Obj = {"gang": {"minCount": rng.randint(1, count)}} if rng.random() < 0.8 else {"basic": {}}
    notes = {**at(when), **({"volcano.sh/queue-name": queue} if queue else {})}
    group: Obj = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "annotations": notes},
        "spec": {"schedulingPolicy": policy},
    }
    spec = pod_spec(rng, some_priority(rng), *member_specs(rng))
    spec["schedulingGroup"] = {"podGroupName": name}
    return [group, *(pod(f"{name}-{index}", spec, {**at(when), **life(rng)}) for index in range(count))]


def arbitrator(rng: random.Random, name: str, queue: str | None, *, by_job: bool) -> list[Obj]:
    """A QueueJob, or a SchedulingSpec and pods of an owner whose kind is unknown."""
    when, count = instant(rng), rng.randint(1, 4)
    asked: Obj = {"minAvailable": rng.randint(0, count)}
    if rng.random() < 0.4:
        asked["priorityClassName"] = rng.choice(["low", "mid", "high"])
    if rng.random() < 0.1:
        asked["nodeSelector"] = {"zone": rng.choice("ab")}
    notes = {**at(when), **({"volcano.sh/queue-name": queue} if queue else {})}
    spec = pod_spec(rng, None, *member_specs(rng))
    version = "arbitrator.incubator.k8s.io/v1alpha1"
    metadata: Obj = {"name": name, "namespace": "default", "annotations": notes}
    if by_job:
        template = {"metadata": {"annotations": life(rng)}, "spec": spec}
        tasks = [{"name": "a", "replicas": count, "template": template}]
        body = {"schedSpec": asked, "taskSpecs": tasks, "schedulerName": "enbloc"}
        return [{"apiVersion": version, "kind": "QueueJob", "metadata": metadata, "spec": body}]
    owner = [{"apiVersion": "example.com/v1", "kind": "CRDJob", "name": name, "uid": f"uid-{name}", "controller": True}]
    metadata["ownerReferences"] = owner
    found: list[Obj] = [{"apiVersion": version, "kind": "SchedulingSpec", "metadata": metadata, "spec": asked}]
    for index in range(count):
        one = pod(f"{name}-{index}", spec, {**at(rng.choice([when, when, when + 5])), **life(rng)})
        one["metadata"]["ownerReferences"] = owner
        found.append(one)
    return found


# ---- layer 4: waves


def waves(rng: random.Random, made: Obj) -> Obj:
    """Later roles of a job depend on earlier ones."""
    roles = made["spec"]["tasks"]
    for position, role in enumerate(roles):
        earlier = [one["name"] for one in roles[:position]]
        if earlier and rng.random() < 0.8:
            role["dependsOn"] = {"name": rng.sample(earlier, rng.randint(1, len(earlier)))}
            if rng.random() < 0.3:
                role["dependsOn"]["iteration"] = "any"
    return made


# ---- layer 5: edits in flight, node loss, restarts


KINDS = ("restart", "restart", "restart", "node", "cordon", "delete", "scale", "mark")
MORE_KINDS = (*KINDS, "queue", "queue", "remove", "remove", "wait", "mode", "names", "replicas", "class")


def edits(rng: random.Random, documents: list[Obj], kinds: tuple[str, ...]) -> list[Obj]:
    found: list[Obj] = []
    for _ in range(rng.randint(1, 4)):
        when = f"{rng.choice([1, 5, 7, 10, 12, 15, 20, 22, 30, 33])}s"
        kind = rng.choice(kinds)
        found += edit(rng, documents, kind, when) if kind in KINDS else change(rng, documents, kind, when)
    return found


def quota(rng: random.Random) -> Obj:
    metadata = {"name": "limit", "namespace": "default"}
    hard = {"pods": str(rng.choice([3, 5, 8]))}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def step(when: str, do: str, **more: Any) -> Obj:
    return {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": when, "do": do, **more}


def edit(rng: random.Random, documents: list[Obj], kind: str, when: str) -> list[Obj]:
    if kind == "restart":
        return [step(when, "restart-scheduler")]
    nodes_there = [one["metadata"]["name"] for one in documents if one["kind"] == "Node"]
    node = rng.choice(nodes_there)
    if kind == "node":
        back = f"{int(when[:-1]) + rng.choice([5, 20])}s"
        target = {"name": node}
        return [step(when, "fail-node", target=target), step(back, "recover-node", target=target)]
    if kind == "cordon":
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        back = f"{int(when[:-1]) + rng.choice([5, 20])}s"
        return [
            step(when, "patch", target=target, patch={"spec": {"unschedulable": True}}),
            step(back, "patch", target=target, patch={"spec": {"unschedulable": None}}),
        ]
    if kind == "delete":
        chosen = rng.choice([one for one in documents if one["kind"] in ("Pod", "Job", "QueueJob")] or [None])
        return [step(when, "delete", target=target_of(chosen))] if chosen else []
    if kind == "scale":
        jobs_there = [one for one in documents if one["kind"] == "PodGroup" and "minMember" in one["spec"]]
        if not jobs_there:
            return []
        chosen = rng.choice(jobs_there)
        return [step(when, "patch", target=target_of(chosen), patch={"spec": {"minMember": rng.randint(0, 3)}})]
    marked = [one for one in documents if one["kind"] == "Pod"]
    if not marked:
        return []
    patch = {"metadata": {"annotations": {KOORDINATOR + "timeout": None}}}
    return [step(when, "patch", target=target_of(rng.choice(marked)), patch=patch)]


def change(rng: random.Random, documents: list[Obj], kind: str, when: str) -> list[Obj]:
    """An object is deleted under its pods, or says something else from now on."""
    of_kind = {
        "queue": ("Queue",),
        "remove": ("PodGroup", "SchedulingSpec", "Queue"),
        "wait": ("PodGroup",),
        "mode": ("PodGroup",),
        "names": ("PodGroup",),
        "replicas": ("Job",),
        "class": ("PodGroup", "Job"),
    }[kind]
    chosen = rng.choice([one for one in documents if one["kind"] in of_kind] or [None])
    if chosen is None:
        return []
    target = target_of(chosen)
    if kind == "remove":
        return [step(when, "delete", target=target)]
    groups = [one["metadata"]["name"] for one in documents if one["kind"] == "PodGroup"]
    named = sorted({chosen["metadata"]["name"], rng.choice(groups or ["g0"])})
    patch: Obj = {
        "queue": {"spec": {rng.choice(["capability", "deserved"]): {"cpu": str(rng.choice([1, 2, 4, 8]))}}},
        "wait": {"spec": {"scheduleTimeoutSeconds": rng.choice([5, 20, 40])}},
        "mode": {"metadata": {"annotations": {KOORDINATOR + "mode": rng.choice(["NonStrict", "Strict", None])}}},
        "names": {"metadata": {"annotations": {KOORDINATOR + "groups": ",".join(f"default/{one}" for one in named)}}},
        "class": {"spec": {"priorityClassName": rng.choice(["low", "mid", "high"])}},
    }.get(kind, {})
    if kind == "replicas":
        roles = [dict(role) for role in chosen["spec"]["tasks"]]
        one = rng.choice(roles)
        one["replicas"] = max(one.get("minAvailable", 1), one["replicas"] + rng.choice([-1, 1, 2]))
        patch = {"spec": {"tasks": roles}}
    return [step(when, "patch", target=target, patch=patch)]


def target_of(obj: Obj) -> Obj:
    found = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    return found if obj["kind"] == "Queue" else {**found, "namespace": "default"}


# ---- layer 6: victims that are protected


def protect(rng: random.Random, documents: list[Obj]) -> None:
    """Some pods, templates and PodGroups may not be evicted, or not at once (P2)."""
    templates = [role["template"] for one in documents if one["kind"] == "Job" for role in one["spec"]["tasks"]]
    for one in [*(one for one in documents if one["kind"] in ("Pod", "PodGroup")), *templates]:
        notes = one["metadata"].setdefault("annotations", {})
        if rng.random() < 0.1:
            notes["volcano.sh/preemptable"] = "false"
        elif rng.random() < 0.1:
            notes["volcano.sh/cooldown-time"] = "10s"


# ---- layer 8: all of it


def budgets(rng: random.Random, documents: list[Obj]) -> None:
    """Some pods are protected by a PodDisruptionBudget (P2)."""
    if rng.random() < 0.6:
        return
    templates = [role["template"] for one in documents if one["kind"] == "Job" for role in one["spec"]["tasks"]]
    for one in [*(one for one in documents if one["kind"] == "Pod"), *templates]:
        if rng.random() < 0.4:
            one["metadata"].setdefault("labels", {})["app"] = "served"
    spec: Obj = {"selector": {"matchLabels": {"app": "served"}}}
    spec.update(rng.choice([{"minAvailable": 1}, {"minAvailable": 2}, {"maxUnavailable": 1}, {"minAvailable": "50%"}]))
    metadata = {"name": "served", "namespace": "default"}
    documents.append({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})


def patience(rng: random.Random, documents: list[Obj]) -> None:
    """Some gangs starve sooner or later than others (R1)."""
    for one in documents:
        if one["kind"] in ("Job", "PodGroup") and rng.random() < 0.15:
            notes = one["metadata"].setdefault("annotations", {})
            notes["volcano.sh/sla-waiting-time"] = rng.choice(["1s", "8s", "30s"])


def policies(rng: random.Random, documents: list[Obj]) -> None:
    """Some gangs say what counts towards their minimum (K9)."""
    chosen = rng.choice(["waiting-and-running", "only-waiting"])
    names = [one["metadata"]["name"].partition("-")[0] for one in documents if "metadata" in one]
    name = rng.choice(names)
    for one in documents if rng.random() < 0.3 else ():
        notes = one.get("metadata", {}).get("annotations", {})
        is_gang = KOORDINATOR + "name" in notes or one["apiVersion"].startswith("scheduling.sigs")
        if is_gang and one["metadata"]["name"].partition("-")[0] == name:
            notes[KOORDINATOR + "match-policy"] = chosen
