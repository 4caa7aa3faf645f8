"""The parts that every object has (kind, name, labels, owners), and faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from enbloc.units import Quantity, Requirement, Selector, parse_timestamp

Obj = dict[str, Any]
"""A Kubernetes object as plain JSON. Never changed in place once it has been passed on."""

Quantities = dict[str, Quantity]


class Fault(msgspec.Struct, frozen=True):
    """Something wrong in an object: the field, and what to do about it. A value, never an exception."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Ref(NamedTuple):
    """The name of one object: `kind` is a kind's id (`Pod`, `Job.batch.volcano.sh`), see `kinds`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        short = self.kind.partition(".")[0]
        return f"{short} {self.namespace}/{self.name}" if self.namespace else f"{short} {self.name}"


class View(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """Base of every typed view: camelCase on the wire, unknown fields ignored (they stay in the raw object)."""


class OwnerReference(View):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(View):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class TypedObject(View):
    """Base of the views on whole objects."""

    api_version: str
    kind: str
    metadata: ObjectMeta


class LabelSelectorRequirement(View):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(View):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


def selector_of(view: LabelSelector | None) -> Selector | None:
    """The selector a user wrote; `None`, which matches nothing, where there is none. May raise `ValueError`."""
    if view is None:
        return None
    requirements = [Requirement(key, "In", [value]) for key, value in (view.match_labels or {}).items()]
    for expression in view.match_expressions or ():
        if expression.operator in ("Gt", "Lt"):
            raise ValueError(f"operator {expression.operator} is for nodes only")
        requirements.append(Requirement(expression.key, expression.operator, expression.values or ()))
    return Selector(requirements)


_NOTHING: Mapping[str, str] = {}


def name_of(obj: Obj) -> str:
    name: str = obj["metadata"]["name"]
    return name


def namespace_of(obj: Obj) -> str:
    return obj["metadata"].get("namespace") or ""


def uid_of(obj: Obj) -> str:
    return obj["metadata"].get("uid") or ""


def labels_of(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or _NOTHING


def annotations_of(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or _NOTHING


def controller_of(obj: Obj) -> dict[str, Any] | None:
    """The owner reference that says `controller: true`, if there is one."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: dict[str, Any] = owner
            return found
    return None


def key_of(owner: Obj) -> str:
    """What an object is known by to those that name it as their owner, see `owner_key`."""
    return f"{namespace_of(owner)}/{uid_of(owner)}"


def owner_key(child: Obj, reference: Mapping[str, Any] | None) -> str:
    """The key of the owner that a reference names. An owner counts only within its child's own namespace (S1), so its
    UID alone is no key; owners without a namespace are found by `may_own`."""
    return f"{namespace_of(child)}/{(reference or {}).get('uid') or ''}"


def may_own(owner_namespace: str, child_namespace: str) -> bool:
    """Whether an owner counts: it is in its child's own namespace, or in none (S1)."""
    return owner_namespace in ("", child_namespace)


def controller_key(obj: Obj, *kinds: str) -> str:
    """The key of the controlling owner if it is of one of these kinds; empty without one."""
    reference = controller_of(obj)
    return owner_key(obj, reference) if reference is not None and kind_named(reference) in kinds else ""


def kind_named(reference: Mapping[str, Any]) -> str:
    """The id of the kind that an owner reference names."""
    group, slash, _ = str(reference.get("apiVersion") or "").partition("/")
    return f"{reference.get('kind')}.{group}" if slash else str(reference.get("kind"))


def controller_reference(obj: Obj) -> dict[str, Any]:
    """The owner reference of an object that `obj` controls."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": name_of(obj),
        "uid": uid_of(obj),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned_metadata(owner: Obj, name: str, **more: Any) -> dict[str, Any]:
    """The metadata of an object that `owner` controls, in its namespace."""
    return {"name": name, "namespace": namespace_of(owner), **more, "ownerReferences": [controller_reference(owner)]}


def created_ns_of(obj: Obj) -> int:
    """When it was created; 0 if it does not say."""
    stamp = obj["metadata"].get("creationTimestamp")
    return parse_timestamp(stamp) if stamp else 0


def is_terminating(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def condition_of(obj: Obj, kind: str) -> dict[str, Any] | None:
    """The status condition of that type, if there is one."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            found: dict[str, Any] = condition
            return found
    return None


def holds(obj: Obj, kind: str) -> dict[str, Any] | None:
    """The status condition of that type if it is True."""
    found = condition_of(obj, kind)
    return found if found is not None and found.get("status") == "True" else None


def number_in(text: str | None) -> int | None:
    """The index in a label; `None` if it is not a number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None


def as_written(obj: Obj) -> tuple[Any, ...]:
    """What the author of an object wrote: all but the status and what the API server counts."""
    metadata = obj["metadata"]
    return obj.get("spec"), metadata.get("annotations"), metadata.get("labels"), metadata.get("ownerReferences")
