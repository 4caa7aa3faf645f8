"""What a gang says that released its claims so that another one could start (K12), until it starts itself.

It is said in the condition alone: no record is left of claims that have ended. A scheduler that starts reads it there.
"""

from __future__ import annotations

import re
from typing import Final

from enbloc.listing import plural

_NOTE: Final = re.compile(
    r"it released (?:[\d,]+ held pods?|the room of [\d,]+ pods?) so that [^;]{1,600}? could start"
)


def released_note(held: int, count: int, title: str) -> str:
    """`held`: how many of the `count` pods whose room was released were held; `title`: of the gang that could start."""
    return f"it released {what_was_released(held, count)} so that {title} could start"


def what_was_released(held: int, count: int) -> str:
    return plural(held, "held pod") if held == count else f"the room of {plural(count, 'pod')}"


def note_in(message: str) -> str:
    """The note in the message of a condition; empty if there is none."""
    found = _NOTE.search(message)
    return found[0] if found is not None else ""
