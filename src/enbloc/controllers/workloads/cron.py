"""The schedule of a CronJob: five fields, or `@hourly` and the like, in a time zone.

As in cron, a day matches if either its day of month or its day of week does, where both are restricted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from enbloc.units import SECOND

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 6))
_MOST_DAYS: Final = 5 * 366
"""29 February comes within this time; what does not come within it never does."""


class Schedule:
    """The instants that a schedule names. Raises `ValueError` if it cannot be read."""

    def __init__(self, text: str, time_zone: str | None = None) -> None:
        fields = _MACROS.get(text.strip().lower(), text).split()
        if len(fields) != 5:
            raise ValueError(f"a schedule has 5 fields (minute hour day month weekday), not {len(fields)}")
        self._minutes, self._hours, self._days, self._months, self._weekdays = (
            _values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
        )
        self._any_day = fields[2][:1] in "*?" or fields[4][:1] in "*?"
        self._zone = _zone(time_zone)

    def next_after(self, at_ns: int) -> int | None:
        """The first instant of the schedule after `at_ns`; `None` if there is none (31 February)."""
        after = datetime.fromtimestamp(at_ns // SECOND, self._zone)
        day = after.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        for _ in range(_MOST_DAYS):
            if self._has_day(day):
                for hour in self._hours:
                    for minute in self._minutes:
                        found = self._instant(day, hour, minute)
                        if found is not None and found > at_ns:
                            return found
            day += timedelta(days=1)
        return None

    def _has_day(self, day: datetime) -> bool:
        if day.month not in self._months:
            return False
        of_month, of_week = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return (of_month and of_week) if self._any_day else (of_month or of_week)

    def _instant(self, day: datetime, hour: int, minute: int) -> int | None:
        """`None` for an hour that the clocks skip on this day."""
        local = day.replace(hour=hour, minute=minute, tzinfo=self._zone)
        instant = local.astimezone(UTC)
        if instant.astimezone(self._zone).replace(tzinfo=None) != local.replace(tzinfo=None):
            return None
        return int(instant.timestamp()) * SECOND


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone {str(name)[:80]!r}") from None


def _values(field: str, what: str, low: int, high: int) -> list[int]:
    """The numbers that one field names: `*`, `*/15`, `1-5`, `mon,wed`, `7` for Sunday."""
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        every = _number(step, what, 1, high + 1) if slash else 1
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _number(start, what, low, high)
            last = _number(end, what, low, high) if dash else high if slash else first
        if first > last:
            raise ValueError(f"{what}: {part[:40]!r} ends before it begins")
        found.update(range(first, last + 1, every))
    return sorted({value % 7 for value in found} if what == "day of week" else found)


def _number(text: str, what: str, low: int, high: int) -> int:
    names = _MONTHS if what == "month" else _DAYS if what == "day of week" else ()
    lower = text.lower()
    if lower in names:
        return names.index(lower) + low
    most = 7 if what == "day of week" else high
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and low <= int(text) <= most):
        raise ValueError(f"{what}: {text[:40]!r} is not a number from {low} to {high}")
    return int(text)
