"""The frame of all workload controllers: caches objects and what they own, and asks a kind's own function what an owner
needs when something about it changed.

One frame for all kinds, so that a pod's event is read once. A pod that its Job keeps by a finalizer is released here
when the Job is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from enbloc.api import kubernetes, workloads
from enbloc.api.kinds import kind_id, ref_of
from enbloc.api.meta import Obj, controller_of, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Create, Refused, WatchEvent, Write
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.controllers.timers import Timers
from enbloc.controllers.workloads import cron_job, daemon_set, deployment, job, replica_set, stateful_set
from enbloc.controllers.workloads.owned import Outcome, Surroundings, event
from enbloc.controllers.workloads.pod_state import is_finished

Sync = Callable[[Obj, list[Obj], Surroundings, int], Outcome]
"""An owner, what it owns, what is around it, the time (ns)."""

KINDS: Final[dict[str, Sync]] = {
    workloads.CRON_JOB: cron_job.sync,
    workloads.JOB: job.sync,
    workloads.DEPLOYMENT: deployment.sync,
    workloads.REPLICA_SET: replica_set.sync,
    workloads.STATEFUL_SET: stateful_set.sync,
    workloads.DAEMON_SET: daemon_set.sync,
}
"""Owners first: what they write is seen by the kinds below them in the next round."""
_ORDER: Final = {kind: position for position, kind in enumerate(KINDS)}
_CLAIM: Final = "PersistentVolumeClaim"
_COMPONENTS: Final = {
    workloads.CRON_JOB: cron_job.COMPONENT,
    workloads.JOB: job.COMPONENT,
    workloads.DEPLOYMENT: deployment.COMPONENT,
    workloads.REPLICA_SET: replica_set.COMPONENT,
    workloads.STATEFUL_SET: stateful_set.COMPONENT,
    workloads.DAEMON_SET: daemon_set.COMPONENT,
}


class WorkloadController:
    """Reconciles Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs."""

    kinds = frozenset(
        {*KINDS, workloads.CONTROLLER_REVISION, kubernetes.POD_GROUP, "Pod", "Node", "ResourceQuota", _CLAIM}
    )

    def __init__(self) -> None:
        self._owners: dict[str, Obj] = {}
        self._owned: dict[str, dict[str, Obj]] = {}
        """Owner's UID → UID → object."""
        self._nodes: dict[str, Obj] = {}
        self._claims: set[tuple[str, str]] = set()
        self._dirty: set[str] = set()
        self._timers = Timers()
        self._retries: Retries[tuple[str, str]] = Retries()
        """By namespace and UID of the owner."""
        self._events: list[Write] = []

    # Surroundings

    def nodes(self) -> Iterable[Obj]:
        return self._nodes.values()

    def has_claim(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._claims

    def owned_by(self, owner: Obj) -> list[Obj]:
        return list(self._owned.get(uid_of(owner), {}).values())

    # Watch events

    def observe(self, event: WatchEvent) -> None:
        gone = event.type == "DELETED"
        match event.kind:
            case "Node":
                self._observe_node(event.obj, gone)
            case "PersistentVolumeClaim":
                key = (namespace_of(event.obj), name_of(event.obj))
                (self._claims.discard if gone else self._claims.add)(key)
            case "ResourceQuota":
                self._end_delays(namespace_of(event.obj))
            case kind:
                if kind in KINDS:
                    self._observe_owner(event.obj, gone)
                self._observe_owned(event.obj, gone)

    def _observe_owner(self, obj: Obj, gone: bool) -> None:
        uid = uid_of(obj)
        self._dirty.add(uid)
        if not gone:
            self._owners[uid] = obj
            return
        self._owners.pop(uid, None)
        self._timers.cancel(uid)
        self._retries.forget((namespace_of(obj), uid))

    def _observe_owned(self, obj: Obj, gone: bool) -> None:
        if obj["kind"] == "Pod" and self._retries.keys() and (gone or is_finished(obj)):
            self._end_delays(namespace_of(obj))  # a quota may have room again
        reference = controller_of(obj)
        if reference is None or kind_id(reference) not in KINDS:
            return
        owner, uid = reference.get("uid") or "", uid_of(obj)
        owned = self._owned.setdefault(owner, {})
        if not gone:
            owned[uid] = obj
        else:
            owned.pop(uid, None)
        if not owned:
            del self._owned[owner]
        self._dirty.add(owner)
        parent = controller_of(self._owners[owner]) if owner in self._owners else None
        if parent is not None:
            self._dirty.add(parent.get("uid") or "")  # a Deployment reads the pods of its ReplicaSets

    def _observe_node(self, node: Obj, gone: bool) -> None:
        before = self._nodes.pop(name_of(node), None)
        if not gone:
            self._nodes[name_of(node)] = node
        if gone or before is None or daemon_set.differs(before, node):
            self._dirty.update(uid for uid, owner in self._owners.items() if kind_id(owner) == workloads.DAEMON_SET)

    def _end_delays(self, namespace: str) -> None:
        for key in self._retries.keys():  # noqa: SIM118
            if key[0] == namespace and self._retries.end_delay(key):
                self._dirty.add(key[1])

    # Writes

    def reconcile(self, now_ns: int) -> list[Write]:
        self._dirty.update(uid for _, uid in self._retries.take_due(now_ns))
        self._dirty.update(self._timers.take_due(now_ns))
        writes, self._events = self._events, []
        owners = [self._owners[uid] for uid in self._dirty if uid in self._owners]
        for uid in sorted(self._dirty - self._owners.keys()):
            writes += job.released(self._owned.get(uid, {}).values())
        self._dirty.clear()
        for owner in sorted(owners, key=_sort_key):
            writes += self._sync(owner, now_ns)
        return writes

    def _sync(self, owner: Obj, now_ns: int) -> list[Write]:
        uid = uid_of(owner)
        owned = list(self._owned.get(uid, {}).values())
        if is_terminating(owner):
            self._timers.cancel(uid)
            return job.released(owned)
        made = KINDS[kind_id(owner)](owner, owned, self, now_ns)
        if made.due_ns is None:
            self._timers.cancel(uid)
        else:
            self._timers.set(uid, made.due_ns)
        if self._retries.waits((namespace_of(owner), uid), now_ns):
            return [write for write in made.writes if not isinstance(write, Create)]
        return made.writes

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """A creation is tried again after a delay; any other write when the watch delivers the newer object."""
        if not isinstance(write, Create):
            if not is_superseded(error):
                self._retry_owner_of(write, now_ns)
            return
        owner = self._owners.get((controller_of(write.obj) or {}).get("uid") or "")
        if owner is None:
            return
        if self._retries.refuse((namespace_of(owner), uid_of(owner)), now_ns):
            text = f"Error creating: {error.message}"
            self._events.append(event(owner, "FailedCreate", text, _COMPONENTS[kind_id(owner)], "Warning"))

    def _retry_owner_of(self, write: Write, now_ns: int) -> None:
        ref = getattr(write, "ref", None)
        for uid, owner in self._owners.items():
            if ref_of(owner) == ref:
                self._retries.refuse((namespace_of(owner), uid), now_ns)
                return

    def due(self) -> int | None:
        timers = [at for at in (self._retries.next(), self._timers.next()) if at is not None]
        return min(timers, default=None)


def _sort_key(owner: Obj) -> tuple[int, str, str]:
    return (_ORDER[kind_id(owner)], namespace_of(owner), name_of(owner))
