"""DaemonSet: one pod on every node that its template selects and whose taints it tolerates."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api import core, workloads
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, is_terminating, labels_of, name_of
from enbloc.api.workloads import DaemonSetSpec
from enbloc.api.writes import Write
from enbloc.controllers.workloads import pod_state
from enbloc.controllers.workloads.owned import (
    Outcome,
    Surroundings,
    delete,
    dig,
    new_pod,
    share_of,
    status_patch,
)
from enbloc.controllers.workloads.revisions import Revisions, forgotten, revisions_of
from enbloc.units import Requirement, instant_of

COMPONENT: Final = "daemonset-controller"
_TOLERATED: Final = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""Taints of a node's own state do not keep daemons away."""


class Daemons(msgspec.Struct, frozen=True):
    """A DaemonSet with its pods by node."""

    owner: Obj
    spec: DaemonSetSpec
    revisions: Revisions
    wanted: list[str]
    """Nodes that should have a pod, by name."""
    pods: dict[str, list[Obj]]
    """Node → its pods, the oldest first."""
    now_ns: int

    def is_new(self, pod: Obj) -> bool:
        return labels_of(pod).get(workloads.REVISION_HASH) == self.revisions.hash

    def is_available(self, pod: Obj) -> bool:
        return pod_state.is_available(pod, self.spec.min_ready_seconds, self.now_ns)

    def on(self, node: str) -> list[Obj]:
        return [pod for pod in self.pods.get(node, ()) if not pod_state.is_finished(pod)]


def sync(owner: Obj, owned: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    spec = view(owner, workloads.DaemonSet).spec
    known = [one for one in owned if one["kind"] != "Pod"]
    own = [one for one in owned if one["kind"] == "Pod"]
    revisions = revisions_of(owner, known)
    wanted = sorted(name_of(node) for node in around.nodes() if _runs_on(spec, node))
    daemons = Daemons(owner, spec, revisions, wanted, _by_node(own), now_ns)
    writes = [*revisions.writes, *_fill(daemons), *_remove(daemons)]
    if spec.update_strategy.type == "RollingUpdate":
        writes += _replace(daemons)
    writes += status_patch(owner, _status(daemons))
    live = {revisions.hash, *(labels_of(pod).get(workloads.REVISION_HASH, "") for pod in own)}
    writes += forgotten(known, live, spec.revision_history_limit)
    return Outcome(writes, pod_state.next_available(own, spec.min_ready_seconds, now_ns))


def differs(before: Obj, after: Obj) -> bool:
    """Whether a node changed in what decides about daemons."""
    parts = (("metadata", "labels"), ("spec", "taints"))
    return any(dig(before, *path) != dig(after, *path) for path in parts)


def _by_node(pods: list[Obj]) -> dict[str, list[Obj]]:
    found: dict[str, list[Obj]] = {}
    for pod in sorted(pods, key=lambda pod: (instant_of(pod["metadata"].get("creationTimestamp")), name_of(pod))):
        found.setdefault(_node_of(pod), []).append(pod)
    return found


def _node_of(pod: Obj) -> str:
    """The node of a pod, or the one that it was created for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    terms = dig(
        pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    for term in terms or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _fill(daemons: Daemons) -> list[Write]:
    return [_new(daemons, node) for node in daemons.wanted if not daemons.on(node)]


def _remove(daemons: Daemons) -> list[Write]:
    """Pods that ended, and pods on nodes that should have none."""
    wanted = set(daemons.wanted)
    return [
        delete(pod)
        for node, pods in daemons.pods.items()
        for pod in pods
        if not is_terminating(pod) and (pod_state.is_finished(pod) or node not in wanted)
    ]


def _replace(daemons: Daemons) -> list[Write]:
    """Old pods make way for new ones: beforehand within `maxUnavailable`, or afterwards within `maxSurge`."""
    rolling, total = daemons.spec.update_strategy.rolling_update, len(daemons.wanted)
    surge = share_of(rolling.max_surge if rolling else None, total, up=True)
    room = surge or share_of(rolling.max_unavailable if rolling else None, total, up=True, default=1) or 1
    writes: list[Write] = []
    waiting: list[tuple[str, Obj]] = []
    for node in daemons.wanted:
        pods = daemons.on(node)
        old = [pod for pod in pods if not daemons.is_new(pod) and not is_terminating(pod)]
        new = [pod for pod in pods if daemons.is_new(pod) and not is_terminating(pod)]
        if old and any(daemons.is_available(pod) for pod in new):
            writes += [delete(pod) for pod in old]
        elif old and not new and not any(daemons.is_available(pod) for pod in old):
            writes += [delete(pod) for pod in old]  # of no use: its place is free at once
            room -= 0 if surge else 1
        elif old and not new:
            waiting.append((node, old[0]))
        elif not any(daemons.is_available(pod) for pod in new):
            room -= 1
    for node, pod in waiting[: max(room, 0)]:
        writes.append(_new(daemons, node) if surge else delete(pod))
    return writes


def _new(daemons: Daemons, node: str) -> Write:
    owner, template = daemons.owner, daemons.owner["spec"]["template"]
    spec = template["spec"]
    here = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    affinity = spec.get("affinity") or {}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), "requiredDuringSchedulingIgnoredDuringExecution": here}
    made = {
        **spec,
        "affinity": {**affinity, "nodeAffinity": node_affinity},
        "tolerations": [*(spec.get("tolerations") or ()), *_TOLERATED],
    }
    labels = {workloads.REVISION_HASH: daemons.revisions.hash}
    return new_pod(owner, template, generate_name=f"{name_of(owner)}-", labels=labels, spec=made)


def _status(daemons: Daemons) -> dict[str, Any]:
    wanted = set(daemons.wanted)
    placed = {node: [pod for pod in daemons.on(node) if not is_terminating(pod)] for node in daemons.pods}
    here = {node: pods for node, pods in placed.items() if pods and node in wanted}
    available = sum(1 for pods in here.values() if any(daemons.is_available(pod) for pod in pods))
    return {
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(here),
        "numberMisscheduled": sum(1 for node, pods in placed.items() if pods and node not in wanted),
        "numberReady": sum(1 for pods in here.values() if any(pod_state.is_ready(pod) for pod in pods)),
        "updatedNumberScheduled": sum(1 for pods in here.values() if any(map(daemons.is_new, pods))) or None,
        "numberAvailable": available or None,
        "numberUnavailable": len(wanted) - available or None,
        "observedGeneration": daemons.owner["metadata"].get("generation"),
    }


# ---- nodes


def _runs_on(spec: DaemonSetSpec, node: Obj) -> bool:
    pod = spec.template.spec
    labels = labels_of(node)
    if any(labels.get(key) != text for key, text in (pod.node_selector or {}).items()):
        return False
    affinity = pod.affinity.node_affinity if pod.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is not None and not any(_matches(term, node) for term in required.node_selector_terms or ()):
        return False
    tolerations = [*(pod.tolerations or ()), *(view(one, core.Toleration) for one in _TOLERATED)]
    taints = [view(one, core.Taint) for one in dig(node, "spec", "taints") or ()]
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(one, taint) for one in tolerations) for taint in taints
    )


def _matches(term: core.NodeSelectorTerm, node: Obj) -> bool:
    try:
        on_labels = [Requirement(one.key, one.operator, one.values or ()) for one in term.match_expressions or ()]
        on_fields = [Requirement(one.key, one.operator, one.values or ()) for one in term.match_fields or ()]
    except ValueError:
        return False
    fields = {"metadata.name": name_of(node)}
    return (
        bool(on_labels or on_fields)
        and all(one.matches(labels_of(node)) for one in on_labels)
        and all(one.matches(fields) for one in on_fields)
    )


def _tolerates(toleration: core.Toleration, taint: core.Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)
