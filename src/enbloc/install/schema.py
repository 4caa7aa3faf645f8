"""Structural schemas for CustomResourceDefinitions, from the types in `api`.

A type has the fields that this program reads; those that it does not read are in `api.peer_fields`. Every object keeps
unknown fields, so nothing that a user or another program wrote is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from enbloc.api.meta import TypedObject
from enbloc.api.peer_fields import UNREAD
from enbloc.units import Quantity

Schema = dict[str, Any]
Additions = Mapping[type | tuple[type, str], Mapping[str, Any]]
"""What a type cannot express: keywords for every use of a struct, or for one of its fields (by its JSON name)."""

KEEPS_UNKNOWN = {"x-kubernetes-preserve-unknown-fields": True}
_FROM_OUTSIDE = ("apiVersion", "kind", "metadata")


def object_schema(kind: type[TypedObject], additions: Additions | None = None) -> Schema:
    """The schema of a whole object."""
    schema = schema_of(kind, additions)
    properties = schema["properties"]
    properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    required = [name for name in schema.get("required", ()) if name not in _FROM_OUTSIDE]
    schema.pop("required", None)
    return schema | ({"required": required} if required else {})


def schema_of(kind: Any, additions: Additions | None = None) -> Schema:
    """The schema of any type that is used in `api`. Raises `TypeError` for what a structural schema cannot express."""
    return _schema(inspect.type_info(kind), additions or {})


def _schema(kind: inspect.Type, additions: Additions) -> Schema:
    match kind:
        case inspect.StructType():
            return _struct(kind, additions)
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64"}
        case inspect.ListType(item_type=item):
            return {"type": "array", "items": _schema(item, additions)}
        case inspect.DictType(key_type=inspect.StrType(), value_type=inspect.AnyType()):
            return {"type": "object"} | KEEPS_UNKNOWN
        case inspect.DictType(key_type=inspect.StrType(), value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, additions)}
        case inspect.AnyType():
            return dict(KEEPS_UNKNOWN)
        case inspect.CustomType(cls=cls) if cls is Quantity:
            return {"x-kubernetes-int-or-string": True}
        case inspect.UnionType(types=types):
            others = [one for one in types if not isinstance(one, inspect.NoneType)]
            if len(others) == 1:
                return _schema(others[0], additions) | {"nullable": True}
    raise TypeError(f"{kind} has no structural schema")


def _struct(kind: inspect.StructType, additions: Additions) -> Schema:
    properties: dict[str, Schema] = {}
    for field in kind.fields:
        added = additions.get((kind.cls, field.encode_name), {})
        properties[field.encode_name] = _schema(field.type, additions) | dict(added)
    properties |= {name: dict(schema) | {"nullable": True} for name, schema in UNREAD.get(kind.cls, {}).items()}
    schema: Schema = {"type": "object", "properties": properties} | KEEPS_UNKNOWN
    required = [field.encode_name for field in kind.fields if field.required]
    if required:
        schema["required"] = required
    return schema | dict(additions.get(kind.cls, {}))
