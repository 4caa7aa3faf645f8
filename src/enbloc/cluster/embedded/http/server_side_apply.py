"""Server-side apply: a manager applies the fields it wants, and `managedFields` records that it owns them.

Deliberately small: only managers that apply are recorded, not those that patch or replace, so conflicts are found
between two appliers and not between an applier and an editor. A field that its manager no longer applies is removed,
unless another manager applies it too.

Items of lists are found through an index, and the number of managers is bounded: the cost is linear in the size of the
object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import Fault, Obj
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.list_merge_keys import BUILT_IN_GROUPS, is_set, merge_key

Tree = dict[str, Any]
"""A set of fields as `fieldsV1` writes it: `f:NAME`, `k:{KEY}`, `v:VALUE`; a leaf is empty."""

MANAGERS = 100
"""How many managers one object may have; a client that names itself anew each time would add one each time."""
_PATH = 1_000
"""Longer paths are cut off in messages."""
_IDENTITY = ("apiVersion", "kind")
_OF_METADATA = ("name", "namespace", "generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields")


class Application(msgspec.Struct, frozen=True):
    """Who applies what."""

    manager: str
    wanted: Obj
    force: bool
    at: str


def apply(current: Obj | None, asked: Application) -> Obj:
    """The object after the apply. Raises `Refused` (409) if another manager applies another value."""
    built_in = asked.wanted["apiVersion"].rpartition("/")[0] in BUILT_IN_GROUPS
    tree = _fields(_content(asked.wanted), built_in)
    entries = _entries(current)
    others = [entry for entry in entries if entry["manager"] != asked.manager]
    if len(others) >= MANAGERS:
        fault = Fault("metadata.managedFields", f"Too many: {len(others)}: must have at most {MANAGERS} managers")
        raise Refused(422, "Invalid", f"{asked.wanted['kind']} is invalid: {fault}", (fault,))
    mine = [entry["fieldsV1"] for entry in entries if entry["manager"] == asked.manager]
    live = current or {}
    conflicts: list[tuple[str, str]] = []
    for entry in others:
        found = _conflicts(entry["fieldsV1"], tree, live, asked.wanted, "")
        if found and asked.force:
            entry["fieldsV1"] = _without(entry["fieldsV1"], tree)
        conflicts.extend((entry["manager"], path) for path in found)
    if conflicts and not asked.force:
        raise _conflict(conflicts)
    merged = _merge(live, asked.wanted, built_in)
    for owned in mine:
        merged = _pruned(merged, owned, tree, [entry["fieldsV1"] for entry in others])
    entry = {
        "manager": asked.manager,
        "operation": "Apply",
        "apiVersion": asked.wanted["apiVersion"],
        "time": asked.at,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }
    known = next((one for one in entries if one["manager"] == asked.manager), None)
    if known is not None and known["fieldsV1"] == tree:
        entry["time"] = known.get("time", asked.at)  # applying the same again changes nothing
    managed = [*others, entry]
    return {**merged, "metadata": {**merged["metadata"], "managedFields": managed}}


def _content(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_METADATA}
    rest = {key: value for key, value in obj.items() if key not in _IDENTITY and key != "metadata"}
    return {**rest, **({"metadata": metadata} if metadata else {})}


def _entries(current: Obj | None) -> list[dict[str, Any]]:
    """The recorded managers, as far as they can be decoded."""
    found = (current or {}).get("metadata", {}).get("managedFields")
    return [
        dict(entry)
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict) and isinstance(entry.get("manager"), str)
    ]


def _item_name(field: str, key: str | None, item: Any) -> str | None:
    if key is not None and isinstance(item, dict) and key in item:
        return "k:" + encode({key: item[key]}).decode()
    return "v:" + encode(item).decode() if is_set(field) else None


def _fields(value: Any, built_in: bool) -> Tree:
    tree: Tree = {}
    if not isinstance(value, dict):
        return tree
    for field, inner in value.items():
        if isinstance(inner, dict):
            tree[f"f:{field}"] = _fields(inner, built_in)
        elif isinstance(inner, list) and built_in:
            key = merge_key(field, inner)
            names = [_item_name(field, key, item) for item in inner]
            keyed = inner and all(name is not None for name in names)
            tree[f"f:{field}"] = (
                {
                    name: ({".": {}, **_fields(item, built_in)} if isinstance(item, dict) else {})
                    for name, item in zip(names, inner, strict=True)
                    if name is not None
                }
                if keyed
                else {}
            )
        else:
            tree[f"f:{field}"] = {}
    return tree


def _merge(live: Any, wanted: Any, built_in: bool) -> Any:
    merged = dict(live) if isinstance(live, dict) else {}
    for field, value in wanted.items():
        had = merged.get(field)
        if isinstance(value, dict):
            merged[field] = _merge(had, value, built_in)
        elif isinstance(value, list) and isinstance(had, list) and built_in:
            merged[field] = _merge_items(field, had, value)
        else:
            merged[field] = value
    return merged


def _merge_items(field: str, had: list[Any], wanted: list[Any]) -> list[Any]:
    key = merge_key(field, [*had, *wanted])
    names = [_item_name(field, key, item) for item in wanted]
    if not all(names):
        return wanted
    merged = {_item_name(field, key, item) or str(position): item for position, item in enumerate(had)}
    for name, item in zip(names, wanted, strict=True):
        assert name is not None
        merged[name] = _merge(merged.get(name), item, True) if isinstance(item, dict) else item
    return list(merged.values())


def _children(value: Any, field: str) -> dict[str, Any]:
    """The steps of a tree into this value, with what is there. `field` is the name of the list that the value is."""
    if isinstance(value, dict):
        return {f"f:{name}": inner for name, inner in value.items()}
    if not isinstance(value, list):
        return {}
    key = merge_key(field, value)
    named: dict[str, Any] = {}
    for item in value:
        name = _item_name(field, key, item)
        if name is not None:
            named.setdefault(name, item)
    return named


def _conflicts(theirs: Tree, mine: Tree, live: Any, wanted: Any, path: str, field: str = "") -> list[str]:
    """The fields that both apply with different values."""
    found = []
    here, there = _children(live, field), _children(wanted, field)
    for step in theirs.keys() & mine.keys() - {"."}:
        one, other = here.get(step), there.get(step)
        name = step[2:] if step.startswith("f:") else field
        where = (f"{path}.{name}" if step.startswith("f:") else f"{path}[{step[2:]}]")[:_PATH]
        both = _is_tree(theirs[step]) and _is_tree(mine[step])
        if both and ((theirs[step] and mine[step]) or (isinstance(one, dict) and isinstance(other, dict))):
            found.extend(_conflicts(theirs[step], mine[step], one, other, where, name))
        elif one != other:
            found.append(where)
    return sorted(found)


def _is_tree(value: Any) -> bool:
    """Whether it is a mapping: clients can write anything into `managedFields`."""
    return isinstance(value, dict)


def _without(theirs: Tree, mine: Tree) -> Tree:
    """Their fields without mine."""
    kept: Tree = {}
    for step, inner in theirs.items():
        if step not in mine or step == ".":
            kept[step] = inner
        elif _is_tree(inner) and inner and mine[step]:
            kept[step] = _without(inner, mine[step])
    return kept


def _pruned(obj: Any, owned: Tree, now: Tree, others: list[Tree], field: str = "") -> Any:
    """The object without fields that were owned, are no longer applied, and have no other owner."""
    children = _children(obj, field)
    changes: dict[str, Any] = {}
    for step, inner in owned.items():
        child = children.get(step)
        if step == "." or child is None:
            continue
        theirs = [other[step] for other in others if step in other]
        name = step[2:] if step.startswith("f:") else field
        is_leaf = not _is_tree(inner) or not inner or "." in inner
        if step not in now and not theirs and is_leaf:
            changes[step] = _GONE
        elif _is_tree(inner) and inner:  # a partly owned mapping: the rest stays
            wanted: Any = now.get(step)
            trees = [other for other in theirs if _is_tree(other)]
            changed = _pruned(child, inner, wanted if _is_tree(wanted) else {}, trees, name)
            if changed is not child:
                emptied = not changed and step not in now and not theirs
                changes[step] = _GONE if emptied else changed
    return _changed(obj, changes, field) if changes else obj


_GONE: Any = object()


def _changed(obj: Any, changes: dict[str, Any], field: str) -> Any:
    """The mapping or list with some of its children replaced, or without them."""
    if isinstance(obj, dict):
        named = ((name, changes.get(f"f:{name}", value)) for name, value in obj.items())
        return {name: value for name, value in named if value is not _GONE}
    key = merge_key(field, obj)
    items = (changes.get(_item_name(field, key, item) or "", item) for item in obj)
    return [item for item in items if item is not _GONE]


def _conflict(conflicts: list[tuple[str, str]]) -> Refused:
    faults = tuple(Fault(path, f'conflict with "{manager}"') for manager, path in conflicts)
    listed = "; ".join(f'conflict with "{manager}": {path}' for manager, path in conflicts[:10])
    plural = "s" if len(conflicts) > 1 else ""
    return Refused(409, "Conflict", f"Apply failed with {len(conflicts)} conflict{plural}: {listed}", faults)
