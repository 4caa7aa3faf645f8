"""Server-side apply: a manager applies the fields it wants, and `managedFields` records that it owns them.

Deliberately small: only managers that apply are recorded, not those that patch or replace, so conflicts are found
between two appliers and not between an applier and an editor. A field that its manager no longer applies is removed,
unless another manager applies it too.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from enbloc.api.meta import Fault, Obj
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.list_merge_keys import BUILT_IN_GROUPS, is_set, merge_key

Tree = dict[str, Any]
"""A set of fields as `fieldsV1` writes it: `f:NAME`, `k:{KEY}`, `v:VALUE`; a leaf is empty."""

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
        return "k:" + json.dumps({key: item[key]}, separators=(",", ":"))
    return "v:" + json.dumps(item) if is_set(field) else None


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


def _child(value: Any, field: str, step: str) -> Any:
    """The value of one step of a tree; `field` is the name of the list that the value is."""
    if step.startswith("f:"):
        return value.get(step[2:]) if isinstance(value, dict) else None
    if isinstance(value, list):
        for item in value:
            key = merge_key(field, value)
            if _item_name(field, key, item) == step:
                return item
    return None


def _conflicts(theirs: Tree, mine: Tree, live: Any, wanted: Any, path: str, field: str = "") -> list[str]:
    """The fields that both apply with different values."""
    found = []
    for step in theirs.keys() & mine.keys() - {"."}:
        one, other = _child(live, field, step), _child(wanted, field, step)
        name = step[2:] if step.startswith("f:") else field
        where = f"{path}.{name}" if step.startswith("f:") else f"{path}[{step[2:]}]"
        if (theirs[step] and mine[step]) or (isinstance(one, dict) and isinstance(other, dict)):
            found.extend(_conflicts(theirs[step], mine[step], one, other, where, name))
        elif one != other:
            found.append(where)
    return sorted(found)


def _without(theirs: Tree, mine: Tree) -> Tree:
    """Their fields without mine."""
    kept: Tree = {}
    for step, inner in theirs.items():
        if step not in mine or step == ".":
            kept[step] = inner
        elif isinstance(inner, dict) and inner and mine[step]:
            kept[step] = _without(inner, mine[step])
    return kept


def _pruned(obj: Any, owned: Tree, now: Tree, others: list[Tree], field: str = "") -> Any:
    """The object without fields that were owned, are no longer applied, and have no other owner."""
    for step, inner in owned.items():
        if step == ".":
            continue
        theirs = [other[step] for other in others if step in other]
        child = _child(obj, field, step)
        if child is None:
            continue
        name = step[2:] if step.startswith("f:") else field
        is_leaf = not isinstance(inner, dict) or not inner or "." in inner
        if step not in now and not theirs and is_leaf:
            obj = _dropped(obj, field, step)
        elif isinstance(inner, dict) and inner:  # a partly owned mapping: the rest stays
            wanted = now.get(step)
            changed = _pruned(child, inner, wanted if isinstance(wanted, dict) else {}, theirs, name)
            if changed is not child:
                emptied = not changed and step not in now and not theirs
                obj = _dropped(obj, field, step) if emptied else _put(obj, field, step, changed)
    return obj


def _dropped(obj: Any, field: str, step: str) -> Any:
    if step.startswith("f:"):
        return {key: value for key, value in obj.items() if key != step[2:]}
    key = merge_key(field, obj)
    return [item for item in obj if _item_name(field, key, item) != step]


def _put(obj: Any, field: str, step: str, child: Any) -> Any:
    if step.startswith("f:"):
        return {**obj, step[2:]: child}
    key = merge_key(field, obj)
    return [child if _item_name(field, key, item) == step else item for item in obj]


def _conflict(conflicts: list[tuple[str, str]]) -> Refused:
    faults = tuple(Fault(path, f'conflict with "{manager}"') for manager, path in conflicts)
    listed = "; ".join(f'conflict with "{manager}": {path}' for manager, path in conflicts[:10])
    plural = "s" if len(conflicts) > 1 else ""
    return Refused(409, "Conflict", f"Apply failed with {len(conflicts)} conflict{plural}: {listed}", faults)
