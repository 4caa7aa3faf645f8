"""Volcano's Queue: its place in the tree, its weight, and shares that do not contradict each other (V4)."""

from __future__ import annotations

from typing import Final

from enbloc.admission import queue_tree as tree
from enbloc.admission.lookup import Lookup
from enbloc.api import volcano
from enbloc.api.allowed_namespaces import allowed_namespaces_faults, allowed_namespaces_of
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, Quantities, annotations_of, name_of
from enbloc.api.volcano import DEFAULT_QUEUE, ROOT_QUEUE
from enbloc.units import format_quantity

STATES: Final = ("", "Open", "Closed", "Closing", "Unknown")
DEQUEUE_STRATEGIES: Final = ("fifo", "traverse")
PROTECTED: Final = frozenset({ROOT_QUEUE, DEFAULT_QUEUE})


def admit(obj: Obj, old: Obj | None, lookup: Lookup) -> tuple[Obj, list[Fault]]:
    spec = dict(obj.get("spec") or {})
    spec["weight"] = 1 if spec.get("weight") is None else spec["weight"]
    spec["reclaimable"] = True if spec.get("reclaimable") is None else spec["reclaimable"]
    if name_of(obj) != ROOT_QUEUE:
        spec["parent"] = spec.get("parent") or ROOT_QUEUE
    kept = obj | {"spec": spec}
    queue = view(kept, volcano.Queue)
    faults = []
    state = queue.status.state if queue.status else ""
    if state not in STATES:
        faults.append(Fault("status.state", f"{state!r} is none of {', '.join(STATES[1:])}"))
    if old is None or allowed_namespaces_of(obj) != allowed_namespaces_of(old):
        faults += allowed_namespaces_faults(obj)
    immunity = annotations_of(obj).get(volcano.IMMUNITY)
    if immunity not in (None, "", volcano.WITHIN_SHARE):
        field = f"metadata.annotations[{volcano.IMMUNITY}]"
        faults.append(Fault(field, f"{immunity[:80]!r} is not {volcano.WITHIN_SHARE!r}"))
    annotated = annotations_of(obj).get(volcano.DEQUEUE_STRATEGY)
    if annotated and annotated.lower() not in DEQUEUE_STRATEGIES:
        field = f"metadata.annotations[{volcano.DEQUEUE_STRATEGY}]"
        faults.append(Fault(field, f"{annotated[:80]!r} is neither 'fifo' nor 'traverse'"))
    if old is not None and spec == old.get("spec"):
        return kept, faults
    weight = queue.spec.weight or 0
    if weight < 1:
        faults.append(Fault("spec.weight", f"{weight} is below 1"))
    strategy = queue.spec.dequeue_strategy
    if strategy and strategy.lower() not in DEQUEUE_STRATEGIES:
        faults.append(Fault("spec.dequeueStrategy", f"{strategy!r} is neither 'fifo' nor 'traverse'"))
    faults += _share_faults(queue.spec)
    return kept, faults + tree.tree_faults(kept, old, lookup)


def _share_faults(spec: volcano.QueueSpec) -> list[Fault]:
    """guarantee ≤ deserved ≤ capability in each dimension that both name; nothing below 0."""
    shares: list[tuple[str, Quantities]] = [
        ("guarantee.resource", (spec.guarantee.resource if spec.guarantee else None) or {}),
        ("deserved", spec.deserved or {}),
        ("capability", spec.capability or {}),
    ]
    faults = []
    for position, (name, share) in enumerate(shares):
        for resource, amount in share.items():
            field = f"spec.{name}.{resource}"
            if amount.nanos < 0:
                faults.append(Fault(field, f"{format_quantity(amount.nanos)} is below 0"))
            for above, cap in shares[position + 1 :]:
                if resource in cap and amount.nanos > cap[resource].nanos:
                    values = f"{format_quantity(amount.nanos)} is above {above} {format_quantity(cap[resource].nanos)}"
                    faults.append(Fault(field, values))
    return faults


def delete_faults(queue: Obj, lookup: Lookup) -> list[Fault]:
    """Why a queue may not be deleted."""
    name = name_of(queue)
    if name in PROTECTED:
        return [Fault("metadata.name", f"queue {name!r} is built in and may not be deleted")]
    return tree.delete_faults(queue, lookup)
