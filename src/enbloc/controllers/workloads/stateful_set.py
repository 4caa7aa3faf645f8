"""StatefulSet: pods with numbers, names and volume claims of their own, created and replaced in order."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from enbloc.api import workloads
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, is_terminating, labels_of, name_of, namespace_of
from enbloc.api.workloads import StatefulSetSpec
from enbloc.api.writes import Create, Write
from enbloc.controllers.timers import BATCH
from enbloc.controllers.workloads import pod_state
from enbloc.controllers.workloads.owned import (
    Outcome,
    Surroundings,
    delete,
    dig,
    event,
    new_pod,
    share_of,
    status_patch,
)
from enbloc.controllers.workloads.revisions import Revisions, forgotten, revisions_of

COMPONENT: Final = "statefulset-controller"
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_ORDINAL: Final = re.compile(r"-(\d{1,9})$", re.ASCII)


class Replicas(msgspec.Struct, frozen=True):
    """A StatefulSet with its pods by ordinal."""

    owner: Obj
    spec: StatefulSetSpec
    revisions: Revisions
    current: str
    """The revision that pods have whose turn has not come."""
    pods: dict[int, Obj]
    now_ns: int

    @property
    def ordinals(self) -> range:
        start = self.spec.ordinals.start if self.spec.ordinals else 0
        return range(start, start + min(self.spec.replicas, workloads.MOST_PODS))

    @property
    def partition(self) -> int:
        rolling = self.spec.update_strategy.rolling_update
        return rolling.partition if rolling else 0

    @property
    def in_order(self) -> bool:
        return self.spec.pod_management_policy != "Parallel"

    def is_healthy(self, pod: Obj) -> bool:
        return pod_state.is_available(pod, self.spec.min_ready_seconds, self.now_ns)

    def has_revision(self, pod: Obj, revision: str) -> bool:
        return labels_of(pod).get(workloads.REVISION_HASH) == revision


def sync(owner: Obj, owned: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    spec = view(owner, workloads.StatefulSet).spec
    known = [one for one in owned if one["kind"] != "Pod"]
    revisions = revisions_of(owner, known)
    current = dig(owner, "status", "currentRevision") or revisions.present
    if current not in revisions.templates:
        current = revisions.present
    pods = {number: one for one in owned if one["kind"] == "Pod" and (number := _ordinal(owner, one)) is not None}
    all_of_it = Replicas(owner, spec, revisions, current, pods, now_ns)
    writes = [*revisions.writes]
    if not _fill(all_of_it, around, writes) and not _shrink(all_of_it, writes):
        writes += _replace(all_of_it)
    writes += status_patch(owner, _status(all_of_it))
    live = {current, revisions.present, *(labels_of(pod).get(workloads.REVISION_HASH, "") for pod in pods.values())}
    writes += forgotten(known, live, spec.revision_history_limit)
    return Outcome(writes, pod_state.next_available(pods.values(), spec.min_ready_seconds, now_ns))


def _ordinal(owner: Obj, pod: Obj) -> int | None:
    found = _ORDINAL.search(name_of(pod))
    return int(found[1]) if found and name_of(pod) == f"{name_of(owner)}-{int(found[1])}" else None


def _fill(replicas: Replicas, around: Surroundings, writes: list[Write]) -> bool:
    """Creates what is missing. Returns whether the next step must wait for it."""
    waits, made = False, 0
    for ordinal in replicas.ordinals:
        pod = replicas.pods.get(ordinal)
        if pod is None and made == BATCH:
            return True
        if pod is None:
            made += 1
            writes += _new(replicas, ordinal, around)
        elif pod_state.is_finished(pod) and not is_terminating(pod):
            text = f"StatefulSet {name_of(replicas.owner)} deletes pod {name_of(pod)}, which has ended, to recreate it"
            writes += [delete(pod), event(replicas.owner, "RecreatingTerminatedPod", text, COMPONENT, "Warning")]
        elif replicas.is_healthy(pod):
            continue
        if replicas.in_order:
            return True
        waits = waits or pod is None
    return waits


def _shrink(replicas: Replicas, writes: list[Write]) -> bool:
    """Deletes pods beyond the wanted ones, the highest first. Returns whether the next step must wait for it."""
    beyond = sorted((number for number in replicas.pods if number not in replicas.ordinals), reverse=True)
    for number in beyond:
        pod = replicas.pods[number]
        if not is_terminating(pod):
            writes.append(delete(pod))
        if replicas.in_order:
            return True
    return bool(beyond)


def _replace(replicas: Replicas) -> list[Write]:
    """Deletes pods of an older template, from the highest ordinal down to the partition."""
    if replicas.spec.update_strategy.type != "RollingUpdate":
        return []
    rolling = replicas.spec.update_strategy.rolling_update
    room = share_of(rolling.max_unavailable if rolling else None, replicas.spec.replicas, up=True, default=1) or 1
    writes: list[Write] = []
    for ordinal in reversed(replicas.ordinals[replicas.partition :]):
        pod = replicas.pods.get(ordinal)
        if room <= 0:
            break
        if pod is None or is_terminating(pod):
            room -= 1
        elif not replicas.has_revision(pod, replicas.revisions.present):
            writes.append(delete(pod))
            room -= 1
        elif not replicas.is_healthy(pod):
            room -= 1
    return writes


def _new(replicas: Replicas, ordinal: int, around: Surroundings) -> list[Write]:
    """A pod; before it the claims that it lacks, which may be refused."""
    owner, spec = replicas.owner, replicas.spec
    name = f"{name_of(owner)}-{ordinal}"
    revision = _revision_for(replicas, ordinal)
    template = replicas.revisions.templates[revision]
    writes: list[Write] = []
    volumes = {}
    for claim in owner["spec"].get("volumeClaimTemplates") or ():
        metadata = claim["metadata"]
        claim_name = f"{metadata['name']}-{name}"
        volumes[metadata["name"]] = {
            "name": metadata["name"],
            "persistentVolumeClaim": {"claimName": claim_name},
        }
        if not around.has_claim(namespace_of(owner), claim_name):
            writes.append(Create(_claim(owner, claim, claim_name)))
    if writes:
        return writes
    pod_spec: dict[str, Any] = {**template["spec"], "hostname": name}
    if spec.service_name:
        pod_spec["subdomain"] = spec.service_name
    if volumes:
        others = [one for one in pod_spec.get("volumes") or () if one.get("name") not in volumes]
        pod_spec["volumes"] = [*others, *volumes.values()]
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), workloads.REVISION_HASH: revision}
    made = new_pod(owner, template, name=name, labels=labels, spec=pod_spec)
    text = f"create Pod {name} in StatefulSet {name_of(owner)} successful"
    return [made, event(owner, "SuccessfulCreate", text, COMPONENT)]


def _revision_for(replicas: Replicas, ordinal: int) -> str:
    """Pods whose turn in a rolling update has not come are recreated as they were."""
    if replicas.spec.update_strategy.type != "RollingUpdate":
        return replicas.revisions.present
    left: int = dig(replicas.owner, "status", "currentReplicas") or 0
    kept = replicas.partition or left
    return replicas.current if ordinal < replicas.ordinals.start + kept else replicas.revisions.present


def _claim(owner: Obj, claim: Obj, name: str) -> Obj:
    selected = (owner["spec"]["selector"] or {}).get("matchLabels") or {}
    metadata = {**claim["metadata"], "name": name, "namespace": namespace_of(owner)}
    metadata["labels"] = {**(claim["metadata"].get("labels") or {}), **selected}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim["spec"]}


def makes_claim(owner: Obj, claim: Obj) -> bool:
    """Whether a claim is for a pod of this StatefulSet, by its name."""
    stem, _, ordinal = name_of(claim).rpartition("-")
    stems = [f"{one['metadata']['name']}-{name_of(owner)}" for one in owner["spec"].get("volumeClaimTemplates") or ()]
    return namespace_of(owner) == namespace_of(claim) and ordinal.isdecimal() and stem in stems


def _status(replicas: Replicas) -> dict[str, Any]:
    pods = [pod for pod in replicas.pods.values() if not pod_state.is_finished(pod)]
    kept = [pod for pod in pods if not is_terminating(pod)]
    ready = sum(1 for pod in kept if pod_state.is_ready(pod))
    updated = sum(1 for pod in kept if replicas.has_revision(pod, replicas.revisions.present))
    current, revision = (
        sum(1 for pod in kept if replicas.has_revision(pod, replicas.current)),
        replicas.current,
    )
    rolls = replicas.spec.update_strategy.type == "RollingUpdate"
    if rolls and len(pods) == updated == ready == replicas.spec.replicas:
        current, revision = updated, replicas.revisions.present
    return {
        "replicas": len(pods),
        "readyReplicas": ready or None,
        "availableReplicas": sum(1 for pod in kept if replicas.is_healthy(pod)),
        "currentReplicas": current or None,
        "updatedReplicas": updated or None,
        "currentRevision": revision,
        "updateRevision": replicas.revisions.present,
        "collisionCount": 0,
        "observedGeneration": replicas.owner["metadata"].get("generation"),
    }
