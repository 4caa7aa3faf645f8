"""Volcano's `subGroupPolicy` (T0): the sub-groups of a PodGroup are roles of the gang, each with its minimum and place.

Pods that match a policy's selector form one sub-group for each combination of values of its `matchLabelKeys`. A
sub-group needs `subGroupSize` pods, and a policy `minSubGroups` sub-groups. Where a policy leaves a choice of
sub-groups, the gang has a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from enbloc.api import volcano
from enbloc.api.meta import selector_of
from enbloc.gangs.gang_tree import Vertex
from enbloc.gangs.topology import TopologyConstraint, of_network_topology
from enbloc.units import natural_key


class SubGroups(NamedTuple):
    minima: Mapping[str, int] = {}
    topology: Mapping[str, TopologyConstraint] = {}
    tree: Vertex | None = None
    """If there is a choice of sub-groups."""
    unsupported: str = ""
    """Why the policies cannot be honoured."""


def role_of(policies: Sequence[volcano.SubGroupPolicy], labels: Mapping[str, str]) -> str:
    """The sub-group of a pod; empty if it is in none."""
    for policy in policies:
        if _matches(policy, labels):
            return _name(policy, [labels.get(key, "") for key in policy.match_label_keys or ()])
    return ""


def _matches(policy: volcano.SubGroupPolicy, labels: Mapping[str, str]) -> bool:
    if any(key not in labels for key in policy.match_label_keys or ()):
        return False
    try:
        selector = selector_of(policy.label_selector)
    except ValueError:
        return False
    return selector is None or selector.matches(labels)


def _name(policy: volcano.SubGroupPolicy, values: Sequence[str]) -> str:
    """`prefill`, `workers-0`: the policy's name, and the values if they say more."""
    return "-".join([policy.name, *(value for value in values if value != policy.name)])


def read(spec: volcano.PodGroupSpec, pods: Iterable[Mapping[str, str]]) -> SubGroups:
    """The minima and places of the sub-groups that exist. `pods`: the labels of the gang's pods."""
    policies = spec.sub_group_policy or ()
    if not policies:
        return SubGroups()
    if any(spec.min_task_member or {}):
        return SubGroups(unsupported="spec.subGroupPolicy beside minTaskMember is not honoured in this version")
    found: dict[str, dict[str, None]] = {policy.name: {} for policy in policies}
    for labels in pods:
        policy = next((one for one in policies if _matches(one, labels)), None)
        if policy is not None:
            found[policy.name][role_of((policy,), labels)] = None
    sizes = {policy.name: max(policy.sub_group_size or 1, 1) for policy in policies}
    whole = sum(sizes[name] * len(roles) for name, roles in found.items())
    minima: dict[str, int] = {}
    places: dict[str, TopologyConstraint] = {}
    vertices: list[Vertex] = []
    is_choice = False
    for policy in policies:
        roles = sorted(found[policy.name], key=natural_key)
        wanted = policy.min_sub_groups or 0
        is_choice = is_choice or (len(roles) > wanted and whole > spec.min_member)
        missing = [f"{policy.name}-{number}" for number in range(len(roles), wanted)]
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
