"""Changes of a cluster's objects: in words for people, and as the Steps of a scenario that carry them out."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable
from typing import Any, Final

import msgspec

from enbloc.api.kinds import kind_id
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, Ref, name_of, namespace_of
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.scenario.scenario import PREFIX, STEP, Arrival, ScenarioEvent, Step

_WRITTEN_BY_SERVER: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_RECORDS: Final = frozenset({*OWN_ANNOTATIONS, TIMEOUT, PREFIX + "at", PREFIX + "delete-at"})
"""Annotations that describe the object as it was, not the one that is created anew."""

StepDoc = dict[str, Any]
"""A Step document without `at`: what a user appends to a scenario file."""


class Change(msgspec.Struct, frozen=True):
    """One thing to do, in words and as Steps."""

    text: str
    steps: tuple[StepDoc, ...]
    gang: str = ""
    """The title of the gang after the change, if that differs."""


Candidates = Generator[Change, bool, None]
"""Yields changes; `send` passes in whether the last one helped."""


def patch(obj: Obj, body: dict[str, Any]) -> StepDoc:
    return {**_step("patch"), "target": _target(obj), "patch": body}


def delete(obj: Obj) -> StepDoc:
    return {**_step("delete"), "target": _target(obj)}


def create(obj: Obj) -> StepDoc:
    return {**_step("create"), "object": obj}


def as_written(obj: Obj) -> Obj:
    """A copy of an object as its author wrote it: without status and what the server and the scheduler added."""
    made = copy.deepcopy({key: value for key, value in obj.items() if key != "status"})
    metadata = made["metadata"]
    for field in _WRITTEN_BY_SERVER:
        metadata.pop(field, None)
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key not in _RECORDS}
    if kept != annotations:
        metadata["annotations"] = kept
    if obj["kind"] == "Pod":
        made["spec"].pop("nodeName", None)
    return made


def events(steps: Iterable[StepDoc], at_ns: int) -> list[ScenarioEvent]:
    """The events that carry out Steps at an instant."""
    return [_event(step, at_ns, order) for order, step in enumerate(steps)]


def _event(step: StepDoc, at_ns: int, order: int) -> ScenarioEvent:
    if step["do"] == "create":
        return Arrival(at_ns, order, step["object"])
    target = step["target"]
    ref = Ref(kind_id(target), target.get("namespace") or "", target["name"])
    return Step(at_ns, order, step["do"], ref, step.get("patch") or {})


def _step(do: str) -> StepDoc:
    return {"apiVersion": STEP, "kind": "Step", "do": do}


def _target(obj: Obj) -> dict[str, str]:
    found = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name_of(obj)}
    return {**found, "namespace": namespace_of(obj)} if namespace_of(obj) else found
