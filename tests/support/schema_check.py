"""As much of a schema's meaning as our definitions use, for objects that a test has in hand.

What a real API server makes of the same schemas is tested end to end; here it is a quick look at many objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

KNOWN = {
    "type",
    "format",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "nullable",
    "enum",
    "minimum",
    "maxItems",
    "maxLength",
    "description",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
}
_TYPES: dict[str, type | tuple[type, ...]] = {"object": dict, "array": list, "string": str, "boolean": bool}


def problems(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """What a schema says is wrong with a value; CEL rules are not run."""
    if value is None:
        if not schema.get("nullable") and "type" in schema:
            yield f"{path}: null"
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield f"{path}: {value!r} is neither integer nor string"
        return
    kind = schema.get("type")
    if kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool):
            yield f"{path}: {value!r} is no integer"
            return
        if value < schema.get("minimum", value):
            yield f"{path}: {value} is too small"
    elif kind is not None and not isinstance(value, _TYPES[kind]):
        yield f"{path}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: too long"
    if isinstance(value, list) and kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{path}: too many"
        for index, item in enumerate(value):
            yield from problems(schema["items"], item, f"{path}[{index}]")
    if isinstance(value, dict):
        yield from _members(schema, value, path)


def _members(schema: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: missing"
    for name, member in value.items():
        below = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
        if below is not None:
            yield from problems(below, member, f"{path}.{name}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields") and path != ".metadata":  # that is the API server's
            yield f"{path}.{name}: would be pruned"


def structural_faults(schema: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Where a schema is not structural, or says something that `problems` does not know."""
    yield from (f"{path}: {key}" for key in schema.keys() - KNOWN)
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if "type" not in schema and not free:
        yield f"{path}: no type"
    if "additionalProperties" in schema and "properties" in schema:
        yield f"{path}: both properties and additionalProperties"
    for name, below in (schema.get("properties") or {}).items():
        yield from structural_faults(below, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from structural_faults(schema[name], f"{path}.{name}")
