"""What a plan promises (P1 to P3, K7): the minima fit for certain if these victims leave, none leaves in vain, no gang
is left below its minimum, budgets and shares are kept."""

from __future__ import annotations

import itertools
from typing import Any

from oracle import claims, evictable, groups, minima, placing, queues, waves

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]


def broken_promises(
    world: World, unit: list[Gang], action: str, victims: list[Task], allowed: list[list[Task]]
) -> list[str]:
    """P1, P2: victims may be evicted; the minima then fit for certain; no proper subset would do; no higher level is
    touched if lower ones suffice; a gang is taken below its minimum only as a whole."""
    what = f"{action} for {unit[0]['title']} evicts {[task['name'] for task in victims]}"
    may_leave = {task["uid"] for one in allowed for task in one} | evictable.spared_singly(world, unit, action)
    for task in victims:
        if task["uid"] not in may_leave:
            return [f"{what}: {task['name']} may not be evicted for it"]
    if not p2_budgets_allow(world, victims):
        return [f"{what}: more than budgets allow"]
    pieces = pieces_of(world, victims)
    if pieces is None:
        return [f"{what}: a gang is left below its minimum"]
    if not fits_without(world, unit, pieces, exactly=True):
        return [f"{what}: its minima would not fit"]
    found = [
        f"{what}: {[task['name'] for task in one]} in vain"
        for one in pieces
        if suffices(world, unit, [other for other in pieces if other is not one], pieces)
    ]
    found += [
        f"{what}: of {[task['name'] for task in one]} some would do"
        for one in pieces
        if p1_part_suffices(world, unit, action, one, pieces)
    ]
    level = max(evictable.priority_of(world, one) for one in pieces)
    lower = [one for one in allowed if evictable.priority_of(world, one) < level]
    together = p2_budgets_allow(world, [task for one in lower for task in one])
    if action == "preempt" and together and suffices(world, unit, lower, pieces):
        found.append(f"{what}: priority {level} is touched, and lower ones suffice")
    if action == "preempt" and not t7_costs_least(world, unit, pieces, allowed, level):
        found.append(f"{what}: one pod of another domain would do")
    return found


def t7_costs_least(
    world: World, unit: list[Gang], pieces: list[list[Task]], allowed: list[list[Task]], level: int
) -> bool:
    """T7, P1: of several domains the one whose victims cost least: no other is freed by one pod where several leave."""
    if not any(gang["asks"] for gang in unit) or sum(map(len, pieces)) < 2:
        return True
    single = [one for one in allowed if len(one) == 1 and evictable.priority_of(world, one) <= level]
    nodes = {task["node"] for one in pieces for task in one}
    elsewhere = [one for one in single if one[0]["node"] not in nodes]
    return not any(p2_budgets_allow(world, one) and suffices(world, unit, [one], pieces) for one in elsewhere)


def pieces_of(world: World, victims: list[Task]) -> list[list[Task]] | None:
    """Single surplus members, and whole gangs with those they start with; `None`: a gang is broken."""
    pieces: list[list[Task]] = []
    whole: set[Any] = set()
    leaving = {
        gang["key"]: [task for task in victims if task["gang"] == gang["key"]] for gang in world["gangs"].values()
    }
    for key, mine in leaving.items():
        gang = world["gangs"][key]
        if not mine or key in whole or evictable.stays_whole(world, gang, mine):
            continue
        mates = groups.gangs_of(world, groups.k7_group_of(world, gang))
        members = [task for mate in mates for task in mate["tasks"] if evictable.is_bound(world, task)]
        if any(task not in victims for task in members):
            return None
        whole |= {mate["key"] for mate in mates}
        pieces.append(members)
    return pieces + [[task] for key, mine in leaving.items() if key not in whole for task in mine]


def p1_part_suffices(world: World, unit: list[Gang], action: str, whole: list[Task], pieces: list[list[Task]]) -> bool:
    """P1: whether surplus members would do in place of a gang that leaves as a whole. Of small gangs only."""
    singly = evictable.spared_singly(world, unit, action)
    spare = [task for task in whole if task["uid"] in singly]
    others = [one for one in pieces if one is not whole]
    if len(whole) == 1 or len(spare) > 6:
        return False
    for count in range(1, len(spare) + 1):
        for chosen in itertools.combinations(spare, count):
            keys = {task["gang"] for task in chosen}
            broken = [
                key
                for key in keys
                if not evictable.stays_whole(
                    world, world["gangs"][key], [task for task in chosen if task["gang"] == key]
                )
            ]
            fewer = [*others, *([task] for task in chosen)]
            if broken or not suffices(world, unit, fewer, pieces):
                continue
            victims = [task for one in fewer for task in one]
            if action == "preempt" or (p2_in_turn(world, unit, fewer) and p3_accepts(world, unit, victims)):
                return True
    return False


def p2_budgets_allow(world: World, victims: list[Task]) -> bool:
    """P2: each PodDisruptionBudget allows that so many of its pods leave."""
    for budget in world["budgets"]:
        labels = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
        pods = [
            task
            for task in world["tasks"]
            if task["namespace"] == budget["metadata"]["namespace"]
            and task["status"] not in ("succeeded", "failed")
            and all(task["labels"].get(key) == value for key, value in labels.items())
        ]
        healthy = sum(1 for task in pods if evictable.is_bound(world, task) and task["started"] is not None)
        count = sum(1 for task in victims if task in pods)
        if count and count > healthy - least_available(budget["spec"], len(pods)):
            return False
    return True


def least_available(spec: dict[str, Any], expected: int) -> int:
    def number(value: Any) -> int:
        return -(-expected * int(value[:-1]) // 100) if isinstance(value, str) else int(value)

    if spec.get("maxUnavailable") is not None:
        return expected - number(spec["maxUnavailable"])
    return number(spec.get("minAvailable", 1))


def p2_in_turn(world: World, unit: list[Gang], pieces: list[list[Task]]) -> bool:
    """P2: each queue is above its share before each eviction, and keeps its guarantee after the last. Pods that are
    leaving already count as gone."""
    deserved = queues.v4_deserved(world, placing.start_trial(world))
    trial = placing.start_trial(world, gone=leaving_anyway(world))
    ours = queues.path_up(world, unit[0]["queue"])
    for name in {world["gangs"][task["gang"]]["queue"] for one in pieces for task in one}:
        mine = [one for one in pieces if world["gangs"][one[0]["gang"]]["queue"] == name]
        for place in queues.path_up(world, name):
            if place in ours:
                continue
            if not any(evictable.above_share(world, less(trial, place, mine, one), deserved, place) for one in mine):
                return False
            left = less(trial, place, mine, None)["used"].get(place, {})
            for resource, count in world["queues"][place]["guarantee"].items():
                if left.get(resource, 0) < count:
                    return False
    return True


def less(trial: dict[str, Any], place: str, pieces: list[list[Task]], but: list[Task] | None) -> dict[str, Any]:
    """What the queue uses once all of these left but one."""
    used = dict(trial["used"].get(place, {}))
    for one in pieces:
        for task in one if one is not but else ():
            queues.add(used, task["request"], -1)
    return {"used": {place: used}}


def p3_accepts(world: World, unit: list[Gang], victims: list[Task]) -> bool:
    """P3: no reclaim whose victims could take it back at once."""
    before = placing.start_trial(world)
    deserved = queues.v4_deserved(world, before)
    gone = {task["uid"] for task in victims} | leaving_anyway(world)
    trial = placing.start_trial(world, {gang["key"] for gang in unit}, gone=gone)
    place_needs(world, trial, unit)
    if not evictable.above_share(world, trial, deserved, unit[0]["queue"]):
        return True
    asked: dict[str, Amounts] = {}
    for task in victims:
        queues.add(asked.setdefault(world["gangs"][task["gang"]]["queue"], {}), task["request"])
    return not any(evictable.within_share(trial, deserved, name, amounts) for name, amounts in asked.items())


def fits_without(world: World, unit: list[Gang], victims: list[list[Task]], *, exactly: bool = False) -> bool:
    """Whether the minima fit for certain if these leave, and those that are leaving anyway have left. `exactly`: with
    just these victims, `minResources` of a Strict group must be free then too (K7)."""
    gone = {task["uid"] for one in victims for task in one}
    lifted = {gang["key"] for gang in unit}
    trial = placing.start_trial(world, lifted, gone=gone | leaving_anyway(world))
    if exactly and not k7_reaches(world, trial, unit):
        return False
    return place_needs(world, trial, unit)


def suffices(world: World, unit: list[Gang], fewer: list[list[Task]], victims: list[list[Task]]) -> bool:
    """Whether fewer victims would do as well. Of a satisfied gang, lost members are replaced together or one by one
    (G7): then as many must be."""
    if not unit[0]["satisfied"]:
        return fits_without(world, unit, fewer)
    return replaced_without(world, unit[0], fewer) >= replaced_without(world, unit[0], victims)


def replaced_without(world: World, gang: Gang, victims: list[list[Task]]) -> int:
    """How many of a satisfied gang's lost members fit if these leave, and those that are leaving anyway have left."""
    gone = {task["uid"] for one in victims for task in one}
    trial = placing.start_trial(world, {gang["key"]}, gone=gone | leaving_anyway(world))
    placing.one_by_one(world, trial, gang, evictable.wanted_at_most(world, gang))
    return len(trial["new"])


def k7_asked(world: World, unit: list[Gang]) -> Amounts:
    """K7: the `minResources` of a Strict group."""
    keys = groups.k7_group_of(world, unit[0])
    asked: Amounts = {}
    if unit[0]["satisfied"] or not groups.k7_is_group(world, unit[0]) or groups.is_non_strict(world, keys):
        return asked
    for gang in groups.gangs_of(world, keys):
        queues.add(asked, gang["needs_free"])
    return {name: count for name, count in asked.items() if name != "pods"}


def k7_reaches(world: World, trial: dict[str, Any], unit: list[Gang]) -> bool:
    """K7: free room, with what the plan frees and what its own members have, reaches `minResources`."""
    asked, free = k7_asked(world, unit), queues.free_total(world, trial)
    for gang in groups.gangs_of(world, groups.k7_group_of(world, unit[0])):
        for task in gang["tasks"]:
            if evictable.is_bound(world, task) or task["uid"] in world["placed"]:
                queues.add(free, task["request"])
    return all(count <= free.get(name, 0) for name, count in asked.items())


def leaving_anyway(world: World) -> set[str]:
    return {task["uid"] for task in world["tasks"] if task["status"] == "terminating"} | world["leaving"]


def place_needs(world: World, trial: dict[str, Any], unit: list[Gang]) -> bool:
    for gang in unit:
        if gang["satisfied"]:  # what was lost is replaced one by one (G7)
            tasks = evictable.wanted_at_most(world, gang)
            return bool(tasks) and placing.one_by_one(world, trial, gang, tasks[:1]) is None
        lost = minima.g7_replacements(world, gang)
        if lost and world.get("one_lost"):
            return placing.one_by_one(world, trial, gang, lost[:1]) is None
        if placing.one_by_one(world, trial, gang, lost) is not None:
            return False
        if minima.g4_missing(world, gang):
            continue
        waves.d5_stand_in(world, trial, gang)
        claims.r7_take_own_places(world, trial, gang)
    ready = [gang for gang in unit if not minima.g4_missing(world, gang)]
    return placing.g2_all_or_nothing(world, trial, ready) is None
