"""The digests: one file for each group, one line for each scenario.

A line is `name scenario decisions sentences`: the digest of what is played, of what was decided and of what was said. A
change is local to the lines that it is about, and says which of the three it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from golden.playing import Played

FOLDER = Path(__file__).parent / "digests"
CHARACTERS = 12
HEADER = "# name, and the digests of scenario, decisions and sentences; written by `make golden`"


class Row(NamedTuple):
    scenario: str
    decisions: str
    sentences: str


def row_of(text: str, played: Played) -> Row:
    return Row(digest("\n", text), digest(*played.decisions), digest(*played.sentences))


def digest(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:CHARACTERS]


def difference(before: Row | None, after: Row | None) -> str:
    """In words, what differs between two rows of a scenario; empty if nothing does."""
    if before is None or after is None:
        return "" if before == after else "new" if before is None else "gone"
    return ", ".join(what for what, old, new in zip(Row._fields, before, after, strict=True) if old != new)


def differing(group: str, played: Iterable[tuple[str, str, Played]]) -> list[str]:
    """Of scenarios (name, text, what happened) of a group those whose row is another one, and what to do about each."""
    rows = read(group)
    whys = {name: difference(rows.get(name), row_of(text, happened)) for name, text, happened in played}
    return [f"{name} ({why}): {advice(name, why)}" for name, why in whys.items() if why]


def advice(name: str, why: str) -> str:
    rewrite = f"`make golden ONLY='{name}'` if it is meant; the commit names the scenario and the rule"
    if why == "new":
        return f"it has no digests: `make golden ONLY='{name}'`"
    if why.startswith("scenario"):
        return f"its file, or the oracle's generator, is another one, which alone says nothing of the engine: {rewrite}"
    return f"`make golden-diff BASE=HEAD ONLY='{name}'` shows it; {rewrite}"


def read(group: str, folder: Path = FOLDER) -> dict[str, Row]:
    """Name → row; nothing if the group has no file."""
    file = folder / f"{group}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    rows: dict[str, Row] = {}
    for line in lines[1:]:
        name, *parts = line.split(" ")
        assert name not in rows, f"{file.name} has two lines of {name}"
        rows[name] = Row(*parts)
    return rows


def write(group: str, rows: dict[str, Row], folder: Path = FOLDER) -> None:
    """Without rows the group has no file."""
    file = folder / f"{group}.txt"
    lines = [HEADER, *(" ".join((name, *row)) for name, row in rows.items())]
    if rows:
        file.write_text("\n".join(lines) + "\n")
    else:
        file.unlink(missing_ok=True)


def groups(folder: Path = FOLDER) -> set[str]:
    """The groups that have a file."""
    return {file.stem for file in folder.iterdir()}
