"""What a pod asks for, computed from its plain JSON: effective requests or limits, and its class of service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.units import parse_quantity

Amounts = dict[str, int]
"""Resource -> nano-units."""


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of all containers."""
    asked = guaranteed = False
    every = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    unequal = False
    for container in every:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = _nanos(requests.get(name)), _nanos(limits.get(name))
            asked = asked or bool(request or limit)
            unequal = unequal or not limit or request != limit
    guaranteed = asked and not unequal
    return "Guaranteed" if guaranteed else "Burstable" if asked else "BestEffort"


def _nanos(quantity: Any) -> int:
    return parse_quantity(quantity).nanos if quantity is not None else 0


def pod_amounts(spec: Mapping[str, Any], which: str = "requests") -> Amounts:
    """The pod's effective requests: containers plus sidecars, or the largest init container if more; plus overhead."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, which))
    inits = spec.get("initContainers")
    if inits:
        sidecars: Amounts = {}
        peak: Amounts = {}
        for container in inits:
            needs = _amounts(container, which)
            if container.get("restartPolicy") == "Always":
                _add(total, needs)
                _add(sidecars, needs)
                needs = dict(sidecars)
            else:
                _add(needs, sidecars)
            _raise_to(peak, needs)
        _raise_to(total, peak)
    of_pod = (spec.get("resources") or {}).get(which)
    if of_pod:
        total.update({name: _nanos(value) for name, value in of_pod.items()})
    overhead = spec.get("overhead")
    if overhead:
        for name, value in overhead.items():
            if which == "requests" or total.get(name):  # overhead adds to a limit, it does not create one
                total[name] = total.get(name, 0) + _nanos(value)
    return total


def _amounts(container: dict[str, Any], which: str) -> Amounts:
    amounts = (container.get("resources") or {}).get(which) or {}
    return {name: parse_quantity(value).nanos for name, value in amounts.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, nanos in least.items():
        if nanos > total.get(name, 0):
            total[name] = nanos
