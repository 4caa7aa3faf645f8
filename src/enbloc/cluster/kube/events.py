"""Events on a real cluster: the same word about the same object is one Event, whose count goes up.

Its name is made of what makes two Events the same (`saying_of`), so a restarted process, or another replica, finds the
one that is there instead of making its twin. How long it is kept is the API server's business.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent
from enbloc.cluster.events import Saying, event_object, saying_of
from enbloc.cluster.kube.discovery import EVENT
from enbloc.cluster.kube.http import MERGE_PATCH, Api, refusal
from enbloc.cluster.kube.objects import read_object
from enbloc.units import format_timestamp

KNOWN_MOST = 20_000


class Events:
    """Tells Events, and remembers how often the latest ones were told."""

    def __init__(self, api: Api, now: Callable[[], int]) -> None:
        self._api = api
        self._now = now
        self._counts: OrderedDict[str, int] = OrderedDict()  # by path, the latest last

    async def emit(self, said: EmitEvent) -> Obj | None:
        namespace = said.ref.namespace or "default"
        saying = saying_of(said)
        name = event_name(saying, said.ref.name)
        path = EVENT.object(namespace, name)
        at = format_timestamp(self._now())
        count = self._counts.get(path)
        if count is not None:
            told = await self._tell_again(path, count, at)
            if told is not None:
                return told
        body = msgspec.json.encode(event_object(said, namespace, name, at))
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
        return await self._tell_again(path, event.get("count") or 1, at)

    async def _tell_again(self, path: str, count: int, at: str) -> Obj | None:
        """One more; `None` if the Event is gone by now."""
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
        if len(self._counts) > KNOWN_MOST:
            self._counts.popitem(last=False)


def event_name(saying: Saying, object_name: str) -> str:
    digest = blake2b("\0".join(saying).encode(), digest_size=8).hexdigest()
    return f"{object_name[:200].rstrip('-.')}.{digest}"
