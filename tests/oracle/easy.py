"""R8, `backfill` in mode `easy`: a gang behind the first that waits in its queue starts only if it does not delay that
one (decisions 0025 and 0060).

The first gang has a shadow time: the earliest known end of a running gang after which its minima fit, if nothing else
is placed. It is assumed on nodes that are released until then as far as it fits there. A task of a gang behind it that
ends by the shadow time may use all room that is free; any other one, on the nodes of the first gang, only what that
leaves. Where the first gang must be packed, which way it is assumed to go is free: a gang behind it starts where the
engine starts it, if the first one fits beside it, and waits if the engine lets it wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle import claims, minima, order, placing, predicates, queues, run_times

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Trial = dict[str, Any]
Shadow = dict[str, Any]


def is_easy(world: World) -> bool:
    return bool(world["settings"]["backfill"] == "easy")


def r8_first_that_waits(world: World, queue: str, failed: dict[Any, int]) -> Gang | None:
    """The first gang of the queue whose minima were attempted in this cycle and lack room, also one that was put off
    for the room of awaited pods (G8); not those that the limits of their queue keep waiting."""
    found = []
    for key in failed:
        gang, why = world["gangs"][key], world["put_off_for"].get(key) or world["reasons"].get(key)
        if gang["queue"] != queue or why is None or why["reason"] != "Unschedulable":
            continue
        if order.standing(world, gang) == (order.ALLOCATING, order.MINIMA):
            found.append((order.g8_order(gang, order.MINIMA), gang))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def r8_behind(world: World, gang: Gang, band: int, failed: dict[Any, int]) -> Shadow | None:
    """The shadow of the first gang that waits in its queue, if the gang is behind it."""
    if not is_easy(world):
        return None
    first = r8_first_that_waits(world, gang["queue"], failed)
    if first is None or order.g8_order(first, order.MINIMA) >= order.g8_order(gang, band):
        return None
    known = world.setdefault("shadows", {})
    state = (first["key"], len(world["placed"]))  # it stays the same until something is placed
    if state not in known:
        known[state] = {**r8_shadow(world, first), "awaited": world["awaited_room"]}
    found: Shadow = known[state]
    return r8_as_the_engine_packs(world, first, gang, found) if found["packed"] else found


def r8_as_the_engine_packs(world: World, first: Gang, gang: Gang, shadow: Shadow) -> Shadow:
    """The first gang packed beside what the engine starts of this one; if it starts nothing, nothing is left to it.
    Where room is left to awaited pods the next cycle is at the same instant: it may start there."""
    if "starts late" in world["memory"]["reading"] and world.get("awaited_room"):
        return {**shadow, "waits": True}
    hint = world["memory"]["hints"].get(world["now"], {}).get("bound", {})
    named = [(task, hint.get((task["namespace"], task["name"]))) for task in gang["tasks"]]
    starts = [(task, node) for task, node in named if node is not None and task["status"] == "pending"]
    if not starts:
        return {**shadow, "waits": True}
    late = [(task, node) for task, node in starts if not ends_by(world, task, shadow["at"])]
    released = [one for (end, _), tasks in r8_releases(world) if end <= shadow["at"] for one in tasks]
    beside = r8_left(world, first, released, False, late)
    if beside is None:
        return shadow
    for task, node in late:
        if node in beside["left"]:
            queues.add(beside["left"][node], task["request"])
    return {**shadow, "left": beside["left"], "awaited": world["awaited_room"]}


def r8_starts_now(world: World, until: int) -> list[tuple[Task, str]]:
    """What the engine starts at this instant, was not placed yet, and does not end by then."""
    hint = world["memory"]["hints"].get(world["now"], {}).get("bound", {})
    named = [(task, hint.get((task["namespace"], task["name"]))) for task in world["tasks"]]
    waits = [(task, node) for task, node in named if task["status"] == "pending" and task["uid"] not in world["placed"]]
    return [(task, node) for task, node in waits if node is not None and not ends_by(world, task, until)]


def r8_releases(world: World) -> list[tuple[tuple[int, Any], list[tuple[Task, str]]]]:
    """Gang by gang, in the order of their known ends: the tasks that end then."""
    found: dict[tuple[int, Any], list[tuple[Task, str]]] = {}
    for task, node in run_times.r8_on_nodes(world):
        end = run_times.r8_end(world, task)
        if end != run_times.NEVER:
            found.setdefault((end, task["gang"]), []).append((task, node))
    return sorted(found.items(), key=lambda entry: entry[0])


def r8_shadow(world: World, first: Gang) -> Shadow:
    """When the first gang fits, and what it leaves on its nodes then."""
    released: list[tuple[Task, str]] = []
    for (end, _), tasks in r8_releases(world):
        released += tasks
        for only_there in (True, False):
            left = r8_left(world, first, released, only_there)
            if left is not None:
                return {"at": end, **left}
    return {"at": run_times.NEVER, "left": {}, "packed": False}


def r8_left(
    world: World,
    first: Gang,
    released: list[tuple[Task, str]],
    released_nodes_first: bool,
    beside: Sequence[tuple[Task, str]] = (),
) -> Shadow | None:
    """What the first gang leaves on the nodes that it would use once these tasks are gone, `beside` others, and whether
    it had to be packed; `None`: it does not fit."""
    outside, world["shadow"] = world.get("shadow"), None
    try:
        trial = placing.start_trial(world, {first["key"]})
        for task, node in released:
            if node in trial["free"]:
                queues.add(trial["free"][node], task["request"])
        for task, node in beside:
            queues.add(trial["free"][node], task["request"], -1)
        claims.r7_take_own_places(world, trial, first)
        if released_nodes_first:
            needed, rest, short = placing.wanted_now(world, trial, first)
            where = {node for _, node in released}
            for task in [*needed, *rest[:short]]:
                there = placing.best_node(world, trial, first, task, where)
                if there is not None:
                    placing.put(world, trial, task, there)
        if not minima_fit(world, trial, first):
            return None
        left = {node: dict(trial["free"][node]) for _, node in trial["new"]}
        return {"left": left, "packed": trial.get("packed", False)}
    finally:
        world["shadow"] = outside


def minima_fit(world: World, trial: Trial, gang: Gang) -> bool:
    """Places the minima of a gang; lost members may not exist again yet: it is asked for those that do."""
    if minima.g4_missing(world, gang):
        needed, rest, short = placing.wanted_now(world, trial, gang)
        whole = placing.one_by_one(world, trial, gang, needed) is None
        count = len(trial["new"]) + min(short, len(rest))
        placing.one_by_one(world, trial, gang, rest, short)
        return whole and len(trial["new"]) >= count
    return placing.g2_all_or_nothing(world, trial, [gang]) is None


def r8_does_not_delay(world: World, trial: Trial, task: Task, node: str) -> bool:
    """Whether the task may be placed there beside the first gang of its queue."""
    shadow = world.get("shadow")
    if shadow is None or shadow["at"] == run_times.NEVER or node not in shadow["left"]:
        return True
    if shadow.get("waits"):
        return False
    if ends_by(world, task, shadow["at"]):
        return True
    left = dict(shadow["left"][node])
    awaited = [one for one in world["awaited_room"] if one not in shadow["awaited"]]  # it was not there then
    for other, where in [*awaited, *trial["new"]]:
        if where == node:  # whether it ends by then or not: the rule leaves that free
            queues.add(left, other["request"], -1)
    return not predicates.lacking(task, left)


def ends_by(world: World, task: Task, at: int) -> bool:
    run_time = run_times.r8_run_time(world, task)
    if world.get("holding"):
        return False  # it does not start now
    return run_time is not None and int(world["now"]) + run_time <= at


def r8_note_starts(world: World, failed: dict[Any, int]) -> None:
    """After `allocate`: when the first gang of each queue is expected to start."""
    for queue in world["queues"] if is_easy(world) else ():
        first = r8_first_that_waits(world, queue, failed)
        if first is not None:
            world["first_starts"][first["key"]] = r8_shadow(world, first)["at"]
