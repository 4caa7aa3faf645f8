"""The kinds that the embedded API serves: the registered ones, and those of stored CustomResourceDefinitions.

An unknown kind is stored as it is: namespaced if the object names a namespace, cluster-scoped if not, with no status
subresource (so a patch may change its status too).
"""

from __future__ import annotations

from typing import Any

from enbloc.api.kinds import KINDS, Kind
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.schema_defaults import Defaults, read_defaults

CRD = "CustomResourceDefinition.apiextensions.k8s.io"


class ServedKinds:
    """Names and scopes of kinds."""

    def __init__(self) -> None:
        self._custom: dict[str, Kind] = {}
        self._defaults: dict[tuple[str, str], Defaults] = {}
        """Kind and version -> the defaults of its schema, if it has any."""
        self._schemas: dict[tuple[str, str], dict[str, Any]] = {}
        """Kind and version -> the schema of its definition, if it has one."""
        self._columns: dict[tuple[str, str], list[dict[str, Any]]] = {}
        """Kind and version -> its `additionalPrinterColumns`."""

    def find(self, kind: str) -> Kind | None:
        """The kind, if it is served."""
        return KINDS.get(kind) or self._custom.get(kind)

    def kinds(self) -> list[Kind]:
        """Every served kind, registered ones first."""
        return [*KINDS.values(), *(kind for key, kind in self._custom.items() if key not in KINDS)]

    def namespace(self, kind: str, given: str) -> str:
        """The namespace of an object of this kind that was requested with namespace `given`."""
        found = self.find(kind)
        if found is None:
            return given
        return (given or "default") if found.namespaced else ""

    def has_status(self, kind: str) -> bool:
        found = self.find(kind)
        return found is not None and found.has_status

    def resource(self, kind: str) -> str:
        """The resource as Kubernetes names it in messages: `pods`, `jobs.batch.volcano.sh`."""
        found = self.find(kind)
        name, _, group = kind.partition(".")
        plural = found.plural if found else f"{name.lower()}s"
        return f"{plural}.{group}" if group else plural

    def defaults(self, kind: str, version: str) -> Defaults | None:
        """The defaults in the definition of a custom kind."""
        return self._defaults.get((kind, version)) if kind not in KINDS else None

    def schema(self, kind: str, version: str) -> dict[str, Any] | None:
        """The schema in the stored definition of a kind."""
        return self._schemas.get((kind, version))

    def columns(self, kind: str, version: str) -> list[dict[str, Any]]:
        """The columns that the definition of a custom kind declares for lists."""
        return self._columns.get((kind, version), [])

    def follow(self, old: Obj | None, new: Obj | None) -> None:
        """Follows a CustomResourceDefinition that was created, changed or deleted."""
        if old is not None and old["spec"]["versions"]:
            self._custom.pop(_kind_of(old).id, None)
            for version in old["spec"]["versions"]:
                for known in (self._defaults, self._schemas, self._columns):
                    known.pop((_kind_of(old).id, version["name"]), None)
        if new is not None and new["spec"]["versions"]:
            kind = _kind_of(new)
            self._custom[kind.id] = kind
            for version in new["spec"]["versions"]:
                declared_schema = version.get("schema")
                schema = declared_schema.get("openAPIV3Schema") if isinstance(declared_schema, dict) else None
                if isinstance(schema, dict):
                    self._schemas[kind.id, version["name"]] = schema
                found = read_defaults(schema)
                if found is not None:
                    self._defaults[kind.id, version["name"]] = found
                declared = version.get("additionalPrinterColumns")
                if isinstance(declared, list):
                    self._columns[kind.id, version["name"]] = [one for one in declared if isinstance(one, dict)]


def _kind_of(crd: Obj) -> Kind:
    spec = crd["spec"]
    names = spec["names"]
    served = [version for version in spec["versions"] if version.get("served", True)] or spec["versions"]
    return Kind(
        group=spec["group"],
        versions=tuple(version["name"] for version in served),
        name=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        has_status=any(_has_status(version) for version in served),
        short_names=tuple(names.get("shortNames") or ()),
    )


def _has_status(version: dict[str, Any]) -> bool:
    subresources = version.get("subresources")
    return isinstance(subresources, dict) and "status" in subresources
