"""Single values of Koordinator's annotations: each is read, or replaced by its default with a warning (K3).

Nothing in here raises, whatever the text. `koordinator` combines the values of pods and PodGroups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from enbloc.api import koordinator as keys
from enbloc.api.meta import Obj, annotations_of, labels_of
from enbloc.gangs.model import ONCE_SATISFIED, ONLY_WAITING, WAITING_AND_RUNNING, GangKey
from enbloc.units import SECOND, is_dns_subdomain, parse_duration

DIALECT = "koordinator"
INT32_MAX = 2**31 - 1
MODES = ("Strict", "NonStrict")
POLICIES = (ONCE_SATISFIED, WAITING_AND_RUNNING, ONLY_WAITING)

_MINIMUM_KEYS = (keys.MIN_AVAILABLE, keys.POD_GROUP_KEY + "/min-available")
_GROUPS_KEYS = (keys.GROUPS, keys.GANG_GROUPS)
_DURATION_MAX_NS = 100 * 365 * 24 * 3600 * SECOND


class Written(NamedTuple):
    """The values of an object as text; `None` where it sets none."""

    minimum: str | None = None
    total: str | None = None
    mode: str | None = None
    groups: str | None = None
    waiting: str | None = None
    policy: str | None = None


_NOTHING = Written()
_KEYS = frozenset({*_MINIMUM_KEYS, *_GROUPS_KEYS, keys.TOTAL_NUMBER, keys.MODE, keys.WAITING_TIME, keys.MATCH_POLICY})


class Values(NamedTuple):
    """The same, parsed: `None` where there is no good value."""

    minimum: int | None = None
    bad_minimum: str = ""
    total: int | None = None
    non_strict: bool | None = None
    groups: tuple[GangKey, ...] | None = None
    """Every gang that it names; empty: alone. Equal texts share one tuple, since lists may be long."""
    waiting_ns: int | None = None
    policy: str | None = None
    complaints: tuple[str, ...] = ()


def written(obj: Obj) -> Written:
    """The values in an object's annotations, or else in its labels."""
    annotations, labels = annotations_of(obj), labels_of(obj)
    if _KEYS.isdisjoint(annotations) and _KEYS.isdisjoint(labels):
        return _NOTHING

    def text(*names: str) -> str | None:
        return _first(annotations, names) if any(name in annotations for name in names) else _first(labels, names)

    return Written(
        text(*_MINIMUM_KEYS),
        text(keys.TOTAL_NUMBER),
        text(keys.MODE),
        text(*_GROUPS_KEYS),
        text(keys.WAITING_TIME),
        text(keys.MATCH_POLICY),
    )


def _first(texts: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((texts[name] for name in names if name in texts), None)


@lru_cache(maxsize=1024)
def read(raw: Written) -> Values:
    """The good values, and warnings for the others."""
    complaints: list[str] = []
    minimum = count(raw.minimum) if raw.minimum is not None else None
    bad_minimum = ""
    if raw.minimum is not None and minimum is None:
        bad_minimum = f"min-available {shown(raw.minimum)} is not a whole number from 0 to {INT32_MAX}"
        complaints.append(f"{bad_minimum}: the gang waits until it is")
    total = count(raw.total) if raw.total is not None else None
    if raw.total is not None and total is None:
        complaints.append(f"total-number {shown(raw.total)} is not a whole number: min-available counts")
    if total is not None and minimum is not None and total < minimum:
        complaints.append(f"total-number {total} is below min-available {minimum}: {minimum} counts")
        total = minimum
    if raw.mode is not None and raw.mode not in MODES:
        complaints.append(f"mode {shown(raw.mode)} is neither Strict nor NonStrict: Strict counts")
    groups = _groups(raw.groups, complaints) if raw.groups is not None else None
    waiting_ns = _waiting_ns(raw.waiting, complaints) if raw.waiting is not None else None
    if raw.policy is not None and raw.policy not in POLICIES:
        complaints.append(f"match-policy {shown(raw.policy)} is none of {', '.join(POLICIES)}: the first counts")
    return Values(
        minimum,
        bad_minimum,
        total,
        raw.mode == "NonStrict" if raw.mode in MODES else None,
        groups,
        waiting_ns,
        raw.policy if raw.policy in POLICIES else None,
        tuple(complaints),
    )


def start_fields(obj: Obj, default_waiting_ns: int) -> dict[str, Any]:
    """K1: what Koordinator's annotations on an object of another dialect say of how its gang starts. The minimum is
    that dialect's own; a gang that neither waits for others nor holds pods has no waiting time."""
    raw = written(obj)
    if raw is _NOTHING:
        return {}
    values = read(raw)
    waits = values.non_strict or values.groups or values.waiting_ns
    return {
        "holds": bool(values.non_strict),
        "group": values.groups or (),
        "waiting_ns": values.waiting_ns or default_waiting_ns if waits else 0,
        "match_policy": values.policy or ONCE_SATISFIED,
    }


def start_complaints(obj: Obj) -> Iterator[str]:
    """The bad values among them, and those that do not count there."""
    raw = written(obj)
    if raw.minimum is not None:
        yield f"min-available has no effect on a {obj['kind']}: its own minimum counts"
    if raw.total is not None:
        yield f"total-number has no effect on a {obj['kind']}"
    yield from read(raw._replace(minimum=None, total=None)).complaints


def count(text: str) -> int | None:
    """A number of pods; `None` if the text is not one from 0 to 2³¹−1."""
    text = text.strip()
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        return None
    number = int(text)
    return number if number <= INT32_MAX else None


def _groups(text: str, complaints: list[str]) -> tuple[GangKey, ...] | None:
    """A JSON list, or a comma list, of `namespace/name`. One bad entry makes the whole list bad."""
    names: Any
    if text.lstrip().startswith(("[", "{", '"')):
        try:
            names = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            names = None
    else:
        names = [name for name in text.split(",") if name.strip()]
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        found = [name.strip().split("/") for name in names]
        if all(len(parts) == 2 and all(map(is_dns_subdomain, parts)) for parts in found):
            return tuple(dict.fromkeys(GangKey(DIALECT, namespace, name) for namespace, name in found))
    complaints.append(f"groups {shown(text)} is not a list of namespace/name: the gang is alone")
    return None


def _waiting_ns(text: str, complaints: list[str]) -> int | None:
    try:
        nanos = parse_duration(text.strip())
    except ValueError:
        nanos = 0
    if 0 < nanos <= _DURATION_MAX_NS:
        return nanos
    complaints.append(f"waiting-time {shown(text)} is not a duration above 0 (such as 90s): the default counts")
    return None


def shown(text: str) -> str:
    """A user's text, quoted and cut to 60 characters for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
