"""T: gangs whose pods must or should be in one domain of a node tree (T1 to T4). `node_trees` reads what they ask for.

A *part* is the pods of a gang for which one thing is asked: all of them, a role, a slice. For the widest part the
oracle follows T2 to the letter: it tries the sets of domains in that order. Where there are several parts, T2 does not
say which set a narrower one takes: the engine's is taken, if the gang fits there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from oracle import minima, node_trees, predicates
from oracle.adapter import natural_key

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Trial = dict[str, Any]
Part = dict[str, Any]
Domain = tuple[str, ...]
Names = frozenset[str]


def t1_parts(world: World, gang: Gang, tasks: list[Task]) -> list[Part] | None:
    """The parts of these tasks, the widest first; `None`: a level that does not exist is required (T5), or slices are
    of a level above that of the pods they are slices of (T3)."""
    found: dict[Any, Part] = {}
    for task in tasks:
        for name, asked in asked_of(gang, task):
            part = found.setdefault((name, asked), {"gang": gang, "name": name, "asked": asked, "tasks": []})
            part["tasks"].append(task)
    parts = []
    for _, part in sorted(found.items(), key=lambda one: (len(one[0][0]), one[0])):
        levels = node_trees.t5_levels(world, part["asked"])
        if levels is None:
            return None
        if levels["preferred"] is not None:
            parts.append({**part, **levels})
    return None if t3_slices_above_whole(parts) else parts


def t3_slices_above_whole(parts: list[Part]) -> bool:
    for part, whole in itertools.product(parts, parts):
        of_slice = part["name"] and part["name"][-1].startswith("slice ")
        around = part is not whole and (whole["name"] in ((), ("gang",)) or t3_is_within(part, whole))
        same_tree = part["levels"] == whole["levels"]
        if of_slice and around and same_tree and None not in (part["required"], whole["required"]):
            if part["required"] < whole["required"]:
                return True
    return False


def t3_is_within(part: Part, whole: Part) -> bool:
    return bool(part["name"][: len(whole["name"])] == whole["name"])


def is_in(part: Part, gang: Gang, task: Task) -> bool:
    """Whether a task of the gang is in a part: it asks for the same."""
    return part["gang"] is gang and (part["name"], part["asked"]) in asked_of(gang, task)


def asked_of(gang: Gang, task: Task) -> list[Any]:
    """Of pods that do not exist yet what their template says counts."""
    found: list[Any] = task["asked"] if "asked" in task else node_trees.t5_asked_of(gang, task)
    return found


def t4_pinned(world: World, trial: Trial, part: Part) -> list[str]:
    """T4: the nodes of its members that hold room: they fix the domain for those that come after."""
    names = {node["name"] for node in world["nodes"]}
    held = world["memory"]["claims"].get((part["gang"]["key"], "hold"))
    found = []
    for task in part["gang"]["tasks"]:
        place = trial["placed"].get(task["uid"]) or (task["node"] if task["status"] == "bound" else None)
        if place is None and held is not None and minima.is_held(world, task):
            place = held["slots"][task["uid"]]
        if place in names and task["uid"] not in {*world["leaving"], *trial["gone"]}:
            if is_in(part, part["gang"], task):
                found.append(place)
    return found


def t1_is_open(world: World, trial: Trial, gang: Gang, task: Task, node: str) -> bool:
    """T1: all members of a part that requires a level are in one domain of it; and in the set of domains that was
    chosen for it."""
    for part, names in trial.get("within", ()):
        if node not in names and is_in(part, gang, task):
            return False
    if trial.get("counts_room"):
        return True
    parts = t1_parts(world, gang, [task]) if gang["asks"] else []
    for part in parts or ():
        if part["required"] is None:
            continue
        domains = part["levels"][part["required"]]["domains"]
        pinned = {domains.get(name) for name in t4_pinned(world, trial, part)}
        if node not in domains or not pinned <= {domains[node]}:
            return False
    return parts is not None


# ---- T2


def t2_classes(part: Part) -> dict[str, list[Task]]:
    """The tasks of a part by what they ask of nodes."""
    found: dict[str, list[Task]] = {}
    for task in part["tasks"]:
        spec = task["pod"]["spec"]
        asked = [task["request"], *(spec.get(key) for key in ("nodeSelector", "tolerations", "affinity"))]
        found.setdefault(json.dumps(asked, sort_keys=True), []).append(task)
    return found


def t2_room(world: World, trial: Trial, part: Part, task: Task, names: Names) -> int:
    """How many tasks like this one fit on these nodes, whatever narrower parts require."""
    from oracle import placing

    count = 0
    for node in placing.open_nodes(world, {**trial, "counts_room": True}, part["gang"], task):
        if node["name"] in names:
            free = trial["free"][node["name"]]
            count += max(0, min(free.get(name, 0) // asked for name, asked in task["request"].items()))
    return count


def t2_options(world: World, trial: Trial, part: Part, least: dict[str, int]) -> Iterator[Names]:
    """Sets of nodes in which a part would be together, in the order of T2: the lowest common level, counted from the
    preferred one up; the fewest domains of the preferred level; the largest of them has the least room, then the second
    largest; then the fuller domains, of equally full ones those with less free; then names. Domains without room come
    last in their level, and after them nodes outside of every domain of the preferred level. `least`: of how many tasks
    of each class there must be room."""
    levels, lowest = part["levels"], part["preferred"]
    preferred = levels[lowest]["domains"]
    classes = t2_classes(part)
    whole = frozenset(node["name"] for node in world["nodes"])
    by_node = {
        name: {one: t2_room(world, trial, part, tasks[0], frozenset([name])) for one, tasks in classes.items()}
        for name in whole
    }

    def room(names: Names, one: str) -> int:
        return sum(by_node[name][one] for name in names)

    def size(names: Names) -> int:
        return sum(room(names, one) for one in classes)

    requested = {name for task in part["tasks"] for name in task["request"]} - {"pods"}
    allocatable = {node["name"]: node["allocatable"] for node in world["nodes"]}

    largest = {one: max((has.get(one, 0) for has in allocatable.values()), default=0) for one in requested}

    def key(names: Names, domain: Domain) -> tuple[int, int, int, Any]:
        """Its room, then the sums of the free shares of what is requested, in millionths: of what the node has, and of
        what the largest node has; then its name."""
        shares = amounts = 0
        for name, resource in itertools.product(names, requested):
            if allocatable[name].get(resource):
                free = max(0, trial["free"][name].get(resource, 0))
                shares += int(free / allocatable[name][resource] * 10**6)
                amounts += int(free / largest[resource] * 10**6)
        return size(names), shares, amounts, rank(domain)

    def is_enough(names: Names) -> bool:
        return all(room(names, one) >= count for one, count in least.items())

    pinned = t4_pinned(world, trial, part)
    highest = part["required"] if part["required"] is not None else -1
    for number in range(lowest, highest - 1, -1):
        domains = levels[number]["domains"] if number >= 0 else dict.fromkeys(whole, ())
        around = [(domain, members(domains, domain)) for domain in set(domains.values())]
        around = [(domain, names) for domain, names in around if set(pinned) <= names]
        for chosen in t2_sets(preferred, around, pinned, key):
            if is_enough(chosen):
                yield chosen
        if number < lowest:
            for _, names in sorted(around, key=lambda one: (not size(one[1]), key(one[1], one[0]))):
                if is_enough(names):
                    yield names


def members(domains: dict[str, Domain], domain: Domain) -> Names:
    return frozenset(name for name, other in domains.items() if other == domain)


def rank(domain: Domain) -> Any:
    name = "/".join(domain)
    return (natural_key(name), name)


def t2_sets(preferred: dict[str, Domain], around: list[Any], pinned: list[str], key: Any) -> list[Names]:
    """Every set of domains of the preferred level, with those of the members that are placed, within one of the domains
    around them, in order."""
    if any(name not in preferred for name in pinned):
        return []
    fixed = {preferred[name] for name in pinned}
    found = []
    for _, names in around:
        inside = {preferred[name] for name in names if name in preferred} - fixed
        keys = {one: key(members(preferred, one), one) for one in inside}
        free = sorted(inside, key=lambda one: keys[one], reverse=True)
        for count in range(0 if fixed else 1, len(free) + 1):
            for chosen in itertools.combinations(free, count):
                sizes = [keys[one][0] for one in chosen]
                nodes = frozenset().union(*(members(preferred, one) for one in (*chosen, *fixed)))
                found.append(((count, sizes == [0], sizes, [keys[one][1:] for one in chosen]), nodes))
    return [nodes for _, nodes in sorted(found, key=lambda one: one[0])]


def t2_least(part: Part, certain: list[Task]) -> dict[str, int]:
    """How many tasks of each class are placed for certain."""
    classes = t2_classes(part)
    return {one: sum(1 for task in tasks if task in certain) for one, tasks in classes.items()}


def t1_without_domain(world: World, trial: Trial, parts: list[Part], certain: list[Task]) -> list[Gang]:
    """T1, G10: the gang of which a part fits in no domain, each class by itself; if there is none, all that require a
    level: any of them may say that there is no domain for them together."""
    required = [part for part in parts if part["required"] is not None]
    stuck = [one for one in required if next(t2_options(world, trial, one, t2_least(one, certain)), None) is None]
    return [part["gang"] for part in (stuck[:1] or required)]


def t4_domain(world: World, trial: Trial, part: Part) -> Names:
    """T4: the domain for members that start one by one: that of those that have a place; where none has, the best one
    with room for all of them (T2), or else the one with the most room."""
    domains = part["levels"][part["required"]]["domains"]
    pinned = {domains.get(name) for name in t4_pinned(world, trial, part)}
    if pinned:
        return members(domains, pinned.pop()) if len(pinned) == 1 and None not in pinned else frozenset()
    for names in t2_options(world, trial, part, t2_least(part, part["tasks"])):
        around = {domains[name] for name in names if name in domains}
        if len(around) == 1:
            return members(domains, around.pop())
    kinds = [tasks[0] for tasks in t2_classes(part).values()]

    def room(domain: Domain) -> int:
        return sum(t2_room(world, trial, part, task, members(domains, domain)) for task in kinds)

    best = min(set(domains.values()), key=lambda one: (-room(one), rank(one)), default=None)
    return members(domains, best) if best is not None else frozenset()


# ---- T7


def t7_choices(world: World, trial: Trial, unit: list[Gang]) -> Iterator[list[tuple[Part, Names]]]:
    """T7: a domain for each part that requires a level, in which it would fit if the domain were empty; those with the
    most room now first. If nothing must be together: one choice, which closes nothing."""
    parts, certain = [], []
    for gang in unit:
        needed, rest, short = minima.o1_split(world, gang)
        tasks = [*needed, *(rest if short else [])]
        found = t1_parts(world, gang, tasks) if gang["asks"] else []
        if found is None:
            return
        for part in found:
            of_rest = [task for task in part["tasks"] if task in rest]
            any_of = short if len(of_rest) == len(rest) else 0
            part["size"] = len(part["tasks"]) - len(of_rest) + any_of
        parts += [part for part in found if part["required"] is not None]
        certain += [*needed, *(rest if short == len(rest) else [])]
    yield from t7_choose(world, trial, parts, certain, [])


def t7_choose(world: World, trial: Trial, parts: list[Part], certain: list[Task], chosen: list[Any]) -> Iterator[Any]:
    if not parts:
        yield chosen
        return
    part, least = parts[0], t2_least(parts[0], certain)
    domains = part["levels"][part["required"]]["domains"]
    now = {**trial, "within": chosen}
    empty = {**now, "free": {node["name"]: dict(node["allocatable"]) for node in world["nodes"]}}
    ranked = []
    for domain in set(domains.values()):
        names = members(domains, domain)
        if not set(t4_pinned(world, trial, part)) <= names:
            continue
        kinds = t2_classes(part)
        if all(t7_room(world, empty, part, tasks[0], names) >= least[one] for one, tasks in kinds.items()):
            counts = {one: t7_room(world, now, part, tasks[0], names) for one, tasks in kinds.items()}
            room = sum(min(least[one], count) for one, count in counts.items())
            room = min(sum(counts.values()), part["size"] - sum(least.values()) + room)
            ranked.append((-room, rank(domain), names))
    for _, _, names in sorted(ranked, key=lambda one: one[:2]):
        yield from t7_choose(world, trial, parts[1:], certain, [*chosen, (part, names)])


def t7_room(world: World, trial: Trial, part: Part, task: Task, names: Names) -> int:
    """How many tasks like this one fit on these nodes, whether they are reserved for others or not."""
    count = 0
    for node in world["nodes"]:
        is_open = t1_is_open(world, {**trial, "counts_room": True}, part["gang"], task, node["name"])
        if node["name"] in names and is_open and predicates.g6_standing_reason(part["gang"], task, node) is None:
            free = trial["free"][node["name"]]
            count += max(0, min(free.get(name, 0) // asked for name, asked in task["request"].items()))
    return count


def t7_is_together(world: World, trial: Trial, gang: Gang) -> bool:
    """Whether all its members that have a place, with those of the trial, are where they must be."""
    parts = t1_parts(world, gang, gang["tasks"])
    for part in parts or ():
        if part["required"] is not None:
            domains = part["levels"][part["required"]]["domains"]
            found = {domains.get(name) for name in t4_pinned(world, trial, part)}
            if len(found) > 1 or None in found:
                return False
    return parts is not None


def t7_will_be_together(world: World, gang: Gang, slots: dict[str, str]) -> bool:
    """R7, T7: reserved nodes are of use only if they are in one domain, still."""
    return not gang["asks"] or t7_is_together(world, {"placed": {**world["placed"], **slots}, "gone": set()}, gang)
