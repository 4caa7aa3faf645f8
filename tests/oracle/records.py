"""What the oracle writes: phases, Bindings, evictions, records of claims, marks, and why pods wait."""

from __future__ import annotations

import json
from typing import Any

from oracle import adapter, dialects, later_room, minima, waves

CLAIM = "enbloc.dev/claim-"
KINDS = ("hold", "reserve", "preempt", "wave")

World = dict[str, Any]
Gang = dict[str, Any]


def new_memory(hints: dict[int, dict[Any, str]] | None = None, reading: tuple[str, ...] = ()) -> dict[str, Any]:
    """What rules say is remembered. It outlives a restart of the scheduler (G11, R7, K8).

    `hints` are the engine's choices where a rule leaves the choice free; the oracle checks them before it takes one.
    `reading`: which of several ways to read the rules is followed. `marks go`: pods that go while no scheduler runs are
    those with the commit marks (Words).
    """
    return {
        "satisfied": {},  # G7: gang -> the minima that were bound
        "started": {},  # G11: gang -> its members that were bound, one of which carries its mark
        "reading": reading,
        "claims": {},  # Words: gang and kind -> slots (pod UID -> node)
        "clocks": {},  # K8: gang -> when its clock started
        "clocks_stand": set(),  # K8: gangs whose clocks do not run
        "clocks_since": 0,  # K8: the time of the last cycle
        "names": {},  # R7: pod UID -> its name
        "homes": {},  # Words: gang -> UID of the object that carries its records
        "members": {},  # Words: gang -> UIDs of its pods
        "pods_that_came_or_went": [],  # since the last cycle
        "has_started": False,  # whether a scheduler started since the last cycle
        "tried": {},  # M6: gangs that were attempted since they were enqueued
        "evicted_for": {},  # P3: who was evicted for whom
        "lapsed": {},  # S9: namespace and queue -> until when it claims no room for pods that do not exist
        "was_evicted": set(),  # S9: gangs of which a pod was evicted since they claimed such room
        "needs_more_nodes": {},  # R6: gangs that say so
        "expected_starts": {},  # R8: gang -> when it is expected to start
        "deleted_specs": [],  # V5: SchedulingSpecs that were deleted since the last cycle
        "lost_their_spec": set(),  # V5: owners whose SchedulingSpec was deleted while pods waited
        "used": {},  # G12: account -> what it used: from when, until when, which part of the cluster
        "rates": {},  # G12: account -> which part of the cluster it uses
        "rates_before": {},  # G12: the same until the present instant
        "rates_since": 0,  # G12: the time of the last cycle
        "timers": [],
        "violations": [],  # choices of the engine that a rule does not allow
        "hints": hints or {},
    }


def tried(world: World, gang: Gang, why: dict[str, Any]) -> None:
    """An attempt failed: why, and that there was one (M6)."""
    world["reasons"][gang["key"]] = why
    if gang["enqueued"]:
        world["memory"]["tried"][gang["key"]] = True


def write_all(world: World) -> None:
    write_phases(world)
    write_bindings(world)
    write_claims(world)
    write_marks(world)
    write_evictions(world)
    write_reasons(world)
    k13_write_conditions(world)


def write_phases(world: World) -> None:
    for gang in world["newly_enqueued"]:
        conditions = with_condition(gang["object"], "Enqueued", "True", gang["enqueued_by"], "", world["now"])
        status = {"phase": "Inqueue", "conditions": conditions}
        adapter.patch(world["store"], gang["kind"], gang["object"], {"status": status}, status=True)


def write_bindings(world: World) -> None:
    for task in world["tasks"]:
        if task["uid"] in world["placed"]:
            adapter.bind(world["store"], task["pod"], world["placed"][task["uid"]], {})


def write_claims(world: World) -> None:
    """One record a gang and kind, on its object, or else on its oldest pod: pod -> node."""
    homes = world["memory"]["homes"] = {}
    world["memory"]["started"] = {key: minima.started(world, gang) for key, gang in world["gangs"].items()}
    for gang in world["gangs"].values():
        if gang["home"] is None:
            continue
        notes = gang["home"]["metadata"].get("annotations") or {}
        texts = {CLAIM + kind: record_of(world, gang, kind) for kind in KINDS}
        homes[gang["key"]] = gang["home"]["metadata"]["uid"]
        changed = {key: text for key, text in texts.items() if notes.get(key) != text}
        if changed:
            adapter.patch(world["store"], gang["home_kind"], gang["home"], {"metadata": {"annotations": changed}})


def words_records_that_are_left(world: World) -> None:
    """Words: a record goes with the object, or the oldest pod, that carries it. While a scheduler runs it writes the
    record again; one that starts finds none, and the gang has no claims and no clock."""
    memory = world["memory"]
    if not memory["has_started"]:
        return
    memory["has_started"] = False
    for key, uid in memory["homes"].items():
        home = world["gangs"][key]["home"] if key in world["gangs"] else None
        if home is None or home["metadata"]["uid"] != uid:
            memory["clocks"].pop(key, None)
            for kind in KINDS:
                memory["claims"].pop((key, kind), None)
    for key, uids in memory["started"].items() if "marks go" in memory["reading"] else ():
        gang = world["gangs"].get(key)
        if gang is not None and key in memory["satisfied"] and uids - minima.started(world, gang):
            minima.g11_mark_is_gone(world, gang)


def words_gangs_that_went(world: World) -> None:
    """Words: a gang without an object is gone with its last pod. Pods that come under its name after that, perhaps in
    the same instant, are a new gang."""
    memory = world["memory"]
    for what, pod in memory["pods_that_came_or_went"]:
        key = dialects.membership(pod, world)["key"]
        uids = memory["members"].setdefault(key, set())
        if what == "ADDED":
            uids.add(pod["metadata"]["uid"])
            continue
        uids.discard(pod["metadata"]["uid"])
        if not uids and (key not in world["gangs"] or world["gangs"][key]["object"] is None):
            for known in ("clocks", "satisfied", "tried", "evicted_for"):
                memory[known].pop(key, None)
            if (key, "wave") in memory["claims"]:
                later_room.s9_lapse(world, key)
            for kind in KINDS:
                memory["claims"].pop((key, kind), None)
    memory["pods_that_came_or_went"].clear()


def record_of(world: World, gang: Gang, kind: str) -> str | None:
    claim = world["memory"]["claims"].get((gang["key"], kind))
    clock = world["memory"]["clocks"].get(gang["key"]) if kind == "hold" else None
    if claim is None and clock is None:
        return None
    slots = claim["slots"] if claim else {}
    tasks = [*gang["tasks"], *(waves.d5_reserved(world, gang) if kind == "reserve" else ())]
    names = {task["name"]: {slots[task["uid"]]: 1} for task in tasks if task["uid"] in slots}
    if kind == "wave":
        names = {}
        for name, node in slots.items():
            of_role = names.setdefault(name.partition("/")[0], {})
            of_role[node] = of_role.get(node, 0) + 1
    return json.dumps({"kind": kind, "slots": names, "until": clock["start"] if clock else 0}, sort_keys=True)


def write_marks(world: World) -> None:
    for task in world["marked"]:
        change = {"metadata": {"annotations": {"gang.scheduling.koordinator.sh/timeout": "true"}}}
        adapter.patch(world["store"], "Pod", task["pod"], change)


def write_evictions(world: World) -> None:
    for task, verb, message in world["evictions"]:
        adapter.evict(world["store"], task["pod"], verb, message)


def write_reasons(world: World) -> None:
    """G10, as far as others read it: a QueueJob's controller looks at the condition of its pods (A5)."""
    for key, why in world["reasons"].items():
        gang = world["gangs"].get(key)
        for task in minima.waiting(world, gang) if gang else ():
            known = condition_of(task["pod"], "PodScheduled")
            if known.get("status") == "False" and known.get("reason") == why["reason"]:
                continue
            conditions = with_condition(task["pod"], "PodScheduled", "False", why["reason"], "", world["now"])
            adapter.patch(world["store"], "Pod", task["pod"], {"status": {"conditions": conditions}}, status=True)


def k13_is_needed(world: World, gang: Gang) -> bool:
    """Whether its minima need what waits of it. Lost members may not exist again yet: then only surplus waits."""
    if minima.m4_ready(world, gang) or not gang["satisfied"]:
        return not minima.m4_ready(world, gang)
    needed, _, short = minima.o1_split(world, gang)
    return bool(needed or short or minima.g7_replacements(world, gang))


def k13_write_conditions(world: World) -> None:
    """K13: whether the pods of a Volcano PodGroup could not be placed, and why: its phase follows."""
    for gang in world["gangs"].values():
        if gang["kind"] != dialects.VOLCANO_PODGROUP:
            continue
        metadata = gang["object"]["metadata"]
        obj = world["store"].get(gang["kind"], metadata["namespace"], metadata["name"])
        why = world["reasons"].get(gang["key"]) or world["put_off_for"].get(gang["key"])
        why = why if k13_is_needed(world, gang) else None  # of surplus it says nothing
        known = condition_of(obj or {}, "Unschedulable")
        wanted = ("True", why["reason"]) if why else ("False", "Scheduled")
        if obj is None or (known.get("status", "False"), known.get("reason", "Scheduled")) == wanted:
            continue
        conditions = with_condition(obj, "Unschedulable", *wanted, "", world["now"])
        adapter.patch(world["store"], gang["kind"], obj, {"status": {"conditions": conditions}}, status=True)


def condition_of(obj: dict[str, Any], kind: str) -> dict[str, Any]:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == kind:
            found: dict[str, Any] = one
            return found
    return {}


def with_condition(
    obj: dict[str, Any], kind: str, status: str, reason: str, message: str, now: int
) -> list[dict[str, Any]]:
    stamp = adapter.format_timestamp(now)
    mine = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
    others = [one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type") != kind]
    return [*others, mine]
