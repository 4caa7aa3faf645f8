"""What a Job and a QueueJob have in common as their controllers read them: the object and its minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from enbloc.api.meta import Obj, key_of, name_of, namespace_of, uid_of


class Plan(msgspec.Struct, frozen=True):
    """What a job's spec asks for. Works without admission too: what it would have defaulted is defaulted here."""

    obj: Obj
    minimum: int

    @property
    def namespace(self) -> str:
        return namespace_of(self.obj)

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def uid(self) -> str:
        return uid_of(self.obj)

    @property
    def key(self) -> str:
        """What its children know it by (S1)."""
        return key_of(self.obj)


P = TypeVar("P", bound=Plan)


def current_plan(known: P | None, obj: Obj, read: Callable[[Obj], P]) -> P | None:
    """The plan of an object: the known one while its spec is the same; `None` if the object cannot be read, which
    admission would have refused."""
    try:
        if known is not None and known.obj["spec"] == obj["spec"]:
            return msgspec.structs.replace(known, obj=obj)
        return read(obj)
    except (msgspec.ValidationError, KeyError):
        return None
