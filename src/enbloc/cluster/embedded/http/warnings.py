"""Warnings to the client that writes an object: values that count as something else (K3, N2). kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from enbloc.admission.settings import Settings
from enbloc.admission.warnings import warnings
from enbloc.api.meta import Obj
from enbloc.gangs.lenient import LenientRegistry

MAX_WARNINGS: Final = 10
LONGEST: Final = 250


class Warnings:
    """The warnings of each kind."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._book = LenientRegistry()
        self._kinds = {"Pod", *self._book.kinds}

    def on(self, kind: str, obj: Obj, others: Sequence[str] = ()) -> list[str]:
        """Texts of `Warning` headers for an accepted object whose kind's id is `kind`, after those of others."""
        texts = [*others]
        texts += [str(warning) for warning in warnings(obj, self._settings)]
        if kind in self._kinds:
            texts += self._book.complaints(obj)
        return [_quoted(text) for text in texts[:MAX_WARNINGS]]


def _quoted(message: str) -> str:
    """As HTTP has it: code, agent, quoted text."""
    text = "".join(letter if " " <= letter <= "~" else "?" for letter in message[:LONGEST])
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
