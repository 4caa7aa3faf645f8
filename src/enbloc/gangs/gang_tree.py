"""The tree of a gang whose groups of members are grouped again (T0): which of them start together.

A leaf is a role with a minimum of members. An inner vertex has a minimum of children: if it has more, there is a
choice. A *choice* is the minima of the leaves that were chosen, by role; those that have started come first, then those
whose members exist, then the first in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice, product
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.gangs.topology import TopologyConstraint

CHOICES_BOUND: Final = 64
"""At most 64 choices are looked at for one gang."""


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


def leaves(vertex: Vertex) -> Iterator[Vertex]:
    if not vertex.children:
        yield vertex
    for child in vertex.children:
        yield from leaves(child)


def branches(root: Vertex) -> dict[str, Branch]:
    """By leaf; leaves right below the root are left out."""
    found: dict[str, Branch] = {}

    def climb_down(vertex: Vertex, above: Branch) -> None:
        for child in vertex.children:
            if not child.children:
                if above.path:
                    found[child.name] = above
                continue
            path = (*above.path, child.name)
            own = ((path, child.topology),) if child.topology is not None else ()
            climb_down(child, Branch(path, (*above.constraints, *own)))

    climb_down(root, Branch((), ()))
    return found


class Members(NamedTuple):
    """What there is of a gang's members, by role."""

    exist: Mapping[str, int]
    placed: Mapping[str, int]
    """Those that count towards minima now."""
    committed: Mapping[str, int] = {}
    """The minima that were bound once."""


def is_complete(vertex: Vertex, counts: Mapping[str, int]) -> bool:
    """Whether the minimum of a vertex is met."""
    if not vertex.children:
        return counts.get(vertex.name, 0) >= vertex.minimum
    return sum(is_complete(child, counts) for child in vertex.children) >= vertex.minimum


def choices(vertex: Vertex, members: Members) -> Iterator[dict[str, int]]:
    """The minima of the leaves that were chosen, the best choice first; at least one."""
    yield from islice(_choices(vertex, members), CHOICES_BOUND)


def _choices(vertex: Vertex, members: Members) -> Iterator[dict[str, int]]:
    if not vertex.children:
        yield {vertex.name: vertex.minimum} if vertex.minimum > 0 else {}
        return
    ordered = sorted(vertex.children, key=lambda child: _rank(child, members))
    possible = sum(is_complete(child, members.exist) for child in ordered)
    if possible >= vertex.minimum:
        ordered = [child for child in ordered if is_complete(child, members.exist)]
    for chosen in combinations(ordered, min(vertex.minimum, len(ordered))):
        for parts in product(*(list(islice(_choices(child, members), CHOICES_BOUND)) for child in chosen)):
            yield {role: count for part in parts for role, count in part.items()}


def _rank(vertex: Vertex, members: Members) -> tuple[bool, bool, bool, bool]:
    """Sorts children; the order in which they are declared is kept among equals."""
    roles = [leaf.name for leaf in leaves(vertex)]
    has_none = not any(members.placed.get(role, 0) for role in roles)
    return (
        not is_complete(vertex, members.committed),
        not is_complete(vertex, members.placed),
        has_none,
        not is_complete(vertex, members.exist),
    )


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
