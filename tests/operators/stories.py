"""For each operator: a manifest of its own project, what gangs it makes, and how the operator means a failed pod."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from e2e.api import Json
from operators import programs
from operators.world import World, decision, name, phase, uids

SCHEDULER = "enbloc"


class Story(NamedTuple):
    name: str
    needs: tuple[str, ...]
    """The operators that run, the one that the sample is for first."""
    sample: str
    """Where the sample is in the archive."""
    objects: Callable[[], list[Json]]
    namespace: str
    selector: str
    pods: int
    gang: int
    """Pods of each gang; `pods` is a multiple of it."""
    says: str
    """The dialect that the operator speaks, for the table."""
    fails: Callable[[World, Story, list[Json]], str]
    """Fails a pod and checks what the operator does; returns that in words."""
    gone: tuple[str, ...]
    """Kinds of which nothing is left in the namespace after deletion."""
    local: bool = True
    """Whether it is also walked on `enbloc up`."""
    renamed: bool = False
    """Whether the sample must name our scheduler; else the operator names Volcano's, which is ours by config."""
    before: Callable[[], list[Json]] = list
    """Objects that an administrator has made before."""


def documents(path: Path) -> list[Json]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def _sample(operator: str, path: str) -> Callable[[], list[Json]]:
    return lambda: documents(programs.archive(operator) / path)


def with_scheduler(objects: list[Json]) -> list[Json]:
    """The same with our scheduler's name in every pod template: the one change to a sample."""
    for one in objects:
        _name_scheduler(one)
    return objects


def _name_scheduler(value: Any) -> None:
    if isinstance(value, list):
        for one in value:
            _name_scheduler(one)
    elif isinstance(value, dict):
        for one in value.values():
            _name_scheduler(one)
        if isinstance(value.get("containers"), list):
            value["schedulerName"] = SCHEDULER


# ---- what the operators do about a failed pod


def _kuberay_replaces_it(world: World, story: Story, pods: list[Json]) -> str:
    worker = next(one for one in pods if one["metadata"]["labels"]["ray.io/node-type"] == "worker")
    path = f"/api/v1/namespaces/{story.namespace}/pods/{name(worker)}"
    world.plane.api.delete(path)
    _wait_replaced(world, story, [worker], len(pods))
    return "a lost worker is replaced alone, and scheduled by itself (G7)"


def _restarted_in_place(world: World, story: Story, pods: list[Json]) -> str:
    pod = pods[-1]
    world.fail(pod)

    def restarted(found: list[Json]) -> bool:
        same = next(one for one in found if uids([one]) == uids([pod]))
        statuses = same.get("status", {}).get("containerStatuses") or [{}]
        return bool(statuses[0].get("restartCount")) and len(found) == story.pods

    world.wait_pods(story.namespace, story.selector, restarted, "the container is restarted on its node")
    return "restartPolicy OnFailure: the container is restarted where it is, no pod is replaced"


def _launcher_is_restarted_in_place(world: World, story: Story, pods: list[Json]) -> str:
    role = "training.kubeflow.org/job-role"
    launcher = next(one for one in pods if one["metadata"]["labels"][role] == "launcher")
    _restarted_in_place(world, story, [launcher])
    return "the launcher's restartPolicy is OnFailure by default: it is restarted where it is, the workers stay"


def _jobset_starts_over(world: World, story: Story, pods: list[Json]) -> str:
    world.fail(pods[0])
    found = _wait_replaced(world, story, pods, story.pods)
    _assert_one_decision(found)
    status = world.get("jobset", name(story.objects()[-1]), story.namespace)["status"]
    assert status["restarts"] == 1, status
    return "the whole JobSet is restarted, and starts as a gang again"


def _group_is_recreated(world: World, story: Story, pods: list[Json]) -> str:
    label = "leaderworkerset.sigs.k8s.io/group-index"
    group = [one for one in pods if one["metadata"]["labels"][label] == "1"]
    others = [one for one in pods if one["metadata"]["labels"][label] != "1"]
    world.fail(group[-1])
    found = _wait_replaced(world, story, group, story.pods)
    assert uids(others) <= uids(found), "pods of other groups were replaced"
    _assert_one_decision([one for one in found if uids([one]) - uids(others)])
    return "RecreateGroupOnPodRestart: its group alone is recreated, and starts as a gang again"


def _assert_one_decision(pods: list[Json]) -> None:
    """They started together again."""
    decisions = Counter(decision(one) for one in pods)
    assert set(decisions.values()) == {len(pods)}, f"not one decision: {decisions}"
    assert "" not in decisions


def _wait_replaced(world: World, story: Story, lost: list[Json], count: int) -> list[Json]:
    return world.wait_pods(
        story.namespace,
        story.selector,
        lambda found: (
            len(found) == count and not uids(lost) & uids(found) and all(phase(one) == "Running" for one in found)
        ),
        "others run in place of the lost pods",
    )


# ---- samples that are not files of their own


def _jobset_of_proposal() -> list[Json]:
    """JobSet's sample is an empty frame; its design documents have whole ones, in the archive too."""
    text = (programs.archive("jobset") / "keps/262-ConfigurableFailurePolicy/README.md").read_text()
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        try:
            found = yaml.safe_load(block)
        except yaml.YAMLError:
            continue
        if isinstance(found, dict) and found.get("metadata", {}).get("name") == "restart-jobset-example":
            return [found]
    raise AssertionError("the design document no longer has this example")


def _trainjob() -> list[Json]:
    root = programs.archive("trainer")
    runtime = documents(root / "manifests/base/runtimes/torch_distributed.yaml")
    return [*runtime, *documents(root / "examples/yaml/01-multi-node.yaml")]


def _kueue_queues() -> list[Json]:
    """What the sample expects an administrator to have made: its queue, with room for the job."""
    group = "kueue.x-k8s.io/v1beta2"
    quota = [{"name": "cpu", "nominalQuota": "100"}, {"name": "memory", "nominalQuota": "1000Gi"}]
    flavors = [{"name": "default-flavor", "resources": quota}]
    covered = [{"coveredResources": ["cpu", "memory"], "flavors": flavors}]
    return [
        {"apiVersion": group, "kind": "ResourceFlavor", "metadata": {"name": "default-flavor"}},
        {
            "apiVersion": group,
            "kind": "ClusterQueue",
            "metadata": {"name": "training"},
            "spec": {"namespaceSelector": {}, "resourceGroups": covered},
        },
        {
            "apiVersion": group,
            "kind": "LocalQueue",
            "metadata": {"name": "training-queue"},
            "spec": {"clusterQueue": "training"},
        },
    ]


def _trainjob_under_kueue() -> list[Json]:
    root = programs.archive("trainer")
    runtime = documents(root / "manifests/base/runtimes/torch_distributed.yaml")
    return [*runtime, *documents(root / "examples/yaml/03-kueue-integration.yaml")]


STORIES = (
    Story(
        "kuberay",
        ("kuberay",),
        "config/samples/ray-cluster.volcano-scheduler-queue.yaml",
        _sample("kuberay", "config/samples/ray-cluster.volcano-scheduler-queue.yaml"),
        "default",
        "ray.io/cluster=test-cluster-0",
        3,
        3,
        "Volcano's PodGroup",
        _kuberay_replaces_it,
        ("pods", "podgroups.scheduling.volcano.sh", "raycluster"),
    ),
    Story(
        "training-operator",
        ("training-operator",),
        "examples/pytorch/simple.yaml",
        _sample("training-operator", "examples/pytorch/simple.yaml"),
        "kubeflow",
        "training.kubeflow.org/job-name=pytorch-simple",
        2,
        2,
        "Volcano's PodGroup, before any pod",
        _restarted_in_place,
        ("pods", "podgroups.scheduling.volcano.sh", "pytorchjob"),
    ),
    Story(
        "mpi-operator",
        ("mpi-operator",),
        "examples/v2beta1/pi/pi.yaml",
        _sample("mpi-operator", "examples/v2beta1/pi/pi.yaml"),
        "default",
        "training.kubeflow.org/job-name=pi",
        3,
        3,
        "Volcano's PodGroup",
        _launcher_is_restarted_in_place,
        ("pods", "podgroups.scheduling.volcano.sh", "jobs.batch", "mpijob"),
    ),
    Story(
        "jobset",
        ("jobset",),
        "keps/262-ConfigurableFailurePolicy/README.md (its sample is an empty frame)",
        _jobset_of_proposal,
        "default",
        "jobset.sigs.k8s.io/jobset-name=restart-jobset-example",
        4,
        4,
        "nothing: grouping by owner",
        _jobset_starts_over,
        ("pods", "jobs.batch", "jobset"),
        renamed=True,
    ),
    Story(
        "lws",
        ("lws",),
        "config/samples/leaderworkerset_v1_leaderworkerset.yaml",
        _sample("lws", "config/samples/leaderworkerset_v1_leaderworkerset.yaml"),
        "default",
        "leaderworkerset.sigs.k8s.io/name=leaderworkerset-sample",
        12,
        4,
        "Volcano's PodGroup, one a replica",
        _group_is_recreated,
        ("pods", "podgroups.scheduling.volcano.sh", "statefulset", "leaderworkerset"),
        renamed=True,
    ),
    Story(
        "trainer",
        ("trainer", "jobset"),
        "examples/yaml/01-multi-node.yaml with manifests/base/runtimes/torch_distributed.yaml",
        _trainjob,
        "default",
        "jobset.sigs.k8s.io/jobset-name=multi-node-example",
        3,
        3,
        "nothing: grouping by owner (its JobSet)",
        _restarted_in_place,
        ("pods", "jobs.batch", "jobset", "trainjob"),
        renamed=True,
    ),
    Story(
        "trainer-volcano",
        ("trainer", "jobset"),
        "examples/yaml/04-volcano-integration.yaml",
        _sample("trainer", "examples/yaml/04-volcano-integration.yaml"),
        "default",
        "jobset.sigs.k8s.io/jobset-name=volcano-example",
        4,
        4,
        "Volcano's PodGroup",
        _restarted_in_place,
        ("pods", "jobs.batch", "jobset", "trainjob", "podgroups.scheduling.volcano.sh"),
        renamed=True,
    ),
    Story(
        "kuberay-by-owner",
        ("kuberay-alone",),
        "config/samples/ray-cluster.sample.yaml",
        _sample("kuberay", "config/samples/ray-cluster.sample.yaml"),
        "default",
        "ray.io/cluster=raycluster-kuberay",
        2,
        2,
        "nothing: grouping by owner",
        _kuberay_replaces_it,
        ("pods", "raycluster"),
        renamed=True,
    ),
    Story(
        "training-operator-by-owner",
        ("training-operator-alone",),
        "examples/pytorch/simple.yaml",
        _sample("training-operator", "examples/pytorch/simple.yaml"),
        "kubeflow",
        "training.kubeflow.org/job-name=pytorch-simple",
        2,
        2,
        "nothing: grouping by owner",
        _restarted_in_place,
        ("pods", "pytorchjob"),
        renamed=True,
    ),
    Story(
        "mpi-operator-by-owner",
        ("mpi-operator-alone",),
        "examples/v2beta1/pi/pi.yaml",
        _sample("mpi-operator", "examples/v2beta1/pi/pi.yaml"),
        "default",
        "training.kubeflow.org/job-name=pi",
        3,
        3,
        "nothing: grouping by owner",
        _launcher_is_restarted_in_place,
        ("pods", "jobs.batch", "mpijob"),
        renamed=True,
    ),
    Story(
        "lws-by-owner",
        ("lws-alone",),
        "config/samples/leaderworkerset_v1_leaderworkerset.yaml",
        _sample("lws", "config/samples/leaderworkerset_v1_leaderworkerset.yaml"),
        "default",
        "leaderworkerset.sigs.k8s.io/name=leaderworkerset-sample",
        12,
        4,
        "nothing: grouping by owner",
        _group_is_recreated,
        ("pods", "statefulset", "leaderworkerset"),
        renamed=True,
    ),
    Story(
        "kueue",
        ("kueue", "trainer", "jobset"),
        "Trainer's examples/yaml/03-kueue-integration.yaml",
        _trainjob_under_kueue,
        "default",
        "jobset.sigs.k8s.io/jobset-name=kueue-example",
        3,
        3,
        "suspended until Kueue admits it, then grouping by owner",
        _restarted_in_place,
        ("pods", "jobs.batch", "jobset", "trainjob", "workloads.kueue.x-k8s.io"),
        local=False,  # docs/operators.md says why
        renamed=True,
        before=_kueue_queues,
    ),
)
