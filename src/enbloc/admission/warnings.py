"""Warnings about objects that are accepted: what counts as something else than its author may expect (N2).

The webhook and the embedded API return them to the client, `lint` prints them. Bad values of gang annotations are
warned of by `gangs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from enbloc.admission.job_policies import pending_without_timeout
from enbloc.admission.pod_template import omissions
from enbloc.admission.settings import DEFAULTS, Settings, is_foreign, not_ours
from enbloc.admission.unknown_fields import unknown_fields
from enbloc.api import arbitrator, volcano, workloads
from enbloc.api.core import PodSpec
from enbloc.api.kinds import KINDS, kind_id, view
from enbloc.api.meta import Fault, Obj
from enbloc.config.compat import DEFAULT_SCHEDULER
from enbloc.gangs.compatibility import constraints_of, template_constraints

_WORKLOADS: Final = (
    workloads.DEPLOYMENT,
    workloads.REPLICA_SET,
    workloads.STATEFUL_SET,
    workloads.DAEMON_SET,
    workloads.JOB,
)
_ROLES: Final = {volcano.JOB: "tasks", arbitrator.QUEUE_JOB: "taskSpecs"}


def warnings(obj: Obj, settings: Settings = DEFAULTS) -> list[Fault]:
    """Of an object as it was written or as it is stored."""
    if kind_id(obj) in (volcano.JOB, arbitrator.QUEUE_JOB) and is_foreign(obj, settings):
        name = obj["spec"]["schedulerName"]
        return [Fault("spec.schedulerName", f"{name!r} {not_ours(name, settings, 'no pods are created')}")]
    found = [*_version(obj), *unknown_fields(obj), *_constraints(obj), *_foreign_templates(obj, settings)]
    found += _bounds(obj)
    try:
        if kind_id(obj) == volcano.JOB:
            found += _job_warnings(view(obj, volcano.Job).spec)
        if not settings.strict_templates:  # else the webhook, or the API server, refuses them
            found += _omissions(obj)
    except (msgspec.ValidationError, KeyError):
        pass  # reported as a fault
    return found


def _version(obj: Obj) -> Iterator[Fault]:
    """An API server refuses versions that it does not serve; files are read all the same (N5)."""
    kind = KINDS.get(kind_id(obj))
    if kind is not None and obj["apiVersion"].rpartition("/")[2] not in kind.versions:
        yield Fault("apiVersion", f"{obj['apiVersion']} is not served for {kind.name}: use {kind.api_version}")


def _bounds(obj: Obj) -> Iterator[Fault]:
    """A workload of Kubernetes that asks for more pods than are made of one object."""
    kind, path, spec = kind_id(obj), "spec", obj.get("spec")
    if kind == workloads.CRON_JOB and isinstance(spec, dict):
        kind, path, spec = workloads.JOB, "spec.jobTemplate.spec", (spec.get("jobTemplate") or {}).get("spec")
    if kind not in _WORKLOADS or not isinstance(spec, dict):
        return
    fields: tuple[str, ...] = ("replicas",)
    if kind == workloads.JOB:
        fields = ("parallelism", "completions") if spec.get("completionMode") == "Indexed" else ("parallelism",)
    for field in fields:
        asked = spec.get(field)
        if isinstance(asked, int) and asked > workloads.MOST_PODS:
            text = f"{asked} is above {workloads.MOST_PODS}: `sim` and `up` make no more pods of one object"
            yield Fault(f"{path}.{field}", text)


def _constraints(obj: Obj) -> Iterator[Fault]:
    """What the object and its pod templates set, and this version does not honour (N1)."""
    for one in constraints_of(obj):
        yield Fault(one.field, one.text)
    for field, template in templates_of(obj):
        for one in template_constraints(template):
            yield Fault(f"{field}.{one.field}", one.text)


def _foreign_templates(obj: Obj, settings: Settings) -> Iterator[Fault]:
    """Pod templates that name another scheduler: their pods are made, and not scheduled here (N3)."""
    for field, template in templates_of(obj):
        spec = template.get("spec") if isinstance(template, dict) else None
        if settings.ours is None or not isinstance(spec, dict):
            continue
        of_roles = kind_id(obj) in _ROLES  # the controller fills the name in
        name = spec.get("schedulerName") or ("" if of_roles else DEFAULT_SCHEDULER)
        if isinstance(name, str) and name and name not in settings.ours:
            text = f"{name!r} {not_ours(name, settings, 'its pods are not scheduled here')}"
            yield Fault(f"{field}.spec.schedulerName", text)


def templates_of(obj: Obj) -> Iterator[tuple[str, Any]]:
    """The pod templates of an object, each with its path."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    kind = kind_id(obj)
    if kind in _ROLES:
        for index, role in enumerate(spec.get(_ROLES[kind]) or ()):
            yield f"spec.{_ROLES[kind]}[{index}].template", role.get("template") if isinstance(role, dict) else None
    elif kind == workloads.CRON_JOB:
        job = (spec.get("jobTemplate") or {}).get("spec")
        yield "spec.jobTemplate.spec.template", job.get("template") if isinstance(job, dict) else None
    elif kind in _WORKLOADS:
        yield "spec.template", spec.get("template")


def _job_warnings(spec: volcano.JobSpec) -> Iterator[Fault]:
    yield from pending_without_timeout(spec.policies, "spec.policies")
    for index, role in enumerate(spec.tasks or ()):
        field = f"spec.tasks[{index}]"
        if not role.replicas:
            text = "is 0, or missing, which counts as 0 as in Volcano: no pod of this role is created"
            yield Fault(f"{field}.replicas", text)
        yield from pending_without_timeout(role.policies, f"{field}.policies")


def _pods_of(obj: Obj) -> list[tuple[str, Any]]:
    """A pod itself, or the pod templates of an object, each with what its paths begin with."""
    return [("", obj)] if kind_id(obj) == "Pod" else [(f"{field}.", part) for field, part in templates_of(obj)]


def _omissions(obj: Obj) -> Iterator[Fault]:
    """Of a pod, and of every pod template."""
    for path, part in _pods_of(obj):
        spec = part.get("spec") if isinstance(part, dict) else None
        if isinstance(spec, dict):
            yield from omissions(view(spec, PodSpec), f"{path}spec")
