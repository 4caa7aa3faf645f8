"""The kinds, their names in the API, and how an object is read.

A kind's id is `Kind` or `Kind.group` (`Pod`, `Job.batch.volcano.sh`): versions of one kind share it. Unregistered kinds
are accepted: id, scope and plural are guessed, and their content is not checked. `kinds.txt` is the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from enbloc.api import arbitrator, volcano, workloads
from enbloc.api.field_paths import steps_of, without
from enbloc.api.meta import Fault, Obj, Ref, TypedObject
from enbloc.units import Quantity, is_dns_subdomain, parse_quantity, parse_timestamp


class Kind(msgspec.Struct, frozen=True):
    """One kind's names in the API, and the view that reads it (`None`: not read)."""

    group: str
    versions: tuple[str, ...]
    name: str
    plural: str
    namespaced: bool
    view: type[TypedObject] | None = None
    has_status: bool = True
    short_names: tuple[str, ...] = ()
    stored_as: str = ""
    """The id of another kind whose objects these are."""

    @property
    def id(self) -> str:
        return self.stored_as or (f"{self.name}.{self.group}" if self.group else self.name)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]


def _kind(line: str) -> Kind:
    """A line of `kinds.txt`."""
    words = ("" if word == "-" else word for word in line.split())
    name, plural, group, versions, scope, status, short_names, view = words
    module, _, reads = view.partition(".")
    return Kind(
        "" if group == "core" else group,
        tuple(versions.split(",")),
        name,
        plural,
        scope == "namespaced",
        getattr(import_module(f"enbloc.api.{module}"), reads) if view else None,
        bool(status),
        tuple(short_names.split(",")) if short_names else (),
    )


_LINES = Path(__file__).with_name("kinds.txt").read_text().splitlines()
KINDS: dict[str, Kind] = {kind.id: kind for kind in map(_kind, (line for line in _LINES if not line.startswith("#")))}
"""By id. Those without a view are served as they are: written, read and watched, so that clients that expect them
start, and nothing acts on them here."""
WORKLOADS: tuple[str, ...] = (
    workloads.REPLICA_SET,
    workloads.STATEFUL_SET,
    workloads.DAEMON_SET,
    workloads.JOB,
    "ReplicationController",
)
"""Kubernetes' own kinds that control pods. Pods whose owner of such a kind is in no file are kept."""


def kind_id(obj: Obj) -> str:
    """The id of an object's kind, whatever its version."""
    api_version: str = obj["apiVersion"]
    group, slash, _ = api_version.partition("/")
    return f"{obj['kind']}.{group}" if slash else obj["kind"]


def by_kind(objects: Iterable[Obj]) -> dict[str, list[Obj]]:
    """The objects by the id of their kind."""
    found: dict[str, list[Obj]] = {}
    for obj in objects:
        found.setdefault(kind_id(obj), []).append(obj)
    return found


def ref_of(obj: Obj) -> Ref:
    metadata = obj["metadata"]
    return Ref(kind_id(obj), metadata.get("namespace") or "", metadata["name"])


_T = TypeVar("_T")


def _read_custom(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return parse_quantity(value)
    raise NotImplementedError(kind)


def view(obj: Any, kind: type[_T]) -> _T:
    """A typed view on JSON. Raises `msgspec.ValidationError` if it does not fit."""
    return msgspec.convert(obj, kind, dec_hook=_read_custom)


def decode_faults(obj: Any) -> list[Fault]:
    """Why an object cannot be decoded, with the field; empty if it can. Rules are not checked here."""
    shape = _shape_faults(obj)
    if shape:
        return shape
    kind = KINDS.get(kind_id(obj))
    if kind is None and "/" not in obj["apiVersion"]:
        return _core_faults(obj)
    if kind is None or kind.view is None:
        return []
    if obj["apiVersion"].rpartition("/")[2] not in kind.versions:
        served = ", ".join(f"{kind.group}/{version}".removeprefix("/") for version in kind.versions)
        return [Fault("apiVersion", f"{obj['apiVersion']!r} is not served for {kind.name} (served: {served})")]
    try:
        view(obj, kind.view)
    except msgspec.ValidationError as why:
        found = _fault_of(obj, str(why), kind.view)
        if kind.id == workloads.JOB and "tasks" in (obj.get("spec") or ()):
            hint = f"{found.message}; a Job with `tasks` is of {KINDS[volcano.JOB].api_version}"
            return [Fault(found.field, hint)]
        return [found]
    return []


_MOST_FAULTS = 50


def all_decode_faults(obj: Any) -> tuple[list[Fault], Any]:
    """Every fault of decoding, and the object without the bad values: a wrong type hides no other fault."""
    faults: list[Fault] = []
    while len(faults) < _MOST_FAULTS and (found := decode_faults(obj)):
        if any(found[0].field == fault.field for fault in faults):
            break  # it was left out here, and is required
        faults += found
        steps = steps_of(obj, found[0].field)
        if not steps or steps[0] not in ("spec", "status") or _path(steps) != found[0].field:
            break  # something is missing, or in what every object must have
        obj = without(obj, steps)
    return faults, obj


def _core_faults(obj: Obj) -> list[Fault]:
    """An apiVersion without a group is the core group's, which has v1 only; kinds of other groups are named with it."""
    known = [kind for kind in KINDS.values() if kind.name == obj["kind"]]
    if not known and obj["apiVersion"] == "v1":
        return []  # a core kind that is not registered
    served = ", ".join(f"{kind.group}/{version}" for kind in known for version in kind.versions)
    hint = f": {obj['kind']} is served as {served}" if served else " (the core group has v1 only)"
    return [Fault("apiVersion", f"{obj['apiVersion'][:80]!r} names no API group{hint}")]


def _shape_faults(obj: Any) -> list[Fault]:
    """Faults in what every object must have."""
    if not isinstance(obj, dict):
        return [Fault("", f"an object is a mapping, not {type(obj).__name__}")]
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            return [Fault(field, "is missing" if field not in obj else "must be a non-empty string")]
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return [Fault("metadata", "is missing" if metadata is None else "must be a mapping")]
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        return [Fault("metadata.name", "is missing" if name is None else "must be a non-empty string")]
    for field in ("name", "namespace"):
        text = metadata.get(field)
        if text is not None and (not isinstance(text, str) or (text and not _is_name(obj, field, text))):
            return [
                Fault(f"metadata.{field}", f"{str(text)[:80]!r} is not a valid name (RFC 1123: a-z, 0-9, '-' and '.')")
            ]
    for field in ("labels", "annotations"):
        texts = metadata.get(field)
        if texts is None:
            continue
        if not isinstance(texts, dict):
            return [Fault(f"metadata.{field}", "must be a mapping of strings")]
        for key, text in texts.items():
            if not isinstance(key, str) or not isinstance(text, str):
                bad = key if not isinstance(key, str) else text
                return [Fault(f"metadata.{field}[{key!r}]", f"must be a string, not {type(bad).__name__}: quote it")]
    for field in ("creationTimestamp", "deletionTimestamp"):
        if metadata.get(field) is not None:
            try:
                parse_timestamp(metadata[field])
            except ValueError as why:
                return [Fault(f"metadata.{field}", str(why))]
    return []


_NAMED_BY_ADMISSION = (volcano.JOB, arbitrator.QUEUE_JOB)
"""Kinds whose names admission validates, together with every other fault of the object (M2)."""


def _is_name(obj: Obj, field: str, text: str) -> bool:
    if field == "name" and obj["apiVersion"].startswith("rbac.authorization.k8s.io/"):
        return len(text) <= 253 and "/" not in text and "%" not in text
    if field == "name" and kind_id(obj) in _NAMED_BY_ADMISSION:
        return len(text) <= 253 and text.isprintable()
    return is_dns_subdomain(text)


_MISSING = re.compile(r"Object missing required field `(.+)`")
_WHERE = re.compile(r"(.*) - at `(key` in `)?\$(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def _fault_of(obj: Obj, message: str, kind: type[TypedObject]) -> Fault:
    """msgspec says "Expected … - at `$.spec.x`"; we say "spec.x: expected …", and name the key of a map."""
    found = _WHERE.fullmatch(message)
    what, of_key, where = found.groups() if found else (message, None, "")
    steps: list[str | int] = []
    for name, index in _STEP.findall(where):
        steps.append(name or (_bad_key(obj, steps, kind, message) if index == "..." else int(index)))
    missing = _MISSING.fullmatch(what)
    if missing:
        return Fault(_path([*steps, missing[1]]), "is missing")
    return Fault(_path(steps), f"{'a key is a string: ' if of_key else ''}{what[:1].lower()}{what[1:]}")


def _path(steps: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _bad_key(obj: Obj, steps: list[str | int], kind: type[TypedObject], message: str) -> str:
    """The key of the bad value in the map at `steps`: the last of the shortest prefix of the map that fails with the
    same message, since decoding stops at the first bad value."""
    target: Any = obj
    for step in steps:
        target = target[step]
    items = list(target.items())

    def is_refused(count: int) -> bool:
        try:
            view(_replaced(obj, steps, dict(items[:count])), kind)
        except msgspec.ValidationError as why:
            return str(why) == message
        return False

    return str(items[bisect_left(range(len(items)), True, key=is_refused) - 1][0])


def _replaced(value: Any, steps: list[str | int], by: Any) -> Any:
    """A copy with another value at `steps`; everything else is shared."""
    if not steps:
        return by
    copy = value.copy()
    copy[steps[0]] = _replaced(value[steps[0]], steps[1:], by)
    return copy
