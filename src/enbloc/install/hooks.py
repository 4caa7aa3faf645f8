"""The webhook configurations: which writes the API server sends to the webhook.

Kinds that our rules validate fail closed: an object that was not reviewed is not stored. Pods and other projects'
PodGroups are never refused and never wait for the webhook: their authors get warnings about values that are read as
something else (K3), if the webhook answers. The API server sends only pods that name our scheduler and have a key that
may be invalid; those that our own controllers create are valid. Annotations that only the scheduler writes are stripped
from what others create, if the webhook answers: they count for nothing without it too (S2).

Objects in `kube-system` are not sent: a webhook that is down must not keep a cluster from repairing itself. What the
schemas express holds there too.

The CA bundle is left out: the webhook writes it, and applying this again leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from enbloc.admission.review import DELETION_REVIEWED, REVIEWED
from enbloc.api import coscheduling, kai, koordinator
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.gangs import hints
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.install.rights import CONTROLLERS
from enbloc.install.templates import filled
from enbloc.webhook.review import ADMINISTRATORS
from enbloc.webhook.server import CONFIGURATION, MUTATE, RECORDS, SERVICE, VALIDATE, WARN

SERVICE_PORT: Final = 443
TIMEOUT_S: Final = 10
_ADVICE: Final[Mapping[str, Any]] = {"failure_policy": "Ignore", "timeout_s": 2}
_WARNED_GROUPS: Final = (koordinator.POD_GROUP, coscheduling.POD_GROUP, kai.POD_GROUP)
SPOKEN: Final = (
    koordinator.PREFIX,
    koordinator.POD_GROUP_KEY,
    coscheduling.POD_GROUP_LABEL,
    *hints.KEYS,
)
"""Prefixes of the keys of pods whose values may be invalid."""


def configurations(namespace: str, labels: Mapping[str, str], schedulers: Sequence[str] = SCHEDULER_NAMES) -> list[Obj]:
    """`schedulers`: the scheduler names that are ours."""
    written = [_rule(kind, "CREATE", "UPDATE") for kind in REVIEWED]
    deleted = [_rule(kind, "DELETE") for kind in DELETION_REVIEWED]
    mutating = _hook("mutate.enbloc.dev", namespace, MUTATE, written, reinvocation="IfNeeded")
    validating = _hook("validate.enbloc.dev", namespace, VALIDATE, written + deleted)
    groups = [_rule(kind, "CREATE", "UPDATE") for kind in _WARNED_GROUPS]
    pods, guarded = [_rule("Pod", "CREATE")], _records_to_guard(namespace)
    guarding = _hook(
        "records.enbloc.dev", namespace, RECORDS, pods + groups, **_ADVICE, reinvocation="IfNeeded", conditions=guarded
    )
    reviewed = _pods_to_review(namespace, schedulers)
    advising = [
        _hook("groups.enbloc.dev", namespace, WARN, groups, **_ADVICE),
        _hook("pods.enbloc.dev", namespace, WARN, pods, **_ADVICE, conditions=reviewed),
    ]
    return [
        filled("webhook_configuration", kind=kind, name=CONFIGURATION, labels=labels, hooks=hooks)
        for kind, hooks in (
            ("MutatingWebhookConfiguration", [mutating, guarding]),
            ("ValidatingWebhookConfiguration", [validating, *advising]),
        )
    ]


def _pods_to_review(namespace: str, schedulers: Sequence[str]) -> list[dict[str, str]]:
    """In CEL, so that other schedulers' pods are not sent."""
    maker = f"system:serviceaccount:{namespace}:enbloc-{CONTROLLERS}"
    speaks = f"key, {list(SPOKEN)!r}.exists(word, key.startsWith(word))"
    places = [f"object.metadata.{name}" for name in ("annotations", "labels")]
    return [
        {"name": "ours", "expression": f"object.spec.schedulerName in {list(schedulers)!r}"},
        {"name": "not-made-by-us", "expression": f"request.userInfo.username != {maker!r}"},
        {"name": "speaks", "expression": " || ".join(f"has({one}) && {one}.exists({speaks})" for one in places)},
    ]


def _records_to_guard(namespace: str) -> list[dict[str, str]]:
    """Objects with an annotation of ours that others write: few, and none of ordinary users."""
    return [
        {"name": "by-others", "expression": by_others(namespace)},
        {
            "name": "has-records",
            "expression": f"has(object.metadata.annotations) && {sorted(OWN_ANNOTATIONS)!r}"
            ".exists(key, key in object.metadata.annotations)",
        },
    ]


def by_others(namespace: str) -> str:
    """In CEL: the user is neither an account of ours nor a cluster administrator."""
    ours = [f"system:serviceaccounts:{namespace}", ADMINISTRATORS]
    return f"!(has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in {ours!r}))"


def _hook(name: str, namespace: str, path: str, rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    values = {"service": SERVICE, "service_port": SERVICE_PORT, "failure_policy": "Fail", "timeout_s": TIMEOUT_S} | more
    found: dict[str, Any] = filled("hook", name=name, namespace=namespace, path=path, rules=rules, **values)
    return found


def _rule(kind: str, *operations: str) -> dict[str, Any]:
    known = KINDS[kind]
    return {
        "apiGroups": [known.group],
        "apiVersions": list(known.versions),
        "resources": [known.plural],
        "operations": list(operations),
        "scope": "Namespaced" if known.namespaced else "Cluster",
    }


def admission_policies(namespace: str, labels: Mapping[str, str]) -> list[Obj]:
    """What our accounts may change beyond what RBAC can say. The API server evaluates it itself: the scheduler patches
    nothing but metadata of pods, our priority class is for our own namespace, our annotations on pods are ours."""
    known = {
        "namespace": namespace,
        "by_others": by_others(namespace),
        "own_annotations": repr(sorted(OWN_ANNOTATIONS)),
    }
    return [
        filled(template, labels=labels, **policy)
        for policy in filled("admission_policies", **known)
        for template in ("admission_policy", "admission_policy_binding")
    ]
