"""Events as `v1` and as `events.k8s.io/v1` write them: the same objects, with other names of fields."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Obj

GROUP: Final = "events.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"

_RENAMED: Final = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK: Final = {new: old for old, new in _RENAMED.items()}


def as_version(obj: Obj, api_version: str) -> Obj:
    """The object in another version of its kind. Only Events of `events.k8s.io` differ by more than the version."""
    stored = obj["apiVersion"]
    if stored == api_version:
        return obj
    names = _RENAMED if api_version == API_VERSION else _BACK if stored == API_VERSION else {}
    return {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": api_version}


def last_seen(event: Obj) -> str:
    """When an Event of `v1` happened last, as a timestamp."""
    series = event.get("series")
    repeated = series.get("lastObservedTime") if isinstance(series, dict) else None
    found = repeated or event.get("lastTimestamp") or event.get("eventTime")
    return str(found or event["metadata"].get("creationTimestamp") or "")


def first_seen(event: Obj) -> str:
    """When an Event of `v1` happened first, as a timestamp."""
    found = event.get("firstTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return str(found or last_seen(event))


def count_of(event: Obj) -> int:
    """How often an Event of `v1` happened."""
    series = event.get("series")
    found = series.get("count") if isinstance(series, dict) else event.get("count")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 1
