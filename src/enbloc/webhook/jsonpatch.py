"""The difference between two JSON values as a JSON patch (RFC 6902): what a mutating webhook answers."""

from __future__ import annotations

from typing import Any

Operation = dict[str, Any]


def json_patch(before: Any, after: Any) -> list[Operation]:
    """The operations that make `after` out of `before`; none if they are equal. What did not change is not named."""
    operations: list[Operation] = []
    _compare(before, after, "", operations)
    return operations


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
