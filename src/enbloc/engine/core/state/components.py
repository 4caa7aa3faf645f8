"""Strongly connected components of a directed graph: the sets of vertices that reach each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_V = TypeVar("_V", bound=Hashable)


def strongly_connected(roots: Iterable[_V], successors: Callable[[_V], Iterable[_V]]) -> list[list[_V]]:
    """The components of all vertices that can be reached from the roots (Tarjan's algorithm, without recursion)."""
    found: list[list[_V]] = []
    number: dict[_V, int] = {}
    lowest: dict[_V, int] = {}
    """The lowest number on the path that a vertex reaches."""
    path: list[_V] = []
    on_path: set[_V] = set()
    walk: list[tuple[_V, Iterator[_V]]] = []

    def enter(vertex: _V) -> None:
        number[vertex] = lowest[vertex] = len(number)
        path.append(vertex)
        on_path.add(vertex)
        walk.append((vertex, iter(successors(vertex))))

    for root in roots:
        if root not in number:
            enter(root)
        while walk:
            vertex, left = walk[-1]
            for other in left:
                if other not in number:
                    enter(other)
                    break
                if other in on_path:
                    lowest[vertex] = min(lowest[vertex], number[other])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    lowest[above] = min(lowest[above], lowest[vertex])
                if lowest[vertex] == number[vertex]:
                    component = [path.pop()]
                    while component[-1] != vertex:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    found.append(component)
    return found
