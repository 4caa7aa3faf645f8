"""The resource requests of a pod, computed from its spec as Kubernetes does (G6)."""

from __future__ import annotations

from enbloc.api.core import Container, PodSpec, ResourceRequirements


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """Resource → nano-units: containers and sidecars together, or the largest init container, plus overhead."""
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        wanted = container_requests(container)
        if container.restart_policy == "Always":  # a sidecar: starts here and stays
            _add(running, wanted)
            _raise_to(peak, running)
        else:
            _raise_to(peak, _sum(running, wanted))
    for container in spec.containers:
        _add(running, container_requests(container))
    _raise_to(peak, running)
    _apply_pod_level(peak, spec.resources)
    for name, overhead in (spec.overhead or {}).items():
        peak[name] = peak.get(name, 0) + overhead.nanos
    return {name: nanos for name, nanos in peak.items() if nanos > 0}


def _apply_pod_level(peak: dict[str, int], resources: ResourceRequirements | None) -> None:
    """Requests of the pod as a whole replace its containers'. A limit without a request counts as
    both only where no container requests it, as the API server defaults it."""
    if resources is None:
        return
    for name, quantity in (resources.limits or {}).items():
        if _is_pod_level(name):
            peak.setdefault(name, quantity.nanos)
    for name, quantity in (resources.requests or {}).items():
        if _is_pod_level(name):
            peak[name] = quantity.nanos


def _is_pod_level(resource: str) -> bool:
    """Whether Kubernetes reads this resource at pod level."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def container_requests(container: Container) -> dict[str, int]:
    """Resource → nano-units of one container."""
    return _requests_or_limits(container.resources)


def _requests_or_limits(resources: ResourceRequirements | None) -> dict[str, int]:
    """A limit without a request is both, as the API server defaults it."""
    if resources is None:
        return {}
    wanted = {name: quantity.nanos for name, quantity in (resources.limits or {}).items()}
    wanted.update((name, quantity.nanos) for name, quantity in (resources.requests or {}).items())
    return wanted


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    total = dict(one)
    _add(total, other)
    return total


def _raise_to(peak: dict[str, int], level: dict[str, int]) -> None:
    for name, nanos in level.items():
        if nanos > peak.get(name, 0):
            peak[name] = nanos
