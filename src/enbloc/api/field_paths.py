"""Field paths as messages write them (`spec.tasks[1].replicas`), resolved in an object.

Keys may contain dots (`limits.nvidia.com/gpu`), so a path is read along the object, the longest key first.
"""

from __future__ import annotations

import re
from typing import Any

Step = str | int
_INDEX = re.compile(r"\[(\d+)\]")


def steps_of(value: Any, path: str) -> list[Step]:
    """The steps of a path as far as the object has them."""
    steps: list[Step] = []
    rest = path
    while rest:
        index = _INDEX.match(rest)
        if index and isinstance(value, list) and int(index[1]) < len(value):
            step: Step = int(index[1])
            rest = rest[index.end() :]
        elif isinstance(value, dict) and (key := _longest_key(value, rest.lstrip("."))) is not None:
            step = key
            rest = _after(rest.lstrip("."), key)
        else:
            break
        steps.append(step)
        value = value[step]
    return steps


def _longest_key(value: dict[Any, Any], rest: str) -> str | None:
    found = [key for key in value if isinstance(key, str) and key and _after(rest, key) != rest]
    return max(found, key=len, default=None)


def _after(rest: str, key: str) -> str:
    """What follows a key at the start of a path; the path itself if the key is not there."""
    for spelt in (key, f"[{key}]", f"[{key!r}]"):
        tail = rest[len(spelt) :]
        if rest.startswith(spelt) and (not tail or tail[0] in ".["):
            return tail
    return rest


def without(value: Any, steps: list[Step]) -> Any:
    """A copy without the value at `steps`; everything else is shared."""
    copy = value.copy()
    if len(steps) == 1:
        del copy[steps[0]]
    else:
        copy[steps[0]] = without(value[steps[0]], steps[1:])
    return copy
