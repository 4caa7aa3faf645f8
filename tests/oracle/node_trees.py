"""T5: node trees out of the objects that describe them, and what gangs and pods ask of them, dialect by dialect.

A tree is its levels from the top down; a level is its name, its alias and the domain of each node that is in one. What
is asked for is a triple: the tree, the required level and the preferred one, each as it was written, or empty.
"""

from __future__ import annotations

import json
import re
from typing import Any

from oracle import adapter
from oracle.dialects import notes_of

World = dict[str, Any]
Gang = dict[str, Any]
Node = dict[str, Any]
Level = dict[str, Any]
Asked = tuple[str, str, str]
Part = tuple[tuple[str, ...], Asked]
"""Which pods of a gang are together, by a name, and what is asked for them."""

LOWEST = "the lowest level"
UNREADABLE = "cannot be read"
KAI, KUEUE = "kai.scheduler/", "kueue.x-k8s.io/"
SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"


# ---- trees


def t5_trees(world: World) -> dict[str, list[Level]]:
    """All trees that objects and the config describe."""
    found = {}
    for topology in world["settings"]["topologies"]:
        keys = [(key, [key], "") for key in topology.levels]
        found[f"config/{topology.name}"] = t5_levels_of_labels(world, keys)
    for kind, prefix in (("Topology.kueue.x-k8s.io", "kueue/"), ("Topology.kai.scheduler", "kai/")):
        for obj in adapter.objects(world["store"], kind):
            levels = (obj.get("spec") or {}).get("levels") or ()
            keys = [(one["nodeLabel"], [one["nodeLabel"]], one.get("alias") or "") for one in levels]
            found[prefix + obj["metadata"]["name"]] = t5_levels_of_labels(world, keys)
    for obj in adapter.objects(world["store"], "ClusterNetworkTopology.scheduling.koordinator.sh"):
        if obj["metadata"]["name"] == "default":
            found["koordinator"] = t5_levels_of_labels(world, layers_of(obj))
    if adapter.objects(world["store"], "HyperNode.topology.volcano.sh"):
        found["hypernodes"] = t5_levels_of_hyper_nodes(world)
    return found


def t5_levels_of_labels(world: World, keys: list[tuple[str, list[str], str]]) -> list[Level]:
    """A domain is the path of values down to its level; a node without the level's label is outside."""
    found = []
    for depth, (name, _, alias) in enumerate(keys):
        domains = {}
        for node in world["nodes"]:
            path = [
                next((node["labels"][key] for key in any_of if key in node["labels"]), None) for _, any_of, _ in keys
            ]
            if path[depth] is not None:
                domains[node["name"]] = tuple(value or "" for value in path[: depth + 1])
        found.append({"name": name, "alias": alias, "domains": domains})
    return found


def layers_of(obj: dict[str, Any]) -> list[tuple[str, list[str], str]]:
    """Koordinator's layers from the top down: the top one has no parent among them; the layer of nodes needs no
    label."""
    layers = obj["spec"].get("networkTopologySpec") or []
    names = {one["topologyLayer"] for one in layers}
    tops = [one for one in layers if (one.get("parentTopologyLayer") or "") not in names]
    found, above = [], (tops[0].get("parentTopologyLayer") or "") if tops else ""
    while below := next((one for one in layers if (one.get("parentTopologyLayer") or "") == above), None):
        above = below["topologyLayer"]
        is_node = above == "NodeTopologyLayer" and not below.get("labelKey")
        labels = ["kubernetes.io/hostname"] if is_node else below.get("labelKey") or []
        if labels:
            found.append((above, labels, ""))
    return found


def t5_levels_of_hyper_nodes(world: World) -> list[Level]:
    """The domain of a node at tier n is the highest HyperNode above it of tier n or below."""
    all_of_them = adapter.objects(world["store"], "HyperNode.topology.volcano.sh")
    found = []
    for tier in sorted({one["spec"]["tier"] for one in all_of_them}, reverse=True):
        domains = {}
        for node in world["nodes"]:
            low_enough = [one for one in hyper_nodes_above(all_of_them, node) if one["spec"]["tier"] <= tier]
            if low_enough:
                domains[node["name"]] = (low_enough[-1]["metadata"]["name"],)
        found.append({"name": str(tier), "alias": "", "domains": domains})
    return found


def hyper_nodes_above(all_of_them: list[dict[str, Any]], node: Node) -> list[dict[str, Any]]:
    """From the lowest up. Of several that list it the lowest tier counts, then the first name."""

    def first(lists: list[dict[str, Any]]) -> dict[str, Any] | None:
        return min(lists, key=lambda one: (one["spec"]["tier"], one["metadata"]["name"]), default=None)

    chain: list[dict[str, Any]] = []
    above = first([one for one in all_of_them if has_member(one, "Node", node["name"], node["labels"])])
    while above is not None:
        chain.append(above)
        name, tier = above["metadata"]["name"], above["spec"]["tier"]
        higher = [one for one in all_of_them if one["spec"]["tier"] > tier]
        above = first([one for one in higher if has_member(one, "HyperNode", name, {})])
    return chain


def has_member(hyper_node: dict[str, Any], kind: str, name: str, labels: dict[str, str]) -> bool:
    for member in hyper_node["spec"].get("members") or ():
        selector = member["selector"]
        if (member.get("type") or "Node") != kind:
            continue
        if "exactMatch" in selector and selector["exactMatch"]["name"] == name:
            return True
        if "regexMatch" in selector and re.search(selector["regexMatch"]["pattern"], name):
            return True
        if selector.get("labelMatch") is not None:  # an empty selector selects every node
            wanted = selector["labelMatch"].get("matchLabels") or {}
            if all(labels.get(key) == value for key, value in wanted.items()):
                return True
    return False


# ---- which levels are meant


def t5_levels(world: World, asked: Asked) -> dict[str, Any] | None:
    """The levels of the tree that is meant, and which of them are required and preferred, as numbers from the top;
    `None`: a tree or a level that does not exist is required, and the gang waits. Without a preferred level, or with
    one above it, the required one counts (T2)."""
    tree, required, preferred = asked
    if tree == UNREADABLE:
        return None
    levels = t5_tree(world, asked)
    if levels is None:
        return None if required else {"levels": [], "required": None, "preferred": None}
    if tree == "hypernodes":
        least = t5_tier(world, levels, required)
        if least == "none":
            return None
        most = len(levels) - 1
    else:
        least = lowest_of(levels, required)
        most = lowest_of(levels, preferred, all_of_them=False)
        if required and least is None:
            return None
    if most is None or (least is not None and most < least):
        most = least
    return {"levels": levels, "required": least, "preferred": most}


def t5_tree(world: World, asked: Asked) -> list[Level] | None:
    """Kueue's pods name a level alone: its tree is the first by name that has it, or else the label itself. A tree of
    KAI that does not exist may be one of the config."""
    tree, required, preferred = asked
    trees = world["trees"]
    if tree.startswith("label/"):
        return t5_levels_of_labels(world, [(required, [required], "")])
    if tree.startswith("kai/") and tree not in trees:
        tree = tree.replace("kai/", "config/", 1)
    if tree != "kueue":
        found: list[Level] | None = trees.get(tree)
        return found
    wanted = required or preferred
    for prefix in ("kueue/", "config/"):
        for name in sorted(trees):
            if name.startswith(prefix) and any(level["name"] == wanted for level in trees[name]):
                levels: list[Level] = trees[name]
                return levels
    return t5_levels_of_labels(world, [(wanted, [wanted], "")])


def t5_tier(world: World, levels: list[Level], required: str) -> Any:
    """A tier means one HyperNode of that tier or below; above the highest it is the whole cluster: `None`. "none": no
    HyperNode can stand for it."""
    if not required:
        return None
    if required.startswith("name="):
        objects = adapter.objects(world["store"], "HyperNode.topology.volcano.sh")
        tiers = [one["spec"]["tier"] for one in objects if one["spec"].get("tierName") == required[5:]]
        if not tiers:
            return "none"
        tier = max(tiers)
    else:
        tier = int(required)
    if tier > int(levels[0]["name"]):
        return None
    allowed = [number for number, level in enumerate(levels) if int(level["name"]) <= tier]
    return allowed[0] if allowed else "none"


def lowest_of(levels: list[Level], named: str, *, all_of_them: bool = True) -> int | None:
    """Of several layers the lowest counts, since a domain lies within those above; all of them must exist if they are
    required."""
    names = named.split("|") if named else []
    numbers = [
        number for number, level in enumerate(levels) for name in names if name in (level["name"], level["alias"])
    ]
    if not numbers or (all_of_them and len(numbers) < len(names)):
        return None
    return max(numbers)


# ---- what is asked for


def t5_of_gang(gang: Gang) -> Asked | None:
    """What the gang's own object asks for all of its pods."""
    obj = gang["object"]
    spec = (obj or {}).get("spec") or {}
    keys = (spec.get("schedulingConstraints") or {}).get("topology") or []
    if len(keys) == 1:  # several labels are not honoured (N1)
        return (f"label/{keys[0]['key']}", keys[0]["key"], "")
    if gang["key"][0] == "volcano":
        return t5_of_volcano(spec.get("networkTopology") or gang["job_topology"])
    if gang["key"][0] == "koordinator" and obj is not None:
        return t5_of_layers(notes_of(obj).get(SPEC))
    return None


def t5_of_volcano(asked: dict[str, Any] | None) -> Asked | None:
    """`mode: soft`, and `hard` without a tier, are preferences."""
    if not asked:
        return None
    if asked.get("mode") == "soft":
        return ("hypernodes", "", LOWEST)
    tier, name = asked.get("highestTierAllowed"), asked.get("highestTierName")
    return ("hypernodes", str(tier) if tier is not None else f"name={name}" if name else "", LOWEST)


def gather_rules(text: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text).get("gatherStrategy") or [] if text else []
    return found


def t5_of_layers(text: str | None) -> Asked | None:
    """MustGather and PreferGather."""
    layers = {
        strategy: [one["layer"] for one in gather_rules(text) if one.get("strategy") == strategy]
        for strategy in ("MustGather", "PreferGather")
    }
    if not any(layers.values()):
        return None
    return ("koordinator", "|".join(layers["MustGather"]), "|".join(layers["PreferGather"]))


def t5_of_pod(gang: Gang, task: dict[str, Any]) -> list[Part]:
    """What a pod's annotations ask for: Kueue's for the pods of its role, or of the roles that name one group; KAI's
    and Koordinator's for its gang. With T3's slices, by its index."""
    notes = notes_of(task["pod"])
    group = [f"group {notes[KUEUE + 'podset-group-name']}"] if notes.get(KUEUE + "podset-group-name") else []
    found: list[Part] = []
    required, preferred = (notes.get(f"{KUEUE}podset-{one}-topology") or "" for one in ("required", "preferred"))
    if required or preferred:
        found.append((("role", *(group or [task["role"]])), ("kueue", required, preferred)))
    tree = f"kai/{notes.get(KAI + 'topology', '')}"
    required, preferred = (notes.get(f"{KAI}topology-{one}-placement") or "" for one in ("required", "preferred"))
    if required or preferred:
        found.append((("gang",), (tree, required, preferred)))
    layers = t5_of_layers(notes.get(SPEC))
    if layers is not None:
        found.append((("gang",), layers))
    return [*found, *t3_slices(gang, task, tree, group)]


def t3_slices(gang: Gang, task: dict[str, Any], tree: str, group: list[str]) -> list[Part]:
    """T3: slices of k pods of a role by index, each with its own level; slices within slices, where each size divides
    the one above."""
    notes, of_gang = notes_of(task["pod"]), notes_of(gang["object"]) if gang["object"] else {}
    role = ("role", *group, task["role"])
    whole = ("role", task["role"])
    found: list[Part] = []
    level = notes.get(KUEUE + "podset-slice-required-topology")
    if level:
        size = int(notes.get(KUEUE + "podset-slice-size") or 0)
        found += t3_nested(task, role, "kueue", {level: size}) if size > 0 else [(whole, (UNREADABLE, "size", ""))]
    listed = json.loads(notes.get(KUEUE + "podset-slice-required-topology-constraints") or "[]")
    found += t3_nested(task, role, "kueue", {one["topology"]: one["size"] for one in listed})
    size = int(notes.get(KAI + "segment-size") or 0)
    asked = [notes.get(f"{KAI}segment-topology-{one}-placement") or "" for one in ("required", "preferred")]
    if size and any(asked):
        found.append(((*whole, f"slice {t3_number(task) // size}"), (tree, asked[0], asked[1])))
    for text in [notes.get(SPEC), *([of_gang.get(SPEC)] if gang["key"][0] == "koordinator" else [])]:
        sizes = {one["layer"]: one.get("podCountMultiple") or 0 for one in gather_rules(text)}
        found += t3_nested(task, whole, "koordinator", {layer: size for layer, size in sizes.items() if size > 1})
    policy = gang["partitions"].get(task["role"])
    place = t5_of_volcano((policy or {}).get("networkTopology"))
    if policy and place is not None:
        found.append(((*whole, f"slice {t3_number(task) // policy['partitionSize']}"), place))
    return found


def t3_number(task: dict[str, Any]) -> int:
    """The index of a pod; without one it is the last."""
    return 2**31 if task["order"][1] else int(task["order"][2])


def t3_nested(task: dict[str, Any], role: tuple[str, ...], tree: str, sizes: dict[str, int]) -> list[Part]:
    found: list[Part] = []
    name, above = role, 0
    for level, size in sorted(sizes.items(), key=lambda one: -one[1]):
        if above % size:
            return [(("role", task["role"]), (UNREADABLE, "sizes", ""))]
        name, above = (*name, f"slice {t3_number(task) // size}"), size
        found.append((name, (tree, level, "")))
    return found


def t5_asked_of(gang: Gang, task: dict[str, Any]) -> list[Part]:
    """The parts of its gang that a task is in, each by its name with what is asked for it."""
    found: list[Part] = []
    of_gang = gang["asked"]
    if of_gang is not None:
        found.append(((), of_gang))
    of_pod = t5_of_pod(gang, task)
    return [*found, *(one for one in of_pod if one != (("gang",), of_gang))]


def t5_asks(template: dict[str, Any]) -> bool:
    """Whether a template's annotations name a level."""
    notes = (template.get("metadata") or {}).get("annotations") or {}
    return any(key == SPEC or ("topology" in key and key.startswith((KAI, KUEUE))) for key in notes)
