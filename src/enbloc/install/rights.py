"""RBAC: one role per component, made of what the component reads and what it writes.

What is read follows from the kinds that the code watches. What is written is in `rights.txt`, and a test compares it
with what a control plane really writes: nothing is missing, nothing is unused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from enbloc.api import arbitrator, coscheduling, kai, koordinator, volcano
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.install.templates import filled
from enbloc.runtime.control_plane import controllers
from enbloc.runtime.record_keys import SECRET as RECORD_KEYS
from enbloc.runtime.scheduler import Scheduler
from enbloc.web.followed import FOLLOWED
from enbloc.webhook.cache import KINDS_LOOKED_UP
from enbloc.webhook.certificate_rotation import MUTATING, VALIDATING
from enbloc.webhook.server import CONFIGURATION, SECRET

READ: Final = ("get", "list", "watch")
SCHEDULER, CONTROLLERS, WEBHOOK = "scheduler", "controllers", "webhook"
DASHBOARD: Final = "dashboard"
COMPONENTS: Final = (SCHEDULER, CONTROLLERS, WEBHOOK)
"""What is always installed; the dashboard is on request."""
LEADS: Final = (SCHEDULER, CONTROLLERS)
"""Components with leader election: one replica works, the others are on standby."""


class Right(msgspec.Struct, frozen=True):
    """Verbs on one resource, perhaps on objects of some names only."""

    resource: str
    """As RBAC writes it: `pods`, `pods/status`."""
    verbs: tuple[str, ...]
    group: str = ""
    names: tuple[str, ...] = ()


def _on(kind: str, *verbs: str, sub: str = "") -> Right:
    known = KINDS[kind]
    return Right(f"{known.plural}/{sub}" if sub else known.plural, verbs, known.group)


READS: Final[Mapping[str, frozenset[str]]] = {
    SCHEDULER: Scheduler.kinds,
    CONTROLLERS: frozenset().union(*(one.kinds for one in controllers())),
    WEBHOOK: KINDS_LOOKED_UP,
    DASHBOARD: FOLLOWED,
}


def _writes() -> dict[str, list[Right]]:
    lists: dict[str, list[str]] = {}
    found: dict[str, list[Right]] = {DASHBOARD: []}
    found[WEBHOOK] = [
        Right(KINDS[kind].plural, ("get", "patch"), KINDS[kind].group, (CONFIGURATION,))
        for kind in (MUTATING, VALIDATING)
    ]
    for line in Path(__file__).with_name("rights.txt").read_text().splitlines():
        who, *words = line.partition("#")[0].split() or [""]
        if who.startswith("@"):
            lists.setdefault(who, []).extend(kind for word in words for kind in lists.get(word, [word]))
        elif who:
            for word in words[1:]:
                named, _, sub = word.partition("/")
                rights_on = (_on(kind, *words[0].split(","), sub=sub) for kind in lists.get(named, [named]))
                found.setdefault(who, []).extend(rights_on)
    return found


WRITES: Final[Mapping[str, Sequence[Right]]] = _writes()


def lease_of(component: str) -> str:
    """The Lease for the leader election of a component."""
    return f"enbloc-{component}"


def rights(component: str, owner_kinds: Collection[str] = ()) -> list[Right]:
    """The rights of a component in the whole cluster. `owner_kinds`: those whose pods the scheduler groups by owner."""
    reads = [_on(kind, *READ) for kind in READS[component]]
    more = [_read(kind) for kind in owner_kinds] if component in (SCHEDULER, DASHBOARD) else []
    return _merged([*reads, *more, *WRITES[component]])


def _read(kind: str) -> Right:
    """Reading a kind that may be unknown here: its plural is guessed as a CustomResourceDefinition mostly has it."""
    if kind in KINDS:
        return _on(kind, *READ)
    name, _, group = kind.partition(".")
    return Right(f"{name.lower()}s", READ, group)


def namespace_rights(component: str) -> list[Right]:
    """The rights of a component in its own namespace."""
    if component == DASHBOARD:
        return []
    if component == WEBHOOK:
        return [Right("secrets", ("get", "patch"), "", (SECRET,))]
    keys = [Right("secrets", ("get", "patch"), "", (RECORD_KEYS,))] if component == SCHEDULER else []
    return [
        *keys,
        Right("leases", ("create",), "coordination.k8s.io"),  # RBAC cannot restrict the creation of an object by name
        Right("leases", ("get", "patch"), "coordination.k8s.io", (lease_of(component),)),
    ]


def _merged(found: Iterable[Right]) -> list[Right]:
    """One right per resource, sorted."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in found:
        verbs.setdefault((right.group, right.resource, right.names), set()).update(right.verbs)
    return [
        Right(resource, tuple(sorted(having)), group, names)
        for (group, resource, names), having in sorted(verbs.items())
    ]


def rules(found: Iterable[Right]) -> list[dict[str, Any]]:
    """Rights as rules of a role: resources of one group with the same verbs in one rule."""
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for right in found:
        together.setdefault((right.group, right.verbs, right.names), []).append(right.resource)
    return [
        {"apiGroups": [group], "resources": resources}
        | ({"resourceNames": list(names)} if names else {})
        | {"verbs": list(verbs)}
        for (group, verbs, names), resources in together.items()
    ]


def roles(namespace: str, labels: Mapping[str, Mapping[str, str]], owner_kinds: Collection[str] = ()) -> list[Obj]:
    """Accounts, roles and bindings of every component; `labels` by component."""
    found: list[Obj] = []
    for component in labels:
        name = f"enbloc-{component}"
        inside = {"name": name, "namespace": namespace, "labels": labels[component]}
        outside = {"name": name, "labels": labels[component]}
        found.append(filled("account", metadata=inside))
        for kind, metadata, having in (
            ("ClusterRole", outside, rights(component, owner_kinds)),
            ("Role", inside, namespace_rights(component)),
        ):
            if having:
                found.append(filled("role", kind=kind, metadata=metadata, rules=rules(having)))
                found.append(filled("binding", kind=kind, metadata=metadata, name=name, namespace=namespace))
    return found


_USERS_WRITE: Final = (volcano.JOB, volcano.POD_GROUP, arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC)
_OF_OTHERS: Final = (koordinator.POD_GROUP, coscheduling.POD_GROUP, kai.POD_GROUP)
_USERS_READ: Final = (*_USERS_WRITE, *_OF_OTHERS, volcano.COMMAND, volcano.QUEUE)


def user_roles(labels: Mapping[str, str]) -> list[Obj]:
    """Extends the cluster's own `view`, `edit` and `admin` to our kinds. Queues, and Commands, which can close a queue
    for all users, are left to cluster administrators."""
    aggregate = "rbac.authorization.k8s.io/aggregate-to-"
    seen = _merged(_on(kind, *READ) for kind in _USERS_READ)
    written = _merged(
        _on(kind, "create", "delete", "deletecollection", "patch", "update") for kind in (*_USERS_WRITE, *_OF_OTHERS)
    )
    return [
        filled(
            "role",
            kind="ClusterRole",
            metadata={"name": f"enbloc-{role}", "labels": {**labels, f"{aggregate}{role}": "true"}},
            rules=rules(having),
        )
        for role, having in (("view", seen), ("edit", written))
    ]
