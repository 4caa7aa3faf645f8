"""Access of admission to other objects, and checks that several kinds share."""

from __future__ import annotations

import builtins
from typing import Protocol

from enbloc.api import volcano
from enbloc.api.meta import Fault, Obj, name_of
from enbloc.api.volcano import ROOT_QUEUE
from enbloc.gangs.priority_classes import PRIORITY_CLASS, SYSTEM_CLASSES


class Lookup(Protocol):
    """The objects of the cluster."""

    def get(self, kind: str, namespace: str, name: str) -> Obj | None: ...

    def list(self, kind: str) -> builtins.list[Obj]: ...

    def complete(self, kind: str) -> bool:
        """Whether all objects of the kind are known, so that a missing one does not exist."""
        ...


def queue_faults(queue: str, field: str, lookup: Lookup) -> list[Fault]:
    """Why a queue accepts no new job (V4)."""
    if queue == ROOT_QUEUE:
        return [Fault(field, f"queue {ROOT_QUEUE!r} accepts no jobs: use one of its children")]
    found = lookup.get(volcano.QUEUE, "", queue)
    if found is None:
        return [Fault(field, f"queue {queue!r} does not exist")] if lookup.complete(volcano.QUEUE) else []
    state = (found.get("status") or {}).get("state") or "Open"
    if state in ("Closed", "Closing"):
        return [Fault(field, f"queue {queue!r} is closed (state {state}) and accepts no jobs")]
    children = sorted(name_of(other) for other in lookup.list(volcano.QUEUE) if parent_of(other) == queue)
    if children:
        return [Fault(field, f"queue {queue!r} accepts no jobs: it has children ({', '.join(children[:5])})")]
    return []


def parent_of(queue: Obj) -> str:
    """The parent of a queue; empty for `root` alone."""
    if name_of(queue) == ROOT_QUEUE:
        return ""
    parent: str = (queue.get("spec") or {}).get("parent") or ROOT_QUEUE
    return parent


def priority_class_faults(name: str, field: str, lookup: Lookup) -> list[Fault]:
    if not name or name in SYSTEM_CLASSES or not lookup.complete(PRIORITY_CLASS):
        return []
    if lookup.get(PRIORITY_CLASS, "", name) is None:
        return [Fault(field, f"priority class {name!r} does not exist")]
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
