"""Claims: room on nodes that is set aside for tasks that are not bound yet (Words): holds (K6), reservations (R),
room of later waves (D5), room freed by preemption (P3).

They are remembered by gang and kind, and mirrored in the API as `enbloc.dev/claim-KIND`, where the timeline reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from oracle import groups, minima, queues, reserve, waves

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Claim = dict[str, Any]
Key = tuple[str, str, str]


def claim_of(world: World, key: Key, kind: str) -> Claim | None:
    """Words: a gang has at most one claim of a kind."""
    found: Claim | None = world["memory"]["claims"].get((key, kind))
    return found


def slots_of(world: World, key: Key, kind: str) -> dict[str, str]:
    """Pod UID -> node."""
    claim = claim_of(world, key, kind)
    return dict(claim["slots"]) if claim else {}


def make(world: World, key: Key, kind: str, slots: dict[str, str]) -> None:
    """In place of the claim of that kind that the gang has, if any."""
    if kind == "reserve":
        world["due"].pop(key, None)
    world["memory"]["claims"][key, kind] = {"slots": slots, "since": world["now"]}


def end(world: World, key: Key, *kinds: str) -> None:
    for kind in kinds:
        world["memory"]["claims"].pop((key, kind), None)


def all_of(world: World, kind: str) -> list[tuple[Key, Claim]]:
    """The claims of a kind, by gang."""
    return [(key, claim) for (key, other), claim in world["memory"]["claims"].items() if other == kind]


@contextmanager
def without(world: World, keys: Collection[Key], *kinds: str) -> Iterator[None]:
    """While it lasts these claims do not exist."""
    before = world["memory"]["claims"]
    world["memory"]["claims"] = {
        (key, kind): claim for (key, kind), claim in before.items() if key not in keys or kind not in kinds
    }
    try:
        yield
    finally:
        world["memory"]["claims"] = before


def room_taken(world: World, lifted: set[Any]) -> list[tuple[Task, str]]:
    """Tasks and nodes that claims take room for. A reservation closes its nodes and takes none (R4). What is being made
    free for a gang in `lifted` is free for it; what a gang holds stays taken, its tasks have it (K6)."""
    found = []
    for (key, kind), claim in world["memory"]["claims"].items():
        if kind == "wave" and key in world["gangs"]:
            found += waves.d5_kept(world, world["gangs"][key])
            continue
        if kind == "reserve" or key not in world["gangs"] or (key in lifted and kind != "hold"):
            continue
        for task in world["gangs"][key]["tasks"]:
            node = claim["slots"].get(task["uid"])
            if node is not None and task["status"] == "pending" and task["uid"] not in world["placed"]:
                found.append((task, node))
    to_come = p3_to_be_freed(world, found, lifted)
    return [(task, node) for task, node in found if task["uid"] not in to_come]


def p3_to_be_freed(world: World, taken: list[tuple[Task, str]], lifted: set[Any]) -> set[str]:
    """P3: on nodes where room is freed for a gang in `lifted`, what is there already was not freed for pods of other
    gangs as far as pods that were evicted for those are still there."""
    own = {node for key in lifted for node in slots_of(world, key, "preempt").values()}
    found: set[str] = set()
    left: dict[tuple[str, Any], dict[str, int]] = {}
    for task, node in sorted(taken, key=lambda entry: str(entry[0]["name"])):
        if node not in own or task["uid"] not in slots_of(world, task["gang"], "preempt"):
            continue
        unit = groups.k7_group_of(world, world["gangs"][task["gang"]])
        victims = {one for key in unit for one in world["memory"]["evicted_for"].get(key, ())}
        if (node, task["gang"]) not in left:
            leaving = left[node, task["gang"]] = {}
            for one in world["tasks"]:
                if one["status"] == "terminating" and one["node"] == node and one["gang"] in victims:
                    queues.add(leaving, one["request"])
        room = left[node, task["gang"]]
        if all(room.get(name, 0) >= count for name, count in task["request"].items()):
            queues.add(room, task["request"], -1)
            found.add(task["uid"])
    return found


def closed_reason(world: World, gang: Gang, task: Task, node: str) -> str | None:
    """Why a node that passes every predicate is not for the task."""
    if node in reserve.r5_closed_nodes(world, gang, task):
        return "node(s) resource was(were) reserved"
    return None


def r7_take_own_places(world: World, trial: dict[str, Any], gang: Gang) -> None:
    reserve.r7_take_own_places(world, trial, gang)


def end_used(world: World, gangs: list[Gang], *, commits: bool) -> None:
    """P3, R7: a claim ends when its gang is bound."""
    for gang in gangs:
        reserved = claim_of(world, gang["key"], "reserve")
        if reserved is not None and not commits:  # what else was lost still waits
            reserved["slots"] = {uid: node for uid, node in reserved["slots"].items() if uid not in world["placed"]}
        if commits or minima.m4_ready(world, gang) or not (reserved and reserved["slots"]):
            end(world, gang["key"], "reserve")
        slots = slots_of(world, gang["key"], "preempt")
        left = [task for task in gang["tasks"] if task["uid"] in slots and task["uid"] not in world["placed"]]
        if minima.m4_ready(world, gang) or not left:
            end(world, gang["key"], "preempt")
