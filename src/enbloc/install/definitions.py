"""The CustomResourceDefinitions: names, schemas, and the columns of `kubectl get` (`columns.txt`).

Schemas come from the types in `api`, descriptions from `api.field_descriptions`. Added here are the rules that a schema
can express by itself. They hold even if the webhook is removed; with it, the webhook comes first and returns every
fault at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from enbloc.admission.depends_on import ITERATIONS
from enbloc.admission.job import MAX_LABEL, MAX_ROLES
from enbloc.admission.job_policies import ACTIONS, EVENTS
from enbloc.admission.queue import STATES
from enbloc.api import arbitrator, coscheduling, kai, koordinator, volcano
from enbloc.api.columns import Declared, read_columns
from enbloc.api.field_descriptions import described
from enbloc.api.kinds import KINDS, Kind
from enbloc.api.meta import Obj
from enbloc.install.schema import Additions, object_schema
from enbloc.install.templates import filled

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


def _column(declared: Declared) -> dict[str, Any]:
    column: dict[str, Any] = {"name": declared.name, "type": declared.type, "jsonPath": declared.cell}
    if declared.description:
        column["description"] = declared.description
    if declared.is_wide:
        column["priority"] = 1
    return column


_COLUMNS: Final = read_columns(Path(__file__).with_name("columns.txt").read_text())
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
    schema = described(object_schema(kind.view, _ADDITIONS), kind.name)
    if "metadata" in schema["properties"]:
        schema["properties"]["metadata"] = {"type": "object"}  # an API server allows nothing else here
    versions = [
        filled(
            "version",
            version=version,
            storage=version == kind.versions[0],
            schema=schema,
            columns=[_column(one) for one in _COLUMNS[kind.id]],
            subresources={"status": {}} if kind.has_status else None,
        )
        for version in kind.versions
    ]
    found: Obj = filled(
        "definition",
        group=kind.group,
        kind=kind.name,
        plural=kind.plural,
        singular=kind.name.lower(),
        labels=labels,
        annotations={"api-approved.kubernetes.io": _UNAPPROVED} if kind.group.endswith(_PROTECTED) else None,
        short_names=list(kind.short_names) or None,
        scope="Namespaced" if kind.namespaced else "Cluster",
        versions=versions,
    )
    return found
