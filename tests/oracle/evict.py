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

from oracle import claims, groups, minima, order, placing, queues, reasons, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Amounts = dict[str, int]

SYSTEM_CRITICAL = 2_000_000_000


def preempt(world: World) -> None:
    serve_all(world, "preempt")


def reclaim(world: World) -> None:
    serve_all(world, "reclaim")


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
    if not unit or any(one["later"] or has_claim(world, one, "preempt", "wave") for one in unit):
        return
    if p2_never_preempts(world, unit) or not all(reserve.r7_could_start(world, one) for one in unit):
        return
    lower = r5_lower_claims(world, unit) if action == "preempt" else []
    if lower and r5_release_claims(world, unit, lower):
        return
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


def has_claim(world: World, gang: Gang, *kinds: str) -> bool:
    return any(claims.claim_of(world, gang["key"], kind) is not None for kind in kinds)


def p2_never_preempts(world: World, unit: list[Gang]) -> bool:
    """P2: `preemptionPolicy: Never`, of the gang's class or of a pod for which room would be made."""
    if any(gang["never_preempts"] for gang in unit):
        return True
    return any(task["never_preempts"] for gang in unit for task in wanted_at_most(world, gang))


def wanted_at_most(world: World, gang: Gang) -> list[Task]:
    needed, rest, short = minima.o1_split(world, gang)
    lost = minima.g7_replacements(world, gang)
    if gang["satisfied"]:
        return [*lost, *needed, *rest[:short]]
    return [*lost, *needed, *rest]


# ---- P1: plans


def p1_plan(world: World, unit: list[Gang], action: str, *, last: bool) -> dict[str, Any] | None:
    """The engine's victims, if it has any and they keep P1's promises; else a plan of our own, if there is one. Not
    `last`: it is asked once more, with what its gangs hold released."""
    title = unit[0]["title"]
    hints = world["memory"]["hints"].get(world["now"], {}).get("evicted", {})
    plans = hints.get((action, title)) or [None]
    hint = plans[0]
    allowed = victim_units(world, unit, action)
    victims = [task for task in world["tasks"] if (task["namespace"], task["name"]) in (hint or ())]
    if victims and len(victims) == len(hint) and all(is_bound(world, task) for task in victims):
        if not last and not fits_without(world, unit, [victims], exactly=True):
            return None
        broken = broken_promises(world, unit, action, victims, allowed)
        if broken:  # perhaps it is meant for a later cycle of this instant; if not, the two runs differ
            world["memory"]["violations"] += [one for one in broken if one not in world["memory"]["violations"]]
            return None
        del plans[0]
        return {"victims": victims}
    if fits_without(world, unit, []):
        return {"victims": []}  # it fits as soon as those that are leaving have left
    if k7_asked(world, unit):
        return None  # which of several sets of victims reaches `minResources` is left open
    chosen = own_plan(world, unit, allowed, action)
    return {"victims": [task for one in chosen for task in one]} if chosen else None


def own_plan(world: World, unit: list[Gang], allowed: list[list[Task]], action: str) -> list[list[Task]] | None:
    """Lowest levels first, then as few as will do. Of reclaim only plans of a few victims are looked for, and where
    there are PodDisruptionBudgets only plans of one."""
    if world["budgets"]:
        return own_single(world, unit, allowed, action)
    if action == "reclaim":
        return own_reclaim(world, unit, allowed)
    for level in sorted({priority_of(world, one) for one in allowed}):
        chosen = [one for one in allowed if priority_of(world, one) <= level]
        if not fits_without(world, unit, chosen):
            continue
        for one in sorted(chosen, key=lambda some: (priority_of(world, some), len(some)), reverse=True):
            fewer = [other for other in chosen if other is not one]
            if fits_without(world, unit, fewer):
                chosen = fewer
        return chosen
    return None


def own_single(world: World, unit: list[Gang], allowed: list[list[Task]], action: str) -> list[list[Task]] | None:
    for one in sorted(allowed, key=lambda some: priority_of(world, some)):
        if pieces_of(world, one) is None or not p2_budgets_allow(world, one) or not fits_without(world, unit, [one]):
            continue
        if action == "preempt" or (p2_in_turn(world, unit, [one]) and p3_accepts(world, unit, one)):
            return [one]
    return None


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
        healthy = sum(1 for task in pods if is_bound(world, task) and task["started"] is not None)
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


def own_reclaim(world: World, unit: list[Gang], allowed: list[list[Task]]) -> list[list[Task]] | None:
    if not fits_without(world, unit, allowed):
        return None
    for count in range(1, min(len(allowed), 3) + 1):
        for chosen in itertools.combinations(allowed, count):
            victims = [task for one in chosen for task in one]
            if pieces_of(world, victims) is None or not p2_in_turn(world, unit, list(chosen)):
                continue
            if fits_without(world, unit, list(chosen)) and p3_accepts(world, unit, victims):
                return list(chosen)
    return None


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
            if not any(above_share(world, less(trial, place, mine, one), deserved, place) for one in mine):
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
    if not above_share(world, trial, deserved, unit[0]["queue"]):
        return True
    asked: dict[str, Amounts] = {}
    for task in victims:
        queues.add(asked.setdefault(world["gangs"][task["gang"]]["queue"], {}), task["request"])
    return not any(within_share(trial, deserved, name, amounts) for name, amounts in asked.items())


def priority_of(world: World, tasks: list[Task]) -> int:
    return max(int(world["gangs"][task["gang"]]["priority"]) for task in tasks)


def broken_promises(
    world: World, unit: list[Gang], action: str, victims: list[Task], allowed: list[list[Task]]
) -> list[str]:
    """P1, P2: victims may be evicted; the minima then fit for certain; no proper subset would do; no higher level is
    touched if lower ones suffice; a gang is taken below its minimum only as a whole."""
    what = f"{action} for {unit[0]['title']} evicts {[task['name'] for task in victims]}"
    may_leave = {task["uid"] for one in allowed for task in one} | spared_singly(world, unit, action)
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
        if fits_without(world, unit, [other for other in pieces if other is not one])
    ]
    level = max(priority_of(world, one) for one in pieces)
    lower = [one for one in allowed if priority_of(world, one) < level]
    together = p2_budgets_allow(world, [task for one in lower for task in one])
    if action == "preempt" and together and fits_without(world, unit, lower):
        found.append(f"{what}: priority {level} is touched, and lower ones suffice")
    return found


def pieces_of(world: World, victims: list[Task]) -> list[list[Task]] | None:
    """Single surplus members, and whole gangs with those they start with; `None`: a gang is broken."""
    pieces: list[list[Task]] = []
    seen: set[Any] = set()
    for gang in world["gangs"].values():
        mine = [task for task in victims if task["gang"] == gang["key"]]
        if not mine or gang["key"] in seen:
            continue
        if stays_whole(world, gang, mine):
            pieces += [[task] for task in mine]
            continue
        mates = groups.gangs_of(world, groups.k7_group_of(world, gang))
        members = [task for mate in mates for task in mate["tasks"] if is_bound(world, task)]
        if any(task not in victims for task in members):
            return None
        seen |= {mate["key"] for mate in mates}
        pieces.append(members)
    return pieces


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


def is_bound(world: World, task: Task) -> bool:
    return task["status"] == "bound" and task["uid"] not in world["leaving"]


def victim_units(world: World, unit: list[Gang], action: str) -> list[list[Task]]:
    """What may leave for these gangs: surplus members one by one, and whole gangs."""
    own = {gang["key"] for gang in unit}
    allowed = []
    for gang in world["gangs"].values():
        if gang["key"] in own or not may_take_from(world, unit, gang, action):
            continue
        mates = groups.gangs_of(world, groups.k7_group_of(world, gang))
        spare = surplus_of(world, gang)
        allowed += [[task] for task in spare]
        members = [task for mate in mates for task in mate["tasks"] if is_bound(world, task)]
        rest = [task for task in members if task not in spare]
        if action == "preempt" and asks_nothing(world, unit) and not all(task["best_effort"] for task in members):
            allowed = [one for one in allowed if one[0] not in spare or one[0]["best_effort"]]
            continue
        if rest and all(p2_may_leave(world, task) for task in members):
            if all(may_take_from(world, unit, mate, action) and mate["key"] not in own for mate in mates):
                allowed.append(rest)
    return allowed


def asks_nothing(world: World, unit: list[Gang]) -> bool:
    """BestEffort pods lack nothing but a place among a node's pods: only BestEffort pods leave for them."""
    return all(task["best_effort"] for gang in unit for task in wanted_at_most(world, gang))


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
        needed, rest, short = minima.o1_split(world, one)
        for task in [*minima.g7_replacements(world, one), *needed, *rest[:short]]:
            queues.add(asked, task["request"])
    return p2_reclaimable(world, unit[0], gang["queue"], asked)


def p2_may_leave(world: World, task: Task) -> bool:
    """P2: `preemptable: "false"`, cooldown, system-critical and kube-system pods are respected."""
    gang = world["gangs"][task["gang"]]
    if not is_bound(world, task) or not task["ours"] or task["namespace"] == "kube-system":
        return False
    if task["terms"]["protected"] or gang["terms"]["protected"]:
        return False
    if max(task["priority"], gang["priority"]) >= SYSTEM_CRITICAL:
        return False
    cooldown = max(task["terms"]["cooldown"], gang["terms"]["cooldown"])
    if cooldown:
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


def fits_without(world: World, unit: list[Gang], victims: list[list[Task]], *, exactly: bool = False) -> bool:
    """Whether the minima fit for certain if these leave, and those that are leaving anyway have left. `exactly`: with
    just these victims, `minResources` of a Strict group must be free then too (K7)."""
    gone = {task["uid"] for one in victims for task in one}
    lifted = {gang["key"] for gang in unit}
    trial = placing.start_trial(world, lifted, gone=gone | leaving_anyway(world))
    if exactly and victims and not k7_reaches(world, trial, unit):
        return False
    return place_needs(world, trial, unit)


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
            if is_bound(world, task) or task["uid"] in world["placed"]:
                queues.add(free, task["request"])
    return all(count <= free.get(name, 0) for name, count in asked.items())


def leaving_anyway(world: World) -> set[str]:
    return {task["uid"] for task in world["tasks"] if task["status"] == "terminating"} | world["leaving"]


def place_needs(world: World, trial: dict[str, Any], unit: list[Gang]) -> bool:
    for gang in unit:
        if gang["satisfied"]:  # what was lost is replaced one by one (G7)
            tasks = wanted_at_most(world, gang)
            return bool(tasks) and placing.one_by_one(world, trial, gang, tasks[:1]) is None
        lost = minima.g7_replacements(world, gang)
        if placing.one_by_one(world, trial, gang, lost) is not None:
            return False
        if minima.g4_missing(world, gang):
            continue
        claims.r7_take_own_places(world, trial, gang)
    ready = [gang for gang in unit if not minima.g4_missing(world, gang)]
    return placing.g2_all_or_nothing(world, trial, ready) is None


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
        slots = {task["uid"]: node for task, node in plan["places"] if task["gang"] == gang["key"]}
        if slots:
            claims.make(world, gang["key"], "preempt", slots)
    verb = "Preempted" if action == "preempt" else "Reclaimed"
    for task in plan["victims"]:
        world["leaving"].add(task["uid"])
        world["evictions"].append((task, verb, f"makes room for {unit[0]['title']}"))
        world["memory"]["evicted_for"].setdefault(unit[0]["key"], set()).add(task["gang"])
    for gang in unit:
        world["reasons"].setdefault(gang["key"], reasons.not_ready(world, gang))


def places_of_plan(world: World, unit: list[Gang], plan: dict[str, Any]) -> list[tuple[Task, str]]:
    """Where its tasks are to land: where the engine means to, if that is possible; else by our own placing."""
    gone = {task["uid"] for task in plan["victims"]} | leaving_anyway(world)
    lifted = {gang["key"] for gang in unit}
    hint = world["memory"]["hints"].get(world["now"], {}).get("reserved", {})
    trial = placing.start_trial(world, lifted, gone=gone)
    found: list[tuple[Task, str]] = []
    for gang in unit:
        for task in minima.waiting(world, gang):
            node = hint.get((task["namespace"], task["name"]))
            if node is not None and placing.fits_on(world, trial, gang, task, node):
                placing.put(world, trial, task, node)
                found.append((task, node))
    if found:
        return found
    trial = placing.start_trial(world, lifted, gone=gone)
    place_needs(world, trial, unit)
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
        for gang in ready:
            claims.r7_take_own_places(world, trial, gang)
        return bool(ready) and placing.g2_all_or_nothing(world, trial, ready) is None


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
        if not stays or not all(will_have_room(world, gang, task, claim["slots"][task["uid"]]) for task in tasks):
            for mate in groups.k7_group_of(world, gang):
                claims.end(world, mate, "preempt")


def will_have_room(world: World, gang: Gang, task: Task, name: str) -> bool:
    from oracle import predicates

    node = next((one for one in world["nodes"] if one["name"] == name), None)
    if node is None or predicates.g6_standing_reason(gang, task, node) is not None:
        return False
    trial = placing.start_trial(world, gone=leaving_anyway(world))
    return all(trial["free"][name].get(resource, 0) >= 0 for resource in task["request"])


# ---- M6


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
        and not task["terms"]["protected"]
        and not gang["terms"]["protected"]
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
