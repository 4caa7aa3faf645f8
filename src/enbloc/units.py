"""Quantities, durations, timestamps and label selectors: exact, integer and strict.

Text that users write and the program needs as a number is parsed here, once. No floats: a quantity is a Python integer
of nano-units, a duration and a time one of nanoseconds. Invalid text raises `ValueError` with a sentence for the user;
the caller adds the field.

Times are integers because floats round: ten delays of 0.1 s are not 1 s, and a rule's ≥ must mean what it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

NANO: Final = 10**9
SECOND: Final = 10**9
"""One second in nanoseconds, the unit of all times."""

INT64_MAX: Final = 2**63 - 1

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([numkMGTPE]?|[KMGTPE]i|[eE][+-]?\d{1,3})", re.ASCII)
_SUFFIX: Final[dict[str, int]] = {  # suffix -> nano-units in one of it
    **{suffix: 1000**power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"))},
    **{f"{suffix}i": 1024**power * NANO for power, suffix in enumerate("KMGTPE", 1)},
}


class Quantity:
    """An amount of a resource, exact to the nano-unit, as Kubernetes writes it (`1500m`, `2Gi`, `1e3`)."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    @property
    def value(self) -> int:
        """In whole units, rounded away from zero as Kubernetes does."""
        return _away_from_zero(self.nanos, NANO)

    @property
    def milli(self) -> int:
        """In thousandths, rounded away from zero as Kubernetes does."""
        return _away_from_zero(self.nanos, 10**6)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Quantity({format_quantity(self.nanos)!r})"


def _away_from_zero(nanos: int, unit: int) -> int:
    return -(-nanos // unit) if nanos >= 0 else nanos // unit


_parsed: dict[str | int, Quantity] = {}
_PARSED_BOUND: Final = 10_000


def parse_quantity(text: object) -> Quantity:
    """Reads a quantity from a string or a JSON number; refuses what Kubernetes refuses."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"a quantity is a string or a number, not {type(text).__name__}")
    if isinstance(text, int) and abs(text) > INT64_MAX:
        raise ValueError(f"a number is out of range (at most {INT64_MAX})")  # it may be too long to be shown
    if isinstance(text, float):
        text = repr(text)
    known = _parsed.get(text)
    if known is not None:
        return known
    quantity = Quantity(_quantity_nanos(str(text)))
    if len(_parsed) < _PARSED_BOUND:
        _parsed[text] = quantity
    return quantity


def _quantity_nanos(text: str) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise ValueError(f"{_shown(text)} is not a quantity (such as 2, 500m, 1.5, 4Gi, 1e3)")
    sign, digits, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    mantissa = int((whole + fraction) or "0")
    scale = 10 ** len(fraction)
    if suffix[:1] in ("e", "E") and suffix not in _SUFFIX:
        exponent = int(suffix[1:])
        multiplier = NANO * 10 ** max(exponent, 0)
        scale *= 10 ** max(-exponent, 0)
    else:
        multiplier = _SUFFIX[suffix]
    nanos: int = -(-mantissa * multiplier // scale)  # finer than nano is rounded up, away from zero
    if nanos > INT64_MAX * NANO:
        raise ValueError(f"{_shown(text)} is out of range (at most {INT64_MAX})")
    return -nanos if sign == "-" else nanos


def format_quantity(nanos: int) -> str:
    """The shortest decimal form that reads back to the same amount."""
    for suffix, unit in (("", NANO), ("m", 10**6), ("u", 10**3)):
        if nanos % unit == 0:
            return f"{nanos // unit}{suffix}"
    return f"{nanos}n"


def format_bytes(value: int) -> str:
    """Whole units with the largest exact binary suffix, as memory is usually written."""
    for power, suffix in zip(range(6, 0, -1), "EPTGMK", strict=True):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{suffix}i"
    return str(value)


def format_amount(resource: str, nanos: int) -> str:
    """An amount of a resource in Kubernetes' notation: bytes with a binary suffix, anything else as a decimal."""
    if resource.startswith(("memory", "ephemeral-storage", "storage", "hugepages-")) and nanos % NANO == 0:
        return format_bytes(nanos // NANO)
    return format_quantity(nanos)


_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION_UNIT: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}


def parse_duration(text: object) -> int:
    """Reads a Go duration (`1h30m`, `1.5s`, `300ms`) into nanoseconds."""
    if not isinstance(text, str):
        raise ValueError(f"a duration is a string such as 90s or 1h30m, not {type(text).__name__}")
    rest = text
    negative = rest.startswith("-")
    rest = rest.lstrip("+-") if rest[:1] in ("+", "-") and rest[1:2] not in ("+", "-") else rest
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest) <= 64:
        part = _DURATION_PART.match(rest, position)
        if part is None:
            break
        whole, _, fraction = part[1].partition(".")
        total += int((whole + fraction) or "0") * _DURATION_UNIT[part[2]] // 10 ** len(fraction)
        position = part.end()
    if position != len(rest) or not rest:
        raise ValueError(f"{_shown(text)} is not a duration (such as 90s, 1h30m, 500ms)")
    if total > INT64_MAX:
        raise ValueError(f"{_shown(text)} is out of range (at most about 292 years)")
    return -total if negative else total


def format_duration(duration_ns: int) -> str:
    """A duration as people write it: `1h30m`, `45s`, `0.5s`."""
    sign, rest = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    out = ""
    for unit, size in (("h", 3600 * SECOND), ("m", 60 * SECOND)):
        if rest >= size:
            out += f"{rest // size}{unit}"
            rest %= size
    if rest or not out:
        out += f"{rest // SECOND}" + (f".{rest % SECOND:09d}".rstrip("0") if rest % SECOND else "") + "s"
    return sign + out


_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:\d\d)", re.ASCII)


def parse_timestamp(text: object) -> int:
    """Reads an RFC 3339 time into nanoseconds since the epoch."""
    match = _TIMESTAMP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{_shown(str(text))} is not a time (such as 2026-01-31T08:00:00Z)")
    date, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError as why:
        raise ValueError(f"{_shown(str(text))} is not a time: {why}") from None
    return int(moment.timestamp()) * SECOND + int((fraction or "0").ljust(9, "0"))


def instant_of(text: object) -> int:
    """The same, and 0 for what is no time. Times are compared by it: as text, 1.5 s would come before 1 s."""
    try:
        return parse_timestamp(text)
    except ValueError:
        return 0


def format_timestamp(time_ns: int) -> str:
    """RFC 3339 in UTC; with a fraction only if it is not zero, as the API writes it."""
    seconds, fraction = divmod(time_ns, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00")
    return text + (f".{fraction:09d}".rstrip("0") if fraction else "") + "Z"


def format_micro_timestamp(time_ns: int) -> str:
    """The same with six fractional digits: clients read a MicroTime in no other form."""
    seconds, fraction = divmod(time_ns, SECOND)
    return f"{format_timestamp(seconds * SECOND).removesuffix('Z')}.{fraction // 1_000:06d}Z"


class Requirement:
    """One requirement of a label selector: key, operator, values."""

    __slots__ = ("key", "operator", "values")

    def __init__(self, key: str, operator: str, values: Sequence[str] = ()) -> None:
        if operator not in OPERATORS:
            raise ValueError(f"operator {_shown(operator)} is none of {', '.join(OPERATORS)}")
        if operator in ("In", "NotIn") and not values:
            raise ValueError(f"operator {operator} on {key} needs values")
        if operator in ("Exists", "DoesNotExist") and values:
            raise ValueError(f"operator {operator} on {key} takes no values")
        if operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(values[0])):
            raise ValueError(f"operator {operator} on {key} needs one integer")
        self.key = key
        self.operator = operator
        self.values = frozenset(values)

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or not _INTEGER.fullmatch(value):
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)

    @property
    def fact(self) -> tuple[str, str, tuple[str, ...]]:
        """Equal for equal requirements, whatever the order of their values."""
        return (self.key, self.operator, tuple(sorted(self.values)))


OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


class Selector:
    """A conjunction of requirements. An empty one matches everything; `None` (no selector) matches nothing."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self.requirements = tuple(requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def fact(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        return tuple(sorted(requirement.fact for requirement in self.requirements))


def equality_selector(labels: Mapping[str, str]) -> Selector:
    """The selector of a plain map of labels."""
    return Selector([Requirement(key, "In", [value]) for key, value in sorted(labels.items())])


_NAME_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def is_dns_label(name: str) -> bool:
    """RFC 1123 label: names of roles, namespaces and containers."""
    return len(name) <= 63 and _NAME_LABEL.fullmatch(name) is not None


def is_dns_subdomain(name: str) -> bool:
    """RFC 1123 subdomain: names of most objects."""
    return 0 < len(name) <= 253 and all(_NAME_LABEL.fullmatch(part) for part in name.split("."))


def is_label_value(value: str) -> bool:
    return len(value) <= 63 and _LABEL_VALUE.fullmatch(value) is not None


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key for names with numbers: `n2` before `n10`."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part), part) if part[0].isdecimal() else (1, 0, part) for part in parts)


def _shown(text: str) -> str:
    """A user's text, quoted, on one line and truncated."""
    short = text if len(text) <= 60 else text[:57] + "..."
    return repr(short)
