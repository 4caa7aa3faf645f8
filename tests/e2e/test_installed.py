"""All components as `enbloc install` runs them: with its arguments, and with the rights of its accounts, no more."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.api import Json
from e2e.control_plane import ControlPlane
from e2e.history import History
from e2e.objects import PODS
from e2e.parts import Part
from e2e.running import ENBLOC, GROUPS, JOBS, SCHEDULING, install
from enbloc.install.rights import COMPONENTS, WEBHOOK

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def components(plane: ControlPlane) -> dict[str, Part]:
    return install(plane)


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, components: dict[str, Part]) -> ControlPlane:
    return plane


def job(name: str, replicas: int, **spec: Any) -> Json:
    template = {
        "metadata": {"annotations": {"sim.enbloc.dev/run-time": "2s"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [{"name": "worker", "replicas": replicas, "template": template}], **spec},
    }


def test_the_built_in_queues_come_by_themselves(installed: ControlPlane) -> None:
    for name in ("root", "default"):
        installed.api.wait(
            f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}",
            lambda queue: (queue.get("status") or {}).get("state") == "Open",
            within_s=60,
        )


def test_a_job_runs_from_its_manifest_to_its_end(installed: ControlPlane) -> None:
    plugins: Json = {"svc": [], "ssh": [], "env": []}
    for number in range(2):
        installed.add_node(f"n{number}", cpu="2")
    installed.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job("train", 3, plugins=plugins)))
    done = installed.api.wait(
        f"{JOBS}/train", lambda one: ((one.get("status") or {}).get("state") or {}).get("phase") == "Completed", 60
    )
    assert done["status"]["succeeded"] == 3
    shown = installed.kubectl("get", "vcjob", "train").splitlines()
    assert shown[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert shown[1].split()[:3] == ["train", "Completed", "3"]
    installed.api.wait("/api/v1/namespaces/default/events", lambda listed: "JobCompleted" in str(listed))
    assert "JobCompleted" in installed.kubectl("describe", "vcjob", "train")
    installed.api.wait("/api/v1/namespaces/default/events", lambda listed: "bound together" in str(listed))
    assert "3 pods bound together: n0 (" in installed.kubectl("describe", "pg")
    for path in ("secrets/train-ssh", "configmaps/train-svc", "services/train"):
        assert installed.api.get(f"/api/v1/namespaces/default/{path}").status == 200


def test_what_does_not_fit_says_why(installed: ControlPlane) -> None:
    installed.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job("giant", 1) | {"spec": _of_cpu("100")}))
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    installed.api.wait(groups, lambda listed: "the cluster has" in str(listed), 30)
    assert "the cluster has" in installed.kubectl("get", "pg", "-o", "wide")


def _of_cpu(amount: str) -> Json:
    spec: Json = job("x", 1)["spec"]
    spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": amount}}
    return spec


def test_what_people_ask_is_answered(installed: ControlPlane) -> None:
    """`enbloc gangs`, `queues`, `nodes` and `explain` of what the controllers and the scheduler wrote here."""

    def ask(*arguments: str) -> Any:
        command = [*ENBLOC, *arguments, "--kubeconfig", str(installed.kubeconfig), "-o", "json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    installed.api.create(JOBS, job("asked", 3))
    installed.api.create(JOBS, job("vast", 400))
    end = time.monotonic() + 20
    while not (reported := ask("explain", "default/vast"))["reason"]:
        assert time.monotonic() < end, reported
        time.sleep(0.5)
    assert reported["state"] == "Waiting"
    assert "not enqueued: requests 400 cpu" in reported["sentence"]
    assert reported["numbers"]["minResources"]["cpu"] == "400"
    assert reported["remedies"][0]["change"].startswith("lower minAvailable")
    assert {gang["gang"] for gang in ask("gangs")["gangs"]} >= {"default/asked", "default/vast"}
    assert {queue["queue"] for queue in ask("queues")["queues"]} >= {"default", "root"}
    assert all(node["resources"]["cpu"]["room"] for node in ask("nodes")["nodes"])
    installed.api.delete(f"{JOBS}/vast")


CLASSES = {"low": 10, "high": 1000}


def test_p1_a_gang_of_higher_priority_evicts_a_whole_gang_of_lower(installed: ControlPlane) -> None:
    """With the rights of our account, and past a budget that keeps another gang. Nobody is evicted in part."""
    api = installed.api
    for name, value in CLASSES.items():
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    for name in ("poor-0", "poor-1"):
        installed.add_node(name, labels={"pool": name}, cpu="2")

    def on(pool: str, obj: Json, priority: str) -> Json:
        obj["spec"]["priorityClassName"] = priority
        pod = obj["spec"]["tasks"][0]["template"]
        pod["metadata"] = {"labels": {"pool": pool}}
        pod["spec"] |= {"priorityClassName": priority, "terminationGracePeriodSeconds": 0}
        if pool != "any":
            pod["spec"]["nodeSelector"] = {"pool": pool}
        else:
            pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _poor()}}
        return obj

    budget = {
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"pool": "poor-0"}}},
    }
    api.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    with History(installed) as history:
        for pool in ("poor-0", "poor-1"):
            api.create(JOBS, on(pool, job(pool, 2), "low"))
            api.wait(f"{JOBS}/{pool}", lambda one: (one.get("status") or {}).get("running") == 2, 30)
        api.create(JOBS, on("any", job("vip", 2), "high"))
        api.wait(f"{JOBS}/vip", lambda one: (one.get("status") or {}).get("running") == 2, 30)
        marked = {
            event.name: one
            for event in history.events
            for one in event.pod["status"].get("conditions", [])
            if one["type"] == "DisruptionTarget"
        }
        assert marked.keys() == {"poor-1-worker-0", "poor-1-worker-1"}
        assert {one["reason"] for one in marked.values()} == {"Preempted"}
        assert {one.node for one in history.bound if one.name.startswith("vip")} == {"poor-1"}
    assert api.get(f"{JOBS}/poor-0").must()["status"]["running"] == 2
    installed.api.wait("/api/v1/namespaces/default/events", lambda listed: "Preempting" in str(listed))
    api.delete(f"{JOBS}/vip", {"propagationPolicy": "Background"})
    api.wait(f"{JOBS}/poor-1", lambda one: (one.get("status") or {}).get("running") == 2, 40)
    for name in ("poor-0", "poor-1"):
        api.delete(f"{JOBS}/{name}", {"propagationPolicy": "Background"})


def _poor() -> Json:
    match = {"key": "pool", "operator": "In", "values": ["poor-0", "poor-1"]}
    return {"nodeSelectorTerms": [{"matchExpressions": [match]}]}


def test_kubectl_shows_and_describes(installed: ControlPlane) -> None:
    """A manifest as Volcano's users write it, unchanged, and what an unmodified kubectl tells of it."""
    name = "shown"
    installed.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    for number in range(2):
        installed.add_node(f"shown-{number}", cpu="8")
    text = (EXAMPLES / "restart-policy.yaml").read_text()
    jobs = [one for one in yaml.safe_load_all(text) if one["kind"] == "Job"]
    assert jobs
    installed.kubectl("apply", "-n", name, "-f", "-", stdin=yaml.safe_dump_all(jobs))
    one = jobs[0]["metadata"]["name"]
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{name}/jobs/{one}"
    installed.api.wait(path, lambda job: ((job.get("status") or {}).get("state") or {}).get("phase") == "Running", 40)
    shown = installed.kubectl("get", "vcjob,podgroup.scheduling.volcano.sh,queue", "-n", name)
    tables = [table.splitlines() for table in shown.strip().split("\n\n")]
    heads = {rows[1].partition(".")[0]: rows[0].split() for rows in tables}
    assert heads["job"] == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert heads["podgroup"][:4] == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS"], heads["podgroup"]
    assert {"NAME", "WEIGHT", "STATE"} <= set(heads["queue"]), heads["queue"]
    assert "Running" in next(row for rows in tables for row in rows if row.startswith(f"job.batch.volcano.sh/{one} "))
    events = f"/api/v1/namespaces/{name}/events"
    installed.api.wait(events, lambda listed: "bound together" in str(listed))
    group = next(item for item in installed.api.items(events) if "bound together" in item["message"])
    reported = installed.kubectl(
        "describe", "podgroup.scheduling.volcano.sh", group["involvedObject"]["name"], "-n", name
    )
    assert "Scheduled" in reported
    assert "pods bound together: " in reported
    assert "Events:" in installed.kubectl("describe", "vcjob", one, "-n", name)
    assert "State:" in installed.kubectl("describe", "queue", "default")
    installed.api.delete(f"/api/v1/namespaces/{name}")


def test_without_the_webhook_what_runs_goes_on(installed: ControlPlane, components: dict[str, Part]) -> None:
    """Our kinds are refused, others' pods are not, and a job that runs is seen to its end."""
    api = installed.impatient_api(30)
    installed.add_node("calm", cpu="8")
    running = job("running", 3)
    running["spec"]["tasks"][0]["template"]["metadata"]["annotations"] = {"sim.enbloc.dev/run-time": "4s"}
    api.create(JOBS, running)
    api.wait(f"{JOBS}/running", lambda one: (one.get("status") or {}).get("running") == 3, 30)
    components[WEBHOOK].kill()
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {}}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    for path, obj in ((JOBS, job("unseen", 1)), (GROUPS, group), (f"{SCHEDULING}/queues", queue)):
        answer = api.request("POST", path, obj)
        assert answer.status == 500, answer
        assert "enbloc.dev" in answer.body["message"]
    for name, scheduler in (("others", "default-scheduler"), ("ours", "enbloc")):
        container = {"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    api.wait(f"{PODS}/ours", lambda pod: pod["spec"].get("nodeName"))
    done = api.wait(
        f"{JOBS}/running", lambda one: ((one.get("status") or {}).get("state") or {}).get("phase") == "Completed", 40
    )
    assert done["status"]["succeeded"] == 3
    components[WEBHOOK].restart()
    for _ in range(100):
        answer = api.request("POST", JOBS, job("seen", 1))
        if answer.status == 201:
            break
        time.sleep(0.1)
    answer.must()
    api.wait(f"{JOBS}/seen", lambda one: ((one.get("status") or {}).get("state") or {}).get("phase") == "Completed", 40)


def test_no_request_was_forbidden(installed: ControlPlane) -> None:
    for part in installed.parts:
        if part.name in COMPONENTS:
            text = part.tail(200_000)
            assert "forbidden" not in text.lower(), f"{part.name}: {text}"
            assert "Traceback" not in text, f"{part.name}: {text}"
