"""G6: required pod affinity and anti-affinity, as kube-scheduler defines them; terms with `matchLabels`, in the pod's
own namespace."""

from __future__ import annotations

from typing import Any

from oracle import ports, spread, volumes

World = dict[str, Any]
Task = dict[str, Any]
Node = dict[str, Any]
Term = dict[str, Any]


def terms_of(task: Task, kind: str) -> list[Term]:
    """`podAffinity` or `podAntiAffinity`: the required terms."""
    affinity = task["pod"]["spec"].get("affinity") or {}
    found: list[Term] = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or []
    return found


def selects(term: Term, by: Task, task: Task) -> bool:
    wanted = (term["labelSelector"].get("matchLabels") or {}).items()
    return by["namespace"] == task["namespace"] and all(task["labels"].get(key) == value for key, value in wanted)


def is_about_others(world: World, trial: dict[str, Any], task: Task) -> bool:
    """Whether the place of other pods decides where it may go, or which node is the best."""
    if terms_of(task, "podAffinity") or terms_of(task, "podAntiAffinity") or spread.constraints_of(task):
        return True
    if volumes.exclusive_claims(world, task) or ports.ports_of(task):
        return True
    return any(
        selects(term, other, task)
        for other, _ in assigned(world, trial)
        for term in [*terms_of(other, "podAntiAffinity"), *terms_of(other, "podAffinity")]
    )


def is_meant(world: World, trial: dict[str, Any], task: Task) -> bool:
    """Whether any pod has terms at all."""
    others = [*world["tasks"], *(one for one, _ in [*world.get("awaited_room", ()), *trial["new"]])]
    return any(terms_of(one, "podAffinity") or terms_of(one, "podAntiAffinity") for one in [task, *others])


def wishes(world: World, trial: dict[str, Any], task: Task, nodes: list[Node]) -> dict[str, int]:
    """Points of nodes beside pods that must be beside such a task, 0..100 among these nodes, as kube-scheduler scores
    them: the choice is free, and the engine's is made."""
    labels = {one["name"]: one["labels"] for one in world["nodes"]}
    found = {node["name"]: 0 for node in nodes}
    for other, there in assigned(world, trial) if is_meant(world, trial, task) else ():
        for term in terms_of(other, "podAffinity"):
            value = labels.get(there, {}).get(term["topologyKey"])
            if value is not None and selects(term, other, task):
                for node in nodes:
                    found[node["name"]] += node["labels"].get(term["topologyKey"]) == value
    least, most = min(found.values(), default=0), max(found.values(), default=0)
    return {name: 100 * (count - least) // (most - least) if most > least else 0 for name, count in found.items()}


def g6_beside_others(world: World, trial: dict[str, Any], task: Task, node: Node) -> bool:
    """Whether the task may go there, beside the pods that are assigned or placed by now."""
    if not is_meant(world, trial, task):
        return True
    there = assigned(world, trial)
    labels = {one["name"]: one["labels"] for one in world["nodes"]}

    def together(term: Term, name: str) -> bool:
        key = term["topologyKey"]
        return key in node["labels"] and labels.get(name, {}).get(key) == node["labels"][key]

    for other, name in there:
        for term in terms_of(task, "podAntiAffinity"):
            if selects(term, task, other) and together(term, name):
                return False
        for term in terms_of(other, "podAntiAffinity"):
            if selects(term, other, task) and together(term, name):
                return False
    for term in terms_of(task, "podAffinity"):
        if term["topologyKey"] not in node["labels"]:
            return False
        like = [name for other, name in there if selects(term, task, other)]
        if like and not any(together(term, name) for name in like):
            return False
        if not like and not selects(term, task, task):  # the first of a series may go anywhere
            return False
    return True


def assigned(world: World, trial: dict[str, Any]) -> list[tuple[Task, str]]:
    """Pods with a place, those for which room is claimed, and those that are awaited (G8)."""
    known = {task["uid"] for task in world["tasks"]}
    found = [*world.get("awaited_room", ()), *(entry for entry in trial["new"] if entry[0]["uid"] not in known)]
    found += [(task, node) for task, node in trial["of_claims"] if task["uid"] not in trial["placed"]]
    for task in world["tasks"]:
        node = trial["placed"].get(task["uid"])
        if task["uid"] in trial["gone"]:
            continue
        if node is None and task["status"] in ("bound", "terminating"):
            node = task["node"]
        if node:
            found.append((task, node))
    return found
