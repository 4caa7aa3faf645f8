"""Kubernetes' CompositePodGroups: which of them is the gang of a PodGroup, and its tree (T0).

The gang is the highest CompositePodGroup above a PodGroup that asks for something: one with the policy `basic` and no
constraint only groups, so what is below it is scheduled by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api import kubernetes
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.gangs.gang_tree import Vertex
from enbloc.gangs.topology import of_native

_DEEPEST = 8
"""Kubernetes allows four levels; beyond eight a chain of parents is a cycle."""

_Name = tuple[str, str]
"""Namespace and name."""


class Composites:
    """All CompositePodGroups and PodGroups, by namespace and name."""

    def __init__(self) -> None:
        self._composites: dict[_Name, Obj] = {}
        self._groups: dict[_Name, Obj] = {}

    def __bool__(self) -> bool:
        return bool(self._composites)

    def put(self, obj: Obj, gone: bool, *, is_composite: bool) -> None:
        known = self._composites if is_composite else self._groups
        if gone:
            known.pop((namespace_of(obj), name_of(obj)), None)
        else:
            known[namespace_of(obj), name_of(obj)] = obj

    def get(self, namespace: str, name: str) -> Obj | None:
        return self._composites.get((namespace, name))

    def names(self, namespace: str) -> list[str]:
        return [name for where, name in self._composites if where == namespace]

    def root_of(self, group: Obj) -> str:
        """The name of the CompositePodGroup that is the gang of a PodGroup; empty: none is."""
        return self._top(namespace_of(group), parent_of(group))

    def is_root(self, composite: Obj) -> bool:
        """Whether a CompositePodGroup is a gang: it asks for something, and none above it does."""
        return self._top(namespace_of(composite), name_of(composite)) == name_of(composite)

    def _top(self, namespace: str, above: str) -> str:
        chain: list[str] = []
        while above and len(chain) < _DEEPEST:
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

    def members(self, namespace: str, name: str) -> list[Obj]:
        """The PodGroups below a CompositePodGroup, at any depth."""
        below = self._children(namespace, name, _DEEPEST)
        return [one for one in below if one["kind"] == "PodGroup"]

    def _children(self, namespace: str, name: str, depth: int) -> Iterator[Obj]:
        for child in self._below(namespace, name) if depth else ():
            yield child
            if child["kind"] != "PodGroup":
                yield from self._children(namespace, name_of(child), depth - 1)

    def _below(self, namespace: str, name: str) -> list[Obj]:
        found = [
            one
            for known in (self._composites, self._groups)
            for (where, _), one in known.items()
            if where == namespace and parent_of(one) == name
        ]
        return sorted(found, key=lambda one: (one["metadata"].get("creationTimestamp") or "", name_of(one)))

    def tree(self, root: Obj) -> tuple[Vertex, str]:
        """The tree of a gang, and why it cannot start whatever pods there are; empty: it can."""
        problems: list[str] = []
        spec = view(root, kubernetes.CompositePodGroup).spec
        gang = spec.scheduling_policy.gang
        children = self._vertices(namespace_of(root), name_of(root), _DEEPEST, problems)
        minimum = gang.min_group_count if gang is not None else 0
        _check(name_of(root), minimum, len(children), problems)
        return Vertex("", minimum, children, of_native(spec.scheduling_constraints)), next(iter(problems), "")

    def _vertices(self, namespace: str, name: str, depth: int, problems: list[str]) -> tuple[Vertex, ...]:
        found = []
        for child in self._below(namespace, name) if depth else ():
            if child["kind"] == "PodGroup":
                own = view(child, kubernetes.PodGroup).spec
                policy = own.scheduling_policy.gang
                place = of_native(own.scheduling_constraints)
                found.append(Vertex(name_of(child), max(policy.min_count, 1) if policy else 1, topology=place))
                continue
            spec = view(child, kubernetes.CompositePodGroup).spec
            children = self._vertices(namespace, name_of(child), depth - 1, problems)
            gang = spec.scheduling_policy.gang
            minimum = gang.min_group_count if gang is not None else 1
            _check(name_of(child), minimum, len(children), problems)
            place = of_native(spec.scheduling_constraints)
            found.append(Vertex(f"composite {name_of(child)}", minimum, children, place))
        return tuple(found)


def _check(name: str, minimum: int, has: int, problems: list[str]) -> None:
    if minimum < 0:
        problems.append(f"schedulingPolicy.gang.minGroupCount {minimum} of CompositePodGroup {name} is not above 0")
    elif has < minimum:
        problems.append(f"{has} of {minimum} groups of CompositePodGroup {name} exist")


def parent_of(group: Obj) -> str:
    """The CompositePodGroup that a group names; empty if it names none."""
    named = (group.get("spec") or {}).get("parentCompositePodGroupName")
    return named if isinstance(named, str) else ""
