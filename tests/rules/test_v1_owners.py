"""V1: pods whose operator writes no PodGroup are grouped by owner, as the list of owner kinds says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.api.meta import Obj
from enbloc.cli.main import main
from enbloc.config import ConfigError, parse, render, where_alone
from enbloc.config.owner_kinds import shipped
from support import manifests as m
from support.simulation import simulate

MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def owner(api_version: str, kind: str, spec: Obj, *, at: str | None = None, annotations: Obj | None = None) -> Obj:
    given = {"sim.enbloc.dev/at": at, **(annotations or {})}
    metadata = {**m.metadata("x", annotations=given), "uid": "owner-1"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def pods(count: int, prefix: str = "p", *, at: str | None = None, **labels: str) -> list[Obj]:
    """Pods with labels; `__` stands for a slash, `_` for a dot."""
    found = {key.replace("__", "/").replace("_", "."): text for key, text in labels.items()}
    return m.pods(count, f"{prefix}-", labels=found, at=at)


def controlled(count: int, api_version: str, kind: str) -> list[Obj]:
    found = m.pods(count, "p-")
    for one in found:
        reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "owner-1", "controller": True}
        one["metadata"]["ownerReferences"] = [reference]
    return found


JOBSET = {"jobset_sigs_k8s_io__jobset-name": "x"}
ROLE = "jobset_sigs_k8s_io__replicatedjob-name"


def jobset(at: str | None = None, **spec: Any) -> Obj:
    jobs = [
        {"name": "driver", "template": {"spec": {"parallelism": 1}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2}}},
    ]
    return owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs, **spec}, at=at)


def jobset_pods(workers: int, **fields: Any) -> list[Obj]:
    drivers = pods(1, "driver", **JOBSET, **{ROLE: "driver"}, **fields)
    return [*drivers, *pods(workers, "worker", **JOBSET, **{ROLE: "workers"}, **fields)]


def test_v1_a_jobset_is_one_gang() -> None:
    answer = simulate(m.node("n", 4), m.node("late", 1, at="30s"), jobset(), jobset_pods(4))
    assert answer.times() == [30.0] * 5


def test_v1_its_jobs_are_roles() -> None:
    """Five pods exist, but only three of the four workers."""
    extra = pods(1, "other", **JOBSET, **{ROLE: "driver"})
    answer = simulate(m.node("n", 9), jobset(), jobset_pods(3), extra)
    assert not answer.bound()
    assert "workers" in answer.why("default/x")


def test_v1_jobs_that_start_in_order_are_no_gang_together() -> None:
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    answer = simulate(m.node("n", 1), jobset(**spec), jobset_pods(0))
    assert answer.times() == [0.0]


def test_v1_an_owner_that_is_observed_after_its_pods_counts_for_those_that_wait() -> None:
    answer = simulate(m.node("n", 4, at="20s"), m.node("more", 1, at="40s"), jobset_pods(4), jobset(at="10s"))
    assert answer.times() == [40.0] * 5


def test_v1_each_replica_of_a_leaderworkerset_is_a_gang() -> None:
    lws = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 3}})
    label, index = "leaderworkerset_sigs_k8s_io__name", "leaderworkerset_sigs_k8s_io__group-index"
    groups = [pods(3, f"g{n}", **{label: "x", index: str(n)}) for n in range(2)]
    answer = simulate(m.node("n", 5), m.node("late", 1, at="30s"), lws, *groups)
    assert answer.times("g0") == [0.0] * 3
    assert answer.times("g1") == [30.0] * 3


@pytest.mark.parametrize("autoscales, starts", [(False, 30.0), (True, 0.0)])
def test_v1_a_raycluster_needs_its_head_and_its_workers(autoscales: bool, starts: float) -> None:
    """With autoscaling the least number of workers."""
    workers = [{"groupName": "small", "replicas": 3, "minReplicas": 1, "maxReplicas": 5}]
    ray = owner("ray.io/v1", "RayCluster", {"enableInTreeAutoscaling": autoscales, "workerGroupSpecs": workers})
    head = pods(1, "head", ray_io__cluster="x", ray_io__group="headgroup")
    small = pods(3, "small", ray_io__cluster="x", ray_io__group="small")
    answer = simulate(m.node("n", 3), m.node("late", 1, at="30s"), ray, head, small)
    assert answer.times("head") == [starts]


def test_v1_kubeflow_replica_types_are_roles() -> None:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}
    job = owner("kubeflow.org/v1", "PyTorchJob", spec)
    named = {"training_kubeflow_org__job-name": "x"}
    role = "training_kubeflow_org__replica-type"
    master = pods(1, "m", at="9s", **named, **{role: "master"})
    answer = simulate(m.node("n", 4), job, master, pods(3, "w", **named, **{role: "worker"}))
    assert answer.times("w") == [9.0] * 3


def test_v1_a_kubeflow_job_is_in_the_queue_of_its_scheduling_policy() -> None:
    """Training-operator writes it into the PodGroup; without one it counts all the same."""
    policy = {"schedulingPolicy": {"queue": "team"}}
    job = owner(
        "kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}, "runPolicy": policy}
    )
    labels = {"training_kubeflow_org__job-name": "x", "training_kubeflow_org__replica-type": "worker"}
    stage = [m.node("n", 4), job, *pods(2, "w", **labels)]
    assert simulate(*stage).why("default/x") == "queue team does not exist"
    assert simulate(*stage, m.queue("team")).times() == [0.0] * 2


@pytest.mark.parametrize("mode, starts", [("standalone", [9.0] * 3), ("native", [0.0, 0.0, 9.0])])
def test_v1_flink_is_a_gang_in_standalone_mode(mode: str, starts: list[float]) -> None:
    spec = {"mode": mode, "taskManager": {"replicas": 2}}
    flink = owner("flink.apache.org/v1beta1", "FlinkDeployment", spec)
    named = {"app": "x", "type": "flink-standalone-kubernetes"}
    tasks = pods(2, "t", component="taskmanager", **named)
    answer = simulate(m.node("n", 4), flink, tasks, pods(1, "j", at="9s", component="jobmanager", **named))
    assert sorted(answer.times()) == starts


@pytest.mark.parametrize("minimum, starts", [(None, [0.0]), ("3", [])])
def test_v1_a_workflow_is_a_gang_only_by_annotation(minimum: str | None, starts: list[float]) -> None:
    annotations = {MIN_MEMBER: minimum} if minimum else {}
    flow = owner("argoproj.io/v1alpha1", "Workflow", {"templates": []}, annotations=annotations)
    answer = simulate(m.node("n", 1), flow, pods(2, workflows_argoproj_io__workflow="x"))
    assert answer.times() == starts


def indexed(parallelism: int, mode: str = "Indexed", **spec: Any) -> Obj:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"sim.enbloc.dev/run-time": "1h"}},
        "spec": {"restartPolicy": "Never", "schedulerName": "enbloc", "containers": [container]},
    }
    fields = {"parallelism": parallelism, "completionMode": mode, "template": template}
    return owner("batch/v1", "Job", {"completions": 3, **fields, **spec})


@pytest.mark.parametrize("mode, first", [("Indexed", []), ("NonIndexed", [0.0, 0.0])])
def test_v1_an_indexed_job_is_a_gang(mode: str, first: list[float]) -> None:
    answer = simulate(m.node("n", 2), indexed(3, mode), until="20s")
    assert answer.times("x-") == first


def test_v1_an_indexed_job_needs_no_more_pods_than_completions() -> None:
    answer = simulate(m.node("n", 3), indexed(9), until="5s")
    assert answer.times("x-") == [0.0] * 3


def test_v1_a_changed_minimum_counts_at_once() -> None:
    lower = m.patch("9s", "JobSet", "x", spec={"replicatedJobs": [{"name": "driver"}]})
    lower["target"]["apiVersion"] = "jobset.x-k8s.io/v1alpha2"
    answer = simulate(m.node("n", 2), jobset(), jobset_pods(1), lower)
    assert answer.times() == [9.0, 9.0]


def test_v1_a_number_that_cannot_be_read_keeps_the_gang_waiting() -> None:
    lws = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {"size": "three"}})
    answer = simulate(m.node("n"), lws, pods(1, leaderworkerset_sigs_k8s_io__name="x"))
    assert not answer.bound()
    assert "spec.leaderWorkerTemplate.size is not a whole number" in answer.why("default/x")


def test_v1_the_gang_survives_a_restart_of_the_scheduler() -> None:
    answer = simulate(m.node("n", 4), m.node("late", 1, at="30s"), jobset(), jobset_pods(4), m.restart("10s"))
    assert answer.times() == [30.0] * 5


def test_v1_the_queue_of_the_owner_counts() -> None:
    team = jobset()
    team["metadata"]["labels"] = {"kai.scheduler/queue": "team"}
    answer = simulate(m.node("n"), m.queue("team", capability={"cpu": "4"}), team, jobset_pods(4))
    assert not answer.bound()


def test_v1_a_podgroup_counts_before_the_owner_and_nothing_warns() -> None:
    group = m.podgroup("g", 1)
    grouped = jobset_pods(4)
    for one in grouped:
        one["metadata"].setdefault("annotations", {})[m.GROUP_NAME] = "g"
    answer = simulate(m.node("n", 2), jobset(), group, grouped)
    assert len(answer.bound()) == 2
    assert not [text for text in answer.warnings() if "several APIs" in text]


def test_o2_pods_of_an_indexed_job_go_by_index() -> None:
    answer = simulate(
        m.node("n", 1), indexed(3, scheduling={"schedulingPolicy": {"gang": {"minCount": 1}}}), until="5s"
    )
    [name] = answer.bound("x-")
    assert name.startswith("x-0-")


TRAIN = {"kind": "Train.example.com", "minimum": ["spec.workers"]}


def test_v1_a_kind_of_the_config() -> None:
    train = owner("example.com/v1", "Train", {"workers": 3})
    objects = [m.node("n", 2), m.node("late", 1, at="9s"), train, *controlled(3, "example.com/v1", "Train")]
    answer = simulate(objects, config={"groupByOwner": {"kinds": [TRAIN]}})
    assert answer.times() == [9.0] * 3
    assert simulate(objects).times() == [0.0, 0.0, 9.0]


@pytest.mark.parametrize("command", ["sim", "lint"])
def test_n5_what_is_a_gang_only_here_is_noted(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, config = tmp_path / "jobset.yaml", tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump_all([jobset(), *jobset_pods(4)]))
    config.write_text("groupByOwner: {enabled: true}\n")
    with pytest.raises(SystemExit):
        main([command, str(file)])
    printed = capsys.readouterr()
    assert "pods of JobSet default/x are a gang here" in printed.err
    assert "effect" not in printed.out + printed.err  # N3: it says which pods are the gang
    with pytest.raises(SystemExit):
        main([command, str(file), "--config", str(config)])
    assert "groupByOwner" not in capsys.readouterr().err


def test_v1_switched_off() -> None:
    answer = simulate(m.node("n", 2), jobset(), jobset_pods(4), config={"groupByOwner": {"enabled": False}})
    assert len(answer.bound()) == 2


def test_n5_off_on_a_cluster_and_on_where_no_other_scheduler_runs() -> None:
    assert parse(None).group_by_owner.active == ()
    assert where_alone(parse(None)).group_by_owner.active == shipped()
    assert where_alone(parse({"groupByOwner": {"enabled": False}})).group_by_owner.active == ()


@pytest.mark.parametrize(
    "entry, field",
    [
        ({"minimum": ["spec.a"]}, "kinds[0].kind"),
        ({"kind": "train"}, "kinds[0].kind"),
        ({"kind": "Train.x", "minimun": ["spec.a"]}, "kinds[0].minimun"),
        ({"kind": "Train.x", "minimum": ["spec..a"]}, "kinds[0].minimum[0]"),
        ({"kind": "Train.x", "minimum": [{"path": "spec.a", "default": -1}]}, "kinds[0].minimum[0].default"),
        ({"kind": "Train.x", "minimum": "spec.a"}, "kinds[0].minimum"),
        ({"kind": "Train.x", "when": ["=x"]}, "kinds[0].when[0]"),
        ({"kind": "Train.x", "roles": [{"name": "a"}]}, "kinds[0].roleLabel"),
        ({"kind": "Train.x", "roleLabel": "r", "roles": [{}]}, "kinds[0].roles[0].name"),
        ({"kind": "Train.x", "roleLabel": "r", "roles": [{"name": "a"}], "minimum": ["b"]}, "kinds[0].minimum"),
        ({"kind": "Train.x", "podLabel": 3}, "kinds[0].podLabel"),
        ({"kind": "Train.x", "podLabels": {"a": 3}}, "kinds[0].podLabels.a"),
        ("Train.x", "kinds[0]"),
    ],
)
def test_c_faults_of_the_list_name_their_field(entry: Any, field: str) -> None:
    with pytest.raises(ConfigError) as why:
        parse({"groupByOwner": {"kinds": [entry]}})
    assert f"groupByOwner.{field}" in [path for path, _ in why.value.problems]


def test_c_the_list_is_printed_as_it_is_read() -> None:
    entry = {
        "kind": "Train.example.com",
        "podLabel": "train",
        "podLabels": {"a": "b"},
        "splitLabel": "part",
        "when": ["spec.mode=x"],
        "unless": ["spec.items[].late"],
        "atMost": ["spec.most"],
        "roleLabel": "role",
        "roles": [{"name": "head"}, {"items": "spec.groups", "name": "id", "minimum": [{"path": "n", "default": 0}]}],
    }
    config = parse({"groupByOwner": {"enabled": True, "kinds": [entry, TRAIN]}})
    assert parse(yaml.safe_load(render(config))) == config
