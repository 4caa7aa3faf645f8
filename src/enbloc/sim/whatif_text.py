"""The answer of `enbloc whatif` as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from enbloc.listing import listed
from enbloc.sim.whatif import Comparison, Difference, Fate
from enbloc.units import SECOND, format_duration

COLUMNS: Final = ("GANG", "QUEUE", "CHANGE", "BEFORE", "AFTER")
_MOST_NAMED: Final = 5


def cells(one: Difference) -> list[str]:
    return [one.gang, one.queue, _change(one), _text(one.before), _text(one.after)]


def _change(one: Difference) -> str:
    before, after = one.before, one.after
    if one.change == "evicted" and after is not None:
        return f"evicted ({after.evicted_pods} pod{'' if after.evicted_pods == 1 else 's'})"
    if before is not None and after is not None and one.change in ("starts later", "starts sooner"):
        was = before.restarted if before.evicted is not None else before.started
        becomes = after.restarted if after.evicted is not None else after.started
        if was is not None and becomes is not None:
            return f"starts {_span(abs(becomes - was))} {one.change.removeprefix('starts ')}"
    return one.change


def _text(fate: Fate | None) -> str:
    """One run of a gang, shortly."""
    if fate is None:
        return "-"
    parts = []
    if fate.started is not None:
        parts.append("runs" if fate.started < 0 else f"starts {_at(fate.started)}")
    if fate.evicted is not None:
        parts.append(f"evicted {_at(fate.evicted)}")
        if fate.restarted is not None:
            parts.append(f"starts again {_at(fate.restarted)}")
    if fate.outcome == "waiting":
        parts.append(f"waits: {fate.why}" if fate.why else "waits")
    elif fate.ended is not None:
        word = {"succeeded": "ends", "failed": "fails"}.get(fate.outcome, "is removed")
        parts.append(f"{word} {_at(fate.ended)}")
    return ", ".join(parts)


def _at(seconds: float) -> str:
    return "now" if seconds <= 0 else f"in {_span(seconds)}"


def _span(seconds: float) -> str:
    return format_duration(round(seconds) * SECOND if seconds >= 1 else round(seconds * SECOND))


def notes(comparison: Comparison, until: str) -> Iterator[str]:
    """What the answer rests on."""
    count = len(comparison.differences)
    yield f"{count} gang{'' if count == 1 else 's'} would change, {comparison.unchanged} would not."
    if comparison.endless:
        named = listed(comparison.endless, _MOST_NAMED)
        yield (
            f"Assumed to run for ever, since they give no enbloc.dev/expected-duration: {named}. "
            "`--default-run-time` sets another."
        )
    yield f"Cut off: {comparison.cut_off}" if comparison.cut_off else f"Looked ahead {until}."


def as_json(comparison: Comparison, what: str, at: str) -> dict[str, Any]:
    return {
        "whatif": what,
        "at": at,
        "changes": [msgspec.to_builtins(one) for one in comparison.differences],
        "unchanged": comparison.unchanged,
        "endless": comparison.endless,
        "cut_off": comparison.cut_off,
        "end": {"before": comparison.end[0], "after": comparison.end[1]},
    }
