"""What whoever writes an object hears besides the answer: values that are read as something else (K3). kubectl prints
it as a warning."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Obj, annotations_of, labels_of
from enbloc.gangs.registry import GangRegistry

TOLD: Final = 10
LONGEST: Final = 250


class Advice:
    """Knows what may be bad in which kind."""

    def __init__(self) -> None:
        self._book = GangRegistry()
        self._kinds = {"Pod", *self._book.kinds}

    def on(self, kind: str, obj: Obj) -> list[str]:
        """On an object that was taken, and whose kind's id is `kind`: texts for headers `Warning`, if any."""
        if kind not in self._kinds or (kind == "Pod" and not annotations_of(obj) and not labels_of(obj)):
            return []
        return [_quoted(told) for told in self._book.complaints(obj)[:TOLD]]


def _quoted(message: str) -> str:
    """As HTTP has it: code, agent, quoted text."""
    text = "".join(letter if " " <= letter <= "~" else "?" for letter in message[:LONGEST])
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
