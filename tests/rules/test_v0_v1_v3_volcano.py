"""V0, V1, V3: pods, groups and plugin environments as Volcano's users know them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer
from support.simulation import lint, simulate


def pod_of(answer: Answer, name: str) -> Obj:
    return answer.obj("Pod", name)


def env(answer: Answer, name: str) -> dict[str, Any]:
    """A pod's environment, values or where they come from; looked up in ConfigMaps as a kubelet would."""
    found: dict[str, Any] = {}
    for entry in pod_of(answer, name)["spec"]["containers"][0].get("env", []):
        source = (entry.get("valueFrom") or {}).get("configMapKeyRef")
        found[entry["name"]] = (
            answer.obj("ConfigMap", source["name"])["data"][source["key"]] if source else entry["value"]
        )
    return found


# ---- V0


def test_v0_names_labels_and_annotations() -> None:
    answer = simulate(m.node("n", 8), m.queue("q"), m.job("train", m.role("ps", 1), m.role("worker", 2), queue="q"))
    assert answer.pods() == ["train-ps-0", "train-worker-0", "train-worker-1"]
    meta = pod_of(answer, "train-worker-1")["metadata"]
    labels = {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "q",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
    }
    assert labels.items() <= meta["labels"].items()
    group = answer.group_of("train")["metadata"]["name"]
    assert meta["annotations"]["scheduling.k8s.io/group-name"] == group
    assert meta["annotations"]["volcano.sh/task-spec"] == "worker"
    owner = meta["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "train", True)
    assert owner["uid"] == answer.obj("Job", "train")["metadata"]["uid"]


def test_v0_the_templates_own_labels_and_annotations_stay() -> None:
    mine = m.role("w", 1)
    mine["template"]["metadata"] = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    meta = pod_of(simulate(m.node("n"), m.job("j", mine)), "j-w-0")["metadata"]
    assert meta["labels"]["app"] == "x"
    assert meta["annotations"]["note"] == "y"


def test_v0_a_role_without_a_name_gets_one() -> None:
    nameless = m.role("", 1)
    del nameless["name"]
    answer = simulate(m.node("n"), m.job("j", nameless, {**nameless}))
    assert answer.pods() == ["j-default0-0", "j-default1-0"]


def test_v0_priority_class_and_scheduler_reach_the_pods() -> None:

    answer = simulate(m.priority_class("high", 7), m.node("n"), m.one_pod_job("j", priorityClassName="high"))
    spec = pod_of(answer, "j-w-0")["spec"]
    assert spec["schedulerName"] == "enbloc"
    assert spec["priorityClassName"] == "high"
    assert spec["priority"] == 7


def test_v0_unknown_fields_of_a_template_reach_the_pods() -> None:
    odd = m.role("w", 1)
    odd["template"]["spec"]["futureField"] = {"deep": [1, {"x": None}]}
    odd["template"]["spec"]["containers"][0]["securityContext"] = {"runAsUser": 7}
    spec = pod_of(simulate(m.node("n"), m.job("j", odd)), "j-w-0")["spec"]
    assert spec["futureField"]["deep"][0] == 1
    assert spec["containers"][0]["securityContext"] == {"runAsUser": 7}


# ---- V1


@pytest.mark.parametrize("key", ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"])
def test_v1_pods_join_a_group_by_annotation(key: str) -> None:
    members = [m.pod(f"p{index}", annotations={key: "g"}) for index in range(3)]
    answer = simulate(m.node("n", 2), m.podgroup("g", 3), members, m.node("late", 1, at="20s"))
    assert set(answer.first_bound().values()) == {20.0}
    assert len(answer.first_bound()) == 3


def test_v1_an_operator_may_name_volcano_as_its_scheduler() -> None:
    member = m.pod("p", group="g")
    member["spec"]["schedulerName"] = "volcano"
    made = m.one_pod_job("j")
    made["spec"]["schedulerName"] = "volcano"
    assert set(simulate(m.node("n"), m.podgroup("g", 1), member, made).first_bound()) == {"p", "j-w-0"}


def test_v1_pods_of_other_owners_are_left_alone() -> None:
    member = m.pod("p")
    member["spec"]["schedulerName"] = "another"
    answer = simulate(m.node("n"), member)
    assert not answer.first_bound()
    assert not answer.waiting()


def test_v1_a_spark_like_group_with_min_resources_waits_for_room() -> None:
    """The operator makes the group, then the pods; enqueue looks at `minResources`."""
    group = m.podgroup("spark", 1, minResources={"cpu": "3", "memory": "1Gi"}, at="1s")
    answer = simulate(
        m.node("n", 4),
        m.one_pod_job("takes", 4, run_time="20s"),
        group,
        m.pod("driver", group="spark", at="2s"),
    )
    assert answer.first_bound()["driver"] == 20.0
    lines = [(line["t"], line["to"]) for line in answer.lines("phase", "spark")]
    assert lines == [(1.0, "Pending"), (20.0, "Inqueue"), (20.0, "Running")]


def test_v1_pods_before_their_group_wait_for_it() -> None:
    answer = simulate(m.node("n"), m.pod("p", group="g"), m.podgroup("g", 1, at="10s"))
    assert answer.first_bound() == {"p": 10.0}
    answer = simulate(m.node("n"), m.pod("p", group="g"))
    assert "PodGroup" in answer.pending("default/g")["message"]


def test_v1_min_task_member_needs_each_role() -> None:
    group = m.podgroup("g", 2, minTaskMember={"a": 1, "b": 1})
    answer = simulate(
        m.node("n", 8),
        group,
        m.pod("p0", group="g", role="a"),
        m.pod("p1", group="g", role="a"),
        m.pod("p2", group="g", role="b", at="9s"),
    )
    assert set(answer.first_bound().values()) == {9.0}


def test_v1_a_groups_bad_numbers_are_refused() -> None:
    answer = simulate(m.node("n"), m.podgroup("g", -1, minTaskMember={"a": -2}))
    assert "spec.minMember" in answer.rejected("g")
    assert "spec.minTaskMember.a" in answer.rejected("g")


def test_v1_defaults_are_written_out() -> None:
    spec = lint(m.job("j", m.role("w", 2))).objects[-1]["spec"]
    assert spec["queue"] == "default"
    assert spec["maxRetry"] == 3
    assert spec["schedulerName"] == "enbloc"


# ---- V3


def test_v3_env() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2), m.role("b", 1), plugins={"env": []}))
    assert env(answer, "j-a-1") == {"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"}
    assert env(answer, "j-b-0")["VC_TASK_INDEX"] == "0"


def test_v3_svc() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("ps", 1), m.role("my-worker", 2), plugins={"svc": []}))
    found = env(answer, "j-ps-0")
    assert found["VC_PS_HOSTS"] == "j-ps-0.j"
    assert found["VC_PS_NUM"] == "1"
    assert found["VC_MY_WORKER_HOSTS"] == "j-my-worker-0.j,j-my-worker-1.j"
    assert found["VC_MY_WORKER_NUM"] == "2"
    spec = pod_of(answer, "j-my-worker-1")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("j-my-worker-1", "j")
    service = answer.obj("Service", "j")
    assert service["spec"]["clusterIP"] == "None"
    pod_labels = pod_of(answer, "j-ps-0")["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod_labels.items()
    hosts = answer.obj("ConfigMap", "j-svc")
    assert hosts["data"]["ps.host"] == "j-ps-0.j"
    assert hosts["metadata"]["ownerReferences"][0]["name"] == "j"
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/volcano"


def test_v3_svc_follows_scaling() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("w", 1), plugins={"svc": []}),
        m.patch("10s", "Job", "j", spec={"tasks": [m.role("w", 3)]}),
    )
    data = answer.obj("ConfigMap", "j-svc")["data"]
    assert data["VC_W_NUM"] == "3"
    assert data["w.host"].splitlines() == ["j-w-0.j", "j-w-1.j", "j-w-2.j"]


def test_v3_ssh() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("w", 2), plugins={"ssh": []}))
    secret = answer.obj("Secret", "j-ssh")
    assert set(secret["data"]) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert secret["data"]["id_rsa.pub"] == secret["data"]["authorized_keys"]
    assert "j-w-1" in base64.b64decode(secret["data"]["config"]).decode()
    mounts = pod_of(answer, "j-w-0")["spec"]["containers"][0]["volumeMounts"]
    assert any(mount["mountPath"] == "/root/.ssh" for mount in mounts)


def test_v3_pytorch() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("master", 1), m.role("worker", 2), plugins={"pytorch": []}))
    master, worker = env(answer, "j-master-0"), env(answer, "j-worker-1")
    assert (master["MASTER_ADDR"], master["MASTER_PORT"]) == ("j-master-0.j", "23456")
    assert (master["RANK"], master["WORLD_SIZE"]) == ("0", "3")
    assert (worker["RANK"], worker["WORLD_SIZE"], worker["MASTER_ADDR"]) == ("2", "3", "j-master-0.j")
    assert answer.obj("Service", "j"), "host names need the Service"


def test_v3_pytorch_with_flags() -> None:
    plugins = {"pytorch": ["--master=chief", "--worker=drone", "--port=29500"]}
    answer = simulate(m.node("n", 8), m.job("j", m.role("chief", 1), m.role("drone", 1), plugins=plugins))
    found = env(answer, "j-drone-0")
    assert (found["MASTER_ADDR"], found["MASTER_PORT"], found["RANK"]) == ("j-chief-0.j", "29500", "1")


def test_v3_tensorflow() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("ps", 1), m.role("worker", 2), plugins={"tensorflow": []}))
    config = json.loads(env(answer, "j-worker-1")["TF_CONFIG"])
    assert config["cluster"] == {"ps": ["j-ps-0.j:2222"], "worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"]}
    assert config["task"] == {"type": "worker", "index": 1}


def test_v3_mpi() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("master", 1), m.role("worker", 2), plugins={"mpi": []}))
    assert env(answer, "j-master-0")["MPI_HOST"] == "j-worker-0.j,j-worker-1.j"
    assert answer.obj("Secret", "j-ssh")
    assert answer.obj("Service", "j")


def test_v3_ray() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("head", 1), m.role("worker", 1), plugins={"ray": []}))
    assert env(answer, "j-worker-0")["RAY_ADDRESS"] == "j-head-0.j:6379"
    assert answer.obj("Service", "j-head-svc")
    assert "ray start --head" in " ".join(pod_of(answer, "j-head-0")["spec"]["containers"][0]["command"])


def test_v3_what_the_user_wrote_wins() -> None:
    mine = m.role("w", 1)
    mine["template"]["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "mine"}]
    answer = simulate(m.node("n"), m.job("j", mine, plugins={"env": []}))
    assert env(answer, "j-w-0")["VC_TASK_INDEX"] == "mine"


def test_v3_volumes_on_the_job() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    answer = simulate(
        m.node("n", 8),
        m.job(
            "j",
            m.role("w", 2),
            volumes=[{"mountPath": "/data", "volumeClaim": claim}, {"mountPath": "/in", "volumeClaimName": "given"}],
        ),
    )
    spec = pod_of(answer, "j-w-0")["spec"] if answer.pods() else None
    assert spec is not None
    claims = {volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]}
    assert "given" in claims
    assert len(claims) == 2
    (made,) = claims - {"given"}
    assert answer.obj("PersistentVolumeClaim", made)["metadata"]["ownerReferences"][0]["name"] == "j"
    assert {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]} == {"/data", "/in"}


def test_v3_plugin_objects_go_with_the_job() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("w", 1), plugins={"svc": [], "ssh": []}, delete_at="5s"))
    assert not [one for one in answer.objects if one["kind"] in ("ConfigMap", "Service", "Secret", "NetworkPolicy")]


def test_v3_runs_are_the_same_byte_for_byte() -> None:
    documents = (m.node("n", 8), m.job("j", m.role("w", 1), plugins={"svc": [], "ssh": [], "env": []}))
    assert simulate(*documents).objects == simulate(*documents).objects
