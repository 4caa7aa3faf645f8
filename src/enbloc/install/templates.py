"""The objects of `objects.yaml` with what is filled in."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

_ALONE: Final = re.compile(r"\$(\w+)")


def filled(template: str, /, **values: Any) -> Any:
    """The template of that name with these values; what is not among them is left out."""
    return _filled(_templates()[template], values)


@cache
def _templates() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("objects.yaml").read_text())
    return found


def _filled(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        made = {key: _filled(child, values) for key, child in part.items()}
        return {key: child for key, child in made.items() if child is not None}
    if isinstance(part, list):
        items: list[Any] = []
        for child in (_filled(child, values) for child in part):
            items += child if isinstance(child, list) else [child] if child is not None else []
        return items
    if not isinstance(part, str):
        return part
    alone = _ALONE.fullmatch(part)
    return values.get(alone[1]) if alone else Template(part).substitute(values)
