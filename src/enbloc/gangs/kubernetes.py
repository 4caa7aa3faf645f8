"""Kubernetes' own dialect: a `scheduling.k8s.io` PodGroup, and pods that name it in `spec.schedulingGroup`.

Reads `schedulingPolicy` (`gang.minCount`, or `basic`: one by one), `priorityClassName`, `preemptionPolicy` and
`disruptionMode`, in v1alpha2 and v1beta1. PodGroups below one CompositePodGroup (v1alpha3) are one gang, and each is a
role of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enbloc.api import kubernetes
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, created_ns_of, holds, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Koordinator
from enbloc.gangs import topology
from enbloc.gangs.composite import Composites, parent_of
from enbloc.gangs.declared_groups import DeclaredGroups
from enbloc.gangs.dialect import NOTHING, Changed, queue_named_by
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.gang_tree import DEEPEST, fields_of
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX, start_complaints, start_fields
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, GangStatus, Membership, with_records_of

_COMPOSITE = "composite "
"""Before the name of a CompositePodGroup in the key of its gang: no PodGroup has such a name."""


class Kubernetes(DeclaredGroups):
    """Gangs declared by Kubernetes' PodGroups."""

    name = "kubernetes"
    kinds = frozenset({kubernetes.POD_GROUP, kubernetes.COMPOSITE_POD_GROUP}) | GangPriorities.kinds

    def __init__(self, priorities: GangPriorities, koordinator: Koordinator = Koordinator()) -> None:  # noqa: B008
        super().__init__(priorities, koordinator)
        self._composites = Composites()
        self._pods: dict[GangKey, dict[str, Obj]] = {}
        """By PodGroup and UID: a group may get a parent after its pods."""

    # Watch events

    def observe(self, event: WatchEvent) -> Changed:
        if event.kind != kubernetes.COMPOSITE_POD_GROUP:
            return super().observe(event)
        namespace, name = namespace_of(event.obj), name_of(event.obj)
        before = self._composites.top(namespace, name)
        self._composites.put(event.obj, event.type == "DELETED", is_composite=True)
        after = self._composites.top(namespace, name)
        tops = [self._composite_key(namespace, top) for top in (name, before, after) if top]
        if before == after:
            return Changed(tuple(dict.fromkeys(tops)))
        below = [one for level in self._composites.below(namespace, name) for one in level]
        inner = [self._composite_key(namespace, name_of(one)) for one in below if one["kind"] != "PodGroup"]
        children = [GangKey(self.name, namespace, name_of(one)) for one in below if one["kind"] == "PodGroup"]
        pods = tuple(pod for key in children for pod in self._pods.get(key, {}).values())
        return Changed(tuple(dict.fromkeys((*tops, *inner, *children))), pods)

    def _observe_group(self, group: Obj, gone: bool) -> Changed:
        key = GangKey(self.name, namespace_of(group), name_of(group))
        known = self._groups.get(key)
        before = self._gang_of(key)
        self._composites.put(group, gone, is_composite=False)
        changed = super()._observe_group(group, gone)
        after = self._gang_of(key)
        if before == after == key or (known is not None and known["spec"] is group["spec"] and not gone):
            return changed
        moved = tuple(self._pods.get(key, {}).values()) if before != after else ()
        return Changed(tuple(dict.fromkeys((key, before, after))), moved)

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        name = kubernetes.group_name_of(pod)
        if name:
            key = GangKey(self.name, namespace_of(pod), name)
            of_group = self._pods.setdefault(key, {})
            of_group[uid_of(pod)] = pod
            if gone:
                del of_group[uid_of(pod)]
            if not of_group:
                del self._pods[key]
        return NOTHING

    def _composite_key(self, namespace: str, name: str) -> GangKey:
        return GangKey(self.name, namespace, f"{_COMPOSITE}{name}")

    def _gang_of(self, key: GangKey) -> GangKey:
        """The gang of a PodGroup: itself, or the CompositePodGroup above it."""
        group = self._groups.get(key)
        root = self._composites.root_of(group) if group is not None and parent_of(group) else ""
        return self._composite_key(key.namespace, root) if root else key

    # Gangs

    def member(self, pod: Obj) -> Membership | None:
        name = kubernetes.group_name_of(pod)
        if not name:
            return None
        own = GangKey(self.name, namespace_of(pod), name)
        gang = self._gang_of(own)
        return Membership(gang, "" if gang == own else name, None)

    def object(self, key: GangKey) -> Obj | None:
        if key.name.startswith(_COMPOSITE):
            return self._composites.get(key.namespace, key.name.removeprefix(_COMPOSITE))
        return self._groups.get(key)

    def home(self, key: GangKey) -> Obj | None:
        return self.object(key)

    def objects(self, key: GangKey) -> list[Obj]:
        """The objects that declare a gang."""
        found = self.object(key)
        if found is None or found["kind"] == "PodGroup":
            return [found] if found is not None else []
        below = self._composites.below(key.namespace, name_of(found))
        return [found, *(one for level in below for one in level if one["kind"] == "PodGroup")]

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        if not key.name.startswith(_COMPOSITE):
            return super().undeclared(key, created_ns, queue)
        title = f"{key.namespace}/{key.name.removeprefix(_COMPOSITE)}"
        problem = f"CompositePodGroup {title} does not exist"
        if self.object(key) is not None:
            problem = f"CompositePodGroup {title} is below more than {DEEPEST} others, or they are in a cycle"
        return GangSpec(key=key, title=title, created_ns=created_ns, minimum=1, queue=queue, problem=problem)

    def _composite_spec(self, key: GangKey) -> GangSpec | None:
        root = self.object(key)
        if root is None or not self._composites.is_root(root):
            return None
        spec = view(root, kubernetes.CompositePodGroup).spec
        own = self._priorities.own(key.namespace, spec.priority_class_name)
        tree, problem = self._composites.tree(root)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{name_of(root)}",
            created_ns=created_ns_of(root),
            **fields_of(tree, 0),
            queue=queue_named_by(root) or DEFAULT_QUEUE,
            **own.fields(self._priorities.classes.default),
            leftovers_in_turn=True,
            evict_as_unit=_evicts_as_unit(spec.disruption_mode),
            object=ref_of(root),
            object_uid=uid_of(root),
            observed=with_records_of(root),
            hints=hints_of(root),
            **start_fields(root, self._default_waiting_ns),
            never_preempts=self._never_preempts(spec)
            or any(self._never_preempts(view(one, kubernetes.PodGroup).spec) for one in self.objects(key)[1:]),
            problem=problem,
        )

    def spec(self, key: GangKey) -> GangSpec | None:
        if key.name.startswith(_COMPOSITE):
            return self._composite_spec(key)
        group = self._groups.get(key)
        if group is None or self._gang_of(key) != key:
            return None
        spec = view(group, kubernetes.PodGroup).spec
        own = self._priorities.own(key.namespace, spec.priority_class_name)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            created_ns=created_ns_of(group),
            minimum=_minimum(spec),
            queue=queue_named_by(group) or DEFAULT_QUEUE,
            **own.fields(self._priorities.classes.default),
            topology=topology.of_native(spec.scheduling_constraints),
            leftovers_in_turn=True,
            evict_as_unit=_evicts_as_unit(spec.disruption_mode),
            object=ref_of(group),
            object_uid=uid_of(group),
            observed=with_records_of(group, GangStatus(started=_started(group))),
            hints=hints_of(group),
            **start_fields(group, self._default_waiting_ns),
            never_preempts=self._never_preempts(spec),
            problem=next(_faults(spec), ""),
        )

    def _never_preempts(self, spec: kubernetes.PodGroupSpec | kubernetes.CompositePodGroupSpec) -> bool:
        """By its own policy, or by that of its class, which an API server copies (U2)."""
        return spec.preemption_policy == "Never" or self._priorities.classes.never_preempts(spec.priority_class_name)

    def complaints(self, obj: Obj) -> Iterator[str]:
        yield from start_complaints(obj)
        if obj["kind"] == "PodGroup":
            spec = view(obj, kubernetes.PodGroup).spec
            yield from _faults(spec)
            yield from self._priorities.complaints(namespace_of(obj), spec.priority_class_name)


def _started(group: Obj) -> bool:
    """Whether its minimum was bound once: later pods are scheduled one by one."""
    return holds(group, kubernetes.INITIALLY_SCHEDULED) is not None


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
