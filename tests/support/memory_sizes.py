"""Sizes of all containers that can be reached from some objects, by the attribute that holds them."""

from __future__ import annotations

import gc
import types
from collections import Counter, deque
from typing import Any

import numpy as np

_PLAIN = (str, bytes, int, float, type(None), type, types.ModuleType, types.CodeType)


def sizes(*roots: object) -> Counter[str]:
    """`Class.attribute` → how many things are in it, over all objects of the class; `{}` and `[]` lead further in. How
    many objects there are of a class of ours is counted under its name."""
    found: Counter[str] = Counter()
    seen: dict[int, object] = {}
    waiting: deque[tuple[str, Any]] = deque(("", root) for root in roots)
    while waiting:
        path, obj = waiting.popleft()
        if isinstance(obj, _PLAIN) or id(obj) in seen:
            continue
        seen[id(obj)] = obj
        if isinstance(obj, np.ndarray):
            found[path] += obj.size
        elif isinstance(obj, dict):
            found[path] += len(obj)
            waiting.extend((path + "{}", one) for pair in obj.items() for one in pair)
        elif isinstance(obj, list | set | frozenset | deque):
            found[path] += len(obj)
            waiting.extend((path + "[]", one) for one in obj)
        elif isinstance(obj, types.MethodType):
            waiting.append((path, obj.__self__))
        elif isinstance(obj, types.FunctionType):
            waiting.extend((f"{obj.__qualname__}()", cell.cell_contents) for cell in obj.__closure__ or ())
        elif type(obj).__module__.startswith("enbloc."):
            found[type(obj).__name__] += 1
            waiting.extend((f"{type(obj).__name__}.{name}", getattr(obj, name, None)) for name in _attributes(obj))
        else:
            waiting.extend((path, one) for one in gc.get_referents(obj))
    return found


def _attributes(obj: object) -> list[str]:
    names = [*getattr(obj, "_fields", ()), *getattr(obj, "__struct_fields__", ()), *getattr(obj, "__dict__", ())]
    for one in type(obj).__mro__:
        slots = one.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return names
