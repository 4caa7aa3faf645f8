"""Manifests, built in a line each: nodes, pods, PodGroups and jobs of every dialect, and the steps of a scenario.

One builder for the whole suite. A keyword that is named like an annotation of the simulation (`at`, `delete_at`,
`run_time`, `exit_code`, `start_delay`, `stop_delay`) becomes that annotation; keywords that are not named here are
fields of the object's `spec` and are spelled as in the API. Nothing is defaulted beyond what a reader expects: pods
request 1 cpu and no memory, and are for the scheduler `enbloc`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]
Quantity = int | str | None

SIM = "sim.enbloc.dev/"
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
BATCH = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
BUS = "bus.volcano.sh/v1alpha1"
ARBITRATOR = "arbitrator.incubator.k8s.io/v1alpha1"
SIGS = "scheduling.sigs.k8s.io/v1alpha1"
PLUGINS = "scheduling.x-k8s.io/v1alpha1"
SIGS_LABEL = "pod-group.scheduling.sigs.k8s.io"
PLUGINS_LABEL = "scheduling.x-k8s.io/pod-group"
KOORDINATOR = "gang.scheduling.koordinator.sh/"
NON_STRICT = "NonStrict"

_CLUSTER_WIDE = {"Node", "Queue", "PersistentVolume", "PriorityClass", "Namespace"}
_API_VERSIONS = {
    "Job": BATCH,
    "PodGroup": SCHEDULING,
    "Queue": SCHEDULING,
    "QueueJob": ARBITRATOR,
    "SchedulingSpec": ARBITRATOR,
}


def metadata(
    name: str,
    namespace: str | None = "default",
    annotations: Mapping[str, str | None] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Obj:
    """Annotations without a value are left out."""
    found: Obj = {"name": name}
    if namespace is not None:
        found["namespace"] = namespace
    given = {key: text for key, text in (annotations or {}).items() if text is not None}
    if given:
        found["annotations"] = given
    if labels:
        found["labels"] = dict(labels)
    return found


def _arrival(at: str | None, delete_at: str | None) -> dict[str, str | None]:
    return {SIM + "at": at or None, SIM + "delete-at": delete_at or None}


def _script(
    run_time: str | None, exit_code: str | None, start_delay: str | None, stop_delay: str | None
) -> dict[str, str | None]:
    return {
        SIM + "run-time": run_time or None,
        SIM + "exit-code": exit_code or None,
        SIM + "start-delay": start_delay or None,
        SIM + "stop-delay": stop_delay or None,
    }


def _given(**fields: Any) -> Obj:
    return {key: value for key, value in fields.items() if value is not None}


# ---- nodes and pods


def node(
    name: str,
    cpu: int | str = 4,
    memory: str = "16Gi",
    pods: int = 110,
    *,
    at: str | None = None,
    delete_at: str | None = None,
    labels: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Obj:
    """`extra`: further resources; `spec`: taints, unschedulable."""
    allocatable = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    allocatable |= {key: str(amount) for key, amount in (extra or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, None, _arrival(at, delete_at), {"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def requests(cpu: Quantity = None, memory: str | None = None, extra: Mapping[str, Any] | None = None) -> Obj:
    asked = {"cpu": cpu, "memory": memory, **(extra or {})}
    return {key: str(amount) for key, amount in asked.items() if amount is not None}


def pod_spec(
    cpu: Quantity = 1,
    memory: str | None = None,
    *,
    extra: Mapping[str, Any] | None = None,
    priority: str | int | None = None,
    **spec: Any,
) -> Obj:
    """One container with these requests; `priority`: a class, or a value; `spec` is added, and wins."""
    misspelt = [key for key in spec if "_" in key]
    assert not misspelt, f"fields of a pod's spec are spelled as in the API: {misspelt}"
    container: Obj = {"name": "main", "image": "busybox"}
    asked = requests(cpu, memory, extra)
    if asked:
        container["resources"] = {"requests": asked}
    found: Obj = {"restartPolicy": "Never", "containers": [container], **spec}
    if priority:
        found["priority" if isinstance(priority, int) else "priorityClassName"] = priority
    return found


def pod(
    name: str,
    cpu: Quantity = 1,
    *,
    group: str | None = None,
    role: str | None = None,
    queue: str | None = None,
    memory: str | None = None,
    extra: Mapping[str, Any] | None = None,
    namespace: str | None = "default",
    scheduler: str = "enbloc",
    priority: str | int | None = None,
    at: str | None = None,
    delete_at: str | None = None,
    run_time: str | None = None,
    exit_code: str | None = None,
    start_delay: str | None = None,
    stop_delay: str | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A pod; `group` and `role` make it a member of a Volcano PodGroup, `queue` is for a pod without one."""
    given = {
        **_arrival(at, delete_at),
        **_script(run_time, exit_code, start_delay, stop_delay),
        GROUP_NAME: group or None,
        TASK_SPEC: role or None,
        QUEUE_NAME: queue or None,
        **(annotations or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, namespace, given, labels),
        "spec": {"schedulerName": scheduler, **pod_spec(cpu, memory, extra=extra, priority=priority, **spec)},
    }


def pods(count: int, prefix: str, cpu: Quantity = 1, **fields: Any) -> list[Obj]:
    """Pods `prefix0`, `prefix1`, …"""
    return [pod(f"{prefix}{index}", cpu, **fields) for index in range(count)]


def priority_class(name: str, value: int, *, default: bool = False) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


HIGH_LOW = [priority_class("high", 1000), priority_class("low", 10)]


def budget(
    labels: Mapping[str, str], name: str = "b", *, at: str | None = None, delete_at: str | None = None, **spec: Any
) -> Obj:
    """A PodDisruptionBudget of the pods with these labels; `spec`: minAvailable, maxUnavailable."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, annotations=_arrival(at, delete_at)),
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }


def runtime_class(name: str, overhead: Mapping[str, str], **scheduling: Any) -> Obj:
    made: Obj = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
    return {**made, "overhead": {"podFixed": dict(overhead)}, "scheduling": scheduling}


def resource_quota(pods: int, at: str | None = None) -> Obj:
    """A quota `q` on the number of pods in the default namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata("q", annotations={SIM + "at": at}),
        "spec": {"hard": {"pods": str(pods)}},
    }


# ---- Volcano


def role(
    name: str,
    replicas: int | None,
    minimum: int | None = None,
    *,
    cpu: Quantity = 1,
    memory: str | None = None,
    extra: Mapping[str, Any] | None = None,
    priority: str | None = None,
    run_time: str | None = None,
    exit_code: str | None = None,
    start_delay: str | None = None,
    stop_delay: str | None = None,
    annotations: Mapping[str, str] | None = None,
    policies: list[Obj] | None = None,
    depends_on: Obj | None = None,
    **spec: Any,
) -> Obj:
    """A role (a task) of a job; `spec` is added to its pods' spec."""
    script = metadata("", None, _script(run_time, exit_code, start_delay, stop_delay) | dict(annotations or {})).get(
        "annotations", {}
    )
    fields = _given(replicas=replicas, minAvailable=minimum, policies=policies, dependsOn=depends_on)
    template_spec = pod_spec(cpu, memory, extra=extra, priority=priority, **spec)
    return {"name": name, **fields, "template": {"metadata": {"annotations": script}, "spec": template_spec}}


def job(
    name: str,
    *roles: Obj,
    at: str | None = None,
    delete_at: str | None = None,
    annotations: Mapping[str, str] | None = None,
    minimum: int | None = None,
    priority: str | None = None,
    queue: str | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Obj:
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": metadata(name, namespace, _arrival(at, delete_at) | dict(annotations or {})),
        "spec": {
            "schedulerName": "enbloc",
            "tasks": list(roles),
            **spec,
            **_given(minAvailable=minimum, priorityClassName=priority, queue=queue or None),
        },
    }


def one_pod_job(name: str, cpu: int = 1, *, run_time: str | None = None, **fields: Any) -> Obj:
    return job(name, role("w", 1, cpu=cpu, run_time=run_time), **fields)


def podgroup(
    name: str,
    minimum: int,
    *,
    roles: Mapping[str, int] | None = None,
    resources: Mapping[str, Any] | None = None,
    at: str | None = None,
    delete_at: str | None = None,
    priority: str | None = None,
    queue: str | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Obj:
    """Volcano's PodGroup; `roles`: its minTaskMember, `resources`: its minResources."""
    fields = _given(minTaskMember=roles, minResources=resources, priorityClassName=priority, queue=queue or None)
    return {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": metadata(name, namespace, _arrival(at, delete_at)),
        "spec": {"minMember": minimum, **fields, **spec},
    }


def gang(name: str, count: int, minimum: int | None = None, cpu: Quantity = 1, **fields: Any) -> list[Obj]:
    """A PodGroup `name` and its pods `name-0`, `name-1`, …; `at` and `namespace` count for both."""
    shared = {key: fields[key] for key in ("at", "namespace") if key in fields}
    of_group: Obj = {key: fields.pop(key) for key in ("queue", "resources") if key in fields}
    if "group_priority" in fields:
        of_group["priority"] = fields.pop("group_priority")
    members = [pod(f"{name}-{index}", cpu, group=name, **fields) for index in range(count)]
    return [podgroup(name, count if minimum is None else minimum, **shared, **of_group), *members]


def queue(
    name: str,
    weight: int = 1,
    *,
    at: str | None = None,
    delete_at: str | None = None,
    guarantee: Mapping[str, str] | None = None,
    state: str | None = None,
    **spec: Any,
) -> Obj:
    """`guarantee`: its resources."""
    found: Obj = {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": metadata(name, None, _arrival(at, delete_at)),
        "spec": {"weight": weight, **spec},
    }
    if guarantee is not None:
        found["spec"]["guarantee"] = {"resource": dict(guarantee)}
    if state:
        found["status"] = {"state": state}
    return found


def policy(action: str, *events: str, **fields: Any) -> Obj:
    """A job's policy: `policy("AbortJob", "PodFailed")`; `exitCode=`, `timeout=` as it needs."""
    found: Obj = {"action": action, **fields}
    if events:
        found |= {"event": events[0]} if len(events) == 1 else {"events": list(events)}
    return found


def command(name: str, action: str, at: str, target: str = "j", **fields: Any) -> Obj:
    """Volcano's Command for a job."""
    return {
        "apiVersion": BUS,
        "kind": "Command",
        "metadata": metadata(name, annotations={SIM + "at": at}),
        "action": action,
        "target": {"apiVersion": BATCH, "kind": "Job", "name": target, **fields},
    }


# ---- Koordinator, scheduler-plugins, Kubernetes

_KOORDINATOR_KEYS = {
    "mode": "mode",
    "groups": "groups",
    "wait": "waiting-time",
    "total": "total-number",
    "policy": "match-policy",
}


def koordinator_annotations(gang: str | None = None, minimum: int | str | None = None, **fields: Any) -> dict[str, str]:
    """`mode`, `groups`, `wait`, `total`, `policy`; what is no text is written as JSON."""
    found = {KOORDINATOR + "name": gang, KOORDINATOR + "min-available": minimum}
    found |= {KOORDINATOR + _KOORDINATOR_KEYS[key]: value for key, value in fields.items()}
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items() if value is not None
    }


def _split_koordinator(fields: dict[str, Any]) -> tuple[Obj, Obj]:
    of_gang = {key: value for key, value in fields.items() if key in _KOORDINATOR_KEYS}
    return of_gang, {key: value for key, value in fields.items() if key not in _KOORDINATOR_KEYS}


def koordinator_gang(
    name: str, count: int, minimum: int | str | None = None, cpu: Quantity = 1, *, first: int = 0, **fields: Any
) -> list[Obj]:
    """Pods `name-0`, `name-1`, … that are a gang by Koordinator's annotations; `first`: the first index."""
    of_gang, of_pods = _split_koordinator(fields)
    given = koordinator_annotations(name, count if minimum is None else minimum, **of_gang)
    return [pod(f"{name}-{index}", cpu, annotations=given, **of_pods) for index in range(first, first + count)]


def sigs_podgroup(
    name: str,
    minimum: int,
    *,
    api: str = SIGS,
    at: str | None = None,
    delete_at: str | None = None,
    **fields: Any,
) -> Obj:
    """A PodGroup of Koordinator's (`SIGS`) or scheduler-plugins' (`PLUGINS`); `mode`, `groups`, … are annotations."""
    of_gang, spec = _split_koordinator(fields)
    found = metadata(name, annotations=koordinator_annotations(**of_gang) | _arrival(at, delete_at))
    return {"apiVersion": api, "kind": "PodGroup", "metadata": found, "spec": {"minMember": minimum, **spec}}


def labelled_pods(name: str, count: int, label: str = SIGS_LABEL, cpu: Quantity = 1, **fields: Any) -> list[Obj]:
    """Pods that name their PodGroup by label."""
    return [pod(f"{name}-{index}", cpu, labels={label: name}, **fields) for index in range(count)]


def native_podgroup(name: str, policy: Obj, version: str = "v1beta1", **spec: Any) -> Obj:
    """Kubernetes' own PodGroup."""
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": metadata(name),
        "spec": {"schedulingPolicy": policy, **spec},
    }


def native_pods(name: str, count: int, **fields: Any) -> list[Obj]:
    """Pods of a PodGroup of Kubernetes' own."""
    return [pod(f"{name}-{index}", schedulingGroup={"podGroupName": name}, **fields) for index in range(count)]


def native_workload(name: str, groups: Mapping[str, Obj], at: str | None = None) -> Obj:
    """Kubernetes' Workload of v1alpha1; `groups`: the policy of each pod group."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": metadata(name, annotations=_arrival(at, None)),
        "spec": {"podGroups": [{"name": group, "policy": policy} for group, policy in groups.items()]},
    }


def workload_pods(workload: str, group: str, count: int, replica: str | None = None, **fields: Any) -> list[Obj]:
    """Pods of a pod group of a Workload, or of one replica of it."""
    named = _given(name=workload, podGroup=group, podGroupReplicaKey=replica)
    prefix = f"{group}{replica or ''}"
    return [pod(f"{prefix}-{index}", workloadRef=named, **fields) for index in range(count)]


# ---- KAI and YuniKorn


def kai_podgroup(
    name: str, minimum: int | None, subgroups: Mapping[str, int] | None = None, *, at: str | None = None, **spec: Any
) -> Obj:
    """KAI's PodGroup; `subgroups`: the minimum of each."""
    listed = [{"name": one, "minMember": n} for one, n in (subgroups or {}).items()]
    fields = _given(minMember=minimum, subGroups=listed or None)
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": metadata(name, annotations=_arrival(at, None)),
        "spec": {**fields, **spec},
    }


def kai_pods(name: str, count: int, *, subgroup: str | None = None, **fields: Any) -> list[Obj]:
    """Pods of KAI's PodGroup `name`."""
    prefix = f"{name}-{subgroup}" if subgroup else name
    labels = {"kai.scheduler/subgroup-name": subgroup} if subgroup else {}
    annotations = {"pod-group-name": name}
    return [pod(f"{prefix}-{n}", annotations=annotations, labels=labels, **fields) for n in range(count)]


def task_groups(minima: Mapping[str, int], cpu: str = "1", **fields: Any) -> str:
    """The value of YuniKorn's annotation; `fields` are added to each task group."""
    listed = [{"name": name, "minMember": n, "minResource": {"cpu": cpu}, **fields} for name, n in minima.items()]
    return json.dumps(listed)


def yunikorn_pods(app: str, minima: Mapping[str, int], *, at: str | None = None, **counts: int) -> list[Obj]:
    """Pods `APP-GROUP-0`, … of a YuniKorn application, so many of each task group; the first declares the minima."""
    found: list[Obj] = []
    for group, count in counts.items():
        for n in range(count):
            annotations = {"yunikorn.apache.org/task-group-name": group}
            if not found and minima:
                annotations["yunikorn.apache.org/task-groups"] = task_groups(minima)
            labels = {"applicationId": app}
            found.append(pod(f"{app}-{group}-{n}", annotations=annotations, labels=labels, at=at))
    return found


# ---- kube-arbitrator

CRDJOB_DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crdjobs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "CRDJob", "plural": "crdjobs", "singular": "crdjob"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}
"""A kind that Enbloc knows nothing of, whose controller owns pods and SchedulingSpecs."""


def crdjob(name: str = "c", uid: str = "u-1", delete_at: str | None = None) -> Obj:
    found = metadata(name, annotations=_arrival(None, delete_at)) | {"uid": uid}
    return {"apiVersion": "example.com/v1", "kind": "CRDJob", "metadata": found, "spec": {}}


def crdjob_owner(name: str = "c", uid: str = "u-1", kind: str = "CRDJob", api_version: str = "example.com/v1") -> Obj:
    """The reference to a controlling owner."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def owned(*objects: Obj, by: Mapping[str, Any] | None = None) -> list[Obj]:
    """The objects, owned by a controller (the CRDJob `c` unless `by` says otherwise)."""
    references = [dict(by or crdjob_owner())]
    return [one | {"metadata": one["metadata"] | {"ownerReferences": references}} for one in objects]


def scheduling_spec(
    name: str = "c",
    minimum: int | None = None,
    *,
    by: Mapping[str, Any] | None = None,
    at: str | None = None,
    **spec: Any,
) -> Obj:
    """Owned by the CRDJob `c`, unless `by` says otherwise; an empty `by` means no owner."""
    found = metadata(name, annotations={SIM + "at": at})
    if by is None or by:
        found["ownerReferences"] = [dict(by or crdjob_owner())]
    spec |= _given(minAvailable=minimum)
    return {"apiVersion": ARBITRATOR, "kind": "SchedulingSpec", "metadata": found, "spec": spec}


def queue_job(
    name: str,
    *roles: Obj,
    minimum: int | None = None,
    at: str | None = None,
    delete_at: str | None = None,
    annotations: Mapping[str, str] | None = None,
    **sched_spec: Any,
) -> Obj:
    return {
        "apiVersion": ARBITRATOR,
        "kind": "QueueJob",
        "metadata": metadata(name, annotations=_arrival(at, delete_at) | dict(annotations or {})),
        "spec": {
            "schedSpec": sched_spec | _given(minAvailable=minimum),
            "schedulerName": "enbloc",
            "taskSpecs": list(roles),
        },
    }


# ---- steps of a scenario


def step(at: str, do: str, kind: str = "", name: str = "", **fields: Any) -> Obj:
    """`step("5s", "delete", "Pod", "p")`; `patch=`, `object=`, `exitCode=` as the verb needs."""
    found: Obj = {"apiVersion": SIM + "v1", "kind": "Step", "at": at, "do": do, **fields}
    if kind:
        target = {"apiVersion": _API_VERSIONS.get(kind, "v1"), "kind": kind, "name": name}
        found["target"] = target if kind in _CLUSTER_WIDE else {**target, "namespace": "default"}
    return found


def patch(at: str, kind: str, name: str, **body: Any) -> Obj:
    return step(at, "patch", kind, name, patch=body)


def restart(at: str) -> Obj:
    return step(at, "restart-scheduler")
