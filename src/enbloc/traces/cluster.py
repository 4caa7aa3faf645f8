"""A cluster of equal nodes, and the jobs of a trace as gangs on it.

A job's pods are as large as a node allows: up to a node's size it is one pod, beyond that whole nodes and what is left.
So a job of 12 GPUs on nodes of 8 is a pod of 8 and one of 4; on one-processor nodes a job of 12 is 12 pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj
from enbloc.api.volcano import DEFAULT_QUEUE
from enbloc.traces.trace import CPU, GPU, PODS, Trace, TraceJob
from enbloc.units import NANO, parse_quantity

NAMESPACE: Final = "replay"
_DEFAULT_GPUS: Final = 8


class Part(NamedTuple):
    """Equal pods of a job."""

    role: str
    pods: int
    units: int
    """Per pod."""


class Shape(NamedTuple):
    """The nodes of a replay."""

    nodes: int
    resources: Mapping[str, str]
    resource: str
    """What the trace's units are on these nodes."""
    per_node: int
    """Units on one node."""
    whole_pods: bool = False
    """The trace counts pods: each is one, of one unit."""
    queues: Mapping[str, int] | None = None
    """Queues by name, and their weights; `None`: all jobs are in one."""

    @property
    def units(self) -> int:
        return self.nodes * self.per_node

    def parts(self, job: TraceJob) -> tuple[Part, ...]:
        if self.whole_pods:
            return (Part("worker", job.units, 1),)
        if job.units <= self.per_node:
            return (Part("worker", 1, job.units),)
        whole, rest = divmod(job.units, self.per_node)
        return (Part("worker", whole, self.per_node), *((Part("rest", 1, rest),) if rest else ()))

    def fits(self, job: TraceJob) -> bool:
        """Whether the empty cluster could hold it."""
        return sum(part.pods for part in self.parts(job)) <= self.nodes or (self.whole_pods and job.units <= self.units)

    def queue_of(self, job: TraceJob) -> str:
        return DEFAULT_QUEUE if self.queues is None else queue_name(job.queue)

    def request(self, units: int) -> dict[str, str]:
        return {self.resource: str(units)}


def shape_of(trace: Trace, nodes: int | None, resources: Mapping[str, str] | None) -> Shape:
    """The cluster to replay a trace on; what is not given is the trace's own machine. Raises `ValueError`."""
    resource = CPU if trace.resource == PODS else trace.resource
    resources = resources or trace.node_resources
    nodes = nodes or trace.nodes
    given = dict(resources) if resources else {resource: str(_DEFAULT_GPUS) if resource == GPU else "1"}
    if resource not in given:
        raise ValueError(f"--node-resources: the trace's jobs ask for {resource}; the nodes have {', '.join(given)}")
    per_node = parse_quantity(given[resource]).nanos // NANO
    if per_node < 1:
        raise ValueError(f"--node-resources: a node needs at least 1 {resource}")
    if nodes is None:
        largest = max((job.units for job in trace.jobs), default=1)
        nodes = -(-(trace.processors or largest) // per_node)
    given.setdefault("pods", str(max(110, per_node)))
    return Shape(nodes, given, resource, per_node, trace.resource == PODS)


def with_queues(shape: Shape, trace: Trace) -> Shape:
    """The cluster with the queues that the trace's jobs name, each with its weight if the trace says so."""
    weights = {queue_name(name): weight for name, weight in trace.queues.items()}
    return shape._replace(
        queues={name: weights.get(name, 1) for name in sorted({queue_name(job.queue) for job in trace.jobs})}
    )


def queue_name(text: str) -> str:
    """A trace's queue as the name of a Queue: letters, digits and dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].rstrip("-")
    return "queue-root" if name == "root" else name or DEFAULT_QUEUE


def queue(name: str, weight: int) -> Obj:
    spec = {"weight": weight}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def job_name(number: int) -> str:
    """Names sort in the order of the trace: gangs of one second are served in that order."""
    return f"job-{number:07d}"


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def node(shape: Shape, number: int) -> Obj:
    name = node_name(number)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": dict(shape.resources), "allocatable": dict(shape.resources)},
    }


def pod_spec(shape: Shape, units: int) -> dict[str, Any]:
    requests = shape.request(units)
    resources = {"requests": requests} if shape.resource == CPU else {"requests": requests, "limits": requests}
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "trace", "resources": resources}]}
