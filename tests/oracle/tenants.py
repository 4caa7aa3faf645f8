"""S: what tenants may take from each other: priorities that are granted (S3), queues with doors (S5), immunity up to a
queue's share (S6), names of gangs in other namespaces (S7)."""

from __future__ import annotations

from typing import Any

from oracle import adapter, placing, queues

World = dict[str, Any]
Gang = dict[str, Any]
Task = dict[str, Any]
Obj = dict[str, Any]

HIDDEN = "a gang of another namespace"


# ---- S3


def s3_own_priority(world: World, namespace: str, class_name: str) -> int | None:
    """The priority of a gang's own class; `None`: it has none, or a `system-*` class outside the namespaces in which
    such a class counts."""
    from oracle import dialects

    allowed = ("kube-system", *world["settings"]["system_namespaces"])
    if not class_name or (class_name.startswith("system-") and namespace not in allowed):
        return None
    return dialects.class_value(world, class_name)


def s3_priority(world: World, gang: Gang) -> int:
    """G8: its own class's, else the highest of its pods' or templates'. S3: where a quota limits its class, and its
    pods do not carry it, its pods' priority counts; with `tenancy: isolated` the lower of the two."""
    of_pods = max((task["priority"] for task in gang["tasks"]), default=gang["templates_priority"])
    own = gang["own_priority"]
    if own is None:
        return int(of_pods)
    if not gang["own_class"]:
        return int(own)
    if s3_is_limited(world, gang["key"][1], gang["own_class"]) and not carried(gang):
        return int(of_pods)
    return int(min(own, of_pods) if world["settings"]["isolated"] else own)


def carried(gang: Gang) -> bool:
    """Whether all its pods carry its class, or will."""
    if not gang["tasks"]:
        return bool(gang["templates_priority"] == gang["own_priority"])
    return all(task["pod"]["spec"].get("priorityClassName") == gang["own_class"] for task in gang["tasks"])


def s3_is_limited(world: World, namespace: str, class_name: str) -> bool:
    """Whether a ResourceQuota of the namespace limits the class."""
    for quota in adapter.objects(world["store"], "ResourceQuota"):
        if quota["metadata"]["namespace"] != namespace:
            continue
        for one in ((quota.get("spec") or {}).get("scopeSelector") or {}).get("matchExpressions") or ():
            named = class_name in (one.get("values") or ())
            operator = one.get("operator") if one.get("scopeName") == "PriorityClass" else None
            if operator == "Exists" or (operator == "In" and named) or (operator == "NotIn" and not named):
                return True
    return False


# ---- S5


def s5_shut(world: World, gang: Gang) -> bool:
    """Whether its queue, or one above it, does not allow its namespace. Once satisfied it stays."""
    if gang["satisfied"]:
        return False
    namespace = gang["key"][1]
    labels: dict[str, str] = {}
    for one in adapter.objects(world["store"], "Namespace"):
        if one["metadata"]["name"] == namespace:
            labels = one["metadata"].get("labels") or {}
    for place in queues.path_up(world, gang["queue"]):
        doors = (world["queues"].get(place) or {}).get("doors") or {}
        names, selector = doors.get("names"), doors.get("selector")
        if names is None and selector is None:
            continue
        if names is not None and namespace in [name.strip() for name in names.split(",")]:
            continue
        key, _, value = (selector or "").partition("=")
        if selector is None or labels.get(key) != value:
            return True
    return False


# ---- S6


def s6_ends_at_share(world: World, gang: Gang) -> bool:
    """Whether immunity counts only up to the share of its queue: it or one above says so, or the config."""
    places = queues.path_up(world, gang["queue"])
    within = any((world["queues"].get(place) or {}).get("immune_within_share") for place in places)
    return bool(within or world["settings"]["isolated"])


def s6_counts(world: World, gang: Gang) -> bool:
    """Whether the immunity of its pods counts now."""
    from oracle import evictable

    if not s6_ends_at_share(world, gang):
        return True
    trial = placing.start_trial(world, gone=set(world["leaving"]))
    return not evictable.above_share(world, trial, queues.v4_deserved(world, trial), gang["queue"])


def s6_is_immune(world: World, task: Task) -> bool:
    """Whether it, or its gang, asks not to be evicted, or not yet."""
    gang = world["gangs"][task["gang"]]
    return bool(
        task["terms"]["protected"]
        or gang["terms"]["protected"]
        or max(task["terms"]["cooldown"], gang["terms"]["cooldown"])
    )


def s6_cooldown(world: World, task: Task) -> int:
    """The config bounds it."""
    found = max(task["terms"]["cooldown"], world["gangs"][task["gang"]]["terms"]["cooldown"])
    longest = world["settings"]["longest_cooldown"]
    return int(found if longest is None else min(found, longest))


# ---- S7


def s7_named(engine: Any, settings: dict[str, Any] | None) -> list[str]:
    """With `tenancy: isolated` no message about an object names a gang of another namespace."""
    if (settings or {}).get("tenancy") != "isolated":
        return []
    said = [(line.namespace, line.message) for line in engine.timeline if line.namespace and line.message]
    said += [(one["gang"].partition("/")[0], one["message"]) for one in engine.pending]
    titles = {f"{line.namespace}/{line.name.split('-')[0]}" for line in engine.timeline if line.kind == "Pod"}
    found = []
    for namespace, message in said:
        for title in sorted(titles):
            if not title.startswith(namespace + "/") and title in message:
                found.append(f"S7: {namespace} reads of {title}: {message}")
    return found[:1]
