"""Finds nodes for tasks: all or nothing for minima (G2), one by one for what is beyond them (G3) and for what was lost
(G7), never more on a node than it has (G5).

A `trial` is what the cluster would look like: free room by node, use by queue. It is counted anew for each attempt from
what is bound, placed in this cycle, claimed and enqueued; an attempt that fails is thrown away.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

from enbloc.units import SECOND
from oracle import (
    affinity,
    claims,
    conservative,
    easy,
    groups,
    minima,
    order,
    ports,
    predicates,
    queues,
    reasons,
    reserve,
    scoring,
    spread,
    sub_groups,
    topology,
    volumes,
    waves,
)

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Trial = dict[str, Any]

PODS_WITHIN = 60 * SECOND


def start_trial(world: World, lifted: set[Any] | None = None, gone: set[str] | None = None) -> Trial:
    """The room and the queues as they are now. Claims of the gangs in `lifted` do not count, nor pods in `gone`."""
    trial: Trial = {"placed": dict(world["placed"]), "new": [], "claimed": {}, "closed": {}, "of_claims": []}
    trial["gone"] = gone or set()
    trial["free"] = {node["name"]: dict(node["allocatable"]) for node in world["nodes"]}
    trial["used"], trial["enqueued"] = {}, {}
    for task in world["tasks"]:
        node = world["placed"].get(task["uid"])
        if node is None and task["status"] in ("bound", "terminating"):
            node = task["node"]
        if node and task["uid"] not in (gone or ()):
            take(world, trial, task, node)
    for task, node in [*world["kept"], *world.get("awaited_room", ())]:
        take(world, trial, task, node)
    for task, node in claims.room_taken(world, lifted or set()):
        trial["claimed"][task["uid"]] = node
        trial["of_claims"].append((task, node))
        take(world, trial, task, node)
    for gang in world["gangs"].values():
        if m6_counts(world, gang):
            for place in queues.path_up(world, gang["queue"]):
                queues.add(trial["enqueued"].setdefault(place, {}), gang["min_resources"])
    return trial


def m6_counts(world: World, gang: Gang) -> bool:
    """M6: a gang that was enqueued counts against others until its first attempt; gated pods not at all; one that was
    enqueued by starving, preempting or reclaiming never. S4: for 60 s after it was enqueued."""
    return bool(
        gang["min_resources"]
        and gang["enqueued"]
        and not gang["finished"]
        and not gang["satisfied"]
        and gang["enqueued_by"] not in ("Starving", "Preempting", "Reclaiming")
        and not world["memory"]["tried"].get(gang["key"])
        and not any(
            task["status"] in ("gated", "bound", "succeeded", "failed", "terminating") for task in gang["tasks"]
        )
        and not any(task["uid"] in world["placed"] for task in gang["tasks"])
        and s4_pods_are_expected(world, gang)
    )


def s4_pods_are_expected(world: World, gang: Gang) -> bool:
    """S4: pods of an enqueued gang are expected within 60 s."""
    if gang["enqueued_at"] is None:
        return True
    until = gang["enqueued_at"] + PODS_WITHIN
    if until > world["now"]:
        world["timers"].append(until)
    return bool(world["now"] < until)


def take(world: World, trial: Trial, task: Task, node: str, times: int = 1) -> None:
    """G5: a task takes its room on the node, and its queue's use with all queues above."""
    if node in trial["free"]:
        for name, count in task["request"].items():
            trial["free"][node][name] = trial["free"][node].get(name, 0) - count * times
    gang = world["gangs"][task["gang"]]
    if task["ours"] or gang["object"] is not None:
        for place in queues.path_up(world, gang["queue"]):
            queues.add(trial["used"].setdefault(place, {}), task["request"], times)


def put(world: World, trial: Trial, task: Task, node: str) -> None:
    take(world, trial, task, node)
    trial["placed"][task["uid"]] = node
    trial["new"].append((task, node))


def copy_trial(trial: Trial) -> Trial:
    return {
        **trial,
        "placed": dict(trial["placed"]),
        "new": list(trial["new"]),
        "free": {node: dict(free) for node, free in trial["free"].items()},
        "used": {queue: dict(used) for queue, used in trial["used"].items()},
    }


def open_nodes(world: World, trial: Trial, gang: Gang, task: Task) -> list[dict[str, Any]]:
    """Nodes that the task may use, whether there is room or not."""
    return [
        node
        for node in world["nodes"]
        if predicates.g6_standing_reason(gang, task, node) is None
        and claims.closed_reason(world, gang, task, node["name"]) is None
        and easy.r8_does_not_delay(world, trial, task, node["name"])
        and topology.t1_is_open(world, trial, gang, task, node["name"])
        and affinity.g6_beside_others(world, trial, task, node)
        and spread.g6_is_spread(world, trial, task, node)
        and volumes.g6_may_use_claims(world, trial, task)
        and ports.g6_ports_are_free(world, trial, task, node["name"])
    ]


def best_node(world: World, trial: Trial, gang: Gang, task: Task, among: Collection[str] | None = None) -> str | None:
    """Of the nodes with room the one of the highest score; the first in rank of equal ones. Which members made up
    the total of a gang that was packed is free, and so is where it has the others."""
    if not queues.v4_may_take(world, trial, gang["queue"], task["request"]):
        return None
    freely = world.get("awaited_freely") or world.get("shadow") or gang["key"] in world["packed"]
    hint = bound_or_held(world) if freely else {}
    free = conservative.r8_free_for(world, trial, task)
    nodes = [
        node
        for node in open_nodes(world, trial, gang, task)
        if not predicates.lacking(task, free[node["name"]]) and (among is None or node["name"] in among)
    ]
    wished = affinity.wishes(world, trial, task, nodes)
    preferred = scoring.preferences(world, gang, task)
    best: tuple[int, str] | None = None
    for node in nodes:
        if hint.get((task["namespace"], task["name"])) == node["name"]:
            return str(node["name"])  # scores depend on which room is left to others
        weights = world["settings"]["scoring"]
        points = scoring.score(weights, node, free[node["name"]], task["request"])
        points += wished[node["name"]] * weights.pod_affinity * scoring.PARTS
        points += preferred[node["name"]] * scoring.PARTS
        if best is None or points > best[0]:
            best = (points, node["name"])
    return best[1] if best else None


def bound_or_held(world: World) -> dict[Any, str]:
    """Where the engine binds pods at this instant, or holds them: pod -> node."""
    engine = world["memory"]["hints"].get(world["now"], {})
    return {**engine.get("held", {}), **engine.get("bound", {})}


# ---- G2


def g2_all_or_nothing(world: World, trial: Trial, gangs: list[Gang]) -> dict[str, Any] | None:
    """G2: places the minima of all the gangs in the trial; a reason says why that cannot be. T1, T2: together."""
    lost, parts = [], []
    for gang in gangs:
        found = topology.t1_parts(world, gang, wanted_at_all(world, trial, gang)) if gang["asks"] else []
        lost += [gang] if found is None else []
        parts += found or []
    if lost:
        each = {gang["key"]: reasons.reason("Unschedulable", minima.needed_by_role(world, gang)) for gang in lost}
        return {**each[lost[0]["key"]], "of": lost[0]["key"], "each": each}
    if not parts or t6_as_the_engine(world, trial, gangs):
        return g2_anywhere(world, trial, gangs)
    for names in topology.t2_options(world, trial, parts[0], topology.t2_least(parts[0], certain(world, trial, gangs))):
        attempt = copy_trial(trial)
        attempt["within"] = [(parts[0], names)]
        if t6_fits_in(world, attempt, gangs, parts[1:]):
            trial.update(attempt)
            trial["within"] = []
            return None
    required = topology.t1_without_domain(world, trial, parts, certain(world, trial, gangs))
    if not required:
        return g2_anywhere(world, trial, gangs)
    found = reasons.reason("Unschedulable", minima.needed_by_role(world, required[0]))
    each = {required[0]["key"]: {**found, "or": ("QueueFull",)}}
    for gang in required if len({gang["key"] for gang in required}) > 1 else ():
        own = reasons.reason("Unschedulable", minima.needed_by_role(world, gang))
        each[gang["key"]] = {**own, "or": ("QueueFull", "GroupNotReady")}
    plain = g2_anywhere(world, copy_trial(trial), gangs) or found
    if "QueueFull" in (plain["reason"], *(one["reason"] for one in plain.get("each", {}).values())):
        for gang in gangs:  # which of them says so depends on the domain that was tried last
            own = reasons.reason("Unschedulable", minima.needed_by_role(world, gang))
            each[gang["key"]] = {**own, "or": ("QueueFull", "GroupNotReady")}
    return {**found, "or": ("QueueFull",), "of": required[0]["key"], "each": each}


def t6_as_the_engine(world: World, trial: Trial, gangs: list[Gang]) -> bool:
    """T6: where the engine's search ended early (the published score is below 1) preferences are dropped: its places
    are taken over, if they are a way."""
    engine = world["memory"]["hints"].get(world["now"], {})
    if not all(gang["title"] in engine.get("not_best", ()) for gang in gangs):
        return False
    return take_hint(world, trial, [(gang, *wanted_now(world, trial, gang)) for gang in gangs], engine["bound"])


def wanted_at_all(world: World, trial: Trial, gang: Gang) -> list[Task]:
    """The tasks of its minima; where there is a choice, all that may be chosen."""
    needed, rest, short = wanted_now(world, trial, gang)
    later = [task for task in waves.d5_later_tasks(world, gang) if task["uid"] not in trial["placed"]]
    return [*needed, *later, *(rest if short else [])]


def certain(world: World, trial: Trial, gangs: list[Gang]) -> list[Task]:
    """The tasks of their minima that are placed whatever is chosen."""
    found = []
    for gang in gangs:
        _, rest, short = wanted_now(world, trial, gang)
        found += [task for task in wanted_at_all(world, trial, gang) if task not in rest or short == len(rest)]
    return found


def t6_fits_in(world: World, trial: Trial, gangs: list[Gang], parts: list[Any]) -> bool:
    """T6: whether all fit, each other part that requires a level in one domain of it: as the engine has them, or in any
    way there is."""
    if not parts:
        return g2_anywhere(world, trial, gangs) is None
    hint = world["memory"]["hints"].get(world["now"], {}).get("bound", {})
    wanted = [(gang, *wanted_now(world, trial, gang)) for gang in gangs]
    if hint and take_hint(world, trial, wanted, hint):
        return True
    part, *others = parts
    if part["required"] is None:
        return t6_fits_in(world, trial, gangs, others)
    domains = part["levels"][part["required"]]["domains"]
    for domain in sorted(set(domains.values()), key=topology.rank):
        attempt = copy_trial(trial)
        attempt["within"] = [*trial["within"], (part, topology.members(domains, domain))]
        if t6_fits_in(world, attempt, gangs, others):
            trial.update(attempt)
            return True
    return False


def g2_anywhere(world: World, trial: Trial, gangs: list[Gang]) -> dict[str, Any] | None:
    before = copy_trial(trial)
    for gang in gangs:
        why = place_minima(world, trial, gang)
        if why is not None:
            if pack(world, before, gangs):
                trial.update(before)
                return None
            attempt = copy_trial(trial)
            each = g6_beside_each_other(world, attempt, gangs)
            if not each:
                trial.update(attempt)
                return None
            return {**(each.get(gang["key"]) or why), "each": each}
    return None


def g6_beside_each_other(world: World, trial: Trial, gangs: list[Gang]) -> dict[Any, dict[str, Any]]:
    """G6: a task that must be beside others may come before them in the order: what did not fit is tried again for as
    long as another task was placed. What each gang lacks in the end (G10): without such tasks, what it lacked then."""
    tasks = [task for gang in gangs for part in wanted_now(world, trial, gang)[:2] for task in part]
    again = any(affinity.is_about_others(world, trial, task) for task in tasks)
    while True:
        count = len(trial["new"])
        each = reasons.g10_lacking(world, trial, gangs)
        if not again or not each or len(trial["new"]) == count:
            return each


def place_minima(world: World, trial: Trial, gang: Gang) -> dict[str, Any] | None:
    needed, rest, short = wanted_now(world, trial, gang)
    for task in needed:
        node = best_node(world, trial, gang, task)
        if node is None:
            return reasons.g10_does_not_fit(world, trial, gang, task, 1)
        put(world, trial, task, node)
    for task in waves.d5_later_tasks(world, gang):
        if task["uid"] in trial["placed"]:
            continue
        node = best_node(world, trial, gang, task)
        if node is None:
            return reasons.g10_does_not_fit(world, trial, gang, task, 1)
        put(world, trial, task, node)
    failed = None
    for task in rest:
        if short == 0:
            break
        node = best_node(world, trial, gang, task)
        if node is None:
            failed = failed or task  # G3: it is skipped, others may make up the total
            continue
        put(world, trial, task, node)
        short -= 1
    if short and failed is not None:
        return reasons.g10_does_not_fit(world, trial, gang, failed, short)
    assert not short, f"{gang['title']} was attempted though too few of its members exist"
    return None


def templates_fit(
    world: World, trial: Trial, gang: Gang, tasks: list[Task], is_wanted: Callable[[Trial], bool] = lambda way: True
) -> bool:
    """Places pods that do not exist yet; together, if they ask for it (T1, T2)."""
    parts = topology.t1_parts(world, gang, tasks) if gang["asks"] else []
    if not parts:
        return parts is not None and templates_fit_within(world, trial, gang, tasks, is_wanted)
    chosen = [parts[0], *(part for part in parts[1:] if part["required"] is not None)]
    return templates_fit_in_each(world, trial, gang, tasks, is_wanted, chosen)


def templates_fit_in_each(
    world: World, trial: Trial, gang: Gang, tasks: list[Task], is_wanted: Callable[[Trial], bool], parts: list[Any]
) -> bool:
    """In a set of domains for each of these parts, in the order of T2."""
    if not parts:
        return templates_fit_within(world, trial, gang, tasks, is_wanted)
    for names in topology.t2_options(world, trial, parts[0], topology.t2_least(parts[0], tasks)):
        attempt = copy_trial(trial)
        attempt["within"] = [*trial.get("within", ()), (parts[0], names)]
        if templates_fit_in_each(world, attempt, gang, tasks, is_wanted, parts[1:]):
            trial.update(attempt)
            trial["within"] = []
            return True
    return False


def templates_fit_within(
    world: World, trial: Trial, gang: Gang, tasks: list[Task], is_wanted: Callable[[Trial], bool]
) -> bool:
    """Places pods that do not exist yet, one after the other (again, where one must be beside others that come after
    it: G6), or else in any way there is. Which one is free: one that leaves the nodes where the engine binds pods of
    lower priority, if there is such a way; of those one that is wanted."""
    before = copy_trial(trial)
    left, count = tasks, len(tasks) + 1
    while left and len(left) < count:
        again, count = left, len(left)
        left = []
        for task in again:
            node = best_node(world, trial, gang, task)
            if node is None:
                left.append(task)
            else:
                put(world, trial, task, node)
    if not left:
        return True
    if any(affinity.is_about_others(world, before, task) for task in tasks):
        return False  # decision 0023: there task after task decides
    hint = bound_or_held(world)
    beside = copy_trial(before)
    for task in world["tasks"]:
        node = hint.get((task["namespace"], task["name"]))
        lower = world["gangs"][task["gang"]]["priority"] < gang["priority"]
        if node is not None and lower and task["status"] == "pending" and task["uid"] not in world["placed"]:
            take(world, beside, task, node)
    wanted = [(gang, one) for one in tasks]
    count = len(before["new"])
    trial.update(before)
    trial["freely"] = True
    for accept in (is_wanted, lambda way: True):
        if search(world, beside, wanted, [], set(), accept):
            for task, node in beside["new"][count:]:
                put(world, trial, task, node)
            return True
    return search(world, trial, wanted, [], set())


def wanted_now(world: World, trial: Trial, gang: Gang) -> tuple[list[Task], list[Task], int]:
    """O1, less what the trial has placed already."""
    needed, rest, short = minima.o1_split(world, gang)
    done = {task["uid"] for task, _ in trial["new"]}
    short -= sum(1 for task in rest if task["uid"] in done)
    return (
        [one for one in needed if one["uid"] not in done],
        [one for one in rest if one["uid"] not in done],
        max(0, short),
    )


def pack(world: World, trial: Trial, gangs: list[Gang]) -> bool:
    """Placing task after task may fail though there is a way (decision 0023): looks at every way there is. Where the
    engine found one it is taken over, if it is a way: which one is free. Not behind the first gang that waits (R8):
    there task after task decides."""
    if world.get("shadow") is not None or world.get("planned") is not None:
        return False
    wanted = [(gang, *wanted_now(world, trial, gang)) for gang in gangs]
    for gang, needed, _, _ in wanted:
        needed += [task for task in waves.d5_later_tasks(world, gang) if task["uid"] not in trial["placed"]]
    if not queues_allow(world, trial, wanted):
        return False
    planned = world["memory"]["hints"].get(world["now"], {}).get("reserved", {}) if world.get("evicting") else {}
    if planned and take_hint(world, trial, wanted, planned):
        return True  # where room is to be freed for them
    if any(
        affinity.is_about_others(world, trial, task)
        for _, needed, rest, short in wanted
        for task in [*needed, *(rest if short else [])]
    ):
        return False  # there task after task decides
    engine = world["memory"]["hints"].get(world["now"], {})
    hint = engine.get("bound", {})
    if any(waves.d5_later_tasks(world, gang) for gang in gangs):
        hint = {**engine.get("reserved", {}), **hint}  # of placeholders the engine says where room is claimed
    trial["packed"] = True
    if hint and take_hint(world, trial, wanted, hint):
        return True
    tasks = [(gang, task) for gang, needed, _, _ in wanted for task in needed]
    tasks.sort(key=lambda one: sum(one[1]["request"].values()), reverse=True)  # the largest have the fewest places
    optional = [(gang, rest, short) for gang, _, rest, short in wanted if short]
    return search(world, trial, tasks, optional, set())


def queues_allow(world: World, trial: Trial, wanted: list[Any]) -> bool:
    """Decision 0023: packing is left out where queues forbid the whole with the largest of the optional tasks."""
    attempt = copy_trial(trial)
    asked: dict[str, int] = {}
    free, kept = queues.free_total(world, trial), {}
    for gang, needed, rest, short in wanted:
        more: dict[str, int] = {}
        for task in needed:
            queues.add(more, task["request"])
        for name in {name for task in rest for name in task["request"]} if short else ():
            largest = sorted((task["request"].get(name, 0) for task in rest), reverse=True)
            queues.add(more, {name: sum(largest[:short])})
        if queues.v4_over_capability(world, attempt, gang["queue"], more, enqueued=False) is not None:
            return False
        for place in queues.path_up(world, gang["queue"]):
            queues.add(attempt["used"].setdefault(place, {}), more)
        queues.add(asked, more)
        kept = queues.v4_kept_for_others(world, trial, gang["queue"])
        if any(kept.get(name, 0) > 0 and count > free.get(name, 0) - kept[name] for name, count in asked.items()):
            return False
    return True


def take_hint(world: World, trial: Trial, wanted: list[Any], hint: dict[Any, str]) -> bool:
    """The engine's places, if they are a way. Of optional tasks it may have placed more in the same instant: any so
    many of them."""
    if not wanted:
        return True
    (gang, needed, rest, short), *others = wanted
    optional = [task for task in rest if (task["namespace"], task["name"]) in hint]
    for chosen in itertools.islice(itertools.combinations(optional, short), 50):
        attempt = copy_trial(trial)
        if all(put_as_hinted(world, attempt, gang, task, hint) for task in [*needed, *chosen]):
            if take_hint(world, attempt, others, hint):
                trial.update(attempt)
                return True
    return False


def put_as_hinted(world: World, trial: Trial, gang: Gang, task: Task, hint: dict[Any, str]) -> bool:
    node = hint.get((task["namespace"], task["name"]))
    if node is None or not fits_on(world, trial, gang, task, node):
        return False
    put(world, trial, task, node)
    return True


def fits_on(world: World, trial: Trial, gang: Gang, task: Task, name: str) -> bool:
    if not queues.v4_may_take(world, trial, gang["queue"], task["request"]):
        return False
    names = [node["name"] for node in open_nodes(world, trial, gang, task)]
    return name in names and not predicates.lacking(task, trial["free"][name])


def search(
    world: World,
    trial: Trial,
    tasks: list[Any],
    optional: list[Any],
    failed: set[Any],
    accept: Callable[[Trial], bool] = lambda way: True,
) -> bool:
    """Every task on every node, depth first; states that led nowhere are not looked at twice."""
    if not tasks and not optional:
        return accept(trial)
    left = (len(tasks), *((gang["key"], len(rest), short) for gang, rest, short in optional))
    key = (left, tuple(sorted((node, tuple(sorted(free.items()))) for node, free in trial["free"].items())))
    if key in failed or more_than_is_free(trial, tasks):
        return False
    if not tasks:
        gang, rest, short = optional[0]
        if short == 0:
            return search(world, trial, tasks, optional[1:], failed, accept)
        for position, task in enumerate(rest):
            if len(rest) - position < short:
                break
            for node in room_for(world, trial, gang, task):
                attempt = copy_trial(trial)
                put(world, attempt, task, node)
                left_over = [(gang, rest[position + 1 :], short - 1), *optional[1:]]
                if search(world, attempt, tasks, left_over, failed, accept):
                    trial.update(attempt)
                    return True
        failed.add(key)
        return False
    gang, task = tasks[0]
    for node in room_for(world, trial, gang, task):
        attempt = copy_trial(trial)
        put(world, attempt, task, node)
        if search(world, attempt, tasks[1:], optional, failed, accept):
            trial.update(attempt)
            return True
    failed.add(key)
    return False


def more_than_is_free(trial: Trial, tasks: list[Any]) -> bool:
    """Whether these tasks ask together for more than all nodes have left."""
    asked: dict[str, int] = {}
    for _, task in tasks:
        queues.add(asked, task["request"])
    return any(
        count > sum(max(0, free.get(name, 0)) for free in trial["free"].values()) for name, count in asked.items()
    )


def room_for(world: World, trial: Trial, gang: Gang, task: Task) -> list[str]:
    if not queues.v4_may_take(world, trial, gang["queue"], task["request"]):
        return []
    nodes = open_nodes(world, trial, gang, task)
    return [node["name"] for node in nodes if not predicates.lacking(task, trial["free"][node["name"]])]


# ---- G3, G7


def one_by_one(
    world: World, trial: Trial, gang: Gang, tasks: list[Task], most: int | None = None
) -> dict[str, Any] | None:
    """As many as there is room for, or `most` of them; the reason says how many of each role found none."""
    whys: dict[str, dict[str, Any]] = {}
    missing: dict[str, int] = {}
    parts = topology.t1_parts(world, gang, tasks) if gang["asks"] else []
    trial["within"] = []
    for part in parts or ():
        if part["required"] is not None:
            trial["within"].append((part, topology.t4_domain(world, trial, part)))
    for task in tasks:
        if most == 0:
            break
        node = best_node(world, trial, gang, task)
        if node is None:
            whys.setdefault(task["role"], reasons.g10_does_not_fit(world, trial, gang, task, 1))
            missing[task["role"]] = missing.get(task["role"], 0) + 1
            continue
        put(world, trial, task, node)
        most = None if most is None else most - 1
    trial["within"] = []
    return {**whys[min(whys)], "missing": missing} if whys else None


# ---- one turn of a gang


def serve(world: World, gang: Gang) -> dict[str, Any] | None:
    """One turn; a reason says why nothing came of it."""
    why = one_turn(world, gang)
    if why is not None and reserve.r5_takes_over(world, gang):
        return None
    return why


def one_turn(world: World, gang: Gang) -> dict[str, Any] | None:
    if gang["satisfied"] or groups.has_all(world, gang):
        return g7_singly(world, gang)
    if groups.k7_is_group(world, gang):
        return groups.k5_start_together(world, gang)
    return minima_turn(world, gang)


def minima_turn(world: World, gang: Gang) -> dict[str, Any] | None:
    """The first choice of sub-groups that fits (T0); a gang without a tree has one."""
    first = dict(gang["minima"])
    why = chosen_turn(world, gang)
    for other in sub_groups.t0_other_choices(world, gang) if why is not None else ():
        sub_groups.t0_choose(gang, other)
        if not minima.g4_missing(world, gang) and chosen_turn(world, gang) is None:
            return None
        sub_groups.t0_choose(gang, first)
    return why


def chosen_turn(world: World, gang: Gang) -> dict[str, Any] | None:
    lost = minima.g7_replacements(world, gang)
    why = None
    if lost:
        trial = start_trial(world, {gang["key"]})
        reserve.take_places_with_room(world, trial, gang, lost)
        why = one_by_one(world, trial, gang, [task for task in lost if task["uid"] not in trial["placed"]])
        decide(world, trial, [gang], commits=False)
    if minima.g4_missing(world, gang):
        return reasons.g4_not_enough_pods(world, gang)
    needed, _, short = minima.o1_split(world, gang)
    if lost and not needed and not short:
        return why
    with waves.d5_placed_anew(world, gang) as anew:
        trial = start_trial(world, {gang["key"]})
        taken = waves.d5_take_places(world, trial, gang)
        claims.r7_take_own_places(world, trial, gang)
        later = [task["uid"] for task in waves.d5_later_tasks(world, gang)]
        why = g2_all_or_nothing(world, trial, [gang])
    if why is not None and not anew:
        freed = p3_where_it_was_freed(world, [gang])
        trial, why = (freed, None) if freed is not None else (trial, why)
    if why is None and anew:
        world["memory"]["claims"][gang["key"], "wave"]["slots"] = {}
    if why is not None:
        if gang["keeps_what_it_got"] and order.BACKFILLING not in world["actions"]:
            world["kept"] += trial["new"]  # A2: it is not handed to another job within that cycle
        return why
    found = [(task, node) for task, node in trial["new"] if task["uid"] in later]
    trial["new"] = [(task, node) for task, node in trial["new"] if task["uid"] not in later]
    decide(world, trial, [gang], commits=True)
    waves.d5_keep(world, gang, taken, found)
    return None


def p3_where_it_was_freed(world: World, gangs: list[Gang]) -> Trial | None:
    """P1, P3: task after task may find no way where pods bear on each other (G6): then gangs start where room was freed
    for them, if they fit there."""
    trial = start_trial(world, {gang["key"] for gang in gangs})
    found = False
    for gang in gangs:
        slots = claims.slots_of(world, gang["key"], "preempt")
        if slots:
            waves.d5_take_places(world, trial, gang)
        claims.r7_take_own_places(world, trial, gang)
        for task in minima.waiting(world, gang):
            node = slots.get(task["uid"])
            if node is not None and task["uid"] not in trial["placed"] and fits_on(world, trial, gang, task, node):
                put(world, trial, task, node)
                found = True
    return trial if found and g2_all_or_nothing(world, trial, gangs) is None else None


def g7_singly(world: World, gang: Gang) -> dict[str, Any] | None:
    """G7: once satisfied, what was lost is replaced one by one; G3: what is beyond the minima always is."""
    tasks, rest, short = minima.waiting(world, gang), [], 0
    if not minima.m4_ready(world, gang):
        needed, rest, short = minima.o1_split(world, gang)
        tasks = needed if needed or short else rest
    trial = start_trial(world, {gang["key"]})
    claims.r7_take_own_places(world, trial, gang)
    short -= sum(1 for task in rest if task["uid"] in trial["placed"])
    tasks = [task for task in tasks if task["uid"] not in trial["placed"]]
    rest = [task for task in rest if task["uid"] not in trial["placed"]]
    of_children = None
    if gang["tree"] is not None and short:
        rest = sub_groups.t0_surplus(world, gang, rest)[1]
    elif gang["tree"] is not None and tasks and not minima.o1_split(world, gang)[0]:
        of_children, tasks = t0_as_a_whole(world, trial, gang, tasks)
    why = one_by_one(world, trial, gang, tasks) or of_children
    if short:
        of_rest = one_by_one(world, trial, gang, rest, short)
        why = why or of_rest
    if not trial["new"]:
        return why
    decide(world, trial, [gang], commits=False)
    return None


def t0_as_a_whole(
    world: World, trial: Trial, gang: Gang, tasks: list[Task]
) -> tuple[dict[str, Any] | None, list[Task]]:
    """T0: children beyond the minimum start each as a whole or not at all. Why the first did not, and what is left:
    tasks that start pod by pod."""
    units, singles = sub_groups.t0_surplus(world, gang, tasks)
    why = None
    for unit in units:
        attempt = copy_trial(trial)
        failure = g2_all_or_nothing(world, attempt, [sub_groups.t0_as_a_gang(gang, unit)])
        if failure is None:
            trial.update(attempt)
        why = why or failure
    if not units and not singles:
        why = reasons.reason("NotEnoughPods", {})
    return why, singles


def decide(world: World, trial: Trial, gangs: list[Gang], *, commits: bool) -> None:
    """What a trial placed is bound."""
    if not trial["new"] and not commits:
        return
    for task, node in trial["new"]:
        world["placed"][task["uid"]] = node
    for gang in gangs:
        if not any(task["gang"] == gang["key"] for task, _ in trial["new"]) and not commits:
            continue
        if trial.get("packed"):
            world["packed"].add(gang["key"])
        world["memory"]["tried"][gang["key"]] = True
        if commits:
            minima.remember_bound(world, gang)
        world["served"].append(gang["key"])
        world["reasons"].pop(gang["key"], None)
        world["memory"]["needs_more_nodes"].pop(gang["key"], None)
    claims.end_used(world, gangs, commits=commits)
