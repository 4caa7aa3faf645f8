"""JSON patches (RFC 6902): `apply` one as the API server does, or compute the `diff` of two values.

Kept instead of `jsonpatch` from PyPI, which follows the RFC where the API server does not, and answers other codes: of
102 patches that both were given, 39 were answered differently by jsonpatch 1.47 and evanphx/json-patch 4.13, the API
server's. It also knows no bounds, copies the whole object for each patch, and costs two packages. Not followed here:
which spelling of a number `test` compares.

Values are never changed in place. A container is copied when a patch first changes it, and that copy is changed from
then on, so the cost of a patch is linear in the sizes of patch and value. Only items of long lists that later items
move for are counted one by one (`MOVED_ITEMS`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.nesting import DEPTH, is_too_deep
from enbloc.api.writes import REASONS, Refused

MAX_OPERATIONS: Final = 10_000
COPIED_BYTES: Final = 3 * 1024 * 1024
"""The size of all `copy` operations of a patch together: copies of copies would grow without bound."""
MOVED_ITEMS: Final = 100_000_000
"""How many items of lists all insertions and removals of a patch may move together."""

Operation = dict[str, Any]


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
        value = operation.get("value")  # without one it is null
        match operation.get("op"):
            case "add":
                self._add(path, value)
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, value)
            case "move":
                self._add(path, self._remove(_pointer(operation, "from")))
            case "copy":
                self._add(path, self._copy(_get(self.root, _pointer(operation, "from"))))
            case "test":
                if not _same(_get(self.root, path) if path else self.root, value):
                    raise _failed(f"testing value {_shown(path)} failed")
            case other:
                raise _failed(f"{str(other)[:80]!r} is not an operation of a JSON patch")

    def _copy(self, value: Any) -> Any:
        raw = msgspec.json.encode(value)
        self._copied_bytes += len(raw)
        if self._copied_bytes > COPIED_BYTES:
            raise _failed(f"the copies of a JSON patch are larger than {COPIED_BYTES} bytes")
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
        if not path or not isinstance(self.root, (dict, list)):
            raise _missing(path)
        at = self.root = self._owned(self.root)
        for step in path[:-1]:
            key: Any = _index(step, path, len(at)) if isinstance(at, list) else step
            below = _member(at, step, path)
            if not isinstance(below, (dict, list)):
                raise _missing(path)
            at[key] = self._owned(below)
            at = at[key]
        return at

    def _count_moved(self, count: int) -> None:
        self._moved_items += count
        if self._moved_items > MOVED_ITEMS:
            raise _refused(413, f"the JSON patch moves more than {MOVED_ITEMS} items of lists")

    def _add(self, path: tuple[str, ...], value: Any) -> None:
        parent = self._parent(path)
        if isinstance(parent, dict):
            parent[path[-1]] = value
            return
        index = len(parent) if path[-1] == "-" else _index(path[-1], path, len(parent) + 1)
        self._count_moved(len(parent) - index)
        parent.insert(index, value)

    def _remove(self, path: tuple[str, ...]) -> Any:
        parent, step = self._parent(path), path[-1]
        if isinstance(parent, dict):
            if step not in parent:
                raise _missing(path)
            return parent.pop(step)
        index = _index(step, path, len(parent))
        self._count_moved(len(parent) - index)
        return parent.pop(index)

    def _replace(self, path: tuple[str, ...], value: Any) -> None:
        """A member that does not exist is added."""
        if not path:
            if not isinstance(value, (dict, list)):
                raise _failed("the whole object can be replaced by an object or a list alone")
            self.root = value
            return
        parent = self._parent(path)
        parent[path[-1] if isinstance(parent, dict) else _index(path[-1], path, len(parent))] = value


def _same(one: Any, other: Any) -> bool:
    """Equal in JSON: neither `true` and 1 nor 1 and 1.0 are."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _pointer(operation: dict[str, Any], key: str) -> tuple[str, ...]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and "/" not in text):
        raise _failed(f"{key}: {str(text)[:80]!r} is not a JSON pointer")
    if len(text) > 10_000 or text.count("/") > 100:
        raise _refused(400, f"{key}: the pointer is too long")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def _shown(path: tuple[str, ...]) -> str:
    return ("/" + "/".join(path))[:200]


def _missing(path: tuple[str, ...]) -> Exception:
    return _failed(f"there is nothing at {_shown(path)}")


def _index(step: str, path: tuple[str, ...], length: int) -> int:
    """The index of one of so many items. A negative one counts from their end."""
    digits = step.removeprefix("-") if step.startswith("-") else step.removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        raise _missing(path)
    index = int(step)
    if not -length <= index < length:
        raise _missing(path)
    return index % length


def _get(target: Any, path: tuple[str, ...]) -> Any:
    """The value there, or `None` for a member that does not exist of an object that does."""
    if not path:
        raise _missing(path)
    for step in path[:-1]:
        target = _member(target, step, path)
    return _member(target, path[-1], path)


def _member(target: Any, step: str, path: tuple[str, ...]) -> Any:
    if isinstance(target, dict):
        return target.get(step)
    if isinstance(target, list):
        return target[_index(step, path, len(target))]
    raise _missing(path)


def _failed(why: str) -> Refused:
    return _refused(422, f"the server rejected our request due to an error in our request: {why}")


def _refused(code: int, message: str) -> Refused:
    return Refused(code, REASONS[code], message)


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
