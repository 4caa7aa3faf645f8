"""StatefulSets and DaemonSets: pods with names of their own, and a pod on every node."""

from __future__ import annotations

from enbloc.api.meta import Obj, Ref
from enbloc.api.workloads import CONTROLLER_REVISION, DAEMON_SET, STATEFUL_SET
from support import manifests as m
from support.workload_cluster import WorkloadCluster, image_change, template, workload


def images(cluster: WorkloadCluster, app: str) -> dict[str, str]:
    """Pod → image."""
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.pods(app=app)}


def slow(kind: str, name: str, delay: str = "5s", **spec: object) -> Obj:
    made = template(annotations={m.SIM + "start-delay": delay}, app=name)
    return workload(kind, name, **{"template": made, **spec})


def test_pods_of_a_stateful_set_start_one_after_the_other() -> None:
    cluster = WorkloadCluster()
    cluster.create(slow("StatefulSet", "db", replicas=3, serviceName="peers"))
    assert cluster.names() == ["db-0"]
    cluster.advance(5)
    assert cluster.names() == ["db-0", "db-1"]
    cluster.advance(10)
    assert cluster.names() == ["db-0", "db-1", "db-2"]
    pod = cluster.get("Pod", "db-1")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "peers")
    status = cluster.status(STATEFUL_SET, "db")
    assert (
        status["currentRevision"] == status["updateRevision"] == pod["metadata"]["labels"]["controller-revision-hash"]
    )
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)


def test_parallel_pods_start_at_once() -> None:
    cluster = WorkloadCluster()
    cluster.create(slow("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"))
    assert cluster.names() == ["db-0", "db-1", "db-2"]


def test_a_stateful_set_shrinks_from_its_end_and_a_lost_pod_returns_under_its_name() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("StatefulSet", "db", replicas=4))
    cluster.patch(STATEFUL_SET, "db", {"spec": {"replicas": 2}})
    assert cluster.names() == ["db-0", "db-1"]
    before = cluster.get("Pod", "db-0")["metadata"]["uid"]
    cluster.delete("Pod", "db-0")
    assert cluster.names() == ["db-0", "db-1"]
    assert cluster.get("Pod", "db-0")["metadata"]["uid"] != before


def test_a_stateful_set_updates_from_its_end_one_at_a_time_and_stops_at_the_partition() -> None:
    cluster = WorkloadCluster()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    cluster.create(slow("StatefulSet", "db", replicas=3, updateStrategy=rolling, podManagementPolicy="Parallel"))
    cluster.advance(5)
    cluster.patch(STATEFUL_SET, "db", image_change("app:2"))
    assert images(cluster, "db") == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
    cluster.advance(10)
    assert images(cluster, "db") == {"db-0": "app:1", "db-1": "app:2", "db-2": "app:2"}
    cluster.delete("Pod", "db-0")
    cluster.advance(5)
    assert images(cluster, "db")["db-0"] == "app:1"
    cluster.patch(STATEFUL_SET, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    cluster.advance(10)
    assert set(images(cluster, "db").values()) == {"app:2"}
    status = cluster.status(STATEFUL_SET, "db")
    assert status["currentRevision"] == status["updateRevision"]


def test_every_template_has_a_revision_and_an_older_one_becomes_the_newest_again() -> None:
    cluster = WorkloadCluster()
    cluster.create(workload("StatefulSet", "db", replicas=1))
    for image in ("app:2", "app:1"):
        cluster.patch(STATEFUL_SET, "db", image_change(image))
    found = sorted(
        (one["revision"], one["data"]["spec"]["template"]["spec"]["containers"][0]["image"])
        for one in cluster.owned(CONTROLLER_REVISION, "db")
    )
    assert found == [(2, "app:2"), (3, "app:1")]


def test_claims_outlive_their_pods() -> None:
    cluster = WorkloadCluster()
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    made = workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim], podManagementPolicy="Parallel")
    cluster.create(made)
    claims = [one["metadata"]["name"] for one in cluster.store.list("PersistentVolumeClaim")[0]]
    assert claims == ["data-db-0", "data-db-1"]
    volumes = cluster.get("Pod", "db-1")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    cluster.delete(STATEFUL_SET, "db")
    assert len(cluster.store.list("PersistentVolumeClaim")[0]) == 2


def nodes_of(cluster: WorkloadCluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName") or "" for pod in cluster.pods(app="agent"))


def test_every_node_gets_a_daemon_also_one_that_joins_later() -> None:
    cluster = WorkloadCluster(nodes=2)
    cluster.create(workload("DaemonSet", "agent"))
    assert nodes_of(cluster) == ["n0", "n1"]
    cluster.create(m.node("n2", cpu=4))
    assert nodes_of(cluster) == ["n0", "n1", "n2"]
    status = cluster.status(DAEMON_SET, "agent")
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberMisscheduled"]) == (3, 3, 0)


def test_labels_and_taints_decide_which_nodes_get_one() -> None:
    cluster = WorkloadCluster(nodes=3)
    cluster.store.patch(Ref("Node", "", "n1"), {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.store.patch(Ref("Node", "", "n2"), {"metadata": {"labels": {"disk": "ssd"}}})
    made = workload("DaemonSet", "agent")
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    cluster.create(made)
    assert nodes_of(cluster) == ["n1", "n2"]
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    cluster.store.patch(Ref("Node", "", "n2"), {"spec": {"taints": taints}})
    cluster.settle()
    assert nodes_of(cluster) == ["n1"]
    cluster.store.patch(Ref("Node", "", "n1"), {"spec": {"unschedulable": True}})
    cluster.settle()
    assert nodes_of(cluster) == ["n1"]


def test_daemons_are_replaced_one_at_a_time() -> None:
    cluster = WorkloadCluster(nodes=3)
    cluster.create(slow("DaemonSet", "agent"))
    cluster.advance(5)
    cluster.patch(DAEMON_SET, "agent", image_change("app:2"))
    assert sorted(images(cluster, "agent").values()) == ["app:1", "app:1", "app:2"]
    assert cluster.status(DAEMON_SET, "agent")["numberUnavailable"] == 1
    cluster.advance(15)
    assert set(images(cluster, "agent").values()) == {"app:2"}


def test_with_surge_the_old_daemon_stays_until_the_new_one_is_available() -> None:
    cluster = WorkloadCluster(nodes=1)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.create(slow("DaemonSet", "agent", updateStrategy=rolling))
    cluster.advance(5)
    cluster.patch(DAEMON_SET, "agent", image_change("app:2"))
    assert sorted(images(cluster, "agent").values()) == ["app:1", "app:2"]
    cluster.advance(5)
    assert list(images(cluster, "agent").values()) == ["app:2"]


def test_a_daemon_that_ended_is_recreated() -> None:
    cluster = WorkloadCluster(nodes=1)
    cluster.create(workload("DaemonSet", "agent"))
    (name,) = cluster.names(app="agent")
    cluster.patch("Pod", name, {"status": {"phase": "Failed"}}, "status")
    assert name not in cluster.names(app="agent")
    assert nodes_of(cluster) == ["n0"]
