"""JSON patches (RFC 6902) on objects that never change in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.request_body import BODY_BYTES
from enbloc.cluster.embedded.http.status import refusal

OPERATIONS = 10_000
Change = Callable[[Any, str], Any]


def json_patch(target: Any, operations: Any) -> Any:
    """The patched target. Raises `Refused`: 400 if it is no patch, 422 if it cannot be applied."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise refusal(400, "a JSON patch is a list of operations")
    if len(operations) > OPERATIONS:
        raise refusal(413, f"The allowed maximum operations in a JSON patch is {OPERATIONS}, got {len(operations)}")
    copied = 0
    for operation in operations:
        if operation.get("op") == "copy":
            copied += len(encode(_get(target, _pointer(operation, "from"))))
            if copied > BODY_BYTES:
                raise refusal(413, f"the copies of a JSON patch are larger than {BODY_BYTES} bytes")
        target = _apply(target, operation)
    return target


def _apply(target: Any, operation: dict[str, Any]) -> Any:
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
                raise refusal(422, "a value cannot be moved into itself")
            return _add(_remove(target, source), path, _get(target, source))
        case "copy":
            return _add(target, path, _get(target, _pointer(operation, "from")))
        case "test":
            if not _same(_get(target, path), _value(operation)):
                raise refusal(422, f"the server rejected our request: testing value {_shown(path)} failed")
            return target
        case other:
            raise refusal(400, f"{str(other)[:80]!r} is no operation of a JSON patch")


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise refusal(400, f"the operation {operation.get('op')} needs a value")
    return operation["value"]


def _pointer(operation: dict[str, Any], key: str) -> tuple[str, ...]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and text[0] != "/"):
        raise refusal(400, f"{key}: {str(text)[:80]!r} is no JSON pointer")
    if len(text) > 10_000 or text.count("/") > 100:
        raise refusal(400, f"{key}: the pointer is too long")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def _shown(path: tuple[str, ...]) -> str:
    return ("/" + "/".join(path))[:200]


def _missing(path: tuple[str, ...]) -> Exception:
    return refusal(422, f"the server rejected our request: there is nothing at {_shown(path)}")


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
        raise refusal(422, "the whole object cannot be removed")

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
