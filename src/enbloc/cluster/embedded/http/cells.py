"""Cells of `kubectl get` that are more than one field: ages, a pod's status in one word, counts of containers.

Pure functions of an object and the present time. Which kind shows which of them is in `columns.txt`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.api import events
from enbloc.api.meta import Obj, condition_of, controller_of, holds, is_terminating, labels_of
from enbloc.cluster.embedded.http.selectors import selector_text
from enbloc.units import SECOND, parse_timestamp

NONE = "<none>"
_ROLE_LABEL = "node-role.kubernetes.io/"


def section(obj: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at a path of an object; an empty one if there is none."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def text(value: Any, default: str = "") -> str:
    return default if value is None or value == "" else str(value)


def integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _mappings(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def age(obj: Obj, now_ns: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now_ns)


def since(stamp: Any, now_ns: int) -> str:
    """How long ago that was, as kubectl writes it: `45s`, `3m12s`, `5h`, `12d`."""
    try:
        passed_ns = now_ns - parse_timestamp(stamp)
    except ValueError:
        return "<unknown>"
    return _duration(max(passed_ns, 0) // SECOND)


def _duration(seconds: int) -> str:
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


# -- pods and nodes


def pod_ready(pod: Obj, now_ns: int) -> str:
    states = _mappings(section(pod, "status").get("containerStatuses"))
    ready = sum(1 for state in states if state.get("ready") is True)
    return f"{ready}/{len(_mappings(section(pod, 'spec').get('containers')))}"


def pod_restarts(pod: Obj, now_ns: int) -> str:
    states = _mappings(section(pod, "status").get("containerStatuses"))
    counts = [state.get("restartCount") for state in states]
    restarts = sum(count for count in counts if isinstance(count, int))
    ends = [text(section(state, "lastState", "terminated").get("finishedAt")) for state in states]
    return str(restarts) + (f" ({since(max(ends), now_ns)} ago)" if restarts and any(ends) else "")


def pod_status(pod: Obj, now_ns: int) -> str:
    """A pod's state in one word, as kubectl shows it."""
    spec, status = section(pod, "spec"), section(pod, "status")
    word = text(status.get("reason")) or text(status.get("phase"), "Pending")
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        word = "SchedulingGated"
    running = False
    for state in _mappings(status.get("containerStatuses")):
        waiting, ended = section(state, "state", "waiting"), section(state, "state", "terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended:
            word = text(ended.get("reason")) or f"ExitCode:{ended.get('exitCode')}"
        elif state.get("ready") is True and section(state, "state", "running"):
            running = True
    if word == "Completed" and running:
        word = "Running"
    if is_terminating(pod) and status.get("phase") not in ("Succeeded", "Failed"):
        word = "Terminating"
    return word


def node_status(node: Obj, now_ns: int) -> str:
    """`Ready`, `NotReady`, `Ready,SchedulingDisabled`."""
    ready = condition_of(node, "Ready")
    words = ["Ready" if ready is None or ready.get("status") == "True" else "NotReady"]
    if section(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Obj, now_ns: int) -> str:
    roles = sorted(key.removeprefix(_ROLE_LABEL) for key in labels_of(node) if key.startswith(_ROLE_LABEL))
    return ",".join(roles) or NONE


def node_cpu(node: Obj, now_ns: int) -> str:
    return _allocatable(node, "cpu")


def node_memory(node: Obj, now_ns: int) -> str:
    return _allocatable(node, "memory")


def _allocatable(node: Obj, resource: str) -> str:
    status = section(node, "status")
    return text((section(status, "allocatable") or section(status, "capacity")).get(resource), NONE)


def internal_ip(node: Obj, now_ns: int) -> str:
    addresses = _mappings(section(node, "status").get("addresses"))
    found = [text(each.get("address")) for each in addresses if each.get("type") == "InternalIP"]
    return found[0] if found else NONE


# -- gangs


def min_member(group: Obj, now_ns: int) -> int:
    """Of any PodGroup kind: `minMember`, or Kubernetes' own `schedulingPolicy.gang.minCount`."""
    gang = section(group, "spec", "schedulingPolicy", "gang")
    return integer(section(group, "spec").get("minMember")) or integer(gang.get("minCount"))


def unschedulable_message(group: Obj, now_ns: int) -> str:
    return text((holds(group, "Unschedulable") or {}).get("message"), NONE)


# -- workloads


def ready_replicas(obj: Obj, now_ns: int) -> str:
    return f"{integer(section(obj, 'status').get('readyReplicas'))}/{integer(section(obj, 'spec').get('replicas'))}"


def container_names(obj: Obj, now_ns: int) -> str:
    return ",".join(text(one.get("name")) for one in _template_containers(obj))


def container_images(obj: Obj, now_ns: int) -> str:
    return ",".join(text(one.get("image")) for one in _template_containers(obj))


def _template_containers(obj: Obj) -> list[Any]:
    return _mappings(section(obj, "spec", "template", "spec").get("containers"))


def template_selector(obj: Obj, now_ns: int) -> str:
    return selector_text(dict(section(obj, "spec", "selector")))


def node_selector(obj: Obj, now_ns: int) -> str:
    chosen = section(obj, "spec", "template", "spec", "nodeSelector")
    return ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or NONE


def job_status(job: Obj, now_ns: int) -> str:
    for kind in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"):
        if holds(job, kind):
            return kind
    return "Terminating" if is_terminating(job) else "Running"


def job_completions(job: Obj, now_ns: int) -> str:
    spec, succeeded = section(job, "spec"), integer(section(job, "status").get("succeeded"))
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallel = integer(spec.get("parallelism"))
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def job_duration(job: Obj, now_ns: int) -> str:
    status = section(job, "status")
    if not status.get("startTime"):
        return ""
    ended = status.get("completionTime")
    return since(status["startTime"], parse_timestamp(ended) if ended else now_ns)


def active_jobs(job: Obj, now_ns: int) -> int:
    return len(section(job, "status").get("active") or ())


def last_schedule(job: Obj, now_ns: int) -> str:
    at = section(job, "status").get("lastScheduleTime")
    return since(at, now_ns) if at else NONE


def controller(obj: Obj, now_ns: int) -> str:
    found = controller_of(obj)
    return f"{text(found.get('kind')).lower()}.apps/{text(found.get('name'))}" if found else NONE


# -- the rest


def last_seen(event: Obj, now_ns: int) -> str:
    return since(events.last_seen(event), now_ns)


def first_seen(event: Obj, now_ns: int) -> str:
    first = event.get("firstTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return since(first, now_ns)


def event_object(event: Obj, now_ns: int) -> str:
    about = section(event, "involvedObject")
    return f"{text(about.get('kind')).lower()}/{text(about.get('name'))}"


def event_source(event: Obj, now_ns: int) -> str:
    return text(section(event, "source").get("component")) or text(event.get("reportingComponent"))


def event_message(event: Obj, now_ns: int) -> str:
    return text(event.get("message")).strip()


def event_count(event: Obj, now_ns: int) -> int:
    return events.count_of(event)


def namespace_phase(namespace: Obj, now_ns: int) -> str:
    return "Terminating" if is_terminating(namespace) else "Active"


def data_count(obj: Obj, now_ns: int) -> int:
    return len(section(obj, "data")) + len(section(obj, "binaryData"))


def service_ports(service: Obj, now_ns: int) -> str:
    ports = _mappings(section(service, "spec").get("ports"))
    return ",".join(f"{port.get('port')}/{text(port.get('protocol'), 'TCP')}" for port in ports) or NONE


def quota_usage(quota: Obj, now_ns: int) -> str:
    hard, used = section(quota, "spec", "hard"), section(quota, "status", "used")
    return ", ".join(f"{key}: {used.get(key, 0)}/{hard[key]}" for key in sorted(hard))


def claim_reference(volume: Obj, now_ns: int) -> str:
    claim = section(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""
