"""ResourceQuota: the limits of a namespace and how much of them is used.

Usage is updated change by change, never recounted, so that a pod costs the same in a namespace of ten and of a hundred
thousand. Admission refuses what would exceed a quota; `settle` writes usage to the quotas' status, once for many
changes. Finished pods use nothing. Other kinds are counted as `count/RESOURCE` (and by the older plain names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api import pods
from enbloc.units import NANO, format_bytes, format_quantity, parse_quantity

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.admission import Operation
    from enbloc.cluster.embedded.api.store import Store

QUOTA = "ResourceQuota"
_MUST_SPECIFY = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_OLD_COUNTS = (  # counted by their plain names too
    "services",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "resourcequotas",
    "replicationcontrollers",
)


class _Tracked:
    """One quota, decoded, with its usage."""

    __slots__ = ("hard", "name", "selector", "used")

    def __init__(self, quota: Obj) -> None:
        spec = quota.get("spec") or {}
        self.name: str = quota["metadata"]["name"]
        self.hard = {key: parse_quantity(value).nanos for key, value in (spec.get("hard") or {}).items()}
        self.selector = _scopes(spec)
        self.used: pods.Amounts = dict.fromkeys(self.hard, 0)

    def covers(self, pod: Obj) -> bool:
        """Whether the pod matches every scope of the quota."""
        return all(_in_scope(pod, *scope) for scope in self.selector)

    def charge(self, kind: str, resource: str, obj: Obj) -> pods.Amounts:
        """What this object uses of this quota; nothing if it is outside its scopes."""
        if kind == pods.POD:
            if pods.is_finished(obj) or not self.covers(obj):
                return {"count/pods": NANO} if "count/pods" in self.hard and not self.selector else {}
            return {key: nanos for key, nanos in _pod_use(obj).items() if key in self.hard}
        if self.selector:
            return {}
        keys = (f"count/{resource}", resource) if resource in _OLD_COUNTS else (f"count/{resource}",)
        return {key: NANO for key in keys if key in self.hard}


class Quotas:
    """The quotas of all namespaces."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tracked: dict[str, dict[str, _Tracked]] = {}  # namespace -> name -> quota
        self._dirty: dict[tuple[str, str], None] = {}

    def admit(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        """Refuses an object that would exceed a quota of its namespace."""
        tracked = self._tracked.get(obj["metadata"].get("namespace") or "")
        if operation != "CREATE" or not tracked:
            return obj
        kind = kind_id(obj)
        resource = self._store.discovery.resource(kind)
        for _, quota in sorted(tracked.items()):
            charge = quota.charge(kind, resource, obj)
            if kind == pods.POD and quota.covers(obj):
                self._check_specified(quota, obj)
            over = {key: n for key, n in charge.items() if n and quota.used[key] + n > quota.hard[key]}
            if over:
                shown = [_listed(over, amounts) for amounts in (over, quota.used, quota.hard)]
                raise Refused(
                    403,
                    "Forbidden",
                    f'{resource} "{obj["metadata"]["name"]}" is forbidden: exceeded quota: {quota.name}, '
                    f"requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}",
                )
        return obj

    def _check_specified(self, quota: _Tracked, pod: Obj) -> None:
        """Under a quota of cpu or memory every container must specify requests or limits."""
        missing = []
        for key in sorted(quota.hard):
            if key not in _MUST_SPECIFY:
                continue
            which, _, resource = key.rpartition(".")
            silent = [
                container.get("name", "")
                for container in pod["spec"]["containers"]
                if resource not in ((container.get("resources") or {}).get(which or "requests") or {})
            ]
            if silent and resource not in ((pod["spec"].get("resources") or {}).get(which or "requests") or {}):
                missing.append(f"{key} for: {','.join(silent)}")
        if missing:
            raise Refused(
                403,
                "Forbidden",
                f'pods "{pod["metadata"]["name"]}" is forbidden: failed quota: {quota.name}: '
                f"must specify {'; '.join(missing)}",
            )

    def follow(self, ref: Ref, old: Obj | None, new: Obj | None) -> None:
        if ref.kind == QUOTA:
            self._follow_quota(ref, old, new)
        tracked = self._tracked.get(ref.namespace)
        if not tracked or (old is not None and new is not None and not _changes_use(ref.kind, old, new)):
            return
        resource = self._store.discovery.resource(ref.kind)
        for quota in tracked.values():
            delta: pods.Amounts = {}
            for obj, sign in ((old, -1), (new, 1)):
                if obj is not None:
                    for key, nanos in quota.charge(ref.kind, resource, obj).items():
                        delta[key] = delta.get(key, 0) + sign * nanos
            if any(delta.values()):
                for key, nanos in delta.items():
                    quota.used[key] += nanos
                self._dirty[ref.namespace, quota.name] = None

    def _follow_quota(self, ref: Ref, old: Obj | None, new: Obj | None) -> None:
        """A new or changed quota is counted once over the whole namespace."""
        if new is None:
            tracked = self._tracked.get(ref.namespace, {})
            tracked.pop(ref.name, None)
            if not tracked:
                self._tracked.pop(ref.namespace, None)
            self._dirty.pop((ref.namespace, ref.name), None)
            return
        if old is not None and old.get("spec") == new.get("spec"):
            return
        quota = _Tracked(new)
        for found, obj in self._store.contents(ref.namespace):
            if found != ref or old is not None:  # a new quota counts itself when its creation is followed
                resource = self._store.discovery.resource(found.kind)
                for key, nanos in quota.charge(found.kind, resource, obj).items():
                    quota.used[key] += nanos
        self._tracked.setdefault(ref.namespace, {})[ref.name] = quota
        self._dirty[ref.namespace, ref.name] = None

    def settle(self) -> int:
        """Writes usage to the status of each quota whose usage changed; returns how many."""
        dirty, self._dirty = sorted(self._dirty), {}
        for namespace, name in dirty:
            quota = self._tracked[namespace][name]
            status = {"hard": _shown(quota.hard), "used": _shown(quota.used)}
            self._store.patch(Ref(QUOTA, namespace, name), {"status": status}, "status")
        return len(dirty)


def _changes_use(kind: str, old: Obj, new: Obj) -> bool:
    """Only a pod's usage changes while it exists: when it finishes, or gets a deadline, which changes its scope."""
    return kind == pods.POD and (
        pods.is_finished(old) != pods.is_finished(new)
        or old["spec"].get("activeDeadlineSeconds") != new["spec"].get("activeDeadlineSeconds")
    )


def _pod_use(pod: Obj) -> pods.Amounts:
    use = {"pods": NANO, "count/pods": NANO}
    for name, nanos in pods.pod_amounts(pod["spec"], "requests").items():
        use[f"requests.{name}"] = nanos
        use[name] = nanos
    for name, nanos in pods.pod_amounts(pod["spec"], "limits").items():
        use[f"limits.{name}"] = nanos
    return use


def _scopes(spec: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """(scope, operator, values), from `scopes` and from `scopeSelector`."""
    scopes: list[tuple[str, str, list[str]]] = [(scope, "Exists", []) for scope in spec.get("scopes") or ()]
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions")
    for expression in expressions if isinstance(expressions, list) else ():
        if isinstance(expression, dict):
            values = expression.get("values")
            listed = values if isinstance(values, list) else []
            scopes.append((str(expression.get("scopeName")), str(expression.get("operator")), listed))
    return scopes


def _in_scope(pod: Obj, scope: str, operator: str, values: list[str]) -> bool:
    spec = pod["spec"]
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return pods.qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return pods.qos_class(spec) != "BestEffort"
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


def _amount(key: str, nanos: int) -> str:
    if ("memory" in key or "storage" in key) and nanos % NANO == 0:
        return format_bytes(nanos // NANO)
    return format_quantity(nanos)


def _shown(amounts: pods.Amounts) -> dict[str, str]:
    return {key: _amount(key, nanos) for key, nanos in sorted(amounts.items())}


def _listed(keys: pods.Amounts, amounts: pods.Amounts) -> str:
    return ",".join(f"{key}={_amount(key, amounts[key])}" for key in sorted(keys))
