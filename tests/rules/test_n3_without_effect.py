"""N3: objects without effect are listed by `sim` and `lint`, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import lint, simulate


def foreign_kind(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": m.metadata("idle"), "spec": {}}


def of_another_scheduler(obj: dict[str, Any]) -> dict[str, Any]:
    obj["spec"]["schedulerName"] = "another"
    return obj


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (foreign_kind("v1", "ReplicationController"), "no controller here acts on ReplicationController:"),
        (
            foreign_kind("autoscaling/v2", "HorizontalPodAutoscaler"),
            "no controller here acts on HorizontalPodAutoscaler of autoscaling",
        ),
        (foreign_kind("nodeinfo.volcano.sh/v1alpha1", "Numatopology"), "no controller here acts on Numatopology"),
        (foreign_kind("flow.volcano.sh/v1alpha1", "JobFlow"), "no controller here acts on JobFlow"),
        (of_another_scheduler(m.pod("idle")), "spec.schedulerName another is not ours: use enbloc"),
        (of_another_scheduler(m.job("idle", m.role("w", 1))), "spec.schedulerName another is not ours: use enbloc"),
    ],
)
def test_n3_an_object_without_effect_is_listed_with_the_reason(obj: dict[str, Any], words: str) -> None:
    [found] = simulate(m.node("n"), m.pod("p"), obj).data["without_effect"]
    assert (found["kind"], found["namespace"], found["name"]) == (obj["kind"], "default", "idle")
    assert found["reason"].startswith(words)
    [warning] = lint(m.node("n"), m.pod("p"), obj).warnings
    assert warning.name == "idle"
    assert words.partition(":")[0].rpartition(" ")[2] in warning.message


def test_n3_a_queue_of_kai_says_which_queue_is_read_instead() -> None:
    theirs = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}, "spec": {}}
    pod = m.pod("p", scheduler="kai-scheduler", labels={"kai.scheduler/queue": "team"})
    answer = simulate(m.node("n"), theirs, pod)
    [found] = answer.data["without_effect"]
    assert found["reason"] == (
        "Queue of scheduling.run.ai is not read: gangs of this queue wait until a Queue of scheduling.volcano.sh is"
        " named team"
    )
    assert [one["gang"] for one in answer.data["pending"]] == ["default/p"]
    answer = simulate(m.node("n"), theirs, m.queue("team"), pod)
    assert answer.data["pending"] == []


def test_n3_the_way_out_names_the_preset() -> None:
    answer = simulate(m.node("n"), m.pod("p", scheduler="volcano"), config={"compat": ["kai"]})
    assert "--compat volcano" in answer.data["without_effect"][0]["reason"]


def test_n3_what_has_an_effect_is_not_listed() -> None:
    owner = m.crdjob()
    pods = m.owned(m.pod("p"))
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": m.metadata("c"), "data": {}}
    foreign = m.pod("assigned", scheduler="another", nodeName="n")
    found = [m.node("n"), m.queue("q"), m.CRDJOB_DEFINITION, owner, *pods, m.scheduling_spec(), config_map, foreign]
    assert simulate(found).data["without_effect"] == []
    assert not [one for one in lint(found).warnings if "no effect" in one.message]


def test_n3_the_former_group_of_a_kind_names_the_present_one() -> None:
    former = foreign_kind("scheduling.incubator.k8s.io/v1alpha1", "PodGroup")
    del former["metadata"]["namespace"]  # it lives where its namesakes do
    [found] = simulate(m.node("n"), m.pod("p"), former).data["without_effect"]
    assert found["namespace"] == "default"
    assert "PodGroup is acted on in " in found["reason"]
    assert "scheduling.volcano.sh/v1beta1" in found["reason"]


def workload(kind: str, template: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}], **template}}
    spec: dict[str, Any] = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": m.metadata("w"), "spec": spec}
    spec["selector"] = {"matchLabels": labels}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": m.metadata("w"), "spec": spec}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "Job", "CronJob"])
def test_n3_a_template_of_another_scheduler_is_warned_of(kind: str) -> None:
    """`sim` lists its pods as without effect; `lint` and the API warn of the template that makes them."""
    [warning] = lint(workload(kind, {"schedulerName": "another"})).warnings
    assert warning.field.endswith("template.spec.schedulerName")
    assert "'another' is not ours: its pods are not scheduled here; use enbloc" in warning.message
    assert not lint(workload(kind, {})).warnings  # kube-scheduler's are ours where no other scheduler runs (G1)
    [warning] = lint(workload(kind, {}), config={"compat": ["volcano"]}).warnings
    assert "'default-scheduler' is not ours (kube-scheduler's)" in warning.message


def test_n3_a_role_of_another_scheduler_is_warned_of() -> None:
    job = m.job("j", m.role("w", 1, schedulerName="another"))
    [warning] = lint(job).warnings
    assert warning.field == "spec.tasks[0].template.spec.schedulerName"
    answer = simulate(m.node("n"), job)
    assert "another scheduler: another" in answer.why("default/j")
