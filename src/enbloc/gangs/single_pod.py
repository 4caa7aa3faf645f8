"""A pod that uses no dialect: a gang of one."""

from __future__ import annotations

import msgspec

from enbloc.api.meta import Obj, annotations_of, name_of, namespace_of
from enbloc.api.writes import WatchEvent
from enbloc.gangs.claim_records import has_records
from enbloc.gangs.dialect import NOTHING, Changed
from enbloc.gangs.model import GangKey, GangSpec, Membership, with_records_of


class SinglePod:
    name = "pod"
    kinds: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._homes: dict[GangKey, Obj] = {}
        """Pods without a node, whatever their dialect: a single pod carries its own claim record. And bound ones from
        which a record is still to be removed."""

    def observe(self, event: WatchEvent) -> Changed:
        return NOTHING

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        key = self._key(pod)
        if gone or (pod["spec"].get("nodeName") and not has_records(annotations_of(pod))):
            self._homes.pop(key, None)
        else:
            self._homes[key] = pod
        return NOTHING

    def member(self, pod: Obj) -> Membership | None:
        return Membership(self._key(pod), "", None)

    def _key(self, pod: Obj) -> GangKey:
        return GangKey(self.name, namespace_of(pod), name_of(pod))

    def spec(self, key: GangKey) -> GangSpec | None:
        return None

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        spec = GangSpec(key=key, title=f"{key.namespace}/{key.name}", created_ns=created_ns, minimum=1, queue=queue)
        pod = self._homes.get(key)
        status = with_records_of(pod)
        return msgspec.structs.replace(spec, observed=status) if status.claims else spec

    def object(self, key: GangKey) -> Obj | None:
        return None

    def home(self, key: GangKey) -> Obj | None:
        return self._homes.get(key)

    def complaints(self, obj: Obj) -> tuple[str, ...]:
        return ()
