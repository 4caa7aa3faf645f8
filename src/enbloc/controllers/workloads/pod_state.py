"""What a workload's controller asks of a pod: whether it is active, ready, available, and which goes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from enbloc.api.meta import Obj, annotations_of, condition_of, holds, is_terminating, name_of
from enbloc.units import SECOND, instant_of

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def phase_of(pod: Obj) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_finished(pod: Obj) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Obj) -> bool:
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Obj) -> bool:
    return holds(pod, "Ready") is not None and not is_terminating(pod)


def available_at(pod: Obj, min_ready_s: int) -> int | None:
    """Since when, or from when on, a ready pod is available (ns); `None` if it is not ready."""
    ready = condition_of(pod, "Ready")
    if ready is None or not is_ready(pod):
        return None
    return instant_of(ready.get("lastTransitionTime")) + min_ready_s * SECOND if min_ready_s > 0 else 0


def is_available(pod: Obj, min_ready_s: int, now_ns: int) -> bool:
    at_ns = available_at(pod, min_ready_s)
    return at_ns is not None and at_ns <= now_ns


def next_available(pods: Iterable[Obj], min_ready_s: int, now_ns: int) -> int | None:
    """When the next of these pods becomes available."""
    times = [available_at(pod, min_ready_s) for pod in pods]
    return min((at_ns for at_ns in times if at_ns is not None and at_ns > now_ns), default=None)


def in_order_of_deletion(pods: Iterable[Obj]) -> list[Obj]:
    """As ReplicaSets and Jobs delete pods: without a node, not ready, cheap, crowded, young ones first."""
    listed = list(pods)
    on_node = Counter((pod.get("spec") or {}).get("nodeName") or "" for pod in listed)

    def key(pod: Obj) -> tuple[Any, ...]:
        node = (pod.get("spec") or {}).get("nodeName") or ""
        ready = condition_of(pod, "Ready") or {}
        created = pod["metadata"].get("creationTimestamp")
        return (
            bool(node),
            _PHASES.get(phase_of(pod), 0),
            is_ready(pod),
            _cost(pod),
            -on_node[node],
            -instant_of(ready.get("lastTransitionTime")) if is_ready(pod) else 0,
            -restarts_of(pod),
            -instant_of(created),
            name_of(pod),
        )

    return sorted(listed, key=key)


def restarts_of(pod: Obj) -> int:
    """Of all its containers."""
    return sum(_integer(one.get("restartCount")) for one in (pod.get("status") or {}).get("containerStatuses") or ())


def finished_at(pod: Obj) -> int:
    """When its containers ended; of a pod that ran none, when it was created (ns)."""
    ends = [
        ((one.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    known = [instant_of(end) for end in ends if end]
    return max(known) if known else instant_of(pod["metadata"].get("creationTimestamp"))


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _cost(pod: Obj) -> int:
    text = annotations_of(pod).get(DELETION_COST) or ""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0
