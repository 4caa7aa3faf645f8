"""What a newcomer types first: an unmodified kubectl and ordinary workloads against `enbloc up`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.http.test_kubectl import KUBECTL
from up.test_up import up

pytestmark = pytest.mark.skipif(
    KUBECTL is None and not os.environ.get("CI"), reason="there is no kubectl; `make e2e` builds one"
)
WITHIN = "--timeout=60s"


class Kubectl:
    def __init__(self, kubeconfig: str, home: Path) -> None:
        self._environment = {"KUBECONFIG": kubeconfig, "HOME": str(home), "PATH": os.environ["PATH"]}

    def __call__(self, *arguments: str, given: str = "") -> str:
        assert KUBECTL is not None, "CI needs a kubectl"
        command = [KUBECTL, *arguments]
        done = subprocess.run(command, env=self._environment, input=given, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def names(self, *arguments: str) -> list[str]:
        return self("get", *arguments, "-o", "name").split()


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    with up(tmp_path, "--nodes", "3") as (_, lines):
        yield Kubectl(lines[-1].partition("=")[2], tmp_path)


def test_a_deployment_is_created_scaled_rolled_back_and_deleted(kubectl: Kubectl) -> None:
    assert kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2") == "deployment.apps/web created\n"
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=4", "deployment/web", WITHIN)
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
    assert len(kubectl.names("rs")) == 2
    kubectl("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
    assert len(kubectl.names("rs")) == 2, "the first template has its ReplicaSet back"
    assert [line.split()[0] for line in kubectl("rollout", "history", "deployment/web").splitlines()[2:-1]] == [
        "2",
        "3",
    ]
    kubectl("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
    images = {pod["spec"]["containers"][0]["image"] for pod in kubectl.json("get", "pods", "-l", "app=web")["items"]}
    assert images == {"nginx:1"}
    assert kubectl("get", "deployment").splitlines()[1].split()[:4] == ["web", "4/4", "4", "4"]
    assert "ScalingReplicaSet" in kubectl("describe", "deployment", "web")
    kubectl("delete", "deployment", "web", "--cascade=foreground", WITHIN)
    assert kubectl.names("deployment,rs,pods") == []


def test_a_pod_a_job_and_a_cron_job_are_run(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=busybox")
    kubectl("wait", "--for=condition=Ready", "pod/one", WITHIN)
    kubectl("create", "job", "hello", "--image=busybox", "--", "echo", "hello")
    kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=@yearly", "--", "date")
    kubectl("create", "job", "now", "--from=cronjob/tick")
    kubectl("wait", "--for=condition=complete", "job/hello", "job/now", WITHIN)
    assert kubectl("get", "job", "hello").splitlines()[1].split()[:3] == ["hello", "Complete", "1/1"]
    assert kubectl("get", "cronjob").splitlines()[1].split()[:3] == ["tick", "@yearly", "<none>"]
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in kubectl("describe", "job", "hello")
    kubectl("delete", "pod/one", "job/hello", "cronjob/tick", WITHIN)
    kubectl("wait", "--for=delete", "job/now", WITHIN)
    assert kubectl.names("pods,jobs,cronjobs") == []


SETS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "db:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "agent:1"}]}
"""


def test_stateful_and_daemon_sets_roll_and_roll_back(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=SETS)
    for name, old in (("statefulset/db", "db:1"), ("daemonset/agent", "agent:1")):
        kubectl("rollout", "status", name, WITHIN)
        kubectl("set", "image", name, "main=other:2")
        kubectl("rollout", "status", name, WITHIN)
        assert kubectl.json("get", name)["spec"]["template"]["spec"]["containers"][0]["image"] == "other:2"
        kubectl("rollout", "undo", name)
        kubectl("rollout", "status", name, WITHIN)
        app = name.partition("/")[2]
        pods = kubectl.json("get", "pods", "-l", f"app={app}")["items"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {old}
    assert kubectl.names("pods", "-l", "app=db") == ["pod/db-0", "pod/db-1"]
    assert len(kubectl.names("pods", "-l", "app=agent")) == 3


def test_an_autoscaler_of_kubectl_is_stored_as_v2(kubectl: Kubectl) -> None:
    """kubectl writes it as autoscaling/v1, in protobuf."""
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")
    spec = kubectl.json("get", "hpa", "web")["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}


def test_kinds_that_nothing_acts_on_are_served_for_managers(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    kubectl("create", "clusterrole", "all", "--verb=*", "--resource=*")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("autoscale", "deployment", "web", "--min=1", "--max=3")
    listed = "roles,rolebindings,clusterroles,hpa,resourceclaims,deviceclasses,resourceslices,workloads,ingresses"
    assert len(kubectl.names(listed)) == 4


def test_g10_describe_tells_what_happened_to_a_gang(kubectl: Kubectl) -> None:
    def job(name: str, cpu: int) -> str:
        return (
            f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: {name}}}\n"
            "spec: {schedulerName: enbloc, tasks: [{name: w, replicas: 2, template: {spec: {containers: "
            f'[{{name: c, image: busybox, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}}}]}}'
        )

    kubectl("apply", "-f", "-", given=job("runs", 2))
    kubectl("wait", "--for=condition=Ready", "pod/runs-w-0", "pod/runs-w-1", WITHIN)
    assert "assigned default/runs-w-0 to" in kubectl("describe", "pod", "runs-w-0")
    described = kubectl("describe", "vcjob", "runs")
    assert "Enqueued" in described
    assert "2 pods bound together" in described
    kubectl("apply", "-f", "-", given=job("waits", 100))
    kubectl("wait", "--for=create", "podgroup", "--all", WITHIN)
    for _ in range(100):
        described = kubectl("describe", "vcjob", "waits")
        if "Warning" in described:
            break
    assert "Warning" in described
    assert "cpu" in described
