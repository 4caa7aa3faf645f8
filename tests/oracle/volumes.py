"""G6: volumes that pin a pod to nodes (the node affinity of a bound PersistentVolume), and claims that one pod at a
time may use (ReadWriteOncePod)."""

from __future__ import annotations

from typing import Any

from oracle import adapter

World = dict[str, Any]
Task = dict[str, Any]
Obj = dict[str, Any]


def claims_of(pod: Obj) -> list[str]:
    found = [(one.get("persistentVolumeClaim") or {}).get("claimName") for one in pod["spec"].get("volumes") or ()]
    return [name for name in found if name]


def claim_named(world: World, namespace: str, name: str) -> Obj | None:
    for one in adapter.objects(world["store"], "PersistentVolumeClaim"):
        if (one["metadata"]["namespace"], one["metadata"]["name"]) == (namespace, name):
            return one
    return None


def g6_nodes_of_volumes(world: World, pod: Obj) -> list[str] | None:
    """The nodes from which all its volumes are reachable; `None`: it has none. A claim that does not exist, or whose
    volume does not, is reachable from no node."""
    names = claims_of(pod)
    if not names:
        return None
    nodes = [node["name"] for node in world["nodes"]]
    for name in names:
        claim = claim_named(world, pod["metadata"]["namespace"], name)
        volumes = adapter.objects(world["store"], "PersistentVolume")
        bound = [one for one in volumes if claim and one["metadata"]["name"] == claim["spec"].get("volumeName")]
        if not bound:
            return []
        nodes = [node["name"] for node in world["nodes"] if node["name"] in nodes and reaches(bound[0], node)]
    return nodes


def reaches(volume: Obj, node: Obj) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(
        all(node["labels"].get(line["key"]) in line["values"] for line in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    )


def exclusive_claims(world: World, task: Task) -> list[str]:
    """The claims that one pod at a time may use."""
    found = []
    for name in claims_of(task["pod"]):
        claim = claim_named(world, task["namespace"], name)
        if claim is not None and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            found.append(name)
    return found


def g6_may_use_claims(world: World, trial: dict[str, Any], task: Task) -> bool:
    """ReadWriteOncePod: no other pod that has a place uses the claim."""
    from oracle import affinity

    for name in exclusive_claims(world, task):
        for other, _ in affinity.assigned(world, trial):
            if other["namespace"] == task["namespace"] and name in claims_of(other["pod"]):
                return False
    return True
