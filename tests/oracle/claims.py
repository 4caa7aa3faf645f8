"""Claims: room on nodes that is set aside for tasks that are not bound yet (Words): holds (K6), reservations (R),
room of later waves (D5), room freed by preemption (P3).

They are remembered by gang and mirrored in the API as `enbloc.dev/claims`, where the timeline reads them.
"""

from __future__ import annotations

from typing import Any

from oracle import minima, reserve

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]


def room_taken(world: World, lifted: set[Any]) -> list[tuple[Task, str]]:
    """Tasks and nodes that claims take room for. A reservation closes its nodes and takes none (R4). What is being made
    free for a gang in `lifted` is free for it; what a gang holds stays taken, its tasks have it (K6)."""
    found = []
    for key, claim in world["memory"]["claims"].items():
        if claim["kind"] == "reserve" or key not in world["gangs"] or (key in lifted and claim["kind"] != "hold"):
            continue
        for task in world["gangs"][key]["tasks"]:
            node = claim["slots"].get(task["uid"])
            if node is not None and task["status"] == "pending" and task["uid"] not in world["placed"]:
                found.append((task, node))
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
        claim = world["memory"]["claims"].get(gang["key"])
        if claim is None or claim["kind"] not in ("preempt", "reserve"):
            continue
        left = [task for task in gang["tasks"] if task["uid"] in claim["slots"] and task["uid"] not in world["placed"]]
        if claim["kind"] == "reserve" or minima.m4_ready(world, gang) or not left:
            del world["memory"]["claims"][gang["key"]]
