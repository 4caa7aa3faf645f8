"""R: starving gangs, and the nodes that are reserved for them until they can start."""

from __future__ import annotations

from typing import Any

from enbloc.units import SECOND
from oracle import claims, groups, minima, order, placing, ports, predicates, queues, run_times, topology, waves

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]


# ---- R1, R2


def r1_starves_at(world: World, gang: Gang) -> int | None:
    """When a gang starves, if it goes on waiting; `None`: never. A job's own waiting time counts instead. A gang that
    was satisfied and has lost members of its minimum is as old as the oldest pod that waits for them."""
    if "reserve" not in world["actions"] or gang["finished"] or minima.m4_ready(world, gang):
        return None
    needed, rest, short = r1_needs(world, gang)
    lost = needed if not short else [*needed, *rest]
    if gang["covered"] and not lost:
        return None
    after = world["settings"]["starving_after"]
    own = gang["terms"]["patience"]
    if own is None and gang["object"] is None:
        said = [task["terms"]["patience"] for task in gang["tasks"] if task["terms"]["patience"] is not None]
        own = min(said, default=None)
    since = min(task["created"] for task in lost) if gang["covered"] else gang["created"]
    return int(since + (own if own is not None else after))


def r1_needs(world: World, gang: Gang) -> tuple[list[Task], list[Task], int]:
    """R1, G7: what waits for members that its waves have lost, and what the minima of the present wave still need (O1):
    those that are needed, the rest, and how many of the rest."""
    lost = minima.g7_replacements(world, gang)
    if lost and minima.g4_missing(world, gang):
        return lost, [], 0
    needed, rest, short = minima.o1_split(world, gang)
    return [*lost, *needed], rest, short


def r1_is_starving(world: World, gang: Gang) -> bool:
    at = r1_starves_at(world, gang)
    return at is not None and at <= world["now"]


def r1_starved_before_evictions(world: World, gang: Gang) -> bool:
    """R1: what a gang loses by an eviction of this cycle counts from the next one on."""
    leaving, world["leaving"] = world["leaving"], set()
    found = r1_is_starving(world, gang)
    world["leaving"] = leaving
    return found


def r1_timers(world: World) -> None:
    for gang in world["gangs"].values():
        at = r1_starves_at(world, gang)
        if at is not None and at > world["now"]:
            world["timers"].append(at)


def r2_condition_ready(world: World, gang: Gang, reserved: list[Task]) -> bool:
    """R2: occupied + reserved ≥ its minima, per role too; of a whole-job gang those of all waves (D5). Of waves that
    were satisfied before: all that wait for members that they have lost."""
    uids = {task["uid"] for task in reserved}
    if not waves.d5_have_all(gang, reserved):
        return False
    lost = minima.g7_replacements(world, gang)
    if any(task["uid"] not in uids for task in lost):
        return False
    if lost and minima.g4_missing(world, gang):
        return True
    reserved = [task for task in reserved if "slot" not in task]
    for role, minimum in minima.wave_minima(gang).items():
        if minima.found(world, gang, role) + sum(1 for task in reserved if task["role"] == role) < minimum:
            return False
    mine = [task for task in reserved if minima.in_wave(gang, task["role"])]
    return minima.found_in_wave(world, gang) + len(mine) >= minima.wave_total(gang)


def reserved_tasks(world: World, gang: Gang) -> list[Task]:
    slots = claims.slots_of(world, gang["key"], "reserve")
    return [*(task for task in gang["tasks"] if task["uid"] in slots), *waves.d5_reserved(world, gang)]


# ---- R3


def r3_reserve(world: World) -> None:
    """R3: after the other actions, highest order first; only if no gang of higher order was served in this cycle."""
    trial = placing.start_trial(world)
    found: dict[Any, tuple[Any, list[Gang]]] = {}
    for gang in world["gangs"].values():
        if not r1_is_starving(world, gang) or not r1_starved_before_evictions(world, gang):
            continue
        keys = groups.k7_group_of(world, gang)
        together = groups.k7_is_group(world, gang) and not gang["satisfied"]
        unit = groups.unit(world, keys) if together else [gang]
        if not unit or order.standing(world, unit[0]) != (order.ALLOCATING, order.MINIMA):
            continue
        if not all(r7_could_start(world, one) for one in unit):
            continue
        if any(has_freed_room(world, one) for one in unit):
            continue
        everyone = dict.fromkeys(world["gangs"], order.MINIMA)
        fifo = world["queues"][unit[0]["queue"]]["fifo"]
        if fifo and order.g8_blocked(world, unit[0], order.ALLOCATING, everyone):
            continue
        found[unit[0]["key"]] = (turn(world, trial, unit[0]), unit)
    for _, unit in sorted(found.values(), key=lambda entry: entry[0]):
        if all(r2_condition_ready(world, one, reserved_tasks(world, one)) for one in unit):
            continue  # asked at its turn: its nodes may have been taken over in this cycle
        if not r3_was_served_before(world, unit[0]) and not order.g8_awaited_above(world, unit[0]):
            reserved = r4_plan(world, unit)
            for gang in unit:
                world["memory"]["needs_more_nodes"][gang["key"]] = not reserved and r6_needs_more_nodes(world, unit)


def turn(world: World, trial: dict[str, Any], gang: Gang) -> tuple[Any, ...]:
    return (queues.g8_queue_order(world, trial, gang["queue"], False), order.g8_order(gang, order.MINIMA))


def has_freed_room(world: World, gang: Gang) -> bool:
    return claims.claim_of(world, gang["key"], "preempt") is not None


def r3_was_served_before(world: World, gang: Gang) -> bool:
    trial = placing.start_trial(world)
    mine = queues.g8_queue_order(world, trial, gang["queue"], False)
    for key in world["served"]:
        other = world["gangs"][key]
        if other["queue"] == gang["queue"]:
            if order.g8_order(other, order.MINIMA) < order.g8_order(gang, order.MINIMA):
                return True
        elif queues.g8_queue_order(world, trial, other["queue"], False) < mine:
            return True
    return False


# ---- R4, R6


def r4_plan(world: World, unit: list[Gang]) -> bool:
    """R4: each needed task claims a node that passes every predicate but free room. All of them, or no trace."""
    below = min(gang["priority"] for gang in unit)
    lower = [gang for gang in reserving(world) if gang["priority"] < below]
    ignored = {gang["key"] for gang in lower}
    plan = {**new_plan(world, ignored), "started": r4_started(world, ignored)}
    chosen = t7_places(world, unit, plan, r6_limit(world))
    if chosen is None:
        return False
    for gang in unit:
        slots = {task["uid"]: node for task, node in chosen if task["gang"] == gang["key"]}
        if slots:
            claims.make(world, gang["key"], "reserve", slots)
    r3_end_those_taken_over(world, lower)
    return True


def t7_places(world: World, unit: list[Gang], plan: dict[str, Any], limit: int) -> list[tuple[Task, str]] | None:
    """T7: of those that must be together in one domain: the one with the most room now, or the next in which nodes
    can be reserved for all of them."""
    for within in topology.t7_choices(world, plan["trial"], unit):
        attempt = {
            **plan,
            "reserved": {node: dict(amounts) for node, amounts in plan["reserved"].items()},
            "idle": {node: dict(free) for node, free in plan["idle"].items()},
            "trial": {**placing.copy_trial(plan["trial"]), "within": within},
        }
        chosen = r4_places(world, unit, attempt, limit)
        if chosen is not None:
            return chosen
    return None


def r4_places(world: World, unit: list[Gang], plan: dict[str, Any], limit: int) -> list[tuple[Task, str]] | None:
    """A node for each needed task of gangs that start together, on at most so many nodes; `None`: not for all."""
    trial = placing.start_trial(world)
    chosen: list[tuple[Task, str]] = []
    for gang in unit:
        needed, rest, short = r1_needs(world, gang)
        later = waves.d5_later_tasks(world, gang)
        if queue_is_full(world, trial, gang, [*needed, *rest[:short], *later]):
            return None
        mine: list[tuple[Task, str]] = []
        for task in [*needed, *later]:
            node = r6_nearest(world, plan, gang, task, limit)
            if node is None:
                return None
            mine.append((task, node))
        for task in rest:
            node = r6_nearest(world, plan, gang, task, limit) if short else None
            if node is not None:
                mine.append((task, node))
                short -= 1
        if short or not r2_condition_ready(world, gang, [task for task, _ in mine]):
            return None
        chosen += mine
    return chosen


def r6_needs_more_nodes(world: World, unit: list[Gang]) -> bool:
    """R6: whether a gang needs more nodes than may be reserved, were it alone: then it says so."""
    others = {gang["key"] for gang in reserving(world)}
    if t7_places(world, unit, new_plan(world, others), r6_limit(world)) is not None:
        return False
    return t7_places(world, unit, new_plan(world, others), len(world["nodes"])) is not None


def new_plan(world: World, ignored: set[Any]) -> dict[str, Any]:
    trial = placing.start_trial(world)
    idle = {node: dict(free) for node, free in trial["free"].items()}
    return {"reserved": r4_reserved(world, ignored), "idle": idle, "started": {}, "trial": trial}


def r6_limit(world: World) -> int:
    return int(-(-len(world["nodes"]) * world["settings"]["reserved_node_percent"] // 100))


def r4_reserved(world: World, ignored: set[Any]) -> dict[str, Amounts]:
    """Node -> the sum of what is reserved on it."""
    found: dict[str, Amounts] = {}
    for gang in world["gangs"].values():
        slots = claims.slots_of(world, gang["key"], "reserve") if gang["key"] not in ignored else {}
        for task in reserved_tasks(world, gang) if slots else ():
            queues.add(found.setdefault(slots[task["uid"]], {}), task["request"])
    return found


def r4_started(world: World, ignored: set[Any]) -> dict[str, dict[str, Amounts]]:
    """R4: node -> by pod what was started on it since the oldest of its reservations was made, and runs: it counts in
    the sum for whatever is to be reserved there from now on."""
    oldest: dict[str, int] = {}
    for key, claim in claims.all_of(world, "reserve"):
        for node in set(claim["slots"].values()) if key not in ignored else ():
            second = claim["since"] // SECOND * SECOND  # times of pods are in whole seconds
            oldest[node] = min(second, oldest.get(node, second))
    found: dict[str, dict[str, Amounts]] = {}
    for task in world["tasks"]:
        node = node_of(world, task)
        if node not in oldest or task["uid"] in world["leaving"]:
            continue
        if task["uid"] in world["placed"] or task["started"] is None or task["started"] >= oldest[node]:
            found.setdefault(node, {})[task["uid"]] = task["request"]
    return found


def node_of(world: World, task: Task) -> Any:
    return world["placed"].get(task["uid"]) or (task["node"] if task["status"] == "bound" else None)


def r4_own_members(world: World, gang: Gang) -> dict[str, dict[str, Amounts]]:
    """R4: node -> by pod what members of the gang, or of gangs that it starts with, have there and it still needs: no
    room that will come free."""
    found: dict[str, dict[str, Amounts]] = {}
    for mate in groups.gangs_of(world, reserved_with(world, gang)):
        for task in r4_needed_members(world, mate):
            node = node_of(world, task)
            if node:
                found.setdefault(node, {})[task["uid"]] = task["request"]
    return found


def r4_needed_members(world: World, gang: Gang) -> list[Task]:
    """The members without which its minima would not be met once all that roles lack is placed: those that have ended
    count first, then by O2. None of a gang of which only waiting pods count (K9)."""
    if minima.k9_only_waiting(world, gang):
        return []
    there = [task for task in gang["tasks"] if minima.is_occupied(world, task)]
    there.sort(key=lambda task: task["status"] != "succeeded")
    found: list[Task] = []
    for role, minimum in gang["minima"].items():
        found += [task for task in there if task["role"] == role][:minimum]
    rest = [task for task in there if task not in found]
    return found + rest[: max(0, gang["minimum"] - sum(gang["minima"].values()))]


def r6_nearest(world: World, plan: dict[str, Any], gang: Gang, task: Task, limit: int) -> str | None:
    """R6: the nearest node that may be claimed; at most a part of all nodes hold reservations."""
    best: tuple[float, str] | None = None
    for node in world["nodes"]:
        if predicates.g6_standing_reason(gang, task, node) is not None:
            continue
        if not may_claim(world, plan, node, task, limit):
            continue
        if not topology.t1_is_open(world, plan["trial"], gang, task, node["name"]):
            continue
        if not ports.g6_ports_are_free(world, plan["trial"], task, node["name"]):
            continue
        near = r6_nearness(task["request"], plan["idle"][node["name"]])
        if best is None or near > best[0]:
            best = (near, node["name"])
    if best is None:
        return None
    take(plan, best[1], task)
    plan["trial"]["new"].append((task, best[1]))
    plan["trial"]["placed"][task["uid"]] = best[1]
    return best[1]


def may_claim(
    world: World, plan: dict[str, Any], node: dict[str, Any], task: Task, limit: int, *, stands: bool = False
) -> bool:
    """R4, R6: within the node's allocatable, and within the part of all nodes that may hold reservations. Beside what
    `stands` there already its own members have their room."""
    name = node["name"]
    if name not in plan["reserved"] and len(plan["reserved"]) >= limit:
        return False
    claimed = dict(plan["reserved"].get(name, {}))
    own = {} if stands else r4_own_members(world, world["gangs"][task["gang"]]).get(name, {})
    for request in {**plan["started"].get(name, {}), **own}.values():
        queues.add(claimed, request)
    for other, where in claims.room_taken(world, set()):
        if where == name:
            queues.add(claimed, other["request"])
    return all(
        claimed.get(resource, 0) + count <= node["allocatable"].get(resource, 0)
        for resource, count in task["request"].items()
    )


def take(plan: dict[str, Any], node: str, task: Task) -> None:
    idle = plan["idle"][node]
    has_room = all(idle.get(resource, 0) >= count for resource, count in task["request"].items())
    queues.add(plan["reserved"].setdefault(node, {}), task["request"])
    if has_room:
        queues.add(idle, task["request"], -1)


def r6_nearness(request: Amounts, idle: Amounts) -> float:
    """Per resource 10·min(1, idle/request); a resource not requested counts 10; scalars by their mean."""
    parts = {
        name: min(max(float(idle.get(name, 0)), 0.0), float(count)) / float(count) for name, count in request.items()
    }
    plain = (10 * parts.get("cpu", 1.0) + 10 * parts.get("memory", 1.0)) / 2
    scalars = [10 * part for name, part in parts.items() if name not in ("cpu", "memory", "pods")]
    if not scalars:
        return plain
    return (plain + 2 * (sum(scalars) / len(scalars))) / 3


def queue_is_full(world: World, trial: dict[str, Any], gang: Gang, tasks: list[Task]) -> bool:
    """Room would not help a gang whose queue may not use more."""
    asked: Amounts = {}
    for task in tasks:
        queues.add(asked, task["request"])
    if queues.v4_over_capability(world, trial, gang["queue"], asked, enqueued=False) is not None:
        return True
    return beyond_queue(world, trial, gang, asked)


def beyond_queue(world: World, trial: dict[str, Any], gang: Gang, asked: Amounts) -> bool:
    """Whether its queue could not use so much even if it used nothing else."""
    for place in queues.path_up(world, gang["queue"]):
        for resource, limit in (world["queues"].get(place) or {}).get("capability", {}).items():
            if asked.get(resource, 0) > limit:
                return True
    kept, has = queues.v4_kept_for_others(world, trial, gang["queue"]), queues.totals(world)
    return any(kept.get(name, 0) > 0 and count > has.get(name, 0) - kept[name] for name, count in asked.items())


# ---- R5, R7


def r5_closed_nodes(world: World, gang: Gang, task: Task) -> set[str]:
    """R5: a node with a reservation takes no new tasks but BestEffort ones and those that it is reserved for. Nodes of
    gangs that it starts with are its own, but not to hold pods there; and so is room that is being made for it. R8: a
    task that ends before the reservation is due may use the node, unless it does not start now: it waits for evictions,
    or is held."""
    if task["best_effort"]:
        return set()
    closed: set[str] = set()
    own: set[str] = set()
    mates = groups.k7_group_of(world, gang) if not gang["satisfied"] and not world.get("holding") else [gang["key"]]
    for key, claim in claims.all_of(world, "reserve"):
        if key in mates or key in world.get("opened", ()):
            continue
        starts_now = not world.get("evicting") and not world.get("holding")
        run_time = run_times.r8_run_time(world, task) if starts_now else None
        if not run_times.r8_ends_in_time(world, world["gangs"].get(key), run_time):
            closed |= set(claim["slots"].values())
    for key in groups.k7_group_of(world, gang):
        own |= set(claims.slots_of(world, key, "preempt").values())
    return closed - own


def r5_takes_over(world: World, gang: Gang) -> bool:
    """R5: minima, or replacements of lost members, that fit only on nodes reserved for gangs of lower priority start
    there, the lowest priority first; the plans of those gangs are mended at once. NonStrict ones hold nothing there."""
    keys = groups.k7_group_of(world, gang)
    unit = groups.unit(world, keys) if groups.k7_is_group(world, gang) and not gang["satisfied"] else [gang]
    if not unit or minima.m4_ready(world, gang) or minima.g4_missing(world, gang):
        return False
    below = min(one["priority"] for one in unit)
    holders = reserving(world)
    for level in sorted({one["priority"] for one in holders if one["priority"] < below}):
        before = (dict(world["reasons"]), list(world["kept"]), dict(world["placed"]))
        world["opened"] = {one["key"] for one in holders if one["priority"] <= level}
        why = placing.one_turn(world, gang)
        lower, world["opened"] = world["opened"], set()
        if why is None:
            new = {node for uid, node in world["placed"].items() if uid not in before[2]}
            new |= {node for one in unit for _, node in waves.d5_kept(world, one)}  # its later waves are there too
            r5_mend(world, [one for one in holders if one["key"] in lower], new)
            return True
        world["reasons"], world["kept"] = before[0], before[1]
    return False


def reserving(world: World) -> list[Gang]:
    return [world["gangs"][key] for key, _ in claims.all_of(world, "reserve") if key in world["gangs"]]


def r5_mend(world: World, lower: list[Gang], taken: set[str]) -> None:
    """The slots on nodes that were taken are given up, and their tasks are reserved for anew; or the claim ends."""
    trial = placing.start_trial(world)
    for gang in sorted(lower, key=lambda one: turn(world, trial, one)):
        before = claims.slots_of(world, gang["key"], "reserve")
        if not taken & set(before.values()):
            continue
        plan = new_plan(world, {gang["key"]})
        tasks = sorted(reserved_tasks(world, gang), key=lambda task: task["order"])
        slots = {task["uid"]: before[task["uid"]] for task in tasks if before[task["uid"]] not in taken}
        for task in tasks:
            if task["uid"] in slots:
                take(plan, slots[task["uid"]], task)
        for task in tasks if not gang["asks"] else ():  # T7: elsewhere may be another domain
            if task["uid"] not in slots:
                node = r6_nearest(world, plan, gang, task, r6_limit(world))
                if node is not None:
                    slots[task["uid"]] = node
        if len(slots) == len(tasks):
            since = world["memory"]["claims"][gang["key"], "reserve"]["since"]
            claims.make(world, gang["key"], "reserve", slots)
            world["memory"]["claims"][gang["key"], "reserve"]["since"] = since
        else:
            for key in reserved_with(world, gang):
                claims.end(world, key, "reserve")


def reserved_with(world: World, gang: Gang) -> list[Any]:
    """The gangs whose reservations stand or end together: a group is reserved for as a whole, what a satisfied gang has
    lost by itself."""
    return [gang["key"]] if gang["satisfied"] else groups.k7_group_of(world, gang)


def r3_end_those_taken_over(world: World, lower: list[Gang]) -> None:
    """R3: reservations of lower priority that no longer fit beside a new one end."""
    trial = placing.start_trial(world)
    ending = {gang["key"] for gang in lower}
    for gang in sorted(lower, key=lambda one: turn(world, trial, one)):
        keys = reserved_with(world, gang)
        if gang["key"] in ending and still_fits(world, keys, ending):
            ending -= set(keys)
    for gang in lower:
        if gang["key"] in ending:
            for key in reserved_with(world, gang):
                claims.end(world, key, "reserve")


def still_fits(world: World, keys: list[Any], ending: set[Any]) -> bool:
    plan, nodes = new_plan(world, ending), {node["name"]: node for node in world["nodes"]}
    for gang in groups.gangs_of(world, keys):
        for task in reserved_tasks(world, gang):
            node = nodes.get(claims.slots_of(world, gang["key"], "reserve")[task["uid"]])
            if node is None or not may_claim(world, plan, node, task, r6_limit(world), stands=True):
                return False
            take(plan, node["name"], task)
    return True


def r5_room_kept_from(world: World, trial: dict[str, Any], gang: Gang) -> Amounts:
    """M6: the free room on nodes that are reserved for others is not for this gang; R8: unless it ends in time."""
    closed: set[str] = set()
    run_time = run_times.r8_run_time_of_gang(world, gang)
    for key, claim in claims.all_of(world, "reserve"):
        holder = world["gangs"].get(key)
        is_lower = holder is not None and holder["priority"] < gang["priority"]  # R5
        if key == gang["key"] or is_lower:
            continue
        if not run_times.r8_ends_in_time(world, holder, run_time):
            closed |= set(claim["slots"].values())
    found: Amounts = {}
    for name in closed:
        queues.add(found, {resource: max(0, count) for resource, count in trial["free"].get(name, {}).items()})
    return found


def r7_reservations_that_stand(world: World) -> None:
    """R7: a reservation ends when its gang is bound, or when it can no longer make it condition-ready."""
    for key, claim in claims.all_of(world, "reserve"):
        gang = world["gangs"].get(key)
        if gang is not None:
            r7_follow_pods(world, gang, claim)
        if gang is None or minima.m4_ready(world, gang):
            claims.end(world, key, "reserve")
        elif not r7_stands(world, gang, claim):
            for mate in reserved_with(world, gang):
                claims.end(world, mate, "reserve")
    world["memory"]["names"].update({task["uid"]: task["name"] for task in world["tasks"]})


def r7_follow_pods(world: World, gang: Gang, claim: dict[str, Any]) -> None:
    """R7: a pod that was recreated under its name takes its slot."""
    names = world["memory"]["names"]
    here = {task["uid"] for task in gang["tasks"]}
    new = {task["name"]: task["uid"] for task in gang["tasks"] if minima.is_waiting(world, task)}
    claim["slots"] = {
        uid if uid in here else new.get(names.get(uid, ""), uid): node for uid, node in claim["slots"].items()
    }


def r7_stands(world: World, gang: Gang, claim: dict[str, Any]) -> bool:
    if gang["finished"] or not r7_could_start(world, gang):
        return False
    tasks = reserved_tasks(world, gang)
    waits = [task for task in tasks if minima.is_waiting(world, task) or minima.is_held(world, task)]
    if len(waits) < len(claim["slots"]):  # its minimum may have fallen with them
        claim["slots"] = {task["uid"]: claim["slots"][task["uid"]] for task in waits}
        tasks = waits
    unneeded = r7_not_needed(world, gang, tasks)
    for task in unneeded:
        del claim["slots"][task["uid"]]
    tasks = [task for task in tasks if task not in unneeded]
    nodes = {node["name"]: node for node in world["nodes"]}
    for task in tasks:
        node = nodes.get(claim["slots"][task["uid"]])
        if node is None or predicates.g6_standing_reason(gang, task, node) is not None:
            return False
        if not all(is_within(amounts, node) for amounts in r4_sums(world, gang, node["name"])):
            return False
    if not topology.t7_will_be_together(world, gang, claim["slots"]):
        return False
    asked: Amounts = {}
    for task in tasks:
        queues.add(asked, task["request"])
    if beyond_queue(world, placing.start_trial(world), gang, asked):
        return False
    return r2_condition_ready(world, gang, tasks)


def r4_sums(world: World, gang: Gang, node: str) -> list[Amounts]:
    """R4: what stays within a node's allocatable while a gang has a reservation there: the sum of what is reserved, and
    with what its own members have there what is reserved for it. Members of one gang keep no room from another."""
    others = {key for key, _ in claims.all_of(world, "reserve")} - set(reserved_with(world, gang))
    own = dict(r4_reserved(world, others)[node])
    for request in r4_own_members(world, gang).get(node, {}).values():
        queues.add(own, request)
    return [r4_reserved(world, set())[node], own]


def is_within(amounts: Amounts, node: dict[str, Any]) -> bool:
    return all(count <= node["allocatable"].get(resource, 0) for resource, count in amounts.items())


def r7_not_needed(world: World, gang: Gang, reserved: list[Task]) -> list[Task]:
    """R7: pods that wait and without which its minima are reached by now, the last in order first."""
    lost = minima.g7_replacements(world, gang)
    of_waves = [task for task in reserved if task["role"] in gang["ran"] and task not in lost]
    mine = [
        task
        for task in reserved
        if "slot" not in task and minima.is_waiting(world, task) and minima.in_wave(gang, task["role"])
    ]
    left = [task for task in mine if task["role"] not in gang["later"]]
    roles = minima.wave_minima(gang)
    found: list[Task] = of_waves
    for task in reversed(left):
        rest = [one for one in left if one not in found and one is not task]
        of_role = sum(1 for one in rest if one["role"] == task["role"])
        if minima.found_in_wave(world, gang) + len(rest) < minima.wave_total(gang):
            break
        if minima.found(world, gang, task["role"]) + of_role >= roles.get(task["role"], 0):
            found.append(task)
    return found


def r7_could_start(world: World, gang: Gang) -> bool:
    """R7, P3: its object, queue and members exist, its group is complete, the cluster could hold its `minResources`,
    and its queue could use its minima."""
    keys = groups.k7_group_of(world, gang) if not gang["satisfied"] else [gang["key"]]
    mates = groups.gangs_of(world, keys)
    if not gang["satisfied"] and groups.k7_unsatisfied(world, keys):
        return False
    if any(groups.k7_obstacle(world, mate) is not None for mate in mates):
        return False
    return not r7_is_beyond(world, mates)


def r7_is_beyond(world: World, mates: list[Gang]) -> bool:
    """Whether the cluster, or a queue, could never hold one of these."""
    if any(beyond_cluster(world, mate) for mate in mates if not mate["satisfied"]):
        return True
    trial = placing.start_trial(world)
    return any(beyond_queue(world, trial, mate, of_minima(world, mate)) for mate in mates)


def beyond_cluster(world: World, gang: Gang) -> bool:
    """K7, M6: whether the cluster could never hold its `minResources`; those of a later wave count what has ended."""
    asked = gang["needs_free"]
    if not asked and not world["settings"]["admit_oversized"] and not gang["waves"]:
        asked = gang["min_resources"] or {}
    has = queues.totals(world)
    return any(count > has.get(name, 0) for name, count in asked.items() if name != "pods")


def of_minima(world: World, gang: Gang) -> Amounts:
    """What it uses already and what its minima still need at the least."""
    asked: Amounts = {}
    needed, rest, short = minima.o1_split(world, gang)
    for task in gang["tasks"]:
        if task in needed or task["status"] == "bound" or task["uid"] in world["placed"] or minima.is_held(world, task):
            queues.add(asked, task["request"])
    for name in {name for task in rest for name in task["request"]}:
        smallest = sorted(task["request"].get(name, 0) for task in rest)
        asked[name] = asked.get(name, 0) + sum(smallest[:short])
    return asked


def r7_take_own_places(world: World, trial: dict[str, Any], gang: Gang) -> None:
    """R7: a reserved task is allocated on its node once the room there suffices; T7: all of them, or none, where they
    are to be together."""
    before = placing.copy_trial(trial)
    take_places_with_room(world, trial, gang)
    waits = [task for task in gang["tasks"] if task["uid"] in claims.slots_of(world, gang["key"], "reserve")]
    left = [task for task in waits if minima.is_waiting(world, task) and task["uid"] not in trial["placed"]]
    if gang["asks"] and waits and (left or not topology.t7_is_together(world, trial, gang)):
        trial.update(before)


def take_places_with_room(world: World, trial: dict[str, Any], gang: Gang, tasks: list[Task] | None = None) -> None:
    """Of all that are reserved for, or of these."""
    slots = claims.slots_of(world, gang["key"], "reserve")
    for task in reserved_tasks(world, gang):
        if tasks is not None and task not in tasks:
            continue
        node = slots[task["uid"]]
        if node not in trial["free"] or not minima.is_waiting(world, task):
            continue
        if not queues.v4_may_take(world, trial, gang["queue"], task["request"]):
            continue
        place = next(one for one in world["nodes"] if one["name"] == node)
        if predicates.g6_standing_reason(gang, task, place) is None:
            free = ports.g6_ports_are_free(world, trial, task, node)
            if free and not predicates.lacking(task, trial["free"][node]):
                placing.put(world, trial, task, node)
