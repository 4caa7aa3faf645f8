"""A snapshot of a cluster: the objects that scheduling depends on, without secrets.

Of containers only names, images, resources, ports and restart policies are kept: no commands, no arguments, no values
of environment variables. Secrets and ConfigMaps are not read at all. Listing the objects is left to the caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from enbloc.api.kinds import KINDS as KNOWN
from enbloc.api.meta import Obj
from enbloc.api.redaction import without_secrets
from enbloc.scenario.scenario import STEP
from enbloc.units import format_timestamp

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


def snapshot(lists: Mapping[str, Sequence[Obj]], now_ns: int) -> list[Obj]:
    """The documents of a snapshot: when it was taken, then every object."""
    taken = {"apiVersion": STEP, "kind": "Snapshot", "at": format_timestamp(now_ns)}
    return [taken, *(without_secrets(obj) for kind in KINDS for obj in lists.get(kind, ()))]


def as_json(documents: Iterable[Obj]) -> Iterator[str]:
    """One List, an object a line."""
    yield '{"apiVersion": "v1", "kind": "List", "items": [\n'
    separator = ""
    for document in documents:
        yield separator + json.dumps(document)
        separator = ",\n"
    yield "\n]}\n"
