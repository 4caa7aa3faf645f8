"""Decodes request bodies in Kubernetes' protobuf envelope, as far as kubectl sends them.

Newer clients send the small kinds that `kubectl create` makes, and reviews, evictions and options, in protobuf, even to
a server that never answers in it. This is a reader for those messages and no others: field numbers are part of the wire
format. `_MESSAGES` has the names and types of fields; unknown fields are skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import SECOND, format_timestamp

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

_MESSAGES = """
Unknown: 1 typeMeta TypeMeta, 2 raw bytes
TypeMeta: 1 apiVersion, 2 kind
ObjectMeta: 1 name, 2 generateName, 3 namespace, 5 uid, 6 resourceVersion, 8 creationTimestamp Time,
  9 deletionTimestamp Time, 10 deletionGracePeriodSeconds int, 11 labels map, 12 annotations map,
  13 ownerReferences OwnerReference[], 14 finalizers string[], 17 managedFields ManagedFieldsEntry[]
OwnerReference: 1 kind, 3 name, 4 uid, 5 apiVersion, 6 controller bool, 7 blockOwnerDeletion bool
ManagedFieldsEntry: 1 manager, 2 operation, 3 apiVersion, 4 time Time, 6 fieldsType, 7 fieldsV1 FieldsV1, 8 subresource
FieldsV1: 1 Raw bytes
Time: 1 seconds int, 2 nanos int
Quantity: 1 string
IntOrString: 1 type int, 2 intVal int, 3 strVal
LabelSelector: 1 matchLabels map, 2 matchExpressions LabelSelectorRequirement[]
LabelSelectorRequirement: 1 key, 2 operator, 3 values string[]
ObjectReference: 1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion, 6 resourceVersion, 7 fieldPath
LocalObjectReference: 1 name
DeleteOptions: 1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool, 4 propagationPolicy,
  5 dryRun string[]
Preconditions: 1 uid, 2 resourceVersion
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec
NamespaceSpec: 1 finalizers string[]
ConfigMap: 1 metadata ObjectMeta, 2 data map, 3 binaryData map bytes, 4 immutable bool
Secret: 1 metadata ObjectMeta, 2 data map bytes, 3 type, 4 stringData map, 5 immutable bool
ServiceAccount: 1 metadata ObjectMeta, 2 secrets ObjectReference[], 3 imagePullSecrets LocalObjectReference[],
  4 automountServiceAccountToken bool
ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec
ResourceQuotaSpec: 1 hard map Quantity, 2 scopes string[], 3 scopeSelector ScopeSelector
ScopeSelector: 1 matchExpressions ScopedRequirement[]
ScopedRequirement: 1 scopeName, 2 operator, 3 values string[]
Service: 1 metadata ObjectMeta, 2 spec ServiceSpec
ServiceSpec: 1 ports ServicePort[], 2 selector map, 3 clusterIP, 4 type, 5 externalIPs string[], 7 sessionAffinity,
  10 externalName, 13 publishNotReadyAddresses bool
ServicePort: 1 name, 2 protocol, 3 port int, 4 targetPort IntOrString, 5 nodePort int, 6 appProtocol
PriorityClass: 1 metadata ObjectMeta, 2 value int, 3 globalDefault bool, 4 description, 5 preemptionPolicy
PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec
PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector, 3 maxUnavailable IntOrString,
  4 unhealthyPodEvictionPolicy
Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
Binding: 1 metadata ObjectMeta, 2 target ObjectReference
Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity, 2 leaseDurationSeconds int, 3 acquireTime Time, 4 renewTime Time, 5 leaseTransitions int
SelfSubjectReview: 1 metadata ObjectMeta
SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec
SelfSubjectAccessReviewSpec: 1 resourceAttributes ResourceAttributes, 2 nonResourceAttributes NonResourceAttributes
ResourceAttributes: 1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name
NonResourceAttributes: 1 path, 2 verb
SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec SelfSubjectRulesReviewSpec
SelfSubjectRulesReviewSpec: 1 namespace
"""
_KINDS = (
    "Namespace",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "ResourceQuota",
    "Service",
    "PriorityClass",
    "PodDisruptionBudget",
    "Eviction",
    "Binding",
    "Lease",
    "DeleteOptions",
    "SelfSubjectReview",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
)


class _Field(NamedTuple):
    name: str
    type: str
    is_list: bool
    is_map: bool


class _Malformed(Exception):
    """The bytes are not such a message."""


@cache
def _messages() -> dict[str, dict[int, _Field]]:
    made: dict[str, dict[int, _Field]] = {}
    for line in _MESSAGES.replace(",\n ", ",").strip().splitlines():
        name, _, fields = line.partition(":")
        made[name] = {}
        for text in fields.split(","):
            number, field, *type_ = text.split()
            is_map = type_[:1] == ["map"]
            word = (type_[1:] or ["string"])[0] if is_map else (type_ or ["string"])[0]
            made[name][int(number)] = _Field(field, word.removesuffix("[]"), word.endswith("[]"), is_map)
    return made


def decode_protobuf(body: bytes) -> Any:
    """The object in an envelope, as plain JSON. Raises `Refused`: 400 if it is malformed, 415 if its kind is not
    supported."""
    if body[:4] != _MAGIC:
        raise refusal(400, "the body is not Kubernetes protobuf: its magic bytes are missing")
    try:
        envelope = _message("Unknown", body[4:])
        about = envelope.get("typeMeta") or {}
        kind = about.get("kind", "")
        if kind not in _KINDS:
            raise refusal(415, f"{str(kind)[:80]!r} is not supported in protobuf: send application/json")
        found = _message(kind, base64.b64decode(envelope.get("raw", "")))
    except (_Malformed, UnicodeDecodeError, msgspec.DecodeError, ValueError, OverflowError) as why:
        raise refusal(400, f"the body cannot be decoded as protobuf: {str(why)[:200]}") from None
    return {"apiVersion": about.get("apiVersion", ""), "kind": kind, **found}


def _message(type_: str, data: bytes) -> dict[str, Any]:
    fields = _messages()[type_]
    made: dict[str, Any] = {}
    for number, wire, value in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_map:
            key, inner = _entry(value, wire, field.type)
            made.setdefault(field.name, {})[key] = inner
            continue
        read = _value(field.type, wire, value)
        if field.is_list:
            made.setdefault(field.name, []).append(read)
        elif read is not None and read != "":
            made[field.name] = read
    return made


def _entry(data: Any, wire: int, type_: str) -> tuple[str, Any]:
    if wire != 2:
        raise _Malformed("a map must consist of messages")
    key, inner = "", _value(type_, 2, b"")
    for number, of_wire, value in _parts(data):
        if number == 1:
            key = _value("string", of_wire, value)
        elif number == 2:
            inner = _value(type_, of_wire, value)
    return key, inner


def _value(type_: str, wire: int, value: Any) -> Any:
    if (type_ in ("int", "bool")) != (wire == 0):
        raise _Malformed(f"wire type {wire} is none of {type_}")
    match type_:
        case "int":
            return value - 2**64 if value >= 2**63 else value
        case "bool":
            return bool(value)
        case "string":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "Quantity":
            return _message(type_, value).get("string", "0")
        case "Time":
            return _time(_message(type_, value))
        case "IntOrString":
            either = _message(type_, value)
            return either.get("strVal", "") if either.get("type") else either.get("intVal", 0)
        case "FieldsV1":
            return msgspec.json.decode(base64.b64decode(_message(type_, value).get("Raw", "e30=")))
    return _message(type_, value)


def _time(parts: dict[str, int]) -> str | None:
    seconds = parts.get("seconds", 0)
    if not seconds and not parts.get("nanos"):
        return None
    return format_timestamp(seconds * SECOND + parts.get("nanos", 0))


def _parts(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value) one after the other."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _Malformed(f"wire type {wire} is not supported")
        if at + length > len(data):
            raise _Malformed("it ends too early")
        yield number, wire, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Malformed("a varint does not end")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
