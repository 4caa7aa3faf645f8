"""The priority classes, as far as controllers put tasks in order by them."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import name_of
from enbloc.api.writes import WatchEvent
from enbloc.controllers.job_roles import JobPlan

PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
_BUILT_IN: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class Priorities:
    """Class name → value, with Kubernetes' own two and the global default."""

    def __init__(self) -> None:
        self._values: dict[str, int] = dict(_BUILT_IN)
        self._defaults: dict[str, int] = {}

    def observe(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        self._values.pop(name, None)
        self._defaults.pop(name, None)
        if event.type != "DELETED":
            self._values[name] = event.obj.get("value") or 0
            if event.obj.get("globalDefault"):
                self._defaults[name] = self._values[name]
        elif name in _BUILT_IN:
            self._values[name] = _BUILT_IN[name]

    def of(self, name: str) -> int:
        """The value of a class; of none, or of one that nobody knows, what counts without one."""
        default = min(self._defaults.values(), default=0)  # Kubernetes takes the lowest where there are several
        return self._values.get(name, default)

    def of_roles(self, plan: JobPlan) -> dict[str, int]:
        return {role.name: self.of(role.priority_class) for role in plan.roles}
