"""What the controller of every workload kind works with: an owner, the objects that it controls, and its writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, controller_reference, namespace_of, uid_of
from enbloc.api.writes import Create, Delete, EmitEvent, Patch, Write
from enbloc.controllers.merge_diff import difference

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels: no accidental words."""


class Surroundings(Protocol):
    """Objects beside an owner's own that its kind reads."""

    def nodes(self) -> Iterable[Obj]: ...

    def has_claim(self, namespace: str, name: str) -> bool:
        """Whether a PersistentVolumeClaim exists."""
        ...

    def owned_by(self, owner: Obj) -> list[Obj]:
        """The objects that another one controls: the pods of a Deployment's ReplicaSet."""
        ...


class Outcome(NamedTuple):
    """What one owner needs now."""

    writes: list[Write]
    due_ns: int | None = None
    """When to look again if nothing changes."""


def dig(obj: Any, *path: str) -> Any:
    """The value at a path; `None` if there is none."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def status_patch(owner: Obj, wanted: Mapping[str, Any]) -> list[Write]:
    """The write that gives the owner this status: none if it has it. A `None` removes the field."""
    patch = difference(owner.get("status") or {}, dict(wanted))
    if not patch:
        return []
    version = owner["metadata"].get("resourceVersion") or ""
    return [Patch(ref_of(owner), {"status": patch}, "status", uid_of(owner), version)]


def patch(owner: Obj, change: dict[str, Any]) -> Patch:
    version = owner["metadata"].get("resourceVersion") or ""
    return Patch(ref_of(owner), change, uid=uid_of(owner), resource_version=version)


def delete(obj: Obj) -> Delete:
    return Delete(ref_of(obj), uid_of(obj))


def event(
    owner: Obj, reason: str, message: str, component: str, kind: Literal["Normal", "Warning"] = "Normal"
) -> EmitEvent:
    return EmitEvent(ref_of(owner), uid_of(owner), kind, reason, message, component)


def new_pod(
    owner: Obj,
    template: dict[str, Any],
    *,
    name: str = "",
    generate_name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    spec: dict[str, Any] | None = None,
) -> Create:
    """A pod of a template. `spec`: in place of the template's own."""
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {"namespace": namespace_of(owner), "ownerReferences": [controller_reference(owner)]}
    metadata |= {"name": name} if name else {"generateName": generate_name}
    for key, more in (("labels", labels), ("annotations", annotations)):
        texts = {**(given.get(key) or {}), **(more or {})}
        if texts:
            metadata[key] = texts
    kept = [*(given.get("finalizers") or ()), *finalizers]
    if kept:
        metadata["finalizers"] = kept
    spec = template["spec"] if spec is None else spec
    return Create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def short_hash(value: Any) -> str:
    """Ten characters that are the same for equal JSON, fit for a name and a label."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def without_empty(value: Any) -> Any:
    """JSON without nulls, empty texts, lists and mappings: clients that decode an object and send it back add some."""
    if isinstance(value, dict):
        kept = {key: without_empty(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, "", [], {})}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def share_of(value: int | str | None, total: int, *, up: bool, default: int = 0) -> int:
    """A number of pods, or a share of all (`25%`) rounded up or down."""
    if isinstance(value, int):
        return max(value, 0)
    digits = value.removesuffix("%") if value else ""
    if not value or not value.endswith("%") or not (digits.isascii() and digits.isdecimal() and len(digits) < 5):
        return default
    parts = total * int(digits)
    return -(-parts // 100) if up else parts // 100


def condition(
    owner: Obj, kind: str, status: str, reason: str, message: str, at: str, *, updates: bool = False
) -> dict[str, Any]:
    """A status condition; its transition time is kept while its status is. `updates`: it has `lastUpdateTime`."""
    found: dict[str, Any] = {}
    for known in dig(owner, "status", "conditions") or ():
        if known.get("type") == kind:
            found = known
    same = found.get("status") == status
    made = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": (found.get("lastTransitionTime") if same else None) or at,
    }
    if updates:
        unchanged = same and found.get("reason") == reason and found.get("message") == message
        made["lastUpdateTime"] = (found.get("lastUpdateTime") if unchanged else None) or at
    return made


def with_conditions(owner: Obj, *made: dict[str, Any]) -> list[dict[str, Any]]:
    """The owner's conditions, with these in place of those of their type."""
    by_type = {one["type"]: one for one in made}
    kept = [by_type.pop(one.get("type"), one) for one in dig(owner, "status", "conditions") or ()]
    return [*kept, *by_type.values()]
