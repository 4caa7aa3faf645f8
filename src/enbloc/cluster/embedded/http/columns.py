"""The columns of `kubectl get` for each kind. The table is `columns.txt`.

A cell is a field, with what is shown where it is empty (`spec.queue = <none>`), or what a function of `cells` makes
(`age()`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from enbloc.api.columns import Declared, read_columns
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.http import cells

Cell = Callable[[Obj, int], Any]


class Column(msgspec.Struct, frozen=True):
    """A column; one with a priority above 0 is shown with `-o wide` only."""

    name: str
    cell: str | Cell
    """The path of a field, as in `spec.queue`; or what computes the cell of an object at a time."""
    type: str = "string"
    priority: int = 0
    default: str = ""
    description: str = ""
    format: str = ""

    def of(self, obj: Obj, now_ns: int) -> Any:
        if not isinstance(self.cell, str):
            return self.cell(obj, now_ns)
        *path, last = self.cell.split(".")
        value = cells.section(obj, *path).get(last)
        if self.type == "boolean":
            return bool(value)
        return cells.integer(value) if self.type == "integer" else cells.text(value, self.default)


def _column(declared: Declared) -> Column:
    path, _, default = (part.strip() for part in declared.cell.partition("="))
    cell = getattr(cells, path.removesuffix("()")) if path.endswith("()") else path
    form = "name" if path == "metadata.name" else ""
    return Column(declared.name, cell, declared.type, int(declared.is_wide), default, declared.description, form)


_TABLE: Final = Path(__file__).with_name("columns.txt").read_text()
COLUMNS: Final = {kind: tuple(map(_column, declared)) for kind, declared in read_columns(_TABLE).items()}
ONLY_NAME: Final = COLUMNS["*"][:1]
WITH_AGE: Final = COLUMNS["*"][:2]
