"""Reads all objects of the cluster anew, as plain dictionaries: nodes, queues, pods as tasks, and their gangs.

The result, the `world` of one cycle, holds facts only. What the cycle decides is kept beside them under `placed`
(pod UID to node), `leaving` (UIDs of pods evicted now) and `reasons`.
"""

from __future__ import annotations

import re
from typing import Any

from oracle import adapter, dialects, node_trees, tenants, volumes
from oracle.adapter import SECOND, natural_key, parse_duration, parse_quantity, parse_timestamp

World = dict[str, Any]
Task = dict[str, Any]
Gang = dict[str, Any]
Amounts = dict[str, int]

TIMEOUT_MARK = "gang.scheduling.koordinator.sh/timeout"


def read_world(store: Any, config: Any, memory: dict[str, Any], now: int) -> World:
    settings = adapter.settings_of(config)
    world: World = {
        "store": store,
        "settings": settings,
        "memory": memory,
        "now": now,
        "names": settings["names"],
        "actions": settings["actions"],
        "placed": {},
        "leaving": set(),
        "reasons": {},
        "served": [],
        "packed": set(),
        "put_off": set(),
        "put_off_for": {},
        "first_starts": {},
    }
    world["nodes"] = sorted((read_node(obj) for obj in adapter.objects(store, "Node")), key=node_rank)
    world["classes"] = {
        obj["metadata"]["name"]: obj for obj in adapter.objects(store, "PriorityClass.scheduling.k8s.io")
    }
    world["trees"] = node_trees.t5_trees(world)
    world["queues"] = read_queues(store)
    world["budgets"] = adapter.objects(store, "PodDisruptionBudget.policy")
    pods = adapter.objects(store, "Pod")
    dialects.v5_lost_specs(world, pods)
    world["gangs"] = dialects.read_gangs(world, pods)
    world["tasks"] = []
    for pod in pods:
        task = read_task(world, pod)
        world["tasks"].append(task)
        world["gangs"][task["gang"]]["tasks"].append(task)
    for gang in world["gangs"].values():
        gang["tasks"].sort(key=lambda task: task["order"])
        gang["priority"] = tenants.s3_priority(world, gang)
        gang["asked"] = node_trees.t5_of_gang(gang)
        for task in gang["tasks"]:
            task["asked"] = node_trees.t5_asked_of(gang, task)
        asks = [bool(task["asked"]) for task in gang["tasks"]]
        asks += [bool(node_trees.t5_asked_of(gang, task)) for task in gang["first_wave"]]
        asks += [node_trees.t5_asks(template) for template in gang["templates"].values()]
        gang["asks"] = gang["asked"] is not None or any(asks)
    return world


# ---- nodes


def amount(resource: str, nanos: int) -> int:
    """Whole thousandths of a CPU, whole units of everything else, rounded up."""
    unit = 10**6 if resource == "cpu" else 10**9
    return -(-nanos // unit)


def amounts(written: dict[str, Any] | None) -> Amounts:
    found = {name: amount(name, parse_quantity(text).nanos) for name, text in (written or {}).items()}
    return {name: count for name, count in found.items() if count > 0}


def read_node(obj: dict[str, Any]) -> dict[str, Any]:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    offered = status["allocatable"] if status.get("allocatable") is not None else status.get("capacity") or {}
    ready = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}.get("Ready", "True")
    return {
        "name": obj["metadata"]["name"],
        "created": parse_timestamp(obj["metadata"]["creationTimestamp"]),
        "labels": obj["metadata"].get("labels") or {},
        "allocatable": amounts(offered),
        "taints": spec.get("taints") or [],
        "unschedulable": bool(spec.get("unschedulable")),
        "ready": ready == "True",
    }


def node_rank(node: dict[str, Any]) -> tuple[Any, ...]:
    """Ties go to the older node, then to the lower number (decision 0002)."""
    return (node["created"], natural_key(node["name"]), node["name"])


def usable(node: dict[str, Any]) -> bool:
    return node["ready"] and not node["unschedulable"]


# ---- queues


def read_queues(store: Any) -> dict[str, dict[str, Any]]:
    found = {}
    for obj in adapter.objects(store, "Queue.scheduling.volcano.sh"):
        spec, state = obj.get("spec") or {}, (obj.get("status") or {}).get("state")
        guarantee = (spec.get("guarantee") or {}).get("resource")
        notes = obj["metadata"].get("annotations") or {}
        weight = spec.get("weight")
        found[obj["metadata"]["name"]] = {
            "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"],
            "weight": weight if weight and weight > 0 else 1,
            "priority": spec.get("priority") or 0,
            "parent": spec.get("parent") or "",
            "capability": {
                name: parse_quantity(text).nanos // (10**6 if name == "cpu" else 10**9)
                for name, text in (spec.get("capability") or {}).items()
            },
            "guarantee": amounts(guarantee),
            "deserved": amounts(spec.get("deserved")),
            "fifo": (spec.get("dequeueStrategy") or "").lower() == "fifo",
            "reclaimable": spec.get("reclaimable") is not False,
            "closed": state in ("Closed", "Closing"),
            "doors": {
                "names": notes.get("enbloc.dev/allowed-namespaces"),
                "selector": notes.get("enbloc.dev/allowed-namespace-selector"),
            },
            "affinity": spec.get("affinity"),
            "immune_within_share": notes.get("enbloc.dev/immunity") == "within-share",
        }
    return found


# ---- pods


def read_task(world: World, pod: dict[str, Any]) -> Task:
    metadata, spec = pod["metadata"], pod["spec"]
    notes = metadata.get("annotations") or {}
    labels = metadata.get("labels") or {}
    phase = (pod.get("status") or {}).get("phase")
    ended = phase in ("Succeeded", "Failed")
    membership = pod_gang(world, pod)
    priority = spec.get("priority") or 0
    created = parse_timestamp(metadata["creationTimestamp"])
    index = membership["index"]
    request = g6_request(spec)
    started = (pod.get("status") or {}).get("startTime")
    return {
        "uid": metadata["uid"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "pod": pod,
        "gang": membership["key"],
        "role": membership["role"],
        "created": created,
        "priority": priority,
        "node": "" if ended else spec.get("nodeName") or "",
        "status": pod_status(pod, phase),
        "ours": spec.get("schedulerName") in world["names"],  # G1
        "request": {**request, "pods": 1},
        "best_effort": not request,
        "order": o2_order(priority, index, created, metadata["name"], metadata["uid"]),
        "mark": notes.get("enbloc.dev/committed") or "",
        "decision": notes.get("enbloc.dev/decision") or "",
        "never_preempts": spec.get("preemptionPolicy") == "Never",
        "started": parse_timestamp(started) if started else None,
        "terms": read_terms(pod),
        "labels": labels,
        "reachable_from": volumes.g6_nodes_of_volumes(world, pod),
    }


def pod_status(pod: dict[str, Any], phase: str | None) -> str:
    """Words: a terminating pod keeps its room and counts towards no minimum; failed and gated pods are no members."""
    if pod["metadata"].get("deletionTimestamp"):
        return "terminating"
    if phase in ("Succeeded", "Failed"):
        return phase.lower()
    if pod["spec"].get("nodeName"):
        return "bound"
    if pod["spec"].get("schedulingGates"):
        return "gated"
    if (pod["metadata"].get("annotations") or {}).get(TIMEOUT_MARK) == "true":
        return "marked"
    return "pending"


def pod_gang(world: World, pod: dict[str, Any]) -> dict[str, Any]:
    found = dialects.membership(pod, world)
    assert found["key"] in world["gangs"], f"{found['key']} has a pod and was not read"
    if found["index"] is None:
        ends = re.search(r"(\d{1,9})$", pod["metadata"]["name"], re.ASCII)
        found["index"] = int(ends[1]) if ends else None
    return found


def o2_order(priority: int, index: int | None, created: int, name: str, uid: str) -> tuple[Any, ...]:
    """O2: higher priority first, then lower index (names without one come last), then older, then name."""
    return (-priority, index is None, index or 0, created, name, uid)


def g6_request(spec: dict[str, Any]) -> Amounts:
    """G6: the larger of all containers together and each init container, sidecars counted with what follows them."""

    def asked(container: dict[str, Any]) -> dict[str, int]:
        resources = container.get("resources") or {}
        texts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {name: parse_quantity(text).nanos for name, text in texts.items()}

    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        wanted = asked(container)
        together = {name: running.get(name, 0) + wanted.get(name, 0) for name in {*running, *wanted}}
        if container.get("restartPolicy") == "Always":
            running = together
        peak = {name: max(peak.get(name, 0), together.get(name, 0)) for name in {*peak, *together}}
    for container in spec["containers"]:
        wanted = asked(container)
        running = {name: running.get(name, 0) + wanted.get(name, 0) for name in {*running, *wanted}}
    peak = {name: max(peak.get(name, 0), running.get(name, 0)) for name in {*peak, *running}}
    for name, text in (spec.get("overhead") or {}).items():
        peak[name] = peak.get(name, 0) + parse_quantity(text).nanos
    return {name: amount(name, nanos) for name, nanos in sorted(peak.items()) if nanos > 0}


def read_terms(obj: dict[str, Any]) -> dict[str, Any]:
    """What an object says about waiting, running and being evicted (R1, R8, P2)."""
    notes = obj["metadata"].get("annotations") or {}
    labels = obj["metadata"].get("labels") or {}

    def duration(text: str | None) -> int | None:
        try:
            found = parse_duration(text) if text else 0
        except ValueError:
            return None
        return found if found > 0 else None

    run_time = duration(notes.get("enbloc.dev/expected-duration"))
    deadline = (obj.get("spec") or {}).get("activeDeadlineSeconds") if obj.get("kind", "Pod") == "Pod" else None
    if isinstance(deadline, int) and deadline > 0:
        run_time = min(deadline * SECOND, run_time if run_time is not None else deadline * SECOND)
    return {
        "patience": duration(notes.get("volcano.sh/sla-waiting-time")) or duration(notes.get("sla-waiting-time")),
        "run_time": run_time,
        "protected": "false" in (notes.get("volcano.sh/preemptable"), labels.get("volcano.sh/preemptable")),
        "cooldown": duration(notes.get("volcano.sh/cooldown-time") or labels.get("volcano.sh/cooldown-time")) or 0,
    }
