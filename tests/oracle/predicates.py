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
    if not g6_node_affinity(spec, node):
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
            one.get("operator") in (None, "", "Equal") and (one.get("value") or "") == value
        ):
            return True
    return False


def g6_node_affinity(spec: dict[str, Any], node: Node) -> bool:
    """The required terms are alternatives; without terms no node matches."""
    required = node_affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def g6_preference(spec: dict[str, Any], node: Node) -> int:
    """The weights of the preferred terms that match."""
    preferred = node_affinity(spec).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(one["weight"] for one in preferred if term_matches(one["preference"], node))


def g6_avoidance(spec: dict[str, Any], node: Node) -> int:
    """How many taints there are that pods should avoid, and that this one does not tolerate."""
    taints = [taint for taint in node["taints"] if taint.get("effect") == "PreferNoSchedule"]
    return sum(
        not tolerates(spec, taint.get("key") or "", taint.get("value") or "", taint["effect"]) for taint in taints
    )


def node_affinity(spec: dict[str, Any]) -> dict[str, Any]:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


def term_matches(term: dict[str, Any], node: Node) -> bool:
    """All its lines; a term without lines matches no node."""
    lines = [matches(line, node["labels"]) for line in term.get("matchExpressions") or ()]
    lines += [matches(line, {"metadata.name": node["name"]}) for line in term.get("matchFields") or ()]
    return bool(lines) and all(lines)


def matches(line: dict[str, Any], labels: dict[str, str]) -> bool:
    has, values, operator = labels.get(line["key"]), line.get("values") or [], line["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return (has is not None) == (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (has in values) == (operator == "In")
    if has is None or not has.isdigit():
        return False
    return int(has) > int(values[0]) if operator == "Gt" else int(has) < int(values[0])


def lacking(task: Task, free: dict[str, int]) -> list[str]:
    """The resources of which a node has too little left for the task."""
    return [name for name, count in task["request"].items() if free.get(name, 0) < count]
