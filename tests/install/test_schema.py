"""Types in, structural schemas out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.api.meta import ObjectMeta, Quantities, TypedObject, View
from enbloc.install.schema import object_schema, schema_of
from enbloc.units import Quantity

KEEPS: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
INTEGER = {"type": "integer", "format": "int64"}


class Inner(View):
    key: str
    host_ip: str = msgspec.field(default="", name="hostIP")


class Outer(TypedObject):
    spec: Inner
    plain_number: int = 0


INNER: dict[str, Any] = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "hostIP": {"type": "string"}},
    "required": ["key"],
} | KEEPS


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, INTEGER),
        (int | None, INTEGER | {"nullable": True}),
        (Quantity, {"x-kubernetes-int-or-string": True}),
        (Quantities, {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}),
        (Any, KEEPS),
        (dict[str, Any], {"type": "object"} | KEEPS),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (list[dict[str, Any]], {"type": "array", "items": {"type": "object"} | KEEPS}),
        (
            dict[str, list[str] | None],
            {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}, "nullable": True},
            },
        ),
        (Inner, INNER),
        (Inner | None, INNER | {"nullable": True}),
        (list[Inner], {"type": "array", "items": INNER}),
    ],
)
def test_schemas(kind: Any, wanted: dict[str, Any]) -> None:
    assert schema_of(kind) == wanted


@pytest.mark.parametrize("kind", [str | int, dict[int, str], float, str | dict[str, Any] | None])
def test_what_no_structural_schema_can_say_is_reported(kind: Any) -> None:
    with pytest.raises(TypeError):
        schema_of(kind)


def test_an_object_leaves_its_metadata_to_the_api_server() -> None:
    schema = object_schema(Outer)
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["required"] == ["spec"]
    assert schema["properties"]["plainNumber"] == INTEGER
    assert "annotations" in schema_of(ObjectMeta)["properties"], "inside a template it is read"


def test_additions_go_to_a_struct_wherever_it_is_and_to_one_field() -> None:
    schema = object_schema(Outer, {Inner: {"description": "inside"}, (Inner, "hostIP"): {"maxLength": 15}})
    assert schema["properties"]["spec"]["description"] == "inside"
    assert schema["properties"]["spec"]["properties"]["hostIP"] == {"type": "string", "maxLength": 15}
