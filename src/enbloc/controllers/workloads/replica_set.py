"""ReplicaSet: a number of active pods of one template."""

from __future__ import annotations

from typing import Final

from enbloc.api import workloads
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, labels_of, name_of
from enbloc.api.writes import Write
from enbloc.controllers.timers import BATCH
from enbloc.controllers.workloads import pod_state
from enbloc.controllers.workloads.owned import Outcome, Surroundings, delete, new_pod, status_patch

COMPONENT: Final = "replicaset-controller"


def sync(owner: Obj, pods: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    spec = view(owner, workloads.ReplicaSet).spec
    active = [pod for pod in pods if pod_state.is_active(pod)]
    missing = min(spec.replicas, workloads.MOST_PODS) - len(active)
    writes: list[Write] = []
    template = owner["spec"]["template"]
    if missing > 0:
        writes += [new_pod(owner, template, generate_name=f"{name_of(owner)}-") for _ in range(min(missing, BATCH))]
    elif missing < 0:
        writes += [delete(pod) for pod in pod_state.in_order_of_deletion(active)[:-missing]]
    wanted = ((template.get("metadata") or {}).get("labels") or {}).items()
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(1 for pod in active if wanted <= labels_of(pod).items()) or None,
        "readyReplicas": sum(1 for pod in active if pod_state.is_ready(pod)) or None,
        "availableReplicas": _available(active, spec.min_ready_seconds, now_ns) or None,
        "observedGeneration": owner["metadata"].get("generation"),
    }
    writes += status_patch(owner, status)
    return Outcome(writes, pod_state.next_available(active, spec.min_ready_seconds, now_ns))


def _available(pods: list[Obj], min_ready_s: int, now_ns: int) -> int:
    return sum(1 for pod in pods if pod_state.is_available(pod, min_ready_s, now_ns))
