"""Label selectors in Kubernetes' text notation: `a=b,c!=d,e in (f,g),h,!i`."""

from __future__ import annotations

import re
from typing import Final

from enbloc.units import Requirement, Selector, is_dns_subdomain, is_label_value

MOST_TERMS: Final = 200
"""A selector with more terms is refused."""

_TERMS = re.compile(r"\s*([^,()]*(?:\([^()]*\)\s*)?)(?:,|$)")
_IN = re.compile(r"([^\s!=<>(),]+)\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_COMPARED = re.compile(r"([^\s!=<>(),]+)\s*(==|!=|=|>|<)\s*([^\s!=<>(),]*)\s*", re.ASCII)
_PLAIN = re.compile(r"(!?)\s*([^\s!=<>(),]+)\s*", re.ASCII)
_KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_OPERATORS: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


def parse_labels(text: str) -> Selector:
    """Raises `ValueError` for text that is not a selector; empty text selects everything."""
    requirements: list[Requirement] = []
    at = 0
    while at < len(text):
        found = _TERMS.match(text, at)
        if found is None or found.end() == at or len(requirements) >= MOST_TERMS:
            raise unreadable(text)
        requirements.append(_requirement(found[1].strip(), text))
        at = found.end()
    return Selector(requirements)


def unreadable(text: str) -> ValueError:
    return ValueError(f"unable to parse the selector {text[:80]!r}")


def _requirement(term: str, text: str) -> Requirement:
    if found := _IN.fullmatch(term):
        values = [value.strip() for value in found[3].split(",")]
        return _checked(found[1], "In" if found[2] == "in" else "NotIn", values, text)
    if found := _COMPARED.fullmatch(term):
        return _checked(found[1], _OPERATORS[found[2]], [found[3]], text)
    if found := _PLAIN.fullmatch(term):
        return _checked(found[2], "DoesNotExist" if found[1] else "Exists", [], text)
    raise unreadable(text)


def _checked(key: str, operator: str, values: list[str], text: str) -> Requirement:
    prefix, slash, name = key.rpartition("/")
    is_key = _KEY_NAME.fullmatch(name) is not None and (not slash or is_dns_subdomain(prefix))
    if not is_key or not all(map(is_label_value, values)):
        raise unreadable(text)
    try:
        return Requirement(key, operator, values)
    except ValueError as why:
        raise ValueError(f"unable to parse requirement: {why}") from None
