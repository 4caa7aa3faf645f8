"""The smallest JSON merge patch that turns one object into another."""

from __future__ import annotations

from typing import Any


def difference(current: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A patch over the keys of `wanted` alone, other keys are not touched; empty if nothing differs.

    A value that is a mapping is replaced as a whole: keys that are not in `wanted` are nulled.
    """
    patch: dict[str, Any] = {}
    for key, value in wanted.items():
        before = current.get(key)
        if value == before:
            continue
        patch[key] = _exactly(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return patch


def _exactly(before: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(key for key in before if key not in value) | difference(before, value)
