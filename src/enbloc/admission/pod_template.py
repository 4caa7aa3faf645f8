"""Validation of a pod template as an API server validates pods (N2), so that a job whose pods could never be created is
refused when it is written.

Covers what manifests commonly get wrong: containers, ports, resources, mounts, tolerations, the restart policy. The API
server still validates each pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from enbloc.api.core import Container, ContainerPort, PodSpec, Toleration
from enbloc.api.meta import Fault, Quantities
from enbloc.units import NANO, format_amount, is_dns_label

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
MAX_PORT: Final = 65_535
TAINT_EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def template_faults(
    spec: PodSpec, raw: Mapping[str, Any], field: str, *, provided: frozenset[str] = frozenset(), strict: bool
) -> list[Fault]:
    """All faults of a template's pod spec. `raw` is the same as JSON; `provided`: volumes that a controller adds;
    `strict`: `omissions` are faults too."""
    faults: list[Fault] = []
    if not spec.containers:
        faults.append(Fault(f"{field}.containers", "a pod needs at least one container"))
    if spec.restart_policy not in RESTART_POLICIES:
        text = f"{spec.restart_policy!r} is none of {', '.join(RESTART_POLICIES)}"
        faults.append(Fault(f"{field}.restartPolicy", text))
    volumes = provided | {volume.name for volume in spec.volumes or ()}
    names: set[str] = set()
    for key, containers in (("initContainers", spec.init_containers or ()), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            path = f"{field}.{key}[{index}]"
            faults += _container_faults(container, path, names)
            faults += _mount_faults((raw.get(key) or ())[index], path, volumes)
    for index, toleration in enumerate(spec.tolerations or ()):
        faults += _toleration_faults(toleration, f"{field}.tolerations[{index}]")
    return [*faults, *omissions(spec, field)] if strict else faults


def omissions(spec: PodSpec, field: str) -> Iterator[Fault]:
    """What an API server demands and files in tests and simulations commonly leave out: images, limits of GPUs."""
    for key, containers in (("initContainers", spec.init_containers or ()), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            path = f"{field}.{key}[{index}]"
            if not container.image:
                yield Fault(f"{path}.image", "is missing: an API server refuses such pods")
            resources = container.resources
            limits = (resources.limits or {}) if resources else {}
            for name in (resources.requests or {}) if resources else {}:
                if _is_extended(name) and name not in limits:
                    text = "is missing: an API server refuses a request without a limit"
                    yield Fault(f"{path}.resources.limits.{name}", text)


def _container_faults(container: Container, field: str, names: set[str]) -> list[Fault]:
    faults = []
    if not is_dns_label(container.name):
        faults.append(Fault(f"{field}.name", f"{container.name!r} is not a valid container name: a-z, 0-9, -"))
    elif container.name in names:
        faults.append(Fault(f"{field}.name", f"{container.name!r} is the name of another container"))
    names.add(container.name)
    resources = container.resources
    if resources is not None:
        faults += _resource_faults(resources.requests or {}, resources.limits or {}, f"{field}.resources")
    faults += _port_faults(container.ports or (), f"{field}.ports")
    return faults


def _port_faults(ports: Sequence[ContainerPort], field: str) -> Iterator[Fault]:
    """A port of 0 is one that is not given; files may leave out the container's, which tells nothing here."""
    for index, port in enumerate(ports):
        for name, value in (("containerPort", port.container_port), ("hostPort", port.host_port)):
            if not 0 <= value <= MAX_PORT:
                yield Fault(f"{field}[{index}].{name}", f"{value} is not a port: 1 to {MAX_PORT}")
        if port.protocol not in PROTOCOLS:
            yield Fault(f"{field}[{index}].protocol", f"{port.protocol!r} is none of {', '.join(PROTOCOLS)}")


def _resource_faults(requests: Quantities, limits: Quantities, field: str) -> list[Fault]:
    faults = []
    for which, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            shown = format_amount(name, amount.nanos)
            if amount.nanos < 0:
                faults.append(Fault(f"{field}.{which}.{name}", f"{shown} is below 0"))
            elif _is_extended(name) and amount.nanos % NANO:
                faults.append(Fault(f"{field}.{which}.{name}", f"{shown} is not a whole number"))
    for name, amount in requests.items():
        limit = limits.get(name)
        shown = format_amount(name, amount.nanos)
        if limit is not None and amount.nanos > limit.nanos:
            text = f"{shown} is above the limit {format_amount(name, limit.nanos)}"
            faults.append(Fault(f"{field}.requests.{name}", text))
        elif limit is not None and _is_extended(name) and limit.nanos != amount.nanos:
            faults.append(Fault(f"{field}.requests.{name}", f"{shown} is not its limit, as it must be"))
    return faults


def _is_extended(resource: str) -> bool:
    """Extended resources (GPUs and the like) are whole and never overcommitted."""
    return "/" in resource and not resource.startswith("kubernetes.io/")


def _mount_faults(container: Mapping[str, Any], field: str, volumes: frozenset[str] | set[str]) -> list[Fault]:
    faults = []
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        path = f"{field}.volumeMounts[{index}]"
        if not isinstance(mount, dict):
            faults.append(Fault(path, "must be a mapping"))
            continue
        if mount.get("name") not in volumes:
            faults.append(Fault(f"{path}.name", f"there is no volume {mount.get('name')!r}"))
        if not mount.get("mountPath"):
            faults.append(Fault(f"{path}.mountPath", "is missing"))
    return faults


def _toleration_faults(toleration: Toleration, field: str) -> list[Fault]:
    faults = []
    operator = toleration.operator or "Equal"
    if operator not in ("Equal", "Exists"):
        faults.append(Fault(f"{field}.operator", f"{operator!r} is neither 'Equal' nor 'Exists'"))
    elif operator == "Exists" and toleration.value:
        faults.append(Fault(f"{field}.value", "must be empty with operator Exists"))
    elif operator == "Equal" and not toleration.key:
        faults.append(Fault(f"{field}.operator", "must be Exists where there is no key"))
    if toleration.effect not in TAINT_EFFECTS:
        text = f"{toleration.effect!r} is none of {', '.join(TAINT_EFFECTS[1:])}"
        faults.append(Fault(f"{field}.effect", text))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        faults.append(Fault(f"{field}.tolerationSeconds", "is for effect NoExecute only"))
    return faults
