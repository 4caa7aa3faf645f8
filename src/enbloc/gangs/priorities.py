"""Priority classes by name, for gangs that name one."""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of

PRIORITY_CLASS = "PriorityClass.scheduling.k8s.io"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class Priorities:
    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._defaults: dict[str, int] = {}
        """Classes that count for whoever names none; the lowest does, as in Kubernetes."""
        self._polite: set[str] = set()

    def observe(self, obj: Obj, gone: bool) -> None:
        name = name_of(obj)
        self._values.pop(name, None)
        self._defaults.pop(name, None)
        self._polite.discard(name)
        if not gone:
            value = self._values[name] = int(obj.get("value") or 0)
            if obj.get("globalDefault"):
                self._defaults[name] = value
            if obj.get("preemptionPolicy") == "Never":
                self._polite.add(name)

    def of(self, class_name: str) -> int | None:
        """The value of a class, of no name what counts without one; `None` if there is no such class."""
        if not class_name:
            return min(self._defaults.values(), default=0)
        return self._values.get(class_name, SYSTEM_CLASSES.get(class_name))

    def never_preempts(self, class_name: str) -> bool:
        """Whether a class says that nobody is evicted for those who name it."""
        return class_name in self._polite
