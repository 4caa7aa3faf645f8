"""A description of every field of the kinds that we define, for `kubectl explain`.

The texts are in `field_descriptions.txt`: a line is a path and its text. Of several paths that end a field's path the
longest counts: `Queue.spec.priority` is said of that field, `priority` of every other one of that name.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _texts() -> dict[str, str]:
    lines = (files("enbloc.api") / "field_descriptions.txt").read_text("utf-8").splitlines()
    parts = (line.partition("|") for line in lines if line)
    return {path.strip(): text.strip() for path, _, text in parts}


def description_of(path: tuple[str, ...]) -> str:
    """Of a field by its path, such as `("Queue", "spec", "weight")`; items of a list are `tasks[]`. Empty: unknown."""
    texts = _texts()
    for count in range(len(path), 0, -1):
        text = texts.get(".".join(path[-count:]))
        if text:
            return text
    return ""


def described(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The schema with a description of each field in it, at any depth, where it has none of its own."""
    made = dict(schema)
    if path and (text := description_of(path)):
        if "$ref" in made:  # beside a reference everything else is ignored
            made["allOf"] = [{"$ref": made.pop("$ref")}]
        made.setdefault("description", text)
    if isinstance(made.get("properties"), dict):
        made["properties"] = {key: described(child, *path, key) for key, child in made["properties"].items()}
    if isinstance(made.get("items"), dict):
        made["items"] = described(made["items"], *path[:-1], f"{path[-1]}[]") if path else made["items"]
    if isinstance(made.get("additionalProperties"), dict):
        made["additionalProperties"] = described(made["additionalProperties"], *path)
    return made
