"""Parses paths: the resource of a group and version, an object or a collection, and a subresource."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api import arbitrator, coscheduling, events, kai, koordinator, volcano, workloads
from enbloc.api.kinds import Kind
from enbloc.api.meta import Obj, Ref
from enbloc.cluster.embedded.api.served_kinds import CRD
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.status import refusal

_FIRST = (
    "apps",
    "batch",
    "batch.volcano.sh",
    "scheduling.volcano.sh",
    "bus.volcano.sh",
    arbitrator.GROUP,
    koordinator.GROUP,
    coscheduling.GROUP,
    kai.GROUP,
)
"""Several groups have a Job or a PodGroup; clients resolve a short name to the first group that has it."""


_EVENTS = Kind(events.GROUP, ("v1",), "Event", "events", True, has_status=False, stored_as="Event", short_names=("ev",))
"""Clients since 2019 write Events in this group; they are those of the core group."""

_SCALED = (workloads.DEPLOYMENT, workloads.REPLICA_SET, workloads.STATEFUL_SET)
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_JOB_SCALE = {"specReplicasPath": ".spec.tasks.replicas", "statusReplicasPath": ".status.running"}
"""Of a Volcano Job with one role."""


class Target(msgspec.Struct, frozen=True):
    """What a request is about. An empty `name` means the collection; an empty `namespace` all of them, or none."""

    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def ref(self) -> Ref:
        return Ref(self.kind.id, self.namespace, self.name)

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version


class Resources:
    """The served resources. CustomResourceDefinitions change them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[tuple[str, str, str], Kind] | None = None
        self._groups: dict[str, list[str]] = {}

    def forget(self) -> None:
        """A CustomResourceDefinition was created, changed or deleted."""
        self._served = None

    def served(self) -> dict[tuple[str, str, str], Kind]:
        """(group, version, plural) -> kind."""
        if self._served is None:
            kinds = [*self._store.discovery.kinds(), _EVENTS]
            self._served = {
                (kind.group, version, kind.plural): kind for kind in reversed(kinds) for version in kind.versions
            }
            self._groups = _grouped(kinds)
        return self._served

    def groups(self) -> dict[str, list[str]]:
        """Each group's versions in order of preference; the core group first."""
        self.served()
        return self._groups

    def of(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version."""
        found = [kind for (of, at, _), kind in self.served().items() if of == group and at == version]
        return sorted(found, key=lambda kind: kind.plural)

    def find(self, segments: list[str]) -> Target:
        """The target of a path below `/api` or `/apis`, given its segments. Raises `Refused` (404)."""
        if segments[0] == "api":
            group, version, rest = "", segments[1], segments[2:]
        else:
            group, version, rest = segments[1], segments[2], segments[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) >= 3 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
            namespace, rest = rest[1], rest[2:]
        kind = self.served().get((group, version, rest[0]))
        if kind is None or len(rest) > 3 or not all(rest) or (namespace and not kind.namespaced):
            raise no_such_path()
        name = rest[1] if len(rest) > 1 else ""
        if kind.namespaced and not namespace and name:
            raise no_such_path()
        return Target(kind, version, namespace, name, rest[2] if len(rest) > 2 else "")

    def scale_of(self, kind: Kind, version: str) -> dict[str, Any] | None:
        """The paths of a kind's scale subresource, if it has one."""
        if kind.id in _SCALED:
            return _SCALE
        if kind.id == volcano.JOB:
            return _JOB_SCALE
        for crd in self._store.list(CRD)[0]:
            spec = crd["spec"]
            if spec["group"] == kind.group and spec["names"]["kind"] == kind.name:
                return _scale(crd, version)
        return None


def no_such_path() -> Exception:
    return refusal(404, "the server could not find the requested resource")


def _grouped(kinds: list[Kind]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {"": ["v1"]}
    for kind in kinds:
        versions = groups.setdefault(kind.group, [])
        versions.extend(version for version in kind.versions if version not in versions)
    known = {group: position for position, group in enumerate(_FIRST)}
    ordered = sorted(groups, key=lambda group: (bool(group), known.get(group, len(known))))
    return {group: groups[group] for group in ordered}


def _scale(crd: Obj, version: str) -> dict[str, Any] | None:
    for served in crd["spec"]["versions"]:
        subresources = served.get("subresources") if served["name"] == version else None
        if isinstance(subresources, dict) and isinstance(subresources.get("scale"), dict):
            scale: dict[str, Any] = subresources["scale"]
            return scale
    return None
