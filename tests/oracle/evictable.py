"""P1, P2, M6: which pods may be evicted for whom: surplus members one by one, gangs with those that they start with
as a whole; and what enqueue may count on."""

from __future__ import annotations

from typing import Any

from oracle import groups, minima, placing, queues, tenants, waves

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]

SYSTEM_CRITICAL = 2_000_000_000


def wanted_at_most(world: World, gang: Gang) -> list[Task]:
    needed, rest, short = minima.o1_split(world, gang)
    lost = minima.g7_replacements(world, gang)
    if gang["satisfied"]:
        return [*lost, *needed, *rest[:short]]
    return [*lost, *needed, *rest]


def wanted(world: World, gang: Gang) -> list[Task]:
    """What room is made for: lost members and minima, with the later waves of a whole-job gang (D5), less the pods for
    which placeholders keep room."""
    needed, rest, short = minima.o1_split(world, gang)
    needed = waves.d5_without_room(world, gang, needed)
    later = waves.d5_later_tasks(world, gang)
    return [*minima.g7_replacements(world, gang), *needed, *rest[:short], *later]


def is_bound(world: World, task: Task) -> bool:
    return task["status"] == "bound" and task["uid"] not in world["leaving"]


def priority_of(world: World, tasks: list[Task]) -> int:
    return max(int(world["gangs"][task["gang"]]["priority"]) for task in tasks)


def stays_whole(world: World, gang: Gang, leaving: list[Task]) -> bool:
    """Whether its minima are still met without these."""
    if gang["goes_whole"]:
        return False
    uids = {task["uid"] for task in leaving}
    left = [task for task in gang["tasks"] if minima.is_occupied(world, task) and task["uid"] not in uids]
    for role, minimum in gang["minima"].items():
        if sum(1 for task in left if task["role"] == role) < minimum:
            return any(task["role"] == role for task in leaving) is False and len(left) >= gang["minimum"]
    return len(left) >= gang["minimum"]


def victim_units(world: World, unit: list[Gang], action: str) -> list[list[Task]]:
    """What may leave for these gangs: surplus members one by one, and whole gangs."""
    own, needed = {gang["key"] for gang in unit}, k7_needed(world, unit)
    only_best_effort = action == "preempt" and asks_nothing(world, unit)
    allowed = []
    for gang in world["gangs"].values():
        if gang["key"] in own or not may_take_from(world, unit, gang, action):
            continue
        mates = groups.gangs_of(world, groups.k7_group_of(world, gang))
        spare = surplus_of(world, gang)
        allowed += [[task] for task in spare if task["best_effort"] or not only_best_effort]
        members = [task for mate in mates for task in mate["tasks"] if is_bound(world, task)]
        if any(task["uid"] in world["placed"] for mate in mates for task in mate["tasks"]):
            continue  # what was placed in this cycle would stay, without the others
        rest = [task for task in members if task not in spare]
        if only_best_effort and not all(task["best_effort"] for task in members):
            continue
        if rest and all(p2_may_leave(world, task) for task in members):
            losing = [mate for mate in mates if any(is_bound(world, task) for task in mate["tasks"])]
            if all(may_take_from(world, unit, mate, action) for mate in losing) and gang["key"] not in needed:
                allowed.append(members)
    return allowed


def k7_needed(world: World, unit: list[Gang]) -> set[Any]:
    """Gangs without which these could not start: those that they start with and, until they are satisfied, those that
    they name, with all that start with them."""
    found = set(groups.k7_group_of(world, unit[0]))
    named = {other for mate in groups.gangs_of(world, sorted(found)) for other in mate["group"]}
    for other in named if not unit[0]["satisfied"] else ():
        found |= set(world["groups"].get(other) or [other])
    return found


def asks_nothing(world: World, unit: list[Gang]) -> bool:
    """BestEffort pods lack nothing but a place among a node's pods: only BestEffort pods leave for them. What is beyond
    the minima evicts none, and does not count."""
    return all(task["best_effort"] for gang in unit for task in wanted(world, gang))


def surplus_of(world: World, gang: Gang) -> list[Task]:
    """Members that can leave without harm to a minimum, the last in order (O2) first."""
    if gang["goes_whole"]:
        return []
    spare = minima.occupied(world, gang) - gang["minimum"]
    by_role = {role: minima.occupied(world, gang, role) - count for role, count in gang["minima"].items()}
    found: list[Task] = []
    for task in reversed(gang["tasks"]):
        if len(found) >= spare:
            break
        if is_bound(world, task) and p2_may_leave(world, task) and by_role.get(task["role"], 1) > 0:
            found.append(task)
            if task["role"] in by_role:
                by_role[task["role"]] -= 1
    return found


def spared_singly(world: World, unit: list[Gang], action: str) -> set[str]:
    """Members that may leave because their gang's minima are met without them, whichever comes first in order."""
    own = {gang["key"] for gang in unit}
    return {
        task["uid"]
        for gang in world["gangs"].values()
        if gang["key"] not in own and may_take_from(world, unit, gang, action)
        for task in gang["tasks"]
        if is_bound(world, task) and p2_may_leave(world, task) and stays_whole(world, gang, [task])
    }


def may_take_from(world: World, unit: list[Gang], gang: Gang, action: str) -> bool:
    """Preempt: lower priority in the same queue. Reclaim: a queue above its share. A gang that was evicted for another
    one never has that one evicted in turn (P3)."""
    if any(one["key"] in world["memory"]["evicted_for"].get(gang["key"], ()) for one in unit):
        return False
    if action == "preempt":
        lowest = min(one["priority"] for one in unit)  # S1: no gang is given the priority of its group
        return gang["queue"] == unit[0]["queue"] and gang["priority"] < lowest
    asked: Amounts = {}
    for one in unit:
        for task in wanted(world, one):
            queues.add(asked, task["request"])
    return p2_reclaimable(world, unit[0], gang["queue"], asked)


def p2_may_leave(world: World, task: Task) -> bool:
    """P2: `preemptable: "false"`, cooldown, system-critical and kube-system pods are respected."""
    gang = world["gangs"][task["gang"]]
    if not is_bound(world, task) or not task["ours"] or task["namespace"] == "kube-system":
        return False
    counts = not tenants.s6_is_immune(world, task) or tenants.s6_counts(world, gang)
    if counts and (task["terms"]["protected"] or gang["terms"]["protected"]):
        return False
    if max(task["priority"], gang["priority"]) >= SYSTEM_CRITICAL:
        return False
    cooldown = tenants.s6_cooldown(world, task)
    if counts and cooldown:
        until = (task["started"] if task["started"] is not None else world["now"]) + cooldown
        if until > world["now"]:
            world["timers"].append(until)
            return False
    return True


def p2_reclaimable(world: World, gang: Gang, name: str, asked: Amounts) -> bool:
    """P2: the queue is above its share, in a dimension that it uses and its `deserved` names; the reclaimer's stays
    within its own in one dimension that it asks for. Ancestors that both have do not count."""
    if name == gang["queue"] or name not in world["queues"]:
        return False
    trial = placing.start_trial(world)
    deserved = queues.v4_deserved(world, trial)
    ours, theirs = queues.path_up(world, gang["queue"]), queues.path_up(world, name)
    for place in ours:
        if place != queues.ROOT and place not in theirs and not within_share(trial, deserved, place, asked):
            return False
    for place in theirs:
        if place == queues.ROOT or place in ours:
            continue
        if not world["queues"][place]["reclaimable"] or not above_share(world, trial, deserved, place):
            return False
    return True


def within_share(trial: dict[str, Any], deserved: dict[str, Amounts], place: str, asked: Amounts) -> bool:
    used = trial["used"].get(place, {})
    for name, count in asked.items():
        if name != "pods" and count > 0 and used.get(name, 0) + count <= deserved.get(place, {}).get(name, 0):
            return True
    return False


def above_share(world: World, trial: dict[str, Any], deserved: dict[str, Amounts], place: str) -> bool:
    judged = queues.share_dimensions(world, place)
    for name, count in trial["used"].get(place, {}).items():
        if name != "pods" and (judged is None or name in judged) and count > deserved.get(place, {}).get(name, 0):
            return True
    return False


def m6_preemptable(world: World, gang: Gang) -> Amounts:
    """What lower priorities of its own queue use and could leave."""
    freed: Amounts = {}
    for other in world["gangs"].values():
        if other["queue"] == gang["queue"] and other["priority"] < gang["priority"]:
            for task in other["tasks"]:
                if m6_could_leave(world, task):
                    queues.add(freed, task["request"])
    return freed


def m6_could_leave(world: World, task: Task) -> bool:
    gang = world["gangs"][task["gang"]]
    return (
        is_bound(world, task)
        and task["ours"]
        and task["namespace"] != "kube-system"
        and not (
            (task["terms"]["protected"] or gang["terms"]["protected"]) and not tenants.s6_ends_at_share(world, gang)
        )
        and max(task["priority"], gang["priority"]) < SYSTEM_CRITICAL
    )


def m6_reclaimable(world: World, gang: Gang) -> Amounts:
    """What other queues use beyond their share and would have to give back."""
    found: Amounts = {}
    trial = placing.start_trial(world)
    deserved = queues.v4_deserved(world, trial)
    for name in queues.all_queues(world):
        if not p2_reclaimable(world, gang, name, gang["min_resources"]):
            continue
        freed: Amounts = {}
        for other in world["gangs"].values():
            for task in other["tasks"]:
                if other["queue"] == name and m6_could_leave(world, task):
                    queues.add(freed, task["request"])
        if not freed:
            continue
        for resource in gang["min_resources"]:
            excess = trial["used"].get(name, {}).get(resource, 0) - deserved.get(name, {}).get(resource, 0)
            found[resource] = found.get(resource, 0) + min(max(0, excess), freed.get(resource, 0))
    return found
