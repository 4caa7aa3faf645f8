"""A registry for what only shows or counts gangs: of a gang whose objects cannot be read nothing but its name is known.

The scheduler itself uses the strict one, and holds such a gang (S8).
"""

from __future__ import annotations

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.faults import last_line
from enbloc.gangs.dialect import NOTHING, Changed
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership
from enbloc.gangs.registry import GangRegistry
from enbloc.gangs.single_pod import SinglePod
from enbloc.units import parse_timestamp


def bare_spec(key: GangKey, fault: str, obj: Obj | None, known: GangSpec | None = None) -> GangSpec:
    """A gang of whose values none is read. Its pods that run are evicted together or not at all."""
    created_ns = known.created_ns if known is not None else 0
    try:
        created_ns = parse_timestamp(obj["metadata"]["creationTimestamp"]) if obj is not None else created_ns
    except Exception:
        obj = None
    return GangSpec(
        key=key,
        title=known.title if known is not None else f"{key.namespace}/{key.name}",
        created_ns=created_ns,
        minimum=1,
        queue=known.queue if known is not None else DEFAULT_QUEUE,
        object=ref_of(obj) if obj is not None else None,
        object_uid=uid_of(obj) if obj is not None else "",
        evict_as_unit=True,
        fault=fault,
    )


class LenientRegistry(GangRegistry):
    """It raises nothing."""

    def observe(self, event: WatchEvent) -> Changed:
        try:
            return super().observe(event)
        except Exception:
            return NOTHING

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        try:
            return super().observe_pod(pod, gone)
        except Exception:
            return NOTHING

    def member(self, pod: Obj) -> Membership:
        try:
            return super().member(pod)
        except Exception:
            return Membership(GangKey(SinglePod.name, namespace_of(pod), name_of(pod)), "", None)

    def complaints(self, obj: Obj) -> list[str]:
        try:
            return super().complaints(obj)
        except Exception:
            return []

    def spec(self, key: GangKey) -> GangSpec | None:
        try:
            return super().spec(key)
        except Exception as failure:
            return bare_spec(key, last_line(failure), self.object(key))

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        try:
            return super().undeclared(key, created_ns, queue)
        except Exception as failure:
            return bare_spec(key, last_line(failure), None)

    def object(self, key: GangKey) -> Obj | None:
        try:
            return super().object(key)
        except Exception:
            return None

    def objects(self, key: GangKey) -> list[Obj]:
        try:
            return super().objects(key)
        except Exception:
            return []

    def home(self, key: GangKey) -> Obj | None:
        try:
            return super().home(key)
        except Exception:
            return None
