"""What the conditions of objects say that an earlier scheduler wrote and that is recorded nowhere else."""

from __future__ import annotations

from enbloc.api.meta import Obj, condition_of
from enbloc.engine.core.why.released import note_in
from enbloc.gangs.dialect import UNSCHEDULABLE


def waited_before(obj: Obj | None) -> bool:
    """Whether the condition of a gang's object says that it waits, written before the object was observed."""
    condition = condition_of(obj, UNSCHEDULABLE) if obj is not None else None
    return condition is not None and condition.get("status") == "True"


def released_before(home: Obj | None) -> str:
    """That a gang released its claims and has not started since (K12): from the condition of its object or, if it has
    none, of its oldest pod; empty if it did not."""
    if home is None:
        return ""
    is_pod = home.get("kind") == "Pod"
    condition = condition_of(home, "PodScheduled" if is_pod else UNSCHEDULABLE)
    if condition is None or condition.get("status") != ("False" if is_pod else "True"):
        return ""
    return note_in(str(condition.get("message") or ""))
