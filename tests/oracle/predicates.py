"""G6: where a task may go at all, whether there is room or not; and why not, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]
Task = dict[str, Any]
Gang = dict[str, Any]


def g6_standing_reason(gang: Gang, task: Task, node: Node) -> str | None:
    """The first thing about the node itself that keeps the task away; `None`: nothing does."""
    spec = task["pod"]["spec"]
    if not node["ready"]:
        return "node(s) were not ready"
    if node["unschedulable"] and not tolerates(spec, "node.kubernetes.io/unschedulable", "", "NoSchedule"):
        return "node(s) were unschedulable"
    for taint in node["taints"]:
        if taint.get("effect") in ("NoSchedule", "NoExecute"):
            key, value = taint.get("key") or "", taint.get("value") or ""
            if not tolerates(spec, key, value, taint["effect"]):
                return f"node(s) had untolerated taint {{{key}: {value}}}"
    for wanted in (spec.get("nodeSelector") or {}, gang["node_selector"]):
        for label, value in wanted.items():
            if node["labels"].get(label) != value:
                return "node(s) didn't match Pod's node affinity/selector"
    reachable = task.get("reachable_from")
    if reachable is not None and node["name"] not in reachable:
        return "node(s) had volume node affinity conflict"
    return None


def tolerates(spec: dict[str, Any], key: str, value: str, effect: str) -> bool:
    for one in spec.get("tolerations") or ():
        if one.get("effect") and one["effect"] != effect:
            continue
        if one.get("key") and one["key"] != key:
            continue
        if one.get("operator") == "Exists" or (
            one.get("operator") in (None, "", "Equal") and one.get("value") == value
        ):
            return True
    return False


def lacking(task: Task, free: dict[str, int]) -> list[str]:
    """The resources of which a node has too little left for the task."""
    return [name for name, count in task["request"].items() if free.get(name, 0) < count]
