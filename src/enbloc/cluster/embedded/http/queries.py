"""Parses query parameters and the `Accept` header, strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from enbloc.api.meta import Fault
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.status import refusal

MAX_NUMBER = 2**31
TRUE = ("true", "1", "True", "TRUE", "t", "T")
FALSE = ("false", "0", "False", "FALSE", "f", "F", "")


class ListQuery(msgspec.Struct, frozen=True):
    """The options of a list or a watch."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    after: str = ""
    """The token of `continue`."""
    version: str = ""
    version_match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int | None = None


def list_query(query: Mapping[str, str]) -> ListQuery:
    """Raises `Refused` for invalid values."""
    if not query:
        return ListQuery()
    initial = query.get("sendInitialEvents")
    asked = ListQuery(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=number(query, "limit") or 0,
        after=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        version_match=query.get("resourceVersionMatch", ""),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=None if initial is None else flag(query, "sendInitialEvents"),
        timeout_s=number(query, "timeoutSeconds"),
    )
    _check_versions(asked)
    return asked


def _check_versions(asked: ListQuery) -> None:
    if asked.version and not _is_number(asked.version):
        raise refusal(400, f"Invalid value: {asked.version[:80]!r}: resourceVersion is not a version of this server")
    faults = []
    match, field = asked.version_match, "resourceVersionMatch"
    if match and match not in ("Exact", "NotOlderThan"):
        faults.append(Fault(field, f"Unsupported value: {match[:80]!r}: supported values: Exact, NotOlderThan"))
    if asked.initial_events is not None:
        if not asked.watch:
            faults.append(Fault("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"))
        if match != "NotOlderThan":
            faults.append(Fault(field, "Forbidden: sendInitialEvents requires resourceVersionMatch=NotOlderThan"))
        if not asked.bookmarks:
            faults.append(Fault("allowWatchBookmarks", "Forbidden: sendInitialEvents requires allowWatchBookmarks"))
    elif match and asked.watch:
        faults.append(Fault(field, f"Forbidden: {field} is forbidden for watch"))
    elif match and not asked.version:
        faults.append(Fault(field, f"Forbidden: {field} is forbidden unless resourceVersion is provided"))
    elif match and asked.after:
        faults.append(Fault(field, f"Forbidden: {field} is forbidden when continue is provided"))
    elif match == "Exact" and asked.version == "0":
        faults.append(Fault(field, f"Forbidden: {field} Exact is forbidden for resourceVersion 0"))
    if faults:
        raise _invalid(faults)


def _invalid(faults: list[Fault]) -> Refused:
    return refusal(422, f"ListOptions is invalid: {'; '.join(map(str, faults))}", *faults)


def number(query: Mapping[str, str], key: str) -> int | None:
    text = query.get(key)
    if text is None or text == "":
        return None
    if not _is_number(text) or int(text) > MAX_NUMBER:
        raise refusal(400, f"{key}: {text[:80]!r} is not a number from 0 to {MAX_NUMBER}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def flag(query: Mapping[str, str], key: str) -> bool:
    text = query.get(key, "")
    if text in TRUE:
        return True
    if text not in FALSE:
        raise refusal(400, f"{key}: {text[:80]!r} is neither true nor false")
    return False


def is_dry_run(values: list[str] | tuple[str, ...]) -> bool:
    """Refused (422) unless every value is `All`."""
    for value in values:
        if value != "All":
            fault = Fault("dryRun", f"Unsupported value: {value[:80]!r}: supported values: All")
            raise refusal(422, f"options are invalid: {fault}", fault)
    return bool(values)


def check_field_validation(query: Mapping[str, str]) -> str:
    """How unknown fields are handled: `Strict`, `Warn` or `Ignore`."""
    value = query.get("fieldValidation", "")
    if value not in ("", "Ignore", "Warn", "Strict"):
        fault = Fault("fieldValidation", f"Unsupported value: {value[:80]!r}: supported: Ignore, Strict, Warn")
        raise refusal(422, f"options are invalid: {fault}", fault)
    return value


# -- the representation

Form = Literal["object", "table", "metadata"]


def requested_form(accept: str) -> Form:
    """The first requested representation that is supported. Raises `Refused` (406) if there is none."""
    if not accept or accept == "*/*" or accept == "application/json":
        return "object"
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        as_, group, version = given.get("as"), given.get("g"), given.get("v")
        if as_ is None:
            return "object"
        if group == "meta.k8s.io" and version in ("v1", "v1beta1"):
            if as_ == "Table":
                return "table"
            if as_ in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return "metadata"
    raise refusal(406, "only the following media types are accepted: application/json")
