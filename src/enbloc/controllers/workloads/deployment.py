"""Deployment: a ReplicaSet for each template it ever had, and pods that move from the old ones to the new one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api import workloads
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, annotations_of, name_of, number_in, owned_metadata
from enbloc.api.workloads import DeploymentSpec
from enbloc.api.writes import Create, Patch, Write
from enbloc.controllers.workloads import deployment_status, pod_state
from enbloc.controllers.workloads.owned import (
    Outcome,
    Surroundings,
    delete,
    dig,
    event,
    patch,
    share_of,
    short_hash,
    without_empty,
)
from enbloc.controllers.workloads.rolling_update import Limits, Size, rescale, roll
from enbloc.units import instant_of

COMPONENT: Final = "deployment-controller"
PREFIX: Final = "deployment.kubernetes.io/"
_NOT_COPIED: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    workloads.REVISION,
    PREFIX + "revision-history",
    PREFIX + "desired-replicas",
    PREFIX + "max-replicas",
)


class Rollout(msgspec.Struct, frozen=True):
    """A Deployment with its ReplicaSets: the one of its present template, and older ones, oldest first."""

    owner: Obj
    spec: DeploymentSpec
    limits: Limits
    new: Obj | None
    old: list[Obj]

    @property
    def sets(self) -> list[Obj]:
        return [*self.old, *([self.new] if self.new is not None else [])]


def sync(owner: Obj, owned: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    rollout = _rollout(owner, owned)
    writes: list[Write] = []
    if rollout.spec.paused or _was_scaled(rollout):
        writes += _scaled(rollout, rescale)
    elif rollout.spec.strategy.type == "Recreate":
        writes += _recreate(rollout, around)
    elif rollout.new is None:
        writes += _new_set(rollout)
    else:
        writes += _scaled(rollout, roll)
    writes += _revision(rollout)
    status = deployment_status.status_of(rollout.owner, rollout.spec, rollout.limits, rollout.new, rollout.old, now_ns)
    writes += status.writes
    if deployment_status.is_complete(rollout.owner, rollout.spec, rollout.new, rollout.old):
        writes += _forgotten(rollout)
    return Outcome(writes, status.due_ns)


def _rollout(owner: Obj, owned: list[Obj]) -> Rollout:
    spec = view(owner, workloads.Deployment).spec
    sets = sorted(owned, key=lambda one: (instant_of(one["metadata"].get("creationTimestamp")), name_of(one)))
    template = _plain(owner["spec"]["template"])
    new = next((one for one in sets if _plain(one["spec"]["template"]) == template), None)
    strategy = spec.strategy.rolling_update
    surge, unavailable = 0, 0
    if spec.strategy.type == "RollingUpdate" and strategy is not None:
        surge = share_of(strategy.max_surge, spec.replicas, up=True)
        unavailable = share_of(strategy.max_unavailable, spec.replicas, up=False)
        unavailable = min(unavailable if surge or unavailable else 1, spec.replicas)
    return Rollout(owner, spec, Limits(spec.replicas, surge, unavailable), new, [one for one in sets if one is not new])


def _plain(template: dict[str, Any]) -> Any:
    """A template without the label that a Deployment adds, fit to be compared."""
    metadata = template.get("metadata") or {}
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key != workloads.TEMPLATE_HASH}
    return without_empty({**template, "metadata": {**metadata, "labels": labels}})


# ---- numbers


def _number(one: Obj, key: str) -> int:
    return number_in(annotations_of(one).get(PREFIX + key)) or 0


def _size(one: Obj) -> Size:
    available: int = dig(one, "status", "availableReplicas") or 0
    return Size(one["spec"]["replicas"], available, _number(one, "max-replicas"))


def _was_scaled(rollout: Rollout) -> bool:
    """Whether the Deployment's own number changed since its sets were scaled."""
    return any(
        _number(one, "desired-replicas") != rollout.spec.replicas for one in rollout.sets if one["spec"]["replicas"]
    )


def _scaled(rollout: Rollout, step: Any) -> list[Write]:
    old = [_size(one) for one in rollout.old]
    new = _size(rollout.new) if rollout.new is not None else None
    if new is not None or step is rescale:
        step(rollout.limits, new, old)
    sizes = [*old, *([new] if new is not None else [])]
    return [
        write for one, size in zip(rollout.sets, sizes, strict=True) for write in _resized(rollout, one, size.replicas)
    ]


def _resized(rollout: Rollout, one: Obj, replicas: int) -> list[Write]:
    notes = _notes(rollout, one)
    change: dict[str, Any] = {}
    changed = {key: text for key, text in notes.items() if annotations_of(one).get(key) != text}
    if changed:
        change["metadata"] = {"annotations": changed}
    before = one["spec"]["replicas"]
    minimum = rollout.spec.min_ready_seconds
    if one is rollout.new and (one["spec"].get("minReadySeconds") or 0) != minimum:
        change["spec"] = {"minReadySeconds": minimum}
    if before == replicas:
        return [patch(one, change)] if change else []
    change["spec"] = {**change.get("spec", {}), "replicas": replicas}
    return [patch(one, change), _scaling_event(rollout, name_of(one), before, replicas)]


def _scaling_event(rollout: Rollout, name: str, before: int, after: int) -> Write:
    way = "up" if after > before else "down"
    text = f"Scaled {way} replica set {name} from {before} to {after}"
    return event(rollout.owner, "ScalingReplicaSet", text, COMPONENT)


def _notes(rollout: Rollout, one: Obj) -> dict[str, str]:
    limits = rollout.limits
    notes = {PREFIX + "desired-replicas": str(limits.replicas), PREFIX + "max-replicas": str(limits.most)}
    if one is rollout.new:
        kept = annotations_of(rollout.owner).items()
        notes |= {key: text for key, text in kept if key not in _NOT_COPIED and not key.startswith("sim.enbloc.dev/")}
        notes[workloads.REVISION] = str(_next_revision(rollout))
    return notes


# ---- revisions


def _revision_of(one: Obj) -> int:
    return _number(one, "revision")


def _next_revision(rollout: Rollout) -> int:
    """The number of the present template: above all older ones."""
    highest = max((_revision_of(one) for one in rollout.old), default=0)
    return max(_revision_of(rollout.new) if rollout.new is not None else 0, highest + 1)


def _revision(rollout: Rollout) -> list[Write]:
    wanted = str(_next_revision(rollout))
    if rollout.new is None or annotations_of(rollout.owner).get(workloads.REVISION) == wanted:
        return []
    return [Patch(ref_of(rollout.owner), {"metadata": {"annotations": {workloads.REVISION: wanted}}})]


def _new_set(rollout: Rollout) -> list[Write]:
    """The ReplicaSet of the present template, with as many pods as there is room for."""
    owner, spec, limits = rollout.owner, rollout.owner["spec"], rollout.limits
    others = sum(one["spec"]["replicas"] for one in rollout.old)
    replicas = min(limits.replicas, max(limits.replicas + limits.surge - others, 0))
    template = spec["template"]
    marked = {workloads.TEMPLATE_HASH: short_hash(_plain(template))}
    name = f"{name_of(owner)}-{marked[workloads.TEMPLATE_HASH]}"
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **marked}
    selector = spec["selector"]
    made: Obj = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": owned_metadata(owner, name, labels=labels),
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **marked}},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }
    if rollout.spec.min_ready_seconds:
        made["spec"]["minReadySeconds"] = rollout.spec.min_ready_seconds
    made["metadata"]["annotations"] = _notes(msgspec.structs.replace(rollout, new=made), made)
    writes: list[Write] = [Create(made)]
    return [*writes, _scaling_event(rollout, name, 0, replicas)] if replicas else writes


def _recreate(rollout: Rollout, around: Surroundings) -> list[Write]:
    """Old pods end before new ones are created."""
    writes = [write for one in rollout.old for write in _resized(rollout, one, 0)]
    if any(not pod_state.is_finished(pod) for one in rollout.old for pod in around.owned_by(one)):
        return writes
    if rollout.new is None:
        return [*writes, *_new_set(msgspec.structs.replace(rollout, old=rollout.old if not writes else []))]
    return [*writes, *_resized(rollout, rollout.new, rollout.spec.replicas)]


def _forgotten(rollout: Rollout) -> list[Write]:
    """The oldest ReplicaSets without pods, beyond the history that is kept."""
    empty = [one for one in rollout.old if not one["spec"]["replicas"] and not dig(one, "status", "replicas")]
    excess = len(rollout.old) - rollout.spec.revision_history_limit
    return [delete(one) for one in sorted(empty, key=_revision_of)[: max(excess, 0)]]
