"""The tree of a gang whose groups of members are grouped again (T0): which of them start together.

A leaf is a role with a minimum of members. An inner vertex has a minimum of children: if it has more, there is a
choice. A *choice* is the minima of the leaves that were chosen, by role; those that have started come first, then those
whose members exist, then the first in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.gangs.topology import TopologyConstraint

CHOICES_BOUND: Final = 64
"""At most 64 choices are looked at for one gang."""

DEEPEST: Final = 16
MOST_VERTICES: Final = 4_096
"""A tree has at most 16 levels below its root and 4,096 vertices: a gang with a larger one is held (S8)."""


class Vertex(msgspec.Struct, frozen=True):
    name: str
    """Unique in the tree."""
    minimum: int
    """Of a leaf: how many of its members; else: how many of its children."""
    children: tuple[Vertex, ...] = ()
    topology: TopologyConstraint | None = None
    """Where all of its members must or should be together."""


class Branch(NamedTuple):
    """What is above a leaf."""

    path: tuple[str, ...]
    """The names of the vertices between the root and the leaf, from the top down."""
    constraints: tuple[tuple[tuple[str, ...], TopologyConstraint], ...]
    """Paths of vertices that have a constraint, each with it; the root's and the leaf's own are not among them."""


def walk(root: Vertex) -> Iterator[Vertex]:
    """Every vertex before those below it, children in order."""
    open_ones = [root]
    while open_ones:
        vertex = open_ones.pop()
        yield vertex
        open_ones.extend(reversed(vertex.children))


def leaves(root: Vertex) -> Iterator[Vertex]:
    return (vertex for vertex in walk(root) if not vertex.children)


def branches(root: Vertex) -> dict[str, Branch]:
    """By leaf; leaves right below the root are left out."""
    found: dict[str, Branch] = {}
    open_ones = [(root, Branch((), ()))]
    while open_ones:
        vertex, above = open_ones.pop()
        for child in vertex.children:
            if not child.children:
                if above.path:
                    found[child.name] = above
                continue
            path = (*above.path, child.name)
            own = ((path, child.topology),) if child.topology is not None else ()
            open_ones.append((child, Branch(path, (*above.constraints, *own))))
    return found


def levels(parents: Mapping[str, str]) -> list[list[str]]:
    """Names by how far they are below the root, which is `""`; those in a cycle, or below one, are left out."""
    below: dict[str, list[str]] = {}
    for name, parent in parents.items():
        below.setdefault(parent, []).append(name)
    found = [below.pop("", [])]
    while found[-1]:
        found.append([child for name in found[-1] for child in below.pop(name, ())])
    return found[:-1]


def size_fault(vertices: int, depth: int, of: str) -> str:
    """Why a tree is beyond the bounds; empty: it is not."""
    if vertices > MOST_VERTICES:
        return f"{vertices:,} {of}: a gang has at most {MOST_VERTICES:,}"
    return f"{of} are nested in more than {DEEPEST} levels, or in a cycle" if depth > DEEPEST else ""


class Members(NamedTuple):
    """What there is of a gang's members, by role."""

    exist: Mapping[str, int]
    placed: Mapping[str, int]
    """Those that count towards minima now."""
    committed: Mapping[str, int] = {}
    """The minima that were bound once."""


def complete(root: Vertex, counts: Mapping[str, int]) -> set[int]:
    """The vertices whose minimum is met, by `id()`."""
    found: set[int] = set()
    for vertex in reversed(list(walk(root))):
        has = sum(id(child) in found for child in vertex.children) if vertex.children else counts.get(vertex.name, 0)
        if has >= vertex.minimum:
            found.add(id(vertex))
    return found


def _begun(root: Vertex, counts: Mapping[str, int]) -> set[int]:
    """The vertices of which a leaf has a member, by `id()`."""
    found: set[int] = set()
    for vertex in reversed(list(walk(root))):
        if any(id(child) in found for child in vertex.children) or (not vertex.children and counts.get(vertex.name)):
            found.add(id(vertex))
    return found


def choices(root: Vertex, members: Members) -> Iterator[dict[str, int]]:
    """The minima of the leaves that were chosen, the best choice first; at least one."""
    exist = complete(root, members.exist)
    placed = members.placed
    sets = (complete(root, members.committed), complete(root, placed), _begun(root, placed), exist)
    ranks = {id(one): tuple(id(one) not in done for done in sets) for one in walk(root)}
    for chosen in islice(_choices(root, ranks, exist), CHOICES_BOUND):
        yield {leaf.name: leaf.minimum for leaf in chosen if leaf.minimum > 0}


def _choices(vertex: Vertex, ranks: Mapping[int, tuple[bool, ...]], exist: set[int]) -> Iterator[list[Vertex]]:
    """Leaves that start together. It calls itself once for each level of the tree, and there are few."""
    if not vertex.children:
        yield [vertex]
        return
    ordered = sorted(vertex.children, key=lambda child: ranks[id(child)])  # declared order among equals
    possible = [child for child in ordered if id(child) in exist]
    if len(possible) >= vertex.minimum:
        ordered = possible
    of_child = {id(child): _Looked(_choices(child, ranks, exist)) for child in ordered}
    for chosen in combinations(ordered, max(0, min(vertex.minimum, len(ordered)))):
        yield from _product([of_child[id(child)] for child in chosen])


class _Looked:
    """What an iterator gives, as far as it was looked at."""

    def __init__(self, source: Iterator[list[Vertex]]) -> None:
        self._source = source
        self._seen: list[list[Vertex]] = []

    def get(self, index: int) -> list[Vertex] | None:
        if index == len(self._seen):
            self._seen += islice(self._source, 1)
        return self._seen[index] if index < len(self._seen) else None


def _product(parts: Sequence[_Looked]) -> Iterator[list[Vertex]]:
    """As `itertools.product`, which would look at all of each part first; each is joined to one list."""
    at = [0] * len(parts)
    while True:
        yield [leaf for part, index in zip(parts, at, strict=True) for leaf in part.get(index) or ()]
        position = len(parts) - 1
        while position >= 0 and parts[position].get(at[position] + 1) is None:
            at[position] = 0
            position -= 1
        if position < 0:
            return
        at[position] += 1


def fields_of(root: Vertex, total: int) -> dict[str, Any]:
    """The fields of a gang's spec that its tree decides. `total`: the minimum of all members, whatever is chosen."""
    minima = next(choices(root, Members({}, {})))
    return {
        "tree": root,
        "total": total,
        "branches": branches(root),
        "minima": minima,
        "minimum": max(total, sum(minima.values())),
        "topology": root.topology,
        "topology_of_role": {leaf.name: leaf.topology for leaf in leaves(root) if leaf.topology is not None},
    }
