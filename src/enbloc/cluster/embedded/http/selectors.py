"""Label and field selectors as query parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from enbloc.api.meta import Obj, labels_of
from enbloc.cluster.embedded.http.status import refusal
from enbloc.units import Requirement, Selector, is_dns_subdomain, is_label_value

Test = Callable[[Obj], bool]

_TERMS = re.compile(r"\s*([^,()]*(?:\([^()]*\)\s*)?)(?:,|$)")
_IN = re.compile(r"([^\s!=<>(),]+)\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_COMPARED = re.compile(r"([^\s!=<>(),]+)\s*(==|!=|=|>|<)\s*([^\s!=<>(),]*)\s*", re.ASCII)
_PLAIN = re.compile(r"(!?)\s*([^\s!=<>(),]+)\s*", re.ASCII)
_KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_TERM_BOUND = 200


def label_test(text: str) -> Test | None:
    """Whether an object's labels match; `None` if every object does."""
    if not text.strip():
        return None
    selector = parse_labels(text)
    return lambda obj: selector.matches(labels_of(obj))


def parse_labels(text: str) -> Selector:
    """`a=b,c!=d,e in (f,g),h,!i`. Refused (400) if it is not a selector."""
    requirements: list[Requirement] = []
    at = 0
    while at < len(text):
        found = _TERMS.match(text, at)
        if found is None or found.end() == at or len(requirements) >= _TERM_BOUND:
            raise _unreadable(text)
        requirements.append(_requirement(found[1].strip(), text))
        at = found.end()
    return Selector(requirements)


def _requirement(term: str, text: str) -> Requirement:
    if found := _IN.fullmatch(term):
        values = [value.strip() for value in found[3].split(",")]
        return _checked(found[1], "In" if found[2] == "in" else "NotIn", values, text)
    if found := _COMPARED.fullmatch(term):
        return _checked(found[1], _OPERATORS[found[2]], [found[3]], text)
    if found := _PLAIN.fullmatch(term):
        return _checked(found[2], "DoesNotExist" if found[1] else "Exists", [], text)
    raise _unreadable(text)


def _checked(key: str, operator: str, values: list[str], text: str) -> Requirement:
    prefix, slash, name = key.rpartition("/")
    good = _KEY_NAME.fullmatch(name) is not None and (not slash or is_dns_subdomain(prefix))
    if not good or not all(map(is_label_value, values)):
        raise _unreadable(text)
    try:
        return Requirement(key, operator, values)
    except ValueError as why:
        raise refusal(400, f"unable to parse requirement: {why}") from None


def _unreadable(text: str) -> Exception:
    return refusal(400, f"unable to parse the selector {text[:80]!r}")


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
    if len(terms) > _TERM_BOUND:
        raise _unreadable(text)
    return [term for term in terms if term.strip()]


_FIELD_TERM = re.compile(r"\s*([A-Za-z.]+)\s*(!=|==|=)((?:[^\\=,]|\\[\\=,])*)")


def _field_term(kind: str, term: str) -> tuple[list[str], str, bool, str]:
    found = _FIELD_TERM.fullmatch(term)
    if found is None:
        raise refusal(400, f"invalid field selector: {term[:80]!r}; can't understand it")
    name = _ALIASES.get(found[1], found[1]) if kind == "Event" else found[1]
    if name not in _METADATA and name not in _FIELDS.get(kind, ()):
        raise refusal(400, f'field label not supported: "{found[1][:80]}"')
    return name.split("."), name, found[2] != "!=", re.sub(r"\\(.)", r"\1", found[3])


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
