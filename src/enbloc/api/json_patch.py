"""JSON patches (RFC 6902): `apply` one, or compute the `diff` of two values. Values are never changed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from enbloc.api.writes import Refused

MAX_OPERATIONS: Final = 10_000
COPIED_BYTES: Final = 3 * 1024 * 1024
"""The size of all `copy` operations of a patch together: copies of copies would grow without bound."""

Operation = dict[str, Any]
Change = Callable[[Any, str], Any]
_REASONS: Final = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}


def apply(target: Any, operations: Any) -> Any:
    """The patched target. Raises `Refused`: 400 if it is not a patch, 413 if too large, 422 if it cannot be applied."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise _refused(400, "a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise _refused(413, f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}")
    copied = 0
    for operation in operations:
        if operation.get("op") == "copy":
            copied += len(msgspec.json.encode(_get(target, _pointer(operation, "from"))))
            if copied > COPIED_BYTES:
                raise _refused(413, f"the copies of a JSON patch are larger than {COPIED_BYTES} bytes")
        target = _apply_one(target, operation)
    return target


def diff(before: Any, after: Any) -> list[Operation]:
    """The operations that turn `before` into `after`; none if they are equal. They name only what changed."""
    operations: list[Operation] = []
    _compare(before, after, "", operations)
    return operations


def _apply_one(target: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(target, path, _value(operation))
        case "remove":
            return _remove(target, path)
        case "replace":
            _get(target, path)
            return _replace(target, path, _value(operation))
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise _refused(422, "a value cannot be moved into itself")
            return _add(_remove(target, source), path, _get(target, source))
        case "copy":
            return _add(target, path, _get(target, _pointer(operation, "from")))
        case "test":
            if not _same(_get(target, path), _value(operation)):
                raise _refused(422, f"the server rejected our request: testing value {_shown(path)} failed")
            return target
        case other:
            raise _refused(400, f"{str(other)[:80]!r} is not an operation of a JSON patch")


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


def _changed(target: Any, path: tuple[str, ...], whole: tuple[str, ...], change: Change) -> Any:
    """A copy of the target in which the parent of `path` was changed."""
    if len(path) == 1:
        return change(target, path[0])
    step, rest = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        return {**target, step: _changed(target[step], rest, whole, change)}
    if isinstance(target, list):
        index = _index(target, step, whole, len(target) - 1)
        return [*target[:index], _changed(target[index], rest, whole, change), *target[index + 1 :]]
    raise _missing(whole)


def _add(target: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value

    def add(parent: Any, step: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, step: value}
        if isinstance(parent, list):
            index = len(parent) if step == "-" else _index(parent, step, path, len(parent))
            return [*parent[:index], value, *parent[index:]]
        raise _missing(path)

    return _changed(target, path, path, add)


def _remove(target: Any, path: tuple[str, ...]) -> Any:
    if not path:
        raise _refused(422, "the whole object cannot be removed")

    def remove(parent: Any, step: str) -> Any:
        if isinstance(parent, dict) and step in parent:
            return {key: value for key, value in parent.items() if key != step}
        if isinstance(parent, list):
            index = _index(parent, step, path, len(parent) - 1)
            return [*parent[:index], *parent[index + 1 :]]
        raise _missing(path)

    return _changed(target, path, path, remove)


def _replace(target: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value

    def replace(parent: Any, step: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, step: value}
        index = _index(parent, step, path, len(parent) - 1)
        return [*parent[:index], value, *parent[index + 1 :]]

    return _changed(target, path, path, replace)


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
