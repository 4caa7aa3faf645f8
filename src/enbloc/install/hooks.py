"""The webhook configurations: which writes an API server asks us about.

Only kinds that a rule of ours is about, so no pod is ever held up by us. They fail closed: an object that nobody looked
at is not taken. The authorities to trust are left out: the webhook writes them in, and applying this again leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from enbloc.admission.review import DELETION_REVIEWED, REVIEWED
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.webhook.server import CONFIGURATION, MUTATE, SERVICE, VALIDATE

SERVICE_PORT: Final = 443
TIMEOUT_S: Final = 10


def configurations(namespace: str, labels: Mapping[str, str]) -> list[Obj]:
    written = [_rule(kind, "CREATE", "UPDATE") for kind in REVIEWED]
    deleted = [_rule(kind, "DELETE") for kind in DELETION_REVIEWED]
    mutating = _hook("mutate.enbloc.dev", namespace, MUTATE, written) | {"reinvocationPolicy": "IfNeeded"}
    validating = _hook("validate.enbloc.dev", namespace, VALIDATE, written + deleted)
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": CONFIGURATION, "labels": dict(labels)},
            "webhooks": [hook],
        }
        for kind, hook in (
            ("MutatingWebhookConfiguration", mutating),
            ("ValidatingWebhookConfiguration", validating),
        )
    ]


def _hook(name: str, namespace: str, path: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    service = {"name": SERVICE, "namespace": namespace, "path": path, "port": SERVICE_PORT}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "rules": rules,
    }


def _rule(kind: str, *operations: str) -> dict[str, Any]:
    known = KINDS[kind]
    return {
        "apiGroups": [known.group],
        "apiVersions": list(known.versions),
        "resources": [known.plural],
        "operations": list(operations),
        "scope": "Namespaced" if known.namespaced else "Cluster",
    }
