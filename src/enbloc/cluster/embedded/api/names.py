"""Names that the server makes up: UIDs and the ends of generated names. From a counter, so that they repeat."""

from __future__ import annotations

from collections.abc import Container

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident
_SUFFIXES = len(_ALPHABET) ** 5
_STEP = 5_915_587  # has no factor 3, so that counting by it meets every suffix once before any repeats


def made_uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def generated_name(prefix: str, number: int, taken: Container[str]) -> str:
    """The prefix and five characters, the same for the same history; never one that is taken."""
    while True:
        name = prefix[: 253 - 5] + _suffix(number)
        if name not in taken:
            return name
        number += 1


def _suffix(number: int) -> str:
    rest = number * _STEP % _SUFFIXES
    out = ""
    for _ in range(5):
        rest, digit = divmod(rest, len(_ALPHABET))
        out += _ALPHABET[digit]
    return out
