"""The API rules that hold for pods alone: conditions, gates, immutable fields.

Pure functions on plain JSON, used by the store, by quota and by the nodes. Scheduling is left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from enbloc.api.meta import Fault, Obj, is_terminating
from enbloc.api.writes import Refused

POD = "Pod"
GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""The condition that a pod with scheduling gates is created with."""
DEFAULT_GRACE_S = 30
MAX_GRACE_S = 10**9  # a longer one would end after year 9999


def is_finished(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def node_of(pod: Obj) -> str:
    return pod["spec"].get("nodeName") or ""


def is_gated(pod: Obj) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def grace_s_of(pod: Obj) -> int:
    grace: int | None = pod["spec"].get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if grace is None else max(grace, 0)


def deletion_grace_s(pod: Obj, asked_s: int | None) -> int:
    """How long a deletion may take: 0 unless the pod runs on a node."""
    if not node_of(pod) or is_finished(pod):
        return 0
    grace_s = min(grace_s_of(pod) if asked_s is None else max(asked_s, 0), MAX_GRACE_S)
    if is_terminating(pod):  # a later deletion can only shorten it
        grace_s = min(grace_s, pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return grace_s


def condition(type_: str, status: str, at: str, reason: str = "", message: str = "") -> dict[str, Any]:
    made = {"type": type_, "status": status, "lastTransitionTime": at}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def with_conditions(conditions: Iterable[dict[str, Any]] | None, *changed: dict[str, Any]) -> list[dict[str, Any]]:
    """The conditions with `changed` replacing those of the same type; an unchanged status keeps its transition time."""
    by_type = {had.get("type"): had for had in conditions or ()}
    for new in changed:
        had = by_type.get(new["type"])
        if had is not None and had.get("status") == new["status"] and "lastTransitionTime" in had:
            new = {**new, "lastTransitionTime": had["lastTransitionTime"]}
            new = had if had == new else new
        by_type[new["type"]] = new
    return list(by_type.values())


def container_name(pod: Obj, requested: str) -> str:
    """The container to read logs of: the requested one, or the only one. Raises `Refused` (400) if it is ambiguous."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [str(one.get("name") or "") for key in ("containers", "initContainers") for one in spec.get(key) or ()]
    if requested:
        if requested not in names:
            raise Refused(400, "BadRequest", f"container {requested[:80]} is not valid for pod {name}")
        return requested
    if len(spec["containers"]) > 1:
        choices = f"choose one of: [{' '.join(names)}]"
        raise Refused(400, "BadRequest", f"a container name must be specified for pod {name}, {choices}")
    return names[0]


def binding_refusal(pod: Obj) -> str:
    """Why the pod cannot be bound; empty if it can."""
    name = pod["metadata"]["name"]
    if is_terminating(pod):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node_of(pod):
        return f'pod {name} is already assigned to node "{node_of(pod)}"'
    if is_gated(pod):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def bound(pod: Obj, node: str, annotations: dict[str, str], at: str) -> Obj:
    """The pod after its binding to the node. Its metadata is a new dictionary."""
    status = pod.get("status") or {}
    conditions = with_conditions(status.get("conditions"), condition("PodScheduled", "True", at))
    metadata = dict(pod["metadata"])
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": conditions},
    }


def with_requests(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with a request for each limit that has none, as the API server defaults them."""
    changed = {}
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if not containers:
            continue
        filled = [_with_requests(container) for container in containers]
        if any(new is not old for new, old in zip(filled, containers, strict=True)):
            changed[field] = filled
    return {**spec, **changed} if changed else spec


def _with_requests(container: dict[str, Any]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = resources.get("requests") or {}
    if all(name in requests for name in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
    "`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions), `spec.schedulingGates` (only removals)"
)


def update_fault(old: Obj, new: Obj) -> Fault | None:
    """Why this change of a pod's spec is forbidden; `None` if it is allowed."""
    before, after = old["spec"], new["spec"]
    if before is after or before == after:
        return None
    for key in before.keys() | after.keys():
        had, has = before.get(key), after.get(key)
        if had != has and not _may_change(key, had, has, gated=is_gated(old)):
            return Fault(f"spec.{key}", f"Forbidden: {_MAY_CHANGE}")
    return None


def _may_change(key: str, had: Any, has: Any, *, gated: bool) -> bool:
    match key:
        case "containers" | "initContainers":
            return _without_images(had) == _without_images(has)
        case "activeDeadlineSeconds":
            return isinstance(has, int) and has >= 0 and (had is None or has <= had)
        case "tolerations":
            return all(toleration in (has or ()) for toleration in had or ())
        case "schedulingGates":
            return all(gate in (had or ()) for gate in has or ())
        case "nodeSelector":  # a gated pod's selector may get stricter
            return gated and all((has or {}).get(label) == value for label, value in (had or {}).items())
        case "affinity":
            return gated
    return False


def _without_images(containers: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [{key: value for key, value in container.items() if key != "image"} for container in containers or ()]
