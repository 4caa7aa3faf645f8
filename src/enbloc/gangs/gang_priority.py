"""How far a gang's own priority class counts: priority is granted, not taken (S3).

A pod's priority is granted by the API server, which checks quotas. The class of a Job, PodGroup or SchedulingSpec is
checked by no API server: it is checked here. The priority that results is the engine's part, since it knows the pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj, name_of, namespace_of, uid_of
from enbloc.api.quotas import RESOURCE_QUOTA
from enbloc.api.writes import WatchEvent
from enbloc.config import Tenancy
from enbloc.gangs.model import GangKey
from enbloc.gangs.priority_classes import PRIORITY_CLASS, PriorityClasses

KUBE_SYSTEM: Final = "kube-system"
SYSTEM_PREFIX: Final = "system-"


class OwnPriority(NamedTuple):
    """The priority that a gang's own class gives it; `None`: its pods' counts."""

    value: int | None = None
    limited_class: str = ""
    """Its class, if a ResourceQuota of its namespace limits that: it counts only if all its pods carry it."""
    at_most_pods: bool = False
    """Whether the lower of it and its pods' counts."""

    def fields(self, pods_priority: int) -> dict[str, Any]:
        """Those of a `GangSpec`."""
        own = {"priority": self.value, "limited_class": self.limited_class, "at_most_pods": self.at_most_pods}
        return own | {"pods_priority": pods_priority}


def is_granted(class_name: str, namespace: str, tenancy: Tenancy) -> bool:
    """Whether a class may count on an object that no API server checks."""
    if not class_name.startswith(SYSTEM_PREFIX):
        return True
    return namespace == KUBE_SYSTEM or namespace in tenancy.system_namespaces


class _LimitedClasses(NamedTuple):
    """The classes that one quota limits: those named, or all but those named."""

    names: frozenset[str]
    others: bool = False

    def include(self, class_name: str) -> bool:
        return (class_name in self.names) is not self.others


class GangPriorities:
    """The PriorityClasses of a cluster, the quotas that limit them, and what follows for gangs."""

    kinds = frozenset({PRIORITY_CLASS, RESOURCE_QUOTA})

    def __init__(self, tenancy: Tenancy = Tenancy()) -> None:  # noqa: B008 - it is frozen
        self.classes = PriorityClasses()
        self._tenancy = tenancy
        self._limited: dict[str, dict[str, list[_LimitedClasses]]] = {}
        """Namespace → UID of a ResourceQuota → the classes that it limits."""

    def observe(self, event: WatchEvent) -> bool:
        """An object of `kinds` was created, changed or deleted. Returns whether gangs may have another priority."""
        gone = event.type == "DELETED"
        if event.kind == PRIORITY_CLASS:
            self.classes.observe(event.obj, gone)
            return True
        return self._observe_quota(event.obj, gone)

    def _observe_quota(self, quota: Obj, gone: bool) -> bool:
        namespace, key = namespace_of(quota), uid_of(quota) or name_of(quota)
        known = self._limited.get(namespace, {})
        before, found = known.get(key, []), [] if gone else _limited_by(quota)
        if found:
            self._limited.setdefault(namespace, {})[key] = found
        elif before:
            del known[key]
            if not known:
                del self._limited[namespace]
        return before != found

    def own(self, namespace: str, class_name: str) -> OwnPriority:
        """The priority of a gang whose object names this class."""
        if not class_name or not is_granted(class_name, namespace, self._tenancy):
            return OwnPriority()
        is_limited = any(
            one.include(class_name) for quota in self._limited.get(namespace, {}).values() for one in quota
        )
        return OwnPriority(self.classes.of(class_name), class_name if is_limited else "", self._tenancy.isolated)

    def counts(self, namespace: str, class_name: str) -> bool:
        return is_granted(class_name, namespace, self._tenancy)

    def of_template(self, namespace: str, class_name: str, inherited: str) -> int | None:
        """The priority of pods that are created from a template, which inherits the class of its Job."""
        return self.classes.of(class_name or (inherited if self.counts(namespace, inherited) else ""))

    def complaints(self, namespace: str, class_name: str) -> Iterator[str]:
        """Why the class of a gang's object does not count."""
        if not self.counts(namespace, class_name):
            yield (
                f"priority class {class_name[:80]} does not count in namespace {namespace}: the priority of its pods "
                "does; systemPriorityNamespaces in the config lists the namespaces where it counts"
            )


def is_about(event: WatchEvent, gang: GangKey) -> bool:
    """Whether a PriorityClass, or a ResourceQuota of its namespace, may change the priority of a gang."""
    return event.kind == PRIORITY_CLASS or namespace_of(event.obj) == gang.namespace


def _limited_by(quota: Obj) -> list[_LimitedClasses]:
    spec: dict[str, Any] = quota.get("spec") or {}
    found = []
    for expression in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        if not isinstance(expression, dict) or expression.get("scopeName") != "PriorityClass":
            continue
        values = frozenset(map(str, expression.get("values") or ()))
        match expression.get("operator"):
            case "In":
                found.append(_LimitedClasses(values))
            case "NotIn":
                found.append(_LimitedClasses(values, others=True))
            case "Exists":
                found.append(_LimitedClasses(frozenset(), others=True))
    return found
