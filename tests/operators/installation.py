"""An operator on a cluster: what its project's manifests say, with its program as a process of this machine.

A manifest is rendered by kubectl from the kustomization in the module's archive. Everything of it is applied but the
Deployment, whose place the process takes, and the Services: they lead to this machine. What a pod would find mounted is
written to files: the certificate of the webhook, the config file.
"""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from e2e.api import Json
from e2e.control_plane import ControlPlane, free_port
from e2e.parts import Part
from operators import programs

READY_S = 120
LEFT_OUT = ("Deployment", "Service", "APIService", "NetworkPolicy")
CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Below the folder for temporary files: where controller-runtime looks for a webhook's certificate."""
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Ports(NamedTuple):
    webhook: int
    health: int
    metrics: int


class Operator(NamedTuple):
    """How one operator is started."""

    name: str
    kustomizations: tuple[str, ...]
    """Folders of the archive that are applied."""
    namespace: str
    arguments: Callable[[Ports, Path], list[str]]
    """Its flags; the path is a folder of its own."""
    config: Callable[[Ports, Path], Json] | None = None
    """Its config file, which it gets as `--config`."""
    service: str = ""
    """The Service of its webhook; empty if it has none."""
    makes_certificate: bool = False
    """Whether it makes its certificate itself, into a Secret of its manifest."""
    fixed_certificates: Path | None = None
    """Where it looks for that one, if the place cannot be chosen."""
    health: str = "/readyz"
    health_port: int = 0
    """Where it says that it is healthy, if the port cannot be chosen."""
    of: str = ""
    """The operator whose program and manifest it uses, if its own name is another."""

    @property
    def program(self) -> str:
        return self.of or self.name


class Installed(NamedTuple):
    part: Part
    operator: Operator

    def revive(self) -> None:
        """As its Deployment would: MPI operator ends when it could not renew its lease for 5 s, which happens on a busy
        machine."""
        if self.part.pid is None:
            self.part.start()


def rendered(plane: ControlPlane, operator: Operator) -> list[Json]:
    """The objects of the operator's own manifest."""
    found: list[Json] = []
    root = programs.archive(operator.program)
    for folder in operator.kustomizations:
        text = plane.kubectl("kustomize", str(root / folder), timeout_s=180)  # minutes on a busy machine
        found += [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]  # megabytes of schemas
    return found


def install(plane: ControlPlane, operator: Operator, program: Path) -> Installed:
    """The operator is ready when this returns."""
    folder = plane.folder / operator.name
    folder.mkdir(exist_ok=True)
    ports = Ports(free_port(), free_port(), free_port())
    objects = rendered(plane, operator)
    _apply(plane, _namespaces([operator.namespace]))
    authority = plane.authority.certificate.read_bytes()
    kept = [one for one in objects if one["kind"] not in (*LEFT_OUT, *HOOKS)]
    _make_way(plane, kept)
    _apply(plane, [_with_conversion(one, operator, ports, authority) for one in kept])
    _wait_established(plane, objects)
    if operator.service:
        _apply(plane, [_service(operator)])
        if not operator.makes_certificate:
            hosts = [f"{operator.service}.{operator.namespace}.svc"]
            pair = plane.authority.server(operator.name, hosts)
            _write_certificate(folder / CERTIFICATES, pair.certificate.read_bytes(), pair.key.read_bytes())
    hooks = [_pointed(one, operator, ports, authority) for one in objects if one["kind"] in HOOKS]
    if operator.fixed_certificates is not None:
        shutil.rmtree(operator.fixed_certificates, ignore_errors=True)  # of an earlier run
    if operator.makes_certificate:
        _apply(plane, hooks)  # it fills in the authority that it makes
    (folder / "kubeconfig").write_bytes(plane.kubeconfig.read_bytes())
    command: list[str | Path] = [program, *operator.arguments(ports, folder)]
    if operator.config is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(operator.config(ports, folder)))
        command.append(f"--config={folder / 'config.yaml'}")
    env = {"KUBECONFIG": str(plane.kubeconfig), "HOME": str(folder), "POD_NAMESPACE": operator.namespace}
    env |= {"MY_POD_NAMESPACE": operator.namespace, "NAMESPACE": operator.namespace, "TMPDIR": str(folder)}
    _wait_free(operator)
    part = plane.launch(operator.name, command, env=env)
    if operator.makes_certificate:
        _mount_certificate(plane, operator)
    part.wait_ready(READY_S)
    _wait_healthy(part, operator.health_port or ports.health, operator.health)
    if not operator.makes_certificate:
        _apply(plane, hooks)  # only now: a webhook that does not answer would refuse the operator's own objects
    return Installed(part, operator)


def remove(plane: ControlPlane, installed: Installed) -> None:
    """Ends the process and takes its webhooks away; definitions stay."""
    for one in rendered(plane, installed.operator):
        if one["kind"] in HOOKS:
            plane.kubectl("delete", one["kind"].lower(), one["metadata"]["name"], "--ignore-not-found", check=False)
    installed.part.kill()


def _apply(plane: ControlPlane, objects: Iterable[Json]) -> None:
    found = list(objects)
    if not found:
        return
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text, timeout_s=180)


def _namespaces(names: Iterable[str]) -> list[Json]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]


def _service(operator: Operator) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": operator.service, "namespace": operator.namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _pointed(hooks: Json, operator: Operator, ports: Ports, authority: bytes) -> Json:
    for hook in hooks["webhooks"]:
        _point(hook["clientConfig"], operator, ports, authority)
        hook["timeoutSeconds"] = 30  # the machine may be busy
    return hooks


def _make_way(plane: ControlPlane, objects: Iterable[Json]) -> None:
    """Removes definitions that an operator before has left and that cannot become this one's: training-operator and MPI
    operator both define MPIJob, in versions that the other does not know."""
    for one in objects:
        if one["kind"] == "CustomResourceDefinition":
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}"
            found = plane.api.request("GET", path)
            stored = (found.body.get("status") or {}).get("storedVersions") or [] if found.status == 200 else []
            if set(stored) - {version["name"] for version in one["spec"]["versions"]}:
                plane.kubectl("delete", "crd", one["metadata"]["name"])


def _with_conversion(obj: Json, operator: Operator, ports: Ports, authority: bytes) -> Json:
    """A definition whose versions a webhook converts calls the process, too."""
    client = (obj.get("spec") or {}).get("conversion", {}).get("webhook", {}).get("clientConfig")
    if obj["kind"] == "CustomResourceDefinition" and client:
        _point(client, operator, ports, authority)
    return obj


def _point(client: Json, operator: Operator, ports: Ports, authority: bytes) -> None:
    client["service"] |= {"name": operator.service, "namespace": operator.namespace, "port": ports.webhook}
    client["caBundle"] = base64.b64encode(authority).decode()


def _wait_established(plane: ControlPlane, objects: Iterable[Json]) -> None:
    for one in objects:
        if one["kind"] == "CustomResourceDefinition":
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}"
            plane.api.wait(path, _is_established, 60)


def _is_established(found: Json) -> bool:
    conditions: list[Any] = (found.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _write_certificate(folder: Path, certificate: bytes, key: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tls.key").write_bytes(key)
    (folder / "tls.crt").write_bytes(certificate)


def _mount_certificate(plane: ControlPlane, operator: Operator) -> None:
    """As a kubelet does: the Secret that the operator has filled becomes files."""
    (secret,) = [one for one in rendered(plane, operator) if one["kind"] == "Secret"]
    path = f"/api/v1/namespaces/{operator.namespace}/secrets/{secret['metadata']['name']}"
    data = plane.api.wait(path, lambda one: (one.get("data") or {}).get("tls.crt"), READY_S)["data"]
    for folder in (plane.folder / operator.name / CERTIFICATES, operator.fixed_certificates):  # it waits for the last
        if folder is not None:
            _write_certificate(folder, base64.b64decode(data["tls.crt"]), base64.b64decode(data["tls.key"]))


def _wait_free(operator: Operator) -> None:
    """A port that cannot be chosen may still be used by another program: the operator would end at once."""
    end = time.monotonic() + READY_S
    while operator.health_port and _is_used(operator.health_port):
        assert time.monotonic() < end, f"{operator.name} needs port {operator.health_port}, which another program uses"
        time.sleep(0.2)


def _is_used(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_healthy(part: Part, port: int, path: str) -> None:
    end = time.monotonic() + READY_S
    while path and not _answers(port, path):
        assert part.pid is not None, f"{part.name} ended: {part.tail(4_000)}"
        assert time.monotonic() < end, f"{part.name} does not become ready: {part.tail(4_000)}"
        time.sleep(0.2)


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
