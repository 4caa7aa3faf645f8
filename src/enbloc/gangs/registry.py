"""Which gangs there are: objects in every dialect go in, gang facts come out.

The book asks each dialect in turn; the first that a pod speaks decides which gang it belongs to. It counts nothing and
decides nothing.
"""

from __future__ import annotations

import re

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, name_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Arbitrator as ArbitratorSettings
from enbloc.config import Koordinator as KoordinatorSettings
from enbloc.gangs import hints
from enbloc.gangs.arbitrator import Arbitrator
from enbloc.gangs.dialect import Changed, Dialect, queue_named_by
from enbloc.gangs.koordinator import Koordinator
from enbloc.gangs.kubernetes import Kubernetes
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership
from enbloc.gangs.priority_classes import PRIORITY_CLASS, PriorityClasses
from enbloc.gangs.single_pod import Alone
from enbloc.gangs.volcano import Volcano

_INDEX_AT_END = re.compile(r"(\d{1,9})$", re.ASCII)


class GangRegistry:
    """All gangs of a cluster, as their authors wrote them."""

    kinds = Volcano.kinds | Koordinator.kinds | Kubernetes.kinds | Arbitrator.kinds | {PRIORITY_CLASS}

    def __init__(
        self,
        arbitrator: ArbitratorSettings = ArbitratorSettings(),  # noqa: B008 - it is frozen
        koordinator: KoordinatorSettings = KoordinatorSettings(),  # noqa: B008 - so is this
    ) -> None:
        self._priorities = PriorityClasses()
        self._dialects: tuple[Dialect, ...] = (
            Volcano(self._priorities),
            Koordinator(koordinator),
            Kubernetes(self._priorities),
            Arbitrator(self._priorities, arbitrator),
            Alone(),
        )
        """In the order in which a pod is asked whether it speaks them."""
        self._by_name = {dialect.name: dialect for dialect in self._dialects}

    def observe(self, event: WatchEvent) -> Changed:
        """Takes an object in (any of `kinds`)."""
        if event.kind == PRIORITY_CLASS:
            self._priorities.observe(event.obj, event.type == "DELETED")
        return _all([dialect.observe(event) for dialect in self._dialects if event.kind in dialect.kinds])

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        return _all([dialect.observe_pod(pod, gone) for dialect in self._dialects])

    def member(self, pod: Obj) -> Membership:
        """The gang a pod belongs to: the first dialect that it speaks, else itself."""
        for dialect in self._dialects:
            found = dialect.member(pod)
            if found is not None:
                return found if found.number is not None else found._replace(number=index_of(name_of(pod)))
        raise AssertionError("a pod that speaks no dialect is a gang of one")

    def complaints(self, obj: Obj) -> list[str]:
        """What is wrong in a pod or a gang's object, and was read as something else."""
        if obj["kind"] == "Pod":
            found = [told for dialect in self._dialects for told in dialect.complaints(obj)]
            found += hints.complaints(obj)
            spoken = [dialect.name for dialect in self._dialects[:-1] if dialect.member(obj) is not None]
            if len(spoken) > 1:
                found.append(f"speaks of several gangs ({', '.join(spoken)}): its gang is that of {spoken[0]}")
            return found
        kind = kind_id(obj)
        asked = [dialect for dialect in self._dialects if kind in dialect.kinds and kind != PRIORITY_CLASS]
        found = [told for dialect in asked for told in dialect.complaints(obj)]
        return [*found, *hints.complaints(obj)] if asked else found

    def spec(self, key: GangKey) -> GangSpec | None:
        """The gang as it stands now; `None` if nobody wrote it down (its pods may exist all the same)."""
        return self._by_name[key.dialect].spec(key)

    def undeclared(self, key: GangKey, created: int, queue: str) -> GangSpec:
        """What is known of a gang that has pods and no object."""
        return self._by_name[key.dialect].undeclared(key, created, queue)

    def object(self, key: GangKey) -> Obj | None:
        """The object behind a gang, as it is now."""
        return self._by_name[key.dialect].object(key)

    def home(self, key: GangKey) -> Obj | None:
        """Where its claims are written: its object, or else one of its pods."""
        return self._by_name[key.dialect].home(key)


def _all(changes: list[Changed]) -> Changed:
    if len(changes) == 1:
        return changes[0]
    return Changed(
        tuple(key for change in changes for key in change.gangs),
        tuple(pod for change in changes for pod in change.pods),
    )


def index_of(name: str) -> int | None:
    """The number that ends a name (O2)."""
    match = _INDEX_AT_END.search(name)
    return int(match[1]) if match else None


def queue_hint(pod: Obj) -> str:
    """The queue that a pod without a group asks for."""
    return queue_named_by(pod) or DEFAULT_QUEUE
