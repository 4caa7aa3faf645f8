"""All objects that `enbloc install` prints, in an order in which they can be applied.

It has no object of our own kinds: kubectl looks up every kind before it applies, so a Queue beside its definition
would fail. A controller creates the first queues. Fields that a process writes (`caBundle`, the Secret's data) are
left out, so that the manifest can be applied again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from enbloc.api.meta import Obj
from enbloc.config.vocabulary import CONFIG_FILE, CONFIG_MAP, SCHEDULER_NAMES
from enbloc.install.definitions import definitions
from enbloc.install.hooks import SERVICE_PORT, admission_policies, configurations
from enbloc.install.merging import OWN, OWN_LABEL, Merged, merge_existing
from enbloc.install.rights import COMPONENTS, DASHBOARD, SCHEDULER, WEBHOOK, lease_of, roles, user_roles
from enbloc.install.templates import filled
from enbloc.runtime.record_keys import SECRET as RECORD_KEYS
from enbloc.version import __version__
from enbloc.webhook.server import PORT, SECRET

USER_ID: Final = 65532
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
    security = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    running = {"image": settings.image, "replicas": settings.replicas, "hash": config_hash(settings.config)}
    sources = [{"ipBlock": {"cidr": cidr}} for cidr in settings.api_servers]
    return [
        filled("namespace", namespace=namespace, labels=common | security),
        *merge_existing(definitions(common), existing)[0],
        filled("priority_class", labels=common),
        *roles(namespace, labels, settings.owner_kinds),
        *user_roles(common),
        filled("config_map", name=CONFIG_MAP, namespace=namespace, labels=common, data={CONFIG_FILE: settings.config}),
        # Empty: each component fills its own, and needs no right to create Secrets.
        filled("secret", name=SECRET, namespace=namespace, labels=labels[WEBHOOK]),
        filled("secret", name=RECORD_KEYS, namespace=namespace, labels=labels[SCHEDULER]),
        *_of_components("service", namespace, labels),
        *_of_components("deployment", namespace, labels, **running),
        *_of_components("budget", namespace, labels),
        *_of_components("network_policy", namespace, labels, sources=sources or None),
        *admission_policies(namespace, common),
        *configurations(namespace, labels[WEBHOOK], settings.schedulers),
    ]


def selector(component: str) -> dict[str, str]:
    """The labels that select the pods of one component. Must never change: Deployments refuse it."""
    return {"app.kubernetes.io/name": "enbloc", "app.kubernetes.io/component": component}


def _of_components(template: str, namespace: str, labels: Mapping[str, Mapping[str, str]], **more: Any) -> list[Obj]:
    """An object for each component."""
    known = {"webhook_port": PORT, "service_port": SERVICE_PORT, "ready_port": "http", "namespace": namespace}
    known |= {"user": USER_ID, "config_map": CONFIG_MAP, "config_file": CONFIG_FILE}
    found = []
    for component, own in labels.items():
        values: dict[str, Any] = known | {"component": component, "lease": lease_of(component)} | more
        values |= {"labels": own, "selector": selector(component)}
        found.append(filled(template, **values | filled(component, **values)))
    return found


def config_hash(config: str) -> str:
    return hashlib.sha256(config.encode()).hexdigest()[:16]
