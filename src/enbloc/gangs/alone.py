"""The dialect of a pod that speaks none: a gang of one."""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs.dialect import NOTHING, Changed
from enbloc.gangs.model import GangKey, GangSpec, Membership


class Alone:
    name = "pod"
    kinds: frozenset[str] = frozenset()

    def observe(self, event: WatchEvent) -> Changed:
        return NOTHING

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        return NOTHING

    def member(self, pod: Obj) -> Membership | None:
        return Membership(GangKey(self.name, namespace_of(pod), name_of(pod)), "", None)

    def spec(self, key: GangKey) -> GangSpec | None:
        return None

    def undeclared(self, key: GangKey, created: int, queue: str) -> GangSpec:
        return GangSpec(key=key, title=f"{key.namespace}/{key.name}", created=created, minimum=1, queue=queue)

    def object(self, key: GangKey) -> Obj | None:
        return None

    def home(self, key: GangKey) -> Obj | None:
        return None

    def complaints(self, obj: Obj) -> tuple[str, ...]:
        return ()
