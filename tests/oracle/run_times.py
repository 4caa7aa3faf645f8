"""R8: known run times. When a reservation is due, which tasks may use its nodes until then, which start is published.

Everything is computed anew whenever it is asked for, from what is on the nodes at that moment.
"""

from __future__ import annotations

from typing import Any

from oracle import claims, queues, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]

NEVER = 2**63 - 1
"""An unknown run time counts as endless (decision 0025)."""


def r8_run_time(world: World, task: Task) -> int | None:
    """A task's own run time, else what its gang's object says."""
    own = task.get("terms", {}).get("run_time")
    if own is not None:
        return int(own)
    said = world["gangs"][task["gang"]]["terms"]["run_time"]
    return int(said) if said is not None else None


def r8_run_time_of_gang(world: World, gang: Gang) -> int | None:
    """What its object says; else the longest of its tasks' (before they exist, of its templates'), if all are known."""
    if gang["terms"]["run_time"] is not None:
        return int(gang["terms"]["run_time"])
    if not gang["tasks"]:
        return int(gang["longest_run"]) if gang["longest_run"] is not None else None
    times = [r8_run_time(world, task) for task in gang["tasks"]]
    known = [time for time in times if time is not None]
    return max(known) if len(known) == len(times) else None


def r8_on_nodes(world: World) -> list[tuple[Task, str]]:
    """The tasks that are on nodes, those that were placed in this cycle too."""
    found = []
    for task in world["tasks"]:
        if task["uid"] in world["placed"]:
            found.append((task, world["placed"][task["uid"]]))
        elif task["status"] in ("bound", "terminating"):
            found.append((task, task["node"]))
    return found


def r8_end(world: World, task: Task) -> int:
    """When a task on a node is expected to end: one that overruns, or is leaving, now."""
    now = int(world["now"])
    if task["status"] == "terminating" or task["uid"] in world["leaving"]:
        return now
    run_time = r8_run_time(world, task)
    if run_time is None:
        return NEVER
    return max(now, (task["started"] if task["started"] is not None else now) + run_time)


def r8_free_now(world: World) -> dict[str, Amounts]:
    """What tasks and claims leave free on each node; a reservation takes nothing."""
    free = {node["name"]: dict(node["allocatable"]) for node in world["nodes"]}
    for task, node in [*r8_on_nodes(world), *claims.room_taken(world, set())]:
        if node in free:
            queues.add(free[node], task["request"], -1)
    return free


def r8_due(world: World, gang: Gang) -> int:
    """When the last of its reserved nodes has the room that its tasks need, if nothing more is placed there."""
    slots = claims.slots_of(world, gang["key"], "reserve")
    wanted: dict[str, Amounts] = {}
    for task in reserve.reserved_tasks(world, gang):
        queues.add(wanted.setdefault(slots[task["uid"]], {}), task["request"])
    free = r8_free_now(world)
    latest = int(world["now"])
    for node, amounts in wanted.items():
        ending = [(r8_end(world, task), task) for task, where in r8_on_nodes(world) if where == node]
        instants = sorted({latest, *(end for end, _ in ending if latest < end < NEVER)})
        for at in instants:
            then = dict(free[node])
            for end, task in ending:
                if end <= at:
                    queues.add(then, task["request"])
            if all(then.get(name, 0) >= count for name, count in amounts.items()):
                latest = at
                break
        else:
            return NEVER
    return latest


def r8_ends_in_time(world: World, holder: Gang | None, run_time: int | None) -> bool:
    """Whether something that starts now ends before the reservation of `holder` is due, as that was when the cycle
    began; of one that was made or mended since it is not known."""
    if run_time is None or holder is None:
        return False
    return int(world["now"]) + run_time <= world["due"].get(holder["key"], 0)


def r8_note_due(world: World) -> None:
    """When each reservation is due: what is placed in this cycle counts from the next one on."""
    holders = [world["gangs"][key] for key, _ in claims.all_of(world, "reserve")]
    world["due"] = {gang["key"]: r8_due(world, gang) for gang in holders}


def r8_publish(world: World) -> None:
    """The expected starts, as they are after a cycle: an unknown one is withdrawn; an overdue one may be any moment."""
    published = world["memory"]["expected_starts"]
    before = dict(published)
    published.clear()
    starts = dict(world["first_starts"])  # EASY; the forecast of reserved nodes is more exact
    for key, _ in claims.all_of(world, "reserve"):
        starts[key] = r8_due(world, world["gangs"][key]) if key in world["gangs"] else NEVER
    for key, start in starts.items():
        if start <= world["now"]:
            start = before.get(key, NEVER)
        if start != NEVER:
            published[key] = start
