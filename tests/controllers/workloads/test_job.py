"""Jobs: pods that run to completion, counted exactly once each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.meta import Obj, Ref
from enbloc.api.workloads import JOB
from enbloc.api.writes import Refused
from enbloc.controllers.workloads.job_counts import format_indexes, parse_indexes
from support.simulation import lint
from support.workload_cluster import WorkloadCluster, job

COMPLETE = ("True", "CompletionsReached")


def phases(cluster: WorkloadCluster) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in cluster.pods())


def test_a_job_runs_its_completions_so_many_at_a_time() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", completions=5, parallelism=2))
    assert phases(cluster) == ["Running"] * 2
    assert cluster.status(JOB, "work")["active"] == 2
    cluster.advance(25)
    assert phases(cluster) == ["Running"] + ["Succeeded"] * 4
    cluster.advance(5)
    status = cluster.status(JOB, "work")
    assert (status["succeeded"], status["uncountedTerminatedPods"]) == (5, {})
    assert "active" not in status
    assert status["completionTime"]
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE
    assert not any(pod["metadata"].get("finalizers") for pod in cluster.pods())


def test_pods_carry_the_labels_that_users_select_on() -> None:
    cluster = WorkloadCluster()
    made = cluster.create(job("work", completions=2, parallelism=2, completionMode="Indexed"))
    uid = made["metadata"]["uid"]
    assert cluster.get(JOB, "work")["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    for index, pod in enumerate(cluster.pods()):
        labels = pod["metadata"]["labels"]
        assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == uid
        assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "work"
        assert labels["batch.kubernetes.io/job-completion-index"] == str(index)
        assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == str(index)
        assert pod["spec"]["hostname"] == f"work-{index}"
        assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
        assert pod["metadata"]["name"].startswith(f"work-{index}-")


def test_every_index_succeeds_once() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", completions=5, parallelism=3, completionMode="Indexed"))
    cluster.advance(10)
    assert cluster.status(JOB, "work")["completedIndexes"] == "0-2"
    cluster.advance(10)
    assert cluster.status(JOB, "work")["completedIndexes"] == "0-4"
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE
    assert len(cluster.pods()) == 5


def test_a_failed_pod_is_retried_with_growing_delays_up_to_the_limit() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", run_time="1s", exit_code="1", backoffLimit=2))
    cluster.advance(1)
    assert phases(cluster) == ["Failed"]
    cluster.advance(10)
    assert phases(cluster) == ["Failed", "Running"]
    cluster.advance(1 + 19)
    assert phases(cluster) == ["Failed", "Failed"]
    cluster.advance(2)
    assert phases(cluster) == ["Failed"] * 3
    assert cluster.status(JOB, "work")["failed"] == 3
    assert cluster.condition(JOB, "work", "Failed") == ("True", "BackoffLimitExceeded")
    cluster.advance(600)
    assert len(cluster.pods()) == 3


def test_containers_that_restart_in_their_pod_count_towards_the_limit() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", run_time="1s", exit_code="1", policy="OnFailure", backoffLimit=2))
    cluster.advance(120)
    assert cluster.condition(JOB, "work", "Failed") == ("True", "BackoffLimitExceeded")
    assert cluster.pods() == []


def test_a_finished_pod_that_is_deleted_was_counted() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", completions=2))
    cluster.advance(10)
    done = next(pod for pod in cluster.pods() if pod["status"]["phase"] == "Succeeded")
    cluster.delete("Pod", done["metadata"]["name"])
    assert done["metadata"]["name"] not in cluster.names()
    cluster.advance(10)
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE
    assert cluster.status(JOB, "work")["succeeded"] == 2


def test_a_running_pod_that_is_deleted_counts_as_failed_and_is_replaced() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work"))
    (name,) = cluster.names()
    cluster.delete("Pod", name)
    assert name not in cluster.names()
    assert phases(cluster) == ["Running"]
    assert cluster.status(JOB, "work")["failed"] == 1


def test_the_count_survives_new_controllers_at_every_step() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", completions=4, parallelism=2))
    for _ in range(5):
        cluster.restart()
        cluster.advance(5)
    assert cluster.status(JOB, "work")["succeeded"] == 4
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", parallelism=2, completions=2, suspend=True))
    assert cluster.pods() == []
    assert cluster.condition(JOB, "work", "Suspended") == ("True", "JobSuspended")
    cluster.patch(JOB, "work", {"spec": {"suspend": False}})
    assert phases(cluster) == ["Running"] * 2
    cluster.patch(JOB, "work", {"spec": {"suspend": True}})
    assert cluster.pods() == []
    assert "startTime" not in cluster.status(JOB, "work")
    cluster.patch(JOB, "work", {"spec": {"suspend": False}})
    cluster.advance(10)
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE
    assert "failed" not in cluster.status(JOB, "work")


def test_a_job_that_is_over_is_deleted_after_its_time_to_live() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", ttlSecondsAfterFinished=30))
    cluster.advance(39)
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE
    cluster.advance(1)
    assert cluster.store.get(JOB, "default", "work") is None
    assert cluster.pods() == []


def test_a_job_fails_at_its_deadline() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", run_time="100s", activeDeadlineSeconds=30))
    cluster.advance(30)
    assert cluster.condition(JOB, "work", "Failed") == ("True", "DeadlineExceeded")
    assert cluster.pods() == []


def test_parallelism_can_change() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", completions=10, parallelism=1))
    cluster.patch(JOB, "work", {"spec": {"parallelism": 4}})
    assert phases(cluster) == ["Running"] * 4
    cluster.patch(JOB, "work", {"spec": {"parallelism": 2}})
    assert phases(cluster) == ["Running"] * 2
    assert "failed" not in cluster.status(JOB, "work")


def test_without_completions_the_first_success_ends_a_work_queue() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", parallelism=3))
    cluster.advance(10)
    assert phases(cluster) == ["Succeeded"] * 3
    assert cluster.condition(JOB, "work", "Complete") == COMPLETE


def test_a_deleted_job_leaves_no_pods() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", parallelism=2, completions=2))
    cluster.delete(JOB, "work")
    assert cluster.pods() == []


def test_a_job_of_another_controller_is_left_alone() -> None:
    cluster = WorkloadCluster()
    cluster.create(job("work", managedBy="example.com/mine"))
    assert cluster.pods() == []
    assert "status" not in cluster.get(JOB, "work")


BAD: dict[str, tuple[Obj, str]] = {
    "restart policy": (job("work", policy="Always"), "OnFailure"),
    "negative": (job("work", parallelism=-1), "greater than or equal to 0"),
    "indexes without number": (job("work", completionMode="Indexed", parallelism=1), "completions"),
    "not built": (job("work", podFailurePolicy={"rules": []}), "podFailurePolicy: is not supported here"),
    "mode": (job("work", completionMode="Sideways"), "Indexed"),
}


@pytest.mark.parametrize(("made", "message"), BAD.values(), ids=BAD.keys())
def test_what_an_api_server_refuses_is_refused(made: Obj, message: str) -> None:
    with pytest.raises(Refused, match=message):
        WorkloadCluster(nodes=0).create(made)


@pytest.mark.parametrize(("made", "message"), BAD.values(), ids=BAD.keys())
def test_n5_lint_says_what_an_api_server_would(made: Obj, message: str) -> None:
    assert any(message in str(fault) for fault in lint(made).faults)


def test_a_template_changes_only_before_the_job_starts() -> None:
    cluster = WorkloadCluster(nodes=0)
    cluster.create(job("work", suspend=True))
    change = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    cluster.patch(JOB, "work", change)
    cluster.patch(JOB, "work", {"spec": {"suspend": False}})
    change["spec"]["template"]["spec"]["nodeSelector"]["zone"] = "b"
    with pytest.raises(Refused, match="immutable"):
        cluster.store.patch(Ref(JOB, "default", "work"), change)


@given(st.frozensets(st.integers(0, 60)))
def test_indexes_are_written_shortly_and_read_back(indexes: frozenset[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_indexes_are_written_as_kubernetes_writes_them() -> None:
    assert format_indexes({0, 1, 3, 4, 5, 9}) == "0,1,3-5,9"
