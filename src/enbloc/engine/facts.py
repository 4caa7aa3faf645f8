"""API objects into the facts that the engine's tables hold: Pods, Nodes, Queues. Pure functions of one object.

Which gang a pod belongs to, and what a gang is, is read in `gangs`.
"""

from __future__ import annotations

from functools import lru_cache

from enbloc.api import core, volcano
from enbloc.api.allowed_namespaces import allowed_namespaces_of
from enbloc.api.kinds import view
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from enbloc.config import Tenancy
from enbloc.engine.core.tables.nodes import NodeFacts, TaintFact
from enbloc.engine.core.tables.queues import QueueFacts
from enbloc.engine.core.tables.tasks import PodFacts, TaskStatus
from enbloc.gangs import topology
from enbloc.gangs.hints import pod_hints
from enbloc.units import Quantity, parse_timestamp


def pod_facts(pod: Obj, names: frozenset[str], decision: str = "", mark: str = "", unsupported: str = "") -> PodFacts:
    """A Pod; `names` are the scheduler names whose pods the engine places, `decision` and `mark` what it was bound with
    (G11), `unsupported` a constraint that holds it."""
    metadata, spec = pod["metadata"], pod["spec"]
    phase = (pod.get("status") or {}).get("phase")
    ended = phase in ("Succeeded", "Failed")
    node = "" if ended else spec.get("nodeName") or ""
    if metadata.get("deletionTimestamp"):
        status = TaskStatus.RELEASING
    elif ended:
        status = TaskStatus.SUCCEEDED if phase == "Succeeded" else TaskStatus.FAILED
    elif node:
        status = TaskStatus.BOUND
    else:
        status = TaskStatus.GATED if spec.get("schedulingGates") else TaskStatus.PENDING
    annotations = annotations_of(pod)
    if status is TaskStatus.PENDING and annotations.get(TIMEOUT) == "true":
        status = TaskStatus.TIMED_OUT
    return PodFacts(
        uid=uid_of(pod),
        namespace=namespace_of(pod),
        name=name_of(pod),
        labels=labels_of(pod),
        spec=spec,
        created_ns=_instant(metadata["creationTimestamp"]),
        priority=spec.get("priority") or 0,
        node=node,
        status=status,
        ours=spec.get("schedulerName") in names,
        mark=mark,
        decision=decision,
        hints=pod_hints(pod),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        since_ns=_since(pod),
        unsupported=unsupported,
        topology=topology.of_pod(pod),
    )


def _since(pod: Obj) -> int | None:
    started = (pod.get("status") or {}).get("startTime")
    return _instant(started) if isinstance(started, str) and started else None


def queue_facts(obj: Obj, tenancy: Tenancy, unsupported: str = "", fifo: bool = False) -> QueueFacts:
    """A Queue; a weight that is missing or not positive counts as 1. `unsupported`: what holds its gangs (N1). `fifo`:
    where it sets no `dequeueStrategy`."""
    typed = view(obj, volcano.Queue)
    spec = typed.spec
    strategy = spec.dequeue_strategy or annotations_of(obj).get(volcano.DEQUEUE_STRATEGY)
    return QueueFacts(
        name=name_of(obj),
        weight=spec.weight if spec.weight and spec.weight > 0 else 1,
        priority=spec.priority,
        parent=spec.parent,
        capability=_nanos(spec.capability),
        guarantee=_nanos(spec.guarantee.resource if spec.guarantee else None),
        deserved=_nanos(spec.deserved),
        fifo=strategy.lower() == "fifo" if strategy else fifo,
        reclaimable=spec.reclaimable is not False,
        allowed_namespaces=allowed_namespaces_of(obj),
        unsupported=unsupported,
        immune_within_share=tenancy.isolated or annotations_of(obj).get(volcano.IMMUNITY) == volcano.WITHIN_SHARE,
        closed=bool(typed.status and typed.status.state in ("Closed", "Closing")),
    )


def _nanos(quantities: dict[str, Quantity] | None) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in (quantities or {}).items()}


@lru_cache(maxsize=4096)
def _instant(text: str) -> int:
    return parse_timestamp(text)


def node_facts(obj: Obj) -> NodeFacts:
    """A Node. Without conditions it is ready; without `allocatable` its capacity counts."""
    node = view(obj, core.Node)
    spec = node.spec or core.NodeSpec()
    status = node.status or core.NodeStatus()
    offered = status.allocatable if status.allocatable is not None else status.capacity
    conditions = {condition.type: condition.status for condition in status.conditions or ()}
    created = node.metadata.creation_timestamp
    return NodeFacts(
        name=node.metadata.name,
        created_ns=_instant(created) if created else 0,
        labels=node.metadata.labels or {},
        allocatable=_nanos(offered),
        taints=tuple(TaintFact(taint.key, taint.value, taint.effect) for taint in spec.taints or ()),
        unschedulable=spec.unschedulable,
        ready=conditions.get("Ready", "True") == "True",
    )
