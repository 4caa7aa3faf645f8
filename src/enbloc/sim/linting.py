"""Admission offline: the objects of manifests after mutation, and every fault with its place.

If the files define queues (or priority classes), no others exist; if they define none, every name is assumed to exist.

A Job that names another scheduler is checked as far as its kind's definition goes. `lint` also warns of what would be
refused if the name were ours. A job plugin of Volcano without a counterpart here is accepted with a Warning: it keeps
no pod from a node (N1).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from enbloc.admission import own_annotations
from enbloc.admission.lookup import priority_class_faults, queue_faults
from enbloc.admission.review import admit, warnings
from enbloc.admission.settings import DEFAULTS, Settings, is_foreign
from enbloc.admission.unknown_fields import unknown_fields
from enbloc.admission.warnings import templates_of
from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import all_decode_faults, decode_faults, kind_id, ref_of
from enbloc.api.meta import Fault, Obj, Ref, controller_of, name_of, namespace_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.admission import check_shape
from enbloc.cluster.embedded.api.workload_defaults import admit_workload
from enbloc.config.compat import DEFAULT_SCHEDULER
from enbloc.gangs.lenient import LenientRegistry
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.scenario.documents import BadInput, Document, Finding
from enbloc.scenario.live_objects import is_live
from enbloc.scenario.scenario import Arrival, Scopes, is_step, read_scenario
from enbloc.sim.creation_order import CreationOrder
from enbloc.sim.without_effect import without_effect

_JOBS: Final = (volcano.JOB, arbitrator.QUEUE_JOB)
"""Admission warns of those that name another scheduler."""


_TAKEN_TO_EXIST: Final = {volcano.QUEUE: "queue", PRIORITY_CLASS: "PriorityClass"}


class Linted(msgspec.Struct, frozen=True):
    """The objects as they would be stored, and the faults of those that would be rejected."""

    objects: list[Obj]
    faults: list[Finding]
    warnings: list[Finding]
    assumed: list[str] = []
    """Queues and priority classes that objects name and the files do not define: taken to exist."""


class _FileLookup:
    """Other objects, for admission: those that the files define, and the built-in queues."""

    def __init__(self, objects: Sequence[Obj]) -> None:
        self._objects: dict[str, dict[tuple[str, str], Obj]] = {}
        for queue in volcano.BUILT_IN_QUEUES:
            self.put(queue)
        for obj in objects:
            self.put(obj)
        self._complete = {kind_id(obj) for obj in objects} & {volcano.QUEUE, PRIORITY_CLASS}
        self.assumed: set[tuple[str, str]] = set()
        """`(kind, name)` of what was asked for, is not in the files, and is taken to exist."""

    def put(self, obj: Obj) -> None:
        kind, namespace, name = ref_of(obj)
        self._objects.setdefault(kind, {})[namespace, name] = obj

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        found = self._objects.get(kind, {}).get((namespace, name))
        if found is None and kind in _TAKEN_TO_EXIST and kind not in self._complete:
            self.assumed.add((_TAKEN_TO_EXIST[kind], name))
        return found

    def list(self, kind: str) -> builtins.list[Obj]:
        return [obj for _, obj in sorted(self._objects.get(kind, {}).items(), key=lambda item: item[0])]

    def complete(self, kind: str) -> bool:
        return kind in self._complete


def lint(documents: Sequence[Document], settings: Settings = DEFAULTS, *, strict: bool = False) -> Linted:
    """`strict`: warnings are faults."""
    linted = Linted([], [], [])
    partly = [rest for document in documents if (rest := _without_faults(document)) is not None]
    documents = _readable(documents, settings, linted, partly)
    arrivals = {arrival.order: arrival for arrival in read_scenario(documents).arrivals}
    creation = CreationOrder(arrivals.values())
    scopes = Scopes(documents)
    placed = {order: scopes.placed(arrival.obj) for order, arrival in arrivals.items()}
    lookup = _FileLookup([*partly, *(placed[order] for order in sorted(placed))])
    idle = {(one.kind, one.namespace, one.name): one.reason for one in without_effect(list(placed.values()), settings)}
    seen: dict[Ref, tuple[Document, Arrival]] = {}
    registry = LenientRegistry()
    gang_kinds = {"Pod", *registry.kinds}
    for order, document in enumerate(documents):
        if is_step(document.value):
            continue
        (obj, stripped), arrival = _as_created(placed[order]), arrivals[order]
        admitted, faults = _admitted(obj, lookup, settings)
        faults = [*_twice(seen, document, arrival), *faults]
        linted.faults.extend(msgspec.structs.replace(document, value=obj).finding(fault) for fault in faults)
        place = msgspec.structs.replace(document, value=obj)
        linted.warnings.extend(place.finding(warning) for warning in [*stripped, *warnings(obj, settings)])
        known = {fault.field for fault in faults}
        as_ours = (one for one in _as_ours(obj, lookup, settings) if one.field not in known)
        linted.warnings.extend(map(place.finding, as_ours))
        linted.warnings.extend(place.finding(warning) for warning in creation.warnings(obj, arrival))
        linted.warnings.extend(place.finding(warning) for warning in _queue_by_annotation(obj, lookup))
        linted.warnings.extend(place.finding(warning) for warning in _pods_before_spec(obj, lookup, settings))
        if kind_id(obj) in gang_kinds:  # values that are read as something else, as the API server warns of them (K3)
            linted.warnings.extend(place.finding(Fault("", text)) for text in registry.complaints(obj))
        if (reason := idle.get((obj["kind"], namespace_of(obj), name_of(obj)))) and kind_id(obj) not in _JOBS:
            linted.warnings.append(place.finding(Fault("", f"has no effect: {reason}")))
        if not faults:
            linted.objects.append(admitted)
            lookup.put(admitted)
    assumed = [f"{kind} {name}" for kind, name in sorted(lookup.assumed)]
    if strict:
        return Linted(linted.objects, [*linted.faults, *linted.warnings], [], assumed)
    return msgspec.structs.replace(linted, assumed=assumed)


def written_warnings(documents: Sequence[Document], settings: Settings) -> list[Finding]:
    """What admission warns of in documents that can be read; objects without effect are listed apart."""
    scopes = Scopes(documents)
    arrivals = {arrival.order: arrival for arrival in read_scenario(documents).arrivals}
    creation = CreationOrder(arrivals.values())
    found: list[Finding] = []
    for order, document in enumerate(documents):
        if is_step(document.value) or (kind_id(document.value) in _JOBS and is_foreign(document.value, settings)):
            continue
        written = arrivals[order].obj if order in arrivals else document.value
        place = msgspec.structs.replace(document, value=scopes.placed(written))
        found.extend(place.finding(warning) for warning in warnings(place.value, settings))
        if order in arrivals:
            found.extend(place.finding(warning) for warning in creation.warnings(place.value, arrivals[order]))
    return found


def _without_faults(document: Document) -> Obj | None:
    """A queue or class whose values are partly wrong exists all the same; `None`: it is no such object, or has no
    fault, or nothing of it can be read."""
    if document.value.get("kind") not in ("Queue", "PriorityClass"):
        return None
    faults, rest = all_decode_faults(document.value)
    known = bool(faults) and not decode_faults(rest) and kind_id(rest) in _TAKEN_TO_EXIST
    return Scopes([document]).placed(rest) if known else None


def _readable(
    documents: Sequence[Document], settings: Settings, linted: Linted, partly: Sequence[Obj]
) -> list[Document]:
    """The documents that can be read; every fault of the others is added."""
    readable: list[Document] = []
    for document in documents:
        try:
            read_scenario([document])
            readable.append(document)
        except BadInput as why:
            linted.faults.extend(why.findings)
            _lint_rest(document, settings, linted, partly)
    return readable


def _lint_rest(document: Document, settings: Settings, linted: Linted, partly: Sequence[Obj]) -> None:
    """What admission would say of a document that cannot be read, were its bad values left out."""
    if is_step(document.value):
        return
    faults, rest = all_decode_faults(document.value)
    if left := decode_faults(rest):
        if left[0].field.startswith(("spec", "status")):  # something is missing there: perhaps it is misspelt
            linted.warnings.extend(map(document.finding, unknown_fields(rest)))
        return
    placed = Scopes([document]).placed(rest)
    found = [one for one in _admitted(placed, _FileLookup(partly), settings)[1] if not _is_of(one, faults)]
    linted.faults.extend(map(document.finding, found))
    linted.warnings.extend(document.finding(one) for one in warnings(placed, settings) if not _is_of(one, faults))


def _is_of(fault: Fault, others: Sequence[Fault]) -> bool:
    """Whether a fault is about a value that was left out, or about what contains it."""
    fields = [other.field for other in others]
    return any(fault.field.startswith(field) or field.startswith(fault.field) for field in fields)


def _as_created(obj: Obj) -> tuple[Obj, list[Fault]]:
    """The object without the scheduler's own annotations, and a warning of each (S2). Those of a live object were not
    written by a user."""
    if is_live(obj):
        return obj, []
    created, texts, _ = own_annotations.guard(obj, None)
    return created, [Fault("", text) for text in texts]


def _admitted(obj: Obj, lookup: _FileLookup, settings: Settings) -> tuple[Obj, list[Fault]]:
    try:
        check_shape("CREATE", obj, None)
    except Refused as why:
        return obj, list(why.faults) or [Fault("", why.message)]
    _, of_workload = admit_workload(obj, None)
    if of_workload:
        return obj, of_workload
    admitted, faults = admit("CREATE", obj, None, lookup, settings)
    if kind_id(obj) == "Pod":
        name = obj["spec"].get("priorityClassName") or ""
        faults = [*faults, *priority_class_faults(name, "spec.priorityClassName", lookup)]
    return admitted, faults


def _as_ours(obj: Obj, lookup: _FileLookup, settings: Settings) -> Iterator[Fault]:
    """What would be said of a Job or QueueJob that names another scheduler, if it named ours: nothing checks it now,
    here or on a cluster, and its author learns all of it at once."""
    if kind_id(obj) not in _JOBS or not is_foreign(obj, settings):
        return
    ours = {**obj, "spec": {**obj["spec"], "schedulerName": settings.scheduler_name}}
    for fault in _admitted(ours, lookup, settings)[1]:
        yield Fault(fault.field, f"{fault.message} (refused once spec.schedulerName is {settings.scheduler_name})")
    yield from warnings(ours, settings)


def _queue_by_annotation(obj: Obj, lookup: _FileLookup) -> Iterator[Fault]:
    """Queues that pods and pod templates name and that take none: the pods are created, and wait."""
    parts = [("", obj)] if kind_id(obj) == "Pod" else [(f"{path}.", part) for path, part in templates_of(obj)]
    for path, part in parts:
        metadata = (part.get("metadata") if isinstance(part, dict) else None) or {}
        for key in volcano.QUEUE_KEYS:
            name = (metadata.get("annotations") or {}).get(key)
            if isinstance(name, str) and name:
                field = f"{path}metadata.annotations[{key}]"
                for fault in queue_faults(name, namespace_of(obj), field, lookup):
                    yield Fault(fault.field, f"its pods wait: {fault.message}")


def _pods_before_spec(obj: Obj, lookup: _FileLookup, settings: Settings) -> Iterator[Fault]:
    """A SchedulingSpec with pods of the same controller that would not wait for it if they were created first (A1)."""
    owner = controller_of(obj) if kind_id(obj) == arbitrator.SCHEDULING_SPEC and not settings.requires_specs else None
    if owner is None or owner.get("kind") == "QueueJob":
        return
    names = {
        str((pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER)
        for pod in lookup.list("Pod")
        if namespace_of(pod) == namespace_of(obj) and (controller_of(pod) or {}).get("uid") == owner.get("uid")
    }
    ours = sorted(name for name in names if settings.ours is None or name in settings.ours)
    if early := [name for name in ours if name != arbitrator.KAR_SCHEDULER]:
        yield Fault(
            "",
            f"pods of its controller name scheduler {', '.join(early)}: those that are created before it start without "
            f"it; name {arbitrator.KAR_SCHEDULER} in them, or set arbitrator.requireSchedulingSpec in the config",
        )


def _twice(seen: dict[Ref, tuple[Document, Arrival]], document: Document, arrival: Arrival) -> Iterator[Fault]:
    """Two objects of one name are a fault, unless the first is deleted before the second is created."""
    ref = ref_of(arrival.obj)
    before = seen.get(ref)
    seen[ref] = (document, arrival)
    if before is None:
        return
    first, earlier = before
    if earlier.delete_at_ns is None or earlier.delete_at_ns > arrival.at_ns:
        at = first.finding(Fault("metadata.name", ""))
        yield Fault("metadata.name", f"{ref} is defined twice: first in {at.file}:{at.line or at.document}")
