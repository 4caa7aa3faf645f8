"""What our pods may be sent, and what our accounts may change beyond what RBAC can say.

NetworkPolicies close every port but those that are used. ValidatingAdmissionPolicies, which the API server evaluates
itself, restrict the scheduler's right to patch pods to metadata, our priority class to our own namespace, and changes
of our annotations on pods to our accounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from enbloc.api.meta import Obj
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.install.hooks import by_others
from enbloc.install.rights import SCHEDULER, WEBHOOK
from enbloc.install.workloads import HTTP_PORT, PRIORITY, Labels, selector
from enbloc.webhook.server import PORT

METRICS_LABEL: Final = "enbloc.dev/scrapes-metrics"
"""On a Namespace, `"true"`: its pods may read `/metrics`."""
_API: Final = "admissionregistration.k8s.io/v1"


def network_policies(namespace: str, labels: Mapping[str, Labels], api_servers: Sequence[str]) -> list[Obj]:
    """One per component. `api_servers`: the addresses (CIDR) that may call the webhook; any if empty, since a policy
    cannot select API servers by a label. Networks exempt the probes of a node's own kubelet."""
    found: list[Obj] = []
    for component in labels:
        scraping = {"namespaceSelector": {"matchLabels": {METRICS_LABEL: "true"}}}
        ingress: list[dict[str, Any]] = [{"ports": [_port(HTTP_PORT)], "from": [scraping]}]
        if component == WEBHOOK:
            sources = [{"ipBlock": {"cidr": cidr}} for cidr in api_servers]
            ingress.append({"ports": [_port(PORT)]} | ({"from": sources} if sources else {}))
        spec = {
            "podSelector": {"matchLabels": selector(component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        }
        metadata = {"name": f"enbloc-{component}", "namespace": namespace, "labels": dict(labels[component])}
        found.append(
            {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
        )
    return found


def _port(number: int) -> dict[str, Any]:
    return {"port": number, "protocol": "TCP"}


def admission_policies(namespace: str, labels: Labels) -> list[Obj]:
    account = f"system:serviceaccount:{namespace}:enbloc-{SCHEDULER}"
    return [
        *_policy(
            "enbloc-scheduler-pods",
            labels,
            "UPDATE",
            {"name": "the-scheduler", "expression": f"request.userInfo.username == {account!r}"},
            {
                "expression": "object.spec == oldObject.spec && " + " && ".join(map(_same, ("labels", "finalizers"))),
                "message": "enbloc's scheduler changes no spec, labels or finalizers of pods",
            },
        ),
        *_policy(
            "enbloc-records",
            labels,
            "UPDATE",
            {"name": "by-others", "expression": by_others(namespace)},
            {
                "expression": f"{sorted(OWN_ANNOTATIONS)!r}.all(key, {_text_of('object')} == {_text_of('oldObject')})",
                "message": "annotations that enbloc's scheduler writes are changed by it alone",
            },
        ),
        *_policy(
            "enbloc-priority",
            labels,
            "CREATE",
            {
                "name": "our-priority",
                "expression": f"has(object.spec.priorityClassName) && object.spec.priorityClassName == {PRIORITY!r}",
            },
            {
                "expression": f"request.namespace == {namespace!r}",
                "message": f"the priority class {PRIORITY} is for the namespace {namespace} only",
            },
        ),
    ]


def _text_of(obj: str) -> str:
    notes = f"{obj}.metadata.annotations"
    return f"(has({notes}) && key in {notes} ? {notes}[key] : '')"


def _same(field: str) -> str:
    one, other = f"object.metadata.{field}", f"oldObject.metadata.{field}"
    return f"(has({one}) == has({other}) && (!has({one}) || {one} == {other}))"


def _policy(
    name: str, labels: Labels, operation: str, condition: Mapping[str, str], validation: Mapping[str, str]
) -> list[Obj]:
    """A policy on pods, and its binding. If it cannot be evaluated, the request is refused."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"], "scope": "*"}
    matched = {"resourceRules": [rule], "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    metadata = {"name": name, "labels": dict(labels)}
    return [
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": matched,  # with all defaults, so that applying it again changes nothing
                "matchConditions": [dict(condition)],
                "validations": [dict(validation)],
            },
        },
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name, "labels": dict(labels)},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]
