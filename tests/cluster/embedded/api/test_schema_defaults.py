"""Defaults of a definition's schema, as an API server fills them in."""

from __future__ import annotations

from typing import Any

from enbloc.cluster.embedded.api.schema_defaults import fill, read_defaults
from support.embedded_store import make_store

GROUP = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "numOfHosts": {"type": "integer", "default": 1},
        "strategy": {"type": "object", "default": {}, "properties": {"kind": {"type": "string", "default": "Rolling"}}},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "default": {"name": "never"}},
        "spec": {
            "type": "object",
            "properties": {
                "groups": {"type": "array", "items": GROUP},
                "byName": {"type": "object", "additionalProperties": GROUP},
                "paused": {"type": "boolean", "default": False},
            },
        },
        "status": {"type": "object", "default": {"phase": "New"}},
    },
}


def filled(spec: dict[str, Any]) -> Any:
    defaults = read_defaults(SCHEMA)
    assert defaults is not None
    return fill({"spec": spec}, defaults)["spec"]


def test_fields_lists_and_mappings_are_filled() -> None:
    group = {"numOfHosts": 1, "strategy": {"kind": "Rolling"}}
    assert filled({"groups": [{"replicas": 2}, {"numOfHosts": 4}], "byName": {"a": {}}, "paused": None}) == {
        "groups": [{"replicas": 2, **group}, {**group, "numOfHosts": 4}],
        "byName": {"a": group},
        "paused": False,
    }


def test_what_is_there_stays_and_nothing_is_shared() -> None:
    spec = {"groups": [{"numOfHosts": 0, "strategy": {"kind": "Other"}}], "paused": True}
    defaults = read_defaults(SCHEMA)
    assert defaults is not None
    obj = {"spec": spec}
    assert fill(obj, defaults) is obj
    one = filled({"groups": [{}, {}]})["groups"]
    assert one[0]["strategy"] is not one[1]["strategy"]


def test_a_missing_object_is_not_made_and_the_status_is_left_alone() -> None:
    defaults = read_defaults(SCHEMA)
    assert defaults is not None
    assert fill({"kind": "X"}, defaults) == {"kind": "X"}


def test_a_schema_without_defaults_or_that_is_none() -> None:
    assert read_defaults({"type": "object", "properties": {"spec": {"type": "object"}}}) is None
    assert read_defaults(None) is None
    assert read_defaults({"properties": []}) is None


def test_objects_of_a_custom_kind_get_them() -> None:
    store, _ = make_store()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"kind": "Ring", "plural": "rings", "singular": "ring", "listKind": "RingList"}
    store.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "rings.example.com"},
            "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
        }
    )
    made = store.create(
        {
            "apiVersion": "example.com/v1",
            "kind": "Ring",
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"groups": [{"replicas": 2}]},
        }
    )
    assert made["spec"]["groups"] == [{"replicas": 2, "numOfHosts": 1, "strategy": {"kind": "Rolling"}}]
    assert "status" not in made
