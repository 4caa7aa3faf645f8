"""G8: which gang is served next. The queue is chosen anew after each gang; inside a queue priority, age and name
decide; in a strict FIFO queue a gang that cannot start blocks those behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracle import (
    adapter,
    conservative,
    constraints,
    easy,
    groups,
    later_room,
    minima,
    placing,
    queues,
    reasons,
    records,
    tenants,
    usage,
)

World = dict[str, Any]
Gang = dict[str, Any]

MINIMA, SURPLUS = 0, 1
KNOCKING, ALLOCATING, BACKFILLING = "enqueue", "allocate", "backfill"
SECOND = 1_000_000_000
Room = tuple[list[tuple[dict[str, Any], str]], bool]
"""Tasks and the nodes where room is left to them; whether these could have been other nodes."""
PODS_EXPECTED_WITHIN = 5 * adapter.SECOND


def g8_order(gang: Gang, band: int) -> tuple[Any, ...]:
    """Priority (higher first); usage over time (G12); minima before surplus among equals (G3), unless it is left over
    of a gang that was satisfied before, in a dialect in which such pods are ordinary ones (G7); older first; then
    namespace and name."""
    in_turn = gang["satisfied"] and gang["key"][0] in ("koordinator", "kubernetes")
    is_last = band == SURPLUS and not in_turn
    of_equals = (is_last, gang["created"], gang["key"][1], gang["title"], band)
    return (-gang["priority"], gang["usage_order"], *of_equals)


def standing(world: World, gang: Gang) -> tuple[str, int] | None:
    """Where a gang waits and for what; `None`: nowhere, and if something other than room is in its way, that is
    noted as its reason."""
    if gang["finished"] and not minima.waiting(world, gang):
        return None
    if groups.k7_is_group(world, gang) and not gang["satisfied"]:
        return groups.k7_standing(world, gang)
    why = obstacle(world, gang)
    if why is not None:
        world["reasons"][gang["key"]] = why
        return None
    if not gang["enqueued"]:
        return (KNOCKING, MINIMA)
    return standing_for_room(world, gang)


def standing_for_room(world: World, gang: Gang) -> tuple[str, int] | None:
    tasks = minima.waiting(world, gang)
    if not tasks:
        return None
    needed, rest, short = minima.o1_split(world, gang)
    beyond = minima.m4_ready(world, gang) or (gang["satisfied"] and not needed and not short)
    if beyond and gang["more_waves"]:
        return None  # D4: surplus does not take what a later wave's minimum needs
    wanted = tasks if beyond else [*minima.g7_replacements(world, gang), *needed, *(rest if short else [])]
    if not wanted:
        return None
    band = SURPLUS if beyond else MINIMA
    if BACKFILLING in world["actions"] and all(task["best_effort"] for task in wanted):
        return (BACKFILLING, band)
    return (ALLOCATING, band)


def obstacle(world: World, gang: Gang) -> dict[str, Any] | None:
    """What is in a gang's way before room is looked for (G4, K4, V5)."""
    queue = world["queues"].get(gang["queue"])
    if gang["problem"] or queue is None:
        return reasons.invalid(world, gang)
    if queue["closed"] and gang["object"] is None and not gang["satisfied"]:
        return reasons.invalid(world, gang)
    if tenants.s5_shut(world, gang):
        return reasons.invalid(world, gang)
    if constraints.n1_held(world, gang):
        return reasons.n1_unsupported(world, gang)
    if gang["enqueued"] and not gang["satisfied"] and minima.g4_missing(world, gang):
        if minima.g7_replacements(world, gang) or minima.k9_lacks_nothing(world, gang):
            return None
        if any(task["status"] == "marked" for task in gang["tasks"]):
            return reasons.k8_timed_out(world, gang)
        return reasons.g4_not_enough_pods(world, gang)
    return later_room.s9_refusal(world, gang)


def serve_all(world: World, lane: str, serve: Callable[[World, Gang], dict[str, Any] | None]) -> None:
    """Gives every gang of a lane its turn, until none is left that could come of it."""
    failed: dict[Any, int] = {}
    rooms: dict[tuple[Any, ...], Room] = {}
    while True:
        usage.g12_charge(world)
        waiting: dict[str, list[tuple[Any, int, Gang]]] = {}
        for gang in world["gangs"].values():
            found = standing(world, gang)
            if found is not None and found[0] == lane and failed.get(gang["key"], -1) < found[1]:
                waiting.setdefault(gang["queue"], []).append((g8_order(gang, found[1]), found[1], gang))
        if not waiting:
            if lane == ALLOCATING:
                easy.r8_note_starts(world, failed)
                conservative.r8_note_starts(world, failed)
            return
        name = next_queue(world, waiting, lane)
        _, band, gang = min(waiting[name], key=lambda entry: entry[0])
        if band == MINIMA and world["queues"][name]["fifo"] and g8_blocked(world, gang, lane, failed):
            unit = groups.unit(world, groups.k7_group_of(world, gang)) or [gang]
            for mate in unit if lane != KNOCKING else [gang]:
                world["reasons"][mate["key"]] = reasons.g8_behind(world, mate, unit)
            for mate in groups.gangs_of(world, groups.k7_group_of(world, gang)):  # they cannot start without it
                if not mate["satisfied"]:
                    world["reasons"].setdefault(mate["key"], reasons.g8_behind(world, mate, unit))
            failed[gang["key"]] = MINIMA
            continue
        if band == SURPLUS and g3_surplus_waits(world, gang):
            failed[gang["key"]] = SURPLUS
            continue
        awaited, freely = g8_awaited_room(world, gang, rooms) if lane != KNOCKING else ([], False)
        world["awaited_room"], world["awaited_freely"] = awaited, freely
        world["shadow"] = easy.r8_behind(world, gang, band, failed) if lane == ALLOCATING else None
        world["planned"] = conservative.r8_beside(world, gang, band, failed) if lane == ALLOCATING else None
        before = placing.start_trial(world)["free"] if conservative.is_conservative(world) else {}
        why = serve(world, gang)
        if why is not None and world["shadow"] is not None and world["shadow"].get("waits"):
            why = {**why, "any_numbers": True}  # what is left beside a gang that is packed is free (R8)
        world["awaited_room"], world["awaited_freely"], world["shadow"], world["planned"] = [], False, None, None
        if why is None and lane == ALLOCATING and conservative.is_conservative(world):
            conservative.r8_note_bound(world, gang, before)
        if why is not None:
            failed[gang["key"]] = band
            if awaited:
                world["put_off"].add(gang["key"])
                world["put_off_for"][gang["key"]] = why
            else:
                records.tried(world, gang, why)


def next_queue(world: World, waiting: dict[str, Any], lane: str) -> str:
    """G8: the queue of the highest priority, then of the lowest share; in enqueue what was enqueued counts."""
    if len(waiting) == 1:
        return next(iter(waiting))
    trial = placing.start_trial(world)
    return min(waiting, key=lambda name: queues.g8_queue_order(world, trial, name, lane == KNOCKING))


def g8_blocked(world: World, gang: Gang, lane: str, failed: dict[Any, int]) -> bool:
    """Strict FIFO: a gang before it was not enqueued, failed, waits for another action, or its pods are still made."""
    mine = g8_order(gang, MINIMA)
    for other in world["gangs"].values():
        if other["queue"] != gang["queue"] or other is gang or g8_order(other, MINIMA) >= mine:
            continue
        if g3_is_expected(world, other):
            return True
        found = standing(world, other)
        is_group = groups.k7_is_group(world, other) and not other["satisfied"]
        if is_group and other["enqueued"] and groups.k6_is_incomplete(world, groups.k7_group_of(world, other)):
            continue  # what a gang of an incomplete group holds, it holds out of turn (K6)
        if found is not None and found[1] == MINIMA and (found[0] != lane or other["key"] in failed):
            return True
    return False


def g3_is_expected(world: World, gang: Gang) -> bool:
    """It was enqueued, and its pods are still being made."""
    return placing.m6_counts(world, gang) and bool(minima.g4_missing(world, gang))


def g3_surplus_waits(world: World, gang: Gang) -> bool:
    """G3: minima of gangs that were enqueued and whose pods are being made come first, for 5 s."""
    waits = False
    for other in world["gangs"].values():
        if other["queue"] != gang["queue"] or not g3_is_expected(world, other) or other["enqueued_at"] is None:
            continue
        until = other["enqueued_at"] + PODS_EXPECTED_WITHIN
        if world["now"] < until and g8_order(other, MINIMA) < g8_order(gang, SURPLUS):
            world["timers"].append(until)
            waits = True
    return waits


def g8_awaited_above(world: World, gang: Gang) -> list[Gang]:
    """G8: gangs of higher priority that were just enqueued and whose pods are being made; for 1 s, and not if a pod was
    refused."""
    above = []
    for other in world["gangs"].values():
        if other["priority"] <= gang["priority"] or not g3_is_expected(world, other) or other["enqueued_at"] is None:
            continue
        if other["first_wave"] and not other["failed_create"] and world["now"] < other["enqueued_at"] + SECOND:
            world["timers"].append(other["enqueued_at"] + SECOND)
            above.append(other)
    return above


def g8_awaited_room(world: World, gang: Gang, rooms: dict[tuple[Any, ...], Room]) -> Room:
    """G8: gangs of higher priority that were just enqueued and whose pods are being made: where their minima would go,
    by their templates; for 1 s, and not if a pod was refused. Chosen once for the turns of a cycle, in `rooms`; where
    pods must be packed, so that a gang that the engine puts off has no room, if there is such a way."""
    above = g8_awaited_above(world, gang)
    above.sort(key=lambda one: g8_order(one, MINIMA))
    chosen = tuple(other["key"] for other in above)
    is_put_off = not g8_engine_binds(world, gang)
    if chosen in rooms and not (rooms[chosen][1] and is_put_off and g8_has_room_beside(world, gang, rooms[chosen][0])):
        return rooms[chosen]

    def leaves_it_none(way: dict[str, Any]) -> bool:
        return not is_put_off or not g8_has_room_beside(world, gang, way["new"])

    trial = placing.start_trial(world)
    for other in above:
        attempt = placing.copy_trial(trial)
        if placing.templates_fit(world, attempt, other, other["first_wave"], leaves_it_none):
            trial = attempt
    rooms.clear()
    rooms[chosen] = (list(trial["new"]), trial.get("freely", False))
    return rooms[chosen]


def g8_engine_binds(world: World, gang: Gang) -> bool:
    hint = world["memory"]["hints"].get(world["now"], {}).get("bound", {})
    return any((task["namespace"], task["name"]) in hint for task in minima.waiting(world, gang))


def g8_has_room_beside(world: World, gang: Gang, awaited: list[tuple[dict[str, Any], str]]) -> bool:
    """Whether a gang fits beside the room left to awaited pods; of surplus or replacements, whether one pod does."""
    before, world["awaited_room"] = world.get("awaited_room", []), awaited
    trial = placing.start_trial(world, {gang["key"]})
    if gang["satisfied"] or minima.m4_ready(world, gang):
        found = any(placing.best_node(world, trial, gang, task) for task in minima.waiting(world, gang))
    else:
        found = easy.minima_fit(world, trial, gang)
    world["awaited_room"] = before
    return found
