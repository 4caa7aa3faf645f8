"""ResourceQuota: the limits of a namespace and how much of them is used.

Usage is updated change by change, never recounted, so that a pod costs the same in a namespace of ten and of a hundred
thousand. Admission refuses what would exceed a quota; `settle` writes usage to the quotas' status, once for many
changes. Finished pods use nothing. Other kinds are counted as `count/RESOURCE` (and by the older plain names).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref
from enbloc.api.pod_amounts import Amounts
from enbloc.api.quotas import RESOURCE_QUOTA as QUOTA
from enbloc.api.quotas import Quota, format_amount, quota_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api import pods
from enbloc.units import NANO

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.admission import Operation
    from enbloc.cluster.embedded.api.store import Store

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
    """One quota with its usage, which is counted here."""

    __slots__ = ("quota", "used")

    def __init__(self, obj: Obj) -> None:
        self.quota = quota_of(obj)
        self.used: Amounts = dict.fromkeys(self.quota.hard, 0)

    def charge(self, kind: str, resource: str, obj: Obj) -> Amounts:
        """What this object uses of this quota; nothing if it is outside its scopes."""
        quota = self.quota
        if kind == pods.POD:
            return quota.charge_of_ended() if pods.is_finished(obj) else quota.charge(obj["spec"])
        if quota.scopes:
            return {}
        keys = (f"count/{resource}", resource) if resource in _OLD_COUNTS else (f"count/{resource}",)
        return {key: NANO for key in keys if key in quota.hard}


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
        for _, one in sorted(tracked.items()):
            quota, charge = one.quota, one.charge(kind, resource, obj)
            if kind == pods.POD and quota.covers(obj["spec"]):
                self._check_specified(quota, obj)
            over = quota.over(charge, one.used)
            if over:
                message = f'{resource} "{obj["metadata"]["name"]}" is forbidden: exceeded {over}'
                raise Refused(403, "Forbidden", message)
        return obj

    def _check_specified(self, quota: Quota, pod: Obj) -> None:
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
        for one in tracked.values():
            delta: Amounts = {}
            for obj, sign in ((old, -1), (new, 1)):
                if obj is not None:
                    for key, nanos in one.charge(ref.kind, resource, obj).items():
                        delta[key] = delta.get(key, 0) + sign * nanos
            if any(delta.values()):
                for key, nanos in delta.items():
                    one.used[key] += nanos
                self._dirty[ref.namespace, one.quota.name] = None

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
        counted = _Tracked(new)
        for found, obj in self._store.contents(ref.namespace):
            if found != ref or old is not None:  # a new quota counts itself when its creation is followed
                resource = self._store.discovery.resource(found.kind)
                for key, nanos in counted.charge(found.kind, resource, obj).items():
                    counted.used[key] += nanos
        self._tracked.setdefault(ref.namespace, {})[ref.name] = counted
        self._dirty[ref.namespace, ref.name] = None

    def settle(self) -> int:
        """Writes usage to the status of each quota whose usage changed; returns how many."""
        dirty, self._dirty = sorted(self._dirty), {}
        for namespace, name in dirty:
            one = self._tracked[namespace][name]
            status = {"hard": _shown(one.quota.hard), "used": _shown(one.used)}
            self._store.patch(Ref(QUOTA, namespace, name), {"status": status}, "status")
        return len(dirty)


def _changes_use(kind: str, old: Obj, new: Obj) -> bool:
    """Only a pod's usage changes while it exists: when it finishes, or gets a deadline, which changes its scope."""
    return kind == pods.POD and (
        pods.is_finished(old) != pods.is_finished(new)
        or old["spec"].get("activeDeadlineSeconds") != new["spec"].get("activeDeadlineSeconds")
    )


def _shown(amounts: Amounts) -> dict[str, str]:
    return {key: format_amount(key, nanos) for key, nanos in sorted(amounts.items())}
