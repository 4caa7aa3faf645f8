"""Columns of `kubectl get` as text: a line of kinds, and below it, indented, a line for each of their columns.

`name | cell | type and "wide" | description`: what a cell is, the reader of the table knows. A name alone is the column
that has it under `*`.
"""

from __future__ import annotations

from typing import NamedTuple


class Declared(NamedTuple):
    """A column as it is written. A wide one is shown with `-o wide` only."""

    name: str
    cell: str
    type: str
    is_wide: bool
    description: str


def read_columns(text: str) -> dict[str, list[Declared]]:
    """The columns of each kind."""
    found: dict[str, list[Declared]] = {}
    columns: list[Declared] = []
    for line in text.splitlines():
        if not line.startswith(" "):
            columns = []
            found.update(dict.fromkeys(line.split(), columns))
        elif "|" not in line:
            columns += [one for one in found["*"] if one.name == line.strip()]
        else:
            name, cell, words, description = [*(part.strip() for part in line.split("|")), "", ""][:4]
            kind = words.removesuffix("wide").strip()
            columns.append(Declared(name, cell, kind or "string", words.endswith("wide"), description))
    return found
