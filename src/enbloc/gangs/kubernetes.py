"""Kubernetes' own dialect: a `scheduling.k8s.io` PodGroup, and pods that name it in `spec.schedulingGroup`.

Reads `schedulingPolicy` (`gang.minCount`, or `basic`: one by one), `priorityClassName` and `disruptionMode`, in
v1alpha2 and v1beta1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enbloc.api import kubernetes
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, annotations_of, condition_of, namespace_of, uid_of
from enbloc.gangs import claim_records, topology
from enbloc.gangs.declared_groups import DeclaredGroups
from enbloc.gangs.dialect import queue_named_by
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, GangStatus, Membership
from enbloc.units import parse_timestamp


class Kubernetes(DeclaredGroups):
    """Gangs declared by Kubernetes' PodGroups."""

    name = "kubernetes"
    kinds = frozenset({kubernetes.POD_GROUP}) | GangPriorities.kinds

    def member(self, pod: Obj) -> Membership | None:
        name = kubernetes.group_name_of(pod)
        return Membership(GangKey(self.name, namespace_of(pod), name), "", None) if name else None

    def spec(self, key: GangKey) -> GangSpec | None:
        group = self._groups.get(key)
        if group is None:
            return None
        spec = view(group, kubernetes.PodGroup).spec
        created = group["metadata"].get("creationTimestamp")
        own = self._priorities.own(key.namespace, spec.priority_class_name)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            created_ns=parse_timestamp(created) if created else 0,
            minimum=_minimum(spec),
            queue=queue_named_by(group) or DEFAULT_QUEUE,
            priority=own.value,
            limited_class=own.limited_class,
            at_most_pods=own.at_most_pods,
            pods_priority=self._priorities.classes.default,
            topology=topology.of_native(spec.scheduling_constraints),
            leftovers_in_turn=True,
            evict_as_unit=_evicts_as_unit(spec.disruption_mode),
            object=ref_of(group),
            object_uid=uid_of(group),
            observed=GangStatus(
                started=_started(group),
                claims=claim_records.read_all(annotations_of(group)),
                claim_home=uid_of(group),
            ),
            hints=hints_of(group),
            never_preempts=self._priorities.classes.never_preempts(spec.priority_class_name),
            problem=next(_faults(spec), ""),
        )

    def complaints(self, obj: Obj) -> Iterator[str]:
        if obj["kind"] != "Pod":
            spec = view(obj, kubernetes.PodGroup).spec
            yield from _faults(spec)
            yield from self._priorities.complaints(namespace_of(obj), spec.priority_class_name)


def _started(group: Obj) -> bool:
    """Whether its minimum was bound once: later pods are scheduled one by one."""
    raw = condition_of(group, kubernetes.INITIALLY_SCHEDULED)
    return raw is not None and raw.get("status") == "True"


def _minimum(spec: kubernetes.PodGroupSpec) -> int:
    """Without `gang` each pod is scheduled by itself."""
    gang = spec.scheduling_policy.gang
    return max(gang.min_count, 0) if gang else 0


def _faults(spec: kubernetes.PodGroupSpec) -> Iterator[str]:
    policy = spec.scheduling_policy
    if policy.gang is not None and policy.basic is not None:
        yield "schedulingPolicy has both gang and basic"
    if policy.gang is not None and not 1 <= policy.gang.min_count <= INT32_MAX:
        yield f"schedulingPolicy.gang.minCount {policy.gang.min_count} is not from 1 to {INT32_MAX}"


def _evicts_as_unit(mode: str | dict[str, Any] | None) -> bool:
    return mode == "PodGroup" or (isinstance(mode, dict) and "all" in mode)
