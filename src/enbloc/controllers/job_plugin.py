"""What job plugins are made of: their protocol, users' flags, the job's host names, and what they add to a pod.

Additions to a pod are collected first and applied once, so that unchanged templates stay shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from enbloc.api.meta import Obj, owned_metadata
from enbloc.controllers.job_roles import JobPlan, Role


class Plugin(Protocol):
    def objects(self, plan: JobPlan) -> list[Obj]:
        """Returns the objects that the job needs before its pods; all owned by it."""
        return []

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        """Adds to `patch` what this pod gets."""
        ...


class Flags:
    """`--name=value`, `--name value` and `--name`, with one dash or two. Unknown ones are ignored."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._values: dict[str, str] = {}
        name = ""
        for argument in arguments:
            if argument.startswith("-"):
                name, equals, value = argument.lstrip("-").partition("=")
                self._values[name] = value if equals else "true"
            elif name:
                self._values[name] = argument

    def text(self, name: str, default: str) -> str:
        return self._values.get(name) or default

    def number(self, name: str, default: int) -> int:
        value = self._values.get(name, "")
        return int(value) if value.isascii() and value.isdecimal() else default

    def on(self, name: str) -> bool:
        return self._values.get(name, "false").lower() in ("true", "1", "t")


def host_of(plan: JobPlan, role: Role, index: int) -> str:
    """The name by which the other pods of the job reach this one."""
    spec = role.template["spec"]
    host = spec.get("hostname") or f"{plan.name}-{role.name}-{index}"
    return f"{host}.{spec.get('subdomain') or plan.name}"


def hosts_of(plan: JobPlan, role: Role | None) -> list[str]:
    return [host_of(plan, role, index) for index in range(role.replicas)] if role else []


def env_name(role: str) -> str:
    """A role's name inside the name of an environment variable."""
    return role.upper().replace("-", "_")


def owned(plan: JobPlan, api_version: str, kind: str, name: str, **body: Any) -> Obj:
    """An object owned by the job."""
    return {"apiVersion": api_version, "kind": kind, "metadata": owned_metadata(plan.obj, name), **body}


class PodPatch:
    """Additions to one pod. What the user wrote wins over an addition of the same name."""

    def __init__(self) -> None:
        self.env: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}
        self.labels: dict[str, str] = {}
        self.ports: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] = []
        self.mounts: list[dict[str, Any]] = []
        self.command: list[str] | None = None

    def set_env(self, name: str, value: str) -> None:
        """An environment variable for every container."""
        self.env.append({"name": name, "value": value})

    def set_env_from(self, name: str, config_map: str) -> None:
        """An environment variable read from the key of that name in a ConfigMap."""
        self.env.append({"name": name, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": name}}})

    def port(self, name: str, number: int) -> None:
        self.ports.append({"name": name, "containerPort": number, "protocol": "TCP"})

    def volume(self, volume: dict[str, Any], mount_path: str, **mount: Any) -> None:
        self.volumes.append(volume)
        self.mounts.append({"name": volume["name"], "mountPath": mount_path, **mount})


def patched(spec: dict[str, Any], patch: PodPatch) -> dict[str, Any]:
    """The spec with the additions; the very same object if there are none."""
    changed: dict[str, Any] = {key: value for key, value in patch.fields.items() if not spec.get(key)}
    if patch.volumes:
        changed["volumes"] = _joined(spec.get("volumes"), patch.volumes, "name")
    if patch.env or patch.mounts or patch.ports or patch.command:
        first, *rest = spec["containers"]
        containers = [_container(first, patch, command=patch.command, ports=patch.ports)]
        changed["containers"] = containers + [_container(container, patch) for container in rest]
    if spec.get("initContainers") and (patch.env or patch.mounts):
        changed["initContainers"] = [_container(container, patch) for container in spec["initContainers"]]
    return spec | changed if changed else spec


def _container(
    container: dict[str, Any],
    patch: PodPatch,
    *,
    command: list[str] | None = None,
    ports: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if patch.env:
        changed["env"] = _joined(container.get("env"), patch.env, "name")
    if patch.mounts:
        changed["volumeMounts"] = _joined(container.get("volumeMounts"), patch.mounts, "mountPath")
    if ports:
        changed["ports"] = _joined(container.get("ports"), ports, "containerPort")
    if command and not container.get("command") and not container.get("args"):
        changed["command"] = command
    return container | changed


def _joined(own: list[dict[str, Any]] | None, added: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    taken = {item.get(key) for item in own or ()}
    return [*(own or ()), *(item for item in added if item[key] not in taken)]
