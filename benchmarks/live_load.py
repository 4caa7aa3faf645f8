"""The load of `bench live`: nodes, and gangs as users of each dialect write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from enbloc.api.meta import Obj

NODE_CPU: Final = 64
PODS_A_NODE: Final = 250
POD_CPU: Final = "100m"
POD_MEMORY: Final = "64Mi"
_READY: Final = {"type": "Ready", "status": "True", "reason": "Bench", "message": ""}
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/"
_YUNIKORN: Final = "yunikorn.apache.org/"
QUEUE: Final = "default"
"""Of the dialects whose gangs must name one."""

KIND_OF: Final = {
    "volcano": "PodGroup.scheduling.volcano.sh",
    "native": "PodGroup.scheduling.k8s.io",
    "job": "Job.batch.volcano.sh",
    "scheduler-plugins": "PodGroup.scheduling.x-k8s.io",
    "kai": "PodGroup.scheduling.run.ai",
}
"""The kind that declares a gang, where one does; the cluster must serve it."""
_API_VERSION: Final = {
    "volcano": "scheduling.volcano.sh/v1beta1",
    "native": "scheduling.k8s.io/v1alpha2",
    "job": "batch.volcano.sh/v1alpha1",
    "scheduler-plugins": "scheduling.x-k8s.io/v1alpha1",
    "kai": "scheduling.run.ai/v2alpha2",
}


class Gang(NamedTuple):
    """What is created for one gang: its object, then its pods. The pods of a Job are made by its controller."""

    name: str
    size: int
    group: Obj | None
    pods: tuple[Obj, ...]


class Load(NamedTuple):
    namespace: str
    scheduler: str
    """The scheduler that the pods name."""
    dialect: str
    pods: int
    gang_size: int
    nodes: str = ""
    """The label of the nodes that the pods may use; none: that of a bench whose nodes are those of the namespace."""

    def gangs(self) -> Iterator[Gang]:
        for number in range(-(-self.pods // self.gang_size)):
            size = min(self.gang_size, self.pods - number * self.gang_size)
            yield self._gang(f"gang-{number:05d}", size)

    def one_more(self) -> Gang:
        """A gang of one pod that does not count."""
        return self._gang("warm-up", 1)

    def _gang(self, name: str, size: int) -> Gang:
        if self.dialect == "job":
            return Gang(name, size, self._job(name, size), ())
        group, metadata, spec = self._declaration(name, size)
        pods = (self._pod(f"{name}-worker-{index}", metadata, spec) for index in range(size))
        return Gang(name, size, group, tuple(pods))

    def _declaration(self, name: str, size: int) -> tuple[Obj | None, Obj, Obj]:
        """The gang's object, and what its pods say of it in their metadata and in their spec."""
        match self.dialect:
            case "volcano":
                notes = {"scheduling.k8s.io/group-name": name}
                return self._object(name, "PodGroup", {"minMember": size}), {"annotations": notes}, {}
            case "native":
                group = self._object(name, "PodGroup", {"schedulingPolicy": {"gang": {"minCount": size}}})
                return group, {}, {"schedulingGroup": {"podGroupName": name}}
            case "scheduler-plugins":
                labels = {"scheduling.x-k8s.io/pod-group": name}
                return self._object(name, "PodGroup", {"minMember": size}), {"labels": labels}, {}
            case "kai":  # as its pod-grouper would write it
                group = self._object(name, "PodGroup", {"minMember": size, "queue": QUEUE})
                return group, {"annotations": {"pod-group-name": name}, "labels": {"kai.scheduler/queue": QUEUE}}, {}
            case "yunikorn":
                notes = {f"{_YUNIKORN}task-group-name": "worker", f"{_YUNIKORN}task-groups": self._task_groups(size)}
                return None, {"annotations": notes, "labels": {f"{_YUNIKORN}app-id": name}}, {}
            case _:
                notes = {f"{_KOORDINATOR}name": name, f"{_KOORDINATOR}min-available": str(size)}
                return None, {"annotations": notes}, {}

    def _task_groups(self, size: int) -> str:
        """With all that its placeholders need to stand where the pods could."""
        spec = pod_spec(self.nodes or self.namespace)
        group = {"name": "worker", "minMember": size, "minResource": {"cpu": POD_CPU, "memory": POD_MEMORY}}
        return json.dumps([{**group, "nodeSelector": spec["nodeSelector"], "tolerations": spec["tolerations"]}])

    def _object(self, name: str, kind: str, spec: Obj) -> Obj:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": _API_VERSION[self.dialect], "kind": kind, "metadata": metadata, "spec": spec}

    def _job(self, name: str, size: int) -> Obj:
        template = {"spec": pod_spec(self.nodes or self.namespace)}
        task = {"name": "worker", "replicas": size, "minAvailable": size, "template": template}
        spec = {"schedulerName": self.scheduler, "minAvailable": size, "tasks": [task]}
        return self._object(name, "Job", spec)

    def _pod(self, name: str, metadata: Obj, spec: Obj) -> Obj:
        spec = {**pod_spec(self.nodes or self.namespace), "schedulerName": self.scheduler, **spec}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, **metadata},
            "spec": spec,
        }


def gang_of(pod_name: str) -> str:
    return pod_name.partition("-worker-")[0]


def node(name: str, label: str) -> Obj:
    amounts = {"cpu": str(NODE_CPU), "memory": "256Gi", "pods": str(PODS_A_NODE)}
    metadata = {"name": name, "labels": {"enbloc.dev/bench": label, "kubernetes.io/hostname": name}}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [_READY]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod_spec(label: str) -> Obj:
    """For nodes of this label."""
    requests = {"cpu": POD_CPU, "memory": POD_MEMORY}
    return {
        "nodeSelector": {"enbloc.dev/bench": label},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 0,
    }


def bare_pod(name: str, namespace: str, label: str) -> Obj:
    spec = {**pod_spec(label), "schedulerName": "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
