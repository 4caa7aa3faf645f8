"""K: gangs that start together, NonStrict holds, waiting times and deadlocks (K5 to K8, K12)."""

from __future__ import annotations

from typing import Any

from oracle import claims, dialects, minima, order, placing, queues, reasons, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Key = tuple[str, str, str]


# ---- K7: who belongs together


def k7_groups(world: World) -> dict[Key, list[Key]]:
    """Gang -> the gangs that it starts with: each reaches the other along names. A gang that is alone is in none,
    unless it names others, holds, or asks for free room before it is attempted."""
    named = {
        gang["key"]: list(gang["group"])
        for gang in world["gangs"].values()
        if gang["group"] or gang["holds"] or gang["needs_free"]
    }
    reach = {key: reached(named, key) for key in named}
    return {key: sorted(other for other in named if other == key or both(reach, key, other)) for key in named}


def both(reach: dict[Key, set[Key]], one: Key, other: Key) -> bool:
    return other in reach[one] and one in reach[other]


def reached(named: dict[Key, list[Key]], key: Key) -> set[Key]:
    """The gangs that a gang names, directly or through gangs that it names."""
    found: set[Key] = set()
    while more := {other for one in {key, *found} for other in named.get(one, [])} - found:
        found |= more
    return found


def k7_unsatisfied(world: World, keys: list[Key]) -> list[Key]:
    """Gangs outside of a group that its gangs name and that are missing or not satisfied."""
    named = {other for gang in gangs_of(world, keys) for other in gang["group"] if other not in keys}
    return sorted(other for other in named if not k7_was_satisfied(world, other))


def k7_was_satisfied(world: World, key: Key) -> bool:
    gang = world["gangs"].get(key)
    if gang is None or gang["problem"]:
        return False
    mates = gangs_of(world, k7_group_of(world, gang))
    return all(mate["covered"] or minima.minima_are_bound(world, mate) for mate in mates)


def k7_group_of(world: World, gang: Gang) -> list[Key]:
    found: list[Key] = world["groups"].get(gang["key"]) or [gang["key"]]
    return found


def k7_is_group(world: World, gang: Gang) -> bool:
    return gang["key"] in world["groups"]


def gangs_of(world: World, keys: list[Key]) -> list[Gang]:
    return [world["gangs"][key] for key in keys if key in world["gangs"]]


def is_non_strict(world: World, keys: list[Key]) -> bool:
    """K7: a group with a Strict gang is Strict."""
    return all(gang["holds"] for gang in gangs_of(world, keys))


def unit(world: World, keys: list[Key]) -> list[Gang]:
    """The gangs of a group whose minima are still to be bound, or that hold pods, by order."""
    found = [gang for gang in gangs_of(world, keys) if not gang["satisfied"] and not has_all(world, gang)]
    return sorted(found, key=lambda gang: order.g8_order(gang, order.MINIMA))


def has_all(world: World, gang: Gang) -> bool:
    """Its minima are bound, and it holds nothing: with a minimum that fell to 0 what it holds is still to be bound."""
    return minima.m4_ready(world, gang) and not minima.held(world, gang)


def k7_standing(world: World, gang: Gang) -> tuple[str, int] | None:
    """The first in order waits for its whole group; not attempted until each of its gangs exists with members ≥ min,
    and each gang outside of it that they name is satisfied."""
    keys = k7_group_of(world, gang)
    if gang["key"] in world["started"] and has_all(world, gang) and order.obstacle(world, gang) is None:
        return order.standing_for_room(world, gang)  # its group started in this cycle: surplus is in line (G3)
    if gang["key"] in world["started"] and gang["waves"]:
        return None  # its next wave is attempted in the next cycle (D3)
    obstacles = {mate["key"]: why for mate in gangs_of(world, keys) if (why := k7_obstacle(world, mate)) is not None}
    if not gang["enqueued"] and order.obstacle(world, gang) is None:
        return (order.KNOCKING, order.MINIMA)
    if obstacles or k7_unsatisfied(world, keys):
        why = obstacles.get(gang["key"]) or reasons.reason("GroupNotReady", minima.needed_by_role(world, gang))
        known = world["reasons"].get(gang["key"])
        if known is not None and known["reason"] == "BlockedByFIFO":  # both are true
            why = {**known, "or": {*known.get("or", ()), *reasons.said_of(why)}}
        world["reasons"][gang["key"]] = why
        holding = k6_would_hold(world, keys)
        return (order.ALLOCATING, order.MINIMA) if holding and holding[0] is gang else None
    waiting = unit(world, keys)
    if gang not in waiting:
        return order.standing_for_room(world, gang) if not waiting else None
    return (order.ALLOCATING, order.MINIMA) if gang is waiting[0] else None


def k7_obstacle(world: World, gang: Gang) -> dict[str, Any] | None:
    """What keeps a gang of a group from starting, and with it the others: it may not be enqueued yet (M6)."""
    why = order.obstacle(world, gang)
    if why is None and not gang["enqueued"]:
        return reasons.reason("NotEnoughResources", minima.needed_by_role(world, gang))
    return why


# ---- K5, K6


def k5_start_together(world: World, gang: Gang) -> dict[str, Any] | None:
    """K5: every gang of the group's minima, or nothing. K6: a NonStrict group holds what fits."""
    keys = k7_group_of(world, gang)
    if k6_is_incomplete(world, keys):
        if not world.get("opened"):  # nothing is held on nodes that are reserved for others (R5)
            k6_hold(world, keys, k6_would_hold(world, keys))
        return reasons.reason("GroupNotReady", minima.needed_by_role(world, gang))
    waiting = unit(world, keys)
    non_strict = is_non_strict(world, keys)
    why = k7_beyond_cluster(world, waiting) or (None if non_strict else k7_too_little_free(world, keys))
    if why is None:
        trial = placing.start_trial(world, set(keys))
        for one in waiting:
            claims.r7_take_own_places(world, trial, one)
        why = placing.g2_all_or_nothing(world, trial, waiting)
        freed = placing.p3_where_it_was_freed(world, waiting) if why is not None else None
        if why is None or freed is not None:
            bind_group(world, freed or trial, keys, waiting)
            return None
        if non_strict and start_elsewhere(world, keys, waiting):
            return None
        awaits_room = any(claims.claim_of(world, key, "preempt") is not None for key in keys)
        could_start = all(reserve.r7_could_start(world, one) for one in waiting)
        if non_strict and not world.get("opened") and not awaits_room and could_start:
            k6_hold(world, keys, waiting)
    for one in gangs_of(world, keys):
        if one not in waiting and not one["satisfied"] and minima.waiting(world, one):
            world["reasons"][one["key"]] = reasons.k7_of_mate(world, one, why)
    for one in waiting:
        world["reasons"][one["key"]] = reasons.k7_of_mate(world, one, why)
        if one is not gang:
            world["memory"]["tried"][one["key"]] = True
    return why if why is None else reasons.k7_of_mate(world, gang, why)


def bind_group(world: World, trial: dict[str, Any], keys: list[Key], waiting: list[Gang]) -> None:
    for gang in waiting:
        slots = slots_held(world, gang)
        for task in gang["tasks"]:
            if task["uid"] in slots:
                trial["new"].append((task, slots[task["uid"]]))
    let_go(world, keys)
    world["started"] |= set(keys)
    placing.decide(world, trial, waiting, commits=True)


def start_elsewhere(world: World, keys: list[Key], waiting: list[Gang]) -> bool:
    """What is held never is in its group's own way: whether all fit if they are placed anew."""
    if not any(slots_held(world, gang) for gang in waiting):
        return False
    with claims.without(world, keys, "hold"):
        trial = placing.start_trial(world, set(keys))
        for gang in waiting:
            claims.r7_take_own_places(world, trial, gang)
        why = placing.g2_all_or_nothing(world, trial, waiting)
    if why is not None:
        return False
    let_go(world, keys)
    world["started"] |= set(keys)
    placing.decide(world, trial, waiting, commits=True)
    return True


def slots_held(world: World, gang: Gang) -> dict[str, str]:
    slots = claims.slots_of(world, gang["key"], "hold")
    return {task["uid"]: slots[task["uid"]] for task in gang["tasks"] if minima.is_held(world, task)}


def k6_is_incomplete(world: World, keys: list[Key]) -> bool:
    """K6: a gang of the group lacks pods, or one that it names is not there yet."""
    lacks = any(k7_obstacle(world, gang) is not None for gang in gangs_of(world, keys))
    return lacks or bool(k7_unsatisfied(world, keys))


def k6_may_hold(world: World, gang: Gang) -> bool:
    """K6: a gang of a NonStrict group holds if it could start, or if nothing but pods of other gangs, or gangs that are
    not there yet, keep its group from starting. Not if a gang that it names does not name it back (K7), or one of its
    group has timed out (K8)."""
    keys = k7_group_of(world, gang)
    if reserve.r7_could_start(world, gang):
        return True
    if not is_non_strict(world, keys):
        return False
    if not all(k4_is_not_there(world, other) for other in k7_unsatisfied(world, keys)):
        return False
    if k7_obstacle(world, gang) is not None:
        return False
    for mate in gangs_of(world, keys):
        why = k7_obstacle(world, mate)
        lacks = why is None or why["reason"] in ("NotEnoughPods", "FailedCreate", "NotEnoughResources")
        if not lacks and not k4_is_not_there(world, mate["key"]):
            return False
    return not reserve.r7_is_beyond(world, gangs_of(world, keys))


def k4_is_not_there(world: World, key: Key) -> bool:
    """K4: of a gang that nothing declares there are at most pods."""
    return key not in world["gangs"] or world["gangs"][key]["problem"] == dialects.NOT_DECLARED


def k6_would_hold(world: World, keys: list[Key]) -> list[Gang]:
    """K6: the complete gangs of an incomplete group for which more could be held, by order."""
    found = []
    for gang in unit(world, keys):
        needed, rest, short = minima.o1_split(world, gang)
        if (needed or (rest and short)) and k6_may_hold(world, gang):
            found.append(gang)
    return found


def k6_hold(world: World, keys: list[Key], waiting: list[Gang]) -> None:
    """K6: members that fit are held across cycles, of each gang as many as its minima ask for."""
    for gang in waiting:
        trial = placing.start_trial(world, set(keys))
        needed, rest, short = minima.o1_split(world, gang)
        world["holding"] = True
        placing.one_by_one(world, trial, gang, needed)
        if short:
            placing.one_by_one(world, trial, gang, rest, short)
        world["holding"] = False
        if trial["new"]:
            k8_start_clock(world, keys, gang, "hold")
            held = claims.slots_of(world, gang["key"], "hold")
            claims.make(world, gang["key"], "hold", {**held, **{task["uid"]: node for task, node in trial["new"]}})


def let_go(world: World, keys: list[Key]) -> None:
    """What a group holds is free for all, and its clock stops."""
    for key in keys:
        claims.end(world, key, "hold")
        world["memory"]["clocks"].pop(key, None)


def k6_holds_that_stand(world: World) -> None:
    """What is held is not held any more if its node is gone or full, its pod is gone or marked, its group is Strict
    now, or its gang is satisfied, or waits for one that does not name it back."""
    for key in list(world["memory"]["clocks"]):
        gang = world["gangs"].get(key)
        if gang is None or gang["satisfied"] or not k7_is_group(world, gang):
            let_go(world, [key])
        elif is_non_strict(world, k7_group_of(world, gang)) != (world["memory"]["clocks"][key]["by"] == "hold"):
            let_go(world, [key])  # the clock of the other mode
    for key, claim in claims.all_of(world, "hold"):
        reserve.r7_follow_pods(world, world["gangs"][key], claim)
        keep_slots_that_stand(world, world["gangs"][key], claim)


def keep_slots_that_stand(world: World, gang: Gang, claim: dict[str, Any]) -> None:
    from oracle import predicates

    nodes = {node["name"]: node for node in world["nodes"]}
    trial = placing.start_trial(world)
    kept = {}
    for task in reversed(gang["tasks"]) if k6_may_hold(world, gang) else ():
        node = nodes.get(claim["slots"].get(task["uid"], ""))
        if node is None or task["status"] != "pending":
            continue
        overfull = any(trial["free"][node["name"]].get(name, 0) < 0 for name in task["request"])
        if not overfull and predicates.g6_standing_reason(gang, task, node) is None:
            kept[task["uid"]] = node["name"]
        else:  # those before it may have enough room now
            placing.take(world, trial, task, node["name"], -1)
    claim["slots"] = dict(reversed(kept.items()))


# ---- K7: minResources


def k7_beyond_cluster(world: World, gangs: list[Gang]) -> dict[str, Any] | None:
    """A gang whose `minResources` the cluster's allocatable could never hold is not attempted."""
    has = queues.totals(world)
    each = {}
    for gang in gangs:
        if any(count > has.get(name, 0) for name, count in gang["needs_free"].items() if name != "pods"):
            each[gang["key"]] = reasons.reason("NotEnoughResources", minima.needed_by_role(world, gang))
    return {**next(iter(each.values())), "each": each, "of": next(iter(each))} if each else None


def k7_too_little_free(world: World, keys: list[Key]) -> dict[str, Any] | None:
    """A Strict group whose `minResources` exceed the free room in total is not attempted; what its own members have
    and what is being freed for it counts as free."""
    asked: dict[str, int] = {}
    for gang in gangs_of(world, keys):
        queues.add(asked, gang["needs_free"])
    if not asked:
        return None
    trial = placing.start_trial(world, set(keys))
    free = queues.free_total(world, trial)
    for gang in gangs_of(world, keys):
        for task in gang["tasks"]:
            if task["status"] == "bound" or task["uid"] in world["placed"] or minima.is_held(world, task):
                queues.add(free, task["request"])
    for name, count in asked.items():
        if name != "pods" and count > free.get(name, 0):
            first = gangs_of(world, keys)[0]
            nodes = {("", f"Insufficient {name}"): 0}
            return reasons.reason("NotEnoughResources", minima.needed_by_role(world, first), nodes)
    return None


# ---- K8


def k8_clock(world: World, keys: list[Key]) -> int | None:
    """When a group's time is up, if its clock runs: the longest waiting time as written now after the first start."""
    running = [world["memory"]["clocks"][key] for key in keys if key in world["memory"]["clocks"]]
    if not running:
        return None
    return int(min(one["start"] for one in running)) + k8_waiting_time(world, keys)


def k8_waiting_time(world: World, keys: list[Key]) -> int:
    return max(gang["waiting"] for gang in gangs_of(world, keys))


def k8_start_clock(world: World, keys: list[Key], gang: Gang, by: str) -> None:
    """`by`: a task is `hold`, or one that a complete gang names is `missing`."""
    running = [world["memory"]["clocks"][key]["start"] for key in keys if key in world["memory"]["clocks"]]
    start = min(running, default=world["now"])
    world["memory"]["clocks"].setdefault(gang["key"], {"start": start, "by": by})


def k8_start_clocks(world: World) -> None:
    """K8: the clock of a Strict group starts when one of its gangs is complete while another cannot start, or one that
    it names is not satisfied. A NonStrict group's starts with the first task that is held."""
    for keys in distinct(world):
        if k8_clock(world, keys) is not None or is_non_strict(world, keys):
            continue
        obstacles = [mate["key"] for mate in gangs_of(world, keys) if k7_obstacle(world, mate) is not None]
        if (not obstacles and not k7_unsatisfied(world, keys)) or k8_stands(world, keys):
            continue
        whole = [
            gang
            for gang in gangs_of(world, keys)
            if gang["key"] not in obstacles
            and not gang["satisfied"]
            and (not minima.m4_ready(world, gang) or minima.waiting(world, gang))
        ]
        if whole:
            k8_start_clock(world, keys, whole[0], "missing")


def k8_stands(world: World, keys: list[Key]) -> bool:
    """K8: a clock does not run while nothing is missing but pods that our own controllers have not made yet."""
    each = [(mate, why) for mate in gangs_of(world, keys) if (why := k7_obstacle(world, mate)) is not None]
    if not each or k7_unsatisfied(world, keys):
        return False
    unmade = ("NotEnoughPods", "FailedCreate", "NotEnoughResources")  # pods that have timed out were made
    return all(mate["is_made"] and why["reason"] in unmade for mate, why in each)


def k8_hold_clocks(world: World) -> None:
    """K8: clocks that stood since the last cycle are as much younger."""
    memory = world["memory"]
    for key in memory["clocks_stand"]:
        if key in memory["clocks"]:
            memory["clocks"][key]["start"] += world["now"] - memory["clocks_since"]


def k8_note_clocks(world: World) -> None:
    world["memory"]["clocks_since"] = world["now"]
    standing = [keys for keys in distinct(world) if k8_stands(world, keys)]
    world["memory"]["clocks_stand"] = {key for keys in standing for key in keys}


def distinct(world: World) -> list[list[Key]]:
    found: list[list[Key]] = []
    for key in sorted(world["groups"]):
        if world["groups"][key] not in found:
            found.append(world["groups"][key])
    return found


def k8_expire(world: World) -> None:
    """At expiry an unsatisfied group lets everything go, and every member pod that waits is marked."""
    for keys in distinct(world):
        until = k8_clock(world, keys)
        if until is None:
            continue
        if until > world["now"]:
            world["timers"] += [] if k8_stands(world, keys) else [until]
            continue
        expired = [gang for gang in gangs_of(world, keys) if not gang["satisfied"]]
        let_go(world, keys)
        for gang in expired:
            claims.end(world, gang["key"], "reserve", "preempt")
            for task in gang["tasks"]:
                if task["status"] == "pending" and task["ours"]:
                    task["status"] = "marked"
                    world["marked"].append(task)
            world["reasons"][gang["key"]] = reasons.k8_timed_out(world, gang)
