"""Definitions that a cluster has already: none is narrowed, neither another project's nor an earlier one of ours.

Of another project's definition everything stays as it is: versions, fields, columns, subresources. Added are versions
and fields that only ours have; one that lacks nothing is left alone. A definition that an earlier installation of ours
applied is replaced, and keeps the versions and fields that another project has added to it since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj, labels_of, name_of
from enbloc.listing import listed

OWN_LABEL: Final = "app.kubernetes.io/part-of"
OWN: Final = "enbloc"
_KEPT: Final = ("name", "labels", "annotations")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Merged(NamedTuple):
    definition: Obj
    added: tuple[str, ...]
    """Versions and fields that the one definition did not have and the other had."""
    is_own: bool = False
    """Whether the cluster's definition was applied by an earlier installation of ours."""

    @property
    def text(self) -> str:
        """What is done with the cluster's definition, for users."""
        name = name_of(self.definition)
        shown = listed(self.added, 5)
        if self.is_own:
            return f"{name} exists, from an earlier enbloc: replaced, {shown} kept"
        if not self.added:
            return f"{name} exists and has every field that is read here: left as it is"
        return f"{name} exists: merged, {shown} added, nothing removed"


def merge_existing(ours: Iterable[Obj], existing: Iterable[Obj]) -> tuple[list[Obj], list[Merged]]:
    """The definitions to apply, and what was done with those that exist; without those that are simply replaced. One
    that is left as it is need not be applied."""
    known = {name_of(one): one for one in existing}
    found: list[Obj] = []
    merged: list[Merged] = []
    for definition in ours:
        there = known.get(name_of(definition))
        if there is None:
            found.append(definition)
            continue
        if labels_of(there).get(OWN_LABEL) == OWN:
            one = merge(there, definition)._replace(is_own=True)
            found.append(one.definition)
        else:
            one = merge(definition, there)
            if one.added:
                found.append(one.definition)
        if one.added or not one.is_own:
            merged.append(one)
    return found, merged


def merge(ours: Obj, theirs: Obj) -> Merged:
    """The second definition with what only the first has."""
    added: list[str] = []
    versions = [dict(version) for version in theirs["spec"].get("versions") or ()]
    by_name = {version.get("name"): version for version in versions}
    for version in ours["spec"]["versions"]:
        known = by_name.get(version["name"])
        if known is None:
            versions.append(version | {"storage": False})
            added.append(f"version {version['name']}")
            continue
        schema = (known.get("schema") or {}).get("openAPIV3Schema") or {}
        known["schema"] = {"openAPIV3Schema": _union(schema, version["schema"]["openAPIV3Schema"], "", added)}
    metadata = {key: theirs["metadata"][key] for key in _KEPT if theirs["metadata"].get(key)}
    if metadata.get("annotations"):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != _LAST_APPLIED}
    definition = {
        "apiVersion": theirs["apiVersion"],
        "kind": theirs["kind"],
        "metadata": metadata,
        "spec": theirs["spec"] | {"versions": versions},
    }
    return Merged(definition, tuple(added))


def _union(theirs: Mapping[str, Any], ours: Mapping[str, Any], path: str, added: list[str]) -> dict[str, Any]:
    """Their schema with the properties that only ours has, at any depth."""
    found = dict(theirs)
    if isinstance(ours.get("properties"), Mapping) and theirs.get("type", "object") == "object":
        known = dict(theirs.get("properties") or {})
        for name, schema in ours["properties"].items():
            where = f"{path}.{name}" if path else name
            if name in known:
                known[name] = _union(known[name], schema, where, added)
            else:
                known[name] = schema
                added.append(where)
        found["properties"] = known
    if isinstance(theirs.get("items"), Mapping) and isinstance(ours.get("items"), Mapping):
        found["items"] = _union(theirs["items"], ours["items"], f"{path}[]", added)
    return found


def field_paths(definition: Obj) -> Iterator[str]:
    """`VERSION:spec.minMember` of every field of a definition, at any depth."""
    for version in definition["spec"]["versions"]:
        for path in _paths((version.get("schema") or {}).get("openAPIV3Schema") or {}, ""):
            yield f"{version['name']}:{path}"


def _paths(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, child in (schema.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        yield where
        yield from _paths(child, where)
    if isinstance(schema.get("items"), Mapping):
        yield from _paths(schema["items"], f"{path}[]")
