"""One word on each of some pods, by the gang that they belong to: the other scheduler that a pod names (N4), the
constraint of a pod that is not honoured (N1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from enbloc.gangs.model import GangKey


class PodNotes:
    """Pods without a note are not kept."""

    def __init__(self) -> None:
        self._gangs: dict[str, GangKey] = {}
        self._texts: dict[GangKey, dict[str, str]] = {}

    def put(self, uid: str, gang: GangKey, text: str) -> bool:
        """Whether this is news."""
        if self._gangs.get(uid) == gang and self._texts[gang][uid] == text:
            return False
        self.remove(uid)
        self._gangs[uid] = gang
        self._texts.setdefault(gang, {})[uid] = text
        return True

    def remove(self, uid: str) -> GangKey | None:
        """The gang that the pod belonged to, if there was a note on it."""
        gang = self._gangs.pop(uid, None)
        if gang is not None:
            pods = self._texts[gang]
            del pods[uid]
            if not pods:
                del self._texts[gang]
        return gang

    def of(self, gang: GangKey) -> Mapping[str, int]:
        """Text → number of the gang's pods that it is on."""
        return Counter(self._texts.get(gang, {}).values())

    def first_of(self, gang: GangKey) -> str:
        """The first text in order; empty if there is none."""
        return min(self._texts.get(gang, {}).values(), default="")
