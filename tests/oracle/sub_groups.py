"""T0: the tree of a gang whose groups of members are grouped again: Volcano's `subGroupPolicy` and KAI's sub-groups.

A vertex is a dictionary: its name, its minimum (of members, or of children), its children. Which leaves are chosen is
found anew in every cycle; their minima are the minima of the gang's roles (M4).
"""

from __future__ import annotations

from typing import Any

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Vertex = dict[str, Any]
Counts = dict[str, int]

MOST_CHOICES = 64


# ---- what was written


def t0_sub_group_of(policies: list[dict[str, Any]], labels: dict[str, str]) -> tuple[str, str]:
    """The policy of a pod, the first that it matches, and its sub-group: one for each combination of values."""
    for policy in policies:
        keys = policy.get("matchLabelKeys") or []
        wanted = (policy.get("labelSelector") or {}).get("matchLabels") or {}
        if all(key in labels for key in keys) and all(labels.get(key) == text for key, text in wanted.items()):
            values = [labels[key] for key in keys if labels[key] != policy["name"]]
            return policy["name"], "-".join([policy["name"], *values])
    return "", ""


def t0_of_volcano(spec: dict[str, Any], labels: list[dict[str, str]]) -> Vertex | None:
    """Every policy is needed, of each `minSubGroups` sub-groups, of each of these `subGroupSize` pods; but all that
    exist, where `minMember` leaves none out."""
    from oracle.adapter import natural_key

    policies = spec.get("subGroupPolicy") or []
    if not policies:
        return None
    vertices = []
    for policy in policies:
        mine = {role for name, role in (t0_sub_group_of(policies, one) for one in labels) if name == policy["name"]}
        exist = sorted(mine, key=natural_key)
        least = policy.get("minSubGroups") or 0
        names = [f"{policy['name']}-{number}" for number in range(len(exist) + least)]
        missing = [name for name in names if name not in mine][: max(least - len(exist), 0)]
        if not exist and missing:
            missing[0] = policy["name"]
        size = max(policy.get("subGroupSize") or 1, 1)
        vertices.append(
            {
                "name": f"policy {policy['name']}",
                "minimum": least,
                "children": [leaf(role, size) for role in [*exist, *missing]],
                "exist": len(exist) * size,
            }
        )
    if sum(one["exist"] for one in vertices) <= (spec.get("minMember") or 0):
        for one in vertices:
            one["minimum"] = len(one["children"])
    return {"name": "", "minimum": len(vertices), "children": vertices}


def t0_of_kai(spec: dict[str, Any]) -> Vertex:
    """Sub-groups that name a parent are its children; `minSubGroup` is how many of them are needed, else all are."""

    def below(name: str) -> list[Vertex]:
        return [vertex(one) for one in spec.get("subGroups") or () if (one.get("parent") or "") == name]

    def vertex(one: dict[str, Any]) -> Vertex:
        children = below(one["name"])
        if not children:
            return leaf(one["name"], one.get("minMember", 1))
        return {"name": one["name"], "minimum": one.get("minSubGroup", len(children)), "children": children}

    children = below("")
    return {"name": "", "minimum": spec.get("minSubGroup", len(children)), "children": children}


def t0_fault_of_kai(spec: dict[str, Any]) -> str:
    """A tree that cannot be read holds the gang: a parent that does not exist, or a `minSubGroup` beyond its
    sub-groups. (Cycles and equal names are not generated.)"""
    listed = spec.get("subGroups") or []
    names = [one["name"] for one in listed]
    for one in [{"name": "", **{key: spec[key] for key in ("minSubGroup",) if key in spec}}, *listed]:
        children = sum((other.get("parent") or "") == one["name"] for other in listed)
        if one.get("parent") and one["parent"] not in names:
            return f"its parent {one['parent']} does not exist"
        if "minSubGroup" in one and not 1 <= one["minSubGroup"] <= children:
            return f"minSubGroup {one['minSubGroup']} is not from 1 to {children}"
    return ""


def leaf(name: str, minimum: int) -> Vertex:
    return {"name": name, "minimum": minimum, "children": []}


def leaves(vertex: Vertex) -> list[Vertex]:
    return [one for child in vertex["children"] for one in leaves(child)] if vertex["children"] else [vertex]


# ---- which are chosen


def t0_is_met(vertex: Vertex, counts: Counts) -> bool:
    """A leaf has its minimum of members, an inner vertex its minimum of children."""
    if not vertex["children"]:
        return bool(counts.get(vertex["name"], 0) >= vertex["minimum"])
    return bool(sum(t0_is_met(child, counts) for child in vertex["children"]) >= vertex["minimum"])


def t0_counts(world: World, gang: Gang) -> dict[str, Counts]:
    """By role: the minima that were bound once, the members that count now, and those that exist."""
    from oracle import minima

    roles = {task["role"] for task in gang["tasks"]}
    placed = {role: minima.found(world, gang, role) for role in roles}
    tasks = minima.waiting(world, gang)
    exist = {role: placed[role] + sum(1 for task in tasks if task["role"] == role) for role in roles}
    bound = (world["memory"]["satisfied"].get(gang["key"]) or {"roles": {}})["roles"]
    return {"bound": bound, "placed": placed, "exist": exist}


def t0_in_order(children: list[Vertex], counts: dict[str, Counts]) -> list[Vertex]:
    """Those that have started come first (the minimum was bound once, it is met now, a member holds room), then those
    whose pods exist, then the first in order."""

    def rank(child: Vertex) -> tuple[bool, ...]:
        has_some = any(counts["placed"].get(one["name"], 0) for one in leaves(child))
        return (
            not t0_is_met(child, counts["bound"]),
            not t0_is_met(child, counts["placed"]),
            not has_some,
            not t0_is_met(child, counts["exist"]),
        )

    return sorted(children, key=rank)


def t0_choices(vertex: Vertex, counts: dict[str, Counts]) -> list[Counts]:
    """The minima of chosen leaves, the best choice first; where enough children have their pods, of these alone."""
    if not vertex["children"]:
        return [{vertex["name"]: vertex["minimum"]} if vertex["minimum"] > 0 else {}]
    children = t0_in_order(vertex["children"], counts)
    there = [child for child in children if t0_is_met(child, counts["exist"])]
    if len(there) >= vertex["minimum"]:
        children = there
    found: list[Counts] = []
    for chosen in subsets(children, min(vertex["minimum"], len(children))):
        together: list[Counts] = [{}]
        for child in chosen:
            together = [{**one, **more} for one in together for more in t0_choices(child, counts)]
        found += together
        if len(found) >= MOST_CHOICES:
            break
    return found[:MOST_CHOICES]


def subsets(children: list[Vertex], size: int) -> list[list[Vertex]]:
    """All of this size, those with the first of the list first."""
    if size == 0:
        return [[]]
    if len(children) < size:
        return []
    with_first = [[children[0], *rest] for rest in subsets(children[1:], size - 1)]
    return [*with_first, *subsets(children[1:], size)]


def t0_choose(gang: Gang, chosen: Counts) -> None:
    gang["minima"] = dict(chosen)
    gang["minimum"] = max(gang["total"], sum(chosen.values()))


def t0_choose_first(world: World, gang: Gang) -> None:
    if gang["tree"] is not None:
        t0_choose(gang, t0_choices(gang["tree"], t0_counts(world, gang))[0])


def t0_other_choices(world: World, gang: Gang) -> list[Counts]:
    """What is tried if the first choice does not fit; where members hold room the choice is made."""
    from oracle import minima

    if gang["tree"] is None or minima.found(world, gang):
        return []
    return t0_choices(gang["tree"], t0_counts(world, gang))[1:]


# ---- beyond the minimum


def t0_surplus(world: World, gang: Gang, tasks: list[Task]) -> tuple[list[list[Task]], list[Task]]:
    """Of tasks that wait beyond the minimum: those of a child that start as a whole or not at all, child by child, and
    those of leaves that have started, and of none, which start pod by pod."""
    counts = t0_counts(world, gang)
    units: list[list[Task]] = []

    def look_below(vertex: Vertex) -> None:
        for child in vertex["children"]:
            if t0_is_met(child, counts["placed"]):
                look_below(child)
            elif t0_is_met(child, counts["exist"]):
                unit = []
                for role, minimum in t0_choices(child, counts)[0].items():
                    lacking = max(0, minimum - counts["placed"].get(role, 0))
                    unit += [task for task in tasks if task["role"] == role][:lacking]
                units.append(unit)

    look_below(gang["tree"])
    waits = {one["name"] for one in leaves(gang["tree"]) if not t0_is_met(one, counts["placed"])}
    return units, [task for task in tasks if task["role"] not in waits]


def t0_as_a_gang(gang: Gang, unit: list[Task]) -> Gang:
    """Tasks that start as a whole are attempted like a gang of their own."""
    roles: Counts = {}
    for task in unit:
        roles[task["role"]] = roles.get(task["role"], 0) + 1
    return {**gang, "tasks": unit, "minima": roles, "minimum": len(unit), "ran": set(), "behind": set()}
