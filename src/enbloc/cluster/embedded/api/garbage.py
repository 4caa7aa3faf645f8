"""What goes because something else went: dependants of owners that are gone, and the contents of namespaces.

One mechanism: the store tells of every change (`follow`), which only marks suspects; `collect` judges them, and what
that makes suspect in turn, until nobody is left. So an owner may come after its dependants within an instant, and the
work is linear in what changed. Owners are known by UID, as in Kubernetes. An owner that was here and went is gone; one
that never was here is taken as gone only if its kind is served: Kubernetes cannot look up the others and leaves their
dependants alone, and so do we.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref, is_terminating, uid_of
from enbloc.api.writes import Refused

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.store import Store

FOREGROUND = "foregroundDeletion"
NAMESPACE = "Namespace"


class Garbage:
    """Knows who depends on whom, and which dependants may have lost their owner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: dict[str, Ref] = {}
        self._dependants: dict[str, dict[str, Ref]] = {}  # owner's uid -> dependant's uid -> who
        self._gone: set[str] = set()  # owners that were here, as long as anybody still names them
        self._suspects: dict[str, Ref] = {}
        self._unresolved: dict[str, Ref] = {}  # left alone because nobody serves the owner's kind
        self._foreground: dict[str, Ref] = {}
        self._namespaces: dict[str, bool] = {}  # terminating ones, and whether their contents were deleted

    def follow(self, ref: Ref, old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None:
            had, has = old["metadata"].get("ownerReferences"), new["metadata"].get("ownerReferences")
            if had is not has:
                self._disown(uid_of(old), had)
                self._own(ref, new)
        elif new is not None:
            self._live[uid_of(new)] = ref
            self._own(ref, new)
        elif old is not None:
            self._lose(ref, old)

    def resume(self, ref: Ref, obj: Obj) -> None:
        """An object whose deletion was begun in an earlier life."""
        if FOREGROUND in (obj["metadata"].get("finalizers") or ()):
            self.wait_for_dependants(uid_of(obj), ref)
        if ref.kind == NAMESPACE:
            self.empty_namespace(ref.name)

    def dependants(self, uid: str) -> list[Ref]:
        return list(self._dependants.get(uid, {}).values())

    def wait_for_dependants(self, uid: str, ref: Ref) -> None:
        """The object is to go once its dependants have gone."""
        self._foreground[uid] = ref

    def empty_namespace(self, name: str) -> None:
        """The namespace is to go once everything in it has gone."""
        self._namespaces.setdefault(name, False)

    def reconsider(self) -> None:
        """A kind came to be served: owners that could not be looked up now can."""
        self._suspects.update(self._unresolved)
        self._unresolved.clear()

    def collect(self) -> int:
        """Deletes all that is garbage by now; the number of objects it touched."""
        touched = 0
        while True:
            before = touched
            for name in list(self._namespaces):
                touched += self._empty(name)
            for uid, ref in list(self._foreground.items()):
                touched += self._finish_foreground(uid, ref)
            while self._suspects:
                suspects, self._suspects = self._suspects, {}
                for uid, ref in suspects.items():
                    touched += self._judge(uid, ref)
            if touched == before:
                return touched

    def _own(self, ref: Ref, obj: Obj) -> None:
        owners = obj["metadata"].get("ownerReferences")
        if not owners:
            return
        uid = uid_of(obj)
        for owner in owners:
            owner_uid = owner.get("uid") or ""
            self._dependants.setdefault(owner_uid, {})[uid] = ref
            if owner_uid not in self._live:
                self._suspects[uid] = ref

    def _disown(self, uid: str, owners: list[dict[str, Any]] | None) -> None:
        for owner in owners or ():
            owner_uid = owner.get("uid") or ""
            dependants = self._dependants.get(owner_uid)
            if dependants is None:
                continue
            dependants.pop(uid, None)
            if not dependants:
                del self._dependants[owner_uid]
                self._gone.discard(owner_uid)

    def _lose(self, ref: Ref, obj: Obj) -> None:
        uid = uid_of(obj)
        if self._live.get(uid) == ref:  # not so if two files gave two objects one uid
            del self._live[uid]
        self._suspects.pop(uid, None)
        self._unresolved.pop(uid, None)
        self._foreground.pop(uid, None)
        if ref.kind == NAMESPACE:
            self._namespaces.pop(ref.name, False)
        self._disown(uid, obj["metadata"].get("ownerReferences"))
        dependants = self._dependants.get(uid)
        if dependants:
            self._gone.add(uid)
            self._suspects.update(dependants)

    def _judge(self, uid: str, ref: Ref) -> int:
        obj = self._store.get(*ref)
        if obj is None or uid_of(obj) != uid or is_terminating(obj):
            return 0
        owners = obj["metadata"].get("ownerReferences") or []
        solid = [owner for owner in owners if owner.get("uid") in self._live]
        if len(solid) == len(owners):
            return 0
        if not all(self._is_gone(owner) for owner in owners if owner.get("uid") not in self._live):
            self._unresolved[uid] = ref
            return 0
        if solid:
            self._store.patch(ref, {"metadata": {"ownerReferences": solid}}, uid=uid)
            return 1
        return self._delete(ref)

    def _delete(self, ref: Ref) -> int:
        """Whether there was something to delete; what admission protects stays."""
        try:
            self._store.delete(ref)
        except Refused:
            return 0
        return 1

    def _is_gone(self, owner: dict[str, Any]) -> bool:
        if owner.get("uid") in self._gone:
            return True
        if not owner.get("apiVersion") or not owner.get("kind"):
            return False
        return self._store.discovery.find(kind_id(owner)) is not None

    def _finish_foreground(self, uid: str, ref: Ref) -> int:
        dependants = self._dependants.get(uid)
        obj = self._store.get(*ref)
        if obj is None or uid_of(obj) != uid:
            self._foreground.pop(uid, None)
            return 0
        if not dependants:
            del self._foreground[uid]
            finalizers = [name for name in obj["metadata"].get("finalizers") or () if name != FOREGROUND]
            self._store.patch(ref, {"metadata": {"finalizers": finalizers or None}}, uid=uid)
            return 1
        touched = 0
        for dependant_uid, dependant in list(dependants.items()):
            found = self._store.get(*dependant)
            if found is not None and uid_of(found) == dependant_uid and not is_terminating(found):
                touched += self._delete(dependant)
        return touched

    def _empty(self, name: str) -> int:
        contents = [ref for ref, _ in self._store.contents(name)]
        if not contents:
            return self._store.drop_namespace(name)
        if self._namespaces.get(name):
            return 0
        self._namespaces[name] = True
        return sum(self._delete(ref) for ref in contents)
