"""`additionalPrinterColumns` of a CustomResourceDefinition, as `kubectl get` shows them."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.served_kinds import ServedKinds
from enbloc.cluster.embedded.http.printer_columns import columns_for
from enbloc.units import parse_timestamp

NOW_NS = parse_timestamp("2026-01-01T00:01:30Z")
TRAIN: Obj = {
    "apiVersion": "example.dev/v1",
    "kind": "Train",
    "metadata": {"name": "t", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"example.dev/team": "a"}},
    "spec": {"replicas": 3, "suspend": False, "items": [{"name": "x"}, {"name": "y"}], "weight": 0.5},
    "status": {
        "conditions": [
            {"type": "Created", "status": "True"},
            {"type": "Ready", "status": "False", "code": 7},
        ]
    },
}


def definition(*columns: Any) -> Obj:
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": list(columns)}
    names = {"kind": "Train", "plural": "trains"}
    spec = {"group": "example.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "trains.example.dev"}, "spec": spec}


def cell(path: str, type_: str = "string") -> Any:
    served = ServedKinds()
    served.follow(None, definition({"name": "It", "jsonPath": path, "type": type_}))
    name, column = columns_for(served, "Train.example.dev", "v1")
    assert (name.name, column.name, column.type) == ("Name", "It", type_)
    return column.of(TRAIN, NOW_NS)


@pytest.mark.parametrize(
    ("path", "type_", "shown"),
    [
        (".spec.replicas", "integer", 3),
        (".spec.suspend", "boolean", False),
        (".spec.suspend", "string", "false"),
        (".spec.weight", "number", 0.5),
        (".metadata.creationTimestamp", "date", "90s"),
        (".status.conditions[-1:].type", "string", "Ready"),
        (".status.conditions[?(@.type=='Ready')].status", "string", "False"),
        ('.status.conditions[?(@.type=="Ready")].status', "string", "False"),
        (".status.conditions[?(@.type != 'Ready')].type", "string", "Created"),
        (".status.conditions[?(@.code == 7)].type", "string", "Ready"),
        (".spec.items[*].name", "string", "x y"),
        (".spec.items[1].name", "string", "y"),
        (".spec.items[-2].name", "string", "x"),
        (".metadata.labels.example\\.dev/team", "string", "a"),
        (".metadata.labels['example.dev/team']", "string", "a"),
    ],
)
def test_a_path_is_read_as_kubernetes_does(path: str, type_: str, shown: object) -> None:
    assert cell(path, type_) == shown


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        ".spec.none",
        ".spec.items[7]",
        ".spec.replicas.more",
        ".spec[?(",
        "spec",
        ".spec.items[?(@.name)]",
    ],
)
def test_a_path_that_finds_nothing_or_cannot_be_read_is_an_empty_cell(path: str) -> None:
    assert cell(path) is None


def test_a_definition_without_columns_shows_name_and_age_and_columns_go_with_it() -> None:
    served = ServedKinds()
    with_columns = definition(
        {"name": "It", "jsonPath": ".spec.replicas", "type": "integer", "priority": 1}, "no column"
    )
    for given, shown in ((definition(), ["Name", "Age"]), (with_columns, ["Name", "It"]), (None, ["Name", "Age"])):
        served.follow(None, given) if given else served.follow(with_columns, None)
        assert [column.name for column in columns_for(served, "Train.example.dev", "v1")] == shown
