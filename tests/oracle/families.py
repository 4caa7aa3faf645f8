"""More seeded random scenarios, each around one rule that the layers of `generate` meet seldom or not at all. They come
after the layers: a seed of a layer stays what it was."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from oracle import generate, restart_families, sub_group_families, tree_families, usage_families
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


def picky(rng: random.Random) -> Scenario:
    """G6: node affinity, taints and host ports, with labels and taints of nodes that change."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    names = [one["metadata"]["name"] for one in documents if one["kind"] == "Node"]
    for one in documents:
        if one["kind"] == "Node":
            one["metadata"]["labels"].update(node_labels(rng))
            if rng.random() < 0.3:
                one["spec"] = {"taints": some_taints(rng)}
    for number in range(rng.randint(3, 7)):
        made = generate.gang(rng, f"g{number}", None, rng.choice([0, 0, 2, 2]))
        roles = [role for one in made for role in (one["spec"].get("tasks") or one["spec"].get("taskSpecs") or ())]
        shared = some_pickiness(rng, names)
        for one in [*(one for one in made if one["kind"] == "Pod"), *(role["template"] for role in roles)]:
            one["spec"] = {**one["spec"], **(shared if rng.random() < 0.8 else some_pickiness(rng, names))}
            if rng.random() < 0.3:
                one["spec"]["containers"] = [{**one["spec"]["containers"][0], "ports": some_ports(rng)}]
        documents += made
    for _ in range(rng.randint(0, 3)):
        target = {"apiVersion": "v1", "kind": "Node", "name": rng.choice(names)}
        labels = {"metadata": {"labels": {**node_labels(rng), "disk": rng.choice([None, "ssd", "hdd"])}}}
        taints = {"spec": {"taints": rng.choice([None, some_taints(rng)])}}
        when = f"{rng.choice([3, 8, 12, 18, 26, 41])}s"
        documents.append(generate.step(when, "patch", target=target, patch=rng.choice([labels, taints])))
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon"))
    actions = rng.choice([[], [], ["preempt"], ["preempt", "reclaim"]])
    actions = ["enqueue", "allocate", "backfill", *actions]
    settings = generate.starving_settings(rng, actions) if rng.random() < 0.3 else plain_settings(", ".join(actions))
    return documents, settings


def node_labels(rng: random.Random) -> dict[str, str]:
    return {"zone": rng.choice("abc"), "disk": rng.choice(["ssd", "hdd"]), "gen": rng.choice(["1", "2", "3", "new"])}


def some_taints(rng: random.Random) -> list[Obj]:
    effect = rng.choice(["NoSchedule", "NoSchedule", "PreferNoSchedule", "PreferNoSchedule"])
    return [{"key": "kept", "effect": effect, **rng.choice([{}, {"value": "x"}])}]


def some_pickiness(rng: random.Random, names: list[str]) -> Obj:
    """Node affinity and tolerations."""
    found: Obj = {}
    affinity: Obj = {}
    if rng.random() < 0.5:
        terms = [some_node_term(rng, names) for _ in range(rng.choice([1, 1, 2]))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.4:
        weighted = [
            {"weight": rng.choice([1, 10, 100]), "preference": some_node_term(rng, names)}
            for _ in range(rng.choice([1, 2]))
        ]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = weighted
    if affinity:
        found["affinity"] = {"nodeAffinity": affinity}
    if rng.random() < 0.3:
        one = rng.choice([{"operator": "Exists"}, {"key": "kept", "operator": "Exists"}, {"key": "kept", "value": "x"}])
        found["tolerations"] = [one]
    return found


def some_node_term(rng: random.Random, names: list[str]) -> Obj:
    if rng.random() < 0.1:
        operator = rng.choice(["In", "NotIn"])
        return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [rng.choice(names)]}]}
    lines: list[Obj] = [
        {"key": "zone", "operator": rng.choice(["In", "In", "NotIn"]), "values": rng.sample("abc", rng.randint(1, 2))},
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "disk", "operator": rng.choice(["Exists", "DoesNotExist"])},
        {"key": "gen", "operator": rng.choice(["Gt", "Lt"]), "values": [rng.choice("12")]},
        {"key": "gen", "operator": "NotIn", "values": ["new"]},
    ]
    return {"matchExpressions": rng.sample(lines, rng.choice([1, 1, 2]))}


def some_ports(rng: random.Random) -> list[Obj]:
    found: Obj = {"containerPort": 80, "hostPort": rng.choice([8080, 8080, 9090])}
    if rng.random() < 0.2:
        found["protocol"] = "UDP"
    if rng.random() < 0.2:
        found["hostIP"] = rng.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])
    return [found]


def spreads(rng: random.Random) -> Scenario:
    """G6: pods that are to be spread over nodes or zones."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 5)]
    for one in documents:
        if one["kind"] == "Node":
            one["metadata"]["labels"]["kubernetes.io/hostname"] = one["metadata"]["name"]
            if rng.random() < 0.15:
                del one["metadata"]["labels"]["zone"]
    for number in range(rng.randint(2, 5)):
        made = generate.gang(rng, f"g{number}", None, rng.choice([0, 0, 2]))
        templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
        constraints = [some_spread(rng) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
        if len({one["topologyKey"] for one in constraints}) < len(constraints):
            constraints = constraints[:1]
        app = rng.choice(["a", "a", "b"])
        for one in made:
            one["metadata"]["annotations"].pop(KOORDINATOR + "mode", None)
        for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
            one["metadata"].setdefault("labels", {})["app"] = app
            one["spec"] = {**one["spec"], "topologySpreadConstraints": constraints} if constraints else one["spec"]
        documents += made
    documents += generate.edits(rng, documents, ("restart", "delete", "node", "cordon"))
    return documents, plain_settings("enqueue, allocate, backfill")


def some_spread(rng: random.Random) -> Obj:
    found: Obj = {
        "maxSkew": rng.choice([1, 1, 2]),
        "topologyKey": rng.choice(["kubernetes.io/hostname", "zone", "zone"]),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": rng.choice(["a", "a", "b"])}},
    }
    if rng.random() < 0.2:
        found["minDomains"] = rng.choice([2, 3])
    return found


def pinned(rng: random.Random) -> Scenario:
    """G6: pods whose volumes are reachable from some nodes only, or may be used by one pod at a time."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    exclusive = rng.random() < 0.5
    names = [f"data{number}" for number in range(rng.randint(1, 3))]
    for name in names:
        documents += disk(rng, name, exclusive and rng.random() < 0.5)
    for number in range(rng.randint(2, 6)):
        made = generate.gang(rng, f"g{number}", None, rng.choice([0, 0, 2]))
        templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
        used = rng.sample(names, 1) if rng.random() < 0.7 else []
        for one in made:
            one["metadata"]["annotations"].pop(KOORDINATOR + "mode", None)
        for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
            mine = used if rng.random() < 0.8 else []
            mounted = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in mine]
            one["spec"] = {**one["spec"], "volumes": mounted} if mounted else one["spec"]
        documents += made
    documents += generate.edits(rng, documents, ("restart", "delete", "node", "cordon"))
    return documents, plain_settings("enqueue, allocate, backfill" + ("" if exclusive else ", preempt"))


def disk(rng: random.Random, name: str, exclusive: bool) -> list[Obj]:
    """A claim and its volume, which may come late."""
    spec: Obj = {"accessModes": ["ReadWriteOncePod" if exclusive else "ReadWriteMany"], "capacity": {"storage": "1Gi"}}
    spec["claimRef"] = {"namespace": "default", "name": name}
    if rng.random() < 0.8:
        line = {"key": "zone", "operator": "In", "values": [rng.choice("ab")]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": spec}
    asked: Obj = {"accessModes": spec["accessModes"], "resources": {"requests": {"storage": "1Gi"}}}
    asked |= {"volumeName": f"pv-{name}", "storageClassName": ""}
    metadata = {"name": name, "namespace": "default", "annotations": generate.at(rng.choice([0, 0, 0, 12]))}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": asked}
    return [{**volume, "status": {"phase": "Bound"}}, {**claim, "status": {"phase": "Bound"}}]


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


def tenants(rng: random.Random) -> Scenario:
    """S3, S5, S6, S7: gangs of several namespaces, classes of the system's and classes that quotas limit, queues with
    doors and with immunity up to their share, pods of another scheduler beside them."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    for name, team in (("team-a", "red"), ("team-b", "blue")):
        labels = {"team": team} if rng.random() < 0.8 else {}
        documents.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        if rng.random() < 0.3:
            documents.append(class_quota(rng, name))
    made_queues = generate.queues(rng)
    parents = {one["spec"].get("parent") for one in made_queues}
    for one in made_queues:
        one["metadata"]["annotations"] = queue_notes(rng)
    documents += made_queues
    names = [one["metadata"]["name"] for one in made_queues if one["metadata"]["name"] not in parents]
    homes: dict[str, str] = {}
    for number in range(rng.randint(4, 8)):
        home = rng.choice(["default", "team-a", "team-a", "team-b", "team-b", "kube-system"])
        made = generate.gang(rng, f"g{number}", rng.choice([None, *names, *names]), rng.choice([0, 2, 2]))
        homes[f"g{number}"] = home
        documents += [moved(rng, one, home) for one in made]
    documents += [foreign(rng, documents, number) for number in range(rng.choice([0, 0, 1, 2]))]
    generate.protect(rng, documents)
    generate.protect(rng, documents)
    forge(rng, documents)
    kinds = ("restart", "restart", "delete", "node", "class", "queue")
    for one in generate.edits(rng, documents, kinds):
        target = one.get("target") or {}
        if "namespace" in target:
            target["namespace"] = homes.get(target["name"].partition("-")[0].rstrip("xy"), "default")
        documents.append(one)
    if rng.random() < 0.4:
        target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": rng.choice(names)}
        patch = {"metadata": {"annotations": {"enbloc.dev/allowed-namespaces": rng.choice([None, "team-a", "team-b"])}}}
        documents.append(generate.step(f"{rng.choice([5, 12, 20])}s", "patch", target=target, patch=patch))
    actions = rng.choice(["preempt", "reclaim", "preempt, reclaim", "preempt, reclaim"])
    settings = plain_settings(f"enqueue, allocate, backfill, {actions}")
    if rng.random() < 0.4:
        settings["tenancy"] = "isolated"
    if rng.random() < 0.2:
        settings["systemPriorityNamespaces"] = ["team-b"]
    if rng.random() < 0.2:
        settings["longestCooldownTime"] = "5s"
    return documents, settings


def forge(rng: random.Random, documents: list[Obj]) -> None:
    """S2: some objects come with records that no scheduler wrote, or get them later."""
    nodes = [one["metadata"]["name"] for one in documents if one["kind"] == "Node"]
    for one in list(documents):
        if one["kind"] not in ("Pod", "PodGroup", "SchedulingSpec") or rng.random() < 0.8:
            continue
        kind = rng.choice(["hold", "reserve", "preempt", "wave"])
        slots = {one["metadata"]["name"]: {rng.choice(nodes): 1}}
        record = json.dumps({"kind": kind, "slots": slots, "until": 0}, sort_keys=True)
        notes = {f"enbloc.dev/claim-{kind}": record, "enbloc.dev/decision": "1", "enbloc.dev/committed": "true"}
        if rng.random() < 0.5:
            one["metadata"].setdefault("annotations", {}).update(notes)
            continue
        target = {**generate.target_of(one), "namespace": one["metadata"]["namespace"]}
        patch = {"metadata": {"annotations": notes}}
        documents.append(generate.step(f"{rng.choice([3, 8, 14])}s", "patch", target=target, patch=patch))


def class_quota(rng: random.Random, namespace: str) -> Obj:
    """Limits which pods may have some priority classes, to more of them than come."""
    expression: Obj = {"scopeName": "PriorityClass", "operator": rng.choice(["In", "In", "NotIn", "Exists"])}
    if expression["operator"] != "Exists":
        expression["values"] = rng.sample(["low", "mid", "high"], rng.randint(1, 2))
    spec = {"hard": {"pods": "100"}, "scopeSelector": {"matchExpressions": [expression]}}
    metadata = {"name": "classes", "namespace": namespace, "annotations": generate.at(rng.choice([0, 0, 12]))}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def queue_notes(rng: random.Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.2:
        found["enbloc.dev/allowed-namespaces"] = rng.choice(["team-a", "team-a, team-b", "default,team-b"])
    if rng.random() < 0.15:
        found["enbloc.dev/allowed-namespace-selector"] = rng.choice(["team=red", "team=blue"])
    if rng.random() < 0.3:
        found["enbloc.dev/immunity"] = "within-share"
    return found


def moved(rng: random.Random, one: Obj, namespace: str) -> Obj:
    """The object in another namespace, perhaps with a class of the system's."""
    usage_families.in_namespace(one, namespace)
    if one["kind"] in ("Job", "PodGroup") and "scheduling.sigs" not in one["apiVersion"] and rng.random() < 0.15:
        if "x-k8s" not in one["apiVersion"]:
            one["spec"]["priorityClassName"] = "system-cluster-critical"
    if one["kind"] in ("SchedulingSpec", "QueueJob") and rng.random() < 0.15:
        asked = one["spec"] if one["kind"] == "SchedulingSpec" else one["spec"]["schedSpec"]
        asked["priorityClassName"] = "system-node-critical"
    return one


def foreign(rng: random.Random, documents: list[Obj], number: int) -> Obj:
    """A pod that another scheduler has put on a node."""
    node = rng.choice([one["metadata"]["name"] for one in documents if one["kind"] == "Node"])
    spec = {**generate.pod_spec(rng, None, 1, 2), "schedulerName": "other", "nodeName": node}
    spec.pop("nodeSelector", None)
    return generate.pod(f"f{number}", spec, {**generate.at(rng.choice([0, 0, 10])), **generate.life(rng)})


def whole_jobs(rng: random.Random) -> Scenario:
    """D5: jobs whose first wave starts only if all waves fit together."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    names: list[str | None] = [None]
    if rng.random() < 0.4:
        found = generate.queues(rng)
        documents += found
        parents = {one["spec"].get("parent") for one in found}
        names += [one["metadata"]["name"] for one in found if one["metadata"]["name"] not in parents]
    for number in range(rng.randint(2, 6)):
        if rng.random() < 0.6:
            documents.append(whole_job(rng, f"g{number}", rng.choice(names)))
        else:
            documents += generate.gang(rng, f"g{number}", rng.choice(names), rng.choice([0, 0, 2, 3]))
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon"))
    settings = plain_settings("enqueue, allocate, backfill")
    if rng.random() < 0.3:
        settings["dependsOn"] = {"gangDeadline": rng.choice(["5s", "15s"])}
    return documents, settings


def later_room(rng: random.Random) -> Scenario:
    """S9: whole-job gangs of several namespaces claim room under quotas and let it lapse: their first waves are late or
    never ready, and jobs are deleted and come again."""
    documents, settings = rng.choice([whole_jobs, greedy_whole_jobs, lapsing_jobs, lapsing_jobs])(rng)
    homes, moved = ("default", "team-a"), dict[str, str]()
    for one in documents:
        if one["kind"] == "Job" and "enbloc.dev/depends-on-gang" in one["metadata"].get("annotations", {}):
            one["metadata"]["namespace"] = moved[one["metadata"]["name"]] = rng.choice(homes)
            first = one["spec"]["tasks"][0]["template"]["metadata"].setdefault("annotations", {})
            if rng.random() < 0.6 and generate.SIM + "start-delay" not in first:
                first[generate.SIM + "start-delay"] = rng.choice(["3s", "8s", "20s", "1000s"])
            if rng.random() < 0.3:
                one["metadata"]["annotations"][generate.SIM + "delete-at"] = rng.choice(["40s", "45s", "60s"])
    for step in documents:
        if step["kind"] == "Step" and step.get("target", {}).get("kind") == "Job":
            step["target"]["namespace"] = moved.get(step["target"]["name"], "default")
    for home in homes:
        for number in range(rng.choice([0, 1, 1, 2])):
            documents.insert(0, pods_quota(rng, home, f"limit-{number}"))
    settings["dependsOn"] = {"gangDeadline": rng.choice(["5s", "10s", "15s", "30s"])}
    return documents, settings


def lapsing_jobs(rng: random.Random) -> Scenario:
    """Small first waves that ask for much room, of which many never run, on few nodes."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 2)]
    for number in range(rng.randint(3, 7)):
        if rng.random() < 0.25:
            documents += generate.gang(rng, f"g{number}", None, 0)
            continue
        made = whole_job(rng, f"g{number}", None)
        made["spec"]["tasks"] = made["spec"]["tasks"][:2]
        for role, count in zip(made["spec"]["tasks"], (1, rng.choice([2, 3, 5])), strict=True):
            role["replicas"] = role["minAvailable"] = count
            role.pop("policies", None)
        made["spec"]["tasks"][1]["dependsOn"] = {"name": [made["spec"]["tasks"][0]["name"]]}
        made["spec"].pop("minAvailable", None)
        if rng.random() < 0.6:
            first = made["spec"]["tasks"][0]["template"]["metadata"].setdefault("annotations", {})
            first[generate.SIM + "start-delay"] = "1000s"
        documents.append(made)
    documents += generate.edits(rng, documents, ("restart", "delete", "node"))
    actions = rng.choice(["enqueue, allocate", "enqueue, allocate, backfill", "enqueue, allocate, preempt"])
    return documents, plain_settings(actions)


def pods_quota(rng: random.Random, namespace: str, name: str) -> Obj:
    hard = rng.choice([{"pods": "5"}, {"pods": "8"}, {"requests.cpu": "4"}, {"requests.cpu": "7"}, {"count/pods": "6"}])
    spec: Obj = {"hard": hard}
    match rng.choice(["", "", "", "class", "scope"]):
        case "class":
            scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["low", "mid"]}
            spec["scopeSelector"] = {"matchExpressions": [scope]}
        case "scope":
            spec["scopes"] = [rng.choice(["NotBestEffort", "NotTerminating", "BestEffort"])]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def greedy_whole_jobs(rng: random.Random) -> Scenario:
    """D5 with R and P: whole-job gangs starve, preempt and reclaim for all their waves together, and lose room."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    names: list[str | None] = [None]
    if rng.random() < 0.5:
        found = generate.queues(rng)
        documents += found
        parents = {one["spec"].get("parent") for one in found}
        names += [one["metadata"]["name"] for one in found if one["metadata"]["name"] not in parents]
    for number in range(rng.randint(4, 8)):
        if rng.random() < 0.5:
            documents.append(whole_job(rng, f"g{number}", rng.choice(names)))
        else:
            documents += generate.gang(rng, f"g{number}", rng.choice(names), rng.choice([0, 0, 2, 3]))
    for one in documents:
        templates = [role["template"] for role in one["spec"]["tasks"]] if one["kind"] == "Job" else [one]
        for template in templates if one["kind"] in ("Job", "Pod") and rng.random() < 0.3 else ():
            template["metadata"].setdefault("annotations", {})[generate.SIM + "stop-delay"] = "6s"
    generate.protect(rng, documents)
    generate.patience(rng, documents)
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon", "class"))
    actions = ["enqueue", "allocate", "backfill"]
    actions += rng.choice([[], ["preempt"], ["preempt"], ["reclaim"], ["preempt", "reclaim"]])
    if rng.random() < 0.6:
        settings = generate.starving_settings(rng, actions)
    else:
        settings = plain_settings(", ".join(actions))
    if rng.random() < 0.3:
        settings["dependsOn"] = {"gangDeadline": rng.choice(["5s", "15s"])}
    return documents, settings


def whole_job(rng: random.Random, name: str, queue: str | None) -> Obj:
    """A job of small pods in several waves."""
    made = generate.job(rng, name, queue)
    while len(made["spec"]["tasks"]) < 2:
        made = generate.job(rng, name, queue)
    for role in made["spec"]["tasks"]:
        asked = (
            {"cpu": "1"} if rng.random() < 0.8 else role["template"]["spec"]["containers"][0]["resources"]["requests"]
        )
        role["template"]["spec"]["containers"][0]["resources"]["requests"] = asked
    generate.waves(rng, made)
    first, second = made["spec"]["tasks"][:2]
    second.setdefault("dependsOn", {"name": [first["name"]]})
    made["metadata"]["annotations"]["enbloc.dev/depends-on-gang"] = "true"
    return made


def domains(rng: random.Random) -> Scenario:
    """T1, T4: gangs of Kubernetes' own PodGroups whose pods must be in one zone or rack, and lose and get pods."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 6)]
    for one in documents:
        if one["kind"] == "Node":
            one["metadata"]["labels"]["rack"] = rng.choice("xyz")
            if rng.random() < 0.1:
                del one["metadata"]["labels"]["zone"]
    for number in range(rng.randint(2, 6)):
        if rng.random() < 0.5:
            made = generate.gang(rng, f"g{number}", None, rng.choice([0, 2]))
            documents += in_one_rack(rng, made) if rng.random() < 0.6 else made
            continue
        made = generate.native(rng, f"g{number}", None)
        if rng.random() < 0.85:
            made[0]["spec"]["schedulingConstraints"] = {
                "topology": [{"key": rng.choice(["zone", "zone", "rack", "row"])}]
            }
        documents += made
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "delete", "node", "cordon"))
    documents += pods_that_come_later(rng, documents)
    levels = [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]
    metadata = {"name": "dc", "annotations": generate.at(rng.choice([0, 0, 0, 12]))}
    tree = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": metadata,
        "spec": {"levels": levels},
    }
    documents.append(tree)
    return documents, plain_settings("enqueue, allocate, backfill" + rng.choice(["", "", ", preempt"]))


def in_one_rack(rng: random.Random, made: list[Obj]) -> list[Obj]:
    """Pods that must be in one domain of a tree, or of one that does not exist."""
    required = rng.choice(["zone", "rack", "rack", "row"])
    notes = {"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": required}
    for one in made:
        one["metadata"].get("annotations", {}).pop(KOORDINATOR + "mode", None)
        if one["kind"] == "Pod":
            one["metadata"]["annotations"].update(notes)
    return made


def unsupported(rng: random.Random) -> Scenario:
    """N1: pods, PodGroups and queues ask for what is not honoured; pods with and without it are replaced."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    made_queues = generate.queues(rng)
    parents = {one["spec"].get("parent") for one in made_queues}
    for one in made_queues:
        if rng.random() < 0.15:
            required = {"requiredDuringSchedulingIgnoredDuringExecution": ["group-a"]}
            one["spec"]["affinity"] = {rng.choice(["nodeGroupAffinity", "nodeGroupAntiAffinity"]): required}
    documents += made_queues
    names = [one["metadata"]["name"] for one in made_queues if one["metadata"]["name"] not in parents]
    for number in range(rng.randint(3, 7)):
        made = generate.gang(rng, f"g{number}", rng.choice([None, None, *names]), rng.choice([0, 2, 3]))
        if rng.random() < 0.4:
            ask_for_too_much(rng, made)
        documents += made
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "scale", "mode"))
    documents += pods_that_come_later(rng, documents)
    for one in documents:
        notes = one.get("metadata", {}).get("annotations", {})
        if one["kind"] == "Pod" and "volcano.sh/numa-topology-policy" in notes and rng.random() < 0.4:
            patch = {"metadata": {"annotations": {"volcano.sh/numa-topology-policy": None}}}
            when = f"{rng.choice([7, 16, 31])}s"
            documents.append(generate.step(when, "patch", target=generate.target_of(one), patch=patch))
    actions = rng.choice(["", ", preempt", ", preempt, reclaim"])
    settings = plain_settings(f"enqueue, allocate, backfill{actions}")
    if rng.random() < 0.1:
        settings["unsupported"] = "warn"
    return documents, settings


def ask_for_too_much(rng: random.Random, made: list[Obj]) -> None:
    templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
    pods = [one for one in made if one["kind"] == "Pod"]
    key = rng.choice(["numa", "numa", "quota", "fraction", "object"])
    for one in made:
        if key == "object" and one["apiVersion"].startswith("scheduling.k8s.io/v1alpha2"):
            one["spec"]["schedulingConstraints"] = {"topology": [{"key": "zone"}, {"key": "rack"}]}
    for one in [*pods, *templates]:
        if rng.random() < 0.3:
            continue
        notes = one["metadata"].setdefault("annotations", {})
        if key == "numa":
            notes["volcano.sh/numa-topology-policy"] = rng.choice(["restricted", "single-numa-node", "best-effort"])
        elif key == "quota":
            one["metadata"].setdefault("labels", {})["quota.scheduling.koordinator.sh/name"] = "team"
        elif key == "fraction":
            notes["gpu-fraction"] = "0.5"


def run_times(rng: random.Random) -> Scenario:
    """R8: most pods say how long they run, not all of them truly, beside nodes that are reserved for starving gangs."""
    documents = [*generate.priority_classes(), *generate.nodes(rng, 3)]
    for number in range(rng.randint(4, 8)):
        made = generate.gang(rng, f"g{number}", None, rng.choice([0, 0, 2]))
        say_run_times(rng, made)
        documents += made
    for number in range(rng.randint(2, 6)):
        spec = generate.pod_spec(rng, rng.choice([None, None, None, "low", "high"]), 1, 2)
        made = [generate.pod(f"s{number}", spec, {**generate.at(rng.choice([8, 12, 20, 30])), **generate.life(rng)})]
        say_run_times(rng, made)
        documents += made
    generate.patience(rng, documents)
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon"))
    return documents, generate.starving_settings(rng, ["enqueue", "allocate", "backfill"])


def easy(rng: random.Random) -> Scenario:
    """R8: `backfill` in mode `easy`."""
    return backfilled(rng, "easy")


def conservative(rng: random.Random) -> Scenario:
    """R8: `backfill` in mode `conservative`."""
    return backfilled(rng, "conservative")


def backfilled(rng: random.Random, mode: str) -> Scenario:
    documents = [*generate.priority_classes(), *generate.nodes(rng, 4)]
    names: list[str | None] = [None]
    if rng.random() < 0.3:
        for name in ("q1", "q2"):
            spec = {"weight": rng.choice([1, 2])}
            queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
            documents.append({**queue, "spec": spec})
            names.append(name)
    for number in range(rng.randint(5, 11)):
        made = generate.gang(rng, f"g{number}", rng.choice(names), 0)
        say_run_times(rng, made)
        documents += made
    documents += generate.edits(rng, documents, ("restart", "restart", "delete", "node", "cordon"))
    return documents, backfill_settings(rng, mode)


def backfill_settings(rng: random.Random, mode: str) -> dict[str, Any]:
    names = [*rng.choice([["enqueue"], [], []]), "allocate"]
    actions: list[Obj] = [{"name": name} for name in names]
    actions.append({"name": "backfill", "arguments": {"mode": mode}})
    return {"actions": actions, "koordinator": {"defaultWaitingTime": "60s"}}


def say_run_times(rng: random.Random, made: list[Obj]) -> None:
    """True run times, too short and too long ones; by annotation, by deadline, or on the gang's object."""
    templates = [role["template"] for one in made if one["kind"] == "Job" for role in one["spec"]["tasks"]]
    for one in [*(one for one in made if one["kind"] == "Pod"), *templates]:
        notes = one["metadata"]["annotations"]
        seconds = int(notes.get(generate.SIM + "run-time", "300s")[:-1])
        said = rng.choice([None, seconds, seconds, seconds, seconds, seconds, 5, 10, 40])
        if said is not None and rng.random() < 0.2:
            one["spec"] = {**one["spec"], "activeDeadlineSeconds": said}
        elif said is not None:
            notes["enbloc.dev/expected-duration"] = f"{said}s"
    for one in made:
        if one["kind"] in ("Job", "PodGroup") and rng.random() < 0.2:
            notes = one["metadata"].setdefault("annotations", {})
            notes["enbloc.dev/expected-duration"] = rng.choice(["5s", "10s", "20s"])


def plain_settings(actions: str) -> dict[str, Any]:
    return {"actions": actions, "koordinator": {"defaultWaitingTime": "60s"}}


FAMILIES: dict[str, Callable[[random.Random], Scenario]] = {
    "policies": policies,
    "relaxed": relaxed,
    "affinities": affinities,
    "picky": picky,
    "spreads": spreads,
    "domains": domains,
    "whole-jobs": whole_jobs,
    "greedy-whole-jobs": greedy_whole_jobs,
    "later-room": later_room,
    "pinned": pinned,
    "run-times": run_times,
    "easy": easy,
    "conservative": conservative,
    "tenants": tenants,
    "unsupported": unsupported,
    "trees": tree_families.trees,
    "freed-trees": tree_families.freed_trees,
    "sub-groups": sub_group_families.sub_groups,
    "usage": usage_families.usage,
    "restarts": restart_families.restarts,
    "mixed-groups": restart_families.mixed_groups,
    "marks": restart_families.marks,
}
LAYERS = (*generate.LAYERS, *FAMILIES)
