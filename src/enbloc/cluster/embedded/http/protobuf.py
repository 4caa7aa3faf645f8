"""Decodes request bodies in Kubernetes' protobuf envelope.

Newer clients send Kubernetes' own kinds in protobuf, even to a server that never answers in it. Field numbers are part
of the wire format: `api/messages` has them, with the names and types of fields. Unknown fields are skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

from enbloc.api.messages import Field, message_of, messages, read_messages
from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import SECOND, format_micro_timestamp, format_timestamp

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

_OWN = """
Unknown: 1 typeMeta TypeMeta, 2 raw bytes
TypeMeta: 1 apiVersion, 2 kind
FieldsV1: 1 Raw bytes
RawExtension: 1 raw bytes
Time: 1 seconds int, 2 nanos int
Quantity: 1 string
IntOrString: 1 type int, 2 intVal int, 3 strVal
"""


class _Malformed(Exception):
    """The bytes are not such a message."""


@cache
def _messages() -> dict[str, dict[int, Field]]:
    return {**messages(), **read_messages(_OWN)}


def decode_protobuf(body: bytes) -> Any:
    """The object in an envelope, as plain JSON. Raises `Refused`: 400 if it is malformed, 415 if its kind is not
    supported."""
    if body[:4] != _MAGIC:
        raise refusal(400, "the body is not Kubernetes protobuf: its magic bytes are missing")
    try:
        envelope = _message("Unknown", body[4:])
        about = envelope.get("typeMeta") or {}
        kind = about.get("kind", "")
        message = message_of(about.get("apiVersion", ""), kind)
        if message not in _messages():
            raise refusal(415, f"{str(kind)[:80]!r} is not supported in protobuf: send application/json")
        found = _message(message, base64.b64decode(envelope.get("raw", "")))
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
        if field.mark == "?" and not read:
            continue
        if field.mark == "~":
            made.update(read)
        elif field.is_list:
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
            return _time(_message("Time", value), format_timestamp)
        case "MicroTime":
            return _time(_message("Time", value), format_micro_timestamp)
        case "IntOrString":
            either = _message(type_, value)
            return either.get("strVal", "") if either.get("type") else either.get("intVal", 0)
        case "RawExtension":
            return msgspec.json.decode(base64.b64decode(_message(type_, value).get("raw", "bnVsbA==")))
        case "FieldsV1":
            return msgspec.json.decode(base64.b64decode(_message(type_, value).get("Raw", "e30=")))
    return _message(type_, value)


def _time(parts: dict[str, int], form: Callable[[int], str]) -> str | None:
    seconds = parts.get("seconds", 0)
    if not seconds and not parts.get("nanos"):
        return None
    return form(seconds * SECOND + parts.get("nanos", 0))


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
