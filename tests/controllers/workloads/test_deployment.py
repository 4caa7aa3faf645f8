"""Deployments and ReplicaSets: as many pods as asked for, and templates that replace each other step by step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.meta import Obj, Ref, is_terminating
from enbloc.api.workloads import DEPLOYMENT, REPLICA_SET
from enbloc.api.writes import Refused, WatchEvent
from enbloc.controllers.workloads import pod_state
from enbloc.controllers.workloads.rolling_update import Limits, Size, rescale, roll
from support import manifests as m
from support.workload_cluster import WorkloadCluster, image_change, template, workload


def images(cluster: WorkloadCluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in cluster.pods(app="web"))


def sets(cluster: WorkloadCluster) -> dict[str, int]:
    """Image → replicas of the ReplicaSet with it."""
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"]
        for one in cluster.owned(REPLICA_SET, "web")
    }


def test_a_deployment_runs_its_pods_through_a_replica_set() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=3))
    (one,) = cluster.owned(REPLICA_SET, "web")
    mark = one["metadata"]["labels"]["pod-template-hash"]
    assert one["metadata"]["name"] == f"web-{mark}"
    assert one["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": mark}}
    pods = cluster.pods(app="web")
    assert {pod["metadata"]["labels"]["pod-template-hash"] for pod in pods} == {mark}
    assert all(pod["metadata"]["name"].startswith(f"web-{mark}-") and pod["spec"]["nodeName"] for pod in pods)
    status = cluster.status(DEPLOYMENT, "web")
    assert {key: status[key] for key in status if key.endswith("eplicas")} == {
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert status["observedGeneration"] == 1
    assert cluster.condition(DEPLOYMENT, "web", "Available") == ("True", "MinimumReplicasAvailable")
    assert cluster.condition(DEPLOYMENT, "web", "Progressing") == ("True", "NewReplicaSetAvailable")


class Watcher:
    """The most pods, and the fewest available ones, at any version of the store."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self.most = 0
        self.fewest = 10**9
        cluster.store.listeners.append(self)

    def __call__(self, event: WatchEvent) -> None:
        if event.kind == "Pod":
            pods = [pod for pod in self._cluster.pods(app="web") if not is_terminating(pod)]
            self.most = max(self.most, len(pods))
            self.fewest = min(self.fewest, sum(map(pod_state.is_ready, pods)))


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "fewest"),
    [("25%", "25%", 5, 3), (0, 1, 4, 3), (1, 0, 5, 4), ("100%", "100%", 8, 0), (0, 0, 4, 3)],
)
def test_a_rolling_update_stays_within_surge_and_unavailable(
    surge: int | str, unavailable: int | str, most: int, fewest: int
) -> None:
    cluster = WorkloadCluster()
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    slow = template(annotations={m.SIM + "start-delay": "5s"}, app="web")
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    cluster.create(workload("Deployment", "web", replicas=4, strategy=strategy) | {})
    cluster.patch(DEPLOYMENT, "web", {"spec": {"template": slow}})
    cluster.advance(60)
    watcher = Watcher(cluster)
    cluster.patch(DEPLOYMENT, "web", image_change("app:2"))
    cluster.advance(120)
    assert images(cluster) == ["app:2"] * 4
    assert cluster.condition(DEPLOYMENT, "web", "Progressing") == ("True", "NewReplicaSetAvailable")
    assert watcher.most <= most
    assert watcher.fewest >= fewest


def test_recreate_ends_old_pods_before_new_ones_are_created() -> None:
    cluster = WorkloadCluster()
    slow = template(annotations={m.SIM + "stop-delay": "10s"}, app="web")
    made = workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"})
    cluster.create(made | {"spec": made["spec"] | {"template": slow}})
    cluster.patch(DEPLOYMENT, "web", image_change("app:2"))
    cluster.advance(5)
    assert images(cluster) == ["app:1"] * 2  # they are terminating
    cluster.advance(6)
    assert images(cluster) == ["app:2"] * 2


def test_an_older_template_gets_its_replica_set_and_a_new_revision_back() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=1))
    cluster.patch(DEPLOYMENT, "web", image_change("app:2"))
    cluster.patch(DEPLOYMENT, "web", image_change("app:1"))
    assert sets(cluster) == {"app:1": 1, "app:2": 0}
    revisions = {
        one["spec"]["replicas"]: one["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
        for one in cluster.owned(REPLICA_SET, "web")
    }
    assert revisions == {1: "3", 0: "2"}
    assert cluster.get(DEPLOYMENT, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_only_so_many_old_replica_sets_are_kept() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    for image in ("app:2", "app:3", "app:4"):
        cluster.patch(DEPLOYMENT, "web", image_change(image))
    assert sets(cluster) == {"app:3": 0, "app:4": 1}


def test_a_template_that_never_gets_ready_stops_the_rollout_and_exceeds_its_deadline() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=4, progressDeadlineSeconds=30))
    too_large = template("app:2", cpu="100", app="web")
    cluster.patch(DEPLOYMENT, "web", {"spec": {"template": too_large}})
    cluster.advance(29)
    assert cluster.condition(DEPLOYMENT, "web", "Progressing") == ("True", "ReplicaSetUpdated")
    cluster.advance(2)
    assert cluster.condition(DEPLOYMENT, "web", "Progressing") == ("False", "ProgressDeadlineExceeded")
    assert cluster.condition(DEPLOYMENT, "web", "Available") == ("True", "MinimumReplicasAvailable")
    assert sets(cluster) == {"app:1": 3, "app:2": 2}


def test_a_paused_deployment_scales_and_does_not_roll() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=2))
    cluster.patch(DEPLOYMENT, "web", {"spec": {"paused": True}})
    cluster.patch(DEPLOYMENT, "web", image_change("app:2"))
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 3}})
    assert images(cluster) == ["app:1"] * 3
    cluster.patch(DEPLOYMENT, "web", {"spec": {"paused": None}})
    assert images(cluster) == ["app:2"] * 3


def test_a_deleted_pod_is_replaced_and_a_deleted_deployment_leaves_nothing() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=2))
    lost = cluster.names(app="web")[0]
    cluster.delete("Pod", lost)
    assert len(cluster.names(app="web")) == 2
    assert lost not in cluster.names(app="web")
    cluster.delete(DEPLOYMENT, "web")
    assert (cluster.owned(REPLICA_SET, "web"), cluster.pods()) == ([], [])


def test_a_new_controller_changes_nothing() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=2))
    cluster.patch(DEPLOYMENT, "web", image_change("app:2"))
    version = cluster.store.version
    cluster.restart()
    assert cluster.store.version == version


def test_pods_that_wait_are_deleted_first() -> None:
    cluster = WorkloadCluster(nodes=1, cpu=2)
    cluster.create(workload("ReplicaSet", "web", replicas=3))
    waiting = {pod["metadata"]["name"] for pod in cluster.pods(app="web") if not pod["spec"].get("nodeName")}
    assert len(waiting) == 1
    cluster.patch(REPLICA_SET, "web", {"spec": {"replicas": 2}})
    assert not waiting & set(cluster.names(app="web"))


def test_a_quota_holds_pods_back_until_there_is_room() -> None:
    cluster = WorkloadCluster()
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    cluster.create({**quota, "spec": {"hard": {"pods": "2"}}})
    cluster.create(workload("ReplicaSet", "web", replicas=3))
    assert len(cluster.names(app="web")) == 2
    (message,) = cluster.events("FailedCreate")
    assert "exceeded quota" in message
    cluster.patch("ResourceQuota", "q", {"spec": {"hard": {"pods": "3"}}})
    assert len(cluster.names(app="web")) == 3


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("Deployment", "web", replicas=1, minReadySeconds=20))
    assert "availableReplicas" not in cluster.status(DEPLOYMENT, "web")
    cluster.advance(20)
    assert cluster.status(DEPLOYMENT, "web")["availableReplicas"] == 1


BAD = {
    "selector": ({"selector": {"matchLabels": {"app": "other"}}}, "does not match"),
    "empty selector": ({"selector": {}}, "empty selector"),
    "negative": ({"replicas": -1}, "greater than or equal to 0"),
    "not a number": ({"replicas": "three"}, "spec.replicas"),
    "restart policy": (
        {"template": {**template(app="web"), "spec": {"containers": [{}], "restartPolicy": "Never"}}},
        "Always",
    ),
}


@pytest.mark.parametrize(("spec", "message"), BAD.values(), ids=BAD.keys())
def test_what_an_api_server_refuses_is_refused(spec: Obj, message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        WorkloadCluster(nodes=0).create(workload("Deployment", "web", **spec))
    assert refused.value.code == 422


def test_the_selector_cannot_change() -> None:
    cluster = WorkloadCluster(nodes=0)
    cluster.create(workload("Deployment", "web"))
    change = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template(app="x")}}
    with pytest.raises(Refused, match="immutable"):
        cluster.store.patch(Ref(DEPLOYMENT, "default", "web"), change)


# ---- numbers


@given(
    replicas=st.integers(0, 20),
    surge=st.integers(0, 20),
    unavailable=st.integers(0, 20),
    old=st.lists(st.integers(0, 12), max_size=3),
    data=st.data(),
)
def test_every_step_of_a_rollout_keeps_the_limits_and_it_ends(
    replicas: int, surge: int, unavailable: int, old: list[int], data: st.DataObject
) -> None:
    unavailable = min(unavailable if surge or unavailable else 1, replicas)
    limits = Limits(replicas, surge, unavailable)
    new, olds = Size(0, 0), [Size(count, count) for count in old]
    everything = [new, *olds]
    for _ in range(200):
        total = sum(one.replicas for one in everything)
        available = sum(one.available for one in everything)
        roll(limits, new, olds)
        assert sum(one.replicas for one in everything) <= max(total, replicas + surge)
        left = sum(min(one.replicas, one.available) for one in everything)
        assert left >= min(available, replicas - unavailable)
        for one in everything:
            one.available = min(one.available, one.replicas)
        if new.available < new.replicas:
            new.available += data.draw(st.integers(1, new.replicas - new.available))
        if (new.replicas, new.available) == (replicas, replicas) and not any(one.replicas for one in olds):
            return
    raise AssertionError("the rollout does not end")


@given(
    before=st.integers(1, 20),
    after=st.integers(0, 30),
    surge=st.integers(0, 5),
    parts=st.lists(st.integers(1, 9), min_size=2),
)
def test_scaling_in_a_rollout_gives_exactly_the_pods_that_may_exist(
    before: int, after: int, surge: int, parts: list[int]
) -> None:
    limits = Limits(after, surge, 0)
    sizes = [Size(count, count, most=before + surge) for count in parts]
    rescale(limits, sizes[0], sizes[1:])
    assert sum(size.replicas for size in sizes) == limits.most
    assert all(size.replicas >= 0 for size in sizes)
