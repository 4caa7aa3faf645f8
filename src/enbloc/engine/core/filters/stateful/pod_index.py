"""Index from a pod to the entries whose selectors may match it, without evaluating every selector.

Most selectors require one value of one label. Their entries are indexed by that label and value, so a lookup visits
only the entries under the pod's own labels, and the few whose selectors require no label's value. Many jobs with terms
about their own pods therefore do not slow each other down.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from enbloc.engine.core.filters.filter import Placeable

Scope = frozenset[str] | None
"""The only namespaces in which a pod can match; `None`: all."""

Anchor = tuple[str, frozenset[str]] | None
"""A label key and the values of which a matching pod must have one; `None`: the selector requires no value."""

T = TypeVar("T")
Bucket = TypeVar("Bucket", bound=Hashable)


class PodIndex(Generic[T]):
    """Entries by key, each with the scope and anchor of its selector."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str | None, str, str], dict[Hashable, T]] = {}
        self._others: dict[str | None, dict[Hashable, T]] = {}

    def put(self, key: Hashable, scope: Scope, anchor: Anchor, entry: T) -> None:
        for namespace in _namespaces(scope, anchor):
            if anchor is None:
                self._others.setdefault(namespace, {})[key] = entry
            else:
                for value in anchor[1]:
                    self._anchored.setdefault((namespace, anchor[0], value), {})[key] = entry

    def remove(self, key: Hashable, scope: Scope, anchor: Anchor) -> None:
        """The exact inverse of `put`."""
        for namespace in _namespaces(scope, anchor):
            if anchor is None:
                _remove(self._others, namespace, key)
            else:
                for value in anchor[1]:
                    _remove(self._anchored, (namespace, anchor[0], value), key)

    def clear(self) -> None:
        self._anchored.clear()
        self._others.clear()

    def lookup(self, task: Placeable) -> Iterator[T]:
        """Every entry that may match a pod, once; the caller still evaluates its selector."""
        anchored, others = self._anchored, self._others
        for namespace in (task.namespace, None):
            if anchored:
                for label, value in task.labels.items():
                    found = anchored.get((namespace, label, value))
                    if found is not None:
                        yield from found.values()
            if namespace in others:
                yield from others[namespace].values()


def _namespaces(scope: Scope, anchor: Anchor) -> Iterable[str | None]:
    """Under which an entry is indexed. Of several namespaces and several values not every pair is."""
    if scope is None or (len(scope) > 1 and anchor is not None and len(anchor[1]) > 1):
        return (None,)
    return scope


def _remove(buckets: dict[Bucket, dict[Hashable, T]], bucket: Bucket, key: Hashable) -> None:
    del buckets[bucket][key]
    if not buckets[bucket]:
        del buckets[bucket]
