"""The columns that a CustomResourceDefinition declares for `kubectl get` (`additionalPrinterColumns`).

Their JSONPath is the subset that Kubernetes allows there: fields, indexes, slices, wildcards and filters that compare a
field with a literal. A path that cannot be read gives empty cells: a definition is stored as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.served_kinds import ServedKinds
from enbloc.cluster.embedded.http import cells
from enbloc.cluster.embedded.http.columns import COLUMNS, ONLY_NAME, WITH_AGE, Cell, Column

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
    |\[(?P<quote>['"])(?P<key>(?:(?!(?P=quote)).)*)(?P=quote)\]
    |\[(?P<index>-?\d+)\]
    |(?P<all>\[\*\]|\.\*)
    |\[(?P<start>-?\d*):(?P<end>-?\d*)\]
    |\[\?\(@\.(?P<tested>[^=!<>\s]+)\s*(?P<compare>==|!=)\s*(?P<mark>['"]?)(?P<literal>.*?)(?P=mark)\)\]
    """,
    re.VERBOSE,
)
_MOST_VALUES: Final = 100
"""Of one cell."""
_Step = Callable[[Any], Sequence[Any]]


def columns_for(served: ServedKinds, kind: str, version: str) -> tuple[Column, ...]:
    """The columns of a kind: those of `columns`, else those that its definition declares, else name and age."""
    known = COLUMNS.get(kind)
    if known is not None:
        return known
    declared = served.columns(kind, version)
    return (*ONLY_NAME, *(_column(one) for one in declared)) if declared else WITH_AGE


def _column(declared: Mapping[str, Any]) -> Column:
    kind = str(declared.get("type") or "string")
    priority = declared.get("priority")
    return Column(
        str(declared.get("name") or ""),
        _cell(str(declared.get("jsonPath") or ""), kind),
        kind,
        priority if isinstance(priority, int) else 0,
        description=str(declared.get("description") or ""),
        format=str(declared.get("format") or ""),
    )


def _cell(path: str, kind: str) -> Cell:
    steps = _read(path)

    def cell(obj: Obj, now_ns: int) -> Any:
        values: Sequence[Any] = [obj] if steps else []
        for step in steps:
            values = [found for value in values for found in step(value)][:_MOST_VALUES]
        if not values or values[0] is None:
            return None
        match kind:
            case "date":
                return cells.since(values[0], now_ns)
            case "integer":
                return cells.integer(values[0])
            case "number" | "boolean":
                return values[0]
        return " ".join(_text(value) for value in values)

    return cell


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(path: str) -> list[_Step]:
    """The steps of a path; none if it cannot be read."""
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or found.end() == at:
            return []
        steps.append(_step(found))
        at = found.end()
    return steps


def _step(found: re.Match[str]) -> _Step:
    parts = found.groupdict()
    if parts["all"]:
        return _children
    if parts["index"] is not None:
        return _slice(int(parts["index"]), None, single=True)
    if parts["compare"]:
        return _filter(parts["tested"], parts["compare"], parts["literal"])
    if parts["start"] is not None:
        bounds = [int(parts[name]) if parts[name] else None for name in ("start", "end")]
        return _slice(bounds[0], bounds[1], single=False)
    field = parts["key"] if parts["field"] is None else re.sub(r"\\(.)", r"\1", parts["field"])
    return lambda value: [value[field]] if isinstance(value, dict) and field in value else []


def _children(value: Any) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _slice(start: int | None, end: int | None, *, single: bool) -> _Step:
    def step(value: Any) -> Sequence[Any]:
        if not isinstance(value, list):
            return []
        if not single:
            return value[start:end]
        assert start is not None
        return [value[start]] if -len(value) <= start < len(value) else []

    return step


def _filter(path: str, compare: str, literal: str) -> _Step:
    fields = path.split(".")

    def holds(value: Any) -> bool:
        for field in fields:
            value = value.get(field) if isinstance(value, dict) else None
        return value is not None and (_text(value) == literal) is (compare == "==")

    return lambda value: [one for one in value if holds(one)] if isinstance(value, list) else []
