"""Things that are about some pods, found by a pod without asking each of them.

Most selectors ask for one value of one label. Whatever is about such pods is kept under that label, so a pod meets only
what its own labels lead to, and the few selectors that ask for no label's value. Jobs that each speak of their own pods
thus do not get in each other's way, however many there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from enbloc.engine.filters.filter import Placeable

Scope = frozenset[str] | None
"""The only namespaces in which a pod can be meant; `None`: all."""

Anchor = tuple[str, frozenset[str]] | None
"""A label, and the values of which a pod that is meant has one; `None`: that cannot be said."""

T = TypeVar("T")
Place = TypeVar("Place", bound=Hashable)


class PodIndex(Generic[T]):
    """By key, things that are about pods of a scope and an anchor."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str | None, str, str], dict[Hashable, T]] = {}
        self._others: dict[str | None, dict[Hashable, T]] = {}

    def put(self, key: Hashable, scope: Scope, anchor: Anchor, thing: T) -> None:
        for namespace in scope if scope is not None else (None,):
            if anchor is None:
                self._others.setdefault(namespace, {})[key] = thing
            else:
                for value in anchor[1]:
                    self._anchored.setdefault((namespace, anchor[0], value), {})[key] = thing

    def drop(self, key: Hashable, scope: Scope, anchor: Anchor) -> None:
        """The exact inverse."""
        for namespace in scope if scope is not None else (None,):
            if anchor is None:
                _take(self._others, namespace, key)
            else:
                for value in anchor[1]:
                    _take(self._anchored, (namespace, anchor[0], value), key)

    def clear(self) -> None:
        self._anchored.clear()
        self._others.clear()

    def near(self, task: Placeable) -> Iterator[T]:
        """All that may be about a pod, each once, and little else."""
        anchored, others = self._anchored, self._others
        for namespace in (task.namespace, None):
            if anchored:
                for label, value in task.labels.items():
                    found = anchored.get((namespace, label, value))
                    if found is not None:
                        yield from found.values()
            if namespace in others:
                yield from others[namespace].values()


def _take(things: dict[Place, dict[Hashable, T]], place: Place, key: Hashable) -> None:
    del things[place][key]
    if not things[place]:
        del things[place]
