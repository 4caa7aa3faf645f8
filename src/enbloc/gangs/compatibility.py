"""The fields that bear on where and when pods run, by dialect, and what each does here (N1).

The table is `compatibility.txt`. It decides: gangs are held by it, `lint` and admission warn by it, and
`docs/compatibility.md` is generated from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any, Final

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.gangs.constraints import Effect, Field, Unhonoured, unhonoured

Case = Callable[[Any], bool]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_DEVICE_CONDITIONS: Final = ("selector", "vfSelector", "requiredTopologyScope", "exclusivePolicy")


def _mapping(value: Any) -> dict[str, Any]:
    """A mapping, or the JSON of one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _requires_reservation(value: Any) -> bool:
    return bool(_mapping(value).get(_REQUIRED) or _mapping(value).get("name"))


def _requires_affinity(value: Any) -> bool:
    return any(_mapping(part).get(_REQUIRED) for part in _mapping(value).values())


def _prefers_affinity(value: Any) -> bool:
    return any(_mapping(part).get(_PREFERRED) for part in _mapping(value).values()) and not _requires_affinity(value)


def _restricts_devices(value: Any) -> bool:
    """Whether hints of Koordinator, by type of device, say which devices are not to be taken."""
    return any(_mapping(hint).get(key) for hint in _mapping(value).values() for key in _DEVICE_CONDITIONS)


def _is_one_of(value: Any, values: str) -> bool:
    return value in values.split(", ") if values else bool(value)


_CASES: Final[dict[str, Case]] = {
    "": bool,
    "set": lambda value: value is not None,  # for keys that mean something with an empty value
    "several": lambda value: isinstance(value, list) and len(value) > 1,
    "requires a reservation": _requires_reservation,
    "requires affinity": _requires_affinity,
    "prefers affinity": _prefers_affinity,
    "restricts devices": _restricts_devices,
    "restricts no devices": lambda value: bool(value) and not _restricts_devices(value),
}


def _is_none_of(value: Any, values: str) -> bool:
    """Whether a value is set and none of these, or a mapping with a key that is none of them, `{KEY}`."""
    named = [f"{{{key}}}" for key in value] if isinstance(value, dict) else [value] if value else []
    return any(one not in values.split(", ") for one in named)


def _case(text: str) -> Case:
    """`is A, B`: one of these values. `not A, B`: none of them. `has KEY A, B`: a mapping with one of these there;
    without values: any."""
    word, _, rest = text.partition(" ")
    if word == "is":
        return lambda value: _is_one_of(value, rest)
    if word == "not":
        return lambda value: _is_none_of(value, rest)
    if word == "has":
        key, _, values = rest.partition(" ")
        return lambda value: _is_one_of(_mapping(value).get(key), values)
    return _CASES[text]


def _read(table: str) -> Iterator[Field]:
    for line in table.splitlines():
        if not line.startswith("#"):
            cells = [cell.strip() for cell in line.split("|")]
            dialect, kind, path, values, effect, way_out, when = cells + [""] * (7 - len(cells))
            yield Field(dialect, kind, path, Effect[effect.upper()], values, way_out, _case(when))


FIELDS: Final = tuple(_read(resources.files("enbloc.gangs").joinpath("compatibility.txt").read_text()))

_CHECKED: Final[dict[str, tuple[Field, ...]]] = {
    kind: tuple(field for field in FIELDS if field.kind == kind and field.effect in (Effect.HELD, Effect.PREFERENCE))
    for kind in dict.fromkeys(field.kind for field in FIELDS)
}


def constraints_of(obj: Obj) -> list[Unhonoured]:
    """What an object sets and this version does not honour, its pod templates aside."""
    fields = _CHECKED.get(kind_id(obj))
    return unhonoured(obj, fields) if fields else []


def template_constraints(template: Any) -> list[Unhonoured]:
    """The same of a pod template."""
    return unhonoured(template, _CHECKED["Pod"]) if isinstance(template, dict) else []


def pod_constraints(pod: Obj) -> list[Unhonoured]:
    return unhonoured(pod, _CHECKED["Pod"])
