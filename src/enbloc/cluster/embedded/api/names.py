"""Generated UIDs and name suffixes. They come from a counter, so that a run can be repeated exactly."""

from __future__ import annotations

from collections.abc import Container

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no accidental words
_SUFFIXES = len(_ALPHABET) ** 5
_STEP = 5_915_587  # coprime to the alphabet's 27, so that every suffix is used once before one repeats


def generated_uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def generated_name(prefix: str, number: int, taken: Container[str]) -> str:
    """The prefix and five characters, the same for the same history; never a taken name."""
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
