"""Enbloc on a real node: its image, installed as docs/install.md says, starts a gang of real containers.

One story, told by tests in this order: installed, used, a leader lost, upgraded, removed, and once more with Helm.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from e2e.api import Json
from e2e.control_plane import free_port
from e2e.running import BATCH, ENBLOC, JOBS, NAMESPACE, SCHEDULING, answers, phase_of
from enbloc.install.manifests import USER_ID
from enbloc.install.rights import COMPONENTS, LEADS, lease_of
from enbloc.version import __version__
from node.images import BUSYBOX
from node.machine import NAME, Machine

IMAGE = f"localhost/enbloc:{__version__}"
NEXT = "localhost/enbloc:next"
WITHIN_S = 240
"""A loaded machine takes its time for six Python processes and their first list of everything."""
PODS = "/api/v1/namespaces/default/pods"
OWN_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def job(name: str, replicas: int, script: str, cpu: str = "50m", **spec: object) -> Json:
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [{"name": "worker", "replicas": replicas, "template": template}], **spec},
    }


def install(machine: Machine, *options: str) -> str:
    """`enbloc install … | kubectl apply …`, with the options of the page."""
    environment = {**os.environ, "KUBECONFIG": str(machine.plane.kubeconfig)}
    done = subprocess.run([*ENBLOC, "install", *options], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    machine.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=done.stdout)
    return done.stdout


def wait_rolled_out(machine: Machine) -> None:
    for component in COMPONENTS:
        machine.plane.kubectl(
            *("rollout", "status", f"deployment/enbloc-{component}", "-n", NAMESPACE, f"--timeout={WITHIN_S}s"),
            timeout_s=WITHIN_S + 10,
        )


def component_pods(machine: Machine) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {component: [] for component in COMPONENTS}
    for pod in machine.plane.api.items(OWN_PODS):
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        if component in found and not pod["metadata"].get("deletionTimestamp"):
            found[component].append(pod)
    return found


def run_gang(machine: Machine, name: str, replicas: int = 3) -> list[str]:
    """What each container of a gang printed; the job is Completed."""
    script = "echo I am $HOSTNAME as $(id -u); cat /etc/volcano/worker.host"
    machine.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job(name, replicas, script, plugins={"svc": []})))
    machine.plane.api.wait(f"{JOBS}/{name}", lambda one: phase_of(one) == "Completed", WITHIN_S)
    return [machine.plane.kubectl("logs", f"{name}-worker-{index}") for index in range(replicas)]


def wait_until(machine: Machine, path: str, holds: Callable[[Json], object]) -> Json:
    return machine.plane.api.wait(path, holds, WITHIN_S)


def test_scheduler_controllers_and_webhook_run_as_pods(machine: Machine) -> None:
    install(machine, "--image", IMAGE)
    wait_rolled_out(machine)
    for component, pods in component_pods(machine).items():
        assert len(pods) == 2
        for pod in pods:
            assert pod["spec"]["serviceAccountName"] == f"enbloc-{component}"
            (container,) = pod["status"]["containerStatuses"]
            assert (container["ready"], container["restartCount"]) == (True, 0)
        user = machine.plane.kubectl("exec", "-n", NAMESPACE, pods[0]["metadata"]["name"], "--", "/usr/bin/id", "-u")
        assert user.strip() == str(USER_ID)


def test_probes_and_metrics_answer_on_the_pods_own_addresses(machine: Machine) -> None:
    for component, pods in component_pods(machine).items():
        for path, wanted in (("healthz", "ok"), ("readyz", "ok"), ("metrics", "# TYPE")):
            raw = f"{OWN_PODS}/{pods[0]['metadata']['name']}:8080/proxy/{path}"
            assert wanted in machine.plane.kubectl("get", "--raw", raw), (component, path)


def test_the_built_in_queues_came_through_the_webhook(machine: Machine) -> None:
    for name in ("root", "default"):
        wait_until(
            machine, f"{SCHEDULING}/queues/{name}", lambda queue: (queue.get("status") or {}).get("state") == "Open"
        )


def test_the_webhook_answers_over_its_service(machine: Machine) -> None:
    """It refuses what no schema could, and fills in what is left out."""
    stray = job("stray", 2, "true", queue="nowhere")
    said = machine.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(stray), check=False, with_errors=True)
    assert "nowhere" in said
    assert machine.plane.api.get(f"{JOBS}/stray").status == 404
    machine.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job("mutated", 2, "true")))
    assert machine.plane.api.get(f"{JOBS}/mutated").must()["spec"]["minAvailable"] == 2
    machine.plane.kubectl("delete", "vcjob", "mutated")


def test_a_gang_of_real_containers_runs_to_its_end(machine: Machine) -> None:
    printed = run_gang(machine, "train")
    for index, text in enumerate(printed):
        assert f"I am train-worker-{index} as {USER_ID}" in text
        assert "train-worker-0.train" in text  # of the ConfigMap of the plugin `svc`, which the kubelet mounted
    pods = [one for one in machine.plane.api.items(PODS) if one["metadata"]["name"].startswith("train-")]
    assert {one["spec"]["nodeName"] for one in pods} == {NAME}
    assert {one["spec"]["schedulerName"] for one in pods} == {"enbloc"}
    together = "3 pods bound together"
    listed = wait_until(  # Events are the last of what is written
        machine,
        "/api/v1/namespaces/default/events",
        lambda listed: any(
            together in one["message"] for one in listed["items"] if one["involvedObject"]["kind"] == "PodGroup"
        ),
    )
    group = next(
        one["involvedObject"]["name"]
        for one in listed["items"]
        if one["involvedObject"]["kind"] == "PodGroup" and together in one["message"]
    )  # by name: of several objects kubectl describes no events
    assert together in machine.plane.kubectl("describe", "podgroup.scheduling.volcano.sh", group)


def test_g2_of_a_gang_that_does_not_fit_no_container_starts(machine: Machine) -> None:
    (node,) = machine.plane.api.items("/api/v1/nodes")
    cores = int(node["status"]["allocatable"]["cpu"])
    # Two would fit beside Enbloc's own pods, all of them would not.
    obj = job("wide", 2 * cores, "true", cpu="500m")
    machine.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(obj))
    groups = f"{SCHEDULING}/namespaces/default/podgroups"
    wait_until(machine, groups, lambda listed: "Insufficient cpu" in str(listed) or "not enqueued" in str(listed))
    pods = [one for one in machine.plane.api.items(PODS) if one["metadata"]["name"].startswith("wide-")]
    assert [one["metadata"]["name"] for one in pods if one["spec"].get("nodeName")] == []
    machine.plane.kubectl("delete", "vcjob", "wide")


def holder_of(machine: Machine, component: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{lease_of(component)}"
    return str(machine.plane.api.get(path).must()["spec"].get("holderIdentity") or "")


def test_a_standby_takes_over_when_the_leader_goes(machine: Machine) -> None:
    leader = next(
        pod["metadata"]["name"]
        for pod in component_pods(machine)["scheduler"]
        if pod["metadata"]["name"] in holder_of(machine, "scheduler")
    )
    machine.plane.kubectl("delete", "pod", "-n", NAMESPACE, leader, "--wait=false")
    assert len(run_gang(machine, "after-leader")) == 3
    assert leader not in holder_of(machine, "scheduler")


def test_certificates_are_made_anew_when_their_secret_is_emptied(machine: Machine) -> None:
    """As docs/install.md says."""
    plane, secret = machine.plane, f"/api/v1/namespaces/{NAMESPACE}/secrets/enbloc-webhook-certificates"
    before = plane.api.get(secret).must()["data"]["ca.crt"]
    patch = '[{"op": "remove", "path": "/data"}]'
    plane.kubectl("-n", NAMESPACE, "patch", "secret", "enbloc-webhook-certificates", "--type=json", "-p", patch)
    plane.kubectl("-n", NAMESPACE, "rollout", "restart", "deployment/enbloc-webhook")
    wait_rolled_out(machine)
    after = wait_until(machine, secret, lambda found: (found.get("data") or {}).get("ca.crt"))["data"]["ca.crt"]
    assert after != before
    # Until the API server has heard of the new authority, jobs are refused.
    until = time.monotonic() + WITHIN_S
    probe = yaml.safe_dump(job("probe", 1, "true"))
    while plane.api.get(f"{JOBS}/probe").status == 404:
        assert time.monotonic() < until
        plane.kubectl("apply", "-f", "-", stdin=probe, check=False)
        time.sleep(1)
    assert len(run_gang(machine, "after-certificates")) == 3


def test_the_dashboard_is_seen_through_a_forwarded_port(machine: Machine) -> None:
    plane = machine.plane
    install(machine, "--image", IMAGE, "--dashboard")
    plane.kubectl(
        *("rollout", "status", "deployment/enbloc-dashboard", "-n", NAMESPACE, f"--timeout={WITHIN_S}s"),
        timeout_s=WITHIN_S + 10,
    )
    said = plane.kubectl("-n", NAMESPACE, "logs", "deployment/enbloc-dashboard")
    (token,) = re.findall(r"until this process ends: (\S+)", said)[-1:]
    port = free_port()
    forward = plane.launch(
        "port-forward",
        [
            *(machine.programs["kubectl"], f"--kubeconfig={plane.kubeconfig}", "-n", NAMESPACE),
            *("port-forward", "deployment/enbloc-dashboard", f"{port}:8080"),
        ],
        ready=lambda: answers(port, "/healthz"),
    )
    for given, wanted in ((token, 200), ("wrong-token-of-some-length", 401)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/model", headers={"Authorization": f"Bearer {given}"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == wanted
        if wanted == 200:
            assert [node["node"] for node in json.loads(text)["nodes"]] == [NAME]
    plane.forget(forward)


def test_an_upgrade_leaves_running_gangs_alone_and_starts_new_ones(machine: Machine, tmp_path: Path) -> None:
    plane = machine.plane
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job("steady", 2, "sleep 3600")))
    wait_until(machine, f"{JOBS}/steady", lambda one: (one.get("status") or {}).get("running") == 2)
    before = {one["metadata"]["uid"] for one in plane.api.items(PODS) if one["metadata"]["name"].startswith("steady-")}
    certificates = f"/api/v1/namespaces/{NAMESPACE}/secrets/enbloc-webhook-certificates"
    authority = plane.api.get(certificates).must()["data"]["ca.crt"]
    machine.ctr("images", "tag", IMAGE, NEXT)
    config = tmp_path / "enbloc.yaml"
    config.write_text("schedulerNames: [enbloc, kar-scheduler, volcano]\n")
    install(machine, "--image", NEXT, "--config", str(config), "--dashboard")
    wait_rolled_out(machine)
    wait_until(machine, OWN_PODS, lambda listed: {_image(one) for one in listed["items"]} == {NEXT})
    printed = run_gang(machine, "after-upgrade")
    assert len(printed) == 3
    steady = [one for one in plane.api.items(PODS) if one["metadata"]["name"].startswith("steady-")]
    assert {one["metadata"]["uid"] for one in steady} == before
    assert {one["status"]["containerStatuses"][0]["restartCount"] for one in steady} == {0}
    assert plane.api.get(certificates).must()["data"]["ca.crt"] == authority
    names = {pod["metadata"]["name"] for pods in component_pods(machine).values() for pod in pods}
    for component in LEADS:
        assert any(name in holder_of(machine, component) for name in names), component
    for pods in component_pods(machine).values():
        for pod in pods:
            said = plane.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"])
            assert "Traceback" not in said
            assert "forbidden" not in said.lower()


def _image(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def test_removal_leaves_nothing(machine: Machine) -> None:
    plane = machine.plane
    plane.kubectl("delete", "vcjob", "--all", timeout_s=WITHIN_S)
    command = [*ENBLOC, "install", "--no-merge", "--dashboard"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text, timeout_s=WITHIN_S)
    assert plane.kubectl("get", "-f", "-", "--ignore-not-found", "-o", "name", stdin=_known(text)) == ""
    plane.api.wait_gone(f"/api/v1/namespaces/{NAMESPACE}", WITHIN_S)
    for path in (f"{BATCH}/jobs", f"{SCHEDULING}/queues"):
        plane.api.wait_gone(path, WITHIN_S)
    wait_until(machine, "/api/v1/pods", lambda listed: listed["items"] == [])


def _known(text: str) -> str:
    """Without objects in the namespace, which is gone: kubectl would ask for each."""
    return yaml.safe_dump_all(one for one in yaml.safe_load_all(text) if "namespace" not in one["metadata"])


def test_the_chart_installs_and_removes_the_same(machine: Machine, tmp_path: Path) -> None:
    plane = machine.plane
    helm = str(machine.programs["helm"])
    if not Path(helm).is_file():
        pytest.skip("helm is not built: `make helm` does it")
    chart = tmp_path / "chart"
    subprocess.run([*ENBLOC, "install", "--chart", str(chart)], check=True, timeout=120)
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        done = subprocess.run([helm, *words], capture_output=True, text=True, env=environment, timeout=WITHIN_S + 30)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    run(
        *("install", "enbloc", str(chart), "--namespace", NAMESPACE, "--create-namespace"),
        *("--set", f"image={IMAGE}", "--set", "replicas=1", "--wait", f"--timeout={WITHIN_S}s"),
    )
    test_the_built_in_queues_came_through_the_webhook(machine)
    assert len(run_gang(machine, "by-chart")) == 3
    releases = json.loads(run("list", "--namespace", NAMESPACE, "-o", "json"))
    assert [(one["name"], one["status"]) for one in releases] == [("enbloc", "deployed")]
    run("uninstall", "enbloc", "--namespace", NAMESPACE, "--wait", f"--timeout={WITHIN_S}s")
    assert plane.api.get(f"{JOBS}/by-chart").status == 200  # the definitions and the users' objects stay
    wait_until(machine, OWN_PODS, lambda listed: listed["items"] == [])


@pytest.fixture(autouse=True)
def _nothing_is_lost(machine: Machine) -> None:
    """A part that ended by itself is a fault of its own, and the first to know."""
    assert [part.name for part in machine.plane.parts if part.pid is None] == []
