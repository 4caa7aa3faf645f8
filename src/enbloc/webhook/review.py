"""AdmissionReviews (`admission.k8s.io/v1`): decodes requests, applies the rules, encodes responses. No I/O.

The mutating webhook refuses too, with every fault. If it allowed an invalid object, the API server would validate it
against its schema next and stop there, and the user would get only a part of the faults.

Before a refusal the objects that the rules looked up are fetched, and the rules run again: no request is refused
because of a cache alone. Pods are never refused, so a failure of this webhook delays no pod of others.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from enbloc.admission.own_annotations import guard
from enbloc.admission.review import Settings, admit, admit_delete, warnings
from enbloc.api import arbitrator, json_patch
from enbloc.api.kinds import all_decode_faults, decode_faults
from enbloc.api.meta import Fault, Obj
from enbloc.gangs.registry import GangRegistry
from enbloc.webhook.cache import RecordingLookup

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
ADMINISTRATORS: Final = "system:masters"
MAX_FAULTS: Final = 100
MAX_WARNINGS: Final = 10
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 58


class BadReview(Exception):
    """The body is not an AdmissionReview that can be answered."""


class GroupVersionKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who writes."""

    username: str = ""
    groups: list[str] = []


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """One request of the API server."""

    uid: str
    operation: str
    kind: GroupVersionKind = GroupVersionKind()
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    user_info: UserInfo = UserInfo()


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request


class Verdict(msgspec.Struct, frozen=True):
    """The object as it was sent (`None` for a deletion), as it will be stored, and every fault."""

    given: Obj | None
    kept: Obj | None
    faults: list[Fault]
    warnings: list[str] = []
    """Values that are read as something else; no request is refused for them."""
    removed: list[str] = []
    """What the mutating webhook says that it did to annotations of ours (S2)."""


def read_request(body: bytes) -> Request:
    """Raises `BadReview`, with what is wrong, for anything but a review that can be answered."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError) as why:
        raise BadReview(f"not an {KIND}: {why}") from None
    except RecursionError:
        raise BadReview(f"not an {KIND} that can be read: it is nested too deeply") from None
    if review.api_version != API_VERSION or review.kind != KIND:
        raise BadReview(f"expected {KIND} {API_VERSION}, got {review.kind[:80]!r} {review.api_version[:80]!r}")
    request = review.request
    if not request.uid:
        raise BadReview("request.uid is empty")
    if request.operation in ("CREATE", "UPDATE") and request.object is None:
        raise BadReview(f"request.object is missing in {request.operation}")
    if request.operation in ("UPDATE", "DELETE") and request.old_object is None:
        raise BadReview(f"request.oldObject is missing in {request.operation}")
    if request.object is not None and request.old_object is not None and not _same_kind(request):
        raise BadReview("request.object and request.oldObject are of different kinds")
    return request


def _same_kind(request: Request) -> bool:
    first, second = request.object or {}, request.old_object or {}
    groups = [str(one.get("apiVersion")).rpartition("/")[0] for one in (first, second)]
    return first.get("kind") == second.get("kind") and groups[0] == groups[1]


def writes_records(user: UserInfo, namespace: str) -> bool:
    """Whether a user may write our annotations: an account of our namespace, or a cluster administrator."""
    return not {f"system:serviceaccounts:{namespace}", ADMINISTRATORS}.isdisjoint(user.groups)


def guard_records(request: Request, namespace: str) -> Verdict:
    """Annotations that only the scheduler writes are as they were, whatever a user sends (S2)."""
    given = request.object
    if given is None or not _has_annotations(given) or writes_records(request.user_info, namespace):
        return Verdict(given, given, [])
    old = request.old_object if request.old_object is not None and _has_annotations(request.old_object) else None
    if request.operation == "UPDATE" and old is None:
        return Verdict(given, given, [])
    kept, removed, faults = guard(given, old)
    return Verdict(given, kept, faults, removed=removed)


def _has_annotations(obj: Obj) -> bool:
    """Whether they can be read; an object whose metadata is of another shape is refused by others."""
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(metadata, dict) and (found is None or isinstance(found, dict))


def evaluate(request: Request, lookup: RecordingLookup, settings: Settings, namespace: str = "") -> Verdict:
    """The rules' verdict. Operations other than create, update and delete are allowed. `namespace`: ours."""
    guarded = guard_records(request, namespace)
    if guarded.faults:
        return guarded
    verdict = _evaluate(msgspec.structs.replace(request, object=guarded.kept), lookup, settings)
    if verdict.given is None:
        return verdict
    return msgspec.structs.replace(verdict, given=request.object, removed=guarded.removed)


def _evaluate(request: Request, lookup: RecordingLookup, settings: Settings) -> Verdict:
    if request.operation == "DELETE":
        gone = request.old_object or {}
        return Verdict(None, None, [] if decode_faults(gone) else admit_delete(gone, lookup))
    if request.operation not in ("CREATE", "UPDATE") or request.object is None:
        return Verdict(None, None, [])
    given, old = request.object, request.old_object
    obj = arbitrator.canonical(_named(given, request.uid))
    faults = all_decode_faults(obj)[0]
    if old is not None and decode_faults(old):
        # It was stored before this webhook existed, or without it. Its metadata may change, finalizers above all, or it
        # could never be deleted; with another spec it is reviewed as if it were new.
        if obj.get("spec") == old.get("spec"):
            return Verdict(given, given, [])
        old = None
    if faults:
        return Verdict(given, obj, faults)
    kept, faults = admit("CREATE" if old is None else "UPDATE", obj, old, lookup, settings)
    return Verdict(given, kept, faults)


def warn(request: Request, registry: GangRegistry, settings: Settings) -> list[str]:
    """Warnings for the author of an object about values that are read as something else (K3)."""
    obj = request.object
    if obj is None or not isinstance(obj.get("kind"), str):
        return []
    faults = decode_faults(obj)
    if faults:
        return [str(fault) for fault in faults]
    advice = warnings(obj, settings) if request.operation == "CREATE" else []
    return [*map(str, advice), *registry.complaints(obj)]


def _named(obj: Obj, uid: str) -> Obj:
    """An object with `generateName` has no name yet when it is reviewed, but rules and defaults need one. So it gets
    one here, generated as the API server would."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") or not isinstance(metadata.get("generateName"), str):
        return obj
    number = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big")
    letters = []
    for _ in range(5):
        number, digit = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[digit])
    name = metadata["generateName"][:_LONGEST_GENERATED] + "".join(letters)
    return obj | {"metadata": metadata | {"name": name}}


def answer(request: Request, verdict: Verdict, *, mutates: bool) -> bytes:
    """The response."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": not verdict.faults}
    if verdict.faults:
        response["status"] = refusal(request, verdict)
    elif mutates:
        operations = json_patch.diff(verdict.given, verdict.kept)
        if operations:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(operations)).decode()
    said = verdict.removed if mutates else verdict.warnings
    if said and not verdict.faults:
        response["warnings"] = said[:MAX_WARNINGS]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def refusal(request: Request, verdict: Verdict) -> dict[str, Any]:
    """A Kubernetes Status with every fault: in the message for people, in the causes for programs."""
    shown = verdict.faults[:MAX_FAULTS]
    more = len(verdict.faults) - len(shown)
    name = _name_of(verdict.kept) or request.name
    what = f'{request.kind.kind or "object"} "{name}"'
    deletes = request.operation == "DELETE"
    lines = [fault.message if deletes else str(fault) for fault in shown]
    text = "; ".join(lines) + (f"; … and {more} more" if more else "")
    return {
        "status": "Failure",
        "code": 403 if deletes else 422,
        "reason": "Forbidden" if deletes else "Invalid",
        "message": f"{what} is protected: {text}" if deletes else f"{what} is invalid: {text}",
        "details": {
            "name": name,
            "group": request.kind.group,
            "kind": request.kind.kind,
            "causes": [
                {"reason": "FieldValueInvalid", "message": fault.message, "field": fault.field} for fault in shown
            ],
        },
    }


def _name_of(obj: Obj | None) -> str:
    metadata = (obj or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
