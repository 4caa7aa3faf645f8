"""Events: what was said about an object, for people to read.

The same word about the same object is counted, not stored again. How many are kept is bounded, for one object and in
all; the ones said longest ago go first. Storing them is the store's.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from enbloc.api.meta import Obj
from enbloc.cluster.events import Saying

EVENTS_PER_OBJECT = 64
EVENTS_IN_ALL = 50_000


class EventBook:
    """Which Event object holds which saying, and which are to go."""

    def __init__(self, per_object: int = EVENTS_PER_OBJECT, in_all: int = EVENTS_IN_ALL) -> None:
        self._per_object = per_object
        self._in_all = in_all
        self._names: OrderedDict[Saying, tuple[str, str]] = OrderedDict()  # oldest first, and it is found at once
        self._about: dict[str, deque[Saying]] = {}
        self._count = 0

    def begin(self, count: int) -> None:
        """As many Events, or more, were named in an earlier life: no name is given twice."""
        self._count = count

    def recall(self, event: Obj) -> None:
        """An Event object of an earlier life."""
        involved = event.get("involvedObject") or {}
        group = involved.get("apiVersion", "").rpartition("/")[0]
        kind = f"{involved.get('kind', '')}.{group}" if group else involved.get("kind", "")
        about = involved.get("uid") or f"{kind}/{involved.get('namespace', '')}/{involved.get('name', '')}"
        said = [str(event.get(field) or "") for field in ("type", "reason", "message", "reportingComponent")]
        saying = Saying(about, *said)
        if saying not in self._names:
            self._names[saying] = (event["metadata"].get("namespace") or "", event["metadata"]["name"])
            self._about.setdefault(about, deque()).append(saying)

    def find(self, saying: Saying) -> tuple[str, str] | None:
        return self._names.get(saying)

    def add(self, saying: Saying, namespace: str, object_name: str) -> tuple[str, list[tuple[str, str]]]:
        """The new Event's name, and the (namespace, name) of those that must go for it."""
        self._count += 1
        name = f"{object_name[:200]}.{self._count:016x}"
        dropped = []
        about = self._about.setdefault(saying.about, deque())
        if len(about) >= self._per_object:
            dropped.append(self._names.pop(about.popleft()))
        if len(self._names) >= self._in_all:
            oldest, named = self._names.popitem(last=False)
            dropped.append(named)
            others = self._about[oldest.about]
            others.remove(oldest)
            if not others and oldest.about != saying.about:
                del self._about[oldest.about]
        about.append(saying)
        self._names[saying] = (namespace, name)
        return name, dropped

    def lose(self, saying: Saying) -> None:
        """The Event object was deleted by somebody else."""
        if self._names.pop(saying, None) is not None:
            others = self._about[saying.about]
            others.remove(saying)
            if not others:
                del self._about[saying.about]
