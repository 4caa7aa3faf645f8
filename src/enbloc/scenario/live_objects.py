"""Objects of a cluster that exists: a snapshot, or what `kubectl get -o yaml` prints.

An object with a UID, a resourceVersion and a creation time was stored by an API server. A simulation does not create
it: it is there from the start, as it was, and virtual time begins when it was read. Everything else in a scenario
arrives as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from enbloc.api import arbitrator, volcano, workloads
from enbloc.api.kinds import by_kind, kind_id
from enbloc.api.meta import Obj, annotations_of, name_of, namespace_of, uid_of
from enbloc.gangs import hints
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.inspect.gangs import KINDS as GANG_KINDS
from enbloc.inspect.gangs import Reading
from enbloc.scenario.scenario import PREFIX, Arrival, Scenario, ScenarioEvent, with_run_times
from enbloc.units import SECOND, format_duration, format_timestamp, parse_timestamp

_STORED: Final = ("uid", "resourceVersion", "creationTimestamp")
_TIMED_JOBS: Final = (volcano.JOB, arbitrator.QUEUE_JOB, workloads.JOB)
"""Kinds whose pods run as long as their object's `expected-duration` says."""


def is_live(obj: Obj) -> bool:
    """Whether an API server stored it."""
    return all(obj["metadata"].get(field) for field in _STORED)


def resumed(scenario: Scenario) -> Scenario:
    """The scenario in which live objects exist from the start and pods run as long as they are expected to; the
    scenario itself if it has none."""
    live: list[Obj] = []
    rest: list[ScenarioEvent] = []
    for event in scenario.events:
        if isinstance(event, Arrival) and is_live(event.obj):
            live.append(_plain(event.obj))
        else:
            rest.append(event)
    if not live:
        return scenario
    unique = {(kind_id(obj), namespace_of(obj), name_of(obj)): obj for obj in live}
    existing = [*unique.values(), *_missing(unique.values())]
    begin_ns = scenario.begin_ns if scenario.begin_ns is not None else latest_time(live)
    expected = expected_run_times(existing)
    existing = [with_run_times(obj, expected[uid_of(obj)]) if uid_of(obj) in expected else obj for obj in existing]
    events = [with_expected_run_time(event) for event in rest]
    return msgspec.structs.replace(scenario, events=events, existing=existing, begin_ns=begin_ns)


def _plain(obj: Obj) -> Obj:
    """Without what the API server notes for itself, and without times that were relative to another start."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "selfLink")}
    annotations = annotations_of(obj)
    if annotations:
        relative = (PREFIX + "at", PREFIX + "delete-at")
        metadata["annotations"] = {key: text for key, text in annotations.items() if key not in relative}
    return {**obj, "metadata": metadata}


def latest_time(objects: Iterable[Obj]) -> int:
    """The latest time that the objects mention: they were read at that time or shortly after."""
    return max(_times(list(objects)), default=0) // SECOND * SECOND


def _times(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, child in value.items():
            if isinstance(child, str):
                if key.endswith(("Time", "Timestamp")) and key not in ("deletionTimestamp", "renewTime"):
                    try:
                        yield parse_timestamp(child)
                    except ValueError:
                        continue
            elif isinstance(child, dict | list) and key not in ("spec", "annotations", "labels"):
                yield from _times(child)
    elif isinstance(value, list):
        for child in value:
            if isinstance(child, dict | list):
                yield from _times(child)


def expected_run_times(objects: Iterable[Obj]) -> dict[str, str]:
    """By UID of a pod or Job that says no run time: `enbloc.dev/expected-duration`, its own or its gang's."""
    lists = by_kind(objects)
    found = {uid_of(obj): text for kind in _TIMED_JOBS for obj in lists.get(kind, ()) if (text := _expected(obj))}
    reading = Reading({kind: lists.get(kind, []) for kind in GANG_KINDS})
    times = {task.uid: task.run_time_ns for task in reading.state.tasks.values()}
    return found | {uid: format_duration(nanos) for uid, nanos in times.items() if nanos is not None}


def _expected(obj: Obj) -> str:
    nanos = hints.hints_of(obj).run_time_ns
    return format_duration(nanos) if nanos is not None else ""


def with_expected_run_time(event: ScenarioEvent) -> ScenarioEvent:
    """A Job or pod that arrives, and whose pods run as long as it expects, where it does not say how long."""
    if not isinstance(event, Arrival) or kind_id(event.obj) not in (*_TIMED_JOBS, "Pod"):
        return event
    text = _expected(event.obj)
    return msgspec.structs.replace(event, obj=with_run_times(event.obj, text)) if text else event


def _missing(objects: Iterable[Obj]) -> list[Obj]:
    """Namespaces and PriorityClasses that the objects name and that were not read with them."""
    objects = list(objects)
    has = {(kind_id(obj), name_of(obj)) for obj in objects}
    made: dict[tuple[str, str], Obj] = {}
    for obj in objects:
        space = namespace_of(obj)
        if space:
            made[("Namespace", space)] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
        spec = obj.get("spec") or {}
        name = spec.get("priorityClassName") if kind_id(obj) == "Pod" else None
        if name and isinstance(spec.get("priority"), int):
            made[(PRIORITY_CLASS, name)] = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": spec["priority"],
                "preemptionPolicy": spec.get("preemptionPolicy") or "PreemptLowerPriority",
            }
    return [obj for key, obj in made.items() if key not in has]


def stored(objects: Iterable[Obj], now_ns: int) -> list[Obj]:
    """The objects as a store keeps them: each with a version of its own, in the order of the versions that they had,
    with a UID and a creation time."""
    ordered = sorted(objects, key=_version)
    made: list[Obj] = []
    version = 0
    for obj in ordered:
        version = max(version + 1, _version(obj))
        metadata = obj["metadata"]
        uid = metadata.get("uid") or f"{kind_id(obj)}/{metadata.get('namespace', '')}/{metadata['name']}"
        created = metadata.get("creationTimestamp") or format_timestamp(now_ns)
        own = {**metadata, "uid": uid, "creationTimestamp": created, "resourceVersion": str(version)}
        made.append({**obj, "metadata": own})
    return made


def _version(obj: Obj) -> int:
    """Versions of the API are numbers in practice; others count as the oldest."""
    text = str(obj["metadata"].get("resourceVersion") or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
