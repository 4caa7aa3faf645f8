"""What runs: a Deployment per component, with its Services and disruption budgets.

Pods meet the restricted pod security standard: no root, no privileges, no writable disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from enbloc.api.meta import Obj
from enbloc.config.vocabulary import CONFIG_FILE, CONFIG_MAP
from enbloc.install.hooks import SERVICE_PORT
from enbloc.install.rights import DASHBOARD, LEADS, SCHEDULER, WEBHOOK, lease_of
from enbloc.runtime.record_keys import SECRET as RECORD_KEYS
from enbloc.webhook.server import PORT, SECRET, SERVICE

HTTP_PORT: Final = 8080
USER_ID: Final = 65532
CONFIG_FOLDER: Final = "/etc/enbloc"
TOKEN_SECRET: Final = "enbloc-dashboard-token"
"""An administrator's, with the key `token`; without it the dashboard makes one and logs it."""
TOKEN_FOLDER: Final = "/etc/enbloc-dashboard"
PRIORITY: Final = "enbloc-system"
HIGHEST_PRIORITY: Final = 1_000_000_000
"""The highest priority that a user may define; below the cluster's own components."""

_RESOURCES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "scheduler": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
    "controllers": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    "dashboard": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    "webhook": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
}

Labels = Mapping[str, str]


def selector(component: str) -> dict[str, str]:
    """The labels that select the pods of one component. Must never change: Deployments refuse it."""
    return {"app.kubernetes.io/name": "enbloc", "app.kubernetes.io/component": component}


def priority_class(labels: Labels) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PRIORITY, "labels": dict(labels)},
        "value": HIGHEST_PRIORITY,
        "description": "enbloc itself: its own jobs must not preempt the scheduler.",
    }


def config_map(namespace: str, labels: Labels, config: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": namespace, "labels": dict(labels)},
        "data": {CONFIG_FILE: config},
    }


def secrets(namespace: str, labels: Mapping[str, Labels]) -> list[Obj]:
    """The Secrets of the webhook's certificates and of the scheduler's record keys, empty: each component fills its
    own, and needs no right to create Secrets."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace, "labels": dict(labels[component])},
            "type": "Opaque",
        }
        for component, name in ((WEBHOOK, SECRET), (SCHEDULER, RECORD_KEYS))
    ]


def services(namespace: str, labels: Mapping[str, Labels]) -> list[Obj]:
    """The webhook's Service, which API servers call, and one per component for metrics."""
    hook = {"name": "https", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": "webhook"}
    http = {"name": "http", "port": HTTP_PORT, "protocol": "TCP", "targetPort": "http"}
    ports = {f"enbloc-{component}": [http] for component in labels}
    ports[SERVICE] = [hook, http]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"enbloc-{component}", "namespace": namespace, "labels": dict(labels[component])},
            "spec": {"selector": selector(component), "ports": ports[f"enbloc-{component}"]},
        }
        for component in labels
    ]


def budgets(namespace: str, labels: Mapping[str, Labels]) -> list[Obj]:
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"enbloc-{component}", "namespace": namespace, "labels": dict(labels[component])},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(component)}},
        }
        for component in labels
    ]


def deployments(namespace: str, labels: Mapping[str, Labels], image: str, replicas: int, config: str) -> list[Obj]:
    return [_deployment(one, namespace, labels[one], image, replicas, config) for one in labels]


def _deployment(
    component: str, namespace: str, labels: Labels, image: str, replicas: int, config: str
) -> dict[str, Any]:
    name, own = f"enbloc-{component}", {"matchLabels": selector(component)}
    notes = {"enbloc.dev/config-hash": hashlib.sha256(config.encode()).hexdigest()[:16]}  # a new config, new pods
    pod: dict[str, Any] = {
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "priorityClassName": PRIORITY,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": own}
            for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
        ],
        "containers": [_container(component, image)],
        "volumes": [{"name": "config", "configMap": {"name": CONFIG_MAP}}],
    }
    if component == DASHBOARD:
        replicas = 1  # a page that is read now and then; each would have watches and a token of its own
        pod["volumes"] += [{"name": "token", "secret": {"secretName": TOKEN_SECRET, "optional": True}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": own,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": dict(labels), "annotations": notes}, "spec": pod},
        },
    }


def _container(component: str, image: str) -> dict[str, Any]:
    arguments = [
        "run",
        f"--components={component}",
        f"--config={CONFIG_FOLDER}/{CONFIG_FILE}",
        "--bind-address=0.0.0.0",
        f"--port={HTTP_PORT}",
    ]
    if component in LEADS:
        arguments += [
            "--leader-elect",
            "--lease-namespace=$(ENBLOC_NAMESPACE)",
            f"--lease-name={lease_of(component)}",
        ]
    mounts = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]
    if component == DASHBOARD:
        arguments.append(f"--dashboard-token-file={TOKEN_FOLDER}/token")
        mounts.append({"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True})
    ready = _probe("/readyz")
    more: dict[str, Any] = {}
    if component == WEBHOOK:
        ready["httpGet"] |= {"port": "webhook", "scheme": "HTTPS"}  # ready when that port answers
        more["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}  # until the Service no longer routes to it
    ports = [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}]
    if component == WEBHOOK:
        ports.append({"name": "webhook", "containerPort": PORT, "protocol": "TCP"})
    return {
        "name": component,
        "image": image,
        "args": arguments,
        "env": [
            {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
            for name, path in (("ENBLOC_NAMESPACE", "metadata.namespace"), ("ENBLOC_POD", "metadata.name"))
        ],
        "ports": ports,
        # A node that is busy may take minutes to start us; a process that hangs later is replaced within one.
        "startupProbe": _probe("/healthz") | {"periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": _probe("/healthz") | {"failureThreshold": 6},
        "readinessProbe": ready | {"periodSeconds": 5},
        **more,
        "resources": {kind: dict(amounts) for kind, amounts in _RESOURCES[component].items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": mounts,
    }


def _probe(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": 3}
