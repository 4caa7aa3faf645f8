"""Whether only conditions, and what the API server counts, changed of a pod."""

from __future__ import annotations

from enbloc.api.meta import Obj, as_written


def differ_in_conditions_alone(known: Obj, pod: Obj) -> bool:
    """Whether all but conditions, and what the API server counts, is as it was."""
    if as_written(known) != as_written(pod):
        return False
    before, after = known["metadata"], pod["metadata"]
    if before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return False
    return _without_conditions(known) == _without_conditions(pod)


def _without_conditions(pod: Obj) -> Obj:
    return {key: value for key, value in (pod.get("status") or {}).items() if key != "conditions"}
