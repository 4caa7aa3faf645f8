"""The nodes that there are and the pods that are on them: room, and what becomes of pods whose node goes.

What every runtime of nodes must do alike, whether it plays pods or runs them: count room as a kubelet does, evict the
pods of nodes that are no more, report nodes that fail and recover. What a pod does on its node is left to the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, Amounts, condition, node_of, pod_amounts, with_conditions
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node import Machine

NODE = "Node"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"

Key = tuple[str, str]


class Guest(Protocol):
    """One incarnation of a pod on its node."""

    key: Key
    uid: str
    node: str
    amounts: Amounts
    admitted_at: int | None


G = TypeVar("G", bound=Guest)


class NodePool(Generic[G]):
    """Machines by name and their guests. `forget` is how the runtime forgets a guest; it calls `leave`."""

    def __init__(self, store: Store, forget: Callable[[G], None]) -> None:
        self._store = store
        self._forget = forget
        self._guests: dict[Key, G] = {}
        self._on: dict[str, dict[Key, G]] = {}
        self._machines: dict[str, Machine] = {}
        self._machine_count = 0
        self._lost: dict[str, None] = {}  # nodes that were deleted, whose pods are to go

    @property
    def has_lost(self) -> bool:
        """Whether `collect_lost` has something to do."""
        return bool(self._lost)

    def guest(self, key: Key) -> G | None:
        return self._guests.get(key)

    def guests_on(self, node: str) -> list[G]:
        return list(self._on.get(node, {}).values())

    def machine(self, name: str) -> Machine | None:
        return self._machines.get(name)

    def answers(self, name: str) -> bool:
        """Whether there is a kubelet at work on the node."""
        machine = self._machines.get(name)
        return machine is not None and machine.ready

    def see(self, event: WatchEvent) -> Machine | None:
        """Learns of a node; the machine as it is now, `None` if it went."""
        name = name_of(event.obj)
        if event.type == "DELETED":
            self._machines.pop(name, None)
            self._lost[name] = None
            return None
        machine = self._machines.get(name)
        if machine is None:
            self._machine_count += 1
            machine = self._machines[name] = Machine(event.obj, self._machine_count)
            for guest in self._on.get(name, {}).values():
                if guest.admitted_at is not None:
                    machine.hold(guest.amounts)
        else:
            machine.update(event.obj)
        return machine

    def take(self, guest: G) -> None:
        """The pod is assigned to its node; it takes no room yet."""
        self._guests[guest.key] = guest
        self._on.setdefault(guest.node, {})[guest.key] = guest

    def let_in(self, guest: G, pod: Obj, now: int) -> tuple[str, str] | None:
        """The pod takes its room on a node that answers; or the reason and message why it does not fit."""
        machine = self._machines[guest.node]
        amounts = pod_amounts(pod["spec"])
        refusal = machine.refusal(amounts)
        if refusal is None:
            guest.amounts = amounts
            guest.admitted_at = now
            machine.hold(amounts)
        return refusal

    def leave(self, guest: G) -> None:
        """The pod gives its room back."""
        if self._guests.get(guest.key) is guest:
            del self._guests[guest.key]
        on_node = self._on.get(guest.node, {})
        if on_node.get(guest.key) is guest:
            del on_node[guest.key]
            if not on_node:
                del self._on[guest.node]
        machine = self._machines.get(guest.node)
        if machine is not None and guest.admitted_at is not None:
            machine.release(guest.amounts)
        guest.admitted_at = None

    def collect_lost(self) -> None:
        """Pod garbage collection: pods of nodes that are no more go, however they ended."""
        lost, self._lost = self._lost, {}
        gone = {name for name in lost if name not in self._machines}
        if gone:
            for pod in self._store.list(POD)[0]:
                if node_of(pod) in gone:
                    self.evict_orphan((namespace_of(pod), name_of(pod)), uid_of(pod))

    def evict_orphan(self, key: Key, uid: str) -> None:
        self.evict(key, uid, "DeletionByPodGC", "PodGC: node no longer exists")

    def evict(self, key: Key, uid: str, reason: str, message: str) -> None:
        """Deletes a pod that no kubelet answers for: at once."""
        guest = self._guests.get(key)
        if guest is not None and guest.uid == uid:
            self._forget(guest)
        try:
            self._store.evict(*key, uid, reason, message)
        except Refused:
            return  # it went before
        self._store.remove_pod(*key, uid)

    def report(self, name: str, *, ready: bool) -> None:
        """What the kubelet, or in its absence the node controller, writes about the node."""
        ref = Ref(NODE, "", name)
        node = self._store.get(*ref)
        if node is None:
            raise Refused(404, "NotFound", f'nodes "{name}" not found')
        at = self._store.stamp()
        state = (
            condition("Ready", "True", at, "KubeletReady", "the node answers")
            if ready
            else condition("Ready", "False", at, "NodeFailed", "the node does not answer")
        )
        conditions = with_conditions((node.get("status") or {}).get("conditions"), state)
        self._store.patch(ref, {"status": {"conditions": conditions}}, "status")
        had: list[dict[str, Any]] = (node.get("spec") or {}).get("taints") or []
        taints = [taint for taint in had if taint.get("key") != NOT_READY_TAINT]
        if not ready:
            taints += [{"key": NOT_READY_TAINT, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        if taints != had:
            self._store.patch(ref, {"spec": {"taints": taints or None}})
