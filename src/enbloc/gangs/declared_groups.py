"""What dialects have in common whose gangs are declared by one object each, a PodGroup: the cache of these objects.

Which pods belong to a gang, and how its object is read, is the dialect's own.
"""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Koordinator
from enbloc.gangs.dialect import NOTHING, Changed
from enbloc.gangs.gang_priority import GangPriorities, is_about
from enbloc.gangs.model import GangKey, GangSpec, without_group


class DeclaredGroups:
    name: str

    def __init__(self, priorities: GangPriorities, koordinator: Koordinator = Koordinator()) -> None:  # noqa: B008
        """`koordinator`: how long gangs wait that say nothing of it, where Koordinator's annotations count (K1)."""
        self._priorities = priorities
        self._default_waiting_ns = koordinator.default_waiting_ns
        self._groups: dict[GangKey, Obj] = {}

    def observe(self, event: WatchEvent) -> Changed:
        if event.kind in GangPriorities.kinds:
            return Changed(tuple(key for key in sorted(self._groups) if is_about(event, key)))
        return self._observe_group(event.obj, event.type == "DELETED")

    def _observe_group(self, group: Obj, gone: bool) -> Changed:
        key = GangKey(self.name, namespace_of(group), name_of(group))
        if gone:
            self._groups.pop(key, None)
        else:
            self._groups[key] = group
        return Changed((key,))

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        return NOTHING

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        return without_group(key, created_ns, queue)

    def object(self, key: GangKey) -> Obj | None:
        return self._groups.get(key)

    def home(self, key: GangKey) -> Obj | None:
        return self._groups.get(key)
