"""Identity of objects: preconditions of writes, and the metadata that only the server sets."""

from __future__ import annotations

from typing import Any

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused

_SERVER_SET = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)


def is_object(obj: Any) -> bool:
    """Whether `obj` has a kind and metadata."""
    return (
        isinstance(obj, dict)
        and isinstance(obj.get("metadata"), dict)
        and isinstance(obj.get("apiVersion"), str)
        and isinstance(obj.get("kind"), str)
        and bool(obj["apiVersion"])
        and bool(obj["kind"])
    )


def conflict(message: str) -> Refused:
    return Refused(409, "Conflict", message)


def check_preconditions(resource: str, current: Obj, uid: Any, resource_version: Any) -> None:
    """Refuses a write meant for another object of the same name (uid), or for an older version."""
    metadata = current["metadata"]
    what = f'Operation cannot be fulfilled on {resource} "{metadata["name"]}"'
    if uid and uid != metadata["uid"]:
        raise conflict(f"{what}: the UID in the precondition ({uid}) is not the object's ({metadata['uid']})")
    if resource_version and str(resource_version) != metadata["resourceVersion"]:
        raise conflict(f"{what}: the object has been modified; please apply your changes to the latest version")


def with_identity(resource: str, current: Obj, wanted: Obj) -> Obj:
    """The requested object with the server's own metadata fields kept; refused if it names another object."""
    given = wanted.get("metadata")
    if not isinstance(given, dict):
        given = {}
    had = current["metadata"]
    check_preconditions(resource, current, given.get("uid"), given.get("resourceVersion"))
    for field in ("name", "namespace"):
        if given.get(field) and given[field] != had.get(field):
            raise Refused(
                400, "BadRequest", f"metadata.{field}: {given[field]!r} is not the object's own ({had.get(field)!r})"
            )
    kept = {key: had[key] for key in _SERVER_SET if key in had}
    metadata = {**kept, **{key: value for key, value in given.items() if key not in _SERVER_SET}}
    return {**wanted, "metadata": had if metadata == had else metadata}


def check_kind(kind: str, wanted: Obj) -> None:
    """Refuses an update that changes an object's kind."""
    if not is_object(wanted) or kind_id(wanted) != kind:
        raise Refused(400, "BadRequest", "apiVersion, kind and metadata of an object cannot be removed or changed")


def has_new_spec(old: Obj, new: Obj) -> bool:
    """Whether anything but metadata and status differs: the object gets a new generation."""
    return any(old.get(key) != new.get(key) for key in old.keys() | new.keys() if key not in ("metadata", "status"))
