"""KAI's dialect: a `scheduling.run.ai` PodGroup, and pods that name it in the annotation `pod-group-name`.

Reads `minMember`, `queue`, `priorityClassName`, `preemptibility`, `topologyConstraint` and one level of `subGroups`,
which are roles. Nested subgroups are not honoured: `compatibility` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api import kai
from enbloc.api.kinds import ref_of, view
from enbloc.api.meta import Obj, annotations_of, labels_of, namespace_of, uid_of
from enbloc.gangs import claim_records
from enbloc.gangs.declared_groups import DeclaredGroups
from enbloc.gangs.dialect import queue_named_by
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.hints import hints_of
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, GangStatus, Membership
from enbloc.gangs.topology import KAI, TopologyConstraint
from enbloc.units import parse_timestamp

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
        typed = view(group, kai.PodGroup)
        spec = typed.spec
        own = self._priorities.own(key.namespace, spec.priority_class_name)
        created = typed.metadata.creation_timestamp
        hints = hints_of(group)
        return GangSpec(
            key=key,
            title=f"{key.namespace}/{key.name}",
            created_ns=parse_timestamp(created) if created else 0,
            minimum=max(kai.minimum_of(spec), 0),
            minima={name: minimum for name, minimum in kai.minima_of(spec).items() if minimum > 0},
            queue=spec.queue or queue_named_by(group) or DEFAULT_QUEUE,
            priority=own.value,
            limited_class=own.limited_class,
            at_most_pods=own.at_most_pods,
            pods_priority=self._priorities.classes.default,
            topology=_topology(spec.topology_constraint),
            topology_of_role={
                one.name: found for one in spec.sub_groups or () if (found := _topology(one.topology_constraint))
            },
            object=ref_of(group),
            object_uid=uid_of(group),
            observed=GangStatus(claims=claim_records.read_all(annotations_of(group)), claim_home=uid_of(group)),
            hints=hints._replace(protected=True) if _is_non_preemptible(spec, own.value) else hints,
            never_preempts=self._priorities.classes.never_preempts(spec.priority_class_name),
            problem=next(_faults(spec), ""),
        )

    def complaints(self, obj: Obj) -> Iterator[str]:
        if obj["kind"] == "Pod":
            return
        spec = view(obj, kai.PodGroup).spec
        yield from _faults(spec)
        yield from self._priorities.complaints(namespace_of(obj), spec.priority_class_name)


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
    for index, one in enumerate(spec.sub_groups or ()):
        if not one.name:
            yield f"subGroups[{index}] has no name"
        if one.min_member is not None and not 0 <= one.min_member <= INT32_MAX:
            yield f"subGroups[{index}].minMember {one.min_member} is not from 0 to {INT32_MAX}"
