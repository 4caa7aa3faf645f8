"""How deep what users write may be nested. It is checked where objects come in, without recursion; what reads them
afterwards may go down them by recursion.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

DEPTH: Final = 100
"""No field that any part of this program reads is nested nearly as deep."""
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH + 1):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def shallow(text: bytes) -> bytes:
    """JSON of which all that is nested deeper is null."""
    kept: list[bytes] = []
    level = begin = 0
    for token in _TOKENS.finditer(text):
        bracket = token[0]
        if bracket in (b"[", b"{"):
            level += 1
            if level == DEPTH + 1:
                kept += (text[begin : token.start()], b"null")
        elif bracket in (b"]", b"}"):
            if level == DEPTH + 1:
                begin = token.end()
            level -= 1
    return b"".join((*kept, text[begin:]))


def within_depth(obj: dict[str, Any]) -> dict[str, Any]:
    """The object, not shared yet, without what is nested deeper."""
    if not is_too_deep(obj):
        return obj
    kept: dict[str, Any] = msgspec.json.decode(shallow(msgspec.json.encode(obj)))
    return kept
