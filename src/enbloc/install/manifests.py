"""All objects that `enbloc install` prints, in an order in which they can be applied."""

from __future__ import annotations

import msgspec

from enbloc import __version__
from enbloc.api.meta import Obj
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.install import workloads
from enbloc.install.definitions import definitions
from enbloc.install.hooks import configurations
from enbloc.install.policies import admission_policies, network_policies
from enbloc.install.rights import COMPONENTS, WEBHOOK, roles, user_roles


class Settings(msgspec.Struct, frozen=True):
    """The options of an installation. `config` is the text of the config file."""

    config: str
    namespace: str = "enbloc-system"
    image: str = f"enbloc:{__version__}"
    replicas: int = 2
    schedulers: tuple[str, ...] = SCHEDULER_NAMES
    """The scheduler names that are ours."""
    api_servers: tuple[str, ...] = ()
    """The addresses (CIDR) of the API servers; any if empty."""


def manifests(settings: Settings) -> list[Obj]:
    """Without custom objects: kubectl does not know their kinds before it has applied the definitions. The controllers
    create the queues `root` and `default`."""
    namespace = settings.namespace
    common = {"app.kubernetes.io/name": "enbloc", "app.kubernetes.io/part-of": "enbloc"}
    labels = {component: common | {"app.kubernetes.io/component": component} for component in COMPONENTS}
    return [
        _namespace(namespace, common),
        *definitions(common),
        workloads.priority_class(common),
        *roles(namespace, labels),
        *user_roles(common),
        workloads.config_map(namespace, common, settings.config),
        workloads.certificates(namespace, labels[WEBHOOK]),
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
