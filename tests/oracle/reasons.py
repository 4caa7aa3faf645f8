"""G10: why a gang waits, with the numbers. A reason is a dictionary: the word, what is missing by role, and for which
reasons on how many nodes."""

from __future__ import annotations

from typing import Any

from oracle import claims, minima, predicates, queues, rules

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]


def reason(word: str, missing: dict[str, int], nodes: dict[tuple[str, str], int] | None = None) -> dict[str, Any]:
    return {"reason": word, "missing": missing, "reasons": nodes or {}}


def g4_not_enough_pods(world: World, gang: Gang) -> dict[str, Any]:
    """G4, N4: a pod that the API server refused says so."""
    return reason("FailedCreate" if gang["failed_create"] else "NotEnoughPods", minima.g4_missing(world, gang))


def invalid(world: World, gang: Gang) -> dict[str, Any]:
    """Its object, its queue or its values do not allow it to be scheduled (K3, V5)."""
    return reason("GangInvalid", minima.needed_by_role(world, gang))


def k8_timed_out(world: World, gang: Gang) -> dict[str, Any]:
    return reason("TimedOut", minima.needed_by_role(world, gang))


def g8_behind(world: World, gang: Gang, unit: list[Gang]) -> dict[str, Any]:
    """It is not attempted. If it would not be enqueued or would not fit either, that may be said instead: it was found
    before it was blocked, or of a gang like it."""
    from oracle import enqueue, placing

    if not gang["enqueued"]:
        why = enqueue.m6_refusal(world, gang, {}, {})
    else:
        trial = placing.start_trial(world, {one["key"] for one in unit})
        why = placing.g2_all_or_nothing(world, trial, unit)
    found = reason("BlockedByFIFO", minima.needed_by_role(world, gang))
    return {**found, "or": said_of(k7_of_mate(world, gang, why))} if why is not None else found


def said_of(why: dict[str, Any]) -> tuple[str, ...]:
    """The words that may be said: where two are true, either."""
    return (why["reason"], *why.get("or", ()))


def g10_does_not_fit(
    world: World, trial: dict[str, Any], gang: Gang, task: Task, left: list[Task], rest: list[Task], short: int
) -> dict[str, Any]:
    """The task found no node; `left` are the needed tasks without a place, it included."""
    missing: dict[str, int] = {}
    for one in left:
        if one["role"] == task["role"] or rules.follows("G10"):
            missing[one["role"]] = missing.get(one["role"], 0) + 1
    if not left:
        missing = {task["role"]: short}
    if not queues.v4_may_take(world, trial, gang["queue"], task["request"]):
        return {**reason("QueueFull", missing, {(task["role"], "queue"): 0}), "of": gang["key"]}
    counts: dict[tuple[str, str], int] = {}
    for node in world["nodes"]:
        why = predicates.g6_standing_reason(gang, task, node)
        why = why or claims.closed_reason(world, gang, task, node["name"])
        found = [why] if why else []
        if not found:
            for name in predicates.lacking(task, trial["free"][node["name"]]):
                found.append("Too many pods" if name == "pods" else f"Insufficient {name}")
        for one in found:
            counts[task["role"], one] = counts.get((task["role"], one), 0) + 1
    return {**reason("Unschedulable", missing, counts), "of": gang["key"]}


def k7_of_mate(world: World, gang: Gang, why: dict[str, Any]) -> dict[str, Any]:
    """K7, G10: a gang speaks of its own pods; of those that it starts with only that they wait. Its own may lack room
    too: the attempt ended before it came to them."""
    if why.get("of") == gang["key"]:
        return why
    if why.get("of") is None:
        return {**why, "missing": minima.needed_by_role(world, gang)}  # `minResources` of them all
    return {**reason("GroupNotReady", minima.needed_by_role(world, gang)), "or": (why["reason"],)}
