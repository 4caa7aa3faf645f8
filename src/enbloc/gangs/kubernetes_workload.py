"""Kubernetes' first API for gangs: a v1alpha1 Workload, and pods that name it in `spec.workloadRef`.

A gang is a pod group of a Workload, or one replica of it (`podGroupReplicaKey`). From v1alpha2 on a Workload has
templates only and PodGroups declare gangs: see `kubernetes`. A v1alpha1 Workload has no status: conditions and the
claim record are on the pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enbloc.api import kubernetes
from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, created_ns_of, name_of, namespace_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership, with_records_of
from enbloc.gangs.oldest_pod import WithoutObject


class KubernetesWorkload(WithoutObject):
    """Gangs declared by v1alpha1 Workloads: `WORKLOAD/GROUP`, or `WORKLOAD/GROUP/REPLICA`."""

    name = "kubernetes-workload"
    kinds = frozenset({kubernetes.WORKLOAD})

    def __init__(self) -> None:
        super().__init__()
        self._workloads: dict[tuple[str, str], Obj] = {}

    def observe(self, event: WatchEvent) -> Changed:
        place = (namespace_of(event.obj), name_of(event.obj))
        if event.type == "DELETED":
            self._workloads.pop(place, None)
        else:
            self._workloads[place] = event.obj
        return Changed(tuple(key for key in self._members if (key.namespace, _workload_of(key)) == place))

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        membership = self.member(pod)
        return NOTHING if membership is None else self._observe_member(membership.gang, pod, gone)

    def member(self, pod: Obj) -> Membership | None:
        named = kubernetes.workload_reference_of(pod)
        return Membership(GangKey(self.name, namespace_of(pod), named), "", None) if named else None

    def spec(self, key: GangKey) -> GangSpec | None:
        workload = self._workloads.get((key.namespace, _workload_of(key)))
        home = self.home(key)
        if workload is None or home is None:
            return None
        group = _group(workload, key.name.split("/")[1])
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name.replace('/', '-')}",
            created_ns=created_ns_of(workload),
            minimum=_minimum(group),
            queue=queue_named_by(workload) or queue_named_by(home) or DEFAULT_QUEUE,
            observed=with_records_of(home),
            hints=hints_of(workload),
            problem=_problem(workload, group, key),
        )

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        title = f"{key.namespace}/{key.name.replace('/', '-')}"
        problem = f"Workload {key.namespace}/{_workload_of(key)} does not exist"
        return GangSpec(key=key, title=title, created_ns=created_ns, minimum=1, queue=queue, problem=problem)

    def complaints(self, obj: Obj) -> Iterator[str]:
        return iter(())


def _workload_of(key: GangKey) -> str:
    return key.name.partition("/")[0]


def _group(workload: Obj, name: str) -> dict[str, Any] | None:
    groups = (workload.get("spec") or {}).get("podGroups")
    found = (one for one in groups if isinstance(one, dict)) if isinstance(groups, list) else ()
    return next((one for one in found if one.get("name") == name), None)


def _gang(group: dict[str, Any] | None) -> dict[str, Any] | None:
    policy = (group or {}).get("policy")
    gang = policy.get("gang") if isinstance(policy, dict) else None
    return gang if isinstance(gang, dict) else None


def _minimum(group: dict[str, Any] | None) -> int:
    """Without `gang` each pod is scheduled by itself."""
    minimum = (_gang(group) or {}).get("minCount")
    return minimum if isinstance(minimum, int) and 0 < minimum <= INT32_MAX else 0


def _problem(workload: Obj, group: dict[str, Any] | None, key: GangKey) -> str:
    name = "/".join(ref_of(workload)[1:])
    if group is None:
        return f"Workload {name} has no pod group {key.name.split('/')[1]}"
    if _gang(group) is not None and _minimum(group) == 0:
        return f"Workload {name}: minCount of {key.name.split('/')[1]} is not from 1 to {INT32_MAX}"
    return ""
