"""Scheduling hints by annotation or label, in any dialect: the wait before an object starves, its run time, and whether
it may be evicted (R1, R8, P2).

A gang's object sets them for all its pods; a pod's own come first. A value that cannot be read is ignored with a
warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from enbloc.api.meta import Obj, annotations_of, labels_of
from enbloc.units import SECOND, parse_duration

SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
SLA_WAITING_TIME_BARE: Final = "sla-waiting-time"
"""As Volcano reads it too; the key with the prefix wins."""
RUN_TIME: Final = "enbloc.dev/expected-duration"
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN: Final = "volcano.sh/cooldown-time"
USER: Final = "enbloc.dev/user"
KAI_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
KOORDINATOR_PREEMPTIBLE: Final = "quota.scheduling.koordinator.sh/preemptible"
KOORDINATOR_NOT_PREEMPTIBLE: Final = "scheduling.koordinator.sh/disable-preemptible"
_PROTECTING: Final = (
    (KAI_PREEMPTIBILITY, "non-preemptible"),
    (KOORDINATOR_PREEMPTIBLE, "false"),
    (KOORDINATOR_NOT_PREEMPTIBLE, "true"),
)
"""Labels of other projects, and the value with which a pod is no victim."""
KEYS: Final = (SLA_WAITING_TIME, SLA_WAITING_TIME_BARE, RUN_TIME, PREEMPTABLE, COOLDOWN, USER)
"""All that `hints_of` reads and whose values may be invalid."""
_ANY: Final = frozenset((*KEYS, *(key for key, _ in _PROTECTING)))
MOST_USER_CHARS: Final = 63
DOMAINS = "enbloc.dev/domains"
"""On a gang's object: where its pods that must or should be together are, with the score of the plan (T2)."""
EXPECTED_START: Final = "enbloc.dev/expected-start"
"""The annotation that publishes a gang's expected start."""

_DURATIONS: Final = (SLA_WAITING_TIME, SLA_WAITING_TIME_BARE, RUN_TIME, COOLDOWN)


class SchedulingHints(NamedTuple):
    """Durations in nanoseconds."""

    sla_waiting_ns: int | None = None
    """It starves after this wait, in place of the configured threshold; with the plugin `sla` this is its deadline."""
    run_time_ns: int | None = None
    """The expected run time; `None`: unknown, which counts as endless."""
    protected: bool = False
    """Never a victim."""
    cooldown_ns: int = 0
    """No victim before it has run this long."""
    user: str = ""
    """Who submitted it, as its namespace's tenants say (G12)."""


NONE: Final = SchedulingHints()


def _has_none(annotations: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether no key is set: so it is with most objects, and every pod is asked."""
    return (not annotations or _ANY.isdisjoint(annotations)) and (not labels or _ANY.isdisjoint(labels))


def hints_of(obj: Obj) -> SchedulingHints:
    if not obj.get("metadata"):
        return NONE
    annotations, labels = annotations_of(obj), labels_of(obj)
    if _has_none(annotations, labels):
        return NONE
    found = SchedulingHints(
        _duration(annotations.get(SLA_WAITING_TIME)) or _duration(annotations.get(SLA_WAITING_TIME_BARE)),
        _duration(annotations.get(RUN_TIME)),
        _is_protected(annotations, labels),
        _duration(annotations.get(COOLDOWN) or labels.get(COOLDOWN)) or 0,
        user_name(annotations.get(USER) or labels.get(USER)),
    )
    return found if found != NONE else NONE


def _is_protected(annotations: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    if "false" in (annotations.get(PREEMPTABLE), labels.get(PREEMPTABLE)):
        return True
    return any(labels.get(key) == value for key, value in _PROTECTING)


def pod_hints(pod: Obj) -> SchedulingHints:
    """The hints of a pod or a pod template: `activeDeadlineSeconds` bounds its run time."""
    raw = hints_of(pod)
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    if not isinstance(deadline, int) or deadline <= 0:
        return raw
    longest_ns = min(deadline, 10**9) * SECOND
    return raw._replace(run_time_ns=longest_ns if raw.run_time_ns is None else min(longest_ns, raw.run_time_ns))


def complaints(obj: Obj) -> Iterator[str]:
    """Values that cannot be read."""
    annotations, labels = annotations_of(obj), labels_of(obj)
    if _has_none(annotations, labels):
        return
    for key in _DURATIONS:
        text = annotations.get(key) or (labels.get(key) if key == COOLDOWN else None)
        if text and _duration(text) is None:
            yield f"{key} {text!r:.80} is not a duration above 0 such as 90s or 1h30m: it does not count"
    text = annotations.get(USER) or labels.get(USER)
    if text and not user_name(text):
        yield f"{USER} {text!r:.80} is longer than {MOST_USER_CHARS} characters or not printable: it does not count"
    text = annotations.get(PREEMPTABLE) or labels.get(PREEMPTABLE)
    if text not in (None, "", "true", "false"):
        yield f"{PREEMPTABLE} {text!r:.80} is neither true nor false: it does not count"


def user_name(text: str | None) -> str:
    """The name of a user; empty if the text cannot be one."""
    return text if text and len(text) <= MOST_USER_CHARS and text.isprintable() else ""


def _duration(text: str | None) -> int | None:
    if not text:
        return None
    try:
        found = parse_duration(text)
    except ValueError:
        return None
    return found if found > 0 else None
