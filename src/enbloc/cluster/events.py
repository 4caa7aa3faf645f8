"""Events as every cluster has them: what makes two of them the same one, and what one looks like.

Where they are kept, and how repeats are counted, is each cluster's own.
"""

from __future__ import annotations

from typing import NamedTuple

from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.api.writes import EmitEvent

EVENT = "Event"


class Saying(NamedTuple):
    """What makes two Events the same one."""

    about: str
    type: str
    reason: str
    message: str
    component: str


def saying_of(said: EmitEvent) -> Saying:
    about = said.uid or f"{said.ref.kind}/{said.ref.namespace}/{said.ref.name}"
    return Saying(about, said.type, said.reason, said.message, said.component)


def event_object(said: EmitEvent, namespace: str, name: str, at: str) -> Obj:
    kind = KINDS.get(said.ref.kind)
    short, _, group = said.ref.kind.partition(".")
    involved = {"kind": short, "name": said.ref.name}
    if kind is not None:
        involved["apiVersion"] = kind.api_version
    elif group:
        involved["apiVersion"] = group
    if said.ref.namespace:
        involved["namespace"] = said.ref.namespace
    if said.uid:
        involved["uid"] = said.uid
    return {
        "apiVersion": "v1",
        "kind": EVENT,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved,
        "type": said.type,
        "reason": said.reason,
        "message": said.message,
        "source": {"component": said.component},
        "reportingComponent": said.component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
