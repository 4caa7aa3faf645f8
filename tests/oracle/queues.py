"""V4: what queues use, deserve and may take; G8: which queue is served next."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from oracle import reading, usage, waves

World = dict[str, Any]
Amounts = dict[str, int]
ROOT = "root"
UNLIMITED = 10**18


def parent_of(world: World, name: str) -> str | None:
    queue = world["queues"].get(name)
    parent = (queue or {}).get("parent") or (ROOT if name != ROOT else "")
    return parent if parent in world["queues"] else None


def path_up(world: World, name: str) -> list[str]:
    """The queue itself, then its ancestors upwards."""
    found = [name]
    while (above := parent_of(world, found[-1])) is not None and above not in found:
        found.append(above)
    return found


def children_of(world: World, name: str) -> list[str]:
    return sorted(one for one in all_queues(world) if parent_of(world, one) == name and one != name)


def all_queues(world: World) -> list[str]:
    """Those that exist, and those that only a gang names."""
    return sorted({*world["queues"], *(gang["queue"] for gang in world["gangs"].values())})


def add(total: Amounts, more: Amounts, times: int = 1) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count * times


def totals(world: World) -> Amounts:
    """What all nodes that could be used have together."""
    found: Amounts = {}
    for node in world["nodes"]:
        if reading.usable(node):
            add(found, node["allocatable"])
    return found


# ---- shares


def demands(world: World, trial: dict[str, Any]) -> dict[str, Amounts]:
    """V4: what a queue uses and what its waiting gangs ask for, with its descendants'; not yet enqueued counts."""
    found: dict[str, Amounts] = {name: {} for name in all_queues(world)}
    for name, used in trial["used"].items():
        found[name] = dict(used)
    for gang in world["gangs"].values():
        asked: list[Amounts] = [
            task["request"]
            for task in gang["tasks"]
            if task["status"] == "pending"
            and task["uid"] not in trial["placed"]
            and task["uid"] not in trial["claimed"]
            and (task["ours"] or gang["object"] is not None)
        ]
        asked += [task["request"] for task in waves.d5_later_tasks(world, gang)]
        if not gang["tasks"] and gang["min_resources"] and not gang["finished"]:
            asked.append(gang["min_resources"])
        for place in path_up(world, gang["queue"]):
            for request in asked:
                add(found.setdefault(place, {}), request)
    return found


def v4_deserved(world: World, trial: dict[str, Any]) -> dict[str, Amounts]:
    """By `deserved` where any queue sets it, else by `weight` among queues with demand; a guarantee is the least."""
    explicit = any(queue["deserved"] for queue in world["queues"].values())
    found: dict[str, Amounts] = {}
    pool = ours_to_give(world)
    tops = [name for name in all_queues(world) if parent_of(world, name) is None and name != ROOT]
    if ROOT in world["queues"]:
        found[ROOT] = dict(pool)
        tops += children_of(world, ROOT)
    if explicit:
        for name in tops:
            as_written(world, name, found)
    else:
        by_weight(world, tops, pool, demands(world, trial), found)
    return found


def ours_to_give(world: World) -> Amounts:
    """V4: what pods of other schedulers use is not shared out."""
    found = totals(world)
    usable = {node["name"] for node in world["nodes"] if reading.usable(node)}
    for task in world["tasks"]:
        foreign = not task["ours"] and world["gangs"][task["gang"]]["object"] is None
        if foreign and task["status"] in ("bound", "terminating") and task["node"] in usable:
            add(found, task["request"], -1)
    return {name: max(0, count) for name, count in found.items()}


def as_written(world: World, name: str, found: dict[str, Amounts]) -> None:
    """A parent that says nothing deserves what its children do."""
    for child in children_of(world, name):
        as_written(world, child, found)
    queue = world["queues"].get(name) or {}
    deserved = dict(queue.get("deserved") or {})
    if not deserved:
        for child in children_of(world, name):
            add(deserved, found[child])
    raise_to(deserved, queue.get("guarantee") or {})
    found[name] = deserved


def raise_to(total: Amounts, least: Amounts) -> None:
    for name, count in least.items():
        total[name] = max(total.get(name, 0), count)


def by_weight(
    world: World, siblings: list[str], pool: Amounts, demand: dict[str, Amounts], found: dict[str, Amounts]
) -> None:
    """Each gets by weight, a dimension at a time; no queue gets more than it asks for or may have."""
    for name in siblings:
        found[name] = {}
    for resource in sorted({one for name in siblings for one in demand.get(name, {})} | set(pool)):
        wants = {}
        for name in siblings:
            limit = (world["queues"].get(name) or {}).get("capability", {}).get(resource, UNLIMITED)
            wants[name] = min(demand.get(name, {}).get(resource, 0), limit)
        left = pool.get(resource, 0)
        open_queues = [name for name in siblings if wants[name] > 0]
        while open_queues and left > 0:
            weights = {name: (world["queues"].get(name) or {"weight": 1})["weight"] for name in open_queues}
            full = [name for name in open_queues if wants[name] * sum(weights.values()) <= left * weights[name]]
            if not full:
                for name in open_queues:
                    found[name][resource] = left * weights[name] // sum(weights.values())
                break
            for name in full:
                found[name][resource] = wants[name]
                left -= wants[name]
            open_queues = [name for name in open_queues if name not in full]
    for name in siblings:
        raise_to(found[name], (world["queues"].get(name) or {}).get("guarantee") or {})
        if children_of(world, name):
            by_weight(world, children_of(world, name), found[name], demand, found)


def share_dimensions(world: World, name: str) -> set[str] | None:
    """The dimensions that a share is judged by: those that `deserved` names where any queue sets it; `None`: all."""
    if not any(queue["deserved"] for queue in world["queues"].values()):
        return None
    queue = world["queues"].get(name) or {}
    named = set(queue.get("deserved") or {})
    if not named:
        for child in children_of(world, name):
            named |= share_dimensions(world, child) or set()
    return named | set(queue.get("guarantee") or {}) if named else None


def share(world: World, name: str, used: Amounts, deserved: Amounts) -> Fraction:
    """How much of what it deserves a queue has, in the dimension where that is most."""
    most = Fraction(0)
    judged = share_dimensions(world, name)
    for resource, count in used.items():
        if not count or resource == "pods" or (judged is not None and resource not in judged):
            continue
        due = deserved.get(resource, 0)
        most = max(most, Fraction(count, due) if due > 0 else Fraction(1))
    return most


def g8_queue_order(world: World, trial: dict[str, Any], name: str, enqueued: bool) -> tuple[Any, ...]:
    """G8: highest priority, then least usage over time (G12), then lowest share, from the top of the tree down; then by
    name."""
    deserved = v4_deserved(world, trial)
    found = []
    for place in reversed(path_up(world, name)):
        if place == ROOT:
            continue
        used = dict(trial["used"].get(place, {}))
        if enqueued:
            add(used, trial["enqueued"].get(place, {}))
        priority = (world["queues"].get(place) or {"priority": 0})["priority"]
        used_before = usage.g12_of_queue(world, place)
        found.append((-priority, used_before, share(world, place, used, deserved.get(place, {})), place))
    return tuple(found)


# ---- limits


def v4_over_capability(
    world: World, trial: dict[str, Any], name: str, asked: Amounts, *, enqueued: bool
) -> tuple[str, str] | None:
    """The first queue upwards, and the resource, whose capability would not hold these amounts."""
    for place in path_up(world, name):
        for resource, limit in (world["queues"].get(place) or {}).get("capability", {}).items():
            taken = trial["used"].get(place, {}).get(resource, 0)
            if enqueued:
                taken += trial["enqueued"].get(place, {}).get(resource, 0)
            if asked.get(resource, 0) and taken + asked[resource] > limit:
                return place, resource
    return None


def v4_kept_for_others(world: World, trial: dict[str, Any], name: str) -> Amounts:
    """What of the free room is guaranteed to other queues and not used by them yet. A parent's guarantee contains
    its children's."""
    kept: Amounts = {}
    for top in all_queues(world):
        if parent_of(world, top) is None:
            add(kept, kept_below(world, trial, top, name))
    return kept


def kept_below(world: World, trial: dict[str, Any], place: str, name: str) -> Amounts:
    kept: Amounts = {}
    if place == name:
        return kept
    for child in children_of(world, place):
        add(kept, kept_below(world, trial, child, name))
    guarantee = (world["queues"].get(place) or {}).get("guarantee") or {}
    if guarantee and place not in path_up(world, name):
        used = trial["used"].get(place, {})
        raise_to(kept, {resource: count - used.get(resource, 0) for resource, count in guarantee.items()})
    return kept


def v4_may_take(world: World, trial: dict[str, Any], name: str, request: Amounts) -> bool:
    """Whether the queue may take one more task: by its and its ancestors' capability, and others' guarantees."""
    if v4_over_capability(world, trial, name, request, enqueued=False) is not None:
        return False
    if any(queue["guarantee"] for queue in world["queues"].values()):
        kept = v4_kept_for_others(world, trial, name)
        free = free_total(world, trial)
        for resource, count in request.items():
            if kept.get(resource, 0) > 0 and count > free.get(resource, 0) - kept[resource]:
                return False
    return True


def free_total(world: World, trial: dict[str, Any]) -> Amounts:
    """What is free on all nodes that may be used."""
    found: Amounts = {}
    for node in world["nodes"]:
        if reading.usable(node):
            add(found, {name: max(0, count) for name, count in trial["free"][node["name"]].items()})
    return found
