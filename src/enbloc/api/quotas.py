"""A ResourceQuota as far as pods are concerned: what it limits, which pods it covers, what a pod takes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from enbloc.api.meta import Obj, name_of
from enbloc.api.pod_amounts import Amounts, pod_amounts, qos_class
from enbloc.units import NANO, format_bytes, format_quantity, parse_quantity

RESOURCE_QUOTA: Final = "ResourceQuota"
Scope = tuple[str, str, list[str]]
"""Scope, operator, values."""


class Quota(msgspec.Struct, frozen=True):
    """One quota, decoded."""

    name: str
    hard: Amounts
    used: Amounts
    """As its status says."""
    scopes: list[Scope]

    def covers(self, spec: Mapping[str, Any]) -> bool:
        """Whether a pod with this spec matches every scope of the quota."""
        return all(_in_scope(spec, *scope) for scope in self.scopes)

    def charge(self, spec: Mapping[str, Any]) -> Amounts:
        """What a pod with this spec takes of it; nothing if the quota does not cover it."""
        if not self.covers(spec):
            return self.charge_of_ended()
        return {key: nanos for key, nanos in pod_use(spec).items() if key in self.hard}

    def charge_of_ended(self) -> Amounts:
        """What a pod that has ended, or that the quota does not cover, still takes of it."""
        return {"count/pods": NANO} if "count/pods" in self.hard and not self.scopes else {}

    def over(self, charge: Mapping[str, int], used: Mapping[str, int]) -> str:
        """How a charge would exceed it, beside what is used, as an API server words it; empty: it would not."""
        over = sorted(key for key, nanos in charge.items() if nanos and used.get(key, 0) + nanos > self.hard[key])
        if not over:
            return ""
        shown = [
            ",".join(f"{key}={format_amount(key, amounts.get(key, 0))}" for key in over)
            for amounts in (charge, used, self.hard)
        ]
        return f"quota: {self.name}, requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}"


def quota_of(obj: Obj) -> Quota:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return Quota(name_of(obj), _nanos(spec.get("hard")), _nanos(status.get("used")), _scopes(spec))


def _nanos(amounts: Any) -> Amounts:
    return {key: parse_quantity(value).nanos for key, value in (amounts or {}).items()}


def pod_use(spec: Mapping[str, Any]) -> Amounts:
    """What a pod takes of a quota that covers it, by each name that a quota may limit."""
    use = {"pods": NANO, "count/pods": NANO}
    for name, nanos in pod_amounts(spec, "requests").items():
        use[f"requests.{name}"] = nanos
        use[name] = nanos
    for name, nanos in pod_amounts(spec, "limits").items():
        use[f"limits.{name}"] = nanos
    return use


def least_use(spec: Mapping[str, Any]) -> Amounts:
    """What a pod that will be created from this spec takes at least: a limit without a request is both, and no limit is
    below its request."""
    limits, use = pod_amounts(spec, "limits"), pod_use(spec)
    for name in limits.keys() | pod_amounts(spec).keys():
        amount = use.setdefault(f"requests.{name}", limits.get(name, 0))
        use.setdefault(name, amount)
        use[f"limits.{name}"] = max(amount, limits.get(name, 0))
    return use


def _scopes(spec: Mapping[str, Any]) -> list[Scope]:
    """From `scopes` and from `scopeSelector`."""
    scopes: list[Scope] = [(scope, "Exists", []) for scope in spec.get("scopes") or ()]
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions")
    for expression in expressions if isinstance(expressions, list) else ():
        if isinstance(expression, dict):
            values = expression.get("values")
            listed = values if isinstance(values, list) else []
            scopes.append((str(expression.get("scopeName")), str(expression.get("operator")), listed))
    return scopes


def _in_scope(spec: Mapping[str, Any], scope: str, operator: str, values: list[str]) -> bool:
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in _terms(spec))
        case "PriorityClass":
            name = spec.get("priorityClassName") or ""
            match operator:
                case "In":
                    return name in values
                case "NotIn":
                    return name not in values
                case "Exists":
                    return bool(name)
                case "DoesNotExist":
                    return not name
    return False


def _terms(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The terms of pod affinity and anti-affinity, required and preferred."""
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for one in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield one.get("podAffinityTerm") or {}


def format_amount(key: str, nanos: int) -> str:
    if ("memory" in key or "storage" in key) and nanos % NANO == 0:
        return format_bytes(nanos // NANO)
    return format_quantity(nanos)
