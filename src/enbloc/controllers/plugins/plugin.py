"""The protocol of a job plugin, the flags users give it, and the host names that several of them use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from enbloc.api.meta import Obj, controller_reference
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.pod_patch import PodPatch


class Plugin(Protocol):
    def objects(self, plan: JobPlan) -> list[Obj]:
        """The objects that the job needs before its pods; all owned by it."""
        ...

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
    metadata = {"name": name, "namespace": plan.namespace, "ownerReferences": [controller_reference(plan.obj)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
