"""Kubernetes' own messages: their fields by number for protobuf, by name for JSON.

`protobuf_messages.txt` is the table. It is read when it is first asked for: few commands need it.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

LONG_GROUPS: Final = {
    "rbac.authorization.k8s.io": "rbac",
    **{
        f"{group}.k8s.io": group
        for group in (
            "admissionregistration",
            "authentication",
            "authorization",
            "coordination",
            "discovery",
            "events",
            "networking",
            "node",
            "resource",
            "scheduling",
            "storage",
        )
    },
}
"""API group → the group in the names of messages, where they differ."""
_VERSIONS: Final = {"autoscaling": "v2"}
"""Of groups whose messages are not v1's. Messages of another version are named with it."""


class Field(NamedTuple):
    name: str
    type: str
    is_list: bool
    is_map: bool
    mark: str
    """`~`: its own fields are, in JSON, those of the message that has it; `?`: JSON leaves out a zero."""


def read_messages(text: str) -> dict[str, dict[int, Field]]:
    """By name of a message, the fields by number. Lines that begin with `#` are comments."""
    made: dict[str, dict[int, Field]] = {}
    for line in text.strip().replace("\n  ", " ").splitlines():
        if line.startswith("#"):
            continue
        name, _, fields = line.partition(":")
        made[name] = {}
        for one in fields.split(",") if fields.strip() else ():
            number, field, *type_ = one.split()
            is_map = type_[:1] == ["map"]
            word = (type_[1:] or ["string"])[0] if is_map else (type_ or ["string"])[0]
            mark = field[0] if field[0] in "~?" else ""
            is_list = word.endswith("[]")
            made[name][int(number)] = Field(field.lstrip("~?"), word.removesuffix("[]"), is_list, is_map, mark)
    return made


def message_of(api_version: str, kind: str) -> str:
    """The name that the message of a kind has, if it is one of Kubernetes' own."""
    group, slash, version = api_version.rpartition("/")
    if kind == "DeleteOptions" or not slash:
        return kind
    short = LONG_GROUPS.get(group, group)
    return f"{short}.{kind}" if version == _VERSIONS.get(short, "v1") else f"{short}.{version}.{kind}"


@cache
def json_fields(message: str) -> dict[str, Field]:
    """The fields of a message in JSON, by name; empty: it is none of the table."""
    found: dict[str, Field] = {}
    for field in messages().get(message, {}).values():
        found |= json_fields(field.type) if field.mark == "~" else {field.name: field}
    return found


@cache
def messages() -> dict[str, dict[int, Field]]:
    """All of the table."""
    return read_messages(resources.files("enbloc.api").joinpath("protobuf_messages.txt").read_text())
