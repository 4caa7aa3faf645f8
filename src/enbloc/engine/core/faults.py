"""Whose objects were looked at when something raised (S8).

A fault belongs to the gang that the innermost function on the stack was called with: as a gang, as one of its tasks or
claims, or as a decision about it. So nothing is done for it where nothing raises.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from types import CodeType

from enbloc.gangs.model import GangKey


class GangsFailed(Exception):
    """What raised, by gang, where one gang after the other was looked at."""

    def __init__(self, found: Sequence[tuple[GangKey, Exception]]) -> None:
        super().__init__(", ".join("/".join(key) for key, _ in found))
        self.found = found


def culprit(failure: BaseException, held: Container[GangKey] = ()) -> GangKey | None:
    """The gang whose objects made it raise; `None`: it was raised outside any one gang's. A gang that is not `held` yet
    comes first: a fault of one that is may be found in the turn of another."""
    found, found_held, trace = None, None, failure.__traceback__
    while trace is not None:
        values = trace.tb_frame.f_locals
        keys = [key for name in _arguments(trace.tb_frame.f_code) if (key := _gang_of(values.get(name))) is not None]
        found = next((key for key in keys if key not in held), found)
        found_held = next(iter(keys), found_held)
        trace = trace.tb_next
    return found or found_held


def _arguments(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _gang_of(value: object) -> GangKey | None:
    """Of a key, a gang, or anything that is a gang's; of a list, its first."""
    if isinstance(value, (list, tuple)) and not isinstance(value, GangKey):
        value = value[0] if value and not hasattr(value, "_fields") else getattr(value, "gang", None)
    for _ in range(3):  # a claim has a gang, and that has a key
        if value is None or isinstance(value, GangKey):
            return value
        value = getattr(value, "gang", None) or getattr(value, "key", None)
    return None
