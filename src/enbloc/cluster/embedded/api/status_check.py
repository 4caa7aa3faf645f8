"""Type check of a status alone, without decoding the rest of the object again."""

from __future__ import annotations

import typing
from functools import cache
from typing import Any

import msgspec

from enbloc.api.kinds import KINDS, view


@cache
def _status_type(kind: str) -> Any:
    known = KINDS.get(kind)
    if known is None or known.view is None:
        return None
    return typing.get_type_hints(known.view).get("status")


def is_good_status(kind: str, status: Any) -> bool:
    expected = _status_type(kind)
    if expected is None:
        return status is None or isinstance(status, dict)
    try:
        view(status, expected)
    except msgspec.ValidationError:
        return False
    return True
