"""The embedded API server's storage: objects, versions, watches and writes, in this process.

It handles writes as a Kubernetes API server does, with the same refusals. Objects are plain JSON that is never changed
once stored: a write makes new dictionaries along the changed path and shares the rest, so watches, lists and callers
hold the same objects.

It is more lenient than Kubernetes where files describe a whole cluster:
- a status given at creation is kept, whatever the kind (Nodes, Queues, volumes and pods come with theirs);
- a `metadata.uid` given at creation is kept; version and timestamps are set by the store;
- with `auto_namespaces` a missing namespace is created, and an object that the store `provide`d itself (such a
  namespace, a system priority class) may be created by a user later: the user's object then replaces it.

Consequences of writes wait for `collect_garbage` (dependents, content of namespaces) and `settle` (status of quotas),
which the caller runs once all writes of an instant are done. Running pods is left to the nodes.
"""

from __future__ import annotations

import logging
from builtins import list as List  # noqa: N812 - the port names its method `list`
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from enbloc.api.kinds import decode_faults, kind_id, ref_of
from enbloc.api.meta import Fault, Obj, Ref, is_terminating, name_of, uid_of
from enbloc.api.writes import (
    BindPod,
    Create,
    Delete,
    EmitEvent,
    EvictPod,
    Patch,
    Refused,
    WatchEvent,
    Write,
    merge_patch,
)
from enbloc.cluster.embedded.api import pods
from enbloc.cluster.embedded.api.admission import (
    AdmissionHook,
    DeletionHook,
    Operation,
    built_in,
    check_shape,
    invalid,
    is_good_status,
)
from enbloc.cluster.embedded.api.events import EventIndex
from enbloc.cluster.embedded.api.garbage import FOREGROUND, NAMESPACE, GarbageCollector
from enbloc.cluster.embedded.api.identity import (
    check_kind,
    check_preconditions,
    conflict,
    has_new_spec,
    is_object,
    with_identity,
)
from enbloc.cluster.embedded.api.names import generated_name, generated_uid
from enbloc.cluster.embedded.api.object_size import encoded, size_within
from enbloc.cluster.embedded.api.quota import Quotas
from enbloc.cluster.embedded.api.served_kinds import CRD, ServedKinds
from enbloc.cluster.embedded.api.watch_log import DEFAULT_BOUNDS, Bounds, LogWatch, WatchLog
from enbloc.cluster.embedded.api.webhooks import Question, Review, Webhooks
from enbloc.cluster.embedded.api.workload_defaults import with_controller_uid
from enbloc.cluster.events import EVENT, event_key, event_object
from enbloc.faults import last_line
from enbloc.units import SECOND, format_timestamp

_log = logging.getLogger("enbloc.faults")

Propagation = Literal["Background", "Foreground", "Orphan"]
Subresource = Literal["", "status"]

OBJECT_BYTES = 1_536 * 1_024
"""etcd's default limit of a request: a real API server stores no larger object."""


class Store:
    """A `Cluster` in this process. `now` returns nanoseconds since the epoch; the store has no other clock."""

    def __init__(
        self,
        now: Callable[[], int],
        admission: Sequence[AdmissionHook] = (),
        auto_namespaces: bool = False,
        bounds: Bounds = DEFAULT_BOUNDS,
        deletion: Sequence[DeletionHook] = (),
        object_bytes: int | None = None,
    ) -> None:
        """`object_bytes`: the size of the largest object; `None`: sizes are not measured."""
        self.now = now
        self.auto_namespaces = auto_namespaces
        self.discovery = ServedKinds()
        self._objects: dict[str, dict[str, dict[str, Obj]]] = {}  # kind -> namespace -> name -> object
        self._log = WatchLog(bounds)
        self._object_bytes = object_bytes
        self._garbage = GarbageCollector(self)
        self._quotas = Quotas(self)
        self._events = EventIndex()
        before = (*built_in(self), *admission)
        self.webhooks = Webhooks(self, before)
        self._hooks: tuple[AdmissionHook, ...] = (*before, self.webhooks.admit, self._quotas.admit)
        self._deletion_hooks = tuple(deletion)
        self._provided: set[Ref] = set()
        self._created = 0
        self._asked = 0
        """Creations that webhooks had to answer first."""
        self._stamped = (-1, "")
        self.is_dry_run = False
        self.review: Review | None = None
        """Within `reviewed`: the answers of webhooks to the write; `None`: they are not asked."""
        self.warnings_to_user: List[str] | None = None
        """Within `as_user`: what admission says to the user; `None`: a component writes."""

    # -- reading

    @property
    def listeners(self) -> List[Callable[[WatchEvent], None]]:
        """Callbacks for every event, called during the write: they may record it and do nothing else."""
        return self._log.listeners

    @property
    def version(self) -> int:
        return self._log.version

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        found = self._objects.get(kind, {}).get(namespace, {}).get(name)
        if found is None:
            normal = self.discovery.namespace(kind, namespace)
            if normal != namespace:
                return self._objects.get(kind, {}).get(normal, {}).get(name)
        return found

    def list(self, kind: str, namespace: str | None = None) -> tuple[List[Obj], int]:
        """The objects of a kind by namespace and name, and the resource version of that list."""
        spaces = self._objects.get(kind, {})
        chosen = sorted(spaces) if namespace is None else [namespace] if namespace in spaces else []
        return [obj for space in chosen for _, obj in sorted(spaces[space].items())], self.version

    def kinds(self) -> List[str]:
        """The kinds that have at least one object."""
        return sorted(kind for kind, spaces in self._objects.items() if spaces)

    def objects(self) -> Iterator[Obj]:
        """All objects, by kind, namespace and name."""
        for kind in self.kinds():
            yield from self.list(kind)[0]

    def contents(self, namespace: str) -> Iterator[tuple[Ref, Obj]]:
        """The objects of a namespace, by kind and name."""
        for kind in self.kinds():
            for name, obj in sorted(self._objects[kind].get(namespace, {}).items()):
                yield Ref(kind, namespace, name), obj

    def watch(self, kinds: Collection[str] | None, since: int) -> LogWatch:
        """The events after version `since`. Raises `Refused` (410) if the history no longer reaches back so far."""
        return self._log.open(kinds, since)

    def watch_for_client(self, kinds: Collection[str], since: int) -> LogWatch:
        """As `watch`, for a reader outside this process: it keeps a bounded number of bytes of unread events."""
        return self._log.open(kinds, since, is_client=True)

    # -- writing

    def create(self, obj: Obj) -> Obj:
        obj, ref = self._prepared(obj)
        try:
            return self._create(obj, ref)
        except Refused as why:
            why.name = why.name or ref.name  # whatever refused it: kubectl shows the name
            raise
        except Question:
            if self.review is not None:
                self.review.name = ref.name
                self._asked += 1  # another object gets the next generated name
            raise

    def _create(self, obj: Obj, ref: Ref) -> Obj:
        existing = self.get(*ref)
        if existing is not None:
            return self._take_over(ref, existing, obj)
        obj = self._admitted("CREATE", obj, None)
        self._created += 1
        given = obj["metadata"]
        metadata = {
            **given,
            "uid": given.get("uid") or generated_uid(self._created),
            "creationTimestamp": self.stamp(),
            "generation": 1,
        }
        metadata.pop("deletionTimestamp", None)
        metadata.pop("deletionGracePeriodSeconds", None)
        return self._save(ref, None, with_controller_uid({**obj, "metadata": metadata}), metadata)

    def provide(self, obj: Obj) -> Obj:
        """Creates an object that the cluster itself brings, unless it exists; with `auto_namespaces` a user's `create`
        of the same name replaces it instead of being refused."""
        found = self.get(*ref_of(obj))
        if found is not None:
            return found
        made = self.create(obj)
        self._provided.add(ref_of(made))
        return made

    def patch(
        self,
        ref: Ref,
        patch: dict[str, Any],
        subresource: Subresource = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Obj:
        """Applies a JSON merge patch; one that changes nothing makes no event."""
        ref, current = self._existing(ref, uid, resource_version)
        if not isinstance(patch, dict):
            raise Refused(400, "BadRequest", f"a merge patch is a mapping, not {type(patch).__name__}")
        merged = merge_patch(current, patch)
        return self._update(ref, current, merged, subresource)

    def replace(self, obj: Obj, subresource: Subresource = "") -> Obj:
        """Replaces an object; a resourceVersion in it must be the present one."""
        if not is_object(obj) or not all(
            isinstance(obj["metadata"].get(key, ""), str) for key in ("name", "namespace")
        ):
            check_shape("UPDATE", obj, None)
        if not obj["metadata"].get("name"):
            check_shape("UPDATE", obj, None)
        ref, current = self._existing(ref_of(obj), "", "")
        return self._update(ref, current, obj, subresource)

    def delete(
        self,
        ref: Ref,
        uid: str = "",
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        resource_version: str = "",
    ) -> Obj:
        """Deletes the object or marks it as terminating. A pod on a node stays until its kubelet removes it
        (`grace_s=0`), an object with finalizers until they are removed. Returns the object as it is now, or was
        last."""
        ref, current = self._existing(ref, uid, resource_version)
        for hook in self._deletion_hooks:
            hook(current)
        self.webhooks.admit_delete(current)
        if self.is_dry_run:
            return current
        if propagation == "Orphan":
            self._orphan(uid_of(current), ref)
            current = self._existing(ref, "", "")[1]
        metadata = current["metadata"]
        finalizers = metadata.get("finalizers") or []
        if propagation == "Foreground" and self._garbage.dependents(metadata["uid"], ref):
            if FOREGROUND not in finalizers:
                finalizers = [*finalizers, FOREGROUND]
            self._garbage.wait_for_dependents(metadata["uid"], ref)
        grace = pods.deletion_grace_s(current, grace_s) if ref.kind == pods.POD else 0
        waits = bool(finalizers) or ref.kind == NAMESPACE
        if grace == 0 and not waits:
            return self._drop(ref, current)
        return self._begin_deletion(ref, current, grace, finalizers)

    def remove_pod(self, namespace: str, name: str, uid: str = "") -> None:
        """Removes a pod that its kubelet has stopped. Does nothing if the pod is gone."""
        pod = self.get(pods.POD, namespace, name)
        if pod is not None and (not uid or uid_of(pod) == uid):
            self.delete(Ref(pods.POD, namespace, name), grace_s=0)

    def bind(self, namespace: str, name: str, uid: str, node: str, annotations: dict[str, str] | None = None) -> Obj:
        """A Binding: assigns the pod to the node and copies the annotations. The node need not exist."""
        ref, pod = self._existing(Ref(pods.POD, namespace, name), uid, "")
        refusal = pods.binding_refusal(pod)
        if refusal:
            raise conflict(refusal)
        bound = pods.bound(pod, node, annotations or {}, self.stamp())
        return self._save(ref, pod, bound, bound["metadata"])

    def evict(self, namespace: str, name: str, uid: str, reason: str, message: str) -> Obj:
        """Sets the pod's DisruptionTarget condition and deletes it gracefully."""
        ref, pod = self._existing(Ref(pods.POD, namespace, name), uid, "")
        if not is_terminating(pod):
            target = pods.condition("DisruptionTarget", "True", self.stamp(), reason, message)
            conditions = pods.with_conditions((pod.get("status") or {}).get("conditions"), target)
            self.patch(ref, {"status": {"conditions": conditions}}, "status")
        return self.delete(ref)

    def emit(self, emitted: EmitEvent) -> Obj:
        """Stores an Event; a repeated one is counted."""
        key = event_key(emitted)
        known = self._events.find(key)
        if known is not None:
            event = self.get(EVENT, *known)
            if event is not None:
                changed = {"count": event["count"] + 1, "lastTimestamp": self.stamp()}
                metadata = dict(event["metadata"])
                return self._save(Ref(EVENT, *known), event, {**event, **changed, "metadata": metadata}, metadata)
            self._events.forget(key)
        namespace = emitted.ref.namespace or "default"
        name, dropped = self._events.add(key, namespace, emitted.ref.name)
        for old in dropped:
            event = self.get(EVENT, *old)
            if event is not None:
                self._drop(Ref(EVENT, *old), event)
        event = event_object(emitted, namespace, name, self.stamp())
        self._created += 1
        metadata = {**event["metadata"], "uid": generated_uid(self._created), "creationTimestamp": self.stamp()}
        return self._save(Ref(EVENT, namespace, name), None, {**event, "metadata": metadata}, metadata)

    def execute(self, write: Write) -> Obj | None:
        """Executes one write and returns the object as it is now. Raises `Refused`."""
        match write:
            case Patch():
                return self.patch(write.ref, write.patch, write.subresource, write.uid, write.resource_version)
            case BindPod():
                return self.bind(write.namespace, write.name, write.uid, write.node, write.annotations)
            case Create():
                return self.create(write.obj)
            case Delete():
                return self.delete(write.ref, write.uid, write.grace_s)
            case EvictPod():
                return self.evict(write.namespace, write.name, write.uid, write.reason, write.message)
            case EmitEvent():
                return self.emit(write)

    @contextmanager
    def dry_run(self, wanted: bool) -> Iterator[None]:
        """Within it, if it is wanted, creates, updates and deletes are validated and answered, but not stored."""
        self.is_dry_run = wanted
        try:
            yield
        finally:
            self.is_dry_run = False

    @contextmanager
    def as_user(self, review: Review | None = None) -> Iterator[List[str]]:
        """Within it writes are a user's, not those of a component of the cluster. Yields the warnings to the user."""
        found: List[str] = []
        self.warnings_to_user = found
        try:
            with self.reviewed(review):
                yield found
        finally:
            self.warnings_to_user = None

    @contextmanager
    def reviewed(self, review: Review | None) -> Iterator[None]:
        """Within it one write is reviewed by webhooks. It raises `Question` if they must be asked first."""
        self.review = review
        try:
            yield
        finally:
            self.review = None

    def restore(self, objects: Sequence[Obj], version: int, *, complete: bool = True) -> None:
        """Fills an empty store with the objects that were stored before a restart, without admission and without
        events; watches start at `version`, the present one. Every stored object had a version of its own, so counting
        on from there makes no UID and no name twice. `complete`: owners that are not among them do not exist."""
        assert not self._objects, "only an empty store can be restored"
        self._log.begin(version)
        self._events.continue_after(version)
        self._created = version
        for obj in sorted(objects, key=_restore_order):
            ref = ref_of(obj)
            self._objects.setdefault(ref.kind, {}).setdefault(ref.namespace, {})[ref.name] = obj
            self._follow(ref, None, obj)
            if is_terminating(obj):
                self._garbage.resume(ref, obj)
            if ref.kind == EVENT:
                self._events.restore(obj)
        if not complete:
            self._garbage.presume_owners()

    # -- consequences of writes, when the caller asks for them

    def collect_garbage(self) -> int:
        """Deletes objects without owner or namespace; returns how many it changed. To be called once all writes of an
        instant are done, so that an owner may be created after its dependents. Settles quotas too."""
        touched = self._garbage.collect()
        self._quotas.settle()
        return touched

    def settle(self) -> int:
        """Writes the status of quotas whose usage changed; returns how many."""
        return self._quotas.settle()

    def drop_namespace(self, name: str) -> bool:
        """Deletes a terminating namespace that is empty, unless it has finalizers of its own."""
        ref = Ref(NAMESPACE, "", name)
        current = self.get(*ref)
        if current is None or current["metadata"].get("finalizers"):
            return False
        self._drop(ref, current)
        return True

    def stamp(self) -> str:
        """The present time as text; one string for all writes of an instant."""
        now = self.now()
        if self._stamped[0] != now:
            self._stamped = (now, format_timestamp(now))
        return self._stamped[1]

    # -- internals

    def _prepared(self, obj: Obj) -> tuple[Obj, Ref]:
        """The object with its name and namespace set; refused if it is not an object at all."""
        if not is_object(obj):
            check_shape("CREATE", obj, None)
        metadata = obj["metadata"]
        kind = kind_id(obj)
        name = metadata.get("name")
        given = metadata.get("namespace") or ""
        namespace = self.discovery.namespace(kind, given) if isinstance(given, str) else ""
        if not name and isinstance(metadata.get("generateName"), str):
            taken = self._objects.get(kind, {}).get(namespace, {})
            name = self.review.name if self.review is not None else ""
            name = name or generated_name(metadata["generateName"], self._created + self._asked + 1, taken)
        if metadata.get("name") != name or metadata.get("namespace", "") != namespace:
            metadata = {**metadata, "name": name}
            if namespace:
                metadata["namespace"] = namespace
            elif isinstance(given, str):
                metadata.pop("namespace", None)
            obj = {**obj, "metadata": metadata}
        if not isinstance(name, str) or not isinstance(given, str):
            check_shape("CREATE", obj, None)
        return obj, Ref(kind, namespace, name or "")

    def _take_over(self, ref: Ref, existing: Obj, obj: Obj) -> Obj:
        if ref not in self._provided or not self.auto_namespaces or is_terminating(existing):
            message = f'{self.discovery.resource(ref.kind)} "{ref.name}" already exists'
            raise Refused(409, "AlreadyExists", message, existing=existing)
        self._provided.discard(ref)
        metadata = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion")}
        return self._update(ref, existing, {**obj, "metadata": metadata}, "")

    def _existing(self, ref: Ref, uid: str, resource_version: str) -> tuple[Ref, Obj]:
        """The object by its full name, if it meets the preconditions."""
        current = self._objects.get(ref.kind, {}).get(ref.namespace, {}).get(ref.name)
        if current is None:
            ref = Ref(ref.kind, self.discovery.namespace(ref.kind, ref.namespace), ref.name)
            current = self._objects.get(ref.kind, {}).get(ref.namespace, {}).get(ref.name)
            if current is None:
                raise Refused(404, "NotFound", f'{self.discovery.resource(ref.kind)} "{ref.name}" not found')
        if uid or resource_version:
            check_preconditions(self.discovery.resource(ref.kind), current, uid, resource_version)
        return ref, current

    def _admitted(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        try:
            for hook in self._hooks:
                obj = hook(operation, obj, old)
        except (Refused, Question):
            raise
        except Exception as failure:  # S8: the write is refused, and the client goes on
            _log.error("admission of %s %s failed", kind_id(obj), name_of(obj), exc_info=failure)
            code = 400 if isinstance(failure, RecursionError) else 500
            raise Refused(code, "InternalError", f"admission failed: {last_line(failure)}") from None
        return obj

    def _update(self, ref: Ref, current: Obj, wanted: Obj, subresource: Subresource) -> Obj:
        if subresource == "status":
            return self._update_status(ref, current, wanted)
        if wanted.get("metadata") is not current["metadata"]:
            wanted = with_identity(self.discovery.resource(ref.kind), current, wanted)
        if self.discovery.has_status(ref.kind) and wanted.get("status") is not current.get("status"):
            wanted = {**wanted, "status": current.get("status")}
            if wanted["status"] is None:
                del wanted["status"]
        check_kind(ref.kind, wanted)
        if wanted == current:
            return current
        admitted = self._admitted("UPDATE", wanted, current)
        if ref.kind == pods.POD:
            fault = pods.update_fault(current, admitted)
            if fault is not None:
                raise invalid(admitted, [fault])
        if admitted == current:
            return current
        metadata = dict(admitted["metadata"])
        if has_new_spec(current, admitted):
            metadata["generation"] = (current["metadata"].get("generation") or 0) + 1
        return self._save_or_drop(ref, current, {**admitted, "metadata": metadata}, metadata)

    def _update_status(self, ref: Ref, current: Obj, wanted: Obj) -> Obj:
        """Changes the status, and who manages it. No admission: only the types of known fields are checked."""
        status = wanted.get("status")
        metadata = dict(current["metadata"])
        managed = wanted["metadata"].get("managedFields")
        if managed is not None:
            metadata["managedFields"] = managed
        if status == current.get("status") and metadata == current["metadata"]:
            return current
        changed = {**current, "metadata": metadata, "status": status}
        if status is None:
            del changed["status"]
        if not is_good_status(ref.kind, status):
            raise invalid(changed, decode_faults(changed) or [Fault("status", "must be a mapping")])
        return self._save(ref, current, changed, metadata)

    def _begin_deletion(self, ref: Ref, current: Obj, grace_s: int, finalizers: List[str]) -> Obj:
        had = current["metadata"]
        if ref.kind == NAMESPACE:
            self._garbage.empty_namespace(ref.name)
        if is_terminating(current) and had.get("deletionGracePeriodSeconds") == grace_s:
            if finalizers == (had.get("finalizers") or []):
                return current
        metadata = {
            **had,
            "deletionTimestamp": format_timestamp(self.now() + grace_s * SECOND) if grace_s else self.stamp(),
            "deletionGracePeriodSeconds": grace_s,
        }
        if finalizers:
            metadata["finalizers"] = finalizers
        changed = {**current, "metadata": metadata}
        if ref.kind == NAMESPACE:
            changed["status"] = {**(current.get("status") or {}), "phase": "Terminating"}
        return self._save(ref, current, changed, metadata)

    def _orphan(self, uid: str, ref: Ref) -> None:
        for dependent in self._garbage.dependents(uid, ref).values():
            obj = self.get(*dependent)
            if obj is not None:
                owners = [owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("uid") != uid]
                self.patch(dependent, {"metadata": {"ownerReferences": owners or None}})

    def _save_or_drop(self, ref: Ref, old: Obj, new: Obj, metadata: dict[str, Any]) -> Obj:
        """Stores an update; a terminating object without finalizers is deleted."""
        ended = metadata.get("deletionTimestamp") and not metadata.get("finalizers")
        saved = self._save(ref, old, new, metadata)
        if ended and not metadata.get("deletionGracePeriodSeconds") and ref.kind != NAMESPACE:
            return self._drop(ref, saved)
        return saved

    def _save(self, ref: Ref, old: Obj | None, new: Obj, metadata: dict[str, Any]) -> Obj:
        """Stores `new`, whose `metadata` no other object shares yet, as the next version."""
        size = 0 if self._object_bytes is None else size_within(new, self._object_bytes)
        if self.is_dry_run:
            return new
        metadata["resourceVersion"] = str(self._log.version + 1)
        self._objects.setdefault(ref.kind, {}).setdefault(ref.namespace, {})[ref.name] = new
        self._log.append(WatchEvent("MODIFIED" if old is not None else "ADDED", ref.kind, new, old), size)
        self._follow(ref, old, new)
        return new

    def _drop(self, ref: Ref, old: Obj) -> Obj:
        if self.is_dry_run:
            return old
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self._log.version + 1)}}
        spaces = self._objects[ref.kind]
        names = spaces[ref.namespace]
        del names[ref.name]
        if not names:
            del spaces[ref.namespace]
        self._provided.discard(ref)
        if ref.kind == EVENT:
            self._events.removed(old)
        self._log.append(WatchEvent("DELETED", ref.kind, last), 0 if self._object_bytes is None else len(encoded(last)))
        self._follow(ref, old, None)
        return last

    def _follow(self, ref: Ref, old: Obj | None, new: Obj | None) -> None:
        self._garbage.follow(ref, old, new)
        self._quotas.follow(ref, old, new)
        if ref.kind == CRD:
            self.discovery.follow(old, new)
            self._garbage.reconsider()


def _restore_order(obj: Obj) -> tuple[bool, int]:
    """CustomResourceDefinitions first, since they give kinds their scope; then by version, so that old Events drop
    first."""
    return (kind_id(obj) != CRD, int(obj["metadata"]["resourceVersion"]))
