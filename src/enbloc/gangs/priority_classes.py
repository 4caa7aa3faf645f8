"""The PriorityClasses of a cluster by name: values, the global default, and which of them never preempt."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Obj, name_of

PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""Kubernetes' own classes: they exist even where no object defines them."""


class PriorityClasses:
    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._global_defaults: dict[str, int] = {}
        """Classes for pods that name none; of several the lowest value counts, as in Kubernetes."""
        self._never_preempts: set[str] = set()

    def observe(self, obj: Obj, gone: bool) -> None:
        name = name_of(obj)
        self._values.pop(name, None)
        self._global_defaults.pop(name, None)
        self._never_preempts.discard(name)
        if not gone:
            value = self._values[name] = int(obj.get("value") or 0)
            if obj.get("globalDefault"):
                self._global_defaults[name] = value
            if obj.get("preemptionPolicy") == "Never":
                self._never_preempts.add(name)

    def of(self, class_name: str) -> int | None:
        """The value of a class, of the empty name the default; `None` if there is no such class."""
        if not class_name:
            return self.default
        return self._values.get(class_name, SYSTEM_CLASSES.get(class_name))

    def or_default(self, class_name: str) -> int:
        """The value of a class, or the default where the class does not exist."""
        value = self.of(class_name)
        return self.default if value is None else value

    @property
    def default(self) -> int:
        """The priority of a pod that names no class."""
        return min(self._global_defaults.values(), default=0)

    def never_preempts(self, class_name: str) -> bool:
        """Whether the class has `preemptionPolicy: Never`."""
        return class_name in self._never_preempts
