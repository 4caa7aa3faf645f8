"""S9: room for pods that do not exist is within the quotas of its namespace, and not claimed again by an owner that let
such a claim lapse for as long as that one lasted."""

from __future__ import annotations

from typing import Any

from oracle import adapter, minima, reasons, waves

World = dict[str, Any]
Gang = dict[str, Any]
HOUR = 3600 * adapter.SECOND


def s9_refusal(world: World, gang: Gang) -> dict[str, Any] | None:
    """Why a gang may not claim the room of its later waves; `None`: it may, or needs none."""
    asked = waves.d5_later_tasks(world, gang)
    if not asked:
        return None
    until = world["memory"]["lapsed"].get((gang["key"][1], gang["queue"]), 0)
    if until > world["now"]:
        world["timers"].append(until)
    elif all(s9_is_within(world, gang, asked, one) for one in adapter.objects(world["store"], "ResourceQuota")):
        return None
    return reasons.reason("ClaimNotAllowed", minima.needed_by_role(world, gang))


def s9_is_within(world: World, gang: Gang, asked: list[dict[str, Any]], quota: dict[str, Any]) -> bool:
    """Used, with the claims that stand as if their pods existed, and this one."""
    namespace = gang["key"][1]
    if quota["metadata"]["namespace"] != namespace:
        return True
    pods = list(asked)
    for key, kind in world["memory"]["claims"]:
        owner = world["gangs"].get(key)
        if kind == "wave" and key[1] == namespace and owner is not None:
            kept = [task for task, _ in waves.d5_kept(world, owner)]
            for role, count in owner["later"].items():
                pods += [task for task in kept if task["role"] == role][:count]
    used = (quota.get("status") or {}).get("used") or {}
    for key, most in quota["spec"]["hard"].items():
        wanted = sum(s9_charge(world["gangs"][task["gang"]], quota, key, task) for task in pods)
        known = adapter.parse_quantity(used.get(key, "0")).nanos
        if wanted and known + wanted > adapter.parse_quantity(most).nanos:
            return False
    return True


def s9_charge(gang: Gang, quota: dict[str, Any], key: str, task: dict[str, Any]) -> int:
    """What one pod takes of one limit, in nano-units."""
    spec, request = task["pod"]["spec"], task["request"]
    best_effort = not any(request.get(name) for name in ("cpu", "memory"))
    in_scope = {
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "Terminating": spec.get("activeDeadlineSeconds") is not None,
        "NotTerminating": spec.get("activeDeadlineSeconds") is None,
    }
    if not all(in_scope[scope] for scope in quota["spec"].get("scopes") or ()):
        return 0
    name = spec.get("priorityClassName") or gang["inherited_class"]
    for one in (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ():
        values = one.get("values") or ()
        matches = {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}
        if not matches[one["operator"]]:
            return 0
    if key in ("pods", "count/pods"):
        return 10**9
    name = key.removeprefix("requests.").removeprefix("limits.")
    nanos: int = request.get(name, 0) * (10**6 if name == "cpu" else 10**9)
    if key.startswith("limits."):
        limits = [(one.get("resources") or {}).get("limits") or {} for one in spec["containers"]]
        nanos = max(nanos, sum(adapter.parse_quantity(one[name]).nanos for one in limits if name in one))
    return nanos


def s9_lapse(world: World, key: tuple[str, str, str]) -> None:
    """A claim, or a part of it, ends unused. Of a gang whose pods were evicted that is no fault."""
    claim = world["memory"]["claims"][key, "wave"]
    if key in world["memory"]["was_evicted"]:
        return
    ended = min(world["now"], claim["until"])
    lasted = ended - (claim["until"] - world["settings"]["gang_deadline"])
    owner, lapsed = (key[1], claim["queue"]), world["memory"]["lapsed"]
    lapsed[owner] = max(lapsed.get(owner, 0), ended + min(lasted, HOUR))
