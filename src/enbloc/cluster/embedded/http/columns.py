"""The columns of `kubectl get` for each kind, as a table: each cell is a field, or computed by a function of
`cells`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from enbloc.api import arbitrator, coscheduling, kai, koordinator, kubernetes, volcano, workloads
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.http import cells
from enbloc.cluster.embedded.http.cells import NONE
from enbloc.cluster.embedded.http.selectors import selector_text

Cell = Callable[[Obj, int], Any]


class Column(msgspec.Struct, frozen=True):
    """A column; one with a priority above 0 is shown with `-o wide` only."""

    name: str
    cell: str | Cell
    """The path of a field, as in `spec.queue`; or what computes the cell of an object at a time."""
    type: str = "string"
    priority: int = 0
    default: str = ""
    description: str = ""
    format: str = ""

    def of(self, obj: Obj, now_ns: int) -> Any:
        if not isinstance(self.cell, str):
            return self.cell(obj, now_ns)
        *path, last = self.cell.split(".")
        value = cells.section(obj, *path).get(last)
        return cells.integer(value) if self.type == "integer" else cells.text(value, self.default)


def _count(name: str, path: str, description: str = "", priority: int = 0) -> Column:
    return Column(name, path, "integer", priority, description=description)


def _wide(name: str, cell: str | Cell, default: str = "", description: str = "") -> Column:
    return Column(name, cell, priority=1, default=default, description=description)


_NAME: Final = Column("Name", "metadata.name", format="name", description="Unique among its kind in its namespace.")
_AGE: Final = Column("Age", cells.age, description="Time since its creation.")
ONLY_NAME: Final = (_NAME,)
WITH_AGE: Final = (_NAME, _AGE)

_POD_GROUP: Final = (
    _NAME,
    Column("Status", "status.phase", description="The group's phase."),
    Column("MinMember", cells.min_member, "integer", description="Pods that start together."),
    _count("Runnings", "status.running", "Pods that run."),
    _AGE,
    _wide("Queue", "spec.queue", NONE),
    _wide("Waits For", cells.unschedulable_message, description="Why it is not scheduled."),
)

_TEMPLATE: Final = (
    _wide("Containers", cells.container_names),
    _wide("Images", cells.container_images),
    _wide("Selector", lambda obj, now_ns: selector_text(dict(cells.section(obj, "spec", "selector")))),
)

COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "Pod": (
        _NAME,
        Column("Ready", cells.pod_ready, description="Ready containers, of all."),
        Column("Status", cells.pod_status, description="The pod's state."),
        Column("Restarts", cells.pod_restarts, description="Restarts of its containers."),
        _AGE,
        _wide("IP", "status.podIP", NONE),
        _wide("Node", "spec.nodeName", NONE),
        _wide("Nominated Node", "status.nominatedNodeName", NONE),
        _wide("Readiness Gates", lambda pod, now_ns: NONE),
    ),
    "Node": (
        _NAME,
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        _AGE,
        Column("Version", "status.nodeInfo.kubeletVersion", default=NONE),
        Column("CPU", cells.node_cpu, description="Allocatable CPUs."),
        Column("Memory", cells.node_memory),
        _wide("Internal-IP", cells.internal_ip),
        _wide("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
        _wide("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>"),
    ),
    volcano.JOB: (
        _NAME,
        Column("Status", "status.state.phase", description="The job's phase."),
        _count("MinAvailable", "spec.minAvailable", "Pods that start together."),
        _count("Runnings", "status.running", "Pods that run."),
        _AGE,
        _wide("Queue", "spec.queue", NONE),
        _count("Pending", "status.pending", priority=1),
        _count("Succeeded", "status.succeeded", priority=1),
        _count("Failed", "status.failed", priority=1),
    ),
    volcano.POD_GROUP: _POD_GROUP,
    koordinator.POD_GROUP: _POD_GROUP,
    coscheduling.POD_GROUP: _POD_GROUP,
    kubernetes.POD_GROUP: _POD_GROUP,
    kai.POD_GROUP: _POD_GROUP,
    volcano.QUEUE: (
        _NAME,
        Column("Parent", "spec.parent"),
        _count("Weight", "spec.weight"),
        Column("State", "status.state", default="Open"),
        _count("Inqueue", "status.inqueue", "Groups that are enqueued and do not run yet."),
        _count("Pending", "status.pending", "Groups that are not enqueued yet."),
        _count("Running", "status.running", "Groups that run."),
        _AGE,
    ),
    arbitrator.QUEUE_JOB: (
        _NAME,
        Column("Status", "status.state.phase"),
        _count("MinAvailable", "status.minAvailable"),
        _count("Running", "status.running"),
        _count("Pending", "status.pending"),
        _count("Succeeded", "status.succeeded"),
        _AGE,
    ),
    workloads.DEPLOYMENT: (
        _NAME,
        Column("Ready", cells.ready_replicas, description="Ready pods, of the wanted ones."),
        _count("Up-To-Date", "status.updatedReplicas", "Pods of the present template."),
        _count("Available", "status.availableReplicas"),
        _AGE,
        *_TEMPLATE,
    ),
    workloads.REPLICA_SET: (
        _NAME,
        _count("Desired", "spec.replicas"),
        _count("Current", "status.replicas"),
        _count("Ready", "status.readyReplicas"),
        _AGE,
        *_TEMPLATE,
    ),
    workloads.STATEFUL_SET: (_NAME, Column("Ready", cells.ready_replicas), _AGE, *_TEMPLATE[:2]),
    workloads.DAEMON_SET: (
        _NAME,
        _count("Desired", "status.desiredNumberScheduled", "Nodes that should have a pod."),
        _count("Current", "status.currentNumberScheduled"),
        _count("Ready", "status.numberReady"),
        _count("Up-To-Date", "status.updatedNumberScheduled"),
        _count("Available", "status.numberAvailable"),
        Column("Node Selector", cells.node_selector),
        _AGE,
        *_TEMPLATE,
    ),
    workloads.JOB: (
        _NAME,
        Column("Status", cells.job_status, description="Running, Suspended, or how it ended."),
        Column("Completions", cells.job_completions, description="Succeeded pods, of the wanted ones."),
        Column("Duration", cells.job_duration, description="From its start to its end, or until now."),
        _AGE,
        *_TEMPLATE,
    ),
    workloads.CRON_JOB: (
        _NAME,
        Column("Schedule", "spec.schedule"),
        Column("Timezone", "spec.timeZone", default=NONE),
        Column("Suspend", cells.cron_suspend, "boolean"),
        Column("Active", lambda job, now_ns: len(cells.section(job, "status").get("active") or ()), "integer"),
        Column("Last Schedule", cells.last_schedule),
        _AGE,
    ),
    workloads.CONTROLLER_REVISION: (
        _NAME,
        Column("Controller", cells.controller),
        _count("Revision", "revision"),
        _AGE,
    ),
    "Event": (
        Column("Last Seen", cells.last_seen, description="When it happened last."),
        Column("Type", "type"),
        Column("Reason", "reason"),
        Column("Object", cells.event_object, description="What it is about."),
        _wide("Subobject", "involvedObject.fieldPath"),
        _wide("Source", cells.event_source),
        Column("Message", cells.event_message),
        _wide("First Seen", cells.first_seen),
        Column("Count", cells.event_count, "integer", 1),
        Column("Name", "metadata.name", priority=1, format="name"),
    ),
    "Namespace": (_NAME, Column("Status", cells.namespace_phase), _AGE),
    "ConfigMap": (_NAME, Column("Data", cells.data_count, "integer"), _AGE),
    "Secret": (
        _NAME,
        Column("Type", "type", default="Opaque"),
        Column("Data", lambda secret, now_ns: len(cells.section(secret, "data")), "integer"),
        _AGE,
    ),
    "Service": (
        _NAME,
        Column("Type", "spec.type", default="ClusterIP"),
        Column("Cluster-IP", "spec.clusterIP", default=NONE),
        Column("Port(s)", cells.service_ports),
        _AGE,
    ),
    "PriorityClass.scheduling.k8s.io": (
        _NAME,
        _count("Value", "value"),
        Column("Global-Default", cells.global_default, "boolean"),
        _AGE,
        Column("PreemptionPolicy", "preemptionPolicy"),
    ),
    "ResourceQuota": (_NAME, Column("Used", cells.quota_usage), _AGE),
    "PodDisruptionBudget.policy": (
        _NAME,
        Column("Min Available", "spec.minAvailable", default="N/A"),
        Column("Max Unavailable", "spec.maxUnavailable", default="N/A"),
        _AGE,
    ),
    "PersistentVolumeClaim": (
        _NAME,
        Column("Status", "status.phase", default="Pending"),
        Column("Volume", "spec.volumeName"),
        Column("StorageClass", "spec.storageClassName"),
        _AGE,
    ),
    "PersistentVolume": (
        _NAME,
        Column("Capacity", "spec.capacity.storage"),
        Column("Status", "status.phase", default="Available"),
        Column("Claim", cells.claim_reference),
        _AGE,
    ),
    "CustomResourceDefinition.apiextensions.k8s.io": (_NAME, Column("Created At", "metadata.creationTimestamp")),
}
