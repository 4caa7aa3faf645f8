"""Reads files, directories and stdin into documents, each with its place.

YAML and JSON are read as `kubectl` reads them, with a bound on everything: size, number, depth, and what aliases
expand to (`document_text`). What cannot be read raises `BadInput` with findings that name file, document and field.
What the documents mean is left to `scenario` (and to admission).
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from enbloc.api.field_paths import steps_of
from enbloc.api.meta import Fault
from enbloc.scenario.document_text import Problem, parsed, type_name

FILE_BYTES: Final = 64 * 2**20
TOTAL_BYTES: Final = 512 * 2**20
DOCUMENTS: Final = 500_000
SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
SEARCHED_CHARACTERS: Final = 2**20
"""In a document beyond this size a finding has the line on which the document begins."""


class Finding(msgspec.Struct, frozen=True):
    """A fault and where it was found: one line for people, one object for scripts."""

    file: str
    document: int
    kind: str
    namespace: str
    name: str
    field: str
    message: str
    line: int = 0
    """In the file; 0: unknown."""

    def __str__(self) -> str:
        at = self.line or self.document
        place = f"{self.file}:{at}" if at else self.file
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        head = " ".join(part for part in (place, self.kind, name) if part)
        return ": ".join(one_line(part) for part in (head, self.field, self.message) if part)


class BadInput(Exception):
    """Input that cannot be read at all. Nothing was run."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


class Source(msgspec.Struct, frozen=True, gc=False):
    """The text that a document was read from: where it begins in the file, and which document of it this is."""

    text: str
    lines_before: int
    index: int


class Document(msgspec.Struct, frozen=True, gc=False):
    """One object as it was written. `prefix` is its path inside a `List`."""

    file: str
    number: int
    value: dict[str, Any]
    prefix: str = ""
    source: Source | None = None

    def finding(self, fault: Fault) -> Finding:
        kind, namespace, name = _identity(self.value)
        path = self.prefix + fault.field
        line = line_of(self.source, path) if self.source is not None else 0
        return Finding(self.file, self.number, kind, namespace, name, path, fault.message, line)


def line_of(source: Source, path: str) -> int:
    """The line in its file of the value at a path, or of what is nearest above it."""
    roots = _nodes(source.text) if len(source.text) <= SEARCHED_CHARACTERS else ()
    first = source.lines_before + 1
    if source.index >= len(roots) or roots[source.index] is None:
        return first
    root, value = roots[source.index]
    line = root.start_mark.line
    node = root
    for step in steps_of(value, path):
        if isinstance(node, yaml.MappingNode):
            found = next(((key, child) for key, child in node.value if key.value == step), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        else:
            node = node.value[step]
            line = node.start_mark.line
    return first + int(line)


@lru_cache(maxsize=8)
def _nodes(text: str) -> tuple[Any, ...]:
    """The nodes of each document in a text, with their values."""
    try:
        nodes = list(yaml.compose_all(text, yaml.CSafeLoader))
        return tuple((node, _plain(node)) if node is not None else None for node in nodes)
    except (yaml.YAMLError, RecursionError):
        return ()


def _plain(node: Any) -> Any:
    """Keys and lists alone: enough to follow a path."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(child) for key, child in node.value if isinstance(key, yaml.ScalarNode)}
    return [_plain(child) for child in node.value] if isinstance(node, yaml.SequenceNode) else None


def one_line(text: str) -> str:
    """Text that may hold anything, made fit for one line of a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:1000])


def _identity(value: Any) -> tuple[str, str, str]:
    def text(mapping: Any, key: str) -> str:
        found = mapping.get(key) if isinstance(mapping, dict) else None
        return one_line(found)[:100] if isinstance(found, str) else ""

    metadata = value.get("metadata") if isinstance(value, dict) else None
    return text(value, "kind"), text(metadata, "namespace"), text(metadata, "name")


def read_documents(paths: Iterable[str]) -> list[Document]:
    """Every document of these files, directories (their manifests in name order) and `-` (stdin), lists flattened."""
    documents: list[Document] = []
    total = 0
    for path in _files(paths):
        content = _content(path)
        total += len(content)
        if total > TOTAL_BYTES:
            raise _bad(path, f"the files together hold more than {TOTAL_BYTES >> 20} MiB")
        for number, value, source in _values(path, content):
            documents.extend(_flattened(path, number, value, source))
            if len(documents) > DOCUMENTS:
                raise _bad(path, f"more than {DOCUMENTS:,} documents in all", number)
    return documents


def read_mapping(path: str) -> dict[str, Any]:
    """The one mapping that a file holds (an empty file: none), for the config file."""
    values = [value for _, value, _ in _values(path, _content(path)) if value is not None]
    if len(values) > 1:
        raise _bad(path, f"holds {len(values)} documents, one is expected")
    if values and not isinstance(values[0], dict):
        raise _bad(path, f"must be a mapping, not {type_name(values[0])}")
    return values[0] if values else {}


def _bad(path: str, message: str, document: int = 0, field: str = "") -> BadInput:
    return BadInput([Finding(_shown_path(path), document, "", "", "", field, message)])


def _shown_path(path: str) -> str:
    return "<stdin>" if path == STDIN else path


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        try:
            found = sorted(entry.name for entry in os.scandir(path) if entry.name.endswith(SUFFIXES))
        except OSError as why:
            raise _bad(path, _reason(why)) from None
        if not found:
            raise _bad(path, "is a directory without manifests (*.yaml, *.yml, *.json)")
        yield from (os.path.join(path, name) for name in found)


def _reason(why: OSError) -> str:
    text = why.strerror or str(why)
    return "cannot be read: " + text[:1].lower() + text[1:]


def _content(path: str) -> str:
    try:
        if path == STDIN:
            raw = sys.stdin.buffer.read(FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                if stat.S_ISDIR(os.fstat(file.fileno()).st_mode):
                    raise _bad(path, "is a directory")
                raw = file.read(FILE_BYTES + 1)
    except OSError as why:
        raise _bad(path, _reason(why)) from None
    except ValueError as why:  # a null byte in the name
        raise _bad(path, f"cannot be read: {why}") from None
    if len(raw) > FILE_BYTES:
        raise _bad(path, f"is larger than {FILE_BYTES >> 20} MiB: split it into several files")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as why:
        raise _bad(path, f"is not UTF-8 text (byte {why.start})") from None


def _flattened(path: str, number: int, value: Any, source: Source) -> Iterator[Document]:
    """An object as it is, a `List` as its items, an empty document as nothing."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise _bad(path, f"an object is a mapping, not {type_name(value)}", number)
    kind, items = value.get("kind"), value.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and (kind == "List" or "items" in value)):
        yield Document(_shown_path(path), number, value, source=source)
        return
    if not isinstance(items, list):
        raise _bad(path, "must be a list of objects", number, "items")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise _bad(path, f"an object is a mapping, not {type_name(item)}", number, f"items[{index}]")
        if str(item.get("kind")) == "List":
            raise _bad(path, "a List inside a List", number, f"items[{index}]")
        yield Document(_shown_path(path), number, item, f"items[{index}].", source)


# A line that begins with `---` starts a document wherever it is (YAML forbids it inside any value), so a stream can
# be cut there. JSON documents, which programs write, are then parsed by the faster parser.
_CUT = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)


def _values(path: str, content: str) -> Iterator[tuple[int, Any, Source]]:
    number = 0
    for line, chunk, explicit in _chunks(content):
        if not _CONTENT.search(chunk):
            number += explicit
            continue
        try:
            for index, value in enumerate(parsed(chunk)):
                number += 1
                yield number, value, Source(chunk, line, index)
        except Problem as problem:
            raise _bad(path, problem.text(line), number + 1, problem.field) from None


def _chunks(content: str) -> Iterator[tuple[int, str, bool]]:
    """(line number before it, text, whether `---` opened it) of each document."""
    if _DIRECTIVE.search(content):
        yield 0, content, False
        return
    start, line, explicit = 0, 0, False
    for cut in _CUT.finditer(content):
        yield line, content[start : cut.start()], explicit
        line += content.count("\n", start, cut.start())
        start, explicit = cut.end(), True
    yield line, content[start:], explicit
