"""Entries of the list of owner kinds, applied to objects: which entry a pod and its owner match, and the minima (V1).

Free functions on JSON. Nothing in here raises, whatever an object contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from enbloc.api.meta import Obj, controller_of, kind_named, labels_of
from enbloc.config.owner_kinds import Condition, OwnerKind, OwnerRole, Term
from enbloc.gangs.koordinator_values import INT32_MAX

Reference = tuple[str, str]
"""How a pod names an owner: the kind with the name, or empty with the UID."""


class Minima(NamedTuple):
    """What an owner asks for; or why it cannot be read."""

    total: int
    by_role: dict[str, int]
    problem: str = ""


def references(entries: Iterable[OwnerKind], pod: Obj) -> Iterator[tuple[OwnerKind, Reference]]:
    """The entries that a pod is of, each with its owner by that entry."""
    labels, owner = labels_of(pod), controller_of(pod)
    kind, uid = kind_named(owner) if owner is not None else "", str((owner or {}).get("uid") or "")
    for entry in entries:
        if entry.pod_label:
            found = (entry.kind, labels[entry.pod_label]) if labels.get(entry.pod_label) else None
        else:
            found = ("", uid) if owner is not None and kind == entry.kind else None
        if found is not None and all(labels.get(key) == text for key, text in entry.pod_labels.items()):
            yield entry, found


def applies(entry: OwnerKind, owner: Obj) -> bool:
    return all(_holds(one, owner) for one in entry.when) and not any(_holds(one, owner) for one in entry.unless)


def queue_of(entry: OwnerKind, owner: Obj) -> str:
    """The queue that a field of the owner names; empty if none does."""
    found = next(_values(owner, entry.queue.split(".")), None) if entry.queue else None
    return found if isinstance(found, str) else ""


def minima_of(entry: OwnerKind, owner: Obj) -> Minima | None:
    """`None`: the entry sets no minimum, only an annotation does."""
    if not entry.minimum and not entry.roles:
        return None
    by_role: dict[str, int] = {}
    try:
        for role in entry.roles:
            for name, item in _items(role, owner):
                by_role[name] = by_role.get(name, 0) + _product(role.minimum, item)
        total = sum(by_role.values()) if entry.roles else _product(entry.minimum, owner)
        for path in entry.at_most:
            total = min(total, _number(Term(path, total), owner))
    except ValueError as why:
        return Minima(1, {}, f"{owner['kind']} {owner['metadata']['name']}: {why}")
    if total > INT32_MAX:
        return Minima(1, {}, f"{owner['kind']} {owner['metadata']['name']} asks for more than {INT32_MAX} pods")
    return Minima(total, {role: minimum for role, minimum in by_role.items() if minimum})


def _items(role: OwnerRole, owner: Obj) -> Iterator[tuple[str, Any]]:
    if not role.items:
        yield role.name, owner
        return
    found = next(_values(owner, role.items.split(".")), None)
    if isinstance(found, Mapping):
        for key, item in found.items():
            yield str(key).lower(), item
    elif isinstance(found, list):
        for index, item in enumerate(found):
            name = next(_values(item, role.name.split(".")), None)
            if not isinstance(name, str):
                raise ValueError(f"{role.items}[{index}].{role.name} is not a name")
            yield name, item
    elif found is not None:
        raise ValueError(f"{role.items} is neither a list nor a mapping")


def _product(terms: tuple[Term, ...], obj: Any) -> int:
    found = 1
    for term in terms:
        found *= _number(term, obj)
    return found


def _number(term: Term, obj: Any) -> int:
    found = next(_values(obj, term.path.split(".")), None)
    if found is None:
        return term.default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= INT32_MAX:
        raise ValueError(f"{term.path} is not a whole number from 0 to {INT32_MAX}")
    return found


def _holds(condition: Condition, owner: Obj) -> bool:
    values = _values(owner, condition.path.split("."))
    if condition.value is None:
        return any(value not in (None, "", [], {}) for value in values)
    return any(_text(value) == condition.value for value in values)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""


def _values(value: Any, steps: list[str]) -> Iterator[Any]:
    """The values at a path; a step that ends with [] goes into every item of a list."""
    if not steps:
        yield value
        return
    key = steps[0].removesuffix("[]")
    found = value.get(key) if isinstance(value, Mapping) else None
    if found is None:
        return
    if key == steps[0]:
        yield from _values(found, steps[1:])
    elif isinstance(found, list):
        for item in found:
            yield from _values(item, steps[1:])
