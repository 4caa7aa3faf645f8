"""The documents: links lead to files, decisions are in the index; paths, members and reasons that are named exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from enbloc.api.reasons import PendingReason

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_exist(document: Path) -> None:
    broken = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert broken == []


def test_links_of_pages_stay_in_the_site() -> None:
    """A link out of docs/ leads nowhere on the site: `make docs` refuses it."""
    pages = [path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs")]
    out = {
        path.name: link
        for path in pages
        for link in LINK.findall(path.read_text())
        if not (path.parent / link).resolve().is_relative_to(ROOT / "docs")
    }
    assert out == {}


ANCHORED = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")


def anchors_of(document: Path) -> set[str]:
    """Of its headings, as the site and code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in plain}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_exist(document: Path) -> None:
    found = ANCHORED.findall(document.read_text())
    broken = [
        f"{link}#{anchor}"
        for link, anchor in found
        if anchor not in anchors_of((document.parent / link) if link else document)
    ]
    assert broken == []


def test_every_page_is_in_the_site() -> None:
    """`make docs` builds the site, strict about links; here: mkdocs.yml names every page once, and no other."""
    named = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").glob("*.md")]
    assert sorted(name for name in named if not name.startswith("/")) == sorted([*pages, "decisions/README.md"])


def test_every_decision_is_in_the_index() -> None:
    decisions = ROOT / "docs" / "decisions"
    index = (decisions / "README.md").read_text()
    rows = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \|", index, re.MULTILINE)
    assert sorted(name for _, name in rows) == sorted(path.name for path in decisions.glob("[0-9]*.md"))
    assert [name for number, name in rows if not name.startswith(number)] == []


def test_decisions_named_in_code_and_documents_exist() -> None:
    known = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    named: dict[str, list[str]] = {}
    for path in [*DOCUMENTS, *(ROOT / "src").rglob("*.py")]:
        for number in re.findall(r"decisions?[ /](?:\[)?(\d{4})\b", path.read_text()):
            named.setdefault(number, []).append(str(path.relative_to(ROOT)))
    assert {number: paths for number, paths in named.items() if number not in known} == {}


ARCHITECTURE = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("architecture", "architecture-chapters"))
PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?|units\.py)`")


def test_paths_in_the_architecture_exist() -> None:
    """Paths of tests are relative to the repository, others to src/enbloc."""
    named = PATH.findall(ARCHITECTURE)
    roots = {
        path: ROOT if path.startswith(("src/", "tests/", "scripts/")) else ROOT / "src" / "enbloc" for path in named
    }
    assert len(roots) > 80
    assert [path for path, root in roots.items() if not (root / path).exists()] == []


MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)(?:\([^`]*\))?`")


def test_members_named_in_the_architecture_exist() -> None:
    """`Class.member`, as the page names them: a method or an attribute of that class."""
    members: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.ClassDef):
                members.setdefault(found.name, set()).update(_members_of(found))
    named = MEMBER.findall(ARCHITECTURE)
    assert len(named) > 40
    assert [f"{name}.{member}" for name, member in named if member not in members.get(name, ())] == []


def _members_of(found: ast.ClassDef) -> Iterator[str]:
    for one in ast.walk(found):
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_every_room_is_in_the_tables_of_the_architecture() -> None:
    """Each package and module of src/enbloc and of its engine has a place in the first column of a table."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {
        name for row in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    }
    house = ROOT / "src" / "enbloc"
    rooms = [path for folder in (house, house / "engine") for path in folder.iterdir() if path.name[:2] != "__"]
    paths = [
        f"{room.relative_to(house)}{'/' * room.is_dir()}" for room in rooms if room.is_dir() or room.suffix == ".py"
    ]
    assert len(paths) > 30
    assert sorted(path for path in paths if path not in named) == []


def test_n6_every_reason_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "reasons.md").read_text(), re.MULTILINE)
    assert rows == [reason.value for reason in PendingReason]
