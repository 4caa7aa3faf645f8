"""A snapshot of a cluster: the objects that scheduling depends on, without secrets.

Of containers only names, images, resources, ports and restart policies are kept: no commands, no arguments, no values
of environment variables. Secrets and ConfigMaps are not part of it. Listing the objects is left to the caller, and so
is the key of our own records: with it those that do not verify are left out, and the snapshot says so (S2). A
simulation of a snapshot has no key, and trusts this verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from enbloc.api.kinds import KINDS as KNOWN
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, annotations_of
from enbloc.api.redaction import without_secrets
from enbloc.config import parse
from enbloc.gangs.lenient import LenientRegistry
from enbloc.gangs.own_annotations import MARKS, OWN_ANNOTATIONS
from enbloc.gangs.record_digests import Keyring
from enbloc.runtime.own_records import NO_MARKS, OwnRecords
from enbloc.scenario.scenario import STEP
from enbloc.units import format_timestamp

VERIFIED: Final = "verified"
UNVERIFIED: Final = "not verified"
NEEDED: Final = ("Node", "Pod")
"""Without these there is nothing to simulate."""
_NOT_READ: Final = frozenset(
    {"Secret", "ConfigMap", "Event", "Service", "ServiceAccount", "Endpoints", "PodTemplate"}
    | {"Lease.coordination.k8s.io", "Command.bus.volcano.sh", "CustomResourceDefinition.apiextensions.k8s.io"}
)
_GROUPS_NOT_READ: Final = ("rbac.authorization.k8s.io", "networking.k8s.io", "discovery.k8s.io", "autoscaling") + (
    "admissionregistration.k8s.io",
)
KINDS: Final = tuple(
    kind.id for kind in KNOWN.values() if kind.id not in _NOT_READ and kind.group not in _GROUPS_NOT_READ
)
"""The kinds that are read, where the cluster serves them."""


def snapshot(lists: Mapping[str, Sequence[Obj]], now_ns: int, keyring: Keyring | None = None) -> list[Obj]:
    """The documents of a snapshot: when it was taken and whether its records were verified, then every object."""
    verdict = UNVERIFIED if keyring is None else VERIFIED
    taken = {"apiVersion": STEP, "kind": "Snapshot", "at": format_timestamp(now_ns), "records": verdict}
    objects = [obj for kind in KINDS for obj in lists.get(kind, ())]
    if keyring is not None:
        objects = with_verified_records(objects, keyring)
    return [taken, *map(without_secrets, objects)]


def with_verified_records(objects: Iterable[Obj], keyring: Keyring) -> list[Obj]:
    """The objects with those of the scheduler's records that a scheduler with these keys would adopt."""
    config = parse(None)
    records, registry = OwnRecords(keyring), LenientRegistry(config.arbitrator, config.koordinator, config.tenancy)
    found = []
    for obj in objects:
        kept = records.authentic(obj)
        annotations = annotations_of(kept)
        is_marked = kind_id(obj) == "Pod" and any(key in annotations for key in MARKS)
        if is_marked and records.marks(kept, registry.member(kept).gang) == NO_MARKS:
            left = {key: text for key, text in annotations.items() if key not in MARKS}
            kept = {**kept, "metadata": {**kept["metadata"], "annotations": left}}
        found.append(kept)
    return found


def has_records(obj: Obj) -> bool:
    return "metadata" in obj and not OWN_ANNOTATIONS.isdisjoint(annotations_of(obj))


def as_json(documents: Iterable[Obj]) -> Iterator[str]:
    """One List, an object a line."""
    yield '{"apiVersion": "v1", "kind": "List", "items": [\n'
    separator = ""
    for document in documents:
        yield separator + json.dumps(document)
        separator = ",\n"
    yield "\n]}\n"
