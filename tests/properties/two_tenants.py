"""Two tenants on one cluster: `b` runs its gangs, `a` writes whatever it can into its own namespace (S1, S2).

Room, queue and priorities of `b` are its own: its pods select nodes that pods of `a` do not run on, its queue admits
no other namespace and is guaranteed that room. Pods of `a` that could run on these nodes can never be placed (they have
an affinity to a pod that does not exist) or request nothing. So all that `a` could change is what it must not.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.own_annotations import COMMITTED, DECISION, DIGEST, EXPECTED_START_DIGEST, OWN_ANNOTATIONS
from enbloc.gangs.record_digests import new_keyring, sign
from support import manifests as m
from support.manifests import Obj

NODES: Final = 4
END_S: Final = 90
NO_POD: Final = {"labelSelector": {"matchLabels": {"no": "pod"}}, "topologyKey": "kubernetes.io/hostname"}
NEVER: Final = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NO_POD]}}
CLASSES: Final = ("", "low", "high", "system-node-critical", "system-cluster-critical")
THEIR_GANGS: Final = 5
KEYS: Final = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "volcano.sh/sla-waiting-time",
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/task-spec",
    "enbloc.dev/expected-duration",
    "enbloc.dev/failed-create",
    "enbloc.dev/begun-roles",
    "gang.scheduling.koordinator.sh/name",
    "gang.scheduling.koordinator.sh/min-available",
    "gang.scheduling.koordinator.sh/groups",
    "gang.scheduling.koordinator.sh/mode",
    "gang.scheduling.koordinator.sh/waiting-time",
    "gang.scheduling.koordinator.sh/timeout",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.x-k8s.io/pod-group",
)
CONFIGS: Final[tuple[Obj | None, ...]] = (
    None,
    {"actions": ["enqueue", "allocate", "preempt", "reclaim", "backfill"]},
    {"actions": ["enqueue", "allocate", "backfill", {"name": "reserve", "arguments": {"reservedNodePercent": 100}}]},
    {"actions": ["allocate", "preempt", "backfill"]},
)


def cluster() -> list[Obj]:
    door = m.queue("team-b", 8, guarantee={"cpu": str(8 * NODES)})
    door["metadata"]["annotations"] = {"enbloc.dev/allowed-namespaces": "b"}
    nodes = [m.node(f"{who}{n}", 8, labels={"tenant": who}) for who in "ab" for n in range(NODES)]
    return [*nodes, door, m.queue("team-a"), m.priority_class("low", 10), m.priority_class("high", 1000)]


# ---- b


def of_b(random: Random) -> list[Obj]:
    """Gangs that fit, each pod a whole node; some wait for others to end."""
    found: list[Obj] = []
    for number in range(random.randint(2, THEIR_GANGS)):
        name, count = f"b{number}", random.randint(1, NODES)
        fields: dict[str, Any] = {
            "cpu": 8,
            "namespace": "b",
            "at": f"{random.randint(0, 30)}s",
            "run_time": f"{random.randint(5, 30)}s",
            "nodeSelector": {"tenant": "b"},
        }
        found += _gang_of_b(random, name, count, fields)
    if random.random() < 0.3:
        found.append(_in("b", m.step(f"{random.randint(1, 60)}s", "delete", "Pod", "b0-0")))
    return found


def _gang_of_b(random: Random, name: str, count: int, fields: dict[str, Any]) -> list[Obj]:
    match random.choice(["volcano", "volcano", "koordinator", "non-strict", "job", "pods"]):
        case "volcano":
            resources = {"resources": {"cpu": str(8 * count)}} if random.random() < 0.3 else {}
            minimum = random.choice([count, max(1, count - 1)])
            return m.gang(name, count, minimum, queue="team-b", **resources, **fields)
        case "koordinator":
            return m.koordinator_gang(name, count, labels={"volcano.sh/queue-name": "team-b"}, **fields)
        case "non-strict":
            labels = {"volcano.sh/queue-name": "team-b"}
            return m.koordinator_gang(name, count, mode="NonStrict", labels=labels, **fields)
        case "job":
            at, namespace = fields.pop("at"), fields.pop("namespace")
            return [m.job(name, m.role("w", count, **fields), at=at, namespace=namespace, queue="team-b")]
        case _:
            return [m.pod(f"{name}-{n}", queue="team-b", **fields) for n in range(count)]


# ---- a


def of_a(random: Random, config: Obj | None) -> list[Obj]:
    """Objects of every dialect with hostile values, and writes on them later. Where gangs are enqueued its pods request
    nothing: the gate counts the room of the whole cluster (M6), so room that `a` uses is not only its own there."""
    found: list[Obj] = []
    gated = config is None or "enqueue" in config["actions"]
    for number in range(random.randint(1, 6)):
        found += _objects_of_a(random, f"a{number}", gated)
    for number in range(random.randint(0, 2)):
        found += random.choice([_cut_off, _claimed])(random, f"x{number}")
    targets = [one for one in found if one["kind"] in ("Pod", "PodGroup")]
    for _ in range(random.randint(0, 8)):
        found.append(_write(random, random.choice(targets)) if targets else m.restart("5s"))
    return found


def _objects_of_a(random: Random, name: str, gated: bool) -> list[Obj]:
    count = random.randint(1, 4)
    fields: dict[str, Any] = {"namespace": "a", "at": f"{random.randint(0, 30)}s"}
    priority = random.choice(CLASSES)
    paper = random.random() < 0.7
    if paper:  # it may be for any node, and is never placed
        of_pods: dict[str, Any] = {"affinity": NEVER, "cpu": random.choice(["1m", 1, 8, 64])}
    else:
        cpu = random.choice([1, 4, 8])
        of_pods = {"cpu": 0 if gated else cpu, "nodeSelector": {"tenant": "a"}, "run_time": "20s"}
    if random.random() < 0.5 and not priority.startswith("system-"):
        of_pods["priority"] = priority
    made = _declared(random, name, count, priority, fields, of_pods)
    for one in made:
        if random.random() < 0.6:
            one["metadata"]["annotations"] = {**(one["metadata"].get("annotations") or {}), **hostile(random, name)}
        if random.random() < 0.3:
            one["metadata"]["labels"] = {**(one["metadata"].get("labels") or {}), **_labels(random, name)}
    pods = [one for one in made if one["kind"] == "Pod"]
    if pods and random.random() < 0.3:  # attack T4: it takes no room on the node that it names
        pods[0]["spec"] |= {"nodeName": f"b{random.randrange(NODES)}", "containers": [{"name": "x", "image": "x"}]}
        pods[0]["spec"].pop("affinity", None)
        pods[0]["spec"].pop("nodeSelector", None)
    return made


def _declared(
    random: Random, name: str, count: int, priority: str, fields: dict[str, Any], of_pods: dict[str, Any]
) -> list[Obj]:
    queue = random.choice(["default", "team-a", "team-b", "root", "nowhere"])
    minimum = random.choice([1, count, count + 1])
    match random.choice(["volcano", "empty", "koordinator", "sigs", "job", "queue-job", "native", "pods"]):
        case "volcano":
            return m.gang(name, count, minimum, queue=queue, group_priority=priority, **fields, **of_pods)
        case "empty":
            resources = {"cpu": random.choice(["1", "30", "1000"])}
            return [m.podgroup(name, minimum, queue=queue, priority=priority, resources=resources, **fields)]
        case "koordinator":
            groups = {"groups": json.dumps(_names(random, name))} if random.random() < 0.5 else {}
            mode = {"mode": "NonStrict"} if random.random() < 0.5 else {}
            return m.koordinator_gang(name, count, minimum, **groups, **mode, **fields, **of_pods)
        case "sigs":
            at = {"at": fields["at"]}
            group = m.sigs_podgroup(name, minimum, groups=json.dumps(_names(random, name)), **at)
            group["metadata"]["namespace"] = "a"
            return [group, *m.labelled_pods(name, count, **fields, **of_pods)]
        case "job":
            role = m.role("w", count, minimum=min(minimum, count), **of_pods)
            return [m.job(name, role, queue=queue, priority=priority or None, **fields)]
        case "queue-job":
            return [_in_a(m.queue_job(name, m.role("w", count, **of_pods)))]
        case "native":
            group = _in_a(m.native_podgroup(name, {"gang": {"minCount": minimum}}))
            return [group, *m.native_pods(name, count, **fields, **of_pods)]
        case _:
            return [m.pod(f"{name}-{n}", queue=queue, **fields, **of_pods) for n in range(count)]


def _cut_off(random: Random, name: str) -> list[Obj]:
    """Attack T4: a gang that seems to be bound in part; the member that is missing could use any node."""
    fields: dict[str, Any] = {"namespace": "a", "at": f"{random.randint(0, 20)}s"}
    group, first, *rest = m.gang(name, 2, cpu=8, affinity=NEVER, group_priority=random.choice(CLASSES), **fields)
    first["spec"] |= {"nodeName": f"b{random.randrange(NODES)}", "containers": [{"name": "x", "image": "x"}]}
    first["spec"].pop("affinity")
    first["metadata"]["annotations"] |= {DECISION: "x", DIGEST: _record(random, DIGEST, name)}
    return [group, first, *rest]


def _claimed(random: Random, name: str) -> list[Obj]:
    """Attack T2: a gang with forged records of claims on all nodes of `b`, on its object or on its pods."""
    fields: dict[str, Any] = {"namespace": "a", "at": f"{random.randint(0, 20)}s", "cpu": 8, "affinity": NEVER}
    if random.random() < 0.5:
        made = m.koordinator_gang(name, NODES, mode="NonStrict", **fields)
    else:
        made = m.gang(name, NODES, group_priority=random.choice(CLASSES), **fields)
    for one in made:
        for kind in random.sample(list(ClaimKind), 2):
            slots = {f"{name}-{n}": {f"b{n}": 1} for n in range(NODES)}
            body = claim_records.write(Record(kind, 2**62, slots))
            sealed = claim_records.sealed(new_keyring(), "x", kind, body)
            one["metadata"].setdefault("annotations", {})[kind.annotation] = random.choice([body, sealed])
    return made


def _names(random: Random, name: str) -> list[str]:
    """Gangs of `b`, with its own."""
    return [f"a/{name}", *(f"b/b{random.randrange(THEIR_GANGS)}" for _ in range(random.randint(1, 3)))]


def hostile(random: Random, name: str) -> dict[str, str]:
    """Annotations with values of any dialect, and forged records."""
    found = {random.choice(KEYS): _value(random, name) for _ in range(random.randint(0, 3))}
    for key in random.sample(sorted(OWN_ANNOTATIONS), random.randint(0, 3)):
        found[key] = _record(random, key, name)
    return found


def _value(random: Random, name: str) -> str:
    return random.choice(
        [
            "", "x", "true", "false", "1s", "87600h", "-1", "0", "1", str(2**62), "NonStrict", "team-b", "[[", name,
            "b0", json.dumps(_names(random, name)), f"b/b{random.randrange(THEIR_GANGS)}",
        ]
    )  # fmt: skip


def _record(random: Random, key: str, name: str) -> str:
    """As a scheduler with another key would write it, or garbled."""
    keyring = new_keyring()
    if key in (DIGEST, EXPECTED_START_DIGEST):
        return random.choice([sign(keyring, [name]), "key-1:0", "x"])
    if key in (DECISION, COMMITTED):
        return random.choice(["x", "1", "4;w=4", "0", ";;;"])
    kinds = [kind for kind in ClaimKind if kind.annotation == key] or list(ClaimKind)
    kind = random.choice(kinds)
    node = {f"b{n}": random.choice([1, 10**6]) for n in range(NODES)}
    slots = {"w": node} if kind is ClaimKind.WAVE else {f"{name}-{n}": {f"b{n}": 1} for n in range(NODES)}
    body = claim_records.write(Record(kind, random.choice([0, 2**62]), slots))
    return random.choice([body, claim_records.sealed(keyring, "x", kind, body), body[: len(body) // 2], "zlib:eJw="])


def _labels(random: Random, name: str) -> dict[str, str]:
    values = ["x", "b0", name, "team-b", "true"]
    return {random.choice(KEYS): random.choice(values) for _ in range(2)}


def _write(random: Random, target: Obj) -> Obj:
    """A write of `a` on one of its objects, after it was created."""
    at = f"{random.randint(1, END_S - 10)}s"
    name = target["metadata"]["name"]
    kind = {"apiVersion": target["apiVersion"], "kind": target["kind"], "namespace": "a", "name": name}
    if random.random() < 0.2:
        return {**m.step(at, "delete"), "target": kind}
    removed = dict.fromkeys(random.sample([*KEYS, *sorted(OWN_ANNOTATIONS)], 2))
    change = {"annotations": {**removed, **hostile(random, name)}}
    return {**m.step(at, "patch", patch={"metadata": change}), "target": kind}


def _in(namespace: str, step: Obj) -> Obj:
    step["target"]["namespace"] = namespace
    return step


def _in_a(obj: Obj) -> Obj:
    obj["metadata"]["namespace"] = "a"
    return obj


def restarts(random: Random) -> list[Obj]:
    return [m.restart(f"{random.randint(1, 60)}s") for _ in range(random.choice([0, 0, 1, 2]))]
