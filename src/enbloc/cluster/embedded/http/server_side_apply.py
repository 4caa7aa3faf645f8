"""Server-side apply: a manager applies the fields it wants, and `managedFields` records that it owns them.

Deliberately small: only managers that apply are recorded, not those that patch or replace, so conflicts are found
between two appliers and not between an applier and an editor. A field that its manager no longer applies is removed,
unless another manager applies it too. What is merged and what is replaced is in `apply_shapes`.

Items of lists are found through an index, and the number of managers is bounded: the cost is linear in the size of the
object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from enbloc.api.meta import Fault, Obj
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.apply_shapes import Shape

Tree = dict[str, Any]
"""A set of fields as `fieldsV1` writes it: `f:NAME`, `k:{KEY}`, `v:VALUE`; a leaf is empty."""

MANAGERS = 100
"""How many managers one object may have; a client that names itself anew each time would add one each time."""
_PATH = 1_000
"""Longer paths are cut off in messages."""
_IDENTITY = ("apiVersion", "kind")
_OF_METADATA = ("name", "namespace", "generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields")


class Application(msgspec.Struct, frozen=True):
    """Who applies what, and how it is merged."""

    manager: str
    wanted: Obj
    shape: Shape
    force: bool
    at: str
    subresource: str = ""


def apply(current: Obj | None, asked: Application) -> Obj:
    """The object after the apply. Raises `Refused`: 409 if another manager applies another value, 422 if a list of it
    cannot be merged."""
    shape = asked.shape
    tree = _fields(_content(asked.wanted), shape, "")
    live = current or {}
    entries = _entries(live, shape)
    others = [entry for entry in entries if not _is_same(entry, asked)]
    if len(others) >= MANAGERS:
        fault = Fault("metadata.managedFields", f"Too many: {len(others)}: must have at most {MANAGERS} managers")
        raise Refused(422, "Invalid", f"{asked.wanted['kind']} is invalid: {fault}", (fault,))
    mine = [entry for entry in entries if _is_same(entry, asked)]
    conflicts: list[tuple[str, str]] = []
    for entry in others:
        found = _conflicts(entry["fieldsV1"], tree, live, asked.wanted, shape)
        if found and asked.force:
            entry["fieldsV1"] = _without(entry["fieldsV1"], found)
        conflicts.extend((entry["manager"], path) for path in _paths(found, ""))
    if conflicts and not asked.force:
        raise _conflict(conflicts)
    merged = _merge(live, asked.wanted, shape)
    content = _content(merged)  # whatever a client wrote into managedFields, no manager owns the identity
    for entry in mine:
        content = _pruned(content, entry["fieldsV1"], tree, [entry["fieldsV1"] for entry in others], shape)
    identity = {key: value for key, value in merged.items() if key in _IDENTITY}
    named = {key: value for key, value in merged["metadata"].items() if key in _OF_METADATA}
    managed = [*others, _entry(asked, tree, mine)]
    return {**identity, **content, "metadata": {**named, **content.get("metadata", {}), "managedFields": managed}}


def _entry(asked: Application, tree: Tree, mine: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of what this manager owns."""
    made = {
        "manager": asked.manager,
        "operation": "Apply",
        "apiVersion": asked.wanted["apiVersion"],
        "time": asked.at,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }
    if asked.subresource:
        made["subresource"] = asked.subresource
    if mine and mine[0]["fieldsV1"] == tree:
        made["time"] = mine[0].get("time", asked.at)  # applying the same again changes nothing
    return made


def _is_same(entry: dict[str, Any], asked: Application) -> bool:
    """A manager that applies an object and its status has two records."""
    return bool(entry["manager"] == asked.manager and entry.get("subresource", "") == asked.subresource)


def _content(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_METADATA}
    rest = {key: value for key, value in obj.items() if key not in _IDENTITY and key != "metadata"}
    return {**rest, **({"metadata": metadata} if metadata else {})}


def _entries(live: Obj, shape: Shape) -> list[dict[str, Any]]:
    """The recorded managers, as far as they can be decoded, with the fields that still exist."""
    found = live.get("metadata", {}).get("managedFields")
    return [
        {**entry, "fieldsV1": _existing(entry["fieldsV1"], live, shape)}
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict) and isinstance(entry.get("manager"), str)
    ]


def _existing(owned: Tree, live: Any, shape: Shape) -> Tree:
    """What is left of a manager's fields: one that was deleted since has no owner."""
    children = _children(live, shape)
    kept: Tree = {}
    for step, inner in owned.items():
        if step == ".":
            kept[step] = inner
        elif step in children:
            left = _existing(inner, children[step], shape.at(step)) if _is_tree(inner) else inner
            if left or not inner:  # an empty tree is a leaf: it must not be made of one whose fields are all gone
                kept[step] = left
    return kept


def _fields(value: Any, shape: Shape, path: str) -> Tree:
    """The fields of what is applied. Raises `Refused` (422)."""
    tree: Tree = {}
    if not isinstance(value, dict) or shape.is_atomic:
        return tree
    for field, inner in value.items():
        step = f"f:{field}"
        here, where = shape.at(step), f"{path}.{field}"[-_PATH:]
        if isinstance(inner, list):
            tree[step] = _item_fields(inner, here, where)
        else:
            tree[step] = _fields(inner, here, where)
    return tree


def _item_fields(items: list[Any], shape: Shape, path: str) -> Tree:
    shape.check(items, path)
    tree: Tree = {}
    for step, item in zip(shape.steps(items) or (), items, strict=False):
        if step is None:
            return {}
        inner = shape.at(step)
        is_merged = isinstance(item, dict) and not inner.is_atomic
        tree[step] = {".": {}, **_fields(item, inner, f"{path}[{step[2:]}]"[-_PATH:])} if is_merged else {}
    return tree


def _merge(live: Any, wanted: Any, shape: Shape) -> Any:
    if shape.is_atomic:
        return wanted
    merged = dict(live) if isinstance(live, dict) else {}
    for field, value in wanted.items():
        had, inner = merged.get(field), shape.at(f"f:{field}")
        if isinstance(value, dict):
            merged[field] = _merge(had, value, inner)
        elif isinstance(value, list) and isinstance(had, list):
            merged[field] = _merge_items(had, value, inner)
        else:
            merged[field] = value
    return merged


def _merge_items(had: list[Any], wanted: list[Any], shape: Shape) -> list[Any]:
    """The wanted items in their order; those of others stay before the item that they were before."""
    steps = shape.steps([*had, *wanted])
    if steps is None or None in steps[len(had) :]:
        return wanted
    there = list(zip(steps, had, strict=False))
    known = {step: item for step, item in reversed(there) if step is not None}
    applied = {step: item for step, item in zip(steps[len(had) :], wanted, strict=True) if step is not None}
    merged: dict[str, Any] = {}
    position = 0
    for step, item in applied.items():
        while position < len(there) and (there[position][0] not in applied or there[position][0] in merged):
            _keep(merged, *there[position], position)
            position += 1
        merged[step] = _merge(known.get(step), item, shape.at(step)) if isinstance(item, dict) else item
        if position < len(there) and there[position][0] == step:
            position += 1
    for left in range(position, len(there)):
        _keep(merged, *there[left], left)
    return list(merged.values())


def _keep(merged: dict[str, Any], step: str | None, item: Any, position: int) -> None:
    """Adds an item of others; one without a step equals no other."""
    merged.setdefault(step if step is not None else f"#{position}", item)


def _children(value: Any, shape: Shape) -> dict[str, Any]:
    """The steps of a tree into this value, with what is there."""
    if isinstance(value, dict):
        return {} if shape.is_atomic else {f"f:{name}": inner for name, inner in value.items()}
    if not isinstance(value, list):
        return {}
    named: dict[str, Any] = {}
    for step, item in zip(shape.steps(value) or (), value, strict=False):
        if step is not None:
            named.setdefault(step, item)
    return named


def _conflicts(theirs: Tree, mine: Tree, live: Any, wanted: Any, shape: Shape) -> Tree:
    """The fields that both apply with different values."""
    found: Tree = {}
    here, there = _children(live, shape), _children(wanted, shape)
    for step in sorted(theirs.keys() & mine.keys() - {"."}):
        one, other = here.get(step), there.get(step)
        inner = shape.at(step)
        both = _is_tree(theirs[step]) and _is_tree(mine[step]) and not inner.is_atomic
        if both and ((theirs[step] and mine[step]) or (isinstance(one, dict) and isinstance(other, dict))):
            below = _conflicts(theirs[step], mine[step], one, other, inner)
            if below:
                found[step] = below
        elif one != other:
            found[step] = {}
    return found


def _paths(tree: Tree, path: str) -> Iterator[str]:
    """The leaves, as messages name them: `.spec.containers[{"name":"a"}].image`."""
    for step, inner in tree.items():
        where = (f"{path}.{step[2:]}" if step.startswith("f:") else f"{path}[{step[2:]}]")[:_PATH]
        if inner:
            yield from _paths(inner, where)
        else:
            yield where


def _is_tree(value: Any) -> bool:
    """Whether it is a mapping: clients can write anything into `managedFields`."""
    return isinstance(value, dict)


def _without(theirs: Tree, lost: Tree) -> Tree:
    """Their fields without those that they lose."""
    kept: Tree = {}
    for step, inner in theirs.items():
        if step not in lost:
            kept[step] = inner
        elif lost[step] and _is_tree(inner):
            left = _without(inner, lost[step])
            if left:
                kept[step] = left
    return kept


def _pruned(obj: Any, owned: Tree, now: Tree, others: list[Tree], shape: Shape) -> Any:
    """The object without fields that were owned, are no longer applied, and have no other owner."""
    children = _children(obj, shape)
    changes: dict[str, Any] = {}
    for step, inner in owned.items():
        child = children.get(step)
        if step == "." or child is None:
            continue
        theirs = [other[step] for other in others if step in other]
        is_leaf = not _is_tree(inner) or not inner or "." in inner
        if step not in now and not theirs and is_leaf:
            changes[step] = _GONE
        elif _is_tree(inner) and inner:  # a partly owned mapping: the rest stays
            wanted: Any = now.get(step)
            trees = [other for other in theirs if _is_tree(other)]
            changed = _pruned(child, inner, wanted if _is_tree(wanted) else {}, trees, shape.at(step))
            if changed is not child:
                emptied = not changed and step not in now and not theirs
                changes[step] = _GONE if emptied else changed
    return _changed(obj, changes, shape) if changes else obj


_GONE: Any = object()


def _changed(obj: Any, changes: dict[str, Any], shape: Shape) -> Any:
    """The mapping or list with some of its children replaced, or without them."""
    if isinstance(obj, dict):
        named = ((name, changes.get(f"f:{name}", value)) for name, value in obj.items())
        return {name: value for name, value in named if value is not _GONE}
    items = (changes.get(step or "", item) for step, item in zip(shape.steps(obj) or (), obj, strict=False))
    return [item for item in items if item is not _GONE]


def _conflict(conflicts: list[tuple[str, str]]) -> Refused:
    faults = tuple(Fault(path, f'conflict with "{manager}"') for manager, path in conflicts)
    listed = "; ".join(f'conflict with "{manager}": {path}' for manager, path in conflicts[:10])
    plural = "s" if len(conflicts) > 1 else ""
    return Refused(409, "Conflict", f"Apply failed with {len(conflicts)} conflict{plural}: {listed}", faults)
