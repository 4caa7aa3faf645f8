"""Single values of a config file: each reader returns a checked value, or notes a problem and returns a default.

Nothing here raises for what a user can write: numbers too large, NaN, lists where a name belongs, YAML that
contains itself. Which value belongs where is for `reading`.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterable
from typing import Any

from enbloc.units import parse_duration

Problem = tuple[str, str]
"""Field path and message."""

ROOT = "."
"""The path of the document itself."""

_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"(\d{1,6})(?:\.(\d{1,18}))?", re.ASCII)

# Far beyond any real argument; they end YAML that refers to itself or multiplies itself.
_MAX_DEPTH = 16
_MAX_VALUES = 10_000


def shown(value: object) -> str:
    """A value for a message: short, on one line, whatever it is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 10**18:
            # Writing out thousands of digits is refused by Python itself.
            return "a number with too many digits"
        case str():
            return f'"{ascii(value[:60])[1:-1]}{"…" if len(value) > 60 else ""}"'
        case int() | float():
            return str(value)
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where no known name is near."""
    lower = {candidate.lower(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name[:60].lower(), lower, n=1, cutoff=0.6)
    return f"; did you mean {lower[close[0]]}?" if close else ""


def label(key: str) -> str:
    """A key for a field path: short and on one line, whatever it is."""
    return ascii(key[:60])[1:-1] or '""'


def child(path: str, key: str) -> str:
    return label(key) if path == ROOT else f"{path}.{label(key)}"


class ValueReader:
    """Reads values and collects problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        """Values that count as something else: the file holds all the same."""
        self._values_left = _MAX_VALUES

    def problem(self, path: str, message: str) -> None:
        self.problems.append((path, message))

    def warning(self, path: str, message: str) -> None:
        self.warnings.append((path, message))

    def mapping(self, value: object, path: str, known: Collection[str] | None = None) -> dict[str, Any]:
        """A mapping with names for keys. Null counts as absent, for the whole mapping and for each value."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(path, f"must be a mapping, not {shown(value)}")
            return {}
        result = {}
        for key, item in value.items():
            if not isinstance(key, str):
                self.problem(path, f"keys must be strings, not {shown(key)}")
            elif known is not None and key not in known:
                self.problem(child(path, key), f"unknown key{nearest(key, known)}")
            elif item is not None:
                result[key] = item
        return result

    def entry(self, value: object, path: str, known: Collection[str] | None = None) -> dict[str, Any] | None:
        """An entry of a list, which must be a mapping: null is a problem here."""
        if value is None:
            self.problem(path, "must be a mapping, not null")
        mapping = self.mapping(value, path, known)
        return mapping if isinstance(value, dict) else None

    def sequence(self, value: object, path: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.problem(path, f"must be a list, not {shown(value)}")
            return []
        if len(value) > _MAX_VALUES:
            self.problem(path, f"must have at most {_MAX_VALUES} entries, not {len(value)}")
            return []
        return list(value)

    def boolean(self, value: object, path: str, default: bool) -> bool:
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problem(path, f"must be true or false, not {shown(value)}")
            return default
        return value

    def choice(self, value: object, path: str, choices: tuple[str, ...], default: str) -> str:
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            self.problem(path, f"must be {' or '.join(choices)}, not {shown(value)}")
            return default
        return value

    def integer(self, value: object, path: str, default: int, low: int, high: int) -> int:
        """A whole number. Volcano's users write them bare or in quotes."""
        number: int | None = None
        match value:
            case None:
                return default
            case bool():
                pass
            case int():
                number = value
            case float() if value.is_integer():
                number = int(value)
            case str() if _WHOLE.fullmatch(value.strip()):
                number = int(value)
        if number is None or not low <= number <= high:
            self.problem(path, f"must be a whole number from {low} to {high}, not {shown(value)}")
            return default
        return number

    def thousandths(self, value: object, path: str, default: int, low: int, high: int) -> int:
        """A decimal, exactly, in thousandths. The text of a float is read, so 1.2 is 1200."""
        if value is None:
            return default
        written = ""
        if isinstance(value, str | float) or (isinstance(value, int) and 0 <= value <= high):
            written = str(value).strip() if not isinstance(value, bool) else ""
        match = _DECIMAL.fullmatch(written)
        if match is not None:
            whole, fraction = match[1], (match[2] or "").rstrip("0")
            if len(fraction) <= 3:
                number = int(whole) * 1000 + int(fraction.ljust(3, "0"))
                if low <= number <= high:
                    return number
        self.problem(
            path,
            f"must be a number from {low // 1000} to {high // 1000} with at most three decimals, not {shown(value)}",
        )
        return default

    def duration(self, value: object, path: str, default: int) -> int:
        """A duration above zero, in nanoseconds."""
        if value is None:
            return default
        try:
            nanos = parse_duration(value) if isinstance(value, str) else None
        except ValueError as error:
            self.problem(path, str(error))
            return default
        if nanos is None or nanos <= 0:
            self.problem(path, f"must be a duration above zero such as 90s or 1h30m, not {shown(value)}")
            return default
        return nanos

    def plain(self, value: object, path: str, depth: int = 0) -> Any:
        """An argument that only a plugin understands: kept unchanged if it is plain data of bounded size."""
        self._values_left -= 1
        if depth > _MAX_DEPTH or self._values_left < 0:
            if self._values_left >= -1:
                self.problem(path, "is nested too deep or too large")
            # Reported once; the rest is skipped quickly.
            self._values_left = min(self._values_left, -2)
            return None
        match value:
            case None | bool() | str():
                return value
            case int() if abs(value) < 2**63:
                return value
            case float() if math.isfinite(value):
                return value
            case list() | tuple():
                return [self.plain(item, f"{path}[{n}]", depth + 1) for n, item in enumerate(value)]
            case dict() if all(isinstance(key, str) for key in value):
                return {key: self.plain(item, child(path, key), depth + 1) for key, item in value.items()}
        self.problem(path, f"must be text, a finite number, true, false, a list or a mapping, not {shown(value)}")
        return None
