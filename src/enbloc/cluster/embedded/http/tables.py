"""Other representations of lists and objects: Tables, and PartialObjectMetadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from enbloc.api.events import as_version
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.http.columns import Column
from enbloc.cluster.embedded.http.status import refusal

META = "meta.k8s.io/v1"
Included = Literal["None", "Metadata", "Object"]


def included(text: str) -> Included:
    """What a table's rows carry of their objects (`includeObject`)."""
    match text:
        case "" | "Metadata":
            return "Metadata"
        case "None":
            return "None"
        case "Object":
            return "Object"
    raise refusal(400, f"includeObject: {text[:80]!r} must be None, Metadata or Object")


def partial(obj: Obj) -> dict[str, Any]:
    """Metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj["metadata"]}


def table(
    columns: Sequence[Column],
    objects: Iterable[Obj],
    now_ns: int,
    include: Included,
    metadata: dict[str, Any],
    api_version: str,
    *,
    heads: bool = True,
) -> dict[str, Any]:
    """A Table of these objects; without `heads` as in the second and later events of a watch."""
    rows = []
    for obj in objects:
        row: dict[str, Any] = {"cells": [column.of(obj, now_ns) for column in columns]}
        if include != "None":
            row["object"] = as_version(obj, api_version) if include == "Object" else partial(obj)
        rows.append(row)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description or column.name,
            "priority": column.priority,
        }
        for column in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": metadata,
        "columnDefinitions": definitions if heads else [],
        "rows": rows,
    }
