"""What `kubectl get` shows of each kind: columns, and the cells of an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from enbloc.api import arbitrator, coscheduling, koordinator, kubernetes, volcano
from enbloc.api.meta import Obj, condition_of, is_terminating, labels_of, name_of
from enbloc.units import SECOND, parse_timestamp

Cells = list[Any]
Row = Callable[[Obj, int], Cells]
NONE = "<none>"


class Column(msgspec.Struct, frozen=True):
    """A column; those of a priority above 0 are shown with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


class Columns(msgspec.Struct, frozen=True):
    columns: tuple[Column, ...]
    row: Row


def columns_of(kind: str) -> Columns:
    return _KINDS.get(kind, _PLAIN)


def age(obj: Obj, now: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(stamp: Any, now: int) -> str:
    """How long ago that was, as kubectl writes it: `45s`, `3m12s`, `5h`, `12d`."""
    try:
        nanos = now - parse_timestamp(stamp)
    except ValueError:
        return "<unknown>"
    return _human(max(nanos, 0) // SECOND)


def _human(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if rest and years < 8 else f"{years}y"


def _section(obj: Any, *path: str) -> Mapping[str, Any]:
    """A mapping inside an object; an empty one where there is none."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def _listed(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any, otherwise: str = "") -> str:
    return otherwise if value is None or value == "" else str(value)


_NAME = Column("Name", format="name", description="Its name, unique among its kind in its namespace.")
_AGE = Column("Age", description="How long ago it was created.")


def _with_name(*columns: Column) -> tuple[Column, ...]:
    return (_NAME, *columns)


_PLAIN = Columns((_NAME, _AGE), lambda obj, now: [name_of(obj), age(obj, now)])


# -- pods

_POD = _with_name(
    Column("Ready", description="Containers that are ready, of all."),
    Column("Status", description="What the pod is doing."),
    Column("Restarts", description="How often its containers were restarted."),
    _AGE,
    Column("IP", priority=1),
    Column("Node", priority=1),
    Column("Nominated Node", priority=1),
    Column("Readiness Gates", priority=1),
)


def _pod(pod: Obj, now: int) -> Cells:
    spec, status = _section(pod, "spec"), _section(pod, "status")
    states = _listed(status.get("containerStatuses"))
    ready = sum(1 for state in states if state.get("ready") is True)
    counts = [state.get("restartCount") for state in states]
    restarts = sum(count for count in counts if isinstance(count, int))
    return [
        name_of(pod),
        f"{ready}/{len(_listed(spec.get('containers')))}",
        pod_word(pod),
        str(restarts) + _last_restart(states, now, restarts),
        age(pod, now),
        _text(status.get("podIP"), NONE),
        _text(spec.get("nodeName"), NONE),
        _text(status.get("nominatedNodeName"), NONE),
        NONE,
    ]


def _last_restart(states: list[Any], now: int, restarts: int) -> str:
    ends = [_text(_section(state, "lastState", "terminated").get("finishedAt")) for state in states]
    return f" ({since(max(ends), now)} ago)" if restarts and any(ends) else ""


def pod_word(pod: Obj) -> str:
    """A pod's state in one word, as kubectl's users know it."""
    spec, status = _section(pod, "spec"), _section(pod, "status")
    word = _text(status.get("reason")) or _text(status.get("phase"), "Pending")
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        word = "SchedulingGated"
    running = False
    for state in _listed(status.get("containerStatuses")):
        waiting, ended = _section(state, "state", "waiting"), _section(state, "state", "terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended:
            word = _text(ended.get("reason")) or f"ExitCode:{ended.get('exitCode')}"
        elif state.get("ready") is True and _section(state, "state", "running"):
            running = True
    if word == "Completed" and running:
        word = "Running"
    if is_terminating(pod) and status.get("phase") not in ("Succeeded", "Failed"):
        word = "Terminating"
    return word


# -- nodes

_NODE = _with_name(
    Column("Status"),
    Column("Roles"),
    _AGE,
    Column("Version"),
    Column("CPU", description="What pods may ask for in all.", priority=0),
    Column("Memory"),
    Column("Internal-IP", priority=1),
    Column("OS-Image", priority=1),
    Column("Container-Runtime", priority=1),
)


def _node(node: Obj, now: int) -> Cells:
    status = _section(node, "status")
    room = _section(status, "allocatable") or _section(status, "capacity")
    info = _section(status, "nodeInfo")
    addresses = [
        _text(address.get("address"))
        for address in _listed(status.get("addresses"))
        if address.get("type") == "InternalIP"
    ]
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels_of(node) if key.startswith(prefix))
    return [
        name_of(node),
        node_word(node),
        ",".join(roles) or NONE,
        age(node, now),
        _text(info.get("kubeletVersion"), NONE),
        _text(room.get("cpu"), NONE),
        _text(room.get("memory"), NONE),
        addresses[0] if addresses else NONE,
        _text(info.get("osImage"), "<unknown>"),
        _text(info.get("containerRuntimeVersion"), "<unknown>"),
    ]


def node_word(node: Obj) -> str:
    """Whether the node takes pods: `Ready`, `NotReady`, `Ready,SchedulingDisabled`."""
    ready = condition_of(node, "Ready")
    words = ["Ready" if ready is None or ready.get("status") == "True" else "NotReady"]
    if _section(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


# -- jobs and what they are made of

_JOB = _with_name(
    Column("Status", description="The job's phase."),
    Column("MinAvailable", "integer", description="How many pods start together."),
    Column("Runnings", "integer", description="Pods that run."),
    _AGE,
    Column("Queue", priority=1),
    Column("Pending", "integer", priority=1),
    Column("Succeeded", "integer", priority=1),
    Column("Failed", "integer", priority=1),
)


def _job(job: Obj, now: int) -> Cells:
    spec, status = _section(job, "spec"), _section(job, "status")
    return [
        name_of(job),
        _text(_section(status, "state").get("phase")),
        _whole(spec.get("minAvailable")),
        _whole(status.get("running")),
        age(job, now),
        _text(spec.get("queue"), NONE),
        *(_whole(status.get(key)) for key in ("pending", "succeeded", "failed")),
    ]


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_POD_GROUP = _with_name(
    Column("Status", description="The group's phase."),
    Column("MinMember", "integer", description="How many pods start together."),
    Column("Runnings", "integer", description="Pods that run."),
    _AGE,
    Column("Queue", priority=1),
    Column("Waits For", priority=1, description="Why it does not start."),
)


def _pod_group(group: Obj, now: int) -> Cells:
    spec, status = _section(group, "spec"), _section(group, "status")
    waits = condition_of(group, "Unschedulable")
    waiting = waits is not None and waits.get("status") == "True"
    gang = _section(spec, "schedulingPolicy", "gang")
    return [
        name_of(group),
        _text(status.get("phase")),
        _whole(spec.get("minMember")) or _whole(gang.get("minCount")),
        _whole(status.get("running")),
        age(group, now),
        _text(spec.get("queue"), NONE),
        _text(waits.get("message"), NONE) if waits is not None and waiting else NONE,
    ]


_QUEUE = _with_name(
    Column("Parent"),
    Column("Weight", "integer"),
    Column("State"),
    Column("Inqueue", "integer", description="Groups that were let in and do not run yet."),
    Column("Pending", "integer", description="Groups that wait to be let in."),
    Column("Running", "integer", description="Groups that run."),
    _AGE,
)


def _queue(queue: Obj, now: int) -> Cells:
    spec, status = _section(queue, "spec"), _section(queue, "status")
    counts = [_whole(status.get(key)) for key in ("inqueue", "pending", "running")]
    state = _text(status.get("state"), "Open")
    return [name_of(queue), _text(spec.get("parent")), _whole(spec.get("weight")), state, *counts, age(queue, now)]


_QUEUE_JOB = _with_name(
    Column("Status"),
    Column("MinAvailable", "integer"),
    Column("Running", "integer"),
    Column("Pending", "integer"),
    Column("Succeeded", "integer"),
    _AGE,
)


def _queue_job(job: Obj, now: int) -> Cells:
    status = _section(job, "status")
    counts = [_whole(status.get(key)) for key in ("minAvailable", "running", "pending", "succeeded")]
    return [name_of(job), _text(_section(status, "state").get("phase")), *counts, age(job, now)]


# -- the rest

_EVENT = (
    Column("Last Seen", description="When it was said last."),
    Column("Type"),
    Column("Reason"),
    Column("Object", description="What it is about."),
    Column("Subobject", priority=1),
    Column("Source", priority=1),
    Column("Message"),
    Column("First Seen", priority=1),
    Column("Count", "integer", priority=1),
    Column("Name", format="name", priority=1),
)


def _event(event: Obj, now: int) -> Cells:
    about = _section(event, "involvedObject")
    source = _text(_section(event, "source").get("component")) or _text(event.get("reportingComponent"))
    created = event["metadata"].get("creationTimestamp")
    return [
        since(event.get("lastTimestamp") or event.get("eventTime") or created, now),
        _text(event.get("type")),
        _text(event.get("reason")),
        f"{_text(about.get('kind')).lower()}/{_text(about.get('name'))}",
        _text(about.get("fieldPath")),
        source,
        _text(event.get("message")).strip(),
        since(event.get("firstTimestamp") or event.get("eventTime") or created, now),
        _whole(event.get("count")) or 1,
        name_of(event),
    ]


def _namespace(namespace: Obj, now: int) -> Cells:
    phase = "Terminating" if is_terminating(namespace) else "Active"
    return [name_of(namespace), phase, age(namespace, now)]


def _data_count(obj: Obj, now: int) -> Cells:
    return [name_of(obj), len(_section(obj, "data")) + len(_section(obj, "binaryData")), age(obj, now)]


def _secret(obj: Obj, now: int) -> Cells:
    return [name_of(obj), _text(obj.get("type"), "Opaque"), len(_section(obj, "data")), age(obj, now)]


def _service(obj: Obj, now: int) -> Cells:
    spec = _section(obj, "spec")
    ports = [f"{port.get('port')}/{_text(port.get('protocol'), 'TCP')}" for port in _listed(spec.get("ports"))]
    type_, address = _text(spec.get("type"), "ClusterIP"), _text(spec.get("clusterIP"), NONE)
    return [name_of(obj), type_, address, ",".join(ports) or NONE, age(obj, now)]


def _priority_class(obj: Obj, now: int) -> Cells:
    default = bool(obj.get("globalDefault"))
    return [name_of(obj), _whole(obj.get("value")), default, age(obj, now), _text(obj.get("preemptionPolicy"))]


def _quota(obj: Obj, now: int) -> Cells:
    hard, used = _section(obj, "spec", "hard"), _section(obj, "status", "used")
    shown = ", ".join(f"{key}: {used.get(key, 0)}/{hard[key]}" for key in sorted(hard))
    return [name_of(obj), shown, age(obj, now)]


def _budget(obj: Obj, now: int) -> Cells:
    spec = _section(obj, "spec")
    least, most = (_text(spec.get(key), "N/A") for key in ("minAvailable", "maxUnavailable"))
    return [name_of(obj), least, most, age(obj, now)]


def _claim(obj: Obj, now: int) -> Cells:
    spec = _section(obj, "spec")
    phase = _text(_section(obj, "status").get("phase"), "Pending")
    return [name_of(obj), phase, _text(spec.get("volumeName")), _text(spec.get("storageClassName")), age(obj, now)]


def _volume(obj: Obj, now: int) -> Cells:
    spec, claim = _section(obj, "spec"), _section(obj, "spec", "claimRef")
    named = f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""
    phase = _text(_section(obj, "status").get("phase"), "Available")
    return [name_of(obj), _text(_section(spec, "capacity").get("storage")), phase, named, age(obj, now)]


def _definition(obj: Obj, now: int) -> Cells:
    return [name_of(obj), _text(obj["metadata"].get("creationTimestamp"))]


_KINDS: dict[str, Columns] = {
    "Pod": Columns(_POD, _pod),
    "Node": Columns(_NODE, _node),
    volcano.JOB: Columns(_JOB, _job),
    volcano.POD_GROUP: Columns(_POD_GROUP, _pod_group),
    koordinator.POD_GROUP: Columns(_POD_GROUP, _pod_group),
    coscheduling.POD_GROUP: Columns(_POD_GROUP, _pod_group),
    kubernetes.POD_GROUP: Columns(_POD_GROUP, _pod_group),
    volcano.QUEUE: Columns(_QUEUE, _queue),
    arbitrator.QUEUE_JOB: Columns(_QUEUE_JOB, _queue_job),
    "Event": Columns(_EVENT, _event),
    "Namespace": Columns(_with_name(Column("Status"), _AGE), _namespace),
    "ConfigMap": Columns(_with_name(Column("Data", "integer"), _AGE), _data_count),
    "Secret": Columns(_with_name(Column("Type"), Column("Data", "integer"), _AGE), _secret),
    "Service": Columns(_with_name(Column("Type"), Column("Cluster-IP"), Column("Port(s)"), _AGE), _service),
    "PriorityClass.scheduling.k8s.io": Columns(
        _with_name(Column("Value", "integer"), Column("Global-Default", "boolean"), _AGE, Column("PreemptionPolicy")),
        _priority_class,
    ),
    "ResourceQuota": Columns(_with_name(Column("Used"), _AGE), _quota),
    "PodDisruptionBudget.policy": Columns(
        _with_name(Column("Min Available"), Column("Max Unavailable"), _AGE), _budget
    ),
    "PersistentVolumeClaim": Columns(
        _with_name(Column("Status"), Column("Volume"), Column("StorageClass"), _AGE), _claim
    ),
    "PersistentVolume": Columns(_with_name(Column("Capacity"), Column("Status"), Column("Claim"), _AGE), _volume),
    "CustomResourceDefinition.apiextensions.k8s.io": Columns(_with_name(Column("Created At")), _definition),
}
