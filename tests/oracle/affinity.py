"""G6: required pod affinity and anti-affinity, as kube-scheduler defines them; terms with `matchLabels`, in the pod's
own namespace."""

from __future__ import annotations

from typing import Any

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


def is_about_others(world: World, task: Task) -> bool:
    """Whether the place of other pods decides where it may go."""
    if terms_of(task, "podAffinity") or terms_of(task, "podAntiAffinity"):
        return True
    return any(
        selects(term, other, task)
        for other in world["tasks"]
        if other["status"] not in ("succeeded", "failed")
        for term in terms_of(other, "podAntiAffinity")
    )


def is_wished_for(world: World, task: Task) -> bool:
    """Whether a pod must be beside such tasks: then nodes beside it score more, as in kube-scheduler. How much more is
    not written here: the engine's choice is taken, if the task may go there."""
    return any(selects(term, other, task) for other in world["tasks"] for term in terms_of(other, "podAffinity"))


def g6_beside_others(world: World, trial: dict[str, Any], task: Task, node: Node) -> bool:
    """Whether the task may go there, beside the pods that are assigned or placed by now."""
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
    """Pods with a place, and those that are awaited (G8)."""
    known = {task["uid"] for task in world["tasks"]}
    found = [*world.get("awaited_room", ()), *(entry for entry in trial["new"] if entry[0]["uid"] not in known)]
    for task in world["tasks"]:
        node = trial["placed"].get(task["uid"])
        if node is None and task["status"] in ("bound", "terminating"):
            node = task["node"]
        if node:
            found.append((task, node))
    return found
