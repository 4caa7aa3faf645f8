"""Gangs that have no object of their own: their pods, and the oldest of them, which carries the claim record."""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of, uid_of
from enbloc.gangs.dialect import NOTHING, Changed
from enbloc.gangs.model import GangKey


class Members:
    """The pods of one gang."""

    def __init__(self) -> None:
        self.pods: dict[str, Obj] = {}
        self.oldest: Obj | None = None

    def put(self, pod: Obj) -> None:
        self.pods[uid_of(pod)] = pod
        if self.oldest is None or uid_of(self.oldest) == uid_of(pod) or _age(pod) < _age(self.oldest):
            self.oldest = pod

    def remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        if self.oldest is not None and uid_of(self.oldest) == uid:
            self.oldest = min(self.pods.values(), key=_age, default=None)


class WithoutObject:
    """A dialect whose gangs have no object of their own."""

    def __init__(self) -> None:
        self._members: dict[GangKey, Members] = {}

    def object(self, key: GangKey) -> Obj | None:
        return None

    def home(self, key: GangKey) -> Obj | None:
        """Its oldest pod."""
        members = self._members.get(key)
        return members.oldest if members is not None else None

    def _observe_member(self, key: GangKey, pod: Obj, gone: bool) -> Changed:
        """A member was created, changed or deleted: the gang changed if its oldest pod did."""
        members = self._members.setdefault(key, Members())
        before = members.oldest
        if gone:
            members.remove(uid_of(pod))
        else:
            members.put(pod)
        if not members.pods:
            del self._members[key]
        return NOTHING if members.oldest is before else Changed((key,))


def _age(pod: Obj) -> tuple[str, str]:
    return pod["metadata"].get("creationTimestamp") or "", name_of(pod)
