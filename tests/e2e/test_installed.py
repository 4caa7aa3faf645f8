"""All components as `enbloc install` runs them: with its arguments, and with the rights of its accounts, no more."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.api import Json
from e2e.control_plane import ControlPlane, free_port
from enbloc.install.rights import COMPONENTS, WEBHOOK

NAMESPACE = "enbloc-system"
ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
HOOKS = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> ControlPlane:
    text = subprocess.run([*ENBLOC, "install"], capture_output=True, text=True, check=True).stdout
    plane.kubectl("apply", "-f", "-", stdin=text)
    objects = list(yaml.safe_load_all(text))
    port = free_port()
    _lead_the_service_to(plane, port)
    config = plane.folder / "enbloc.yaml"
    (config_map,) = (one for one in objects if one["kind"] == "ConfigMap")
    config.write_text(config_map["data"]["enbloc.yaml"])
    for component in COMPONENTS:
        deployment = next(
            one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == f"enbloc-{component}"
        )
        _launch(plane, component, deployment, config, port)
    return plane


def _lead_the_service_to(plane: ControlPlane, port: int) -> None:
    """There is no Service network here: the webhook's Service stands for a name outside of the cluster, this machine's.
    The API server asks for the same certificate as ever."""
    outside = {
        "type": "ExternalName",
        "externalName": "localhost",
        "clusterIP": None,
        "clusterIPs": None,
        "ports": None,
    }
    plane.api.patch(f"/api/v1/namespaces/{NAMESPACE}/services/enbloc-webhook", {"spec": outside})
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        (hook,) = plane.api.get(f"{HOOKS}/{kind}/enbloc").must()["webhooks"]
        hook["clientConfig"]["service"]["port"] = port
        plane.api.patch(f"{HOOKS}/{kind}/enbloc", {"webhooks": [hook]})


def _launch(plane: ControlPlane, component: str, deployment: Json, config: Path, webhook_port: int) -> None:
    """The container's command, but for what differs between a pod and this machine: credentials, files and ports."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    token = plane.account_token(NAMESPACE, account)
    port = free_port()
    arguments = [one.replace("$(ENBLOC_NAMESPACE)", NAMESPACE) for one in container["args"]]
    own = ("--config=", "--bind-address=", "--port=")
    command: list[str | Path] = [
        *ENBLOC,
        *(one for one in arguments if not one.startswith(own)),
        f"--kubeconfig={plane.write_kubeconfig(account, plane.url, {'token': token})}",
        f"--config={config}",
        f"--port={port}",
    ]
    if component == WEBHOOK:
        command.append(f"--webhook-port={webhook_port}")

    def is_ready() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    plane.launch(component, command, ready=is_ready, env={"ENBLOC_NAMESPACE": NAMESPACE})


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
    installed.api.wait(groups, lambda listed: "whole cluster" in str(listed), 30)
    assert "whole cluster" in installed.kubectl("get", "pg", "-o", "wide")


def _of_cpu(amount: str) -> Json:
    spec: Json = job("x", 1)["spec"]
    spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": amount}}
    return spec


def test_nobody_was_forbidden_anything(installed: ControlPlane) -> None:
    for part in installed.parts:
        if part.name in COMPONENTS:
            text = part.tail(200_000)
            assert "forbidden" not in text.lower(), f"{part.name}: {text}"
            assert "Traceback" not in text, f"{part.name}: {text}"
