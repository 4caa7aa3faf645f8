"""All objects that `enbloc install` prints, in an order in which they can be applied.

It has no object of our own kinds: kubectl looks up every kind before it applies, so a Queue beside its definition
would fail. A controller creates the first queues. Fields that a process writes (`caBundle`, the Secret's data) are
left out, so that the manifest can be applied again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from enbloc.api.meta import Obj
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.install import workloads
from enbloc.install.definitions import definitions
from enbloc.install.hooks import configurations
from enbloc.install.merging import OWN, OWN_LABEL, Merged, merge_existing
from enbloc.install.policies import admission_policies, network_policies
from enbloc.install.rights import COMPONENTS, DASHBOARD, WEBHOOK, roles, user_roles
from enbloc.version import __version__

_COMMON: Final = {"app.kubernetes.io/name": "enbloc", OWN_LABEL: OWN}


class Settings(msgspec.Struct, frozen=True):
    """The options of an installation. `config` is the text of the config file."""

    config: str
    namespace: str = "enbloc-system"
    image: str = f"enbloc:{__version__}"
    replicas: int = 2
    schedulers: tuple[str, ...] = SCHEDULER_NAMES
    """The scheduler names that are ours."""
    owner_kinds: tuple[str, ...] = ()
    """The kinds whose pods are grouped by owner."""
    api_servers: tuple[str, ...] = ()
    """The addresses (CIDR) of the API servers; any if empty."""
    dashboard: bool = False
    """Whether the dashboard is installed too."""


def merged_definitions(existing: Iterable[Obj]) -> list[Merged]:
    """The definitions of other projects in a cluster that ours are merged into."""
    return merge_existing(definitions(_COMMON), existing)[1]


def manifests(settings: Settings, existing: Iterable[Obj] = ()) -> list[Obj]:
    """Without custom objects: kubectl does not know their kinds before it has applied the definitions. The controllers
    create the queues `root` and `default`. `existing`: the definitions that the cluster has."""
    namespace = settings.namespace
    common = _COMMON
    components = (*COMPONENTS, DASHBOARD) if settings.dashboard else COMPONENTS
    labels = {component: common | {"app.kubernetes.io/component": component} for component in components}
    return [
        _namespace(namespace, common),
        *merge_existing(definitions(common), existing)[0],
        workloads.priority_class(common),
        *roles(namespace, labels, settings.owner_kinds),
        *user_roles(common),
        workloads.config_map(namespace, common, settings.config),
        *workloads.secrets(namespace, labels),
        *workloads.services(namespace, labels),
        *workloads.deployments(namespace, labels, settings.image, settings.replicas, settings.config),
        *workloads.budgets(namespace, labels),
        *network_policies(namespace, labels, settings.api_servers),
        *admission_policies(namespace, common),
        *configurations(namespace, labels[WEBHOOK], settings.schedulers),
    ]


def _namespace(name: str, labels: dict[str, str]) -> Obj:
    security = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels | security}}
