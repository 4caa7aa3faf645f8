"""Enbloc on the control plane of a test: as it was installed, or bare; and gangs for it.

Bare is: our definitions and the built-in queues, no webhook, and processes with all rights. That is enough for tests of
what the scheduler and the controllers survive, and it is there in seconds.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from e2e.api import Json
from e2e.control_plane import ControlPlane, free_port
from e2e.objects import PODS
from e2e.parts import Part
from enbloc.api.kinds import KINDS
from enbloc.api.topology import TREE_KINDS
from enbloc.install.rights import COMPONENTS, WEBHOOK

NAMESPACE = "enbloc-system"
ENBLOC = (sys.executable, "-c", "from enbloc.cli.main import main; main()")
SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
BATCH = "/apis/batch.volcano.sh/v1alpha1"
GROUPS = f"{SCHEDULING}/namespaces/default/podgroups"
JOBS = f"{BATCH}/namespaces/default/jobs"
HOOKS = "/apis/admissionregistration.k8s.io/v1"


def manifest() -> list[Json]:
    """What `enbloc install` prints."""
    text = subprocess.run([*ENBLOC, "install"], capture_output=True, text=True, check=True).stdout
    return list(yaml.safe_load_all(text))


# ---- bare


def define(plane: ControlPlane) -> None:
    """Our kinds and the built-in queues, and no webhook."""
    definitions = [one for one in manifest() if one["kind"] == "CustomResourceDefinition"]
    plane.apply(*definitions)
    for one in definitions:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}"
        plane.api.wait(path, _is_established)
    for name in ("root", "default"):
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
        until = time.monotonic() + 20
        while plane.api.request("POST", f"{SCHEDULING}/queues", queue).status not in (201, 409):
            assert time.monotonic() < until, "queues are not served"
            time.sleep(0.1)


def define_trees(plane: ControlPlane) -> None:
    """The kinds of other projects that describe where nodes are, without a schema: `install` leaves them to these."""
    for kind in (KINDS[name] for name in sorted(TREE_KINDS)):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": kind.versions[0], "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {
            "kind": kind.name,
            "plural": kind.plural,
            "singular": kind.name.lower(),
            "listKind": f"{kind.name}List",
        }
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.plural}.{kind.group}"},
            "spec": {
                "group": kind.group,
                "names": names,
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "versions": [version],
            },
        }
        plane.apply(definition)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.plural}.{kind.group}"
        plane.api.wait(path, _is_established)


def _is_established(found: Json) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def arguments(kubeconfig: Path, port: int = 0, components: str = "scheduler,controllers", *more: str) -> list[str]:
    return ["run", f"--kubeconfig={kubeconfig}", f"--components={components}", f"--port={port}", *more]


def run(
    plane: ControlPlane,
    name: str,
    kubeconfig: Path | None = None,
    components: str = "scheduler,controllers",
    *more: str,
    program: Sequence[str] = ENBLOC,
    env: dict[str, str] | None = None,
) -> Part:
    """`enbloc run` as one more part; it is ready when this returns."""
    port = free_port()
    words = [*program, *arguments(kubeconfig or plane.kubeconfig, port, components, *more)]
    return plane.launch(name, words, ready=lambda: answers(port, "/readyz"), env=env)


def answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


# ---- installed


def install(plane: ControlPlane) -> dict[str, Part]:
    """All components as `enbloc install` runs them: with its arguments, and with the rights of its accounts."""
    objects = manifest()
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    port = free_port()
    _lead_the_service_to(plane, port)
    config = plane.folder / "enbloc.yaml"
    (config_map,) = (one for one in objects if one["kind"] == "ConfigMap")
    config.write_text(config_map["data"]["enbloc.yaml"])
    found = {}
    for component in COMPONENTS:
        deployment = next(
            one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == f"enbloc-{component}"
        )
        found[component] = _launch(plane, component, deployment, config, port)
    for name in ("root", "default"):
        plane.api.wait(
            f"{SCHEDULING}/queues/{name}", lambda queue: (queue.get("status") or {}).get("state") == "Open", 60
        )
    return found


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
        hooks = plane.api.get(f"{HOOKS}/{kind}/enbloc").must()["webhooks"]
        for hook in hooks:
            hook["clientConfig"]["service"]["port"] = port
        plane.api.patch(f"{HOOKS}/{kind}/enbloc", {"webhooks": hooks})


def _launch(plane: ControlPlane, component: str, deployment: Json, config: Path, webhook_port: int) -> Part:
    """The container's command, but for what differs between a pod and this machine: credentials, files and ports."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    token = plane.account_token(NAMESPACE, account)
    port = free_port()
    words = [one.replace("$(ENBLOC_NAMESPACE)", NAMESPACE) for one in container["args"]]
    own = ("--config=", "--bind-address=", "--port=")
    command: list[str | Path] = [
        *ENBLOC,
        *(one for one in words if not one.startswith(own)),
        f"--kubeconfig={plane.write_kubeconfig(account, plane.url, {'token': token})}",
        f"--config={config}",
        f"--port={port}",
    ]
    if component == WEBHOOK:
        command.append(f"--webhook-port={webhook_port}")
    env = {"ENBLOC_NAMESPACE": NAMESPACE}
    return plane.launch(component, command, ready=lambda: answers(port, "/readyz"), env=env)


# ---- gangs


def member(gang: str, index: int, cpu: str = "1", run_time: str | None = "1s", **spec: Any) -> Json:
    notes = {"scheduling.k8s.io/group-name": gang}
    if run_time is not None:
        notes["sim.enbloc.dev/run-time"] = run_time
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{gang}-{index}", "annotations": notes, "labels": {"gang": gang}},
        "spec": {
            "schedulerName": "enbloc",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
    }


def group(name: str, minimum: int, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum, **spec},
    }


def make_gang(plane: ControlPlane, name: str, size: int, cpu: str = "1", run_time: str | None = "1s") -> None:
    plane.api.create(GROUPS, group(name, size))
    for index in range(size):
        plane.api.create(PODS, member(name, index, cpu, run_time))


def job(
    name: str,
    replicas: int,
    run_time: str | None = "2s",
    cpu: str = "1",
    start_delay: str | None = None,
    **spec: Any,
) -> Json:
    """With all that admission would fill in, so that it may do without."""
    notes = {"sim.enbloc.dev/run-time": run_time} if run_time is not None else {}
    if start_delay is not None:
        notes["sim.enbloc.dev/start-delay"] = start_delay
    template = {
        "metadata": {"annotations": notes},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    role = {"name": "worker", "replicas": replicas, "minAvailable": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queue": "default",
            "schedulerName": "enbloc",
            "minAvailable": replicas,
            "maxRetry": 3,
            "tasks": [role],
            **spec,
        },
    }


def phase_of(job: Json) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def wait_completed(plane: ControlPlane, names: Iterable[str], within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    for name in names:
        plane.api.wait(f"{JOBS}/{name}", lambda one: phase_of(one) == "Completed", max(0.1, until - time.monotonic()))


def clear(plane: ControlPlane) -> None:
    """Takes away what tests made, and waits until it is gone."""
    for path in (JOBS, PODS, GROUPS):
        plane.api.delete(f"{path}?gracePeriodSeconds=0", {"propagationPolicy": "Background"})
    plane.api.delete("/api/v1/nodes")
    for path in (JOBS, PODS, GROUPS, "/api/v1/nodes"):
        plane.api.wait(path, lambda listed: not listed["items"], 30)
