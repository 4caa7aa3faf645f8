"""KAI's dialect: a `scheduling.run.ai` PodGroup, and pods that name it in the annotation `pod-group-name`.

Reads `minMember`, `minSubGroup`, `queue`, `priorityClassName`, `preemptibility`, `topologyConstraint` and `subGroups`.
Subgroups that are no other's parent are roles; those that are, and choices by `minSubGroup`, make a tree (T0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from enbloc.api import kai
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, created_ns_of, labels_of, namespace_of, uid_of
from enbloc.gangs.declared_groups import DeclaredGroups
from enbloc.gangs.dialect import queue_named_by
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.gang_tree import Vertex, fields_of, levels, size_fault
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership, with_records_of
from enbloc.gangs.topology import KAI, TopologyConstraint

LOWEST_NON_PREEMPTIBLE = 100
"""KAI: without `preemptibility`, a PodGroup of this priority or a higher one is not preemptible."""


class Kai(DeclaredGroups):
    """Gangs declared by KAI's PodGroups."""

    name = "kai"
    kinds = frozenset({kai.POD_GROUP}) | GangPriorities.kinds

    def member(self, pod: Obj) -> Membership | None:
        name = kai.group_name_of(pod)
        if not name:
            return None
        return Membership(GangKey(self.name, namespace_of(pod), name), labels_of(pod).get(kai.SUBGROUP) or "", None)

    def spec(self, key: GangKey) -> GangSpec | None:
        group = self._groups.get(key)
        if group is None:
            return None
        spec = view(group, kai.PodGroup).spec
        own = self._priorities.own(key.namespace, spec.priority_class_name)
        hints = hints_of(group)
        problem = next(_faults(spec), "")
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            created_ns=created_ns_of(group),
            **_members(spec, is_valid=not problem),
            queue=spec.queue or queue_named_by(group) or DEFAULT_QUEUE,
            **own.fields(self._priorities.classes.default),
            object=ref_of(group),
            object_uid=uid_of(group),
            observed=with_records_of(group),
            hints=hints._replace(protected=True) if _is_non_preemptible(spec, own.value) else hints,
            never_preempts=self._priorities.classes.never_preempts(spec.priority_class_name),
            problem=problem,
        )

    def complaints(self, obj: Obj) -> Iterator[str]:
        if obj["kind"] == "Pod":
            return
        spec = view(obj, kai.PodGroup).spec
        yield from _faults(spec)
        yield from self._priorities.complaints(namespace_of(obj), spec.priority_class_name)


def minimum_of(spec: kai.PodGroupSpec) -> int:
    """How many pods start together, at least."""
    found: int = _members(spec, is_valid=next(_faults(spec), None) is None)["minimum"]
    return found


def _members(spec: kai.PodGroupSpec, *, is_valid: bool) -> dict[str, Any]:
    """The fields of the gang that its subgroups decide."""
    listed = spec.sub_groups or ()
    if is_valid and (
        spec.min_sub_group is not None or any(one.parent or one.min_sub_group is not None for one in listed)
    ):
        return fields_of(_tree(spec), max(spec.min_member or 0, 0))
    return {
        "minimum": max(kai.minimum_of(spec), 0),
        "minima": {name: minimum for name, minimum in kai.minima_of(spec).items() if minimum > 0},
        "topology": _topology(spec.topology_constraint),
        "topology_of_role": {one.name: found for one in listed if (found := _topology(one.topology_constraint))},
    }


def _tree(spec: kai.PodGroupSpec) -> Vertex:
    listed = {one.name: one for one in spec.sub_groups or ()}
    below: dict[str, list[Vertex]] = {}
    for name in chain.from_iterable(reversed(levels(_parents(listed.values())))):
        one, found = listed[name], tuple(below.get(name, ()))
        minimum = one.min_sub_group if found else one.min_member
        default = len(found) if found else 1
        place = _topology(one.topology_constraint)
        vertex = Vertex(name, default if minimum is None else minimum, found, place)
        below.setdefault(one.parent or "", []).append(vertex)
    top = tuple(below.get("", ()))
    minimum = len(top) if spec.min_sub_group is None else spec.min_sub_group
    return Vertex("", minimum, top, _topology(spec.topology_constraint))


def _parents(listed: Iterable[kai.SubGroup]) -> dict[str, str]:
    return {one.name: one.parent or "" for one in listed}


def _topology(constraint: kai.TopologyConstraint | None) -> TopologyConstraint | None:
    if constraint is None or not (constraint.required_topology_level or constraint.preferred_topology_level):
        return None
    return TopologyConstraint(
        f"{KAI}{constraint.topology}", constraint.required_topology_level, constraint.preferred_topology_level
    )


def _is_non_preemptible(spec: kai.PodGroupSpec, priority: int | None) -> bool:
    if spec.preemptibility:
        return spec.preemptibility == kai.NON_PREEMPTIBLE
    return priority is not None and priority >= LOWEST_NON_PREEMPTIBLE


def _faults(spec: kai.PodGroupSpec) -> Iterator[str]:
    if spec.min_member is not None and not 0 <= spec.min_member <= INT32_MAX:
        yield f"minMember {spec.min_member} is not from 0 to {INT32_MAX}"
    listed = spec.sub_groups or []
    yield from _tree_faults(spec, listed)
    for index, one in enumerate(listed):
        if not one.name:
            yield f"subGroups[{index}] has no name"
        if one.min_member is not None and not 0 <= one.min_member <= INT32_MAX:
            yield f"subGroups[{index}].minMember {one.min_member} is not from 0 to {INT32_MAX}"


def _tree_faults(spec: kai.PodGroupSpec, listed: Sequence[kai.SubGroup]) -> Iterator[str]:
    if fault := subgroups_fault(listed):
        yield fault
        return
    parents = _parents(listed)
    reached = set(chain.from_iterable(_levels(parents)))
    children = Counter(one.parent or "" for one in listed)
    yield from (f"subGroups has {count} of the name {name}" for name, count in _names(listed).items() if count > 1)
    for index, one in enumerate(listed):
        if one.parent and one.parent not in parents:
            yield f"subGroups[{index}].parent {one.parent} does not exist"
        elif one.name not in reached:
            yield f"subGroups[{index}].parent {one.parent} makes a cycle"
        if one.min_sub_group is not None and not 1 <= one.min_sub_group <= children[one.name]:
            count = children[one.name]
            yield f"subGroups[{index}].minSubGroup {one.min_sub_group} is not from 1 to its {count} subgroups"
    if spec.min_sub_group is not None and not 1 <= spec.min_sub_group <= children[""]:
        yield f"minSubGroup {spec.min_sub_group} is not from 1 to its {children['']} subgroups"


def subgroups_fault(listed: Sequence[kai.SubGroup]) -> str:
    """Why there are more subgroups than a gang may have, or they are nested too deep; empty: neither."""
    return size_fault(len(listed), len(_levels(_parents(listed))), "subGroups")


def _levels(parents: Mapping[str, str]) -> list[list[str]]:
    """Those below a parent that does not exist are at the top."""
    return levels({name: parent if parent in parents else "" for name, parent in parents.items()})


def _names(listed: Sequence[kai.SubGroup]) -> Counter[str]:
    return Counter(one.name for one in listed if one.name)
