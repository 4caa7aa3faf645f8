"""R8, `backfill` in mode `conservative`: a gang starts only if it delays none of those before it that wait in its queue
(decision 0116).

In order, each gang that waits is given the earliest time and the nodes at which its minima fit for its whole run time,
beside what runs and what was planned before it. A task starts now on what stays free for its whole run time beside the
plans of the gangs before its own.
"""

from __future__ import annotations

from typing import Any

from oracle import easy, minima, order, placing, queues, run_times

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]
Plans = dict[str, Any]

TIMES_TRIED = 16
"""Decision 0116: at most so many times are tried for a gang."""


def is_conservative(world: World) -> bool:
    return bool(world["settings"]["backfill"] == "conservative")


def r8_waiting(world: World, queue: str, failed: dict[Any, int]) -> list[tuple[Any, Gang]]:
    """The gangs of a queue that were attempted for their minima in this cycle and lack room, in order; those too that
    were put off for the room of awaited pods."""
    found = []
    for key in failed:
        gang, why = world["gangs"][key], world["put_off_for"].get(key) or world["reasons"].get(key)
        if gang["queue"] != queue or why is None or why["reason"] != "Unschedulable":
            continue
        if order.standing(world, gang) == (order.ALLOCATING, order.MINIMA):
            found.append((order.g8_order(gang, order.MINIMA), gang))
    return sorted(found, key=lambda entry: entry[0])


def r8_plans(world: World, queue: str) -> Plans:
    """The plans of a queue in this cycle: what is free now and is released when, what is taken when, and the starts."""
    known: dict[str, Plans] = world.setdefault("plans", {})
    if queue not in known:
        released = []
        for task, node in run_times.r8_on_nodes(world):
            end = run_times.r8_end(world, task)
            if end != run_times.NEVER:  # one that has overrun ends at any moment, not now
                released.append((max(end, world["now"] + 1), node, task["request"]))
        free = placing.start_trial(world)["free"]
        known[queue] = {"free": free, "released": released, "taken": [], "starts": {}, "known": {}}
    return known[queue]


def r8_free_at(plans: Plans, at: int) -> dict[str, Amounts]:
    found = {node: dict(free) for node, free in plans["free"].items()}
    for end, node, request in plans["released"]:
        if end <= at and node in found:
            queues.add(found[node], request)
    for start, end, used in plans["taken"]:
        if start <= at < end:
            for node, amounts in used.items():
                queues.add(found[node], amounts, -1)
    return found


def r8_times(world: World, plans: Plans) -> list[int]:
    """Between two of them nothing changes."""
    ends = [end for end, _, _ in plans["released"]] + [end for _, end, _ in plans["taken"] if end != run_times.NEVER]
    return sorted({world["now"], *ends})


def r8_between(world: World, plans: Plans, start: int, run_time: int | None) -> dict[str, Amounts]:
    """What stays free on each node from a time on, for so long."""
    state = (start, run_time, len(plans["taken"]))  # it stays the same until more is taken
    if state in plans["known"]:
        known: dict[str, Amounts] = plans["known"][state]
        return {node: dict(free) for node, free in known.items()}
    until = run_times.NEVER if run_time is None else start + run_time
    found = r8_free_at(plans, start)
    for at in r8_times(world, plans):
        for node, free in r8_free_at(plans, at).items() if start < at < until else ():
            for name in {*free, *found[node]}:
                found[node][name] = min(found[node].get(name, 0), free.get(name, 0))
    plans["known"][state] = {node: dict(free) for node, free in found.items()}
    return found


def r8_plan(world: World, plans: Plans, gang: Gang) -> None:
    """The earliest time at which the gang fits for its whole run time, and what it takes then."""
    run_time = run_times.r8_run_time_of_gang(world, gang)
    tried = 0
    plans["starts"][gang["key"]] = run_times.NEVER
    for at in r8_times(world, plans):
        if not r8_enough(world, plans, gang, at, run_time):
            continue
        tried += 1
        if tried > TIMES_TRIED:
            return
        if at == world["now"]:
            continue  # it was tried
        trial = r8_fits_then(world, plans, gang, at, run_time)
        if trial is not None:
            used: dict[str, Amounts] = {}
            for task, node in trial["new"]:
                queues.add(used.setdefault(node, {}), task["request"])
            until = run_times.NEVER if run_time is None else at + run_time
            plans["taken"].append((at, until, used))
            plans["starts"][gang["key"]] = at
            return


def r8_fits_then(world: World, plans: Plans, gang: Gang, at: int, run_time: int | None) -> dict[str, Any] | None:
    """The gang placed at a time; `None`: it does not fit. Which packing is planned is free: one beside what the engine
    starts now, if there is one."""
    trial = placing.start_trial(world, {gang["key"]})
    trial["free"] = r8_between(world, plans, at, run_time)
    if not easy.minima_fit(world, trial, gang):
        return None
    if trial.get("packed"):
        beside = placing.start_trial(world, {gang["key"]})
        beside["free"] = r8_between(world, plans, at, run_time)
        for task, node in easy.r8_starts_now(world, at):
            if task["gang"] != gang["key"] and node in beside["free"]:
                queues.add(beside["free"][node], task["request"], -1)
        if easy.minima_fit(world, beside, gang):
            return beside
    return trial


def r8_enough(world: World, plans: Plans, gang: Gang, start: int, run_time: int | None) -> bool:
    """Whether all nodes together have what its minima request, for so long: else the time is not tried."""
    needed, rest, short = minima.o1_split(world, gang)
    asked: Amounts = {}
    for task in [*needed, *rest[:short]]:
        queues.add(asked, task["request"])
    until = run_times.NEVER if run_time is None else start + run_time
    for at in r8_times(world, plans):
        free = r8_free_at(plans, at) if at == start or start < at < until else {}
        for name, count in asked.items() if free else ():
            if sum(one.get(name, 0) for one in free.values()) < count:
                return False
    return True


def r8_beside(world: World, gang: Gang, band: int, failed: dict[Any, int]) -> Plans | None:
    """The plans of the gangs before this one in its queue; `None`: none of them takes anything."""
    if not is_conservative(world):
        return None
    plans = r8_plans(world, gang["queue"])
    for turn, one in r8_waiting(world, gang["queue"], failed):
        if turn < order.g8_order(gang, band) and one["key"] not in plans["starts"]:
            r8_plan(world, plans, one)
    return plans if any(start != run_times.NEVER for start in plans["starts"].values()) else None


def r8_free_for(world: World, trial: dict[str, Any], task: Task) -> dict[str, Amounts]:
    """What a task may use: what is free, less what the plans of the gangs before its own take in its run time."""
    plans = world.get("planned")
    if plans is None:
        found: dict[str, Amounts] = trial["free"]
        return found
    stays = r8_between(world, plans, world["now"], run_times.r8_run_time(world, task))
    left = {node: dict(free) for node, free in trial["free"].items()}
    for node, free in r8_free_at(plans, world["now"]).items():
        queues.add(left[node], free, -1)
        queues.add(left[node], stays[node])
    return left


def r8_note_bound(world: World, gang: Gang, before: dict[str, Amounts]) -> None:
    """A gang was bound: for its run time its room is gone, for the plans of every queue."""
    run_time = run_times.r8_run_time_of_gang(world, gang)
    until = run_times.NEVER if run_time is None else world["now"] + run_time
    used = {node: dict(free) for node, free in before.items()}
    for node, free in placing.start_trial(world)["free"].items():
        queues.add(used[node], free, -1)
    for plans in world.get("plans", {}).values():
        plans["taken"].append((world["now"], until, used))


def r8_note_starts(world: World, failed: dict[Any, int]) -> None:
    """After `allocate`: when each gang that waits is planned to start."""
    for queue in world["queues"] if is_conservative(world) else ():
        for _, gang in r8_waiting(world, queue, failed):
            plans = r8_plans(world, queue)
            if gang["key"] not in plans["starts"]:
                r8_plan(world, plans, gang)
            world["first_starts"][gang["key"]] = plans["starts"][gang["key"]]
