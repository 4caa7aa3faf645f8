"""Garbage collection: dependents of deleted owners, foreground deletion, the content of terminating namespaces.

The store reports every change (`follow`), which only marks objects to check; `collect` checks them, and those that this
marks in turn, until none is left. So an owner may be created after its dependents within an instant, and the work is
linear in the number of changes. Owners are identified by UID, and count only in their dependent's own namespace or
without one (S1), as in Kubernetes. A deleted owner is gone, and so is one of another namespace; an owner that never
existed counts as gone only if its kind is served: Kubernetes cannot look up the others and keeps their dependents. Pods
are kept too where the workload that they name never existed: files often list a cluster's pods alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from enbloc.api.kinds import WORKLOADS, kind_id
from enbloc.api.meta import Obj, Ref, is_terminating, may_own, uid_of
from enbloc.api.writes import Refused

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.store import Store

FOREGROUND = "foregroundDeletion"
NAMESPACE = "Namespace"


class GarbageCollector:
    """Owners and dependents, and which dependents may have lost their owner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: dict[str, tuple[str, ...]] = {}  # uid -> namespaces; several if files gave two objects the same uid
        self._dependents: dict[str, dict[str, Ref]] = {}  # owner's uid -> dependent's uid -> dependent
        self._gone: set[str] = set()  # deleted owners that dependents still name
        self._unchecked: dict[str, Ref] = {}
        self._unresolved: dict[str, Ref] = {}  # kept because the owner's kind is not served
        self._foreground: dict[str, Ref] = {}
        self._namespaces: dict[str, bool] = {}  # terminating ones -> whether their content was deleted

    def follow(self, ref: Ref, old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None:
            had, has = old["metadata"].get("ownerReferences"), new["metadata"].get("ownerReferences")
            if had is not has:
                self._remove_owners(uid_of(old), had)
                self._add_owners(ref, new)
        elif new is not None:
            uid = uid_of(new)
            self._live[uid] = (*self._live.get(uid, ()), ref.namespace)
            self._add_owners(ref, new)
        elif old is not None:
            self._remove(ref, old)

    def resume(self, ref: Ref, obj: Obj) -> None:
        """Continues, after a restart, the deletion of an object."""
        if FOREGROUND in (obj["metadata"].get("finalizers") or ()):
            self.wait_for_dependents(uid_of(obj), ref)
        if ref.kind == NAMESPACE:
            self.empty_namespace(ref.name)

    def dependents(self, uid: str, ref: Ref) -> dict[str, Ref]:
        """What an object owns, by UID."""
        found = self._dependents.get(uid, {})
        return {one: child for one, child in found.items() if may_own(ref.namespace, child.namespace)}

    def wait_for_dependents(self, uid: str, ref: Ref) -> None:
        """Deletes the object once its dependents are deleted."""
        self._foreground[uid] = ref

    def empty_namespace(self, name: str) -> None:
        """Deletes the namespace once its content is deleted."""
        self._namespaces.setdefault(name, False)

    def reconsider(self) -> None:
        """A new kind is served: its owners can now be looked up."""
        self._unchecked.update(self._unresolved)
        self._unresolved.clear()

    def presume_owners(self) -> None:
        """Owners that are unknown so far exist elsewhere: their dependents are kept."""
        self._unresolved.update(self._unchecked)
        self._unchecked.clear()

    def collect(self) -> int:
        """Deletes all garbage; returns how many objects were changed or deleted."""
        touched = 0
        while True:
            before = touched
            for name in list(self._namespaces):
                touched += self._empty(name)
            for uid, ref in list(self._foreground.items()):
                touched += self._finish_foreground(uid, ref)
            while self._unchecked:
                unchecked, self._unchecked = self._unchecked, {}
                for uid, ref in unchecked.items():
                    touched += self._check_owners(uid, ref)
            if touched == before:
                return touched

    def _add_owners(self, ref: Ref, obj: Obj) -> None:
        owners = obj["metadata"].get("ownerReferences")
        if not owners:
            return
        uid = uid_of(obj)
        for owner in owners:
            owner_uid = owner.get("uid") or ""
            self._dependents.setdefault(owner_uid, {})[uid] = ref
            if not self._exists(owner, ref):
                self._unchecked[uid] = ref

    def _remove_owners(self, uid: str, owners: list[dict[str, Any]] | None) -> None:
        for owner in owners or ():
            owner_uid = owner.get("uid") or ""
            dependents = self._dependents.get(owner_uid)
            if dependents is None:
                continue
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner_uid]
                self._gone.discard(owner_uid)

    def _remove(self, ref: Ref, obj: Obj) -> None:
        uid = uid_of(obj)
        namespaces = list(self._live.pop(uid))
        namespaces.remove(ref.namespace)
        if namespaces:
            self._live[uid] = tuple(namespaces)
        self._unchecked.pop(uid, None)
        self._unresolved.pop(uid, None)
        self._foreground.pop(uid, None)
        if ref.kind == NAMESPACE:
            self._namespaces.pop(ref.name, False)
        self._remove_owners(uid, obj["metadata"].get("ownerReferences"))
        dependents = self.dependents(uid, ref)
        if dependents:
            self._gone.add(uid)
            self._unchecked.update(dependents)

    def _check_owners(self, uid: str, ref: Ref) -> int:
        obj = self._store.get(*ref)
        if obj is None or uid_of(obj) != uid or is_terminating(obj):
            return 0
        owners = obj["metadata"].get("ownerReferences") or []
        existing = [owner for owner in owners if self._exists(owner, ref)]
        if len(existing) == len(owners):
            return 0
        if not all(self._is_gone(owner) for owner in owners if owner not in existing):
            self._unresolved[uid] = ref
            return 0
        if existing:
            self._store.patch(ref, {"metadata": {"ownerReferences": existing}}, uid=uid)
            return 1
        return self._delete(ref)

    def _delete(self, ref: Ref) -> int:
        """1 if the object was deleted; 0 if admission forbids it."""
        try:
            self._store.delete(ref)
        except Refused:
            return 0
        return 1

    def _exists(self, owner: dict[str, Any], child: Ref) -> bool:
        return any(may_own(namespace, child.namespace) for namespace in self._live.get(owner.get("uid") or "", ()))

    def _is_gone(self, owner: dict[str, Any]) -> bool:
        """Of an owner that does not exist where its dependent could have it."""
        if owner.get("uid") in self._gone or owner.get("uid") in self._live:
            return True
        if not owner.get("apiVersion") or not owner.get("kind"):
            return False
        kind = kind_id(owner)
        return kind not in WORKLOADS and self._store.discovery.find(kind) is not None

    def _finish_foreground(self, uid: str, ref: Ref) -> int:
        dependents = self.dependents(uid, ref)
        obj = self._store.get(*ref)
        if obj is None or uid_of(obj) != uid:
            self._foreground.pop(uid, None)
            return 0
        if not dependents:
            del self._foreground[uid]
            finalizers = [name for name in obj["metadata"].get("finalizers") or () if name != FOREGROUND]
            self._store.patch(ref, {"metadata": {"finalizers": finalizers or None}}, uid=uid)
            return 1
        touched = 0
        for dependent_uid, dependent in dependents.items():
            found = self._store.get(*dependent)
            if found is not None and uid_of(found) == dependent_uid and not is_terminating(found):
                touched += self._delete(dependent)
        return touched

    def _empty(self, name: str) -> int:
        contents = [ref for ref, _ in self._store.contents(name)]
        if not contents:
            return self._store.drop_namespace(name)
        if self._namespaces.get(name):
            return 0
        self._namespaces[name] = True
        return sum(self._delete(ref) for ref in contents)
