"""What a dialect is: a way in which people write gangs down, read into the one model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from enbloc.api.meta import Obj, annotations_of, labels_of
from enbloc.api.volcano import QUEUE_KEYS
from enbloc.api.writes import WatchEvent
from enbloc.gangs.model import GangKey, GangSpec, Membership


class Changed(NamedTuple):
    """What an event means for gangs: those whose facts changed, and pods that may belong elsewhere now."""

    gangs: tuple[GangKey, ...] = ()
    pods: tuple[Obj, ...] = ()


NOTHING = Changed()


class Dialect(Protocol):
    """One way to write gangs down. It remembers the objects that define its gangs, and nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that define its gangs (pods aside)."""
        ...

    def observe(self, event: WatchEvent) -> Changed:
        """An object of its kinds came, changed or went."""
        ...

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        """A pod came, changed or went: for dialects in which pods themselves say what their gang is."""
        ...

    def member(self, pod: Obj) -> Membership | None:
        """The gang a pod belongs to in this dialect; `None` if it does not speak it."""
        ...

    def spec(self, key: GangKey) -> GangSpec | None:
        """A gang as it stands now; `None` if nobody wrote it down."""
        ...

    def undeclared(self, key: GangKey, created: int, queue: str) -> GangSpec:
        """What is known of a gang that nobody wrote down, though pods say they belong to it."""
        ...

    def object(self, key: GangKey) -> Obj | None:
        """The object on which a gang's phase and conditions are written, as it is now."""
        ...

    def home(self, key: GangKey) -> Obj | None:
        """Where a gang's claims are written: its object, or else one of its pods."""
        ...

    def complaints(self, obj: Obj) -> Iterable[str]:
        """What is wrong in a pod, or in an object of its kinds, and was read as something else."""
        ...


def queue_named_by(obj: Obj) -> str:
    """The queue that an object asks for by annotation or label; empty if it names none."""
    for where in (annotations_of(obj), labels_of(obj)):
        for key in QUEUE_KEYS:
            if where.get(key):
                return where[key]
    return ""


def number_in(text: str | None) -> int | None:
    """An index as a label says it; `None` if it says none."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
