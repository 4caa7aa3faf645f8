"""N1: constraints that are set and not honoured in this version hold their gang, until it was satisfied once."""

from __future__ import annotations

from typing import Any

World = dict[str, Any]
Gang = dict[str, Any]

NUMA_POLICY = "volcano.sh/numa-topology-policy"
QUOTA_LABEL = "quota.scheduling.koordinator.sh/name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def n1_held(world: World, gang: Gang) -> bool:
    """Whether one of its pods that has no node, its own object or its queue sets such a constraint."""
    if gang["satisfied"] or world["settings"]["unsupported"] == "warn":
        return False
    for task in gang["tasks"]:
        if task["ours"] and not task["pod"]["spec"].get("nodeName") and n1_unhonoured(task["pod"]):
            return True
    own = (gang["object"] or {}).get("spec") or {}
    several = len((own.get("schedulingConstraints") or {}).get("topology") or ()) > 1
    of_queue = (world["queues"].get(gang["queue"]) or {}).get("affinity") or {}
    return several or any(
        REQUIRED in (of_queue.get(key) or {}) for key in ("nodeGroupAffinity", "nodeGroupAntiAffinity")
    )


def n1_unhonoured(pod: dict[str, Any]) -> bool:
    notes, labels = pod["metadata"].get("annotations") or {}, pod["metadata"].get("labels") or {}
    if notes.get(NUMA_POLICY) in ("restricted", "single-numa-node") or labels.get(QUOTA_LABEL):
        return True
    return bool(notes.get("gpu-fraction") or pod["spec"].get("resourceClaims"))
