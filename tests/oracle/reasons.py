"""G10: why a gang waits, with the numbers. A reason is a dictionary: the word, what is missing by role, and for which
reasons on how many nodes."""

from __future__ import annotations

from typing import Any

from oracle import claims, minima, predicates, queues, waves

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


def n1_unsupported(world: World, gang: Gang) -> dict[str, Any]:
    return reason("UnsupportedConstraint", minima.needed_by_role(world, gang))


def k8_timed_out(world: World, gang: Gang) -> dict[str, Any]:
    return reason("TimedOut", minima.needed_by_role(world, gang))


def g8_behind(world: World, gang: Gang, unit: list[Gang]) -> dict[str, Any]:
    """It is not attempted. If it would not be enqueued or would not fit either, that may be said instead: it was found
    before it was blocked, or of a gang like it."""
    from oracle import enqueue, placing

    if not gang["enqueued"]:
        why = enqueue.m6_refusal(world, gang, {}, {})
    elif any(minima.g4_missing(world, one) for one in unit):
        why = None
    else:
        trial = placing.start_trial(world, {one["key"] for one in unit})
        why = placing.g2_all_or_nothing(world, trial, unit)
    found = reason("BlockedByFIFO", minima.needed_by_role(world, gang))
    return {**found, "or": said_of(k7_of_mate(world, gang, why))} if why is not None else found


def said_of(why: dict[str, Any]) -> tuple[str, ...]:
    """The words that may be said: where two are true, either."""
    return (why["reason"], *why.get("or", ()))


def g10_does_not_fit(world: World, trial: dict[str, Any], gang: Gang, task: Task, count: int) -> dict[str, Any]:
    """The task found no node, and with it so many of its role."""
    missing = {task["role"]: count}
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


def g10_lacking(world: World, trial: dict[str, Any], gangs: list[Gang]) -> dict[Any, dict[str, Any]]:
    """G10: of gangs that were tried together, and one of which failed: what else fits is placed in the trial, and each
    role of each gang says what it lacks. Gangs that lack nothing are not in the answer: perhaps none does, since a task
    fits now that others which it must be beside were placed."""
    found = {}
    for gang in gangs:
        why = lacking_of(world, trial, gang)
        if why is not None:
            found[gang["key"]] = why
    return found


def lacking_of(world: World, trial: dict[str, Any], gang: Gang) -> dict[str, Any] | None:
    from oracle import placing

    needed, rest, short = placing.wanted_now(world, trial, gang)
    whys: dict[str, dict[str, Any]] = {}
    missing: dict[str, int] = {}
    left: dict[str, int] = {}
    later = [task for task in waves.d5_later_tasks(world, gang) if task["uid"] not in trial["placed"]]
    for task in [*needed, *later, *rest]:
        if task in rest and not short:
            break
        node = placing.best_node(world, trial, gang, task)
        if node is not None:
            placing.put(world, trial, task, node)
            short -= task in rest
            continue
        whys.setdefault(task["role"], g10_does_not_fit(world, trial, gang, task, 1))
        counts = left if task in rest else missing
        counts[task["role"]] = counts.get(task["role"], 0) + 1
    for role, count in total_lacks(left, short).items():
        missing[role] = missing.get(role, 0) + count
        whys.setdefault(role, whys[next(iter(left))])
    if not missing:
        return None
    first = min(missing, key=lambda role: (role == "" and len(missing) > 1, role))
    merged = {key: count for role in missing for key, count in whys[role]["reasons"].items()}
    return {**reason(whys[first]["reason"], missing, merged), "of": gang["key"]}


def total_lacks(left: dict[str, int], short: int) -> dict[str, int]:
    """What the total lacks: of the one role that is left, of each if all of them are needed, else of any role."""
    if not short:
        return {}
    if len(left) == 1:
        return dict.fromkeys(left, short)
    return left if sum(left.values()) == short else {"": short}


def k7_of_mate(world: World, gang: Gang, why: dict[str, Any]) -> dict[str, Any]:
    """K7, G10: a gang speaks of its own pods; of those that it starts with only that they wait."""
    own: dict[str, Any] | None = why.get("each", {}).get(gang["key"])
    if own is not None or why.get("of") == gang["key"]:
        return own or why
    if why.get("of") is None:
        return {**why, "missing": minima.needed_by_role(world, gang)}  # `minResources` of them all
    return reason("GroupNotReady", minima.needed_by_role(world, gang))
