"""Loads whose cost in a simulation must grow no faster than they do: one function per case, of its size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj

_VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
_NATIVE: Final = "scheduling.k8s.io/"
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/"
_SIM: Final = "sim.enbloc.dev/"
_EASY: Final[Obj] = {"actions": ["enqueue", "allocate", {"name": "backfill", "arguments": {"mode": "easy"}}]}


class Case(NamedTuple):
    """What grows, and by how much."""

    objects: Callable[[int], Iterator[Obj]]
    sizes: Sequence[int]
    config: Obj | None = None
    flat: bool = False
    """The growing part has nothing to do: its cost should not count at all."""


# ---- objects


def _nodes(count: int, cpu: int = 16, **labels: str) -> Iterator[Obj]:
    for number in range(count):
        name = f"node-{number:04d}"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "status": {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}},
        }


def _pod_spec(cpu: str, **spec: Any) -> Obj:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {"restartPolicy": "Never", "containers": [container], **spec}


def _role(name: str, replicas: int, cpu: str, run_time: str = "60s", **spec: Any) -> Obj:
    metadata = {"annotations": {_SIM + "run-time": run_time}, "labels": {"app": name}}
    return {"name": name, "replicas": replicas, "template": {"metadata": metadata, "spec": _pod_spec(cpu, **spec)}}


def _job(name: str, *roles: Obj, at_s: int = 0, **spec: Any) -> Obj:
    notes = {_SIM + "at": f"{at_s}s"} if at_s else {}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"schedulerName": "volcano", "tasks": list(roles), **spec},
    }


def _pod(name: str, cpu: str, notes: Mapping[str, str] | None = None, run_time: str = "60s", **spec: Any) -> Obj:
    annotations = {_SIM + "run-time": run_time, **(notes or {})}
    metadata = {"name": name, "annotations": annotations}
    body = {"schedulerName": "enbloc", **_pod_spec(cpu, **spec)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def _queue(name: str, **spec: Any) -> Obj:
    return {"apiVersion": _VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}


def _priority(name: str, value: int) -> Obj:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _group(prefix: str, number: int, gangs: int, size: int, mode: str) -> Iterator[Obj]:
    """Gangs of Koordinator annotations that start together."""
    names = [f"{prefix}-{number:05d}-{each}" for each in range(gangs)]
    groups = "[" + ",".join(f'"default/{name}"' for name in names) + "]"
    for name in names:
        notes = {
            f"{_KOORDINATOR}name": name,
            f"{_KOORDINATOR}min-available": str(size),
            f"{_KOORDINATOR}groups": groups,
            f"{_KOORDINATOR}mode": mode,
        }
        for index in range(size):
            yield _pod(f"{name}-{index}", "2", notes)


# ---- cases


def _queues(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        yield _queue(f"q{number:05d}")
        yield _job(f"job-{number:05d}", _role("worker", 4, "2"), queue=f"q{number:05d}")


def _depends_chain(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    roles = [_role(f"role-{number:03d}", 1, "1", "10000s") for number in range(size)]
    for before, role in pairwise(roles):
        role["dependsOn"] = {"name": [before["name"]]}
    yield _job("chain", *roles)


def _depends_jobs(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        roles = [_role(f"role-{wave}", 2, "1", "100s") for wave in range(5)]
        for before, role in pairwise(roles):
            role["dependsOn"] = {"name": [before["name"]]}
        yield _job(f"job-{number:05d}", *roles)


def _mixed(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    dice = random.Random(1)
    for number in range(size):
        run_time = f"{dice.randint(30, 300)}s"
        yield _job(f"job-{number:05d}", _role("worker", dice.randint(1, 20), "4", run_time))


def _classes(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        yield _job(f"job-{number:05d}", _role("worker", 4, f"{1000 + number}m"))


def _anti_affinity(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        role = f"role-{number:05d}"
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": role}}}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield _job(f"job-{number:05d}", _role(role, 8, "2", affinity=affinity))


def _spread(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        role = f"role-{number:05d}"
        constraint = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": role}},
        }
        yield _job(f"job-{number:05d}", _role(role, 6, "2", topologySpreadConstraints=[constraint]))


def _priorities(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        yield _priority(f"p{number:05d}", number + 1)
        job = _job(f"job-{number:05d}", _role("worker", 4, "2", priorityClassName=f"p{number:05d}"))
        job["spec"]["priorityClassName"] = f"p{number:05d}"
        yield job


def _nonstrict_groups(size: int) -> Iterator[Obj]:
    yield from _nodes(5)
    for number in range(size):
        yield from _group("group", number, 2, 4, "NonStrict")


def _strict_groups(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(size):
        yield from _group("group", number, 2, 2, "Strict")


def _fifo(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    yield _queue("line", dequeueStrategy="fifo")
    dice = random.Random(1)
    for number in range(size):
        yield _job(f"job-{number:05d}", _role("worker", dice.randint(1, 8), "2"), queue="line")


def _jobs_of_four(size: int) -> Iterator[Obj]:
    yield from _nodes(100)
    for number in range(size):
        yield _job(f"job-{number:05d}", _role("worker", 4, "2"))


def _jobs_of_one(size: int) -> Iterator[Obj]:
    yield from _nodes(100)
    for number in range(size):
        yield _job(f"job-{number:05d}", _role("worker", 1, "2"))


def _bare_pods(size: int) -> Iterator[Obj]:
    yield from _nodes(100)
    for number in range(size):
        yield _pod(f"pod-{number:05d}", "2")


def _queue_jobs(size: int) -> Iterator[Obj]:
    yield from _nodes(100)
    for number in range(size):
        role = _role("worker", 2, "1")
        spec = {"schedulerName": "kar-scheduler", "schedSpec": {"minAvailable": 2}, "taskSpecs": [role]}
        yield {
            "apiVersion": "arbitrator.incubator.k8s.io/v1alpha1",
            "kind": "QueueJob",
            "metadata": {"name": f"job-{number:05d}"},
            "spec": spec,
        }


def _preempting(size: int) -> Iterator[Obj]:
    """A full cluster of low priority, and as many jobs of high priority, one after the other."""
    yield from _nodes(max(1, size // 4), 8)
    yield _priority("low", 10)
    yield _priority("high", 1000)
    for number in range(size):
        low = _role("worker", 2, "1", "100000s", priorityClassName="low")
        yield _job(f"low-{number:05d}", low, priorityClassName="low")
    for number in range(size // 2):
        high = _role("worker", 2, "1", "100000s", priorityClassName="high")
        yield _job(f"high-{number:05d}", high, at_s=10 + number, priorityClassName="high")


def _reclaiming(size: int) -> Iterator[Obj]:
    """One queue uses all of the cluster; jobs of another reclaim their half of it, one after the other."""
    yield from _nodes(max(1, size // 4), 8)
    yield _queue("rich")
    yield _queue("poor")
    for number in range(size):
        yield _job(f"rich-{number:05d}", _role("worker", 2, "1", "100000s"), queue="rich")
    for number in range(size // 2):
        yield _job(f"poor-{number:05d}", _role("worker", 2, "1", "100000s"), at_s=10 + number, queue="poor")


def _one_wide_gang(size: int) -> Iterator[Obj]:
    yield from _nodes(size)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "wide"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    yield _job("wide", _role("wide", size, "2", affinity=affinity))


def _sleeping(size: int) -> Iterator[Obj]:
    """Gangs that do not fit sleep, while others come and go."""
    yield from _nodes(20)
    for number in range(200):
        yield _job(f"small-{number:05d}", _role("worker", 2, "1"), at_s=number)
    for number in range(size):
        yield _job(f"large-{number:05d}", _role("worker", 24, "15"))


def _unfittable_jobs(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(200):
        yield _job(f"small-{number:05d}", _role("worker", 2, "1"), at_s=number)
    for number in range(size):
        yield _job(f"never-{number:05d}", _role("worker", 4, "1", nodeSelector={"no": "such"}))


def _unfittable_pods(size: int) -> Iterator[Obj]:
    yield from _nodes(20)
    for number in range(200):
        yield _job(f"small-{number:05d}", _role("worker", 2, "1"), at_s=number)
    for number in range(size):
        yield _pod(f"never-{number:05d}", "1", nodeSelector={"no": "such"})


def _many_nodes(size: int) -> Iterator[Obj]:
    yield from _nodes(size)
    for number in range(300):
        yield _job(f"job-{number:05d}", _role("worker", 4, "2"))


def _idle_queues(size: int) -> Iterator[Obj]:
    """Queues that have no gang, while those of another are served."""
    yield from _nodes(20)
    for number in range(size):
        yield _queue(f"q{number:05d}")
    yield _queue("busy")
    for number in range(200):
        yield _job(f"job-{number:05d}", _role("worker", 4, "2"), at_s=number // 4, queue="busy")


def _idle_priorities(size: int) -> Iterator[Obj]:
    """PriorityClasses that no gang has."""
    yield from _nodes(20)
    for number in range(size):
        yield _priority(f"p{number:05d}", number + 1)
    for number in range(200):
        yield _job(f"job-{number:05d}", _role("worker", 4, "2"), at_s=number // 4)


def _composite(name: str, parent: str, minimum: int) -> Obj:
    spec: Obj = {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return {"apiVersion": f"{_NATIVE}v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": name}, "spec": spec}


def _composite_chain(size: int) -> Iterator[Obj]:
    """Each is the parent of the next: far deeper than a tree may be."""
    yield from _nodes(5)
    for number in range(size):
        yield _composite(f"c{number:05d}", f"c{number - 1:05d}" if number else "", 1)


def _composite_fan(size: int) -> Iterator[Obj]:
    """PodGroups of one pod below one CompositePodGroup that needs half of them."""
    yield from _nodes(max(1, size // 100), 128)
    yield _composite("top", "", size // 2)
    for number in range(size):
        name = f"g{number:05d}"
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "top"}
        yield {"apiVersion": f"{_NATIVE}v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        yield _pod(f"pod-{number:05d}", "100m", schedulingGroup={"podGroupName": name})


def _kai_tree(size: int) -> Iterator[Obj]:
    """One PodGroup of subgroups in pairs, to a depth of ten; a pod for each leaf, of which half are needed."""
    yield from _nodes(max(1, size // 100), 128)
    names = ["", *(f"s{number:05d}" for number in range(size))]
    listed: list[Obj] = []
    for number, name in enumerate(names[1:], 1):
        above = number // 2 if number < 1024 else number % 512 + 511
        listed.append({"name": name, **({"parent": names[above]} if above else {})})
    inner = {one.get("parent") for one in listed}
    for one in listed:
        if one["name"] in inner:
            one["minSubGroup"] = 1
        else:
            labels = {"kai.scheduler/subgroup-name": one["name"]}
            pod = _pod(f"pod-{one['name']}", "100m", {"pod-group-name": "tree"})
            yield {**pod, "metadata": {**pod["metadata"], "labels": labels}}
    spec = {"subGroups": listed}
    yield {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "tree"}, "spec": spec}


def _sub_group_policies(size: int) -> Iterator[Obj]:
    yield from _nodes(max(1, size // 100), 128)
    policies = []
    for number in range(size):
        policy = {"name": f"p{number:05d}", "subGroupSize": 1, "minSubGroups": 1}
        policies.append({**policy, "labelSelector": {"matchLabels": {"part": f"p{number:05d}"}}})
        pod = _pod(f"pod-{number:05d}", "100m", {"scheduling.k8s.io/group-name": "parts"})
        yield {**pod, "metadata": {**pod["metadata"], "labels": {"part": f"p{number:05d}"}}}
    spec = {"minMember": size, "subGroupPolicy": policies}
    yield {"apiVersion": _VOLCANO, "kind": "PodGroup", "metadata": {"name": "parts"}, "spec": spec}


def _impossible_affinity(size: int) -> Iterator[Obj]:
    """Single pods, each of which must be beside a pod that does not exist."""
    yield from _nodes(20)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "none"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(size):
        yield _pod(f"pod-{number:05d}", "1", affinity=affinity)


def _beside_the_next(size: int, notes: Mapping[str, str] | None = None) -> Iterator[Obj]:
    """Pods each of which must be in the zone of the next; only the last one fits at first."""
    yield from _nodes(max(1, size // 100) + 1, zone="a")
    for number in range(size):
        label = f"a{number + 1:05d}"
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": label}}}
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spec: Obj = {"affinity": near} if number < size - 1 else {}
        pod = _pod(f"pod-{number:05d}", "100m", notes, **spec)
        yield {**pod, "metadata": {**pod["metadata"], "labels": {"app": f"a{number:05d}"}}}


def _affinity_gang(size: int) -> Iterator[Obj]:
    yield from _beside_the_next(size, {"scheduling.k8s.io/group-name": "chain"})
    yield {"apiVersion": _VOLCANO, "kind": "PodGroup", "metadata": {"name": "chain"}, "spec": {"minMember": size}}


def _long_selectors(size: int) -> Iterator[Obj]:
    """Pods whose node affinity and pod affinity list so many values."""
    yield from _nodes(20)
    for number in range(20):
        values = [f"v{number}-{value:06d}" for value in range(size)]
        one_of, none_of = ({"key": "app", "operator": operator, "values": values} for operator in ("In", "NotIn"))
        near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [one_of]}}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [none_of]}]}
        affinity = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]},
        }
        yield _pod(f"pod-{number:05d}", "1", affinity=affinity)


CASES: Final[Mapping[str, Case]] = {
    "queues": Case(_queues, (50, 100, 200)),
    "depends-chain": Case(_depends_chain, (20, 40, 80)),
    "mixed-sizes": Case(_mixed, (50, 100, 200)),
    "mixed-sizes-easy": Case(_mixed, (50, 100, 200), _EASY),
    "classes": Case(_classes, (100, 200, 400)),
    "anti-affinity": Case(_anti_affinity, (50, 100, 200)),
    "spread": Case(_spread, (50, 100, 200)),
    "priorities": Case(_priorities, (100, 200, 400)),
    "nonstrict-groups": Case(_nonstrict_groups, (50, 100, 200)),
    "strict-groups": Case(_strict_groups, (100, 200, 400)),
    "depends-jobs": Case(_depends_jobs, (50, 100, 200)),
    "fifo": Case(_fifo, (100, 200, 400)),
    "jobs-of-four": Case(_jobs_of_four, (200, 400, 800)),
    "jobs-of-one": Case(_jobs_of_one, (200, 400, 800)),
    "bare-pods": Case(_bare_pods, (500, 1000, 2000)),
    "queue-jobs": Case(_queue_jobs, (100, 200, 400)),
    "preempting": Case(_preempting, (50, 100, 200)),
    "reclaiming": Case(_reclaiming, (50, 100, 200)),
    "one-wide-gang": Case(_one_wide_gang, (100, 200, 400)),
    "sleeping": Case(_sleeping, (100, 200, 400)),
    "unfittable-jobs": Case(_unfittable_jobs, (100, 200, 400)),
    "unfittable-pods": Case(_unfittable_pods, (100, 200, 400)),
    "nodes": Case(_many_nodes, (250, 500, 1000)),
    "composite-chain": Case(_composite_chain, (250, 500, 1000)),
    "composite-fan": Case(_composite_fan, (250, 500, 1000)),
    "kai-tree": Case(_kai_tree, (500, 1000, 2000)),
    "sub-group-policies": Case(_sub_group_policies, (250, 500, 1000)),
    "impossible-affinity": Case(_impossible_affinity, (500, 1000, 2000)),
    "affinity-chain": Case(_beside_the_next, (100, 200, 400)),
    "affinity-gang": Case(_affinity_gang, (200, 400, 800)),
    "long-selectors": Case(_long_selectors, (10_000, 20_000, 40_000)),
    "idle-queues": Case(_idle_queues, (100, 200, 400), flat=True),
    "idle-priorities": Case(_idle_priorities, (100, 200, 400), flat=True),
}
