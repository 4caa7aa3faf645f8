"""S8: what a workload asks for is made in bounded batches, up to a bound that `lint` and admission name."""

from __future__ import annotations

import itertools
import sys

import pytest

from enbloc.api import workloads
from enbloc.api.meta import Obj
from enbloc.api.writes import Create
from enbloc.controllers import timers
from enbloc.controllers.workloads.job_counts import parse_indexes
from support import manifests as m
from support.simulation import lint, simulate
from support.workload_cluster import WorkloadCluster, workload
from support.workload_cluster import job as batch_job

HUGE = 2**31 - 1
CRON_JOB = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "v", "namespace": "default"}}


def cron_job(parallelism: int) -> Obj:
    job = {"spec": batch_job("x", parallelism=parallelism)["spec"]}
    return CRON_JOB | {"spec": {"schedule": "* * * * *", "jobTemplate": job}}


def workloads_of(count: int) -> dict[str, Obj]:
    parallel = {"serviceName": "v", "podManagementPolicy": "Parallel"}
    return {
        "Job": batch_job("v", parallelism=count),
        "Job with completions": batch_job("v", parallelism=count, completions=count),
        "Indexed Job": batch_job("v", parallelism=count, completions=count, completionMode="Indexed"),
        "Deployment": workload("Deployment", "v", replicas=count),
        "ReplicaSet": workload("ReplicaSet", "v", replicas=count),
        "StatefulSet": workload("StatefulSet", "v", replicas=count, **parallel),
        "CronJob": cron_job(count),
    }


def gangs_of(count: int) -> dict[str, Obj]:
    return {
        "Volcano Job": m.job("v", m.role("w", count), minimum=count),
        "Job of two roles": m.job("v", m.role("a", count // 2), m.role("w", count - count // 2)),
        "QueueJob": m.queue_job("v", m.role("w", count), minimum=count),
    }


class Counting(WorkloadCluster):
    """Counts the pods that are created at each instant."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes, cpu=1000)
        self.most = 0
        self.created = self.store.watch(frozenset({"Pod"}), self.store.version)

    def settle(self) -> None:
        super().settle()
        if hasattr(self, "created"):
            self.most = max(self.most, sum(event.type == "ADDED" for event in self.created.drain()))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a test can reach."""
    for module in [one for name, one in sys.modules.items() if name.startswith("enbloc.")]:
        for name, value in (("BATCH", 50), ("MOST_PODS", 120)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def made_of(obj: Obj) -> tuple[int, int]:
    """How many pods are made, and at most how many at one instant."""
    cluster = Counting(nodes="volcano" in obj["apiVersion"])  # its Job passes the gate, pods of the others do not end
    cluster.create(obj)
    cluster.advance(60)  # a CronJob begins
    cluster.advance(1)
    return len(cluster.pods()), cluster.most


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", workloads_of(0))
def test_s8_a_huge_workload_is_made_in_batches_up_to_a_bound(name: str) -> None:
    assert made_of(workloads_of(HUGE)[name]) == (120, 50)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [*workloads_of(0), *gangs_of(0)])
def test_s8_a_large_workload_is_made_whole(name: str) -> None:
    made = (workloads_of(110) | gangs_of(110))[name]
    assert made_of(made) == (110, 50)


@pytest.mark.usefixtures("small")
def test_s8_a_gang_that_is_made_in_batches_starts_as_a_whole() -> None:
    answer = simulate(m.node("n", 200), m.job("v", m.role("w", 110)), until="10s")
    assert len(answer.bound("v-w-")) == 110
    assert set(answer.times("v-w-")) == {0.002}


@pytest.mark.usefixtures("small")
def test_s8_under_a_quota_a_batch_of_one_queuejob_is_not_taken_by_a_lower_one() -> None:
    classes = [m.priority_class("high", 10), m.priority_class("low", 1)]
    high = m.queue_job("high", m.role("w", 80), minimum=80, priorityClassName="high")
    low = m.queue_job("low", m.role("w", 20), minimum=20, priorityClassName="low")
    answer = simulate(classes, m.resource_quota(80), low, high, until="10s")
    assert len(answer.pods("high-w-")) == 80
    assert not answer.pods("low-w-")


def test_s8_lint_and_admission_name_the_bound() -> None:
    assert workloads.MOST_PODS == 100_000
    for name, obj in (workloads_of(HUGE) | gangs_of(HUGE)).items():
        found = lint(obj)
        said = [str(one) for one in itertools.chain(found.faults, found.warnings)]
        assert any(f"{HUGE}" in text and "100000" in text for text in said) or name == "Job of two roles", (name, said)
    said = [str(one) for one in lint(gangs_of(150_000)["Job of two roles"]).faults]
    assert any("150000 replicas in all are above 100000" in text for text in said), said


@pytest.mark.parametrize("count", [workloads.MOST_PODS, 10])
def test_s8_a_workload_within_the_bound_is_not_warned_of(count: int) -> None:
    for obj in workloads_of(count).values():
        assert not [one for one in lint(obj).warnings if "no more pods" in str(one)]


def test_s8_a_status_that_names_a_milliard_indexes_is_read_up_to_the_bound() -> None:
    assert len(parse_indexes("0-999999999")) == workloads.MOST_PODS
    assert parse_indexes("3,5-7") == {3, 5, 6, 7}


def test_s8_no_more_than_a_batch_is_listed() -> None:
    """The real bounds: one reconcile of each controller."""
    for name, obj in workloads_of(HUGE).items():
        cluster = WorkloadCluster(nodes=0)
        cluster.store.create(obj)
        (controller,) = [one.inner for one in cluster._plane._controllers if hasattr(one.inner, "waiting")]
        cluster._plane._catch_up()
        pods = [
            one for one in controller.reconcile(cluster.now_ns) if isinstance(one, Create) and one.obj["kind"] == "Pod"
        ]
        assert len(pods) <= timers.BATCH, name
