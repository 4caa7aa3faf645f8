"""Kinds whose pods are grouped by owner: which owner is the gang, where its minimum is, what a role is.

The list of the package is `owner_kinds.yaml`; the config adds entries before it. Applying an entry to objects is
`gangs.owner_kinds`' part.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import msgspec
import yaml

from enbloc.config.values import ValueReader, shown

_KIND = re.compile(r"[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?")
_PATH = re.compile(r"[A-Za-z0-9_-]+(\[\])?(\.[A-Za-z0-9_-]+(\[\])?)*")
MOST_DEFAULT: Final = 1_000_000


class Term(msgspec.Struct, frozen=True):
    """A number in an object: `spec.parallelism`; `default` where it is not set."""

    path: str
    default: int = 1


class Condition(msgspec.Struct, frozen=True):
    """`spec.mode=standalone`, or `spec.elasticPolicy`: the field is set, to this value or to any."""

    path: str
    value: str | None = None

    def __str__(self) -> str:
        return self.path if self.value is None else f"{self.path}={self.value}"


class OwnerRole(msgspec.Struct, frozen=True):
    """One role by name; or with `items` one for each entry of a list (by its field `name`) or of a mapping (by its key,
    in lower case)."""

    name: str = ""
    items: str = ""
    minimum: tuple[Term, ...] = ()
    """Numbers that are multiplied, of the item if there are items, else of the owner."""


class OwnerKind(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of the list."""

    kind: str
    """The id of the owner's kind: `JobSet.jobset.x-k8s.io`."""
    pod_label: str = ""
    """The label of pods that carries the owner's name; empty: the owner is the pods' controller."""
    pod_labels: dict[str, str] = {}
    """Other labels that the pods must have."""
    split_label: str = ""
    """A label of pods: those with different values are different gangs."""
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    minimum: tuple[Term, ...] = ()
    """Numbers of the owner that are multiplied. Without them and without roles only an annotation sets the minimum."""
    at_most: tuple[str, ...] = ()
    """Paths of numbers that bound the minimum."""
    queue: str = ""
    """The path of the name of its queue; it counts before labels and annotations."""
    role_label: str = ""
    roles: tuple[OwnerRole, ...] = ()


class GroupByOwner(msgspec.Struct, frozen=True):
    """`enabled` is None for the default: on where no other scheduler runs (`sim`, `up`), off on a cluster."""

    enabled: bool | None = None
    kinds: tuple[OwnerKind, ...] = ()
    """Those of the config."""

    @property
    def active(self) -> tuple[OwnerKind, ...]:
        """The entries that count, in order."""
        return (*self.kinds, *shipped()) if self.enabled else ()


def read_group_by_owner(reader: ValueReader, value: object) -> GroupByOwner:
    section = reader.mapping(value, "groupByOwner", ("enabled", "kinds"))
    enabled = section.get("enabled")
    if enabled is not None:
        enabled = reader.boolean(enabled, "groupByOwner.enabled", False)
    return GroupByOwner(enabled, read_kinds(reader, section.get("kinds"), "groupByOwner.kinds"))


def read_kinds(reader: ValueReader, value: object, path: str) -> tuple[OwnerKind, ...]:
    """A list of entries, each checked."""
    found = []
    for n, raw in enumerate(reader.sequence(value, path)):
        entry = reader.entry(raw, f"{path}[{n}]", OwnerKind.__struct_encode_fields__)
        if entry is not None:
            found.append(_kind(reader, entry, f"{path}[{n}]"))
    return tuple(found)


@lru_cache(maxsize=1)
def shipped() -> tuple[OwnerKind, ...]:
    """The list of the package."""
    reader = ValueReader()
    text = resources.files("enbloc.config").joinpath("owner_kinds.yaml").read_text()
    found = read_kinds(reader, yaml.safe_load(text), "owner_kinds.yaml")
    assert not reader.problems, reader.problems
    return found


def _kind(reader: ValueReader, entry: dict[str, Any], path: str) -> OwnerKind:
    kind = entry.get("kind")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        what = "is missing" if kind is None else f"{shown(kind)} is not a kind"
        reader.problem(f"{path}.kind", f"{what}: write it as Kind.group, such as JobSet.jobset.x-k8s.io")
        kind = ""
    if entry.get("roles") is not None and entry.get("minimum") is not None:
        reader.problem(f"{path}.minimum", "has no meaning beside roles: each role has its own minimum")
    if entry.get("roles") is not None and entry.get("roleLabel") is None:
        reader.problem(f"{path}.roleLabel", "is missing: the label of pods that carries the role's name")
    return OwnerKind(
        kind=kind,
        pod_label=_text(reader, entry, "podLabel", path),
        pod_labels=_labels(reader, entry.get("podLabels"), f"{path}.podLabels"),
        split_label=_text(reader, entry, "splitLabel", path),
        when=_conditions(reader, entry.get("when"), f"{path}.when"),
        unless=_conditions(reader, entry.get("unless"), f"{path}.unless"),
        minimum=_terms(reader, entry.get("minimum"), f"{path}.minimum"),
        at_most=tuple(term.path for term in _terms(reader, entry.get("atMost"), f"{path}.atMost")),
        queue=_path(reader, entry.get("queue"), f"{path}.queue"),
        role_label=_text(reader, entry, "roleLabel", path),
        roles=_roles(reader, entry.get("roles"), f"{path}.roles"),
    )


def _text(reader: ValueReader, entry: dict[str, Any], key: str, path: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        reader.problem(f"{path}.{key}", f"must be the name of a label, not {shown(value)}")
        return ""
    return value


def _path(reader: ValueReader, value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not _PATH.fullmatch(value) or "[]" in value:
        reader.problem(path, f"must be the path of a field, such as spec.queue, not {shown(value)}")
        return ""
    return value


def _labels(reader: ValueReader, value: object, path: str) -> dict[str, str]:
    found = {}
    for key, text in reader.mapping(value, path).items():
        if isinstance(text, str):
            found[key] = text
        else:
            reader.problem(f"{path}.{key}", f"must be the value of a label, not {shown(text)}")
    return found


def _conditions(reader: ValueReader, value: object, path: str) -> tuple[Condition, ...]:
    found = []
    for n, raw in enumerate(reader.sequence(value, path)):
        field, is_equal, text = raw.partition("=") if isinstance(raw, str) else ("", "", "")
        if not _PATH.fullmatch(field):
            reader.problem(
                f"{path}[{n}]", f"must be a field or FIELD=VALUE, such as spec.mode=native, not {shown(raw)}"
            )
        else:
            found.append(Condition(field, text if is_equal else None))
    return tuple(found)


def _terms(reader: ValueReader, value: object, path: str) -> tuple[Term, ...]:
    found = []
    for n, raw in enumerate(reader.sequence(value, path)):
        where = f"{path}[{n}]"
        entry = {"path": raw} if isinstance(raw, str) else reader.entry(raw, where, ("path", "default"))
        if entry is None:
            continue
        field = entry.get("path")
        if not isinstance(field, str) or not _PATH.fullmatch(field) or "[]" in field:
            reader.problem(where, f"must be the path of a number, such as spec.replicas, not {shown(field)}")
            continue
        found.append(Term(field, reader.integer(entry.get("default"), f"{where}.default", 1, 0, MOST_DEFAULT)))
    return tuple(found)


def _roles(reader: ValueReader, value: object, path: str) -> tuple[OwnerRole, ...]:
    found = []
    for n, raw in enumerate(reader.sequence(value, path)):
        where = f"{path}[{n}]"
        entry = reader.entry(raw, where, ("name", "items", "minimum"))
        if entry is None:
            continue
        items = entry.get("items")
        if items is not None and (not isinstance(items, str) or not _PATH.fullmatch(items) or "[]" in items):
            reader.problem(f"{where}.items", f"must be the path of a list or a mapping, not {shown(items)}")
            items = None
        name = entry.get("name")
        if (name is None and items is None) or (name is not None and not isinstance(name, str)):
            reader.problem(f"{where}.name", "must be the name of the role, or with items the field that has it")
            name = ""
        found.append(OwnerRole(name or "", items or "", _terms(reader, entry.get("minimum"), f"{where}.minimum")))
    return tuple(found)


def as_data(kind: OwnerKind) -> dict[str, Any]:
    """An entry as a config file writes it."""
    found = msgspec.to_builtins(kind)
    found |= {
        "when": [str(one) for one in kind.when],
        "unless": [str(one) for one in kind.unless],
        "minimum": _as_terms(kind.minimum),
        "atMost": list(kind.at_most),
        "roles": [_given(name=one.name, items=one.items, minimum=_as_terms(one.minimum)) for one in kind.roles],
    }
    return _given(**found)


def _as_terms(terms: tuple[Term, ...]) -> list[Any]:
    return [term.path if term.default == 1 else {"path": term.path, "default": term.default} for term in terms]


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
