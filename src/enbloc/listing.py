"""How messages list names, the first few and how many more there are, and count things."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """`a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def plural(count: int, what: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
