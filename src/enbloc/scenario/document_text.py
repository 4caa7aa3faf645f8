"""The text of one YAML or JSON document into values, with a bound on depth and on what aliases expand to.

Values are built from the parser's events instead of by PyYAML's constructor: it is faster, it can refuse a duplicate
key by its path, and dates stay the text that the user wrote. Files and their documents are left to `documents`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from enbloc.api.nesting import DEPTH, is_too_deep

EXPANDED_NODES: Final = 1_000_000
"""At most this many values in one document, aliases expanded."""

_TOO_DEEP: Final = f"nested deeper than {DEPTH} levels"


class Problem(Exception):
    """What is wrong with the text of a document, at a path or a line."""

    def __init__(self, message: str, field: str = "", line: int | None = None, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.line = line
        self.column = column

    def text(self, lines_before: int) -> str:
        if self.line is None:
            return self.message
        return f"line {lines_before + self.line + 1}, column {self.column + 1}: {self.message}"


def parsed(chunk: str) -> Iterator[Any]:
    """The values in a text, most often one. Raises `Problem`."""
    text = chunk.strip()
    if text.startswith("{"):
        try:
            value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_bounded_int)
        except RecursionError:
            raise Problem(_TOO_DEEP) from None
        except ValueError:
            pass  # YAML that begins like JSON
        else:
            if text.count("{") + text.count("[") > DEPTH and is_too_deep(value):
                raise Problem(_TOO_DEEP)
            yield value
            return
    try:
        yield from _Builder(chunk).documents()
    except yaml.MarkedYAMLError as why:
        mark = why.problem_mark or why.context_mark
        what = " ".join(part for part in (why.context, why.problem) if part) or "is not YAML"
        if mark is not None and _is_tab(chunk, mark.line, mark.column):
            what = "a tab: YAML is indented with spaces"
        raise Problem(what, "", mark.line if mark else None, mark.column if mark else 0) from None
    except (yaml.YAMLError, RecursionError) as why:
        raise Problem(" ".join(str(why).split()) or "is not YAML") from None


def _is_tab(text: str, line: int, column: int) -> bool:
    lines = text.splitlines()
    return line < len(lines) and lines[line][column : column + 1] == "\t"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        raise Problem("is defined twice", next(key for key in keys if keys.count(key) > 1))
    return mapping


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _bounded_int(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise Problem(f"the number {text[:30]} is out of range (64 bits)")
    return int(text)


_CORE: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = r"0x[0-9a-fA-F]+|0o?[0-7]+|0|[1-9]\d*"
_REAL = r"(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+"
_NUMBER = re.compile(rf"[-+]?(?:{_INTEGER}|{_REAL})", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"
_MERGE = object()


class _Builder:
    """Values from the events of one text. Aliases share what they name; what they would expand to is counted."""

    def __init__(self, text: str) -> None:
        self._next = yaml.CSafeLoader(text).get_event
        self._path: list[Any] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._nodes = 0

    def documents(self) -> Iterator[Any]:
        while True:
            event = self._next()
            if isinstance(event, yaml.StreamEndEvent):
                return
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._nodes = 0
                yield self._value(self._next())

    def _problem(self, message: str) -> Problem:
        field = ""
        for step in self._path:
            field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else str(step)
        return Problem(message, field)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > EXPANDED_NODES:
            raise self._problem(f"holds more than {EXPANDED_NODES:,} values once its aliases are expanded")

    def _value(self, event: Any) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            if event.anchor in self._open:
                raise self._problem(f"the alias *{event.anchor} is inside what it names")
            if event.anchor not in self._anchors:
                raise self._problem(f"the alias *{event.anchor} names nothing before it")
            value, nodes = self._anchors[event.anchor]
            self._count(nodes)
            return value
        self._count(1)
        before = self._nodes
        anchor = event.anchor
        if anchor is not None:
            self._open.add(anchor)
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
        else:
            if len(self._path) >= DEPTH:
                raise Problem(_TOO_DEEP, "", event.start_mark.line, event.start_mark.column)
            value = self._mapping() if kind is yaml.MappingStartEvent else self._sequence()
        if anchor is not None:
            self._open.discard(anchor)
            self._anchors[anchor] = (value, self._nodes - before + 1)
        return value

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        self._path.append(0)
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self._value(event))
            self._path[-1] += 1
        self._path.pop()
        return items

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        self._path.append("")
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._key(event)
            self._path[-1] = "<<" if key is _MERGE else key
            if key is not _MERGE and key in mapping:
                raise self._problem("is defined twice")
            value = self._value(self._next())
            if key is _MERGE:
                merged += self._to_merge(value)
            else:
                mapping[key] = value
            self._path[-1] = ""
        self._path.pop()
        for source in merged:
            for key, value in source.items():
                mapping.setdefault(key, value)
        return mapping

    def _to_merge(self, value: Any) -> list[dict[str, Any]]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._problem("only mappings can be merged")
        return sources

    def _key(self, event: Any) -> Any:
        self._path[-1] = "(key)"
        if type(event) is yaml.ScalarEvent and event.value == "<<" and event.implicit[0]:
            return _MERGE
        key = self._value(event)
        if isinstance(key, str):
            return key
        if type(event) is yaml.ScalarEvent:
            self._path[-1] = event.value
            raise self._problem(f"a key is a text, not {type_name(key)}: quote it")
        self._path.pop()
        raise self._problem(f"a key is a text, not {type_name(key)}")

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.implicit[0]:
            return self._plain(text)
        if event.implicit[1] or event.tag in ("!", None, _TAG + "str"):
            return text
        if event.tag in (_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null"):
            return self._plain(text)
        raise self._problem(f"the tag {event.tag.removeprefix(_TAG)!r} is not supported")

    def _plain(self, text: str) -> Any:
        """A text without quotes: null, a boolean, a number, or just text (dates and clock times too)."""
        if text in _CORE:
            return _CORE[text]
        first = text[0]
        if not (first.isdigit() or first in "+-."):
            return text
        if _NUMBER.fullmatch(text):
            return self._number(text)
        if _NOT_FINITE.fullmatch(text):
            raise self._problem(f"{text} is no number that an object can hold")
        return text

    def _number(self, text: str) -> int | float:
        digits = text.lstrip("+-")
        if digits.isdigit() or digits[:2] in ("0x", "0o"):
            octal = digits[0] == "0" and digits[:2] != "0x"
            value = 2**63 if len(text) > 40 else int(text.replace("o", ""), 8) if octal else int(text, 0)
            if not -(2**63) <= value < 2**63:
                raise self._problem(f"the number {text[:30]} is out of range (64 bits)")
            return value
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise self._problem(f"the number {text[:30]} is out of range")
        return number


def type_name(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "nothing" if value is None else type(value).__name__)
