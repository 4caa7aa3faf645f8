"""What both node runtimes do alike: they watch nodes and pods, track the pods of each node, and write pod status.

What a pod does once its node has admitted it is left to the runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic

from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import EmitEvent, Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, is_finished, node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node_pool import NODE, NodePool, P


class Kubelets(ABC, Generic[P]):
    """The kubelets of all nodes. It reads a watch and writes to the store, on the store's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool: NodePool[P] = NodePool(store, self._forget)

    def _begin(self, *more_kinds: str) -> None:
        """Observes what exists, and watches from there on; the last step of a runtime's construction."""
        self._watch = self._store.watch((NODE, POD, *more_kinds), self._store.version)
        for kind in (NODE, POD):
            for obj in self._store.list(kind)[0]:
                self._observe(WatchEvent("ADDED", kind, obj))

    def observe(self) -> None:
        """Reads the store's events."""
        for event in self._watch.drain():
            self._observe(event)

    @abstractmethod
    def _track(self, pod: Obj) -> P:
        """The runtime's state of a pod that was bound to a node."""

    @abstractmethod
    def _added(self, tracked: P, pod: Obj) -> None:
        """A pod was assigned to its node: its admission is due now."""

    @abstractmethod
    def _changed(self, tracked: P, pod: Obj) -> None: ...

    @abstractmethod
    def _node_is_ready(self, tracked: P) -> None:
        """The pod's node changed and is ready."""

    @abstractmethod
    def _forget(self, tracked: P) -> None:
        """The pod is deleted, finished or evicted: stops it and releases it from the pool."""

    def _removed(self, tracked: P, pod: Obj, *, is_deleted: bool) -> None:
        """`pod` shows that `tracked` no longer exists (`is_deleted`) or has finished."""
        self._forget(tracked)

    def _observe(self, event: WatchEvent) -> None:
        if event.kind == NODE:
            self._pool.observe_node(event)
            if self._pool.is_ready(name_of(event.obj)):
                for tracked in self._pool.pods_on(name_of(event.obj)):
                    self._node_is_ready(tracked)
        elif event.kind == POD:
            self._observe_pod(event)

    def _observe_pod(self, event: WatchEvent) -> None:
        pod = event.obj
        is_deleted, finished = event.type == "DELETED", is_finished(pod)
        tracked = self._pool.pod((namespace_of(pod), name_of(pod)))
        if tracked is not None:
            is_replaced = tracked.uid != uid_of(pod)
            if is_deleted or is_replaced or finished:
                self._removed(tracked, pod, is_deleted=is_deleted or is_replaced)
                tracked = None
        if is_deleted or finished or not node_of(pod):
            return
        if tracked is not None:
            self._changed(tracked, pod)
        elif not is_terminating(pod) or pod["metadata"].get("deletionGracePeriodSeconds"):
            tracked = self._track(pod)
            self._pool.assign(tracked)
            self._added(tracked, pod)
        # else: its kubelet has stopped it already, and only finalizers keep the object

    def _current(self, tracked: P) -> Obj | None:
        """The pod's object, if it still has the same UID."""
        pod = self._store.get(POD, *tracked.key)
        return pod if pod is not None and uid_of(pod) == tracked.uid else None

    def _write(self, tracked: P, status: dict[str, Any]) -> None:
        try:
            self._store.patch(Ref(POD, *tracked.key), {"status": status}, "status", tracked.uid)
        except Refused:
            pass  # the pod was deleted meanwhile; the watch will report it

    def _warn(self, tracked: P, reason: str, message: str) -> None:
        self._store.emit(EmitEvent(Ref(POD, *tracked.key), tracked.uid, "Warning", reason, message, "nodes"))
