"""Events on a real cluster: a repeated Event is one object whose count goes up.

Its name is a hash of its key (`event_key`), so a restarted process, or another replica, finds the existing Event
instead of creating a second one. The API server decides how long it is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent
from enbloc.cluster.events import EventKey, event_key, event_object
from enbloc.cluster.kube.discovery import EVENT
from enbloc.cluster.kube.http import MERGE_PATCH, Api, refusal
from enbloc.cluster.kube.objects import read_object
from enbloc.units import format_timestamp

COUNTS_BOUND = 20_000
"""Counts are remembered for at most this many Events; those of the others are read again."""


class Events:
    """Writes Events, and remembers the counts of the latest ones."""

    def __init__(self, api: Api, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        self._counts: OrderedDict[str, int] = OrderedDict()  # by path, the latest last

    async def emit(self, emitted: EmitEvent) -> Obj | None:
        namespace = emitted.ref.namespace or "default"
        key = event_key(emitted)
        name = event_name(key, emitted.ref.name)
        path = EVENT.object(namespace, name)
        at = format_timestamp(self._now())
        count = self._counts.get(path)
        if count is not None:
            counted = await self._count_up(path, count, at)
            if counted is not None:
                return counted
        body = msgspec.json.encode(event_object(emitted, namespace, name, at))
        answer = await self._api.write("POST", EVENT.collection(namespace), body)
        if answer.is_good:
            self._remember(path, 1)
            return None
        if answer.status != 409:
            raise refusal(answer)
        existing = await self._api.read(path)
        if not existing.is_good:
            raise refusal(existing)
        event = read_object(existing.body)
        if answer.unsure and event.get("lastTimestamp") == at:
            self._remember(path, event.get("count") or 1)
            return event
        return await self._count_up(path, event.get("count") or 1, at)

    async def _count_up(self, path: str, count: int, at: str) -> Obj | None:
        """Increments the count; `None` if the Event is gone."""
        body = msgspec.json.encode({"count": count + 1, "lastTimestamp": at})
        self._remember(path, count + 1)
        answer = await self._api.write("PATCH", path, body, MERGE_PATCH)
        if answer.status == 404:
            self._counts.pop(path, None)
            return None
        if not answer.is_good:
            raise refusal(answer)
        return read_object(answer.body)

    def _remember(self, path: str, count: int) -> None:
        self._counts[path] = count
        self._counts.move_to_end(path)
        if len(self._counts) > COUNTS_BOUND:
            self._counts.popitem(last=False)


def event_name(key: EventKey, object_name: str) -> str:
    digest = blake2b("\0".join(key).encode(), digest_size=8).hexdigest()
    return f"{object_name[:200].rstrip('-.')}.{digest}"
