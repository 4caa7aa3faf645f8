"""A scenario: objects that are created and deleted at given times, and Steps, checked before anything runs.

Documents in, a `Scenario` out, or `BadInput` with every finding at once. Whether an object is *allowed* is decided by
admission when it is created; here only its shape and its `sim.enbloc.dev/` annotations are checked.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from enbloc.api import arbitrator
from enbloc.api.kinds import KINDS, all_decode_faults, decode_faults, kind_id
from enbloc.api.meta import Fault, Obj, Ref
from enbloc.config.owner_kinds import shipped
from enbloc.scenario.documents import BadInput, Document, Finding
from enbloc.units import is_dns_subdomain, parse_duration, parse_timestamp

PREFIX: Final = "sim.enbloc.dev/"
STEP: Final = "sim.enbloc.dev/v1"
DEFAULT_NAMESPACE: Final = "default"

_ON_OBJECTS: Final = ("at", "delete-at")
_ON_PODS: Final = ("run-time", "exit-code", "start-delay", "stop-delay")
_KEYS: Final = _ON_OBJECTS + _ON_PODS

_STEP_FIELDS: Final = {"apiVersion", "kind", "metadata", "at", "do", "target", "patch", "object", "exitCode"}
_TARGET_FIELDS: Final = {"apiVersion", "kind", "namespace", "name"}
_OWN_FIELD: Final = {"patch": "patch", "object": "create", "exitCode": "fail-pod"}
VERBS: Final = ("create", "patch", "delete", "fail-pod", "evict-pod", "fail-node", "recover-node", "restart-scheduler")
_TARGET_KIND: Final = {"fail-pod": "Pod", "evict-pod": "Pod", "fail-node": "Node", "recover-node": "Node"}


class Arrival(msgspec.Struct, frozen=True):
    """An object is created, and deleted if its annotation says when."""

    at_ns: int
    order: int
    obj: Obj
    delete_at_ns: int | None = None


class Step(msgspec.Struct, frozen=True):
    """An action on a target."""

    at_ns: int
    order: int
    do: str
    target: Ref | None = None
    patch: dict[str, Any] = {}
    exit_code: int = 1


ScenarioEvent = Arrival | Step


class Scenario(msgspec.Struct, frozen=True):
    """All arrivals and steps, by time, then in the order of the files. Times are nanoseconds since the start."""

    events: list[ScenarioEvent]
    existing: list[Obj] = []
    """Objects that are there from the start, as an API server stored them (see `live_objects`)."""
    begin_ns: int | None = None
    """The instant at which virtual time begins, if a Snapshot says so."""

    @property
    def arrivals(self) -> Iterator[Arrival]:
        return (event for event in self.events if isinstance(event, Arrival))


def read_scenario(documents: Iterable[Document]) -> Scenario:
    """Checks every document completely. Raises `BadInput` with all faults."""
    documents = list(documents)
    scopes = Scopes(documents)
    events: list[ScenarioEvent] = []
    findings: list[Finding] = []
    begin_ns: int | None = None
    for order, document in enumerate(documents):
        faults: list[Fault] = []
        if is_snapshot(document.value):
            begin_ns = _taken_at(document.value, faults)
            findings.extend(map(document.finding, faults))
            continue
        event = _event(order, document.value, faults, scopes)
        findings.extend(map(document.finding, faults))
        if event is not None and not faults:
            events.append(event)
    if findings:
        raise BadInput(findings)
    events.sort(key=lambda event: event.at_ns)
    return Scenario(events, begin_ns=begin_ns)


def is_snapshot(value: Any) -> bool:
    """The document that says when the objects of a snapshot were read."""
    return isinstance(value, dict) and value.get("apiVersion") == STEP and value.get("kind") == "Snapshot"


def _taken_at(value: dict[str, Any], faults: list[Fault]) -> int | None:
    try:
        return parse_timestamp(value.get("at"))
    except ValueError as why:
        faults.append(Fault("at", str(why)))
        return None


def is_step(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("apiVersion")).startswith(PREFIX)


_JOB_FLOWS: Final = ("JobFlow.flow.volcano.sh", "JobTemplate.flow.volcano.sh")
_NAMESPACED_NAMES: Final = frozenset(kind.name for kind in KINDS.values() if kind.namespaced) - frozenset(
    kind.name for kind in KINDS.values() if not kind.namespaced
)
"""A kind of a group that is not known, such as the former group of PodGroup, lives where its namesakes do."""


class Scopes:
    """Which kinds live in namespaces: the known ones, those that a definition in the files declares, and those that
    are known to make pods, which live in namespaces."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._namespaced = dict.fromkeys((*(entry.kind for entry in shipped()), *_JOB_FLOWS), True)
        self._namespaced |= {kind.id: kind.namespaced for kind in KINDS.values()}
        for document in documents:
            value = document.value
            if value.get("kind") == "CustomResourceDefinition" and not decode_faults(value):
                spec = value["spec"]
                self._namespaced[f"{spec['names']['kind']}.{spec['group']}"] = spec["scope"] == "Namespaced"

    def namespace(self, kind: str, given: str) -> str:
        """The namespace of an object. For a kind that is not declared it is what the object says."""
        namespaced = self._namespaced.get(kind, True if kind.partition(".")[0] in _NAMESPACED_NAMES else None)
        if namespaced is None:
            return given
        return given or DEFAULT_NAMESPACE if namespaced else ""

    def placed(self, obj: Obj) -> Obj:
        """The object with its namespace written out."""
        given = obj["metadata"].get("namespace") or ""
        namespace = self.namespace(kind_id(obj), given)
        if namespace == given:
            return obj
        metadata = {**obj["metadata"], "namespace": namespace}
        if not namespace:
            del metadata["namespace"]
        return {**obj, "metadata": metadata}


def read_faults(value: Any) -> list[Fault]:
    """Why an object cannot be read: its shape, its values, its `sim.enbloc.dev/` annotations."""
    return all_decode_faults(value)[0] or list(_annotation_faults(value))


def _event(order: int, value: Any, faults: list[Fault], scopes: Scopes) -> ScenarioEvent | None:
    if is_step(value):
        return _step(order, value, faults, scopes)
    value = _named(arbitrator.canonical(value), order)
    faults.extend(read_faults(value))
    if faults:
        return None
    obj = scopes.placed(value)
    annotations = obj["metadata"].get("annotations") or {}
    at_ns = parse_duration(annotations.get(PREFIX + "at", "0s"))
    delete_at = annotations.get(PREFIX + "delete-at")
    if delete_at is not None and parse_duration(delete_at) < at_ns:
        faults.append(_annotation_fault("metadata", "delete-at", f"{delete_at!r} is before its creation"))
    return Arrival(at_ns, order, obj, None if delete_at is None else parse_duration(delete_at))


def _named(value: Any, order: int) -> Any:
    """An object with `generateName` gets a name, the same in every run."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name") or not isinstance(metadata.get("generateName"), str):
        return value
    return {**value, "metadata": {**metadata, "name": f"{metadata['generateName']}{order:05d}"}}


def with_nodes(scenario: Scenario, nodes: Sequence[Obj]) -> Scenario:
    """The scenario with these nodes from the start."""
    made: list[ScenarioEvent] = [Arrival(0, number - len(nodes), node) for number, node in enumerate(nodes)]
    return msgspec.structs.replace(scenario, events=[*made, *scenario.events])


def with_run_time(scenario: Scenario, run_time: str) -> Scenario:
    """The scenario in which pods and templates that say no `run-time` run this long."""
    events = [
        msgspec.structs.replace(event, obj=with_run_times(event.obj, run_time)) if isinstance(event, Arrival) else event
        for event in scenario.events
    ]
    existing = [with_run_times(obj, run_time) for obj in scenario.existing]
    return msgspec.structs.replace(scenario, events=events, existing=existing)


def with_run_times(obj: Obj, run_time: str) -> Obj:
    """The object whose pods run this long, where it does not say how long."""
    if not obj.get("spec"):
        return obj
    obj = copy.deepcopy(obj)
    templates = [template for _, template in _templates(obj["spec"], "spec")]
    for target in [obj, *templates] if kind_id(obj) == "Pod" else templates:
        metadata = target.get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        target["metadata"] = {**metadata, "annotations": {PREFIX + "run-time": run_time, **annotations}}
    return obj


def _annotation_fault(path: str, key: str, message: str) -> Fault:
    return Fault(f"{path}.annotations[{PREFIX}{key}]", message)


def _annotation_faults(obj: Obj) -> Iterator[Fault]:
    on_pod = kind_id(obj) == "Pod"
    own = _ON_OBJECTS + (_ON_PODS if on_pod else ())
    yield from _metadata_faults(obj["metadata"], "metadata", own)
    for path, template in _templates(obj.get("spec"), "spec"):
        metadata = template.get("metadata")
        if isinstance(metadata, dict):
            yield from _metadata_faults(metadata, f"{path}.metadata", _ON_PODS)


def _templates(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod template inside an object, known kind or not, with its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key == "template" and isinstance(child, dict):
                yield f"{path}.{key}", child
            elif isinstance(child, dict | list):
                yield from _templates(child, f"{path}.{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if isinstance(child, dict | list):
                yield from _templates(child, f"{path}[{index}]")


def _metadata_faults(metadata: dict[str, Any], path: str, allowed: tuple[str, ...]) -> Iterator[Fault]:
    annotations = metadata.get("annotations")
    if annotations is None:
        return
    if not isinstance(annotations, dict):
        yield Fault(f"{path}.annotations", "must be a mapping of strings")
        return
    for full, text in annotations.items():
        if not full.startswith(PREFIX):
            continue
        key = full.removeprefix(PREFIX)
        message = _value_fault(key, text) if key in allowed else _misplaced(key)
        if message:
            yield _annotation_fault(path, key, message)


def _misplaced(key: str) -> str:
    if key in _ON_PODS:
        return "belongs on a pod or on a pod template"
    if key in _ON_OBJECTS:
        return "belongs on an object, not on a pod template"
    near = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.0)[0]
    return f"is not known; did you mean {PREFIX}{near}? (known: {', '.join(_KEYS)})"


def _value_fault(key: str, text: Any) -> str:
    if not isinstance(text, str):
        return f"must be a string, not {type(text).__name__}: quote it"
    if key == "exit-code":
        codes = [code.strip() for code in text.split(",")]
        if all(code.isascii() and code.isdigit() and len(code) <= 3 and int(code) <= 255 for code in codes):
            return ""
        return f"{text[:60]!r} is no exit code (0 to 255) nor a comma list of them"
    return _duration_fault(text)


def _duration_fault(text: Any) -> str:
    try:
        return f"{text!r} is negative" if parse_duration(text) < 0 else ""
    except ValueError as why:
        return str(why)


def _step(order: int, value: dict[str, Any], faults: list[Fault], scopes: Scopes) -> ScenarioEvent | None:
    """Reads a Step; adds all its faults."""
    faults.extend(_step_faults(value))
    if faults:
        return None
    do, at_ns = value["do"], parse_duration(value.get("at", "0s"))
    if do == "create":
        return _step_arrival(at_ns, order, value["object"], faults, scopes)
    target = None
    if do != "restart-scheduler":
        target = _target(do, value.get("target"), faults, scopes)
    return Step(at_ns, order, do, target, value.get("patch") or {}, value.get("exitCode", 1))


def _step_faults(value: dict[str, Any]) -> Iterator[Fault]:
    if value.get("kind") != "Step" or value["apiVersion"] != STEP:
        yield Fault("kind", f"{PREFIX.rstrip('/')} has two kinds only: Step and Snapshot, in {STEP}")
        return
    for field in sorted(value.keys() - _STEP_FIELDS):
        near = difflib.get_close_matches(field, sorted(_STEP_FIELDS), n=1, cutoff=0.0)[0]
        yield Fault(field, f"is not known in a Step; did you mean {near}?")
    if message := _duration_fault(value.get("at", "0s")):
        yield Fault("at", message)
    do = value.get("do")
    if do not in VERBS:
        yield Fault("do", ("is missing" if do is None else f"{str(do)[:60]!r} is not known") + f" ({', '.join(VERBS)})")
        return
    for field, verb in _OWN_FIELD.items():
        if field in value and do != verb:
            yield Fault(field, f"is for `do: {verb}`, not for {do}")
    if do == "create" and not isinstance(value.get("object"), dict):
        yield Fault(
            "object", "is missing: the object to create" if value.get("object") is None else "must be a mapping"
        )
    if do == "patch" and not isinstance(value.get("patch"), dict):
        yield Fault("patch", _absent(value.get("patch"), "a JSON merge patch"))
    code = value.get("exitCode", 1)
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
        yield Fault("exitCode", f"{str(code)[:60]!r} is no exit code (0 to 255)")


def _absent(value: Any, wanted: str) -> str:
    return f"is missing: {wanted}" if value is None else "must be a mapping"


def _step_arrival(at_ns: int, order: int, obj: Any, faults: list[Fault], scopes: Scopes) -> ScenarioEvent | None:
    for fault in read_faults(obj):
        faults.append(Fault(f"object.{fault.field}".rstrip("."), fault.message))
    if faults:
        return None
    annotations = obj["metadata"].get("annotations") or {}
    if PREFIX + "at" in annotations:
        faults.append(_annotation_fault("object.metadata", "at", "the Step's own `at` says when"))
    delete_at = annotations.get(PREFIX + "delete-at")
    if delete_at is not None and parse_duration(delete_at) < at_ns:
        faults.append(_annotation_fault("object.metadata", "delete-at", f"{delete_at!r} is before its creation"))
    return Arrival(at_ns, order, scopes.placed(obj), None if delete_at is None else parse_duration(delete_at))


def _target(do: str, target: Any, faults: list[Fault], scopes: Scopes) -> Ref | None:
    """The object that a Step names. It need not exist yet."""
    if not isinstance(target, dict) or not target:
        faults.append(
            Fault("target", f"is missing: {do} needs an object to act on" if not target else "must be a mapping")
        )
        return None
    faults.extend(Fault(f"target.{field}", "is not known") for field in sorted(target.keys() - _TARGET_FIELDS))
    only = _TARGET_KIND.get(do)
    texts: dict[str, Any] = {"apiVersion": "v1", "kind": only, **target} if only else target
    for field in ("apiVersion", "kind", "name"):
        if not isinstance(texts.get(field), str) or not texts[field]:
            faults.append(Fault(f"target.{field}", "is missing" if texts.get(field) is None else "must be a text"))
    namespace: Any = texts.get("namespace") or ""
    for field, name in (("name", texts.get("name")), ("namespace", namespace)):
        if isinstance(name, str) and name and not is_dns_subdomain(name):
            faults.append(
                Fault(f"target.{field}", f"{name[:80]!r} is not a valid name (RFC 1123: a-z, 0-9, '-' and '.')")
            )
    if not isinstance(namespace, str):
        faults.append(Fault("target.namespace", "must be a text"))
    if faults:
        return None
    kind = kind_id(texts)
    if only and kind != only:
        faults.append(Fault("target.kind", f"{do} acts on a {only}, not on {kind}"))
    return Ref(kind, scopes.namespace(kind, namespace), texts["name"])
