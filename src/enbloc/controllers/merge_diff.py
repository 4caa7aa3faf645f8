"""The smallest JSON merge patch that turns what is into what should be."""

from __future__ import annotations

from typing import Any


def difference(is_now: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A patch over the keys of `wanted` alone, other keys are left be; empty if nothing differs.

    Inside a value that is a mapping the patch is exact: what is there and not wanted is nulled.
    """
    patch: dict[str, Any] = {}
    for key, value in wanted.items():
        before = is_now.get(key)
        if value == before:
            continue
        patch[key] = _exactly(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return patch


def _exactly(before: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(key for key in before if key not in value) | difference(before, value)
