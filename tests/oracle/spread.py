"""G6: topology spread constraints with `DoNotSchedule`, as kube-scheduler defines them; selectors with `matchLabels`
in the pod's own namespace, and the default policies: nodes count that match the pod's node selector."""

from __future__ import annotations

from typing import Any

from oracle import predicates

World = dict[str, Any]
Task = dict[str, Any]
Node = dict[str, Any]


def constraints_of(task: Task) -> list[dict[str, Any]]:
    found = task["pod"]["spec"].get("topologySpreadConstraints") or ()
    return [one for one in found if one["whenUnsatisfiable"] == "DoNotSchedule"]


def g6_is_spread(world: World, trial: dict[str, Any], task: Task, node: Node) -> bool:
    """Whether, with one more pod there, no domain has more than `maxSkew` matching pods more than the one with the
    fewest. Nodes without a label that the pod's constraints name count for none of them, and are not for the pod; nor
    are nodes that its node selector, or that of its SchedulingSpec (A2), leaves out."""
    from oracle import affinity

    constraints = constraints_of(task)
    keys = [one["topologyKey"] for one in constraints]
    if any(key not in node["labels"] for key in keys):
        return False
    gang = world["gangs"].get(task["gang"])
    wanted = [*(task["pod"]["spec"].get("nodeSelector") or {}).items()]
    wanted += (gang["node_selector"] if gang else {}).items()
    counted = [
        one
        for one in world["nodes"]
        if all(key in one["labels"] for key in keys)
        and all(one["labels"].get(label) == value for label, value in wanted)
        and predicates.g6_node_affinity(task["pod"]["spec"], one)
    ]
    there = [(other, name) for other, name in affinity.assigned(world, trial) if other.get("status") != "terminating"]
    for one in constraints:
        counts = {place["labels"][one["topologyKey"]]: 0 for place in counted}
        for place in counted:
            matching = [other for other, name in there if name == place["name"] and affinity.selects(one, task, other)]
            counts[place["labels"][one["topologyKey"]]] += len(matching)
        fewest = min(counts.values(), default=0) if len(counts) >= (one.get("minDomains") or 1) else 0
        here = counts.get(node["labels"][one["topologyKey"]], 0)
        if here + affinity.selects(one, task, task) - fewest > one["maxSkew"]:
            return False
    return True
