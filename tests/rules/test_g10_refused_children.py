"""G10: a job whose controller cannot create what it needs waits, and says why: its PodGroup, Service, claim, pods …"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enbloc.api.meta import condition_of
from enbloc.cli.main import main
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate
from support.workload_cluster import job as batch_job
from support.workload_cluster import workload

NODES = [m.node(f"n{number}", 8, "7Ei") for number in range(4)]
OVERFLOWS = m.job("j", m.role("w", 4, memory="7Ei"))


def taken(kind: str, name: str) -> m.Obj:
    return {"apiVersion": "v1", "kind": kind, "metadata": m.metadata(name)}


def quota(resource: str, at: str | None = None, hard: str = "0") -> m.Obj:
    made = m.resource_quota(0, at)
    return {**made, "spec": {"hard": {resource: hard}}}


def with_plugin(name: str) -> m.Obj:
    return m.job("j", m.role("w", 2), plugins={name: []})


def with_volume() -> m.Obj:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return m.job("j", m.role("w", 2), volumes=[{"mountPath": "/data", "volumeClaim": claim}])


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": m.metadata("j"),
    "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": batch_job("x")["spec"]}},
}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
REFUSED: dict[str, tuple[list[m.Obj], str]] = {
    "minResources out of range": ([OVERFLOWS], "spec.minResources.memory: '28Ei' is out of range"),
    "PodGroup beyond a quota": (
        [quota("count/podgroups.scheduling.volcano.sh"), m.job("j", m.role("w", 2))],
        "exceeded quota",
    ),
    "Service of another": ([taken("Service", "j") | {"spec": {"ports": [{"port": 1}]}}, with_plugin("svc")], "Service"),
    "ConfigMap of another": ([taken("ConfigMap", "j-svc"), with_plugin("svc")], "ConfigMap"),
    "Secret beyond a quota": ([quota("secrets"), with_plugin("ssh")], "Secret"),
    "claim beyond a quota": ([quota("persistentvolumeclaims"), with_volume()], "PersistentVolumeClaim"),
    "pods beyond a quota": ([quota("pods"), m.job("j", m.role("w", 2))], "exceeded quota"),
    "SchedulingSpec of another": (
        [m.scheduling_spec("j", 1), m.queue_job("j", m.role("w", 2), minimum=2)],
        "SchedulingSpec",
    ),
    "SchedulingSpec beyond a quota": (
        [quota("count/schedulingspecs.arbitrator.incubator.k8s.io"), m.queue_job("j", m.role("w", 2), minimum=2)],
        "exceeded quota",
    ),
    "pods of a batch Job": ([quota("pods"), batch_job("j")], "exceeded quota"),
    "PodGroup of a batch Job": (
        [
            quota("count/podgroups.scheduling.k8s.io"),
            batch_job("j", parallelism=2, scheduling={"schedulingPolicy": {"gang": {"minCount": 2}}}),
        ],
        "exceeded quota",
    ),
    "pods of a Deployment": ([quota("pods"), workload("Deployment", "j", replicas=2)], "exceeded quota"),
    "ReplicaSet of a Deployment": (
        [quota("count/replicasets.apps"), workload("Deployment", "j", replicas=2)],
        "exceeded quota",
    ),
    "pods of a ReplicaSet": ([quota("pods"), workload("ReplicaSet", "j", replicas=2)], "exceeded quota"),
    "pods of a DaemonSet": ([quota("pods"), workload("DaemonSet", "j")], "exceeded quota"),
    "claims of a StatefulSet": (
        [quota("persistentvolumeclaims"), workload("StatefulSet", "j", replicas=1, volumeClaimTemplates=[CLAIM])],
        "exceeded quota",
    ),
    "Jobs of a CronJob": ([quota("count/jobs.batch"), CRON_JOB], "exceeded quota"),
}


def entry(answer: Answer) -> dict[str, Any]:
    (found,) = [one for one in answer.data["pending"] if one["gang"].startswith("default/j")]
    return found


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_g10_what_cannot_be_created_is_why_it_waits(name: str, restarts: bool) -> None:
    objects, why = REFUSED[name]
    answer = simulate(NODES, *objects, *([m.restart("3s")] if restarts else []), until="200s")
    found = entry(answer)
    assert found["reason"] == "FailedCreate"
    assert why in found["message"]


@pytest.mark.parametrize("job", [m.job("j", m.role("w", 2)), with_plugin("ssh"), with_plugin("svc")])
def test_g10_a_job_starts_once_everything_can_be_created(job: m.Obj) -> None:
    counted = ("count/podgroups.scheduling.volcano.sh", "secrets", "services", "configmaps")
    for resource in counted:
        answer = simulate(NODES, quota(resource), job, m.step("30s", "delete", "ResourceQuota", "q"), until="400s")
        assert answer.waiting() == []
        assert len(answer.bound("j-w-")) == 2
        assert condition_of(answer.obj("Job", "j"), "Unschedulable") is None


@pytest.mark.parametrize("name", ["minResources out of range", "SchedulingSpec beyond a quota"])
def test_g10_the_job_itself_says_why(name: str) -> None:
    answer = simulate(NODES, *REFUSED[name][0], until="100s")
    kind = "QueueJob" if "SchedulingSpec" in name else "Job"
    said = condition_of(answer.obj(kind, "j"), "Unschedulable")
    assert said is not None
    assert said["reason"] == "FailedCreate"
    assert REFUSED[name][1] in said["message"]


def test_g10_fail_on_waiting_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("\n---\n".join(json.dumps(one) for one in [*NODES, OVERFLOWS]))
    with pytest.raises(SystemExit) as ended:
        main(["sim", str(file), "--fail-on", "waiting"])
    assert ended.value.code == 1
    assert "28Ei" in capsys.readouterr().out
