"""OpenAPI v3, as far as clients need it: that the server validates fields, and the texts of `kubectl explain`.

Schemas are generated from the views that decode the objects, so they have the fields that this program reads; other
fields are accepted and kept. Kinds without a view, and custom ones, get their definition's schema or none.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from enbloc.api.field_descriptions import described
from enbloc.api.kinds import Kind
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.resources import Resources
from enbloc.units import Quantity

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_MEDIA = PROTOBUF.replace("@", ".")
"""The name that is valid in a header."""
_V2_PROTOBUF = b"\x0a\x032.0\x12\x0c\x0a\x06Enbloc\x12\x02v1"
"""A document of version 2.0 with a title and a version, and without definitions."""
_OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version_2(accept: str) -> tuple[bytes, str]:
    """The document of OpenAPI v2 and its media type. It has no schemas: kubectl asks for it to validate a List, and
    leaves kinds that are not in it to the server."""
    if PROTOBUF in accept or _V2_MEDIA in accept:
        return _V2_PROTOBUF, _V2_MEDIA
    return b'{"swagger":"2.0","info":{"title":"Enbloc","version":"v1"},"paths":{}}', "application/json"


class OpenApi:
    """The documents under `/openapi/v3`."""

    def __init__(self, store: Store, resources: Resources) -> None:
        self._store = store
        self._resources = resources

    def index(self) -> dict[str, Any]:
        paths = {}
        for group, versions in self._resources.groups().items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                served = ",".join(kind.id for kind in self._resources.of(group, version))
                digest = hashlib.sha256(f"{served}/{self._store.version if group else 0}".encode()).hexdigest()
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest[:32].upper()}"}
        return {"paths": paths}

    def document(self, group: str, version: str) -> dict[str, Any] | None:
        kinds = self._resources.of(group, version)
        if not kinds:
            return None
        schemas: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for kind in kinds:
            name = f"{_reversed(group)}.{version}.{kind.name}"
            schemas[name] = self._schema(kind, version, schemas)
            paths.update(_paths(kind, version, name))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Enbloc", "version": "v1"},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _schema(self, kind: Kind, version: str, schemas: dict[str, Any]) -> dict[str, Any]:
        defined = self._store.discovery.schema(kind.id, version)
        made = dict(defined or described(_of_view(kind, schemas), *_place(kind, kind.name)))
        properties = dict(made.get("properties") or {})
        properties["apiVersion"] = {"type": "string", "description": "The version of the schema of this object."}
        properties["kind"] = {"type": "string", "description": "What this object is."}
        properties["metadata"] = {"type": "object", "description": "Name, labels, annotations, owners."}
        made["properties"] = properties
        made["type"] = "object"
        made["x-kubernetes-group-version-kind"] = [{"group": kind.group, "version": version, "kind": kind.name}]
        return made


def _reversed(group: str) -> str:
    if not group:
        return "io.k8s.api.core"
    return ".".join(reversed(group.split("."))) if "." in group else f"io.k8s.api.{group}"


def _of_view(kind: Kind, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a kind's view; the schemas it refers to are added to `schemas`."""
    if kind.view is None:
        return {**_OPEN, "description": f"A {kind.name}."}
    (made,), parts = msgspec.json.schema_components(
        [kind.view], schema_hook=_hook, ref_template="#/components/schemas/enbloc.{name}"
    )
    for name, part in parts.items():
        schemas.setdefault(f"enbloc.{name}", described(_plain(part), *_place(kind, name)))
    of_view = schemas.get(str(made.get("$ref", "")).rpartition("/")[2], made)
    return dict(of_view)


def _place(kind: Kind, part: str) -> tuple[str, ...]:
    """Where a part of a kind is, for its descriptions: `QueueSpec` is the spec of a Queue, a `TaskSpec` a role."""
    if kind.group == "batch":  # another Job than the one that is described
        return (f"batch.{part}",)
    if part == kind.name:
        return (kind.name,)
    for suffix, field in (("Spec", "spec"), ("Status", "status"), ("State", "status")):
        if part == f"{kind.name}{suffix}":
            return (kind.name, field)
    return ({"TaskSpec": "tasks[]", "LifecyclePolicy": "policies[]", "Container": "containers[]"}.get(part, part),)


def _hook(type_: type) -> dict[str, Any]:
    if type_ is Quantity:
        return {"type": "string", "description": "A quantity: 500m, 2, 16Gi."}
    return {}


def _plain(schema: Any) -> Any:
    """JSON schema as OpenAPI 3.0: `null` is not a type, defaults are left out."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    choices = [_plain(one) for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    made = {key: _plain(value) for key, value in schema.items() if key not in ("anyOf", "title", "default")}
    if len(choices) == 1:
        made.update(choices[0])
    elif choices:
        made["x-kubernetes-int-or-string"] = True
    if made.get("type") == "object" and "properties" not in made and not made.get("additionalProperties"):
        made["x-kubernetes-preserve-unknown-fields"] = True
    return made


def _paths(kind: Kind, version: str, schema: str) -> dict[str, Any]:
    base = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    if kind.namespaced:
        base += "/namespaces/{namespace}"
    body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
    patch = {"schema": {"type": "object"}}
    of_kind = {"group": kind.group, "version": version, "kind": kind.name}

    def operation(action: str, request: dict[str, Any] | None) -> dict[str, Any]:
        made: dict[str, Any] = {
            "operationId": f"{action}{kind.group.replace('.', '')}{version}{kind.name}",
            "responses": {"200": {"description": "OK", **body}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": of_kind,
        }
        if request is not None:
            made["requestBody"] = request
            made["parameters"] = [
                {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
                for name in ("dryRun", "fieldManager", "fieldValidation")
            ]
        return made

    patches = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
    one = f"{base}/{kind.plural}/{{name}}"
    return {
        f"{base}/{kind.plural}": {"get": operation("list", None), "post": operation("post", body)},
        one: {
            "get": operation("get", None),
            "put": operation("put", body),
            "patch": operation("patch", {"content": dict.fromkeys(patches, patch)}),
            "delete": operation("delete", None),
        },
    }
