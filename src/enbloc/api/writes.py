"""Changes of objects as values: watch events, and writes.

Controllers and the scheduler return writes; only the runtime executes them. A write that concerns one incarnation of an
object names its UID, so that a later object of the same name is never hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from enbloc.api.meta import Obj, Ref


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """The object as it is now or, if it was deleted, as it was last."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    obj: Obj
    old: Obj | None = None
    """The object before the change, if known: a watch with a selector needs it."""


class Create(msgspec.Struct, frozen=True):
    obj: Obj


class Patch(msgspec.Struct, frozen=True):
    """A JSON merge patch. `subresource="status"` touches the status only, `""` everything but the status."""

    ref: Ref
    patch: dict[str, Any]
    subresource: Literal["", "status"] = ""
    uid: str = ""
    resource_version: str = ""


class Delete(msgspec.Struct, frozen=True):
    ref: Ref
    uid: str = ""
    grace_s: int | None = None


class BindPod(msgspec.Struct, frozen=True):
    """A Binding; its annotations are copied to the pod by the API server (G11)."""

    namespace: str
    name: str
    uid: str
    node: str
    annotations: dict[str, str] = {}


class EvictPod(msgspec.Struct, frozen=True):
    """Sets the pod's DisruptionTarget condition, with the reason, and deletes the pod."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class EmitEvent(msgspec.Struct, frozen=True):
    """An Event on an object. Repeats of the same one are counted, not stored again."""

    ref: Ref
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    component: str = "enbloc"
    also: tuple[tuple[Ref, str], ...] = ()
    """Other objects, with their UIDs, that get the same Event: the Job of a PodGroup."""
    related: Ref | None = None
    """The gang's object, where this Event is on a pod or on the Job of the gang."""

    def each(self) -> Iterator[EmitEvent]:
        """One Event for each object."""
        yield self
        for ref, uid in self.also:
            yield EmitEvent(ref, uid, self.type, self.reason, self.message, self.component, related=self.ref)


Write = Create | Patch | Delete | BindPod | EvictPod | EmitEvent


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""Of a refusal, by its code."""


class Refused(Exception):
    """The API refused a write. `code` and `reason` are those of a Kubernetes Status.

    `existing`: the object of that name, where the reason is AlreadyExists and it was fetched. `name`: that of the
    object that was to be created, where it is known: the address of a creation does not name it.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        faults: tuple[Any, ...] = (),
        existing: Obj | None = None,
        name: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.faults = faults
        self.existing = existing
        self.name = name


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386. Never changes its arguments; untouched parts are shared, not copied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
