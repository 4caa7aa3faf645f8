"""The pods of a gang that has no object of its own, and the oldest of them, which carries its claim record."""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of, uid_of


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


def _age(pod: Obj) -> tuple[str, str]:
    return pod["metadata"].get("creationTimestamp") or "", name_of(pod)
