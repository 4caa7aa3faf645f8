"""Ordinary pods whose owner asks for a gang: `scheduling.volcano.sh/group-min-member` on a ReplicaSet, StatefulSet, Job
or the like, or `volcano.sh/network-topology-mode` and `-highest-tier` there (V1, T1).

The pods of one controlling owner are the gang, and the annotation its minimum. Kubernetes copies a Deployment's
annotations to its ReplicaSets, so Deployments need no reading. Such a gang has no object of ours: its conditions and
its claim record are on its pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api import volcano
from enbloc.api.kinds import WORKLOADS, kind_id
from enbloc.api.meta import Obj, annotations_of, controller_key, created_ns_of, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs import topology
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX, count, shown
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership, with_records_of
from enbloc.gangs.oldest_pod import WithoutObject

DEFAULT_NAMESPACE = "default"
"""Of an owner in a file that names none."""


class Workload(WithoutObject):
    """Gangs declared on the owners of ordinary pods, by the owner's UID."""

    name = "workload"
    kinds = frozenset(WORKLOADS)

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[GangKey, Obj] = {}
        """Owners that ask for a gang. Pods of others are kept too: an owner may be observed after them."""

    # Watch events

    def observe(self, event: WatchEvent) -> Changed:
        key = GangKey(self.name, namespace_of(event.obj) or DEFAULT_NAMESPACE, uid_of(event.obj))
        before = self._owners.pop(key, None)
        if event.type != "DELETED" and _minimum(event.obj) is not None:
            self._owners[key] = event.obj
        if before is None and key not in self._owners:
            return NOTHING
        moved = (before is None) != (key not in self._owners)
        members = self._members.get(key) if moved else None
        return Changed((key,), tuple(members.pods.values()) if members is not None else ())

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        key = self._key(pod)
        if key is None:
            return NOTHING
        changed = self._observe_member(key, pod, gone)
        return changed if key in self._owners else NOTHING

    # Gangs

    def _key(self, pod: Obj) -> GangKey | None:
        """By the workload that controls the pod; `None` if none does."""
        owner = controller_key(pod, *WORKLOADS)
        return GangKey(self.name, *owner.split("/", 1)) if owner else None

    def member(self, pod: Obj) -> Membership | None:
        key = self._key(pod)
        return Membership(key, "", None) if key in self._owners else None

    def spec(self, key: GangKey) -> GangSpec | None:
        owner = self._owners.get(key)
        if owner is None:
            return None
        home = self.home(key)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{name_of(owner)}",
            created_ns=created_ns_of(owner),
            minimum=_minimum(owner) or 0,
            queue=queue_named_by(owner) or (queue_named_by(home) if home is not None else "") or DEFAULT_QUEUE,
            observed=with_records_of(home),
            topology=topology.of_owner(owner),
            hints=hints_of(owner),
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """Pods whose owner no longer asks for a gang are scheduled by themselves."""
        return GangSpec(key=key, title=f"{key.namespace}/{key.name}", created_ns=created_ns, minimum=0, queue=queue)

    def complaints(self, obj: Obj) -> Iterator[str]:
        return minimum_complaints(obj) if kind_id(obj) in self.kinds else iter(())


def minimum_complaints(owner: Obj) -> Iterator[str]:
    """That the minimum on an owner cannot be read."""
    text = annotations_of(owner).get(volcano.GROUP_MIN_MEMBER)
    if text and count(text) is None:
        bad = f"{volcano.GROUP_MIN_MEMBER} {shown(text)} is not a whole number from 0 to {INT32_MAX}"
        yield f"{bad}: it does not count"


def _minimum(owner: Obj) -> int | None:
    """What the owner asks for; `None` if it does not ask for a gang. Pods that must be near each other are one with a
    minimum of 1, as in Volcano."""
    text = annotations_of(owner).get(volcano.GROUP_MIN_MEMBER)
    asked = count(text) if text else None
    return 1 if asked is None and topology.of_owner(owner) is not None else asked
