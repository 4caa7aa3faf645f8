"""The controller of Volcano's Job, on the embedded API; the tests play the scheduler and the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Create, Delete, EmitEvent, Patch
from enbloc.units import SECOND
from support.controller_cluster import START, World, job, role


@pytest.fixture
def world() -> World:
    return World()


def started(world: World, obj: Obj) -> World:
    """A job whose pods all exist."""
    world.submit(obj)
    world.enqueued(obj["metadata"]["name"])
    return world


def test_m3_podgroup_says_what_the_minimum_needs(world: World) -> None:
    made = world.submit(job(role("master", 5, 3), role("work", 3, 2, cpu="500m"), priorityClassName=""))
    group = world.group()
    assert group["metadata"]["name"] == f"train-{made['metadata']['uid']}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert group["spec"] == {
        "minMember": 5,
        "minTaskMember": {"master": 3, "work": 2},
        "queue": "default",
        "minResources": {"cpu": "4", "memory": "5Gi"},
    }
    assert group["status"]["phase"] == "Pending"


def test_m3_relaxed_total_is_filled_by_priority_then_index() -> None:
    world = World(relaxed=True)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    world.store.create(high)
    work = role("work", 3, cpu="2")
    work["template"]["spec"]["priorityClassName"] = "high"
    world.submit(job(role("master", 3), work, minAvailable=4))
    assert world.group()["spec"]["minResources"]["cpu"] == "7"  # work-0,1,2 and master-0
    assert world.group()["spec"]["minMember"] == 4


def test_m3_podgroup_carries_the_jobs_labels_and_annotations(world: World) -> None:
    obj = job(role("a"))
    obj["metadata"] |= {"labels": {"team": "x"}, "annotations": {"volcano.sh/preemptable": "false"}}
    world.submit(obj)
    assert world.group()["metadata"]["labels"] == {"team": "x"}
    assert world.group()["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}


def test_m6_no_pods_before_inqueue(world: World) -> None:
    world.submit(job(role("a", 2), role("b")))
    assert world.pods() == []
    world.enqueued()
    assert world.pods() == ["train-a-0", "train-a-1", "train-b-0"]


def test_v0_names_labels_and_annotations(world: World) -> None:
    made = world.submit(job(role("worker", 2), schedulerName="volcano"))
    world.enqueued()
    pod = world.pod("train-worker-1")
    assert pod["metadata"]["labels"] == {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
    }
    notes = pod["metadata"]["annotations"]
    assert notes["scheduling.k8s.io/group-name"] == f"train-{made['metadata']['uid']}"
    assert notes["volcano.sh/task-index"] == "1"
    assert notes["volcano.sh/job-version"] == "0"
    assert pod["metadata"]["ownerReferences"][0] == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert pod["spec"]["schedulerName"] == "volcano"


def test_v0_pods_of_a_role_share_their_spec(world: World) -> None:
    started(world, job(role("worker", 2)))
    first, second = (write.obj for write in world.written if isinstance(write, Create) and write.obj["kind"] == "Pod")
    assert first["spec"] is second["spec"]


def test_m5_status_counts_by_role(world: World) -> None:
    started(world, job(role("a", 3), role("b", 1)))
    world.turn("Running", "train-a-0", "train-a-1", "train-b-0")
    status = world.job()["status"]
    assert (status["pending"], status["running"], status["minAvailable"]) == (1, 3, 4)
    assert status["taskStatusCount"] == {
        "a": {"phase": {"Pending": 1, "Running": 2}},
        "b": {"phase": {"Running": 1}},
    }
    world.turn("Running", "train-a-2")
    assert world.job()["status"]["taskStatusCount"]["a"] == {"phase": {"Running": 3}}


def test_m5_running_from_the_minimum_on_until_it_ends(world: World) -> None:
    started(world, job(role("a", 3, 2)))
    assert world.phase() == "Pending"
    world.turn("Running", "train-a-0")
    assert world.phase() == "Pending"
    world.turn("Succeeded", "train-a-1")
    assert world.phase() == "Running"
    world.turn("Failed", "train-a-0")
    assert world.phase() == "Running"
    world.turn("Succeeded", "train-a-2")
    assert world.phase() == "Completed"


@pytest.mark.parametrize(
    "succeeded, phase",
    [
        (["a-0", "a-1", "b-0"], "Completed"),
        (["a-0", "a-1"], "Failed"),
        (["a-0", "b-0", "b-1"], "Failed"),
        ([], "Failed"),
    ],
)
def test_m5_completed_needs_every_roles_minimum(world: World, succeeded: list[str], phase: str) -> None:
    started(world, job(role("a", 3, 2), role("b", 2, 1)))
    for name in ("a-0", "a-1", "a-2", "b-0", "b-1"):
        world.turn("Succeeded" if name in succeeded else "Failed", f"train-{name}")
    assert world.phase() == phase


def test_m5_pending_again_when_too_many_wait(world: World) -> None:
    started(world, job(role("a", 3, 2)))
    world.turn("Running", "train-a-0", "train-a-1", "train-a-2")
    world.vanish("train-a-2")
    assert world.phase() == "Running"
    world.vanish("train-a-1")
    assert world.phase() == "Pending"
    world.turn("Running", "train-a-1")
    assert world.phase() == "Running"


def test_m5_a_job_scaled_to_nothing_keeps_its_phase(world: World) -> None:
    started(world, job(role("a", 2)))
    world.turn("Running", "train-a-0", "train-a-1")
    world.scale({"a": 0})
    world.vanish("train-a-0", "train-a-1")
    assert (world.pods(), world.phase()) == ([], "Running")


def test_m5_status_is_written_only_when_it_changes(world: World) -> None:
    started(world, job(role("a", 2)))
    world.store.patch(Ref("Pod", "default", "train-a-0"), {"metadata": {"labels": {"x": "y"}}})
    assert world.settle() == []


def test_v2_without_policy_a_failed_pod_stays_and_a_deleted_one_comes_back(world: World) -> None:
    started(world, job(role("a", 3)))
    world.turn("Running", "train-a-0", "train-a-1", "train-a-2")
    world.turn("Failed", "train-a-0")
    before = world.pod("train-a-1")["metadata"]["uid"]
    world.vanish("train-a-1")
    assert world.pod("train-a-0")["status"]["phase"] == "Failed"
    assert world.pod("train-a-1")["metadata"]["uid"] != before


def test_v2_no_replacement_while_a_pod_terminates(world: World) -> None:
    started(world, job(role("a", 2)))
    world.turn("Running", "train-a-0", "train-a-1")
    world.store.delete(Ref("Pod", "default", "train-a-0"))
    world.settle()
    assert world.job()["status"]["terminating"] == 1
    assert world.job()["status"]["running"] == 1
    world.vanish("train-a-0")
    assert world.job()["status"]["terminating"] == 0
    assert world.job()["status"]["pending"] == 1


def test_v2_a_finished_job_makes_no_pods(world: World) -> None:
    started(world, job(role("a", 2)))
    world.turn("Succeeded", "train-a-0", "train-a-1")
    world.vanish("train-a-0")
    assert world.pods() == ["train-a-1"]
    assert world.phase() == "Completed"


def test_v2_min_success_ends_the_job_and_what_still_runs(world: World) -> None:
    started(world, job(role("a", 3), minSuccess=1))
    world.turn("Running", "train-a-0", "train-a-1", "train-a-2")
    world.turn("Succeeded", "train-a-1")
    assert world.phase() == "Completed"
    assert {write.ref.name for write in world.written if isinstance(write, Delete)} == {"train-a-0", "train-a-2"}


def test_v2_ttl_deletes_the_job_at_the_instant(world: World) -> None:
    started(world, job(role("a"), ttlSecondsAfterFinished=30))
    world.turn("Succeeded", "train-a-0")
    assert world.controllers[0].due() == START + 30 * SECOND
    world.now = START + 30 * SECOND - 1
    assert world.settle() == []
    world.now += 1
    world.settle()
    assert world.store.get(volcano.JOB, "default", "train") is None
    assert world.controllers[0].due() is None


def test_m2_scaling_takes_the_highest_indexes_and_moves_the_minima(world: World) -> None:
    started(world, job(role("a", 3)))
    world.scale({"a": 5})
    assert world.pods() == [f"train-a-{index}" for index in range(5)]
    assert world.group()["spec"]["minMember"] == 5
    world.scale({"a": 2})
    deleted = [write.ref.name for write in world.written if isinstance(write, Delete)]
    assert deleted == ["train-a-4", "train-a-3", "train-a-2"]
    assert world.pods() == ["train-a-0", "train-a-1"]
    assert world.group()["spec"]["minTaskMember"] == {"a": 2}
    assert world.group()["spec"]["minResources"]["cpu"] == "2"


def test_a_deleted_job_takes_everything_with_it(world: World) -> None:
    started(world, job(role("a", 2)))
    world.store.delete(Ref(volcano.JOB, "default", "train"))
    world.store.collect_garbage()
    world.settle()
    assert world.pods() == []
    assert world.list(volcano.POD_GROUP) == []


def test_a_namesake_waits_for_the_names_of_its_pods(world: World) -> None:
    started(world, job(role("a")))
    world.turn("Running", "train-a-0")
    world.store.delete(Ref(volcano.JOB, "default", "train"))
    world.store.collect_garbage()
    world.settle()
    world.submit(job(role("a")))
    world.enqueued()
    old = world.pod("train-a-0")["metadata"]
    assert old["deletionTimestamp"]
    world.vanish("train-a-0")
    assert world.pod("train-a-0")["metadata"]["uid"] != old["uid"]


def quota(pods: int) -> Obj:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(pods)}}}


def test_refused_pods_are_tried_again_on_an_event_or_a_timer_but_not_at_once(world: World) -> None:
    world.store.create(quota(1))
    started(world, job(role("a", 3)))
    assert world.pods() == ["train-a-0"]
    assert world.settle() == []
    warnings = [write for write in world.written if isinstance(write, EmitEvent)]
    assert [(warning.type, warning.reason) for warning in warnings] == [("Warning", "FailedCreate")]
    first = world.controllers[0].due()
    assert first is not None
    assert first > world.now
    world.now = first
    world.settle()
    second = world.controllers[0].due()
    assert second is not None
    assert second - world.now > first - START
    world.store.patch(Ref("ResourceQuota", "default", "q"), {"spec": {"hard": {"pods": "3"}}})
    world.settle()
    assert world.pods() == ["train-a-0", "train-a-1", "train-a-2"]
    assert world.controllers[0].due() is None


@pytest.mark.parametrize("iteration, begins", [("any", True), ("all", False)])
def test_d2_pods_come_once_what_they_depend_on_runs(world: World, iteration: str, begins: bool) -> None:
    depends = {"name": ["a", "b"], "iteration": iteration}
    started(world, job(role("a", 2, 2), role("b"), role("c", dependsOn=depends)))
    assert world.pods() == ["train-a-0", "train-a-1", "train-b-0"]
    assert world.group()["metadata"]["annotations"]["dependent-job"] == "true"
    assert world.group()["spec"]["minResources"]["cpu"] == "3"
    world.turn("Running", "train-a-0")
    assert "train-c-0" not in world.pods()
    world.turn("Running", "train-a-1")
    assert ("train-c-0" in world.pods()) == begins
    world.turn("Running", "train-b-0")
    assert "train-c-0" in world.pods()
    assert world.group()["spec"]["minResources"]["cpu"] == "4"


def test_d2_running_but_not_ready_is_not_enough(world: World) -> None:
    started(world, job(role("a"), role("b", dependsOn={"name": ["a"]})))
    world.turn("Running", "train-a-0", conditions=[{"type": "Ready", "status": "False"}])
    assert world.pods() == ["train-a-0"]


def test_d3_a_wave_that_began_stays_begun(world: World) -> None:
    started(world, job(role("a"), role("b", dependsOn={"name": ["a"]})))
    world.turn("Running", "train-a-0")
    world.vanish("train-a-0", "train-b-0")
    assert world.pods() == ["train-a-0", "train-b-0"]


def test_i5_new_controllers_have_nothing_to_do(world: World) -> None:
    plugins: dict[str, list[str]] = {"env": [], "svc": [], "ssh": []}
    started(world, job(role("a", 2), role("b", dependsOn={"name": ["a"]}), plugins=plugins))
    world.turn("Running", "train-a-0", "train-a-1")
    world.turn("Failed", "train-b-0")
    world.restart()
    assert world.settle() == []


def env_of(pod: Obj) -> dict[str, Any]:
    env = pod["spec"]["containers"][0].get("env") or []
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in env}


def test_v3_env(world: World) -> None:
    started(world, job(role("a", 2), plugins={"env": []}))
    assert env_of(world.pod("train-a-1")) == {"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"}


def test_v3_svc(world: World) -> None:
    started(world, job(role("a", 2), role("big-one"), plugins={"svc": ["--publish-not-ready-addresses"]}))
    service = world.store.get("Service", "default", "train")
    assert service is not None
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    hosts = world.store.get("ConfigMap", "default", "train-svc")
    assert hosts is not None
    assert hosts["data"]["a.host"] == "train-a-0.train\ntrain-a-1.train"
    assert hosts["data"]["VC_BIG_ONE_NUM"] == "1"
    pod = world.pod("train-a-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("train-a-1", "train")
    assert env_of(pod)["VC_A_HOSTS"] == {"configMapKeyRef": {"name": "train-svc", "key": "VC_A_HOSTS"}}
    assert {"name": "train-svc", "mountPath": "/etc/volcano"} in pod["spec"]["containers"][0]["volumeMounts"]
    assert world.store.get("NetworkPolicy.networking.k8s.io", "default", "train") is not None


def test_v3_svc_hosts_follow_the_scale(world: World) -> None:
    started(world, job(role("a", 2), plugins={"svc": ["--disable-network-policy"]}))
    world.scale({"a": 3})
    hosts = world.store.get("ConfigMap", "default", "train-svc")
    assert hosts is not None
    assert hosts["data"]["VC_A_HOSTS"] == "train-a-0.train,train-a-1.train,train-a-2.train"
    assert world.pods() == ["train-a-0", "train-a-1", "train-a-2"]
    assert world.store.get("NetworkPolicy.networking.k8s.io", "default", "train") is None


def test_v3_ssh(world: World) -> None:
    started(world, job(role("a"), plugins={"ssh": []}))
    secret = world.store.get("Secret", "default", "train-ssh")
    assert secret is not None
    assert set(secret["data"]) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert world.pod("train-a-0")["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/root/.ssh"


def test_v3_pytorch(world: World) -> None:
    started(world, job(role("master"), role("worker", 2), plugins={"pytorch": ["--port=29500"]}))
    env = env_of(world.pod("train-worker-1"))
    assert {key: env[key] for key in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")} == {
        "MASTER_ADDR": "train-master-0.train",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "3",
        "RANK": "2",
    }
    assert world.store.get("Service", "default", "train") is not None


def test_v3_tensorflow(world: World) -> None:
    started(world, job(role("ps"), role("trainer", 2), plugins={"tensorflow": ["--worker=trainer"]}))
    assert env_of(world.pod("train-trainer-1"))["TF_CONFIG"] == (
        '{"cluster":{"ps":["train-ps-0.train:2222"],'
        '"worker":["train-trainer-0.train:2222","train-trainer-1.train:2222"]},'
        '"task":{"type":"worker","index":1}}'
    )


def test_v3_mpi(world: World) -> None:
    started(world, job(role("master"), role("worker", 2), plugins={"mpi": []}))
    assert env_of(world.pod("train-master-0"))["MPI_HOST"] == "train-worker-0.train,train-worker-1.train"
    assert "MPI_HOST" not in env_of(world.pod("train-worker-0"))
    assert world.store.get("Secret", "default", "train-ssh") is not None


def test_v3_ray(world: World) -> None:
    started(world, job(role("head"), role("worker"), plugins={"ray": []}))
    assert world.store.get("Service", "default", "train-head-svc") is not None
    assert env_of(world.pod("train-worker-0"))["RAY_ADDRESS"] == "train-head-0.train:6379"
    assert "--head" in world.pod("train-head-0")["spec"]["containers"][0]["command"][2]


def test_v3_volumes(world: World) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}, {"mountPath": "/old", "volumeClaimName": "mine"}]
    started(world, job(role("a"), volumes=volumes))
    assert world.store.get("PersistentVolumeClaim", "default", "train-volume-0") is not None
    spec = world.pod("train-a-0")["spec"]
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]]
    assert claims == ["train-volume-0", "mine"]
    assert [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]] == ["/data", "/old"]


def test_v3_a_real_key_pair_is_one() -> None:
    from enbloc.controllers.job_plugins import rsa_key_pair

    private, public = rsa_key_pair("uid")
    assert private.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert public.startswith("ssh-rsa ")


def test_k13_podgroup_phases_of_a_job(world: World) -> None:
    started(world, job(role("a", 2)))
    assert world.group()["status"]["phase"] == "Inqueue"
    world.turn("Running", "train-a-0", "train-a-1")
    assert world.group()["status"]["phase"] == "Running"
    world.turn("Succeeded", "train-a-0")
    assert world.group()["status"]["phase"] == "Running"
    world.turn("Succeeded", "train-a-1")
    assert world.group()["status"]["phase"] == "Completed"
    assert world.group()["status"]["succeeded"] == 2


def test_k13_unknown_when_members_fell_below_the_minimum(world: World) -> None:
    started(world, job(role("a", 2)))
    world.turn("Running", "train-a-0", "train-a-1")
    world.vanish("train-a-1")
    assert world.group()["status"]["phase"] == "Running"  # it may be replaced at once
    waits = {"type": "Unschedulable", "status": "True", "reason": "Unschedulable"}
    ref = world.ref(volcano.POD_GROUP, world.group()["metadata"]["name"])
    world.store.patch(ref, {"status": {"conditions": [waits]}}, "status")
    world.settle()
    assert world.group()["status"]["phase"] == "Unknown"
    world.turn("Running", "train-a-1")
    assert world.group()["status"]["phase"] == "Running"


def test_k13_the_scheduler_owns_the_conditions(world: World) -> None:
    started(world, job(role("a", 2)))
    patches = [
        write.patch for write in world.written if isinstance(write, Patch) and write.ref.kind == volcano.POD_GROUP
    ]
    assert patches
    assert all("conditions" not in patch["status"] for patch in patches)


def test_k13_a_bare_podgroup_is_completed_when_all_succeeded(world: World) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train-bare", "namespace": "default"},
        "spec": {"minMember": 1},
    }
    world.submit(group)
    world.enqueued()
    notes = {"scheduling.volcano.sh/group-name": "train-bare"}
    metadata = {"name": "p", "namespace": "default", "annotations": notes}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": role("x")["template"]["spec"]}
    world.submit(pod)
    world.turn("Running", "p")
    assert world.group()["status"]["phase"] == "Running"
    world.turn("Succeeded", "p")
    assert world.group()["status"]["phase"] == "Completed"


def test_v4_queue_counts_podgroups_by_phase(world: World) -> None:
    world.submit(job(role("a"), name="one"))
    started(world, job(role("a"), name="two"))
    queue = world.store.get(volcano.QUEUE, "", "default")
    assert queue is not None
    expected = {"state": "Open", "pending": 1, "inqueue": 1, "running": 0, "unknown": 0, "completed": 0}
    assert queue["status"] == expected


def test_v4_a_closed_queue_stays_closed_and_its_jobs_run_on(world: World) -> None:
    started(world, job(role("a", 2)))
    world.store.patch(Ref(volcano.QUEUE, "", "default"), {"status": {"state": "Closed"}}, "status")
    world.vanish("train-a-0")
    queue = world.store.get(volcano.QUEUE, "", "default")
    assert queue is not None
    assert queue["status"]["state"] == "Closed"
    assert world.pods() == ["train-a-0", "train-a-1"]
