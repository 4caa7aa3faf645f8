"""Kubernetes' CompositePodGroups: which of them is the gang of a PodGroup, and its tree (T0).

The gang is the highest CompositePodGroup above a PodGroup that asks for something: one with the policy `basic` and no
constraint only groups, so what is below it is scheduled by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from enbloc.api import kubernetes
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.gangs.gang_tree import DEEPEST, MOST_VERTICES, Vertex, size_fault
from enbloc.gangs.topology import of_native
from enbloc.listing import plural

_Name = tuple[str, str]
"""Namespace and name."""


class Composites:
    """All CompositePodGroups and PodGroups, by namespace and name."""

    def __init__(self) -> None:
        self._composites: dict[_Name, Obj] = {}
        self._groups: dict[_Name, Obj] = {}
        self._children: dict[_Name, dict[tuple[bool, str], Obj]] = {}
        """By the name of the parent: what names it, composites and PodGroups."""

    def put(self, obj: Obj, gone: bool, *, is_composite: bool) -> None:
        known = self._composites if is_composite else self._groups
        where, own = (namespace_of(obj), name_of(obj)), (is_composite, name_of(obj))
        before = known.pop(where, None)
        if before is not None and (parent := parent_of(before)):
            siblings = self._children[where[0], parent]
            del siblings[own]
            if not siblings:
                del self._children[where[0], parent]
        if not gone:
            known[where] = obj
            if parent := parent_of(obj):
                self._children.setdefault((where[0], parent), {})[own] = obj

    def get(self, namespace: str, name: str) -> Obj | None:
        return self._composites.get((namespace, name))

    def root_of(self, group: Obj) -> str:
        """The name of the CompositePodGroup that is the gang of a PodGroup; empty: none is."""
        return self.top(namespace_of(group), parent_of(group))

    def is_root(self, composite: Obj) -> bool:
        """Whether a CompositePodGroup is a gang: it asks for something, and none above it does."""
        return self.top(namespace_of(composite), name_of(composite)) == name_of(composite)

    def top(self, namespace: str, above: str) -> str:
        """The name of the gang that a CompositePodGroup is in; empty: it only groups. A chain beyond the bound ends
        there: what it ends at is no gang."""
        chain: list[str] = []
        while above and len(chain) <= DEEPEST:
            chain.append(above)
            found = self.get(namespace, above)
            above = parent_of(found) if found is not None else ""
        while chain and self._only_groups(namespace, chain[-1]):
            chain.pop()
        return chain[-1] if chain else ""

    def _only_groups(self, namespace: str, name: str) -> bool:
        found = self.get(namespace, name)
        if found is None:
            return False
        spec = view(found, kubernetes.CompositePodGroup).spec
        return spec.scheduling_policy.gang is None and of_native(spec.scheduling_constraints) is None

    def below(self, namespace: str, name: str) -> list[list[Obj]]:
        """What is below a CompositePodGroup, level by level, of each one all children in order; one level and one
        vertex beyond the bounds at most."""
        found: list[list[Obj]] = [self._in_order(namespace, name)]
        count = len(found[0])
        while found[-1] and len(found) <= DEEPEST and count <= MOST_VERTICES:
            parents = [one for one in found[-1] if one["kind"] != "PodGroup"]
            found.append([child for one in parents for child in self._in_order(namespace, name_of(one))])
            count += len(found[-1])
        return found if found[-1] else found[:-1]

    def _in_order(self, namespace: str, name: str) -> list[Obj]:
        found = self._children.get((namespace, name), {}).values()
        return sorted(found, key=lambda one: (one["metadata"].get("creationTimestamp") or "", name_of(one)))

    def tree(self, root: Obj) -> tuple[Vertex, str]:
        """The tree of a gang, and why it cannot start whatever pods there are; empty: it can."""
        levels = self.below(namespace_of(root), name_of(root))
        fault = size_fault(sum(map(len, levels)), len(levels), f"groups below CompositePodGroup {name_of(root)}")
        if fault:
            return Vertex("", 0), fault
        problems: list[str] = []
        found: dict[str, list[Vertex]] = {}
        for one in chain.from_iterable(reversed(levels)):
            if one["kind"] == "PodGroup":
                own = view(one, kubernetes.PodGroup).spec
                policy = own.scheduling_policy.gang
                place = of_native(own.scheduling_constraints)
                vertex = Vertex(name_of(one), max(policy.min_count, 1) if policy else 1, topology=place)
            else:
                vertex = _vertex(one, f"composite {name_of(one)}", 1, found, problems)
            found.setdefault(parent_of(one), []).append(vertex)
        return _vertex(root, "", 0, found, problems), next(iter(problems), "")


def _vertex(
    composite: Obj, name: str, default: int, found: Mapping[str, Sequence[Vertex]], problems: list[str]
) -> Vertex:
    spec = view(composite, kubernetes.CompositePodGroup).spec
    gang, children = spec.scheduling_policy.gang, tuple(found.get(name_of(composite), ()))
    minimum = gang.min_group_count if gang is not None else default
    _check(name_of(composite), minimum, len(children), problems)
    return Vertex(name, minimum, children, of_native(spec.scheduling_constraints))


def _check(name: str, minimum: int, has: int, problems: list[str]) -> None:
    if minimum < 0:
        problems.append(f"schedulingPolicy.gang.minGroupCount {minimum} of CompositePodGroup {name} is not above 0")
    elif has < minimum:
        exist = "exists" if minimum == 1 else "exist"
        problems.append(f"{has} of {plural(minimum, 'group')} of CompositePodGroup {name} {exist}")


def parent_of(group: Obj) -> str:
    """The CompositePodGroup that a group names; empty if it names none."""
    named = (group.get("spec") or {}).get("parentCompositePodGroupName")
    return named if isinstance(named, str) else ""
