"""One cycle of the oracle: read everything, follow the rules action by action, write what was decided."""

from __future__ import annotations

import copy
from typing import Any

from oracle import (
    adapter,
    conservative,
    deadlocks,
    enqueue,
    evict,
    groups,
    minima,
    order,
    placing,
    reading,
    reasons,
    records,
    reserve,
    run_times,
    usage,
    waves,
)

World = dict[str, Any]


def cycle(store: Any, config: Any, memory: dict[str, Any], now: int) -> None:
    world = decide(store, config, memory, now)
    records.write_all(world)


def decide(store: Any, config: Any, memory: dict[str, Any], now: int) -> World:
    """What would be done now; only the memory changes."""
    world = reading.read_world(store, config, memory, now)
    world["newly_enqueued"], world["timers"], world["marked"], world["kept"], world["evictions"] = [], [], [], [], []
    world["due"] = {}
    world["groups"], world["started"] = groups.k7_groups(world), set()
    usage.g12_begin(world)
    records.words_records_that_are_left(world)
    records.words_gangs_that_went(world)
    minima.g7_satisfied(world)
    groups.k8_hold_clocks(world)
    groups.k6_holds_that_stand(world)
    waves.d5_claims_that_stand(world)
    evict.p3_forget_victims(world)
    claims_that_stand(world)
    enqueue_at_once(world)
    groups.k8_start_clocks(world)
    groups.k8_expire(world)
    claims_that_stand(world)
    run_times.r8_note_due(world)
    for action in world["actions"]:
        if action == "enqueue":
            order.serve_all(world, order.KNOCKING, enqueue.m6_serve)
        elif action == "allocate":
            order.serve_all(world, order.ALLOCATING, placing.serve)
            deadlocks.k12_deadlock(world)
            world["kept"] = []
        elif action == "backfill":
            order.serve_all(world, order.BACKFILLING, placing.serve)
        elif action == "preempt":
            evict.preempt(world)
        elif action == "reclaim":
            evict.reclaim(world)
        elif action == "reserve":
            reserve.r3_reserve(world)
    run_times.r8_publish(world)
    reserve.r1_timers(world)
    usage.g12_timers(world)
    groups.k8_note_clocks(world)
    for keys in groups.distinct(world):
        until = groups.k8_clock(world, keys)
        if until is not None and not groups.k8_stands(world, keys):
            world["timers"].append(until)
    memory["timers"] = sorted({timer for timer in world["timers"] if timer > now})
    return world


def claims_that_stand(world: World) -> None:
    """P3, D5, R7: those that no longer help end in this cycle."""
    evict.p3_claims_that_stand(world)
    waves.d5_claims_that_stand(world)
    reserve.r7_reservations_that_stand(world)


def enqueue_at_once(world: World) -> None:
    """M6: PodGroups without `minResources` pass no enqueue, nor does one whose members run already (V5)."""
    for gang in world["gangs"].values():
        if gang["enqueued"] or order.obstacle(world, gang) is not None:
            continue
        if gang["min_resources"] is None or "enqueue" not in world["actions"] or minima.occupied(world, gang):
            enqueue.m6_enqueue(world, gang, "Enqueued")


def due(store: Any, config: Any, memory: dict[str, Any], now: int) -> int | None:
    """The next instant at which a timer fires."""
    return min((timer for timer in memory["timers"] if timer > now), default=None)


def pending(store: Any, config: Any, memory: dict[str, Any], now: int) -> list[dict[str, Any]]:
    """G10: every gang whose minima are not placed, and why, computed for the state that is shown."""
    world = decide(store, config, copy.deepcopy(memory), now)
    found = []
    for gang in world["gangs"].values():
        tasks = minima.waiting(world, gang)
        stuck = bool(gang["problem"]) and bool(tasks)
        settled = minima.m4_ready(world, gang) or ((gang["satisfied"] or gang["finished"]) and not tasks)
        marked = any(task["status"] == "marked" for task in gang["tasks"])
        if not gang["minimum"] and not minima.occupied(world, gang) and (tasks or marked):
            settled = False  # G10: a gang with minimum 0 that waits, or timed out (K8), is pending too
        if (settled and not stuck) or (not gang["tasks"] and gang["object"] is None):
            continue
        if gang["tasks"] and not any(task["ours"] for task in gang["tasks"]):
            continue
        gone = ("terminating", "failed") if gang["dialect"] == "pod" else ("terminating",)
        if gang["object"] is None and all(task["status"] in gone for task in gang["tasks"]):
            continue
        none = reasons.k8_timed_out(world, gang) if marked else reasons.reason("GangInvalid", {})
        why = world["reasons"].get(gang["key"]) or none
        found.append(
            {
                "gang": gang["title"],
                "dialect": gang["dialect"],
                "queue": gang["queue"],
                "priority": gang["priority"],
                "satisfied": gang["satisfied"],
                "missing": why["missing"],
                "reason": why["reason"],
                "or": why.get("or", ()),
                "any_numbers": why.get("any_numbers", False),
                "message": why["reason"],
                "expected_start": world["memory"]["expected_starts"].get(gang["key"]),
                "now": now,
                "is_planned_anew": conservative.is_conservative(world),
                "needs_more_nodes": memory["needs_more_nodes"].get(gang["key"], False)
                and reserve.r7_could_start(world, gang),
                "reasons": [
                    {"role": role, "reason": why, "nodes": count} for (role, why), count in why["reasons"].items()
                ],
            }
        )
    return sorted(found, key=lambda one: (one["gang"], one["dialect"]))


def run(
    documents: list[dict[str, Any]],
    settings: dict[str, Any] | None,
    hints: Any,
    until: int | None,
    reading: tuple[str, ...] = (),
) -> tuple[Any, list[str]]:
    """A whole simulation with the oracle as its scheduler, and which promises the engine's choices broke."""
    config = adapter.configured(settings)
    memory = records.new_memory(hints, reading)
    result = adapter.run_oracle(documents, config, memory, cycle, due, pending, until)
    return result, memory["violations"]
