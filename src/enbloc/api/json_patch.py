"""JSON patches (RFC 6902): `apply` one, or compute the `diff` of two values.

Values are never changed in place. A container is copied when a patch first changes it, and that copy is changed from
then on, so the cost of a patch is linear in the sizes of patch and value. Only items of long lists that later items
move for are counted one by one (`MOVED_ITEMS`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.nesting import DEPTH, is_too_deep
from enbloc.api.writes import Refused

MAX_OPERATIONS: Final = 10_000
COPIED_BYTES: Final = 3 * 1024 * 1024
"""The size of all `copy` operations of a patch together: copies of copies would grow without bound."""
MOVED_ITEMS: Final = 100_000_000
"""How many items of lists all insertions and removals of a patch may move together."""

Operation = dict[str, Any]
_REASONS: Final = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}


def apply(target: Any, operations: Any) -> Any:
    """The patched target. Raises `Refused`: 400 if it is not a patch, 413 if too large, 422 if it cannot be applied."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise _refused(400, "a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise _refused(413, f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}")
    patched = _Patched(target)
    for operation in operations:
        patched.execute(operation)
    if is_too_deep(patched.root):  # patch after patch
        raise _refused(400, f"the object would be nested deeper than {DEPTH} levels")
    return patched.root


def diff(before: Any, after: Any) -> list[Operation]:
    """The operations that turn `before` into `after`; none if they are equal. They name only what changed."""
    operations: list[Operation] = []
    _compare(before, after, "", operations)
    return operations


class _Patched:
    """A value under a patch. `_own` are the containers that were copied for it, and may be changed."""

    def __init__(self, target: Any) -> None:
        self.root = target
        self._own: dict[int, Any] = {}
        self._copied_bytes = 0
        self._moved_items = 0

    def execute(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path")
        match operation.get("op"):
            case "add":
                self._add(path, _value(operation))
            case "remove":
                self._remove(path)
            case "replace":
                _get(self.root, path)
                self._replace(path, _value(operation))
            case "move":
                source = _pointer(operation, "from")
                if path[: len(source)] == source and path != source:
                    raise _refused(422, "a value cannot be moved into itself")
                self._add(path, self._remove(source))
            case "copy":
                self._add(path, self._copy(_get(self.root, _pointer(operation, "from"))))
            case "test":
                if not _same(_get(self.root, path), _value(operation)):
                    raise _refused(422, f"the server rejected our request: testing value {_shown(path)} failed")
            case other:
                raise _refused(400, f"{str(other)[:80]!r} is not an operation of a JSON patch")

    def _copy(self, value: Any) -> Any:
        raw = msgspec.json.encode(value)
        self._copied_bytes += len(raw)
        if self._copied_bytes > COPIED_BYTES:
            raise _refused(413, f"the copies of a JSON patch are larger than {COPIED_BYTES} bytes")
        return msgspec.json.decode(raw)

    def _owned(self, value: Any) -> Any:
        """The container itself if it may be changed, else a copy that may."""
        if id(value) in self._own:
            return value
        made = dict(value) if isinstance(value, dict) else list(value)
        self._own[id(made)] = made
        return made

    def _parent(self, path: tuple[str, ...]) -> Any:
        """The container of the last step, which may be changed; every container on the way is."""
        if not isinstance(self.root, (dict, list)):
            raise _missing(path)
        at = self.root = self._owned(self.root)
        for step in path[:-1]:
            if isinstance(at, dict) and step in at:
                key: Any = step
            elif isinstance(at, list):
                key = _index(at, step, path, len(at) - 1)
            else:
                raise _missing(path)
            if not isinstance(at[key], (dict, list)):
                raise _missing(path)
            at[key] = self._owned(at[key])
            at = at[key]
        return at

    def _count_moved(self, count: int) -> None:
        self._moved_items += count
        if self._moved_items > MOVED_ITEMS:
            raise _refused(413, f"the JSON patch moves more than {MOVED_ITEMS} items of lists")

    def _add(self, path: tuple[str, ...], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, step = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[step] = value
            return
        index = len(parent) if step == "-" else _index(parent, step, path, len(parent))
        self._count_moved(len(parent) - index)
        parent.insert(index, value)

    def _remove(self, path: tuple[str, ...]) -> Any:
        if not path:
            raise _refused(422, "the whole object cannot be removed")
        parent, step = self._parent(path), path[-1]
        if isinstance(parent, dict):
            if step not in parent:
                raise _missing(path)
            return parent.pop(step)
        index = _index(parent, step, path, len(parent) - 1)
        self._count_moved(len(parent) - index)
        return parent.pop(index)

    def _replace(self, path: tuple[str, ...], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, step = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[step] = value
        else:
            parent[_index(parent, step, path, len(parent) - 1)] = value


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _refused(400, f"the operation {operation.get('op')} needs a value")
    return operation["value"]


def _pointer(operation: dict[str, Any], key: str) -> tuple[str, ...]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and text[0] != "/"):
        raise _refused(400, f"{key}: {str(text)[:80]!r} is not a JSON pointer")
    if len(text) > 10_000 or text.count("/") > 100:
        raise _refused(400, f"{key}: the pointer is too long")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def _shown(path: tuple[str, ...]) -> str:
    return ("/" + "/".join(path))[:200]


def _missing(path: tuple[str, ...]) -> Exception:
    return _refused(422, f"the server rejected our request: there is nothing at {_shown(path)}")


def _index(items: list[Any], step: str, path: tuple[str, ...], most: int) -> int:
    if not step.isascii() or not step.isdecimal() or len(step) > 9 or (step != "0" and step[0] == "0"):
        raise _missing(path)
    index = int(step)
    if index > most:
        raise _missing(path)
    return index


def _get(target: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            target = target[_index(target, step, path, len(target) - 1)]
        else:
            raise _missing(path)
    return target


def _refused(code: int, message: str) -> Refused:
    return Refused(code, _REASONS[code], message)


def _compare(before: Any, after: Any, path: str, operations: list[Operation]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                operations.append({"op": "remove", "path": f"{path}/{_escaped(key)}"})
        for key, value in after.items():
            where = f"{path}/{_escaped(key)}"
            if key in before:
                _compare(before[key], value, where, operations)
            else:
                operations.append({"op": "add", "path": where, "value": value})
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            _compare(old, new, f"{path}/{index}", operations)
    elif type(before) is not type(after) or before != after:  # to Python, True is 1
        operations.append({"op": "replace", "path": path, "value": after})


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
