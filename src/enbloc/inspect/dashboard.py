"""The cluster as the dashboard draws it: one JSON with gangs, queues and nodes, amounts as plain numbers.

Gangs are named by their place in the list, so that 5,000 nodes with their pods stay small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from enbloc.api.events import last_seen
from enbloc.api.meta import Obj, condition_of, name_of, namespace_of
from enbloc.engine.core.why.cause import Cause
from enbloc.inspect.gang_states import FAILED, FINISHED, WAITS
from enbloc.inspect.gangs import Gang, Reading, pod_state
from enbloc.inspect.overview import Overview, sentence
from enbloc.inspect.topology import Trees
from enbloc.units import NANO, instant_of, parse_timestamp

DOMAIN_LABELS: Final = (
    "topology.kubernetes.io/rack",
    "cloud.google.com/gce-topology-block",
    "topology.kubernetes.io/zone",
)
"""The first of them that a node has groups it on the map, if no node tree does."""
_EVENTS: Final = 50
NOT_SAID: Final = "not scheduled yet"
"""Of a gang of which the scheduler has said nothing."""


def dashboard_model(
    reading: Reading,
    overview: Overview,
    as_of_s: float,
    causes: Mapping[str, Cause] = MappingProxyType({}),
    deserved: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> dict[str, Any]:
    """What `/api/model` answers. `causes`: what the scheduler of this process knows of gangs that wait; without one
    there is the reason of each gang's condition. `deserved`: what it computed for each queue; without one there is what
    the queue's object says."""
    spans = _spans(reading)
    nodes = _nodes(reading, overview)
    total: dict[str, float] = {}
    for node in nodes:
        for name, value in node["capacity"].items():
            total[name] = total.get(name, 0.0) + value
    return {
        "asOf": as_of_s,
        "virtual": False,
        "live": True,
        "resource": scarce_resource(total),
        "total": total,
        "gangs": [_gang(gang, spans.get(gang.gang), causes.get(gang.gang)) for gang in overview.gangs],
        "queues": _queues(reading, overview, deserved),
        "nodes": nodes,
    }


def scarce_resource(names: Mapping[str, object]) -> str:
    """What the map shows first: accelerators where there are any, else CPUs."""
    extended = sorted(name for name in names if "/" in name)
    gpus = [name for name in extended if "gpu" in name or "neuron" in name or "tpu" in name]
    return (gpus or extended or ["cpu"])[0]


def _gang(gang: Gang, span: tuple[float | None, float | None] | None, cause: Cause | None) -> dict[str, Any]:
    started, ended = span or (None, None)
    words = cause.words if cause is not None else gang.reason or NOT_SAID
    return {
        "gang": gang.gang,
        "dialect": gang.dialect,
        "queue": gang.queue,
        "state": gang.state,
        "priority": gang.priority,
        "minimum": gang.minimum,
        "minima": gang.minima,
        "pods": gang.pods,
        "roles": gang.roles,
        "nodes": gang.nodes,
        "setAside": gang.set_aside,
        "reason": cause.reason if cause is not None else gang.reason,
        "cause": words if gang.state in WAITS else "",
        "sentence": sentence(gang),
        "came": gang.created / NANO,
        "started": started,
        "ended": ended,
        "expected": _seconds(gang.expected_start),
    }


def _spans(reading: Reading) -> dict[str, tuple[float | None, float | None]]:
    """When each gang's minimum had started, and when the last pod of one that is over ended."""
    found = {}
    for key, gang in reading.rows.items():
        if gang.waits:
            continue
        members = reading.members(key)
        starts = sorted(time for _, pod in members if (time := _started(pod)))
        needed = max(gang.minimum, 1)
        started = starts[min(needed, len(starts)) - 1] if starts else None
        ends = [time for _, pod in members if (time := _finished(pod))] if gang.state in (FINISHED, FAILED) else []
        found[gang.gang] = (started, max(ends, default=None))
    return found


def _started(pod: Obj) -> float | None:
    """When the kubelet took it; of one that it has not taken yet, when it was bound."""
    bound = condition_of(pod, "PodScheduled") or {}
    at = bound.get("lastTransitionTime") if bound.get("status") == "True" else None
    return _seconds((pod.get("status") or {}).get("startTime") or at)


def _finished(pod: Obj) -> float | None:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ends = [_seconds(((one.get("state") or {}).get("terminated") or {}).get("finishedAt")) for one in statuses]
    return max((end for end in ends if end is not None), default=None)


def _seconds(text: object) -> float | None:
    try:
        return parse_timestamp(text) / NANO if isinstance(text, str) and text else None
    except ValueError:
        return None


def _nodes(reading: Reading, overview: Overview) -> list[dict[str, Any]]:
    index = {gang.gang: number for number, gang in enumerate(overview.gangs)}
    parts: dict[str, dict[int, dict[str, float]]] = {}
    for key, state in reading.state.gangs.items():
        number = index[reading.rows[key].gang] if key in reading.rows else -1
        for task in state.tasks.values():
            if task.node:
                held = parts.setdefault(task.node, {}).setdefault(number, {})
                for name, nanos in reading.requests(task).items():
                    held[name] = held.get(name, 0.0) + nanos / NANO
    claims: dict[str, list[list[Any]]] = {}
    for number, gang in enumerate(overview.gangs):
        for node, count in gang.set_aside.items():
            room = {name: nanos / NANO for name, nanos in gang.room_aside.get(node, {}).items()}
            claims.setdefault(node, []).append([number, room, count])
    groups = Trees(reading).group_of()
    return [
        {
            "node": row.node,
            "status": row.status,
            "domain": groups.get(row.node) or next((row.labels[key] for key in DOMAIN_LABELS if key in row.labels), ""),
            "capacity": {name: use.capacity / NANO for name, use in row.resources.items()},
            "pods": [[number, held] for number, held in sorted(parts.get(row.node, {}).items())],
            "claims": claims.get(row.node, []),
        }
        for row in overview.nodes
    ]


def _queues(reading: Reading, overview: Overview, deserved: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    rows = []
    for queue in overview.queues:
        facts = reading.state.queues.get(queue.queue).facts
        rows.append(
            {
                "queue": queue.queue,
                "parent": queue.parent,
                "state": queue.state,
                "weight": queue.weight,
                "priority": queue.priority,
                "running": queue.running,
                "waiting": queue.waiting,
                "used": _plain(queue.used),
                "capability": _plain(queue.capability),
                "deserved": deserved.get(queue.queue) or _plain(facts.deserved),
                "guarantee": _plain(facts.guarantee),
            }
        )
    return rows


def _plain(amounts: Mapping[str, int]) -> dict[str, float]:
    return {name: nanos / NANO for name, nanos in amounts.items()}


def gang_detail(reading: Reading, name: str, events: Sequence[Obj]) -> dict[str, Any]:
    """The pods of a gang, and the last events of its object and pods."""
    namespace, _, short = name.rpartition("/")
    pods: list[dict[str, Any]] = []
    names = {(namespace, short)}
    for key, row in reading.rows.items():
        if row.gang == name:
            members = reading.members(key)
            pods.extend(_pod(task.role, pod) for task, pod in members)
            objects = [reading.object(key), *(pod for _, pod in members)]
            names.update((namespace_of(one), name_of(one)) for one in objects if one is not None)
    about = [one for one in events if _object_of(one) in names]
    about.sort(key=lambda one: instant_of(last_seen(one)), reverse=True)
    return {"pods": sorted(pods, key=lambda pod: str(pod["name"])), "events": [_event(one) for one in about[:_EVENTS]]}


def _pod(role: str, pod: Obj) -> dict[str, Any]:
    condition = condition_of(pod, "PodScheduled") or {}
    state = pod_state(pod)
    return {
        "name": name_of(pod),
        "role": role,
        "state": state,
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "message": str(condition.get("message") or "") if state == "waiting" else "",
    }


def _object_of(event: Obj) -> tuple[str, str]:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return str(involved.get("namespace") or ""), str(involved.get("name") or "")


def _event(event: Obj) -> dict[str, Any]:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return {
        "t": _seconds(last_seen(event)),
        "object": f"{involved.get('kind', '')} {involved.get('name', '')}",
        "reason": event.get("reason", ""),
        "message": event.get("message") or event.get("note") or "",
    }
