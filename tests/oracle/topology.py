"""T: gangs whose pods must be in one domain (T1, T4), where Kubernetes' own PodGroup names a node label, or pods name a
level of a KAI Topology (T5). HyperNodes and the ways in which other dialects name levels are not read.

Which of the domains that have room is chosen (T2) is free here: the engine's choice is taken, if the gang fits
there."""

from __future__ import annotations

from typing import Any

from oracle import adapter

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Trial = dict[str, Any]
Domain = tuple[str, ...]

NOWHERE = ["a level that does not exist"]


def t5_required_level(world: World, gang: Gang) -> list[str] | None:
    """The labels of its required level and of those above it, from the top down; `None`: it requires none. Several
    labels of a PodGroup are not honoured (N1); a tree or level that does not exist keeps the gang waiting."""
    spec = (gang["object"] or {}).get("spec") or {}
    keys = (spec.get("schedulingConstraints") or {}).get("topology") or []
    if len(keys) == 1:
        return [keys[0]["key"]]
    for task in gang["tasks"]:
        notes = task["pod"]["metadata"].get("annotations") or {}
        required = notes.get("kai.scheduler/topology-required-placement")
        if not required:
            continue
        for tree in adapter.objects(world["store"], "Topology.kai.scheduler"):
            labels = [level["nodeLabel"] for level in tree["spec"]["levels"]]
            if tree["metadata"]["name"] == notes.get("kai.scheduler/topology") and required in labels:
                return labels[: labels.index(required) + 1]
        return NOWHERE
    return None


def domain_of(gang: Gang, node: dict[str, Any]) -> Domain | None:
    """The path of values down to its level; a node without the level's own label is in no domain of it."""
    if gang["required_level"][-1] not in node["labels"]:
        return None
    return tuple(node["labels"].get(label, "") for label in gang["required_level"])


def t4_pinned(world: World, trial: Trial, gang: Gang) -> set[Domain | None]:
    """The domains of its members that have a place: they fix it for those that come after."""
    nodes = {node["name"]: node for node in world["nodes"]}
    found = set()
    for task in gang["tasks"]:
        place = trial["placed"].get(task["uid"]) or (task["node"] if task["status"] == "bound" else None)
        if place in nodes and task["uid"] not in world["leaving"]:
            found.add(domain_of(gang, nodes[place]))
    return found


def t1_is_open(world: World, trial: Trial, gang: Gang, node: dict[str, Any]) -> bool:
    """T1: all its members are in one domain of its required level."""
    if gang["required_level"] is None:
        return True
    domain = domain_of(gang, node)
    within = trial.get("within", {}).get(gang["key"])
    return domain is not None and within in (None, domain) and t4_pinned(world, trial, gang) <= {domain}


def t1_domains(world: World, trial: Trial, gang: Gang) -> list[Domain]:
    """The domains that it may choose from, that of the engine first; none: it has no choice."""
    if gang["required_level"] is None or t4_pinned(world, trial, gang):
        return []
    nodes = {node["name"]: node for node in world["nodes"]}
    hint = world["memory"]["hints"].get(world["now"], {}).get("bound", {})
    places = [hint.get((task["namespace"], task["name"])) for task in gang["tasks"]]
    chosen = [domain_of(gang, nodes[place]) for place in places if place in nodes]
    names = {domain for node in world["nodes"] if (domain := domain_of(gang, node)) is not None}
    return sorted(names, key=lambda name: (name not in chosen, name))
