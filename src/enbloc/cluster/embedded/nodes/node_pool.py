"""The nodes and the pods assigned to them: resource accounting, and eviction of pods whose node is gone.

It admits pods as a kubelet does, evicts the pods of deleted nodes, and reports nodes that fail and recover. What a pod
does on its node is left to `NodePlayer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.pod_amounts import pod_amounts
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, condition, node_of, with_conditions
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node import KubeletNode
from enbloc.cluster.embedded.nodes.simulated_pod import Key, SimulatedPod

NODE = "Node"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class NodePool:
    """Nodes by name and the pods on them. `forget` stops a pod without a word to the API; it must call `release`."""

    def __init__(self, store: Store, forget: Callable[[SimulatedPod], None]) -> None:
        self._store = store
        self._forget = forget
        self._pods: dict[Key, SimulatedPod] = {}
        self._on: dict[str, dict[Key, SimulatedPod]] = {}
        self._nodes: dict[str, KubeletNode] = {}
        self._node_count = 0
        self._deleted: dict[str, None] = {}  # nodes whose pods are yet to be evicted

    @property
    def has_orphans(self) -> bool:
        """Whether `evict_orphans` has something to do."""
        return bool(self._deleted)

    def pod(self, key: Key) -> SimulatedPod | None:
        return self._pods.get(key)

    def pods(self) -> list[SimulatedPod]:
        return list(self._pods.values())

    def pods_on(self, node: str) -> list[SimulatedPod]:
        return list(self._on.get(node, {}).values())

    def node(self, name: str) -> KubeletNode | None:
        return self._nodes.get(name)

    def is_ready(self, name: str) -> bool:
        """Whether the node exists and its kubelet works."""
        node = self._nodes.get(name)
        return node is not None and node.ready

    def observe_node(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        if event.type == "DELETED":
            self._nodes.pop(name, None)
            self._deleted[name] = None
            return
        node = self._nodes.get(name)
        if node is not None:
            node.update(event.obj)
            return
        self._node_count += 1
        node = self._nodes[name] = KubeletNode(event.obj, self._node_count)
        for pod in self._on.get(name, {}).values():
            if pod.admitted_ns is not None:
                node.allocate(pod.amounts)

    def assign(self, pod: SimulatedPod) -> None:
        """Tracks a pod that is bound to its node; it is not admitted yet and uses nothing."""
        self._pods[pod.key] = pod
        self._on.setdefault(pod.node, {})[pod.key] = pod

    def admit(self, pod: SimulatedPod, obj: Obj, now_ns: int) -> tuple[str, str] | None:
        """Allocates the pod's requests on its node, which is ready; or the reason and message of its rejection."""
        node = self._nodes[pod.node]
        amounts = pod_amounts(obj["spec"])
        rejection = node.rejection(amounts)
        if rejection is None:
            pod.amounts = amounts
            pod.admitted_ns = now_ns
            node.allocate(amounts)
        return rejection

    def release(self, pod: SimulatedPod) -> None:
        """The pod leaves its node, which gets its resources back."""
        if self._pods.get(pod.key) is pod:
            del self._pods[pod.key]
        on_node = self._on.get(pod.node, {})
        if on_node.get(pod.key) is pod:
            del on_node[pod.key]
            if not on_node:
                del self._on[pod.node]
        node = self._nodes.get(pod.node)
        if node is not None and pod.admitted_ns is not None:
            node.release(pod.amounts)
        pod.admitted_ns = None

    def evict_orphans(self) -> None:
        """Pod garbage collection: deletes the pods of deleted nodes, finished ones too."""
        deleted, self._deleted = self._deleted, {}
        gone = {name for name in deleted if name not in self._nodes}
        if gone:
            for obj in self._store.list(POD)[0]:
                if node_of(obj) in gone:
                    self.evict_orphan((namespace_of(obj), name_of(obj)), uid_of(obj))

    def evict_orphan(self, key: Key, uid: str) -> None:
        self.evict(key, uid, "DeletionByPodGC", "PodGC: node no longer exists")

    def evict(self, key: Key, uid: str, reason: str, message: str) -> None:
        """Deletes a pod that has no working kubelet: without grace period."""
        pod = self._pods.get(key)
        if pod is not None and pod.uid == uid:
            self._forget(pod)
        try:
            self._store.evict(*key, uid, reason, message)
        except Refused:
            return  # it was deleted before
        self._store.remove_pod(*key, uid)

    def report_ready(self, name: str) -> None:
        """The node's status as its kubelet reports it."""
        self._report(name, condition("Ready", "True", self._store.stamp(), "KubeletReady", "the node answers"), ())

    def report_not_ready(self, name: str) -> None:
        """The node's status and taints as the node controller sets them when its kubelet does not answer."""
        state = condition("Ready", "False", self._store.stamp(), "NodeFailed", "the node does not answer")
        self._report(name, state, ("NoSchedule", "NoExecute"))

    def _report(self, name: str, state: dict[str, Any], effects: tuple[str, ...]) -> None:
        ref = Ref(NODE, "", name)
        node = self._store.get(*ref)
        if node is None:
            raise Refused(404, "NotFound", f'nodes "{name}" not found')
        conditions = with_conditions((node.get("status") or {}).get("conditions"), state)
        self._store.patch(ref, {"status": {"conditions": conditions}}, "status")
        had: list[dict[str, Any]] = (node.get("spec") or {}).get("taints") or []
        taints = [taint for taint in had if taint.get("key") != NOT_READY_TAINT]
        taints += [{"key": NOT_READY_TAINT, "effect": effect} for effect in effects]
        if taints != had:
            self._store.patch(ref, {"spec": {"taints": taints or None}})
