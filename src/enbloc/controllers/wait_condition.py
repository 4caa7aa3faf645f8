"""Why a gang waits, on the Job or QueueJob that it came from: the condition of its PodGroup or SchedulingSpec (G10).

The scheduler writes the condition on the gang's object, the job's controller copies it: a job's status has one writer.
Where that object could not be created the controller writes the condition itself, and the gang is read from it.
The copy is a pure function of the object, with its time, so that a restarted controller finds nothing to write.
"""

from __future__ import annotations

from typing import Any, Final

from enbloc.api.meta import Obj, holds
from enbloc.api.reasons import PendingReason
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.units import format_timestamp

_COPIED: Final = ("reason", "message", "lastTransitionTime")


def other_conditions(job: Obj) -> list[Any]:
    """The conditions of a job that are not the copied one."""
    return [one for one in _conditions_of(job) if not _is_copy(one)]


def wait_condition(job: Obj, group: Obj | None, refused: str = "", now_ns: int = 0) -> list[Any]:
    """Why the gang of a job waits, as the last of the job's conditions; empty if it does not wait.

    `group`: the gang's object; `None`: not known, the job says what it says now, or why that object could not be
    created (`refused`).
    """
    if group is None:
        known = [one for one in _conditions_of(job) if _is_copy(one)]
        if not refused:
            return known
        reason = PendingReason.FAILED_CREATE.value
        times = [one.get("lastTransitionTime") for one in known if one.get("reason") in (None, reason)]
        said = {"reason": reason, "message": refused, "lastTransitionTime": (times or [format_timestamp(now_ns)])[0]}
        return [{"type": UNSCHEDULABLE, "status": "True", **said}]
    waits = holds(group, UNSCHEDULABLE)
    if waits is None:
        return []
    return [{"type": UNSCHEDULABLE, "status": "True"} | {key: waits[key] for key in _COPIED if waits.get(key)}]


def _conditions_of(job: Obj) -> list[Any]:
    found = (job.get("status") or {}).get("conditions")
    return found if isinstance(found, list) else []


def _is_copy(condition: Any) -> bool:
    """Whether an entry is the copied one. Volcano's own have a phase as their status and no type, and its own
    definition of a Job prunes ours to that: it must not be added once more with every write."""
    if not isinstance(condition, dict):
        return False
    kind = condition.get("type")
    return kind == UNSCHEDULABLE or (not kind and condition.get("status") == "True")
