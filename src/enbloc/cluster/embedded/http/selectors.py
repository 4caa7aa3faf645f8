"""Label and field selectors as query parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from enbloc.api import label_selectors
from enbloc.api.meta import Obj, labels_of
from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import Selector

Test = Callable[[Obj], bool]


def label_test(text: str) -> Test | None:
    """Whether an object's labels match; `None` if every object does."""
    if not text.strip():
        return None
    selector = parse_labels(text)
    return lambda obj: selector.matches(labels_of(obj))


def parse_labels(text: str) -> Selector:
    """Refused (400) if it is not a selector."""
    try:
        return label_selectors.parse_labels(text)
    except ValueError as why:
        raise refusal(400, str(why)) from None


# -- fields

_METADATA = ("metadata.name", "metadata.namespace")
_FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source.component",
        "type",
    ),
}
_ALIASES = {"source": "source.component", "reportingController": "reportingComponent"}
_REGARDING = "regarding."
_FALSE = ("spec.unschedulable", "spec.hostNetwork")  # absent means false


def field_test(kind: str, text: str) -> Test | None:
    """Whether an object's fields match; refused (400) for a field that this kind cannot be selected by."""
    terms = [_field_term(kind, term) for term in _split(text)]
    if not terms:
        return None

    def test(obj: Obj) -> bool:
        return all((_field(obj, path, name) == wanted) is equal for path, name, equal, wanted in terms)

    return test


def selected_name(text: str) -> str:
    """The name, if the field selector is `metadata.name=NAME` and nothing else."""
    key, equals, name = text.partition("=")
    plain = key == "metadata.name" and equals and not set("=!,\\") & set(name)
    return name if plain else ""


def _split(text: str) -> list[str]:
    terms, term, at = [], "", 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            term += text[at : at + 2]
            at += 1
        elif text[at] == ",":
            terms.append(term)
            term = ""
        else:
            term += text[at]
        at += 1
    terms.append(term)
    if len(terms) > label_selectors.MOST_TERMS:
        raise refusal(400, str(label_selectors.unreadable(text)))
    return [term for term in terms if term.strip()]


_FIELD_TERM = re.compile(r"\s*([A-Za-z.]+)\s*(!=|==|=)((?:[^\\=,]|\\[\\=,])*)")


def _field_term(kind: str, term: str) -> tuple[list[str], str, bool, str]:
    found = _FIELD_TERM.fullmatch(term)
    if found is None:
        raise refusal(400, f"invalid field selector: {term[:80]!r}; can't understand it")
    name = _of_event(found[1]) if kind == "Event" else found[1]
    if name not in _METADATA and name not in _FIELDS.get(kind, ()):
        raise refusal(400, f'field label not supported: "{found[1][:80]}"')
    return name.split("."), name, found[2] != "!=", re.sub(r"\\(.)", r"\1", found[3])


def _of_event(name: str) -> str:
    """The field of a stored Event, by any of its names."""
    if name.startswith(_REGARDING):
        return f"involvedObject.{name.removeprefix(_REGARDING)}"
    return _ALIASES.get(name, name)


def _field(obj: Obj, path: list[str], name: str) -> str:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool) or (value is None and name in _FALSE):
        return "true" if value else "false"
    return "" if value is None else str(value)


def both(one: Test | None, other: Test | None) -> Test | None:
    """Matches what both match."""
    if one is None or other is None:
        return one or other
    return lambda obj: one(obj) and other(obj)


def selector_text(selector: dict[str, Any]) -> str:
    """A LabelSelector as a query parameter."""
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for one in selector.get("matchExpressions") or ():
        values = ",".join(one.get("values") or ())
        match one.get("operator"):
            case "In" | "NotIn" as operator:
                terms.append(f"{one['key']} {operator.lower()} ({values})")
            case "DoesNotExist":
                terms.append(f"!{one['key']}")
            case _:
                terms.append(one["key"])
    return ",".join(terms)
