"""Strategic merge patches: merge patches that merge some lists by key, with directives.

`$patch: replace|delete|merge` in a map or an item, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`,
`$setElementOrder/FIELD`. Which lists are merged, and by which key, is in `list_merge_keys`.
"""

from __future__ import annotations

from typing import Any

from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.list_merge_keys import is_set, merge_key
from enbloc.cluster.embedded.http.status import refusal

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(current: Any, patch: Any) -> dict[str, Any]:
    """The current object with the patch merged into it. Raises `Refused` (400) for invalid directives."""
    if not isinstance(patch, dict):
        raise refusal(400, f"a strategic merge patch is a mapping, not {type(patch).__name__}")
    return _merge_map(current if isinstance(current, dict) else {}, patch)


def _directive(patch: dict[str, Any]) -> str:
    value = patch.get(_DIRECTIVE, "merge")
    if value not in ("merge", "replace", "delete"):
        raise refusal(400, f"{_DIRECTIVE}: {str(value)[:80]!r} must be merge, replace or delete")
    return str(value)


def _merge_map(current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    match _directive(patch):
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
    merged = dict(current)
    if _RETAIN in patch:
        retained = frozenset(_strings(patch[_RETAIN], _RETAIN))
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if key in (_DIRECTIVE, _RETAIN) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            if isinstance(merged.get(field), list) and isinstance(value, list):
                deleted = {encode(item) for item in value}
                merged[field] = [item for item in merged[field] if encode(item) not in deleted]
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            if _directive(value) == "delete":
                merged.pop(key, None)
            else:
                had = merged.get(key)
                merged[key] = _merge_map(had if isinstance(had, dict) else {}, value)
        elif isinstance(value, list):
            merged[key] = _merge_list(key, merged.get(key), value)
        else:
            merged[key] = value
    for key, value in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if isinstance(merged.get(field), list):
                merged[field] = _ordered(field, merged[field], value)
    return merged


def _strings(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise refusal(400, f"{what} must be a list of strings")
    return value


def _merge_list(field: str, current: Any, patch: list[Any]) -> list[Any]:
    had: list[Any] = current if isinstance(current, list) else []
    if is_set(field):
        known = {encode(item) for item in had}
        return [*had, *(item for item in patch if encode(item) not in known)]
    key = merge_key(field, [*had, *patch])
    if key is None:
        return patch
    if not all(isinstance(item, dict) for item in patch):
        raise refusal(400, f"{field}: a list that is merged by {key!r} must hold mappings")
    if any(_directive(item) == "replace" for item in patch):
        return [_merge_map({}, item) for item in patch if _DIRECTIVE not in item]
    merged: dict[bytes, Any] = {}
    for position, item in enumerate(had):
        merged[_identity(item, key, position)] = item
    for item in patch:
        if key not in item:
            raise refusal(400, f"{field}: map: {str(item)[:80]} does not contain declared merge key: {key}")
        identity = _identity(item, key)
        if _directive(item) == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = _merge_map(merged.get(identity) or {}, item)
    return list(merged.values())


def _identity(item: Any, key: str | None, position: int = -1) -> bytes:
    """What identifies an item of a list: its key, or itself; an item without a key equals no other."""
    if key is None:
        return encode(item)
    if isinstance(item, dict) and key in item:
        return encode(item[key])
    return b"#%d" % position


def _ordered(field: str, items: list[Any], order: Any) -> list[Any]:
    """The items in the requested order; those that it does not name stay behind their predecessor."""
    if not isinstance(order, list):
        raise refusal(400, f"{_ORDER}{field} is a list")
    key = merge_key(field, items)
    wanted = {_identity(item, key): position for position, item in enumerate(order)}
    before: list[Any] = []
    named: list[tuple[int, list[Any]]] = []
    for item in items:
        position = wanted.get(_identity(item, key))
        if position is not None:
            named.append((position, [item]))
        elif named:
            named[-1][1].append(item)
        else:
            before.append(item)
    named.sort(key=lambda run: run[0])
    return before + [item for _, run in named for item in run]
