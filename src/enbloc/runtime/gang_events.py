"""Events about a gang: on its object, on the Job that owns that object, and on its pods, so that `kubectl describe` of
each says what happened.

Events on the Job and the pods name the gang's object as related. Counting repeats is left to the cluster's adapter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal

from enbloc.api import volcano
from enbloc.api.kinds import kind_id, ref_of
from enbloc.api.meta import Obj, Ref, controller_of, namespace_of, uid_of
from enbloc.api.reasons import PendingReason
from enbloc.api.writes import BindPod, EmitEvent
from enbloc.engine.decisions import Bind, Evict
from enbloc.listing import listed

MOST_NODES_NAMED: Final = 8
"""At most this many nodes are named in an Event about Bindings."""
ENQUEUED: Final = "Enqueued"
SCHEDULED: Final = "Scheduled"
GANG_SCHEDULED: Final = "GangScheduled"
FAILED_SCHEDULING: Final = "FailedScheduling"


def on_gang(group: Obj, type_: Literal["Normal", "Warning"], reason: str, message: str) -> EmitEvent:
    """An Event on the gang's object and on its owner."""
    owner = _owner_of(group)
    return EmitEvent(ref_of(group), uid_of(group), type_, reason, message, also=(owner,) if owner is not None else ())


def _owner_of(group: Obj) -> tuple[Ref, str] | None:
    owner: dict[str, Any] = controller_of(group) or {}
    if not all(owner.get(field) for field in ("apiVersion", "kind", "name", "uid")):
        return None
    return Ref(kind_id(owner), namespace_of(group), owner["name"]), owner["uid"]


def waits(group: Obj, reason: str, message: str, *, as_volcano: bool) -> EmitEvent:
    """That a gang waits. `as_volcano`: scripts of Volcano's users match on the one reason that it has."""
    if as_volcano and kind_id(group) == volcano.POD_GROUP and reason != PendingReason.UNSCHEDULABLE:
        reason, message = PendingReason.UNSCHEDULABLE.value, f"{reason}: {message}"
    return on_gang(group, "Warning", reason, message)


def enqueued(group: Obj) -> EmitEvent:
    return on_gang(group, "Normal", ENQUEUED, "enqueued: its pods may be created")


def bound_together(decision: Bind, groups: Iterable[Obj]) -> tuple[EmitEvent, ...]:
    nodes = Counter(placement.node for placement in decision.placements)
    where = listed([f"{node} ({count})" for node, count in nodes.items()], MOST_NODES_NAMED)
    count = len(decision.placements)
    message = f"{count} pods bound together: {where}" if count > 1 else f"1 pod bound: {where}"
    return tuple(on_gang(group, "Normal", GANG_SCHEDULED, message) for group in groups)


def pod_bound(write: BindPod) -> EmitEvent:
    message = f"assigned {write.namespace}/{write.name} to {write.node}"
    return EmitEvent(Ref("Pod", write.namespace, write.name), write.uid, "Normal", SCHEDULED, message)


def pod_waits(pod: Obj, message: str, group: Obj | None) -> EmitEvent:
    related = ref_of(group) if group is not None else None
    return EmitEvent(ref_of(pod), uid_of(pod), "Warning", FAILED_SCHEDULING, message, related=related)


def evicted(decision: Evict, group: Obj | None) -> tuple[EmitEvent, ...]:
    """On the pod that is evicted, and on its gang: there the Event counts the pods."""
    ref, message = Ref("Pod", decision.namespace, decision.name), f"evicted: {decision.message}"
    on_pod = EmitEvent(ref, decision.uid, "Normal", decision.reason, message)
    if group is None:
        return (on_pod,)
    return (on_pod, on_gang(group, "Normal", decision.reason, f"a pod was {message}"))
