"""K12: gangs and groups whose claims are in each other's way, so that each waits for the other.

A party is a gang, or gangs that start together. Parties are deadlocked if each would start now if all of them released
their claims. The lowest in order release all of theirs so that one can start.
"""

from __future__ import annotations

from typing import Any

from oracle import claims, groups, minima, order, placing, predicates, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Key = tuple[str, str, str]

KINDS = ("hold", "reserve", "preempt")


def k12_deadlock(world: World) -> None:
    stuck = [keys for keys in parties(world) if all(has_its_room(world, key) for key in keys)]
    stuck.sort(key=lambda keys: min(order.g8_order(gang, order.MINIMA) for gang in groups.gangs_of(world, keys)))
    while len(stuck) > 1:
        left = [keys for keys in stuck if fits_if(world, keys, stuck)]
        if len(left) == len(stuck):
            break
        stuck = left
    if len(stuck) < 2:
        return
    victims, winner = chosen(world, stuck)
    for victim in victims:
        groups.let_go(world, victim)
        for key in victim:
            claims.end(world, key, *KINDS)
    why = placing.serve(world, unit_of(world, winner)[0])
    assert why is None, f"{winner} was to start: {why}"


def parties(world: World) -> list[list[Key]]:
    """Those that have claims."""
    found: list[list[Key]] = []
    for (key, kind), claim in sorted(world["memory"]["claims"].items()):
        keys = world["groups"].get(key) or [key]
        if kind in KINDS and claim["slots"] and key in world["gangs"] and keys not in found:
            found.append(keys)
    return found


def has_its_room(world: World, key: Key) -> bool:
    """Whether what is reserved or being freed for it is free already: pods that run or leave do not keep it waiting."""
    gang = world["gangs"].get(key)
    trial = placing.start_trial(world)
    nodes = {node["name"]: node for node in world["nodes"]}
    for task in gang["tasks"] if gang else ():
        freed = claims.slots_of(world, key, "preempt").get(task["uid"])
        if freed is not None and minima.is_waiting(world, task):  # its room is taken in the trial
            if freed not in nodes or predicates.g6_standing_reason(gang, task, nodes[freed]) is not None:
                return False
            if any(trial["free"][freed].get(name, 0) < 0 for name in task["request"]):
                return False
    for task in reserve.reserved_tasks(world, gang) if gang else ():
        reserved = claims.slots_of(world, key, "reserve")[task["uid"]]
        if reserved not in nodes or predicates.lacking(task, trial["free"][reserved]):
            return False
    return True


def chosen(world: World, stuck: list[list[Key]]) -> tuple[list[list[Key]], list[Key]]:
    """Who releases, the lowest in order first and no more than needed, and who starts."""
    victims: list[list[Key]] = []
    winner = None
    for victim in reversed(stuck[1:]):
        victims.append(victim)
        able = [keys for keys in stuck if keys not in victims and fits_if(world, keys, victims)]
        if able:
            winner = able[0]
            break
    assert winner is not None, "the first of them fits if all others release"
    for victim in reversed(list(victims)):
        others = [keys for keys in victims if keys is not victim]
        if fits_if(world, winner, others):
            victims = others
    return victims, winner


def unit_of(world: World, keys: list[Key]) -> list[Gang]:
    gangs = groups.gangs_of(world, keys)
    if gangs and groups.k7_is_group(world, gangs[0]):
        return groups.unit(world, keys)
    return [gang for gang in gangs if not gang["satisfied"] and not minima.m4_ready(world, gang)]


def fits_if(world: World, keys: list[Key], released: list[list[Key]]) -> bool:
    """Whether it could start now if these released their claims, its own holds being placed anew."""
    unit = unit_of(world, keys)
    if not unit or any(groups.k7_obstacle(world, gang) is not None for gang in groups.gangs_of(world, keys)):
        return False
    if groups.k7_unsatisfied(world, keys):
        return False
    gone = {key for one in released if one is not keys for key in one}
    with claims.without(world, gone, *KINDS), claims.without(world, keys, "hold"):
        strict = groups.k7_is_group(world, unit[0]) and not groups.is_non_strict(world, keys)
        if strict and groups.k7_too_little_free(world, keys) is not None:
            return False
        trial = placing.start_trial(world, set(keys))
        for gang in unit:
            claims.r7_take_own_places(world, trial, gang)
        return placing.g2_all_or_nothing(world, trial, unit) is None
