"""The defaults in the schema of a CustomResourceDefinition, filled in where an object of its kind has no value.

Operators rely on it: the number of hosts of a group of workers is 1 because the definition says so. A schema is read
once into the parts of it that have defaults.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_LEFT_OUT: Final = ("apiVersion", "kind", "metadata", "status")
"""Of the object itself; a status is its controller's alone."""


class Defaults(msgspec.Struct, frozen=True):
    """What a schema says of defaults, for a value and what is in it."""

    has_default: bool = False
    default: Any = None
    fields: dict[str, Defaults] = {}
    values: Defaults | None = None
    """Of the values of a mapping, or of the items of a list."""

    @property
    def is_empty(self) -> bool:
        return not self.has_default and not self.fields and self.values is None


def read_defaults(schema: Any) -> Defaults | None:
    """Of an object's schema; `None` if it has none."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    wanted = {name: part for name, part in schema["properties"].items() if name not in _LEFT_OUT}
    found = _read({"properties": wanted})
    return None if found.is_empty else found


def fill(value: Any, defaults: Defaults) -> Any:
    """The value with its defaults; the same one if nothing was missing."""
    if isinstance(value, dict):
        made = value
        for name, part in defaults.fields.items():
            there = made.get(name)
            if there is None:
                if not part.has_default:
                    continue
                there = copy.deepcopy(part.default)
            filled = fill(there, part)
            if filled is not made.get(name):
                made = {**made, name: filled}
        if defaults.values is not None:
            filled_values = {name: fill(each, defaults.values) for name, each in made.items()}
            if any(filled_values[name] is not each for name, each in made.items()):
                made = filled_values
        return made
    if isinstance(value, list) and defaults.values is not None:
        items = [fill(each, defaults.values) for each in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _read(schema: Any) -> Defaults:
    if not isinstance(schema, Mapping):
        return Defaults()
    fields = {}
    for name, part in (schema.get("properties") or {}).items():
        found = _read(part)
        if not found.is_empty:
            fields[name] = found
    inside = schema.get("items") or schema.get("additionalProperties")
    values = _read(inside) if isinstance(inside, Mapping) else Defaults()
    has_default = "default" in schema and schema["default"] is not None
    return Defaults(has_default, schema.get("default"), fields, None if values.is_empty else values)
