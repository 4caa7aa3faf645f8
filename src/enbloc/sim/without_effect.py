"""Objects that changed nothing: kinds that no controller here acts on, pods and jobs of other schedulers (N3).

Used by `sim` and `lint`. A gang that waits, and an object that admission rejects, are reported elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final

import msgspec

from enbloc.admission.settings import Settings, is_foreign, not_ours
from enbloc.api import arbitrator, kai, kubernetes, volcano
from enbloc.api.kinds import KINDS, kind_id
from enbloc.api.meta import Obj, labels_of, name_of, namespace_of
from enbloc.config.owner_kinds import shipped

_CONTEXT: Final = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
    }
)
"""Groups of objects that pods refer to, or that say who may do what: no pods are expected of them."""

_IDLE: Final = frozenset({"HorizontalPodAutoscaler.autoscaling", "ReplicationController", kubernetes.WORKLOAD})
"""Kinds that are served as they are, and of which something is expected."""

_QUEUES_OF_OTHERS: Final = frozenset({f"Queue.{kai.GROUP}"})
"""Queues that pods name as they name ours, and that decide nothing here."""


class WithoutEffect(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str
    reason: str


def without_effect(objects: Sequence[Obj], settings: Settings) -> list[WithoutEffect]:
    """The objects of a run, or of files, that had no effect; each with the reason."""
    owners = {(namespace_of(obj), one.get("kind"), one.get("name")) for obj in objects for one in _owners(obj)}
    owners |= {("", kind, name) for _, kind, name in owners}  # of owners without a namespace
    labels = {label for obj in objects if obj["kind"] == "Pod" for label in labels_of(obj).items()}
    found = []
    for obj in objects:
        reason = _reason(obj, settings)
        if reason and (namespace_of(obj), obj["kind"], name_of(obj)) not in owners and not _groups_pods(obj, labels):
            found.append(WithoutEffect(obj["kind"], namespace_of(obj), name_of(obj), reason))
    return found


def _groups_pods(obj: Obj, labels: Set[tuple[str, str]]) -> bool:
    """Whether pods name the object by the label of its kind: it says which of them are a gang."""
    return any(entry.kind == kind_id(obj) and (entry.pod_label, name_of(obj)) in labels for entry in shipped())


def _owners(obj: Obj) -> Iterable[Obj]:
    return obj["metadata"].get("ownerReferences") or ()


def _reason(obj: Obj, settings: Settings) -> str:
    kind = kind_id(obj)
    if kind == "Pod":
        return _foreign_pod(obj, settings)
    if kind in (volcano.JOB, arbitrator.QUEUE_JOB):
        name = str(obj["spec"].get("schedulerName") or "") if is_foreign(obj, settings) else ""
        return _foreign(name, settings) if name else ""
    if kind == kubernetes.WORKLOAD and (obj.get("spec") or {}).get("podGroups"):
        return ""  # of v1alpha1: it declares gangs itself
    group = obj["apiVersion"].rpartition("/")[0]
    if kind not in _IDLE and (kind in KINDS or group in _CONTEXT):
        return ""
    what = f"{obj['kind']} of {group}" if group else obj["kind"]
    if kind in _QUEUES_OF_OTHERS:
        ours = volcano.QUEUE.partition(".")[2]
        return f"{what} is not read: gangs of this queue wait until a Queue of {ours} is named {name_of(obj)}"
    return f"no controller here acts on {what}: it makes no pods and decides nothing{_known_elsewhere(obj)}"


def _known_elsewhere(obj: Obj) -> str:
    """Groups in which a kind of this name is acted on: the manifest may be older than the group's present name."""
    known = [kind for kind in KINDS.values() if kind.name == obj["kind"] and kind.id not in _IDLE]
    versions = {kind.api_version for kind in known}
    return f"; {obj['kind']} is acted on in {', '.join(sorted(versions))}" if versions else ""


def _foreign_pod(pod: Obj, settings: Settings) -> str:
    spec = pod["spec"]
    name = spec.get("schedulerName") or "default-scheduler"
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    is_ours = settings.ours is None or name in settings.ours
    return "" if is_ours or spec.get("nodeName") or phase != "Pending" else _foreign(name, settings)


def _foreign(name: str, settings: Settings) -> str:
    return f"spec.schedulerName {name} {not_ours(name, settings)}"
