"""Access of admission to other objects, and checks that several kinds share."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Protocol

from enbloc.api import volcano
from enbloc.api.allowed_namespaces import allowed_namespaces_of
from enbloc.api.meta import Fault, Obj, annotations_of, labels_of, name_of
from enbloc.api.volcano import CLOSED, DEFAULT_QUEUE, ROOT_QUEUE, parent_of, state_of
from enbloc.config.values import nearest
from enbloc.gangs.priority_classes import PRIORITY_CLASS, SYSTEM_CLASSES
from enbloc.listing import listed


class Lookup(Protocol):
    """The objects of the cluster."""

    def get(self, kind: str, namespace: str, name: str) -> Obj | None: ...

    def list(self, kind: str) -> builtins.list[Obj]: ...

    def complete(self, kind: str) -> bool:
        """Whether all objects of the kind are known, so that a missing one does not exist."""
        ...


def queue_faults(queue: str, namespace: str, field: str, lookup: Lookup) -> list[Fault]:
    """Why a queue accepts no new job of a namespace (V4, S5)."""
    if queue == ROOT_QUEUE:
        return [Fault(field, f"queue {ROOT_QUEUE!r} accepts no jobs: use one of its children")]
    found = lookup.get(volcano.QUEUE, "", queue)
    if found is None:
        # `default` always exists (V4): right after an installation the controllers have not created it yet.
        if queue == DEFAULT_QUEUE or not lookup.complete(volcano.QUEUE):
            return []
        known = {name_of(one) for one in lookup.list(volcano.QUEUE)} - {ROOT_QUEUE}
        way_out = nearest(queue, known) or ": create it, or use another"
        return [Fault(field, f"queue {queue!r} does not exist{way_out}")]
    closed = next((one for one in _with_ancestors(found, lookup) if state_of(one) in CLOSED), None)
    if closed is not None:
        which = "" if name_of(closed) == queue else f" by its ancestor {name_of(closed)!r}"
        return [Fault(field, f"queue {queue!r} is closed{which} (state {state_of(closed)}) and accepts no jobs")]
    shut = shut_by(found, namespace, lookup)
    if shut is not None:
        which = "" if name_of(shut) == queue else f": its ancestor {name_of(shut)!r} does not"
        return [Fault(field, f"queue {queue!r} does not allow namespace {namespace!r}{which}")]
    children = sorted(name_of(other) for other in lookup.list(volcano.QUEUE) if parent_of(other) == queue)
    if children:
        return [Fault(field, f"queue {queue!r} accepts no jobs: it has children ({listed(children, 5)})")]
    return []


def shut_by(queue: Obj, namespace: str, lookup: Lookup) -> Obj | None:
    """The queue, itself or an ancestor, that does not allow a namespace; `None` if all of them do (S5)."""
    found = lookup.get("Namespace", "", namespace) if namespace else None
    labels = labels_of(found) if found is not None else {}
    for one in _with_ancestors(queue, lookup):
        if not allowed_namespaces_of(one).allow(namespace, labels):
            return one
    return None


def default_queue(namespace: str, lookup: Lookup) -> str:
    """The queue of Jobs and PodGroups that name none: their namespace's, else `default`."""
    found = lookup.get("Namespace", "", namespace) if namespace else None
    named = annotations_of(found).get(volcano.NAMESPACE_QUEUE) if found is not None else None
    return named or volcano.DEFAULT_QUEUE


def _with_ancestors(queue: Obj, lookup: Lookup) -> Iterator[Obj]:
    """A queue and those above it; a cycle ends."""
    seen: set[str] = set()
    found: Obj | None = queue
    while found is not None and name_of(found) not in seen:
        yield found
        seen.add(name_of(found))
        found = lookup.get(volcano.QUEUE, "", parent_of(found)) if parent_of(found) else None


def priority_class_faults(name: str, field: str, lookup: Lookup) -> list[Fault]:
    if not name or name in SYSTEM_CLASSES:
        return []
    if lookup.get(PRIORITY_CLASS, "", name) is None and lookup.complete(PRIORITY_CLASS):
        known = [name_of(one) for one in lookup.list(PRIORITY_CLASS)] + [*SYSTEM_CLASSES]
        way_out = nearest(name, known) or ": create it, or name none"
        return [Fault(field, f"priority class {name!r} does not exist{way_out}")]
    return []


def priority_value(name: str, lookup: Lookup) -> int | None:
    """The value of a class, of the empty name the global default; `None` if there is none or it is unknown."""
    if name:
        found = lookup.get(PRIORITY_CLASS, "", name)
        return _value(found) if found is not None else SYSTEM_CLASSES.get(name)
    defaults = [_value(one) for one in lookup.list(PRIORITY_CLASS) if one.get("globalDefault")]
    return min(defaults, default=None)  # Kubernetes takes the lowest where there are several


def _value(priority_class: Obj) -> int:
    return int(priority_class.get("value") or 0)
