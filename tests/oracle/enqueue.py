"""M6: a PodGroup is enqueued when its `minResources` could be met and its queue allows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oracle import evictable, groups, minima, placing, queues, reading, reasons, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Amounts = dict[str, int]


def m6_serve(world: World, gang: Gang) -> dict[str, Any] | None:
    """Enqueues a gang, or says why not."""
    why = m6_refusal(world, gang, {}, {})
    if why is None:
        m6_enqueue(world, gang, "Enqueued")
        return None
    for ground, freed, of_queue in m6_beyond_free_room(world, gang):
        if m6_refusal(world, gang, freed, of_queue) is None:
            m6_enqueue(world, gang, ground)
            return None
    return why


def m6_enqueue(world: World, gang: Gang, ground: str) -> None:
    gang["enqueued"], gang["enqueued_by"], gang["enqueued_at"] = True, ground, world["now"]
    world["memory"]["tried"].pop(gang["key"], None)
    world["reasons"].pop(gang["key"], None)
    world["newly_enqueued"].append(gang)


def m6_beyond_free_room(world: World, gang: Gang) -> Iterator[tuple[str, Amounts | None, Amounts]]:
    """From what it may preempt or reclaim, or, once starving, from the cluster's allocatable."""
    if reserve.r1_is_starving(world, gang):
        yield "Starving", None, {}
    if gang["never_preempts"]:
        return
    if "preempt" in world["actions"]:
        freed = evictable.m6_preemptable(world, gang)
        if freed:
            yield "Preempting", freed, freed
    if "reclaim" in world["actions"]:
        freed = evictable.m6_reclaimable(world, gang)
        if freed:
            yield "Reclaiming", freed, {}


def m6_refusal(world: World, gang: Gang, freed: Amounts | None, of_queue: Amounts) -> dict[str, Any] | None:
    """Why it is not enqueued, were so much freed for it, of that so much of its own queue."""
    trial = placing.start_trial(world)
    k8_free_own_holds(world, trial, gang)
    asked = {name: count for name, count in gang["min_resources"].items() if name != "pods"}
    has = queues.totals(world)
    oversized = world["settings"]["admit_oversized"]
    if not oversized:
        for name, count in asked.items():
            if count > has.get(name, 0):
                return refusal(world, gang, f"Insufficient {name}")
    more = {name: count - of_queue.get(name, 0) for name, count in asked.items()}
    over = queues.v4_over_capability(world, trial, gang["queue"], more, enqueued=True)
    if over is not None:
        return refusal(world, gang, "queue", nodes=False)
    if freed is None:
        return None
    return m6_no_room(world, trial, gang, asked, has, freed)


def k8_free_own_holds(world: World, trial: dict[str, Any], gang: Gang) -> None:
    """K8: what gangs of its group hold counts as free."""
    for mate in groups.gangs_of(world, groups.k7_group_of(world, gang)):
        slots = groups.slots_held(world, mate)
        for task in mate["tasks"]:
            if task["uid"] in slots:
                placing.take(world, trial, task, slots[task["uid"]], -1)


def m6_no_room(
    world: World, trial: dict[str, Any], gang: Gang, asked: Amounts, has: Amounts, freed: Amounts
) -> dict[str, Any] | None:
    """Allocatable × overcommit factor, less what is used and what others already enqueued will take."""
    factor = world["settings"]["overcommit_milli"]
    oversized = world["settings"]["admit_oversized"]
    free = queues.free_total(world, trial)
    enqueued: Amounts = {}
    for name in queues.all_queues(world):
        if queues.parent_of(world, name) is None:
            queues.add(enqueued, trial["enqueued"].get(name, {}))
    kept = queues.v4_kept_for_others(world, trial, gang["queue"])
    closed = reserve.r5_room_kept_from(world, trial, gang)
    beyond = s4_beyond_share(world, trial, gang)
    for name, count in asked.items():
        total = max(has.get(name, 0), count) if oversized else has.get(name, 0)
        taken = has.get(name, 0) - free.get(name, 0) + enqueued.get(name, 0) + closed.get(name, 0) - freed.get(name, 0)
        taken -= beyond.get(name, 0)
        if count > total * factor // 1000 - taken:
            return refusal(world, gang, f"Insufficient {name}")
        if kept.get(name, 0) > 0 and count > total - taken - kept[name]:
            return refusal(world, gang, f"Insufficient {name}")
    return None


def s4_beyond_share(world: World, trial: dict[str, Any], gang: Gang) -> Amounts:
    """What gangs of other queues that lack pods were enqueued for beyond the share of their queue."""
    awaited: dict[str, Amounts] = {}
    for other in world["gangs"].values():
        if other["queue"] != gang["queue"] and placing.m6_counts(world, other) and minima.g4_missing(world, other):
            queues.add(awaited.setdefault(other["queue"], {}), other["min_resources"])
    deserved = queues.v4_deserved(world, trial) if awaited else {}
    found: Amounts = {}
    for queue, amounts in awaited.items():
        used = trial["used"].get(queue, {})
        for name, count in amounts.items():
            room = max(0, deserved.get(queue, {}).get(name, 0) - used.get(name, 0))
            found[name] = found.get(name, 0) + max(0, count - room)
    return found


def refusal(world: World, gang: Gang, why: str, *, nodes: bool = True) -> dict[str, Any]:
    missing = dict(gang["minima"])
    if gang["minimum"] > sum(missing.values()):
        missing[""] = gang["minimum"] - sum(missing.values())
    count = sum(1 for node in world["nodes"] if reading.usable(node)) if nodes else 0
    return reasons.reason("NotEnoughResources", missing, {("", why): count})
