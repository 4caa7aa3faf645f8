"""What an object says about contention, by annotation or label, in any dialect: how long it can wait before it starves,
how long it will run, and whether it may be evicted (R1, R8, P2).

A gang's object speaks for all its pods; what a pod says of itself comes first. A value that cannot be read does not
count, and is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from enbloc.api.meta import Obj, annotations_of, labels_of
from enbloc.units import SECOND, parse_duration

PATIENCE: Final = "volcano.sh/sla-waiting-time"
RUN_TIME: Final = "enbloc.dev/expected-duration"
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN: Final = "volcano.sh/cooldown-time"
EXPECTED_START: Final = "enbloc.dev/expected-start"
"""Where a gang's expected start is published."""

_DURATIONS: Final = (PATIENCE, RUN_TIME, COOLDOWN)


class SchedulingHints(NamedTuple):
    """Durations in nanoseconds."""

    patience: int | None = None
    """It starves after so long, whatever the config says."""
    run_time: int | None = None
    """How long it is expected to run; `None`: nobody knows, so it counts as endless."""
    protected: bool = False
    """Never a victim."""
    cooldown: int = 0
    """Not a victim before it has run so long."""


NONE: Final = SchedulingHints()


def terms_of(obj: Obj) -> SchedulingHints:
    if not obj.get("metadata"):
        return NONE
    notes, labels = annotations_of(obj), labels_of(obj)
    if not notes and not labels:
        return NONE
    found = SchedulingHints(
        _duration(notes.get(PATIENCE)),
        _duration(notes.get(RUN_TIME)),
        "false" in (notes.get(PREEMPTABLE), labels.get(PREEMPTABLE)),
        _duration(notes.get(COOLDOWN) or labels.get(COOLDOWN)) or 0,
    )
    return found if found != NONE else NONE


def pod_terms(pod: Obj) -> SchedulingHints:
    """The same of a pod, or of a template of pods: a deadline ends it, so it runs no longer than that."""
    said = terms_of(pod)
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    if not isinstance(deadline, int) or deadline <= 0:
        return said
    longest = min(deadline, 10**9) * SECOND
    return said._replace(run_time=longest if said.run_time is None else min(longest, said.run_time))


def complaints(obj: Obj) -> Iterator[str]:
    """What is written and cannot be read."""
    notes, labels = annotations_of(obj), labels_of(obj)
    for key in _DURATIONS:
        text = notes.get(key) or (labels.get(key) if key == COOLDOWN else None)
        if text and _duration(text) is None:
            yield f"{key} {text!r:.80} is not a duration above 0 such as 90s or 1h30m: it does not count"
    text = notes.get(PREEMPTABLE) or labels.get(PREEMPTABLE)
    if text not in (None, "", "true", "false"):
        yield f"{PREEMPTABLE} {text!r:.80} is neither true nor false: it does not count"


def _duration(text: str | None) -> int | None:
    if not text:
        return None
    try:
        found = parse_duration(text)
    except ValueError:
        return None
    return found if found > 0 else None
