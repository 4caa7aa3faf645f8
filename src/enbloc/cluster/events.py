"""Kubernetes Events, as both adapters write them: the key that makes two Events the same one, and the object.

Storing them and counting repeats is left to the adapters.
"""

from __future__ import annotations

from typing import NamedTuple

from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent

EVENT = "Event"


class EventKey(NamedTuple):
    """Two Events with the same key are one Event with a count."""

    about: str
    type: str
    reason: str
    message: str
    component: str


def event_key(event: EmitEvent) -> EventKey:
    about = event.uid or f"{event.ref.kind}/{event.ref.namespace}/{event.ref.name}"
    return EventKey(about, event.type, event.reason, event.message, event.component)


def event_object(event: EmitEvent, namespace: str, name: str, at: str) -> Obj:
    kind = KINDS.get(event.ref.kind)
    short, _, group = event.ref.kind.partition(".")
    involved = {"kind": short, "name": event.ref.name}
    if kind is not None:
        involved["apiVersion"] = kind.api_version
    elif group:
        involved["apiVersion"] = group
    if event.ref.namespace:
        involved["namespace"] = event.ref.namespace
    if event.uid:
        involved["uid"] = event.uid
    made: Obj = {
        "apiVersion": "v1",
        "kind": EVENT,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component},
        "reportingComponent": event.component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    if event.related is not None:
        made["related"] = {"kind": event.related.kind.partition(".")[0], "name": event.related.name}
    return made
