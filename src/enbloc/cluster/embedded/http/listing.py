"""Lists: which objects, at which version, and in which pages.

Later pages are cut from the list as it was when the first page was requested. Objects never change in place, so keeping
such a list costs its references; their number and age are bounded. A request for a page of a list that is no longer
kept gets 410 and a token to continue with the present list.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.queries import ListQuery
from enbloc.cluster.embedded.http.resources import Target
from enbloc.cluster.embedded.http.selectors import Test, both, field_test, label_test, selected_name
from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import SECOND

SNAPSHOTS = 64
SNAPSHOT_KEPT = 300 * SECOND


class Page(msgspec.Struct, frozen=True):
    """Part of a list, or all of it."""

    items: list[Obj]
    version: int
    after: str = ""
    """The token for the next page; empty on the last one."""
    remaining: int | None = None


class _Token(msgspec.Struct):
    """Where the next page begins. `snapshot` 0: in the list of that time."""

    snapshot: int
    namespace: str
    name: str


class _Snapshot(msgspec.Struct, frozen=True):
    made_at: int
    what: tuple[str, str, str, str]
    items: list[Obj]
    version: int


class Lists:
    """Serves lists, and keeps those that are read page by page."""

    def __init__(self, store: Store, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._snapshots: OrderedDict[int, _Snapshot] = OrderedDict()
        self._count = 0

    def page(self, target: Target, asked: ListQuery) -> Page:
        what = (target.kind.id, target.namespace, asked.labels, asked.fields)
        if asked.after:
            return self._next_page(target, asked, what)
        self._check_version(asked)
        items = self.matching(target, asked)
        version = self._store.version
        if not asked.limit or len(items) <= asked.limit:
            return Page(items, version)
        self._count += 1
        self._snapshots[self._count] = _Snapshot(self._now(), what, items, version)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return _cut(items, 0, asked.limit, version, self._count)

    def matching(self, target: Target, asked: ListQuery) -> list[Obj]:
        """The objects of a collection that match the selectors."""
        test = tests(target, asked)
        name = selected_name(asked.fields)
        if name and (target.namespace or not target.kind.namespaced):
            found = self._store.get(target.kind.id, target.namespace, name)
            items = [found] if found is not None else []
        else:
            items = self._store.list(target.kind.id, target.namespace or None)[0]
        return items if test is None else [obj for obj in items if test(obj)]

    def _check_version(self, asked: ListQuery) -> None:
        if not asked.version or asked.version == "0":
            return
        version, present = int(asked.version), self._store.version
        if version > present:
            raise refusal(504, f"Too large resource version: {version}, current: {present}")
        if asked.version_match == "Exact" and version != present:
            raise refusal(410, f"The provided resource version is too old: {version} ({present})")

    def _next_page(self, target: Target, asked: ListQuery, what: tuple[str, str, str, str]) -> Page:
        token = _read_token(asked.after)
        if asked.version and asked.version != "0":
            raise refusal(400, "specifying resource version is not allowed when using continue")
        snapshot = self._snapshots.get(token.snapshot)
        if snapshot is not None and self._now() - snapshot.made_at > SNAPSHOT_KEPT:
            del self._snapshots[token.snapshot]
            snapshot = None
        if token.snapshot == 0:
            items, version, number = self.matching(target, asked), self._store.version, 0
        elif snapshot is None or snapshot.what != what:
            raise refusal(
                410,
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter.",
            )
        else:
            items, version, number = snapshot.items, snapshot.version, token.snapshot
        begin = _position(items, (token.namespace, token.name))
        return _cut(items, begin, asked.limit or len(items), version, number)


def tests(target: Target, asked: ListQuery) -> Test | None:
    """The selectors as one test; `None` if there are none."""
    return both(label_test(asked.labels), field_test(target.kind.id, asked.fields))


def _position(items: list[Obj], last: tuple[str, str]) -> int:
    """The index of the first object after `last`."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if (namespace_of(items[middle]), name_of(items[middle])) <= last:
            low = middle + 1
        else:
            high = middle
    return low


def _cut(items: list[Obj], begin: int, limit: int, version: int, snapshot: int) -> Page:
    end = begin + limit
    if end >= len(items):
        return Page(items[begin:], version)
    last = items[end - 1]
    token = _Token(snapshot, namespace_of(last), name_of(last))
    after = base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")
    return Page(items[begin:end], version, after, len(items) - end)


def _read_token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        raise refusal(400, "continue key is not valid") from None
