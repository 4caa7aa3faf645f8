"""P: preempt and reclaim, planned whole before any pod is evicted.

Which victims are chosen is free within P1's promises. The oracle is given the engine's victims, checks the promises
(`violations` of the memory says which ones it would break) and takes them over; where the engine evicts none, the
oracle looks for a plan of its own, and if there is one evicts, so that the two runs differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from oracle import claims, evictable, groups, minima, order, placing, promises, queues, reserve, tenants, waves

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]

SYSTEM_CRITICAL = 2_000_000_000


def preempt(world: World) -> None:
    plan_for_all(world, "preempt")


def reclaim(world: World) -> None:
    plan_for_all(world, "reclaim")


def plan_for_all(world: World, action: str) -> None:
    """R8: a gang that waits for evictions may not end before a reservation is due: run times do not count here."""
    world["evicting"] = True
    serve_all(world, action)
    world["evicting"] = False


def serve_all(world: World, action: str) -> None:
    """Every gang that waits for a minimum, or for what it lost, in order; not those that were put off for the room of
    awaited pods (G8): they are tried in the next cycle."""
    trial = placing.start_trial(world)
    waits = ((order.ALLOCATING, order.MINIMA), (order.BACKFILLING, order.MINIMA))
    waiting = []
    for gang in world["gangs"].values():
        found = order.standing(world, gang)
        if found in waits and gang["key"] not in world["put_off"]:
            turn = (queues.g8_queue_order(world, trial, gang["queue"], False), order.g8_order(gang, order.MINIMA))
            waiting.append((turn, gang))
    for _, gang in sorted(waiting, key=lambda entry: entry[0]):
        if order.standing(world, gang) not in waits:
            continue
        everyone = dict.fromkeys(world["gangs"], order.MINIMA)
        if world["queues"][gang["queue"]]["fifo"] and order.g8_blocked(world, gang, order.ALLOCATING, everyone):
            continue
        serve(world, gang, action)


def serve(world: World, gang: Gang, action: str) -> None:
    together = groups.k7_is_group(world, gang) and not gang["satisfied"]
    keys = groups.k7_group_of(world, gang)
    unit = groups.unit(world, keys) if together else [gang]
    if not unit or any(has_claim(world, one, "preempt") for one in unit):
        return
    if p2_never_preempts(world, unit) or not all(reserve.r7_could_start(world, one) for one in unit):
        return
    lower = r5_lower_claims(world, unit) if action == "preempt" else []
    if lower and r5_release_claims(world, unit, lower):
        return
    lost = not gang["satisfied"] and any(minima.g7_replacements(world, one) for one in unit)
    if not find_room(world, unit, action, lower) and lost:
        world["one_lost"] = True
        find_room(world, unit, action, lower)
        world["one_lost"] = False


def find_room(world: World, unit: list[Gang], action: str, lower: list[Released]) -> bool:
    """R5: a reservation of lower priority closes no node to a plan of `reclaim` if there is no plan without it."""
    if make_room(world, unit, action, lower):
        return True
    reserved = [one for one in r5_lower_claims(world, unit) if one[0] == "reserve"] if action == "reclaim" else []
    return bool(reserved) and make_room(world, unit, action, reserved)


def make_room(world: World, unit: list[Gang], action: str, lower: list[Released]) -> bool:
    """For the minima of all and what they have lost; or, as lost members are replaced one by one (G7), for the first of
    these alone, if that is asked for."""
    held = [one["key"] for one in unit if groups.slots_held(world, one)]
    with r5_released(world, lower):
        plan = p1_plan(world, unit, action, last=not held)
        if plan is not None:
            plan["places"] = places_of_plan(world, unit, plan)
    if plan is None and held:  # what its gangs hold may be in their own way
        with r5_released(world, lower), claims.without(world, held, "hold"):
            plan = p1_plan(world, unit, action, last=True)
            if plan is not None:
                plan["places"] = places_of_plan(world, unit, plan)
                plan["held"] = held
    if plan is not None:
        carry_out(world, unit, plan, action, lower)
    return plan is not None


def has_claim(world: World, gang: Gang, *kinds: str) -> bool:
    return any(claims.claim_of(world, gang["key"], kind) is not None for kind in kinds)


def p2_never_preempts(world: World, unit: list[Gang]) -> bool:
    """P2: `preemptionPolicy: Never`, of the gang's class or of a pod for which room would be made."""
    if any(gang["never_preempts"] for gang in unit):
        return True
    return any(task["never_preempts"] for gang in unit for task in evictable.wanted_at_most(world, gang))


# ---- P1: plans


def p1_plan(world: World, unit: list[Gang], action: str, *, last: bool) -> dict[str, Any] | None:
    """The engine's victims, if it has any and they keep P1's promises; else a plan of our own, if there is one. Not
    `last`: it is asked once more, with what its gangs hold released."""
    title = unit[0]["title"]
    hints = world["memory"]["hints"].get(world["now"], {}).get("evicted", {})
    plans, hidden = hints.get((action, title)) or [], hints.get((action, tenants.HIDDEN)) or []
    allowed = evictable.victim_units(world, unit, action)
    broken: list[str] = []
    for used in chosen_plans(plans, hidden):
        hint = {name for one in used for name in one[0]}
        victims = [task for task in world["tasks"] if (task["namespace"], task["name"]) in hint]
        if len(victims) < len(hint) or not all(evictable.is_bound(world, task) for task in victims):
            continue
        if not last and not promises.fits_without(world, unit, [victims], exactly=True):
            return None
        broken = promises.broken_promises(world, unit, action, victims, allowed)
        if not broken:
            for one in used:
                del one[0]
            return {"victims": victims}
    if broken:  # perhaps it is meant for a later cycle of this instant; if not, the two runs differ
        world["memory"]["violations"] += [one for one in broken if one not in world["memory"]["violations"]]
        return None
    if promises.fits_without(world, unit, []):  # as soon as those that are leaving have left
        return {"victims": []} if promises.fits_without(world, unit, [], exactly=True) else None
    if promises.k7_asked(world, unit):
        return None  # which of several sets of victims reaches `minResources` is left open
    chosen = own_plan(world, unit, allowed, action)
    victims = {task["uid"]: task for one in chosen or () for task in one}  # its surplus goes with a whole gang
    return {"victims": list(victims.values())} if chosen else None


def chosen_plans(plans: list[Any], hidden: list[Any]) -> list[list[Any]]:
    """Which of the engine's sets of victims may be one plan: victims in other namespaces do not read for which gang
    they leave (S7)."""
    ways = [[plans, hidden], [plans], [hidden]] if hidden else [[plans]]
    return [way for way in ways if all(way)]


def own_plan(world: World, unit: list[Gang], allowed: list[list[Task]], action: str) -> list[list[Task]] | None:
    """Lowest levels first, then as few as will do. Of reclaim only plans of a few victims are looked for, and where
    there are PodDisruptionBudgets only plans of one."""
    if world["budgets"]:
        return own_single(world, unit, allowed, action)
    if action == "reclaim":
        return own_reclaim(world, unit, allowed)
    for level in sorted({evictable.priority_of(world, one) for one in allowed}):
        chosen = [one for one in allowed if evictable.priority_of(world, one) <= level]
        if not promises.fits_without(world, unit, chosen):
            continue
        for one in sorted(chosen, key=lambda some: (evictable.priority_of(world, some), len(some)), reverse=True):
            fewer = [other for other in chosen if other is not one]
            if promises.fits_without(world, unit, fewer):
                chosen = fewer
        return chosen
    return None


def own_single(world: World, unit: list[Gang], allowed: list[list[Task]], action: str) -> list[list[Task]] | None:
    for one in sorted(allowed, key=lambda some: evictable.priority_of(world, some)):
        if (
            promises.pieces_of(world, one) is None
            or not promises.p2_budgets_allow(world, one)
            or not promises.fits_without(world, unit, [one])
        ):
            continue
        if action == "preempt" or (promises.p2_in_turn(world, unit, [one]) and promises.p3_accepts(world, unit, one)):
            return [one]
    return None


def own_reclaim(world: World, unit: list[Gang], allowed: list[list[Task]]) -> list[list[Task]] | None:
    if not promises.fits_without(world, unit, allowed):
        return None
    for count in range(1, min(len(allowed), 3) + 1):
        for chosen in itertools.combinations(allowed, count):
            victims = [task for one in chosen for task in one]
            if len({task["uid"] for task in victims}) < len(victims):
                continue  # surplus of a gang that goes as a whole goes with it, and counts once
            if promises.pieces_of(world, victims) is None or not promises.p2_in_turn(world, unit, list(chosen)):
                continue
            if promises.fits_without(world, unit, list(chosen)) and promises.p3_accepts(world, unit, victims):
                return list(chosen)
    return None


# ---- carried out


def carry_out(world: World, unit: list[Gang], plan: dict[str, Any], action: str, lower: list[Released]) -> None:
    """P3: the freed room is a claim of the preemptor until it lands or gives up. Claims of lower priority on its nodes
    end (R5)."""
    nodes = {node for _, node in plan["places"]}
    of_use = [one for one in lower if nodes & r5_nodes(world, one)]
    if not plan["victims"] and not of_use:
        return
    r5_release(world, of_use)
    for key in plan.get("held", ()):
        groups.let_go(world, [key])
    for gang in unit:
        claims.end(world, gang["key"], "reserve")
        mine = [(task, node) for task, node in plan["places"] if task["gang"] == gang["key"]]
        slots = {task["uid"]: node for task, node in mine if "slot" not in task}
        waves.d5_claim(world, gang, [(task, node) for task, node in mine if "slot" in task])
        if slots:
            claims.make(world, gang["key"], "preempt", slots)
    verb = "Preempted" if action == "preempt" else "Reclaimed"
    for task in plan["victims"]:
        world["leaving"].add(task["uid"])
        world["memory"]["was_evicted"].add(task["gang"])
        world["evictions"].append((task, verb, f"makes room for {unit[0]['title']}"))
        for gang in unit:
            world["memory"]["evicted_for"].setdefault(gang["key"], set()).add(task["gang"])


def places_of_plan(world: World, unit: list[Gang], plan: dict[str, Any]) -> list[tuple[Task, str]]:
    """Where its tasks are to land: where the engine means to, if that is possible; else by our own placing."""
    gone = {task["uid"] for task in plan["victims"]} | promises.leaving_anyway(world)
    lifted = {gang["key"] for gang in unit}
    hint = world["memory"]["hints"].get(world["now"], {}).get("reserved", {})
    trial = placing.start_trial(world, lifted, gone=gone)
    found: list[tuple[Task, str]] = []
    for gang in unit:
        for task in [*minima.waiting(world, gang), *waves.d5_later_tasks(world, gang)]:
            node = hint.get((task["namespace"], task["name"]))
            if node is not None and placing.fits_on(world, trial, gang, task, node):
                placing.put(world, trial, task, node)
                found.append((task, node))
    if found:
        return found
    trial = placing.start_trial(world, lifted, gone=gone)
    promises.place_needs(world, trial, unit)
    new: list[tuple[Task, str]] = trial["new"]
    return new


Released = tuple[str, tuple[Any, ...]]
"""A kind of claim, and the gangs whose claims of that kind end together."""


def r5_lower_claims(world: World, unit: list[Gang]) -> list[Released]:
    """R5: the claims of lower priority that could be released; what a group holds is released as a whole. Lowest
    priority first, then last in order. Room that was reclaimed for another queue is that queue's by its share, and no
    gang takes back what it was evicted from (P3)."""
    priority = min(gang["priority"] for gang in unit)  # S1: no gang is given the priority of its group
    own = {gang["key"] for gang in unit}

    def is_lower(key: Any, kind: str) -> bool:
        gang = world["gangs"].get(key)
        if gang is None or key in own or gang["priority"] >= priority:
            return False
        if kind == "preempt" and gang["queue"] != unit[0]["queue"]:
            return False
        return not any(one["key"] in world["memory"]["evicted_for"].get(key, ()) for one in unit)

    found: list[Released] = []
    for kind in ("reserve", "preempt", "wave"):
        found += [(kind, (key,)) for key, _ in claims.all_of(world, kind) if is_lower(key, kind)]
    for keys in groups.distinct(world):
        holds = any(groups.slots_held(world, gang) for gang in groups.gangs_of(world, keys))
        if holds and all(is_lower(key, "hold") for key in keys):
            found.append(("hold", tuple(keys)))
    found.sort(key=lambda one: order.g8_order(world["gangs"][one[1][0]], order.MINIMA), reverse=True)
    return sorted(found, key=lambda one: world["gangs"][one[1][0]]["priority"])


def r5_nodes(world: World, released: Released) -> set[str]:
    kind, keys = released
    return {node for key in keys for node in claims.slots_of(world, key, kind).values()}


@contextmanager
def r5_released(world: World, lower: list[Released]) -> Iterator[None]:
    """While it lasts these claims are released."""
    with ExitStack() as stack:
        for kind, keys in lower:
            stack.enter_context(claims.without(world, keys, kind))
        yield


def r5_release(world: World, lower: list[Released]) -> None:
    for kind, keys in lower:
        for key in keys:
            claims.end(world, key, kind)
            if kind == "hold":
                world["memory"]["clocks"].pop(key, None)


def r5_release_claims(world: World, unit: list[Gang], lower: list[Released]) -> bool:
    """R5: if it fits once claims of lower priority are released, they are, no more of them than it takes."""
    if not fits_if_released(world, unit, lower):
        return False
    chosen = list(lower)
    for one in reversed(lower):
        others = [other for other in chosen if other is not one]
        if len(chosen) > 1 and fits_if_released(world, unit, others):
            chosen = others
    r5_release(world, chosen)
    why = placing.serve(world, unit[0])
    assert why is None, f"{unit[0]['title']} was to start"
    return True


def fits_if_released(world: World, unit: list[Gang], lower: list[Released]) -> bool:
    ready = [gang for gang in unit if not minima.g4_missing(world, gang)]
    with r5_released(world, lower):
        trial = placing.start_trial(world, {gang["key"] for gang in unit})
        if not promises.k7_reaches(world, trial, unit):
            return False
        for gang in ready:
            waves.d5_stand_in(world, trial, gang)
            claims.r7_take_own_places(world, trial, gang)
        return bool(ready) and placing.g2_all_or_nothing(world, trial, ready) is None


def p3_forget_victims(world: World) -> None:
    """P3: as long as a gang exists no pod of it is evicted for a gang that was evicted for it."""
    for key in set(world["memory"]["evicted_for"]) - set(world["gangs"]):
        del world["memory"]["evicted_for"][key]


def p3_claims_that_stand(world: World) -> None:
    """P3: it gives up when the room will not be there: its node is gone or closed to it, or those that were to leave
    stay; when it could not start even with that room; and when it landed, or nothing of it waits any more. Gangs that
    start together give up together."""
    for key, claim in claims.all_of(world, "preempt"):
        gang = world["gangs"].get(key)
        if gang is None or minima.m4_ready(world, gang):
            claims.end(world, key, "preempt")
            continue
        tasks = [task for task in gang["tasks"] if task["uid"] in claim["slots"] and minima.is_waiting(world, task)]
        claim["slots"] = {task["uid"]: claim["slots"][task["uid"]] for task in tasks}
        stays = bool(tasks) and not gang["finished"] and reserve.r7_could_start(world, gang)
        kept = [one for one, _ in waves.d5_kept(world, gang)]
        stays = stays and waves.d5_have_all(gang, kept)  # the room of its later waves was freed with it
        if not stays or not all(will_have_room(world, gang, task, claim["slots"][task["uid"]]) for task in tasks):
            for mate in groups.k7_group_of(world, gang):
                claims.end(world, mate, "preempt")


def will_have_room(world: World, gang: Gang, task: Task, name: str) -> bool:
    from oracle import predicates

    node = next((one for one in world["nodes"] if one["name"] == name), None)
    if node is None or predicates.g6_standing_reason(gang, task, node) is not None:
        return False
    trial = placing.start_trial(world, gone=promises.leaving_anyway(world))
    return all(trial["free"][name].get(resource, 0) >= 0 for resource in task["request"])
