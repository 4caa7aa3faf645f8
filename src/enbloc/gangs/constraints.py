"""Constraints that this version does not honour: found in an object, with field, value and way out (N1).

A constraint is *held* where its neglect could run a pod where or when its author forbade it: its gang waits. A
preference is only warned of. Which fields there are is the table in `compatibility`; holding is the engine's part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec

from enbloc.api.meta import Obj


class Effect(StrEnum):
    HONOURED = "honoured"
    HELD = "held"
    """The gang waits with reason UnsupportedConstraint."""
    PREFERENCE = "without effect, a Warning"
    NONE = "without effect"


class Field(msgspec.Struct, frozen=True):
    """One field of one kind, or one case of its values, and what it does here."""

    dialect: str
    kind: str
    """The id of a kind. Fields of a Pod hold for pod templates too."""
    path: str
    """`spec.tasks[].topologyPolicy`, `metadata.annotations[KEY]`: `[]` stands for every item of a list."""
    effect: Effect
    case: str = ""
    """The values that the row is about; empty: every value that is set."""
    way_out: str = ""
    applies: Callable[[Any], bool] = bool
    """Whether a value is such a case. Empty and default values are not set."""


class Unhonoured(msgspec.Struct, frozen=True):
    """A constraint or preference that is set and not honoured."""

    field: str
    value: str
    way_out: str
    holds: bool
    """Whether its gang waits for it; else it is a preference."""

    @property
    def text(self) -> str:
        what = "is not honoured in this version" if self.holds else "has no effect in this version"
        return f"{self.value} {what}; {self.way_out}"

    @property
    def message(self) -> str:
        return f"{self.field}: {self.text}"


def unhonoured(obj: Obj, fields: tuple[Field, ...]) -> list[Unhonoured]:
    """What an object sets and this version does not honour. `fields`: those of its kind."""
    found = []
    for _, field, steps in _begun(obj, fields):
        if not _is_set(obj, steps):
            continue
        for path, value in _values(obj, steps, ""):
            if field.applies(value):
                holds = field.effect is Effect.HELD
                found.append(Unhonoured(path, _shown(value), field.way_out, holds))
    return found


def _begun(obj: Obj, fields: tuple[Field, ...]) -> list[tuple[int, Field, tuple[str, ...]]]:
    """The fields whose first two steps are set, by their place in the table: most objects set none of them, and every
    pod is asked."""
    found: list[tuple[int, Field, tuple[str, ...]]] = []
    for head, by_key in _starts(fields).items():
        value = obj.get(head)
        for key in by_key.keys() & value.keys() if isinstance(value, dict) else ():
            found += by_key[key]
    return sorted(found, key=itemgetter(0)) if len(found) > 1 else found


@lru_cache(maxsize=64)
def _starts(fields: tuple[Field, ...]) -> dict[str, dict[str, list[tuple[int, Field, tuple[str, ...]]]]]:
    """By their first and second step. Every path has two: the objects' top level is the API's."""
    found: dict[str, dict[str, list[tuple[int, Field, tuple[str, ...]]]]] = {}
    for at, field in enumerate(fields):
        steps = _steps(field.path)
        assert "[]" not in steps[:2], field.path
        found.setdefault(steps[0], {}).setdefault(steps[1], []).append((at, field, steps))
    return found


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str, ...]:
    """`spec.tasks[].x` → spec, tasks, [], x; a key in brackets is one step."""
    head, bracket, key = path.partition("[")
    if bracket and not key.startswith("]"):
        return (*head.split("."), key.removesuffix("]"))
    return tuple(path.replace("[]", ".[]").split("."))


def _is_set(value: Any, steps: tuple[str, ...]) -> bool:
    """Whether a value leads to the field, as far as its first list: most fields are not set."""
    for step in steps:
        if step == "[]":
            return isinstance(value, list)
        value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return False
    return True


def _values(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _values(item, rest, f"{path}[{index}]")
    elif isinstance(value, Mapping) and value.get(step) is not None:
        is_key = "/" in step or path.endswith((".annotations", ".labels"))
        yield from _values(value[step], rest, f"{path}[{step}]" if is_key else f"{path}.{step}" if path else step)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
    return text if len(text) <= 120 else f"{text[:119]}…"
