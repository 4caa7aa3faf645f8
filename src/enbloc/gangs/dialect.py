"""The protocol of a dialect: one API that declares gangs, read into the one model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from enbloc.api import kai, yunikorn
from enbloc.api.meta import Obj, annotations_of, condition_of, labels_of, name_of
from enbloc.api.reasons import PendingReason
from enbloc.api.volcano import QUEUE_KEYS
from enbloc.api.writes import WatchEvent
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership
from enbloc.units import instant_of

UNSCHEDULABLE: Final = "Unschedulable"
"""The condition of an object whose gang waits."""


class Changed(NamedTuple):
    """The effect of an event: gangs whose facts changed, and pods that may belong to another gang now."""

    gangs: tuple[GangKey, ...] = ()
    pods: tuple[Obj, ...] = ()


NOTHING = Changed()


class Dialect(Protocol):
    """One API that declares gangs. It caches the objects that declare them, and nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that declare its gangs, besides pods."""
        ...

    def observe(self, event: WatchEvent) -> Changed:
        """An object of its kinds was created, changed or deleted."""
        ...

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        """A pod was created, changed or deleted: for dialects in which pods declare gangs."""
        ...

    def member(self, pod: Obj) -> Membership | None:
        """The gang of a pod in this dialect; `None` if the pod names none."""
        ...

    def spec(self, key: GangKey) -> GangSpec | None:
        """A gang as it is declared now; `None` if it is not declared."""
        ...

    def undeclared(self, key: GangKey, created_ns: int, queue: str) -> GangSpec:
        """A gang that pods name and no object declares."""
        ...

    def object(self, key: GangKey) -> Obj | None:
        """The object that carries a gang's phase and conditions."""
        ...

    def home(self, key: GangKey) -> Obj | None:
        """The object that carries a gang's claim record: its own, or else one of its pods."""
        ...

    def complaints(self, obj: Obj) -> Iterable[str]:
        """Values in a pod, or in an object of its kinds, that are bad and replaced by a default."""
        ...


def refusal_of(job: Obj | None) -> str:
    """Why the object of a job's gang could not be created, as the job's condition says; empty if it could."""
    said = condition_of(job, UNSCHEDULABLE) if job is not None else None
    return str((said or {}).get("message") or "") if (said or {}).get("reason") == PendingReason.FAILED_CREATE else ""


def without_object(key: GangKey, job: Obj | None, minimum: object, queue: str) -> GangSpec | None:
    """The gang of a job whose own object could not be created: it waits, and says why (G10)."""
    refused = refusal_of(job)
    if job is None or not refused:
        return None
    return GangSpec(
        key=key,
        title=f"{key.namespace}/{name_of(job)}",
        created_ns=instant_of(job["metadata"].get("creationTimestamp")),
        minimum=max(minimum if isinstance(minimum, int) else 1, 1),
        queue=queue or DEFAULT_QUEUE,
        failed_create=refused,
    )


def queue_named_by(obj: Obj) -> str:
    """The queue that an annotation or label of an object names; empty if none does."""
    for where in (annotations_of(obj), labels_of(obj)):
        for key in QUEUE_KEYS:
            if where.get(key):
                return where[key]
    return labels_of(obj).get(kai.QUEUE) or yunikorn.queue_of(obj)
