"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, which `kubectl rollout undo` reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from enbloc.api.meta import Obj, name_of, owned_metadata
from enbloc.api.writes import Create, Write
from enbloc.controllers.workloads.owned import delete, dig, patch, short_hash, without_empty

KIND = "ControllerRevision"
HASH = "controller.kubernetes.io/hash"


class Revisions(msgspec.Struct, frozen=True):
    """`present`: the name of the present template's revision, which `writes` may still have to create."""

    present: str
    hash: str
    writes: list[Write]
    templates: dict[str, dict[str, Any]]
    """Name → template."""


def revisions_of(owner: Obj, known: list[Obj]) -> Revisions:
    template = owner["spec"]["template"]
    ordered = sorted(known, key=_number)
    found = next((one for one in reversed(ordered) if _same(_template(one), template)), None)
    templates = {name_of(one): _template(one) for one in ordered}
    highest = _number(ordered[-1]) if ordered else 0
    if found is not None:
        renewed: list[Write] = [patch(found, {"revision": highest + 1})] if _number(found) < highest else []
        return Revisions(name_of(found), hash_of(found), renewed, templates)
    digest = short_hash(without_empty(template))
    name = f"{name_of(owner)}-{digest}"
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: digest}
    made = {
        "apiVersion": "apps/v1",
        "kind": KIND,
        "metadata": owned_metadata(owner, name, labels=labels),
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": highest + 1,
    }
    return Revisions(name, digest, [Create(made)], {**templates, name: template})


def hash_of(revision: Obj) -> str:
    return (revision["metadata"].get("labels") or {}).get(HASH) or ""


def forgotten(known: list[Obj], live: Collection[str], limit: int) -> list[Write]:
    """The oldest revisions that no pod has, beyond the history that is kept."""
    idle = [one for one in sorted(known, key=_number) if name_of(one) not in live and hash_of(one) not in live]
    return [delete(one) for one in idle[: max(len(idle) - limit, 0)]]


def _number(revision: Obj) -> int:
    number = revision.get("revision")
    return number if isinstance(number, int) else 0


def _template(revision: Obj) -> dict[str, Any]:
    found = dig(revision, "data", "spec", "template")
    return {key: value for key, value in (found or {}).items() if key != "$patch"}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(without_empty(one) == without_empty(other))
