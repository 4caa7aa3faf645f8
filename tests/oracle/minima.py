"""Who counts towards a gang's minima, who waits, and whether it was satisfied (G2, G4, G7, M4, O1, K9).

Everything is counted anew from the tasks whenever it is asked for.
"""

from __future__ import annotations

from typing import Any

from oracle import sub_groups

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]


def is_occupied(world: World, task: Task) -> bool:
    """Words: allocated in this cycle, bound or running; a succeeded one counts towards minima too."""
    if task["uid"] in world["leaving"]:
        return False
    return task["uid"] in world["placed"] or task["status"] in ("bound", "succeeded")


def is_held(world: World, task: Task) -> bool:
    """K6: it has a place across cycles and is not bound."""
    if task["status"] != "pending" or task["uid"] in world["placed"]:
        return False
    claim = world["memory"]["claims"].get((task["gang"], "hold"))
    return claim is not None and task["uid"] in claim["slots"]


def is_waiting(world: World, task: Task) -> bool:
    return (
        task["status"] == "pending" and task["ours"] and task["uid"] not in world["placed"] and not is_held(world, task)
    )


def waiting(world: World, gang: Gang) -> list[Task]:
    """Those that wait for a node, in the order of O2."""
    return [task for task in gang["tasks"] if is_waiting(world, task)]


def occupied(world: World, gang: Gang, role: str | None = None) -> int:
    return sum(1 for task in gang["tasks"] if is_occupied(world, task) and role in (None, task["role"]))


def held(world: World, gang: Gang, role: str | None = None) -> int:
    return sum(1 for task in gang["tasks"] if is_held(world, task) and role in (None, task["role"]))


def found(world: World, gang: Gang, role: str | None = None) -> int:
    """K9: what counts towards the minimum. With `only-waiting`, once satisfied, those that run do not."""
    count = held(world, gang, role)
    if not k9_only_waiting(world, gang):
        count += occupied(world, gang, role)
    return count


def k9_only_waiting(world: World, gang: Gang) -> bool:
    return gang["match_policy"] == "only-waiting" and bool(gang["was_bound"])


def k9_lacks_nothing(world: World, gang: Gang) -> bool:
    """K9: of a gang of which only waiting pods count, none waits, and none is kept from waiting."""
    kept = any(task["status"] in ("gated", "marked") for task in gang["tasks"])
    return k9_only_waiting(world, gang) and not waiting(world, gang) and not held(world, gang) and not kept


# ---- waves (D3): a role that has run is no part of the present wave, nor is one whose turn comes later


def in_wave(gang: Gang, role: str) -> bool:
    return role not in gang["ran"] and role not in gang["behind"]


def wave_minima(gang: Gang) -> dict[str, int]:
    return {role: count for role, count in gang["minima"].items() if in_wave(gang, role)}


def wave_total(gang: Gang) -> int:
    return int(gang["minimum"]) - sum(count for role, count in gang["minima"].items() if not in_wave(gang, role))


def found_in_wave(world: World, gang: Gang) -> int:
    roles = {task["role"] for task in gang["tasks"]}
    return sum(found(world, gang, role) for role in roles if in_wave(gang, role))


# ---- rules


def m4_ready(world: World, gang: Gang) -> bool:
    """M4: each role first, then the total. A role with no minimum is skipped."""
    if k9_only_waiting(world, gang) and (gang["minimum"] or gang["minima"]):
        return not waiting(world, gang)
    for role, minimum in gang["minima"].items():
        if occupied(world, gang, role) < minimum:
            return False
    return occupied(world, gang) >= gang["minimum"]


def complete(world: World, gang: Gang) -> bool:
    """Whether its minima could be bound: occupied or held."""
    for role, minimum in gang["minima"].items():
        if found(world, gang, role) < minimum:
            return False
    return found(world, gang) >= gang["minimum"]


def g4_missing(world: World, gang: Gang) -> dict[str, int]:
    """G4: members that would have to exist and do not, by role; the empty role stands for the total."""
    lacks: dict[str, int] = {}
    tasks = waiting(world, gang)
    for role, minimum in wave_minima(gang).items():
        lacking = minimum - found(world, gang, role) - sum(1 for task in tasks if task["role"] == role)
        if lacking > 0:
            lacks[role] = lacking
    exist = found_in_wave(world, gang) + sum(1 for task in tasks if in_wave(gang, task["role"]))
    lacking = wave_total(gang) - exist - sum(lacks.values())
    if lacking > 0:
        lacks[""] = lacking
    return lacks


def needed_by_role(world: World, gang: Gang) -> dict[str, int]:
    """What its minima still lack, by role; the empty role stands for the rest of the total."""
    lacks: dict[str, int] = {}
    for role, minimum in gang["minima"].items():
        lacking = minimum - occupied(world, gang, role)
        if lacking > 0:
            lacks[role] = lacking
    rest = gang["minimum"] - occupied(world, gang) - sum(lacks.values())
    if rest > 0:
        lacks[""] = rest
    return lacks


def o1_split(world: World, gang: Gang) -> tuple[list[Task], list[Task], int]:
    """O1: the tasks that a role's minimum still needs, the rest, and how many of the rest the total still needs."""
    lacking = {role: minimum - found(world, gang, role) for role, minimum in wave_minima(gang).items()}
    needed: list[Task] = []
    rest: list[Task] = []
    for task in waiting(world, gang):
        if not in_wave(gang, task["role"]):
            continue
        if lacking.get(task["role"], 0) > 0:
            lacking[task["role"]] -= 1
            needed.append(task)
        else:
            rest.append(task)
    short = wave_total(gang) - found_in_wave(world, gang) - len(needed)
    if gang["tree"] is not None and gang["satisfied"]:  # a sub-group that has not started makes up no total
        short = min(short, len(sub_groups.t0_surplus(world, gang, rest)[1]))
    return needed, rest, max(0, short)


def g7_replacements(world: World, gang: Gang) -> list[Task]:
    """G7, D3: tasks for members that an earlier, satisfied wave has lost are ordinary pods."""
    chosen: list[Task] = []
    for role in gang["ran"]:
        lacking = gang["minima"][role] - occupied(world, gang, role)
        chosen += [task for task in waiting(world, gang) if task["role"] == role][: max(0, lacking)]
    return sorted(chosen, key=lambda task: task["order"])


def g7_satisfied(world: World) -> None:
    """G7: a gang whose minima were bound is satisfied, until a minimum is raised or all of its pods are gone. Minima
    that are bound now count as well (G11); of a group, only if those of all its gangs are (K7)."""
    remembered = world["memory"]["satisfied"]
    for gang in world["gangs"].values():
        key = gang["key"]
        gang["was_bound"] = key in remembered
        sub_groups.t0_choose_first(world, gang)
        if not any(task["status"] in ("bound", "succeeded", "failed") for task in gang["tasks"]):
            remembered.pop(key, None)
        elif (minima_are_bound(world, gang) and k7_others_are_bound(world, gang)) or (
            key not in remembered and gang["started"]
        ):
            remembered[key] = present_minima(gang)
        sub_groups.t0_choose_first(world, gang)
        mark = remembered.get(key)
        gang["was_bound"] = mark is not None  # not by this cycle: what waits beside its minima is surplus (G3, K9)
        gang["covered"] = mark is not None and covers(mark, gang)
        gang["ran"], gang["behind"] = set(), set()
        while gang["waves"] and not gang["covered"]:
            d3_split(gang, remembered.get(key))
            if not g11_wave_is_bound(world, gang):
                break
            remember_bound(world, gang)
            gang["covered"] = covers(remembered[key], gang)
        gang["satisfied"] = gang["covered"] and gang["match_policy"] == "once-satisfied"
    for key in list(remembered):
        if key not in world["gangs"]:
            del remembered[key]


def d3_split(gang: Gang, mark: dict[str, Any] | None) -> None:
    """D3: the roles whose wave was satisfied, and those whose turn comes after the present one."""
    roles = (mark or {"roles": {}})["roles"]
    gang["ran"] = {role for role, count in gang["minima"].items() if roles.get(role, 0) >= count}
    left = [gang["wave_of"].get(role, 0) for role in gang["minima"] if role not in gang["ran"]]
    gang["behind"] = {
        role for role in gang["minima"] if role not in gang["ran"] and gang["wave_of"].get(role, 0) > min(left)
    }


def g11_wave_is_bound(world: World, gang: Gang) -> bool:
    """G11: minima of the present wave that are bound now count as satisfied, in a group if all its gangs are (K7)."""
    counts: dict[str, int] = {}
    for task in gang["tasks"]:
        if task["status"] in ("bound", "succeeded") and in_wave(gang, task["role"]):
            counts[task["role"]] = counts.get(task["role"], 0) + 1
    roles = wave_minima(gang)
    if not roles or any(counts.get(role, 0) < count for role, count in roles.items()):
        return False
    return sum(counts.values()) >= wave_total(gang) and k7_others_are_bound(world, gang)


def minima_are_bound(world: World, gang: Gang) -> bool:
    for role, minimum in gang["minima"].items():
        if sum(1 for one in gang["tasks"] if one["role"] == role and one["status"] in ("bound", "succeeded")) < minimum:
            return False
    return sum(1 for task in gang["tasks"] if task["status"] in ("bound", "succeeded")) >= gang["minimum"]


def k7_others_are_bound(world: World, gang: Gang) -> bool:
    from oracle import groups

    for key in groups.k7_group_of(world, gang):
        other = world["gangs"][key]
        if other is not gang and not minima_are_bound(world, other) and key not in world["memory"]["satisfied"]:
            return False
    return True


def present_minima(gang: Gang) -> dict[str, Any]:
    return {"total": gang["minimum"], "roles": dict(gang["minima"])}


def covers(mark: dict[str, Any], gang: Gang) -> bool:
    if mark["total"] < gang["minimum"]:
        return False
    return all(mark["roles"].get(role, 0) >= count for role, count in gang["minima"].items())


def started(world: World, gang: Gang) -> set[str]:
    """Its members that were bound, also those that have ended since."""
    known = ("bound", "succeeded", "failed")
    return {task["uid"] for task in gang["tasks"] if task["status"] in known or task["uid"] in world["placed"]}


def g11_mark_is_gone(world: World, gang: Gang) -> None:
    """G11, Words: the pod with the mark went while no scheduler ran: its gang was committed, and that its minima were
    larger is not known any more."""
    mark = world["memory"]["satisfied"][gang["key"]]
    mark["total"] = min(mark["total"], gang["minimum"])
    mark["roles"] = {role: min(count, gang["minima"].get(role, 0)) for role, count in mark["roles"].items()}


def remember_bound(world: World, gang: Gang) -> None:
    """The minima of the present wave are bound by the decision that is being carried out."""
    roles = {role: count for role, count in gang["minima"].items() if role not in gang["behind"]}
    rest = gang["minimum"] - sum(gang["minima"].values())
    world["memory"]["satisfied"][gang["key"]] = {"total": rest + sum(roles.values()), "roles": roles}
