"""The `Status` objects of an API server's answers."""

from __future__ import annotations

from typing import Any

from enbloc.api.meta import Fault, Ref
from enbloc.api.writes import REASONS, Refused

_CAUSES = 100


def refusal(code: int, message: str, *faults: Fault) -> Refused:
    """A refusal with the reason of its code."""
    return Refused(code, REASONS[code], message, faults)


def failure(why: Refused, ref: Ref | None = None) -> dict[str, Any]:
    """The body of a refusal. `ref` is the request's object, if known."""
    details: dict[str, Any] = {}
    if ref is not None:
        kind, _, group = ref.kind.partition(".")
        details = {"name": ref.name or why.name, "group": group, "kind": kind}
        details = {key: value for key, value in details.items() if value}
    if why.faults:
        details["causes"] = [_cause(fault) for fault in why.faults[:_CAUSES]]
    if why.code == 429:
        details["retryAfterSeconds"] = 1
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": why.message,
        "reason": why.reason,
        **({"details": details} if details else {}),
        "code": why.code,
    }


def _cause(fault: Any) -> dict[str, str]:
    if not isinstance(fault, Fault):
        return {"message": str(fault)}
    if fault.field.startswith("."):  # a conflict of server-side apply
        return {"reason": "FieldManagerConflict", "message": fault.message, "field": fault.field}
    missing = fault.message == "is missing"
    reason = "FieldValueRequired" if missing else "FieldValueInvalid"
    return {"reason": reason, "message": fault.message, "field": fault.field}


def success(ref: Ref, plural: str, uid: str = "", code: int = 200) -> dict[str, Any]:
    """The body of a successful request that has no object to return."""
    _, _, group = ref.kind.partition(".")
    details = {"name": ref.name, "group": group, "kind": plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
        "code": code,
    }
