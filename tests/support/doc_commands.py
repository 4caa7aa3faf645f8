"""The commands that the documents show: every line of a fenced block that a reader could type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = ("enbloc", "kubectl", "make", "helm", "docker", "skopeo", "cat", "python", "pip")
_HELP = "cli.md"
"""Made of `--help`: its examples are indented by four."""
_COMMAND = re.compile(rf"(?:\.venv/bin/)?(?:{'|'.join(PROGRAMS)}) [a-z-]")


class Shown(NamedTuple):
    page: str
    command: str


def shown() -> list[Shown]:
    """Each command once, with the first page that shows it, in the order of the pages."""
    found: dict[str, str] = {}
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text()):
            if language not in ("", "bash", "console", "sh", "shell", "text"):
                continue
            for line in block.splitlines():
                command = _of(line, page.name == _HELP)
                if command:
                    found.setdefault(command, page.name)
    return [Shown(page, command) for command, page in found.items()]


def _of(line: str, in_help: bool) -> str:
    """The command in a line, without its comment; empty if there is none."""
    if in_help and not re.match(r" {4}\S", line):
        return ""
    text = re.sub(r"\s+#\s.*", "", line.strip()).removeprefix("$ ").removeprefix(".venv/bin/")
    return text.strip() if _COMMAND.match(text) and "  " not in text.strip() else ""
