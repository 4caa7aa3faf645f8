"""The table of docs/operators.md: written by the run, row by row, never by hand. A run that finds what is there leaves
the page as it is, with the day of the run that found it first."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
HEAD = "| operator | sample | speaks | starts as a gang | one pod too small | a failed pod |"


class Row(NamedTuple):
    name: str
    versions: tuple[str, ...]
    sample: str
    speaks: str
    starts: str
    waits: str
    failed: str

    def text(self) -> str:
        versions = ", ".join(self.versions)
        cells = (versions, f"`{self.sample}`", self.speaks, self.starts, f"“{self.waits}”", self.failed)
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


class Table:
    """Rows of one cluster; `write` puts them between that cluster's marks and leaves the rest of the page alone."""

    def __init__(self, block: str, cluster: str, page: Path = PAGE) -> None:
        self._block = block
        self._cluster = cluster
        self._page = page
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        self._rows.append(row)

    def write(self) -> None:
        if not self._rows:
            return
        known, cluster = self._known(self._page.read_text())
        rows = known | {row.name: row.text() for row in self._rows}
        if (rows, self._cluster) == (known, cluster):
            return
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        lines = [f"On {self._cluster}, {day}:", "", HEAD, "|---|---|---|---|---|---|"]
        lines += [f"{rows[name]}<!-- {name} -->" for name in rows]
        write_block(self._block, lines, self._page)

    def _known(self, text: str) -> tuple[dict[str, str], str]:
        """The rows that an earlier run wrote, so that a run of one story keeps the others; and its cluster."""
        found = _marked(self._block).search(text)
        assert found is not None, f"{self._page} has no place for {self._block}"
        cluster = re.search(r"^On (.*), \S+:$", found[0], re.MULTILINE)
        rows = {name: row for row, name in re.findall(r"^(\| .*\|)<!-- (\S+) -->$", found[0], re.MULTILINE)}
        return rows, cluster[1] if cluster else ""


def write_block(key: str, lines: list[str], page: Path = PAGE) -> None:
    """Writes the lines between the marks of `key`, in place of what is there."""
    block = "\n".join([f"<!-- {key}: written by make operators -->", *lines, f"<!-- {key}: end -->"])
    page.write_text(_marked(key).sub(lambda _: block, page.read_text()))


def _marked(key: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- {key}: written by make operators -->.*?<!-- {key}: end -->", re.DOTALL)
