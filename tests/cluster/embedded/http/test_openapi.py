"""The texts of `kubectl explain`: every field of every kind that is served has one."""

from __future__ import annotations

from enbloc.cluster.embedded.cluster import make_store
from enbloc.cluster.embedded.http.openapi import OpenApi
from enbloc.cluster.embedded.http.resources import Resources
from enbloc.config import parse
from enbloc.sim.clock import Clock

OF_EVERY_OBJECT = {"apiVersion", "kind", "metadata"}


def test_every_field_has_a_description() -> None:
    store = make_store(Clock(), parse(None))
    resources = Resources(store)
    documents = OpenApi(store, resources)
    found = missing = 0
    for group, versions in resources.groups().items():
        for version in versions:
            document = documents.document(group, version)
            assert document is not None
            for name, schema in document["components"]["schemas"].items():
                for field, child in (schema.get("properties") or {}).items():
                    found += 1
                    missing += not child.get("description") and field not in OF_EVERY_OBJECT
                    # Beside a reference a description is ignored.
                    assert "$ref" not in child or field in OF_EVERY_OBJECT, (name, field)
    assert found > 1000
    assert missing == 0
