"""Pods without a node that name another scheduler, by the gang that they belong to (N4).

They are no tasks: the engine never places them. A gang that lacks members says that they exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from enbloc.gangs.model import GangKey


class ForeignPods:
    """The scheduler that each such pod names."""

    def __init__(self) -> None:
        self._gangs: dict[str, GangKey] = {}
        self._schedulers: dict[GangKey, dict[str, str]] = {}

    def put(self, uid: str, gang: GangKey, scheduler: str) -> bool:
        """Whether this is news."""
        if self._gangs.get(uid) == gang and self._schedulers[gang][uid] == scheduler:
            return False
        self.remove(uid)
        self._gangs[uid] = gang
        self._schedulers.setdefault(gang, {})[uid] = scheduler
        return True

    def remove(self, uid: str) -> GangKey | None:
        """The gang that the pod belonged to, if it was known."""
        gang = self._gangs.pop(uid, None)
        if gang is not None:
            pods = self._schedulers[gang]
            del pods[uid]
            if not pods:
                del self._schedulers[gang]
        return gang

    def of(self, gang: GangKey) -> Mapping[str, int]:
        """Scheduler name → number of the gang's pods that name it."""
        return Counter(self._schedulers.get(gang, {}).values())
