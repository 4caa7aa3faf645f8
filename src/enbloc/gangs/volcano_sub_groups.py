"""Volcano's `subGroupPolicy` (T0): the sub-groups of a PodGroup are roles of the gang, each with its minimum and place.
So are the partitions of a Job's role, if not all of them are needed.

Pods that match a policy's selector form one sub-group for each combination of values of its `matchLabelKeys`. A
sub-group needs `subGroupSize` pods, and a policy `minSubGroups` sub-groups. Where a policy leaves a choice of
sub-groups, the gang has a tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from heapq import merge
from itertools import count, islice
from typing import Any, NamedTuple

from enbloc.api import volcano
from enbloc.api.meta import selector_of
from enbloc.gangs.gang_tree import Vertex, size_fault
from enbloc.gangs.topology import TopologyConstraint, of_network_topology
from enbloc.units import Requirement, Selector, natural_key


class SubGroups(NamedTuple):
    minima: Mapping[str, int] = {}
    topology: Mapping[str, TopologyConstraint] = {}
    tree: Vertex | None = None
    """If there is a choice of sub-groups."""
    unsupported: str = ""
    """Why the policies cannot be honoured."""


class Policies:
    """The policies of one PodGroup, found by the labels of pods: a pod is not compared with each of many."""

    def __init__(self, written: Sequence[Any], listed: Sequence[volcano.SubGroupPolicy]) -> None:
        self.written = written
        self.listed = listed
        self._selectors: dict[int, Selector] = {}
        self._by_label: dict[tuple[str, str | None], list[int]] = {}
        """By key and value, or by key alone: positions of policies that match only pods with this label."""
        self._of_any: list[int] = []
        for number, policy in enumerate(listed):
            try:
                own = selector_of(policy.label_selector) or Selector(())
            except ValueError:
                continue  # it matches no pod
            keys = [Requirement(key, "Exists") for key in policy.match_label_keys or ()]
            selector = self._selectors[number] = Selector((*own.requirements, *keys))
            needed = next((one for one in selector.requirements if one.operator in ("In", "Exists")), None)
            if needed is None:
                self._of_any.append(number)
                continue
            for value in needed.values or (None,):
                self._by_label.setdefault((needed.key, value), []).append(number)

    def of(self, labels: Mapping[str, str]) -> volcano.SubGroupPolicy | None:
        """The first policy that a pod matches."""
        found = [self._of_any]
        for label in (*labels.items(), *((key, None) for key in labels)):
            found.append(self._by_label.get(label, []))
        numbers = merge(*found)
        return next((self.listed[one] for one in numbers if self._selectors[one].matches(labels)), None)

    def role_of(self, labels: Mapping[str, str]) -> str:
        """The sub-group of a pod; empty if it is in none."""
        policy = self.of(labels)
        return _role(policy, labels) if policy is not None else ""

    def lack(self, bound: Iterable[Mapping[str, str]]) -> bool:
        """Whether fewer sub-groups are whole than a policy needs. `bound`: the labels of the pods that count."""
        found = [(policy.name, _role(policy, labels)) for labels in bound if (policy := self.of(labels)) is not None]
        return _lacks({one.name: (_size(one), one.min_sub_groups or 0) for one in self.listed}, found)


def _size(policy: volcano.SubGroupPolicy) -> int:
    return max(policy.sub_group_size or 1, 1)


def _lacks(needed: Mapping[str, tuple[int, int]], pods: Iterable[tuple[str, str]]) -> bool:
    """`needed`: the size of a part, and how many parts, by what they are parts of. `pods`: the part of each."""
    whole: Counter[str] = Counter()
    for (of, _), number in Counter(pods).items():
        whole[of] += number >= needed[of][0]
    return any(whole[of] < wanted for of, (_, wanted) in needed.items())


def _role(policy: volcano.SubGroupPolicy, labels: Mapping[str, str]) -> str:
    return _name(policy, [labels.get(key, "") for key in policy.match_label_keys or ()])


def _name(policy: volcano.SubGroupPolicy, values: Sequence[str]) -> str:
    """`prefill`, `workers-0`: the policy's name, and the values if they say more."""
    return "-".join([policy.name, *(value for value in values if value != policy.name)])


def size_fault_of(policies: Sequence[volcano.SubGroupPolicy], found: Mapping[str, Sized] | None = None) -> str:
    """Why there are more sub-groups than a gang may have; `found`: those that exist, by policy."""
    exist = found or {}
    total = sum(1 + max(policy.min_sub_groups or 0, len(exist.get(policy.name, ()))) for policy in policies)
    return size_fault(total, 2, "policies and sub-groups of spec.subGroupPolicy")


def read(spec: volcano.PodGroupSpec, known: Policies, pods: Iterable[Mapping[str, str]]) -> SubGroups:
    """The minima and places of the sub-groups that exist. `pods`: the labels of the gang's pods."""
    policies = known.listed
    if any(spec.min_task_member or {}):
        return SubGroups(unsupported="spec.subGroupPolicy beside minTaskMember is not honoured in this version")
    found: dict[str, dict[str, None]] = {policy.name: {} for policy in policies}
    for labels in pods:
        policy = known.of(labels)
        if policy is not None:
            found[policy.name][_role(policy, labels)] = None
    if fault := size_fault_of(policies, found):
        return SubGroups(unsupported=fault)
    sizes = {policy.name: _size(policy) for policy in policies}
    whole = sum(sizes[name] * len(roles) for name, roles in found.items())
    minima: dict[str, int] = {}
    places: dict[str, TopologyConstraint] = {}
    vertices: list[Vertex] = []
    is_choice = False
    for policy in policies:
        roles = sorted(found[policy.name], key=natural_key)
        wanted = policy.min_sub_groups or 0
        is_choice = is_choice or (len(roles) > wanted and whole > spec.min_member)
        free = (name for number in count() if (name := f"{policy.name}-{number}") not in found[policy.name])
        missing = list(islice(free, max(wanted - len(roles), 0)))
        if missing and not roles:
            missing[0] = policy.name
        minima |= dict.fromkeys([*roles, *missing], sizes[policy.name])
        place = of_network_topology(policy.network_topology)
        places |= dict.fromkeys(roles, place) if place is not None else {}
        leaves = tuple(Vertex(role, sizes[policy.name], topology=place) for role in (*roles, *missing))
        vertices.append(Vertex(f"policy {policy.name}", wanted, leaves))
    if not is_choice:
        return SubGroups(minima, places)
    whole_gang = of_network_topology(spec.network_topology)
    return SubGroups(tree=Vertex("", len(vertices), tuple(vertices), whole_gang))


class Partitions(NamedTuple):
    """The partitions of a role of which some are needed: pods by index, `size` in each."""

    size: int
    total: int
    minimum: int
    place: TopologyConstraint | None

    def role_of(self, role: str, number: int | None) -> str:
        return role if number is None else f"{role}-{number // self.size}"


def partitions_of(policy: object) -> Partitions | None:
    """Of a `partitionPolicy`; `None` if it leaves no choice of partitions."""
    found = policy if isinstance(policy, dict) else {}
    size, total, minimum = (found.get(key) for key in ("partitionSize", "totalPartitions", "minPartitions"))
    if not (isinstance(size, int) and isinstance(total, int) and isinstance(minimum, int)):
        return None
    if size < 1 or not 0 < minimum < total:
        return None
    return Partitions(size, total, minimum, of_network_topology(found.get("networkTopology")))


def partitions_fault(partitions: Iterable[Partitions]) -> str:
    """Why there are more partitions than a gang may have."""
    return size_fault(sum(1 + one.total for one in partitions), 2, "partitions")


def partitions_lack(partitions: Mapping[str, Partitions], bound: Iterable[tuple[str, int | None]]) -> bool:
    """Whether fewer partitions are whole than a role needs. `bound`: role and index of the pods that count."""
    found = [(role, partitions[role].role_of(role, number)) for role, number in bound if role in partitions]
    return _lacks({role: (one.size, one.minimum) for role, one in partitions.items()}, found)


def partition_tree(minima: Mapping[str, int], partitions: Mapping[str, Partitions]) -> Vertex:
    """`minima`: of all roles that have one."""
    vertices = []
    for role, minimum in minima.items():
        found = partitions.get(role)
        if found is None:
            vertices.append(Vertex(role, minimum))
            continue
        leaves = tuple(Vertex(f"{role}-{n}", found.size, topology=found.place) for n in range(found.total))
        vertices.append(Vertex(f"role {role}", found.minimum, leaves))
    return Vertex("", len(vertices), tuple(vertices))
