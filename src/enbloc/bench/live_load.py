"""The load of `bench live`: nodes, and gangs as users of each dialect write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from enbloc.api.meta import Obj

NODE_CPU: Final = 64
PODS_A_NODE: Final = 250
POD_CPU: Final = "100m"
DIALECTS: Final = ("volcano", "native", "koordinator", "job")
_READY: Final = {"type": "Ready", "status": "True", "reason": "Bench", "message": ""}
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/"

KIND_OF: Final = {
    "volcano": "PodGroup.scheduling.volcano.sh",
    "native": "PodGroup.scheduling.k8s.io",
    "job": "Job.batch.volcano.sh",
}
"""The kind that declares a gang, where one does; the cluster must serve it."""
_API_VERSION: Final = {
    "volcano": "scheduling.volcano.sh/v1beta1",
    "native": "scheduling.k8s.io/v1alpha2",
    "job": "batch.volcano.sh/v1alpha1",
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
        group = None
        notes: dict[str, str] = {}
        if self.dialect == "volcano":
            group = self._object(name, "PodGroup", {"minMember": size})
            notes = {"scheduling.k8s.io/group-name": name}
        elif self.dialect == "native":
            group = self._object(name, "PodGroup", {"schedulingPolicy": {"gang": {"minCount": size}}})
        else:
            notes = {f"{_KOORDINATOR}name": name, f"{_KOORDINATOR}min-available": str(size)}
        pods = (self._pod(f"{name}-worker-{index}", name, notes) for index in range(size))
        return Gang(name, size, group, tuple(pods))

    def _object(self, name: str, kind: str, spec: Obj) -> Obj:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": _API_VERSION[self.dialect], "kind": kind, "metadata": metadata, "spec": spec}

    def _job(self, name: str, size: int) -> Obj:
        template = {"spec": pod_spec(self.namespace)}
        task = {"name": "worker", "replicas": size, "minAvailable": size, "template": template}
        spec = {"schedulerName": self.scheduler, "minAvailable": size, "tasks": [task]}
        return self._object(name, "Job", spec)

    def _pod(self, name: str, gang: str, notes: dict[str, str]) -> Obj:
        spec: Obj = {**pod_spec(self.namespace), "schedulerName": self.scheduler}
        if self.dialect == "native":
            spec["schedulingGroup"] = {"podGroupName": gang}
        metadata = {"name": name, "namespace": self.namespace, "annotations": notes}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def gang_of(pod_name: str) -> str:
    return pod_name.partition("-worker-")[0]


def node(name: str, namespace: str) -> Obj:
    amounts = {"cpu": str(NODE_CPU), "memory": "256Gi", "pods": str(PODS_A_NODE)}
    metadata = {"name": name, "labels": {"enbloc.dev/bench": namespace, "kubernetes.io/hostname": name}}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [_READY]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod_spec(namespace: str) -> Obj:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": POD_CPU, "memory": "64Mi"}}}
    return {
        "nodeSelector": {"enbloc.dev/bench": namespace},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
    }


def bare_pod(name: str, namespace: str) -> Obj:
    spec = {**pod_spec(namespace), "schedulerName": "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
