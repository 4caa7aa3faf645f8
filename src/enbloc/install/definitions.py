"""The CustomResourceDefinitions: names, schemas, and the columns of `kubectl get`.

Schemas come from the types in `api`, descriptions from `api.field_descriptions`. Added here are the rules that a schema
can express by itself. They hold even if the webhook is removed; with it, the webhook comes first and returns every
fault at once.
"""

from __future__ import annotations

from typing import Any, Final

from enbloc.admission.depends_on import ITERATIONS
from enbloc.admission.job import MAX_LABEL, MAX_ROLES
from enbloc.admission.job_policies import ACTIONS, EVENTS
from enbloc.admission.queue import STATES
from enbloc.api import arbitrator, coscheduling, kai, koordinator, volcano
from enbloc.api.field_descriptions import described
from enbloc.api.kind import Kind
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj
from enbloc.install.schema import Additions, object_schema

DEFINED: Final = (
    volcano.JOB,
    volcano.COMMAND,
    volcano.POD_GROUP,
    volcano.QUEUE,
    arbitrator.QUEUE_JOB,
    arbitrator.SCHEDULING_SPEC,
    koordinator.POD_GROUP,
    coscheduling.POD_GROUP,
    kai.POD_GROUP,
)
"""The kinds that a cluster does not have by itself."""

_UNAPPROVED: Final = "unapproved, the kind belongs to another project; enbloc serves it so that its manifests work"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")


def _column(name: str, path: str, kind: str = "string", *, wide: bool = False, help: str = "") -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    if help:
        column["description"] = help
    if wide:
        column["priority"] = 1
    return column


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "date")
_WHY: Final = '.status.conditions[?(@.type=="Unschedulable")].message'
_COUNTS: Final = ("Pending", "Succeeded", "Failed")
_COLUMNS: Final[dict[str, list[dict[str, Any]]]] = {
    volcano.JOB: [
        _column("Status", ".status.state.phase"),
        _column("minAvailable", ".status.minAvailable", "integer"),
        _column("Runnings", ".status.running", "integer", help="pods that run"),
        _AGE,
        _column("Queue", ".spec.queue", wide=True),
        *(_column(name, f".status.{name.lower()}", "integer", wide=True) for name in _COUNTS),
        _column("Message", ".status.state.message", wide=True),
    ],
    volcano.COMMAND: [
        _column("Action", ".action"),
        _column("Kind", ".target.kind"),
        _column("Target", ".target.name"),
        _AGE,
    ],
    volcano.POD_GROUP: [
        _column("Status", ".status.phase"),
        _column("minMember", ".spec.minMember", "integer"),
        _column("Runnings", ".status.running", "integer", help="members that run"),
        _AGE,
        _column("Queue", ".spec.queue", wide=True),
        _column("Why", _WHY, wide=True, help="why it waits"),
    ],
    volcano.QUEUE: [
        _column("Parent", ".spec.parent"),
        _column("State", ".status.state"),
        _column("Weight", ".spec.weight", "integer"),
        _column("Inqueue", ".status.inqueue", "integer", help="PodGroups that are enqueued and do not run yet"),
        _column("Pending", ".status.pending", "integer"),
        _column("Running", ".status.running", "integer"),
        _AGE,
        _column("Reclaimable", ".spec.reclaimable", "boolean", wide=True),
        _column("Completed", ".status.completed", "integer", wide=True),
        _column("Unknown", ".status.unknown", "integer", wide=True),
    ],
    arbitrator.QUEUE_JOB: [
        _column("Status", ".status.state.phase"),
        _column("minAvailable", ".status.minAvailable", "integer"),
        _column("Runnings", ".status.running", "integer", help="pods that run"),
        _AGE,
        *(_column(name, f".status.{name.lower()}", "integer", wide=True) for name in _COUNTS),
        _column("Message", ".status.state.message", wide=True),
    ],
    arbitrator.SCHEDULING_SPEC: [
        _column("minAvailable", ".spec.minAvailable", "integer"),
        _column("Priority", ".spec.priority", "integer"),
        _AGE,
        _column("Why", _WHY, wide=True, help="why it waits"),
    ],
    **{
        kind: [
            _column("Status", ".status.phase"),
            _column("minMember", ".spec.minMember", "integer"),
            _column("Scheduled", ".status.scheduled", "integer"),
            _column("Running", ".status.running", "integer"),
            _AGE,
            _column("Succeeded", ".status.succeeded", "integer", wide=True),
            _column("Failed", ".status.failed", "integer", wide=True),
            _column("Why", _WHY, wide=True, help="why it waits"),
        ]
        for kind in (koordinator.POD_GROUP, coscheduling.POD_GROUP)
    },
    kai.POD_GROUP: [
        _column("Status", ".status.phase"),
        _column("minMember", ".spec.minMember", "integer"),
        _column("Running", ".status.running", "integer"),
        _AGE,
        _column("Queue", ".spec.queue", wide=True),
        _column("Why", _WHY, wide=True, help="why it waits"),
    ],
}

_NOT_NEGATIVE: Final = {"minimum": 0}


def _rule(rule: str, message: str, **more: Any) -> dict[str, Any]:
    return {"rule": rule, "message": message, **more}


_UNIQUE: Final = (
    "self.all(one, !has(one.name) || one.name == '' || "
    "self.exists_one(other, has(other.name) && other.name == one.name))"
)
_ROLES: Final = {"maxItems": MAX_ROLES, "x-kubernetes-validations": [_rule(_UNIQUE, "role names must be unique")]}
"""A list of roles with unique names. Bounded, so that the rule's cost is."""


def _immutable(field: str) -> dict[str, Any]:
    return _rule(
        f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"{field} may not change",
        fieldPath=f".{field}",
    )


_ABOVE: Final = (
    "!has(self.minAvailable) || type(self.minAvailable) != int || !has(self.replicas) || "
    "self.minAvailable <= self.replicas"
)
_ADDITIONS: Final[Additions] = {
    volcano.JobSpec: {"x-kubernetes-validations": [_immutable("queue"), _immutable("schedulerName")]},
    (volcano.JobSpec, "tasks"): _ROLES,
    (volcano.JobSpec, "minAvailable"): _NOT_NEGATIVE,
    (volcano.JobSpec, "maxRetry"): _NOT_NEGATIVE,
    (volcano.JobSpec, "minSuccess"): {"minimum": 1},
    (volcano.JobSpec, "ttlSecondsAfterFinished"): _NOT_NEGATIVE,
    volcano.TaskSpec: {
        "x-kubernetes-validations": [_rule(_ABOVE, "minAvailable is above replicas", fieldPath=".minAvailable")],
    },
    (volcano.TaskSpec, "name"): {"maxLength": MAX_LABEL},
    (volcano.TaskSpec, "replicas"): _NOT_NEGATIVE,
    (volcano.TaskSpec, "minAvailable"): _NOT_NEGATIVE,
    (volcano.TaskSpec, "maxRetry"): _NOT_NEGATIVE,
    (volcano.LifecyclePolicy, "action"): {"enum": ["", *ACTIONS]},
    (volcano.LifecyclePolicy, "event"): {"enum": ["", *EVENTS]},
    (volcano.DependsOn, "iteration"): {"enum": list(ITERATIONS)},
    (volcano.PodGroupSpec, "minMember"): _NOT_NEGATIVE,
    volcano.Queue: {
        "x-kubernetes-validations": [
            _rule(
                "self.metadata.name != 'root' || !has(self.spec) || !has(self.spec.parent) || self.spec.parent == ''",
                "'root' has no parent",
                fieldPath=".spec.parent",
            )
        ],
    },
    (volcano.QueueSpec, "weight"): {"minimum": 1},
    (volcano.QueueStatus, "state"): {"enum": list(STATES)},
    (arbitrator.QueueJobSpec, "taskSpecs"): _ROLES,
    (arbitrator.TaskSpec, "name"): {"maxLength": MAX_LABEL},
    (arbitrator.TaskSpec, "replicas"): _NOT_NEGATIVE,
    (arbitrator.SchedulingTemplate, "minAvailable"): _NOT_NEGATIVE,
    (kai.PodGroupSpec, "minMember"): {"minimum": 1},
    (kai.PodGroupSpec, "minSubGroup"): {"minimum": 1},
    (kai.SubGroup, "minMember"): _NOT_NEGATIVE,
    (kai.SubGroup, "minSubGroup"): _NOT_NEGATIVE,
}


def definitions(labels: dict[str, str]) -> list[Obj]:
    """Every CustomResourceDefinition."""
    return [_definition(KINDS[kind], labels) for kind in DEFINED]


def _definition(kind: Kind, labels: dict[str, str]) -> Obj:
    assert kind.view is not None
    metadata: dict[str, Any] = {"name": f"{kind.plural}.{kind.group}", "labels": labels}
    if kind.group.endswith(_PROTECTED):
        metadata["annotations"] = {"api-approved.kubernetes.io": _UNAPPROVED}
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "categories": ["enbloc"],
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    schema = described(object_schema(kind.view, _ADDITIONS), kind.name)
    if "metadata" in schema["properties"]:
        schema["properties"]["metadata"] = {"type": "object"}  # an API server allows nothing else here
    versions: list[dict[str, Any]] = []
    for version in kind.versions:
        served: dict[str, Any] = {
            "name": version,
            "served": True,
            "storage": version == kind.versions[0],
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": _COLUMNS[kind.id],
        }
        if kind.has_status:
            served["subresources"] = {"status": {}}
        versions.append(served)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": versions,
        },
    }
