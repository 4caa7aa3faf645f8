"""How large an object is, as JSON: an API server stores none beyond etcd's limit."""

from __future__ import annotations

import json

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused

_encode = msgspec.json.Encoder().encode


def encoded(obj: Obj) -> bytes:
    """Raises `RecursionError` if it is nested too deeply."""
    try:
        return _encode(obj)
    except (UnicodeEncodeError, OverflowError, ValueError):  # lone surrogates, integers beyond 64 bits
        return json.dumps(obj).encode()


def size_within(obj: Obj, most_bytes: int) -> int:
    """The object's bytes. Raises `Refused` (413) if it has more, (400) if it is nested too deeply."""
    try:
        size = len(encoded(obj))
    except RecursionError:
        raise Refused(400, "BadRequest", "the object is nested too deeply") from None
    if size > most_bytes:
        what = f"{str(obj.get('kind'))[:80]} {str(obj['metadata'].get('name'))[:80]!r}"
        message = f"Request entity too large: limit is {most_bytes}; {what} would have {size} bytes"
        raise Refused(413, "RequestEntityTooLarge", message)
    return size
