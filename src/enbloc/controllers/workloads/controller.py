"""The frame of all workload controllers: caches objects and what they own, and asks a kind's own function what an owner
needs when something about it changed.

One frame for all kinds, so that a pod's event is read once. A pod that its Job keeps by a finalizer is released here
when the Job is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from enbloc.api import kubernetes, workloads
from enbloc.api.kinds import kind_id, ref_of
from enbloc.api.meta import Obj, controller_key, is_terminating, key_of, name_of, namespace_of, uid_of
from enbloc.api.reasons import PendingReason
from enbloc.api.writes import Create, EmitEvent, Refused, WatchEvent, Write
from enbloc.controllers.guarded import guarded
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.controllers.timers import Batches, Timers
from enbloc.controllers.workloads import cron_job, daemon_set, deployment, job, replica_set, stateful_set
from enbloc.controllers.workloads.owned import Outcome, Surroundings, event
from enbloc.controllers.workloads.pod_state import is_finished
from enbloc.faults import Faults

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
        """Key of the owner (S1) → UID → object."""
        self._nodes: dict[str, Obj] = {}
        self._claims: set[tuple[str, str]] = set()
        self._dirty: set[str] = set()
        self._timers = Timers()
        self._batches = Batches()
        self._retries: Retries[str] = Retries()
        """By the key of the owner."""
        self._refused: dict[str, str] = {}
        """By the key of an owner: why it could not create something that it still lacks."""
        self._events: list[Write] = []
        self.faults: Faults[str] = Faults()

    # Surroundings

    def nodes(self) -> Iterable[Obj]:
        return self._nodes.values()

    def has_claim(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._claims

    def owned_by(self, owner: Obj) -> list[Obj]:
        return list(self._owned.get(key_of(owner), {}).values())

    # Watch events

    def observe(self, event: WatchEvent) -> None:
        gone = event.type == "DELETED"
        match event.kind:
            case "Node":
                self._observe_node(event.obj, gone)
            case "PersistentVolumeClaim":
                key = (namespace_of(event.obj), name_of(event.obj))
                (self._claims.discard if gone else self._claims.add)(key)
                owner = self._owner_of(event.obj)
                self._dirty.update([key_of(owner)] if owner is not None else ())
            case "ResourceQuota":
                self._end_delays(namespace_of(event.obj))
            case kind:
                if kind in KINDS:
                    self._observe_owner(event.obj, gone)
                self._observe_owned(event.obj, gone)

    def _observe_owner(self, obj: Obj, gone: bool) -> None:
        key = key_of(obj)
        self._dirty.add(key)
        if not gone:
            self._owners[key] = obj
            return
        self._owners.pop(key, None)
        self._timers.cancel(key)
        self._retries.forget(key)
        self._refused.pop(key, None)

    def _observe_owned(self, obj: Obj, gone: bool) -> None:
        if obj["kind"] == "Pod" and self._retries.keys() and (gone or is_finished(obj)):
            self._end_delays(namespace_of(obj))  # a quota may have room again
        owner, uid = controller_key(obj, *KINDS), uid_of(obj)
        if not owner:
            return
        owned = self._owned.setdefault(owner, {})
        if not gone:
            owned[uid] = obj
        else:
            owned.pop(uid, None)
        if not owned:
            del self._owned[owner]
        self._dirty.add(owner)
        if owner in self._owners:
            self._dirty.add(controller_key(self._owners[owner], *KINDS))  # a Deployment reads its ReplicaSets' pods

    def _observe_node(self, node: Obj, gone: bool) -> None:
        before = self._nodes.pop(name_of(node), None)
        if not gone:
            self._nodes[name_of(node)] = node
        if gone or before is None or daemon_set.differs(before, node):
            self._dirty.update(key for key, owner in self._owners.items() if kind_id(owner) == workloads.DAEMON_SET)

    def _end_delays(self, namespace: str) -> None:
        for key in self._retries.keys():  # noqa: SIM118
            if key.startswith(f"{namespace}/") and self._retries.end_delay(key):
                self._dirty.add(key)

    # Writes

    def reconcile(self, now_ns: int) -> list[Write]:
        self._dirty.update(self._retries.take_due(now_ns))
        self._dirty.update(self._timers.take_due(now_ns))
        self._dirty.update(self.faults.take_due(now_ns))
        self._dirty.update(self._batches.take_due(now_ns))
        writes, self._events = self._events, []
        owners = [self._owners[key] for key in self._dirty if key in self._owners]
        for key in sorted(self._dirty - self._owners.keys()):
            writes += job.released(self._owned.get(key, {}).values())
        self._dirty.clear()
        for owner in sorted(owners, key=_sort_key):
            writes += guarded(self.faults, key_of(owner), owner, partial(self._sync, owner, now_ns))
        return writes

    def _sync(self, owner: Obj, now_ns: int) -> list[Write]:
        key, owned = key_of(owner), self.owned_by(owner)
        if is_terminating(owner):
            self._timers.cancel(key)
            return job.released(owned)
        made = KINDS[kind_id(owner)](owner, owned, self, now_ns)
        if made.due_ns is None:
            self._timers.cancel(key)
        else:
            self._timers.set(key, made.due_ns)
        created = sum(isinstance(write, Create) for write in made.writes)
        if not created:
            self._refused.pop(key, None)
        elif self._retries.waits(key, now_ns) or self._batches.room(key, now_ns) <= 0:
            return [write for write in made.writes if not _tells_of_creation(write)]
        else:
            self._batches.add(key, created, now_ns)
        return made.writes

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """A creation is tried again after a delay; any other write when the watch delivers the newer object."""
        if not isinstance(write, Create):
            if not is_superseded(error):
                self._retry_owner_of(write, now_ns)
            return
        owner = self._owner_of(write.obj)
        if owner is None:
            return
        if self._retries.refuse(key_of(owner), now_ns):
            self._refused[key_of(owner)] = error.message
            text = f"Error creating: {error.message}"
            self._events.append(event(owner, "FailedCreate", text, _COMPONENTS[kind_id(owner)], "Warning"))

    def _owner_of(self, child: Obj) -> Obj | None:
        """The owner that makes an object; a claim of a StatefulSet names none."""
        if child["kind"] != _CLAIM:
            return self._owners.get(controller_key(child, *KINDS))
        found = (one for one in self._owners.values() if kind_id(one) == workloads.STATEFUL_SET)
        return next((one for one in found if stateful_set.makes_claim(one, child)), None)

    def _retry_owner_of(self, write: Write, now_ns: int) -> None:
        ref = getattr(write, "ref", None)
        for key, owner in self._owners.items():
            if ref_of(owner) == ref:
                self._retries.refuse(key, now_ns)
                return

    def waiting(self) -> list[dict[str, Any]]:
        """The owners that wait for what they cannot create, as a report lists gangs (G10)."""
        found = [(self._owners[key], message) for key, message in self._refused.items() if key in self._owners]
        return [
            {
                "gang": f"{namespace_of(owner)}/{name_of(owner)}",
                "dialect": owner["kind"],
                "reason": PendingReason.FAILED_CREATE.value,
                "missing": {},
                "message": f"what it makes cannot be created: {message}",
                "reasons": [],
                "queue": "",
                "priority": 0,
            }
            for owner, message in found
        ]

    def due(self) -> int | None:
        timers = [at for at in (self._retries.next(), self._timers.next(), self._batches.next()) if at is not None]
        return min(timers, default=None)


def _tells_of_creation(write: Write) -> bool:
    return isinstance(write, Create) or (isinstance(write, EmitEvent) and write.reason == "SuccessfulCreate")


def _sort_key(owner: Obj) -> tuple[int, str, str]:
    return (_ORDER[kind_id(owner)], namespace_of(owner), name_of(owner))
