"""Pods grouped by owner: a JobSet, a RayCluster, an Indexed Job or any kind that the config lists (V1).

For workloads whose operator writes no PodGroup. Which kinds these are, where their minimum is and what a role is says
`config.owner_kinds`; this module finds the owner of a pod and counts nothing. Such a gang has no object of ours: its
conditions and its claim record are on its pods.

Off on a cluster unless the config asks for it: pods that were scheduled one by one before an upgrade would wait for
each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import (
    Obj,
    annotations_of,
    controller_of,
    created_ns_of,
    kind_named,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from enbloc.api.writes import WatchEvent
from enbloc.config.owner_kinds import OwnerKind
from enbloc.gangs import topology
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import count
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership, with_records_of
from enbloc.gangs.oldest_pod import Members, WithoutObject
from enbloc.gangs.owner_kinds import Minima, Reference, applies, minima_of, queue_of, references
from enbloc.gangs.workload import minimum_complaints

_Place = tuple[str, Reference]
"""The owner's namespace, empty if it has none, and how pods name it."""


class _Owner(NamedTuple):
    obj: Obj
    entries: tuple[OwnerKind, ...]
    """Those that apply to it, in order."""


class Owner(WithoutObject):
    """Gangs by owner: one for each owner, or for each value of the entry's split label."""

    name = "owner"

    def __init__(self, entries: tuple[OwnerKind, ...] = ()) -> None:
        super().__init__()
        self._entries = entries
        self.kinds = frozenset(entry.kind for entry in entries)
        self._labels = frozenset(entry.pod_label for entry in entries if entry.pod_label)
        self._owners: dict[str, _Owner] = {}
        """By UID."""
        self._places: dict[_Place, str] = {}
        """How pods name an owner → its UID."""
        self._pods: dict[_Place, dict[str, Obj]] = {}
        """Pods by how they name an owner, which may be observed after them."""
        self._gang_of: dict[str, GangKey] = {}
        """By the UID of a pod."""
        self._gangs_of: dict[str, set[GangKey]] = {}
        """By the UID of an owner."""

    # Watch events

    def observe(self, event: WatchEvent) -> Changed:
        owner, uid = event.obj, uid_of(event.obj)
        namespace = namespace_of(owner)
        places: list[_Place] = [(namespace, ("", uid)), (namespace, (event.kind, name_of(owner)))]
        before = self._owners.pop(uid, None)
        if event.type != "DELETED":
            entries = tuple(one for one in self._entries if one.kind == event.kind and _asks(one, owner))
            self._owners[uid] = _Owner(owner, entries)
            self._places.update(dict.fromkeys(places, uid))
        else:
            for place in places:
                if self._places.get(place) == uid:
                    del self._places[place]
        after = self._owners.get(uid)
        gangs = sorted(self._gangs_of.get(uid, ()))
        if (before.entries if before else ()) == (after.entries if after else ()):
            return Changed(tuple(gangs)) if before is None or after is None or _differs(before, after) else NOTHING
        moved = {one: pod for place in places for one, pod in self._pods.get(place, {}).items()}
        for pod in moved.values():
            self._move(pod, self._key(pod))
        return Changed(tuple({*gangs, *self._gangs_of.get(uid, ())}), tuple(moved.values()))

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        if not self._may_name_one(pod):
            return NOTHING
        places = list(self._named(pod))
        if not places:
            return NOTHING
        uid = uid_of(pod)
        for place in places:
            pods = self._pods.setdefault(place, {})
            if gone:
                pods.pop(uid, None)
            else:
                pods[uid] = pod
            if not pods:
                del self._pods[place]
        left, key = self._gang_of.get(uid), None if gone else self._key(pod)
        homes = {one: self.home(one) for one in (left, key) if one is not None}
        self._move(pod, key)
        return Changed(tuple(one for one, before in homes.items() if self.home(one) is not before))

    def _move(self, pod: Obj, key: GangKey | None) -> None:
        """Makes a pod a member of one gang, or of none."""
        uid = uid_of(pod)
        left = self._gang_of.pop(uid, None)
        if left is not None and left != key:
            self._members[left].remove(uid)
            if not self._members[left].pods:
                del self._members[left]
                owner = _owner_uid(left)
                self._gangs_of[owner].discard(left)
                if not self._gangs_of[owner]:
                    del self._gangs_of[owner]
        if key is not None:
            self._gang_of[uid] = key
            self._gangs_of.setdefault(_owner_uid(key), set()).add(key)
            self._members.setdefault(key, Members()).put(pod)

    # Gangs

    def _may_name_one(self, pod: Obj) -> bool:
        """Whether an entry can match: every pod is asked, and most have neither such an owner nor such a label."""
        owner = controller_of(pod)
        return (owner is not None and kind_named(owner) in self.kinds) or not self._labels.isdisjoint(labels_of(pod))

    def _named(self, pod: Obj) -> Iterator[_Place]:
        return iter(dict.fromkeys(place for _, places in self._references(pod) for place in places))

    def _references(self, pod: Obj) -> Iterator[tuple[OwnerKind, tuple[_Place, _Place]]]:
        """The entries that a pod is of, and where its owner may be: in its own namespace, or in none (S1)."""
        for entry, reference in references(self._entries, pod):
            yield entry, ((namespace_of(pod), reference), ("", reference))

    def _found(self, pod: Obj) -> tuple[OwnerKind, Obj] | None:
        """The first entry that the pod and its owner match."""
        for entry, places in self._references(pod):
            for place in places:
                owner = self._owners.get(self._places.get(place, ""))
                if owner is not None and entry in owner.entries:
                    return entry, owner.obj
        return None

    def _key(self, pod: Obj) -> GangKey | None:
        found = self._found(pod)
        if found is None:
            return None
        entry, owner = found
        part = labels_of(pod).get(entry.split_label) if entry.split_label else None
        return GangKey(self.name, namespace_of(pod), f"{uid_of(owner)}/{part}" if part else uid_of(owner))

    def member(self, pod: Obj) -> Membership | None:
        found = self._found(pod) if self._owners and self._may_name_one(pod) else None
        key = self._key(pod) if found is not None else None
        if found is None or key is None:
            return None
        return Membership(key, (labels_of(pod).get(found[0].role_label) or "") if found[0].role_label else "", None)

    def spec(self, key: GangKey) -> GangSpec | None:
        part = key.name.partition("/")[2]
        owner, home = self._owners.get(_owner_uid(key)), self.home(key)
        if owner is None or home is None:
            return None
        found = self._found(home)
        entry = found[0] if found is not None else next(iter(owner.entries), None)
        minima = _minima(entry, owner.obj) if entry is not None else None
        if entry is None or minima is None:
            return None
        name = name_of(owner.obj)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{name}-{part}" if part else f"{key.namespace}/{name}",
            created_ns=created_ns_of(owner.obj),
            minimum=minima.total,
            minima=minima.by_role,
            queue=queue_of(entry, owner.obj) or queue_named_by(owner.obj) or queue_named_by(home) or DEFAULT_QUEUE,
            dialect=owner.obj["kind"],
            observed=with_records_of(home),
            topology=topology.of_owner(owner.obj),
            hints=hints_of(owner.obj),
            problem=minima.problem,
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """Pods whose owner is gone, or is a gang no longer, are scheduled by themselves."""
        return GangSpec(key=key, title=f"{key.namespace}/{key.name}", created_ns=created_ns, minimum=0, queue=queue)

    def complaints(self, obj: Obj) -> Iterator[str]:
        return minimum_complaints(obj) if kind_id(obj) in self.kinds else iter(())


def asks_for_gang(entries: tuple[OwnerKind, ...], owner: Obj) -> bool:
    """Whether the pods of an object are a gang by one of these entries."""
    kind = kind_id(owner)
    return any(entry.kind == kind and _asks(entry, owner) for entry in entries)


def _owner_uid(key: GangKey) -> str:
    return key.name.partition("/")[0]


def _asks(entry: OwnerKind, owner: Obj) -> bool:
    return applies(entry, owner) and _minima(entry, owner) is not None


def _minima(entry: OwnerKind, owner: Obj) -> Minima | None:
    """The minimum by annotation, else as the entry says; `None`: none is asked for."""
    text = annotations_of(owner).get(volcano.GROUP_MIN_MEMBER)
    asked = count(text) if text else None
    return Minima(asked, {}) if asked is not None else minima_of(entry, owner)


def _differs(before: _Owner, after: _Owner) -> bool:
    """Whether its gang may read differently: a change of its status alone does not matter."""
    if before.obj.get("spec") != after.obj.get("spec"):
        return True
    first, second = before.obj["metadata"], after.obj["metadata"]
    return any(first.get(key) != second.get(key) for key in ("annotations", "labels"))
