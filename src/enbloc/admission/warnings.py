"""Warnings about objects that are accepted: what counts as something else than its author may expect (N2).

The webhook and the embedded API return them to the client, `lint` prints them. Bad values of gang annotations are
warned of by `gangs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from enbloc.admission.job_policies import pending_without_timeout
from enbloc.admission.pod_template import omissions
from enbloc.admission.settings import DEFAULTS, Settings, is_foreign
from enbloc.admission.unknown_fields import unknown_fields
from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import Fault, Obj
from enbloc.config.compat import preset_of
from enbloc.gangs.compatibility import constraints_of, template_constraints

_ROLES: Final = {volcano.JOB: "tasks", arbitrator.QUEUE_JOB: "taskSpecs"}


def warnings(obj: Obj, settings: Settings = DEFAULTS) -> list[Fault]:
    """Of an object as it was written or as it is stored."""
    if kind_id(obj) in (volcano.JOB, arbitrator.QUEUE_JOB) and is_foreign(obj, settings):
        return [_foreign_warning(obj["spec"]["schedulerName"], settings)]
    found = [*unknown_fields(obj), *_constraints(obj)]
    try:
        match kind_id(obj):
            case volcano.JOB:
                found += _job_warnings(view(obj, volcano.Job).spec)
            case arbitrator.QUEUE_JOB:
                found += _queue_job_warnings(view(obj, arbitrator.QueueJob).spec)
    except (msgspec.ValidationError, KeyError):
        pass  # reported as a fault
    return found


def _constraints(obj: Obj) -> Iterator[Fault]:
    """What the object and its pod templates set, and this version does not honour (N1)."""
    for one in constraints_of(obj):
        yield Fault(one.field, one.text)
    roles = _ROLES.get(kind_id(obj), "")
    spec = obj.get("spec")
    for index, role in enumerate((spec.get(roles) or ()) if roles and isinstance(spec, dict) else ()):
        for one in template_constraints(role.get("template") if isinstance(role, dict) else None):
            yield Fault(f"spec.{roles}[{index}].template.{one.field}", one.text)


def _foreign_warning(name: str, settings: Settings) -> Fault:
    preset = preset_of(name)
    way_out = f"--compat {preset}" if preset else "schedulerNames in the config"
    text = f"{name!r} is not ours: no pods are created; use {settings.scheduler_name!r}, or {way_out}"
    return Fault("spec.schedulerName", text)


def _job_warnings(spec: volcano.JobSpec) -> Iterator[Fault]:
    yield from pending_without_timeout(spec.policies, "spec.policies")
    for index, role in enumerate(spec.tasks or ()):
        field = f"spec.tasks[{index}]"
        if not role.replicas:
            text = "is 0, or missing, which counts as 0 as in Volcano: no pod of this role is created"
            yield Fault(f"{field}.replicas", text)
        yield from pending_without_timeout(role.policies, f"{field}.policies")
        yield from omissions(role.template.spec, f"{field}.template.spec")


def _queue_job_warnings(spec: arbitrator.QueueJobSpec) -> Iterator[Fault]:
    for index, role in enumerate(spec.task_specs or ()):
        yield from omissions(role.template.spec, f"spec.taskSpecs[{index}].template.spec")
