"""Which parts of an object server-side apply merges, and which it replaces as a whole.

Mappings are merged by field. A list is merged by the keys of its items (`x-kubernetes-list-type: map`), by the items
themselves (`set`), or not at all (`atomic`). Custom kinds declare it in the schema of their definition; what a schema
does not describe is a mapping that is merged or a list that is replaced. Kubernetes' own kinds are known by the names
of their fields (`list_merge_keys`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from enbloc.api.meta import Fault
from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.list_merge_keys import is_set, merge_key
from enbloc.cluster.embedded.http.status import refusal

_SHOWN = 80
"""Longer values are cut off in messages."""


class Shape(Protocol):
    """How one value is merged. A step is one of `fieldsV1`: `f:NAME`, `k:{KEYS}` or `v:VALUE`."""

    @property
    def is_atomic(self) -> bool:
        """Whether a mapping here is replaced as a whole."""
        ...

    def at(self, step: str) -> Shape:
        """The shape of a field of this mapping, or of an item of this list."""
        ...

    def steps(self, items: list[Any]) -> list[str | None] | None:
        """The step of each item of a list, `None` for an item without one; `None` if the list is replaced."""
        ...

    def check(self, items: list[Any], path: str) -> None:
        """Raises `Refused` (422) if this list cannot be applied."""
        ...


class ByName(msgspec.Struct, frozen=True):
    """A value of one of Kubernetes' own kinds, by the name of its field."""

    field: str = ""

    @property
    def is_atomic(self) -> bool:
        return False

    def at(self, step: str) -> Shape:
        return ByName(step[2:] if step.startswith("f:") else "")

    def steps(self, items: list[Any]) -> list[str | None] | None:
        if is_set(self.field):
            return [_of_value(item) for item in items]
        key = merge_key(self.field, items)
        if key is None:
            return None
        return [_of_keys({key: item[key]}) if isinstance(item, dict) and key in item else None for item in items]

    def check(self, items: list[Any], path: str) -> None:
        """Lists that cannot be merged are replaced here."""


class BySchema(msgspec.Struct, frozen=True):
    """A value of a custom kind, by the schema of its definition."""

    schema: Mapping[str, Any]
    is_object: bool = False
    """Whether it has metadata of Kubernetes' own."""

    @property
    def is_atomic(self) -> bool:
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    def at(self, step: str) -> Shape:
        if not step.startswith("f:"):
            return _of_schema(self.schema.get("items"))
        name = step[2:]
        if name == "metadata" and self.is_object:
            return ByName(name)
        declared = self.schema.get("properties")
        found = declared.get(name) if isinstance(declared, Mapping) else None
        return _of_schema(found if found is not None else self.schema.get("additionalProperties"))

    def steps(self, items: list[Any]) -> list[str | None] | None:
        kind = self.schema.get("x-kubernetes-list-type")
        if kind == "set":
            return [_of_value(item) for item in items]
        keys = self._keys() if kind == "map" else []
        return [self._step(item, keys) for item in items] if keys else None

    def check(self, items: list[Any], path: str) -> None:
        steps = self.steps(items)
        if steps is None:
            return
        keys = ", ".join(self._keys())
        known: set[str] = set()
        for position, step in enumerate(steps):
            if step is None:
                raise _refused(f"{path}[{position}]", f"Required value: the list is merged by {keys}")
            if step in known:
                raise _refused(f"{path}[{position}]", f"Duplicate value: {step[2:][:_SHOWN]}")
            known.add(step)

    def _keys(self) -> list[str]:
        keys = self.schema.get("x-kubernetes-list-map-keys")
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []

    def _step(self, item: Any, keys: list[str]) -> str | None:
        if not isinstance(item, dict):
            return None
        values = {}
        for key in keys:
            value = item.get(key, self._default(key))
            if value is None:
                return None
            values[key] = value
        return _of_keys(values)

    def _default(self, key: str) -> Any:
        """A key that is left out counts with its default: `protocol` of a port is TCP."""
        items = self.schema.get("items")
        declared = items.get("properties") if isinstance(items, Mapping) else None
        field = declared.get(key) if isinstance(declared, Mapping) else None
        return field.get("default") if isinstance(field, Mapping) else None


def _of_schema(schema: Any) -> BySchema:
    if not isinstance(schema, Mapping):
        return BySchema({})
    return BySchema(schema, schema.get("x-kubernetes-embedded-resource") is True)


def _of_value(item: Any) -> str:
    return "v:" + encode(item).decode()


def _of_keys(values: dict[str, Any]) -> str:
    return "k:" + encode(values).decode()


def _refused(path: str, what: str) -> Exception:
    fault = Fault(path, what)
    return refusal(422, f"the applied object is invalid: {fault}", fault)
