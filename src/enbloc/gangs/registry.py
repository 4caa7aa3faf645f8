"""The gangs of a cluster: objects of every dialect go in, gang facts come out.

The registry asks each dialect in turn; the first in which a pod names a gang decides. It counts nothing and decides
nothing.
"""

from __future__ import annotations

import re

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, labels_of, name_of, namespace_of, number_in
from enbloc.api.workloads import COMPLETION_INDEX
from enbloc.api.writes import WatchEvent
from enbloc.config import Arbitrator as ArbitratorSettings
from enbloc.config import Config, Tenancy
from enbloc.config import Koordinator as KoordinatorSettings
from enbloc.config.owner_kinds import OwnerKind
from enbloc.gangs import hints
from enbloc.gangs.arbitrator import Arbitrator
from enbloc.gangs.dialect import NOTHING, Changed, Dialect, queue_named_by
from enbloc.gangs.gang_priority import GangPriorities
from enbloc.gangs.kai import Kai
from enbloc.gangs.koordinator import Koordinator
from enbloc.gangs.kubernetes import Kubernetes
from enbloc.gangs.kubernetes_workload import KubernetesWorkload
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership
from enbloc.gangs.owner import Owner
from enbloc.gangs.single_pod import SinglePod
from enbloc.gangs.volcano import Volcano
from enbloc.gangs.workload import Workload
from enbloc.gangs.yunikorn import Yunikorn

CONDITIONS_READ = frozenset({Arbitrator.name})
"""Dialects that read the conditions of pods: there it says that a SchedulingSpec was deleted (decision 0018)."""
_IMPLICIT = frozenset({Owner.name, SinglePod.name})
"""Dialects whose gangs a pod does not name."""
_VALUES_ON_PODS = frozenset({Koordinator.name, Yunikorn.name})
"""Dialects in which pods carry values that can be bad; in the others only gangs' objects do."""
_INDEX_AT_END = re.compile(r"(\d{1,9})$", re.ASCII)


class GangRegistry:
    """All gangs of a cluster, as their objects declare them."""

    kinds: frozenset[str] = frozenset[str]().union(
        *(
            dialect.kinds
            for dialect in (
                Volcano,
                Koordinator,
                Kubernetes,
                KubernetesWorkload,
                Kai,
                Arbitrator,
                Workload,
                GangPriorities,
            )
        )
    )

    def __init__(
        self,
        arbitrator: ArbitratorSettings = ArbitratorSettings(),  # noqa: B008 - it is frozen
        koordinator: KoordinatorSettings = KoordinatorSettings(),  # noqa: B008 - so is this
        tenancy: Tenancy = Tenancy(),  # noqa: B008 - and this
        owner_kinds: tuple[OwnerKind, ...] = (),
    ) -> None:
        """`owner_kinds`: the kinds whose pods are grouped by owner."""
        self._priorities = GangPriorities(tenancy)
        self._dialects: tuple[Dialect, ...] = (
            Volcano(self._priorities, koordinator),
            Koordinator(koordinator),
            Kubernetes(self._priorities, koordinator),
            KubernetesWorkload(),
            Kai(self._priorities),
            Yunikorn(),
            Arbitrator(self._priorities, arbitrator),
            Workload(),
            Owner(owner_kinds),
            SinglePod(),
        )
        """In order of precedence."""
        self._named = tuple(dialect for dialect in self._dialects if dialect.name not in _IMPLICIT)
        self._with_values_on_pods = tuple(dialect for dialect in self._dialects if dialect.name in _VALUES_ON_PODS)
        self.kinds = GangRegistry.kinds | {entry.kind for entry in owner_kinds}
        self._by_name = {dialect.name: dialect for dialect in self._dialects}

    @classmethod
    def of(cls, config: Config) -> GangRegistry:
        """The registry of a scheduler with this config."""
        return cls(config.arbitrator, config.koordinator, config.tenancy, config.group_by_owner.active)

    def observe(self, event: WatchEvent) -> Changed:
        """An object of `kinds` was created, changed or deleted."""
        if event.kind in GangPriorities.kinds and not self._priorities.observe(event):
            return Changed()
        return _all([dialect.observe(event) for dialect in self._dialects if event.kind in dialect.kinds])

    def reads(self, key: GangKey) -> bool:
        """Whether it is a gang's, of a known dialect."""
        return key.dialect in self._by_name

    def keys_of(self, kind: str, obj: Obj) -> tuple[GangKey, ...]:
        """The gangs that an object of this kind may declare under its own name."""
        asked = [dialect for dialect in self._dialects if kind in dialect.kinds - GangPriorities.kinds]
        return tuple(GangKey(dialect.name, namespace_of(obj), name_of(obj)) for dialect in asked)

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        return _all([dialect.observe_pod(pod, gone) for dialect in self._dialects])

    def member(self, pod: Obj) -> Membership:
        """The gang of a pod: in the first dialect that it uses, else itself."""
        for dialect in self._dialects:
            found = dialect.member(pod)
            if found is not None:
                return found if found.number is not None else found._replace(number=_number_of(pod))
        raise AssertionError("a pod that uses no dialect is a gang of one")

    def complaints(self, obj: Obj) -> list[str]:
        """The bad values of a pod or a gang's object, which were replaced by defaults."""
        if obj["kind"] == "Pod":
            found = [differing for dialect in self._with_values_on_pods for differing in dialect.complaints(obj)]
            found += hints.complaints(obj)
            used = [dialect.name for dialect in self._named if dialect.member(obj) is not None]
            if len(used) > 1:
                found.append(f"names gangs of several APIs ({', '.join(used)}): the one of {used[0]} counts")
            return found
        kind = kind_id(obj)
        asked = [dialect for dialect in self._dialects if kind in dialect.kinds - GangPriorities.kinds]
        found = [differing for dialect in asked for differing in dialect.complaints(obj)]
        return [*found, *hints.complaints(obj)] if asked else found

    def spec(self, key: GangKey) -> GangSpec | None:
        """The gang as it is declared now; `None` if no object declares it, though its pods may exist."""
        return self._by_name[key.dialect].spec(key)

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """A gang that has pods and no object."""
        return self._by_name[key.dialect].undeclared(key, created_ns, queue)

    def object(self, key: GangKey) -> Obj | None:
        """The object that carries a gang's phase and conditions."""
        return self._by_name[key.dialect].object(key)

    def objects(self, key: GangKey) -> list[Obj]:
        """The objects whose author may have set constraints for the gang: its own, and the Job that it comes from."""
        found = self.object(key)
        dialect = self._by_name[key.dialect]
        if isinstance(dialect, Kubernetes):
            return dialect.objects(key)
        job = dialect.job(found) if isinstance(dialect, Volcano) and found is not None else None
        return [obj for obj in (found, job) if obj is not None]

    def home(self, key: GangKey) -> Obj | None:
        """The object that carries its claim record: its own, or else one of its pods."""
        return self._by_name[key.dialect].home(key)


def _all(changes: list[Changed]) -> Changed:
    changes = [change for change in changes if change is not NOTHING]
    if not changes:
        return NOTHING
    if len(changes) == 1:
        return changes[0]
    return Changed(
        tuple(key for change in changes for key in change.gangs),
        tuple(pod for change in changes for pod in change.pods),
    )


def _number_of(pod: Obj) -> int | None:
    """Its index (O2): that of an Indexed Job, else the number that ends its name."""
    number = number_in(labels_of(pod).get(COMPLETION_INDEX))
    return number if number is not None else index_of(name_of(pod))


def index_of(name: str) -> int | None:
    """The number that ends a name (O2)."""
    match = _INDEX_AT_END.search(name)
    return int(match[1]) if match else None


def queue_hint(pod: Obj) -> str:
    """The queue of a pod without a PodGroup."""
    return queue_named_by(pod) or DEFAULT_QUEUE
