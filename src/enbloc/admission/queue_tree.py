"""A queue within its tree (V4): the path to `root`, amounts against ancestors, siblings and children, and which queues
may have children.

Amounts are compared with every ancestor that names the resource; levels that do not are skipped. A queue is compared
only when its own amounts or its parent change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from enbloc.admission.lookup import Lookup
from enbloc.api import volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, name_of
from enbloc.api.volcano import ROOT_QUEUE, parent_of
from enbloc.gangs.gang_tree import DEEPEST
from enbloc.listing import listed, plural
from enbloc.units import format_amount

_KINDS: Final = ("guarantee.resource", "deserved", "capability")
_LIVE_PHASES: Final = ("pending", "inqueue", "running", "unknown")

Amounts = dict[str, int]
"""Nano-units by resource."""


def tree_faults(queue: Obj, old: Obj | None, lookup: Lookup) -> list[Fault]:
    """All faults of a queue with respect to other queues."""
    faults = []
    moved = old is None or parent_of(queue) != parent_of(old)
    if moved:
        faults += _parent_faults(queue, lookup)
        faults += _new_parent_faults(queue, lookup)
    if faults or (not moved and old is not None and _amounts(queue) == _amounts(old)):
        return faults
    queues = {name_of(other): other for other in lookup.list(volcano.QUEUE)} | {name_of(queue): queue}
    faults += _ancestor_faults(queue, queues)
    found = {fault.field for fault in faults}
    faults += [fault for fault in _sibling_faults(queue, queues) if fault.field not in found]
    return faults + list(_descendant_faults(queue, queues))


def delete_faults(queue: Obj, lookup: Lookup) -> list[Fault]:
    """Why a queue that has children may not be deleted."""
    children = sorted(name_of(other) for other in lookup.list(volcano.QUEUE) if parent_of(other) == name_of(queue))
    if not children:
        return []
    text = f"queue {name_of(queue)!r} has children ({listed(children, 5)}) and may not be deleted"
    return [Fault("metadata.name", text)]


def _parent_faults(queue: Obj, lookup: Lookup) -> list[Fault]:
    """Whether the ancestors of a queue end at `root`."""
    name, parent = name_of(queue), parent_of(queue)
    if name == ROOT_QUEUE:
        return [Fault("spec.parent", "'root' has no parent")] if (queue["spec"].get("parent") or "") else []
    path = [name]
    while parent and parent != ROOT_QUEUE:
        path.append(parent)
        if len(path) > DEEPEST:
            return [Fault("spec.parent", f"it is more than {DEEPEST} levels below the root")]
        if parent == name:
            return [Fault("spec.parent", f"queues are parents of each other in a cycle: {' → '.join(path)}")]
        above = lookup.get(volcano.QUEUE, "", parent)
        if above is None:
            missing = len(path) == 2 and lookup.complete(volcano.QUEUE)
            return [Fault("spec.parent", f"queue {parent!r} does not exist")] if missing else []
        parent = parent_of(above)
        if parent in path[1:]:
            break  # a cycle among its ancestors is reported on those
    return []


def _new_parent_faults(queue: Obj, lookup: Lookup) -> list[Fault]:
    """A queue with jobs cannot become a parent: queues with children accept no jobs."""
    parent = parent_of(queue)
    above = lookup.get(volcano.QUEUE, "", parent) if parent and parent != ROOT_QUEUE else None
    if above is None:
        return []
    status = above.get("status") or {}
    counted = sum(status.get(phase) or 0 for phase in _LIVE_PHASES)
    groups = lookup.list(volcano.POD_GROUP) if lookup.complete(volcano.POD_GROUP) else ()
    jobs = max(counted, sum(_is_live_in(group, parent) for group in groups))
    if not jobs:
        return []
    return [Fault("spec.parent", f"queue {parent!r} has {plural(jobs, 'PodGroup')} and cannot become a parent")]


def _is_live_in(group: Obj, queue: str) -> bool:
    named = (group.get("spec") or {}).get("queue") or volcano.DEFAULT_QUEUE
    return named == queue and (group.get("status") or {}).get("phase") != "Completed"


def _ancestor_faults(queue: Obj, queues: Mapping[str, Obj]) -> Iterator[Fault]:
    """Amounts beyond an ancestor's of the same kind."""
    for kind, amounts in _amounts(queue).items():
        for resource, nanos in amounts.items():
            for above in _ancestors(queue, queues):
                limit = _amounts(above)[kind].get(resource)
                if limit is not None and nanos > limit:
                    shown, most = format_amount(resource, nanos), format_amount(resource, limit)
                    text = f"{shown} is above {kind} {most} of queue {name_of(above)!r}"
                    yield Fault(f"spec.{kind}.{resource}", text)
                    break


def _sibling_faults(queue: Obj, queues: Mapping[str, Obj]) -> Iterator[Fault]:
    """Guarantees that, together with the siblings', are beyond the nearest ancestor that guarantees the resource."""
    parent = queues.get(parent_of(queue))
    if parent is None:
        return
    siblings = [other for other in queues.values() if parent_of(other) == name_of(parent)]
    for resource in _amounts(queue)["guarantee.resource"]:
        limit = _guaranteed(parent, resource, queues)
        total = sum(_amounts(other)["guarantee.resource"].get(resource, 0) for other in siblings)
        if limit is not None and total > limit:
            shown, most = format_amount(resource, total), format_amount(resource, limit)
            text = f"with its siblings' guarantees {shown} is above {most} of queue {name_of(parent)!r}"
            yield Fault(f"spec.guarantee.resource.{resource}", text)


def _guaranteed(queue: Obj, resource: str, queues: Mapping[str, Obj]) -> int | None:
    chain = [queue, *_ancestors(queue, queues)]
    return next(
        (found for one in chain if (found := _amounts(one)["guarantee.resource"].get(resource)) is not None), None
    )


def _descendant_faults(queue: Obj, queues: Mapping[str, Obj]) -> Iterator[Fault]:
    """Amounts below those of a queue beneath it, or below the sum of its children's guarantees."""
    own = _amounts(queue)
    for kind, limits in own.items():
        for resource, limit in limits.items():
            below = list(_nearest_below(queue, kind, resource, queues))
            most = max(below, key=lambda pair: pair[1], default=None)
            total = sum(nanos for _, nanos in below)
            if most is not None and most[1] > limit:
                text = f"{format_amount(resource, limit)} is below {format_amount(resource, most[1])} of {most[0]!r}"
                yield Fault(f"spec.{kind}.{resource}", f"{text}, a queue below it")
            elif kind == "guarantee.resource" and total > limit:
                shown = f"{format_amount(resource, limit)} is below {format_amount(resource, total)}"
                yield Fault(f"spec.{kind}.{resource}", f"{shown}, the guarantees of the queues below it")


def _nearest_below(queue: Obj, kind: str, resource: str, queues: Mapping[str, Obj]) -> Iterator[tuple[str, int]]:
    """The queues below that name the resource, without those beneath another that does."""
    seen = {name_of(queue)}
    level = [name_of(queue)]
    while level:
        children = [one for one in queues.values() if parent_of(one) in level and name_of(one) not in seen]
        seen.update(map(name_of, children))
        level = []
        for child in children:
            nanos = _amounts(child)[kind].get(resource)
            if nanos is None:
                level.append(name_of(child))
            else:
                yield name_of(child), nanos


def _ancestors(queue: Obj, queues: Mapping[str, Obj]) -> Iterator[Obj]:
    seen = {name_of(queue)}
    above = queues.get(parent_of(queue))
    while above is not None and name_of(above) not in seen:
        yield above
        seen.add(name_of(above))
        above = queues.get(parent_of(above))


def _amounts(queue: Obj) -> dict[str, Amounts]:
    """Amounts by kind; those of a queue that cannot be read are empty."""
    try:
        spec = view(queue.get("spec") or {}, volcano.QueueSpec)
    except msgspec.ValidationError:
        return {kind: {} for kind in _KINDS}
    given: Iterable[Mapping[str, Any] | None] = (
        spec.guarantee.resource if spec.guarantee else None,
        spec.deserved,
        spec.capability,
    )
    return {
        kind: {resource: amount.nanos for resource, amount in (amounts or {}).items()}
        for kind, amounts in zip(_KINDS, given, strict=True)
    }
