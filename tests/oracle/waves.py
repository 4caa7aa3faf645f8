"""D: roles that begin one after the other. Each wave is a gang of its own; a whole-job gang (D5) is not.

Of a whole-job gang the room of later waves is a claim of the kind `wave`: role and number -> node. What has that room
are placeholders: tasks of the role's template."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]


def d3_present_waves(gang: Gang, group: dict[str, Any], job: dict[str, Any] | None) -> None:
    """D3: gang checks skip roles whose wave has not begun, and the total shrinks by their minima, or where a role has
    none by its replicas. Which roles have begun is noted by the controller on the PodGroup."""
    notes = group["metadata"].get("annotations") or {}
    if notes.get("dependent-job") != "true":
        return
    gang["waves"] = True
    gang["wave_of"] = wave_numbers(job)
    begun = notes.get("enbloc.dev/begun-roles")
    if begun is None:
        return
    roles = begun.split(",")
    all_minima = (group.get("spec") or {}).get("minTaskMember") or {}
    replicas = {role["name"]: role.get("replicas") or 0 for role in tasks_of(job)}
    present = {role: count for role, count in all_minima.items() if role in roles}
    for role in d2_awaited(job, roles):
        present[role] = present.get(role) or replicas[role]
    later = {role: count or replicas.get(role, 0) for role, count in all_minima.items() if role not in roles}
    gang["minima"] = {role: count for role, count in present.items() if count > 0}
    gang["minimum"] = max(gang["minimum"] - sum(later.values()), sum(gang["minima"].values()))
    gang["more_waves"] = bool(later)
    if notes.get("enbloc.dev/depends-on-gang") == "true":
        own = ((job or {}).get("spec") or {}).get("priorityClassName") or ""
        gang["inherited_class"] = "" if own.startswith("system-") else own  # S3
        gang["templates"] = {role["name"]: role["template"] for role in tasks_of(job)}
        gang["later"] = {role["name"]: all_minima.get(role["name"], 0) for role in tasks_of(job)}
        gang["later"] = {role: count for role, count in gang["later"].items() if count > 0 and role in later}


def d2_awaited(job: dict[str, Any] | None, begun: list[str]) -> list[str]:
    """D2: begun roles whose minimum is not set, and on which a role waits that has not begun: all their replicas must
    run before it does."""
    if job is None:
        return []
    unset = ((job["metadata"].get("annotations") or {}).get("enbloc.dev/defaulted-minima") or "").split(",")
    waits = [role for role in tasks_of(job) if role["name"] not in begun]
    named = {name for role in waits for name in (role.get("dependsOn") or {}).get("name") or ()}
    return sorted(name for name in named if name in begun and name in unset)


def tasks_of(job: dict[str, Any] | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ((job or {}).get("spec") or {}).get("tasks") or []
    return found


def wave_numbers(job: dict[str, Any] | None) -> dict[str, int]:
    """How many waves come before each role's own."""
    needs = {role["name"]: (role.get("dependsOn") or {}).get("name") or () for role in tasks_of(job)}
    found = dict.fromkeys(needs, 0)
    for _ in needs:
        for role, names in needs.items():
            found[role] = max((found[name] + 1 for name in names if name in found), default=0)
    return found


# ---- D5


def placeholder(world: World, gang: Gang, name: str) -> Task:
    """A task of a role's template; `name` is role/number."""
    from oracle import reading, volumes

    role = name.partition("/")[0]
    template = gang["templates"][role]
    request = reading.g6_request(template["spec"])
    number = int(name.partition("/")[2])
    title = f"{gang['title'].rpartition('/')[2]}-{name.replace('/', '-')}"
    uid = f"later/{'/'.join(gang['key'])}/{name}"
    notes = (template.get("metadata") or {}).get("annotations") or {}
    pod = {"spec": template["spec"], "metadata": {"namespace": gang["key"][1], "annotations": notes}}
    return {
        "uid": uid,
        "slot": name,
        "namespace": gang["key"][1],
        "name": title,
        "status": "pending",
        "order": reading.o2_order(gang["priority"], number, gang["created"], title, uid),
        "pod": pod,
        "gang": gang["key"],
        "role": role,
        "ours": True,
        "request": {**request, "pods": 1},
        "best_effort": not request,
        "labels": (template.get("metadata") or {}).get("labels") or {},
        "reachable_from": volumes.g6_nodes_of_volumes(world, pod),
    }


def d5_kept(world: World, gang: Gang) -> list[tuple[Task, str]]:
    """The placeholders that have room, and where."""
    from oracle import claims

    slots = claims.slots_of(world, gang["key"], "wave")
    return [(placeholder(world, gang, name), node) for name, node in slots.items()]


def d5_later_tasks(world: World, gang: Gang) -> list[Task]:
    """For a whole-job gang that starts: placeholders for later waves that have no room yet. Once its first wave was
    bound, a wave whose room was lost starts for itself (D3)."""
    if not gang["later"] or gang["was_bound"]:
        return []
    kept = [task["role"] for task, _ in d5_kept(world, gang)]
    found = []
    for role, count in gang["later"].items():
        found += [placeholder(world, gang, f"{role}/{number}") for number in range(kept.count(role), count)]
    return found


def d5_reserved(world: World, gang: Gang) -> list[Task]:
    """Placeholders for which nodes are reserved (R1)."""
    from oracle import claims

    slots = claims.slots_of(world, gang["key"], "reserve")
    names = [f"{role}/{number}" for role, count in gang["later"].items() for number in range(count)]
    return [task for name in names if (task := placeholder(world, gang, name))["uid"] in slots]


def d5_have_all(gang: Gang, tasks: list[Task]) -> bool:
    """Whether there is a placeholder for each pod of the later waves."""
    if gang["was_bound"]:
        return True
    roles = [task["role"] for task in tasks if "slot" in task]
    return all(roles.count(role) >= count for role, count in gang["later"].items())


def d5_is_being_freed(world: World, gang: Gang) -> bool:
    """Whether pods leave for all its waves together (P3)."""
    from oracle import claims

    return claims.claim_of(world, gang["key"], "preempt") is not None


def d5_stand_in(world: World, trial: dict[str, Any], gang: Gang) -> None:
    """For a plan: pods that are needed and for which a placeholder keeps room have it."""
    from oracle import minima, placing

    kept = sorted(d5_kept(world, gang), key=lambda entry: entry[1])
    for task in minima.o1_split(world, gang)[0]:
        entry = next((one for one in kept if one[0]["role"] == task["role"]), None)
        if entry is not None:
            placing.take(world, trial, entry[0], entry[1], -1)
            placing.put(world, trial, task, entry[1])
            kept.remove(entry)


@contextmanager
def d5_placed_anew(world: World, gang: Gang) -> Iterator[bool]:
    """P3: while the room that is freed for its later waves is not free yet the gang may start if all its waves fit
    elsewhere: while it lasts, that room is not claimed. Whether that is so. Not once its pods take their places."""
    from oracle import claims, minima, placing

    free = placing.start_trial(world)["free"]
    needed = minima.o1_split(world, gang)[0]
    begins = len(d5_without_room(world, gang, needed)) == len(needed)
    anew = (
        begins
        and d5_is_being_freed(world, gang)
        and any(free[node].get(resource, 0) < 0 for task, node in d5_kept(world, gang) for resource in task["request"])
    )
    with claims.without(world, [gang["key"]] if anew else [], "wave"):
        yield anew


def d5_without_room(world: World, gang: Gang, tasks: list[Task]) -> list[Task]:
    """The tasks for which no placeholder keeps room."""
    roles = [one["role"] for one, _ in d5_kept(world, gang)]
    found = []
    for task in tasks:
        if task["role"] in roles:
            roles.remove(task["role"])
        else:
            found.append(task)
    return found


def d5_claim(world: World, gang: Gang, places: list[tuple[Task, str]]) -> None:
    """P3: the room that is being freed for its later waves."""
    from oracle import claims

    if places:
        queue = (claims.claim_of(world, gang["key"], "wave") or gang)["queue"]
        claims.make(world, gang["key"], "wave", {task["slot"]: node for task, node in places})
        until = world["now"] + world["settings"]["gang_deadline"]
        world["memory"]["claims"][gang["key"], "wave"].update(until=until, queue=queue)


def d5_take_places(world: World, trial: dict[str, Any], gang: Gang) -> list[str]:
    """Pods of a later wave take the places of their placeholders, by node; where one differs from its template and does
    not fit there, the claim is dropped. Returns the slots that were taken."""
    from oracle import claims, later_room, minima, placing, predicates

    kept = sorted(d5_kept(world, gang), key=lambda entry: entry[1])
    before = placing.copy_trial(trial)
    nodes = {node["name"]: node for node in world["nodes"]}
    taken = []
    for task in minima.o1_split(world, gang)[0]:
        entry = next((one for one in kept if one[0]["role"] == task["role"]), None)
        if entry is None:
            continue
        placing.take(world, trial, entry[0], entry[1], -1)
        standing = predicates.g6_standing_reason(gang, task, nodes[entry[1]])
        if standing is not None or predicates.lacking(task, trial["free"][entry[1]]):
            trial.update(before)
            for one, node in kept:
                placing.take(world, trial, one, node, -1)
            later_room.s9_lapse(world, gang["key"])
            claims.end(world, gang["key"], "wave")
            return []
        placing.put(world, trial, task, entry[1])
        kept.remove(entry)
        taken.append(entry[0]["slot"])
    return taken


def d5_keep(world: World, gang: Gang, taken: list[str], later: list[tuple[Task, str]]) -> None:
    """A wave is placed: the room of those that took theirs is theirs, the later ones keep what was found for them."""
    from oracle import claims

    slots = {name: node for name, node in claims.slots_of(world, gang["key"], "wave").items() if name not in taken}
    claim = claims.claim_of(world, gang["key"], "wave")
    until = claim["until"] if claim else world["now"] + world["settings"]["gang_deadline"]
    queue = (claim or gang)["queue"]
    if later:
        world["memory"]["was_evicted"].discard(gang["key"])
    slots.update({task["slot"]: node for task, node in later})
    if slots:
        claims.make(world, gang["key"], "wave", slots)
        world["memory"]["claims"][gang["key"], "wave"].update(until=until, queue=queue)
    else:
        claims.end(world, gang["key"], "wave")


def d5_claims_that_stand(world: World) -> None:
    """Until its pods bind, the job ends or cannot start (pods that are missing come late), a node no longer has the
    room, or the deadline passes."""
    from oracle import claims, later_room, minima

    for key, claim in claims.all_of(world, "wave"):
        gang = world["gangs"].get(key)
        over = gang is None or claim["until"] <= world["now"] or gang["finished"] or not gang["templates"]
        if gang is None or over or d5_cannot_start(world, gang):
            later_room.s9_lapse(world, key)
            claims.end(world, key, "wave")
            continue
        if not all(d5_has_room(world, gang, *one) for one in d5_kept(world, gang)):
            claims.end(world, key, "wave")
            continue
        started = gang["covered"] or minima.occupied(world, gang)
        if not started and not d5_is_being_freed(world, gang):
            later_room.s9_lapse(world, key)
            claims.end(world, key, "wave")
            continue
        for name in list(claim["slots"]):
            role = name.partition("/")[0]
            done = minima.occupied(world, gang, role) >= gang["minima"].get(role, 0)
            if done and role not in gang["later"]:
                later_room.s9_lapse(world, key)
                del claim["slots"][name]
        if not claim["slots"]:
            claims.end(world, key, "wave")
        else:
            world["timers"].append(claim["until"])


def d5_cannot_start(world: World, gang: Gang) -> bool:
    from oracle import order, placing, queues, reserve

    why = order.obstacle(world, gang)
    if why is not None and why["reason"] not in ("NotEnoughPods", "FailedCreate"):
        return True
    if not gang["satisfied"] and reserve.beyond_cluster(world, gang):
        return True
    asked = reserve.of_minima(world, gang)
    kept = [task for task, _ in d5_kept(world, gang)]
    for task in kept:
        if minima_task(world, gang, task["role"]) is None:
            queues.add(asked, task["request"])
    return reserve.beyond_queue(world, placing.start_trial(world), gang, asked)


def minima_task(world: World, gang: Gang, role: str) -> Task | None:
    """A pod of the role that its minimum needs: it stands for its placeholder."""
    from oracle import minima

    return next((task for task in minima.o1_split(world, gang)[0] if task["role"] == role), None)


def d5_has_room(world: World, gang: Gang, task: Task, name: str) -> bool:
    from oracle import placing, predicates, promises

    node = next((one for one in world["nodes"] if one["name"] == name), None)
    if node is None or predicates.g6_standing_reason(gang, task, node) is not None:
        return False
    gone = promises.leaving_anyway(world) if d5_is_being_freed(world, gang) else None
    free = placing.start_trial(world, gone=gone)["free"][name]
    return all(free.get(resource, 0) >= 0 for resource in task["request"])
