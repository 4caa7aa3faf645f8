"""kube-arbitrator's QueueJob: defaults and validation (A3).

Its scheduling template is validated as in a SchedulingSpec. Any field may change later: a changed template recreates
all pods, changed numbers scale (A6).
"""

from __future__ import annotations

from typing import Any, Final

from enbloc.admission.job import pod_name_faults, replicas_faults, size_faults
from enbloc.admission.lookup import Lookup
from enbloc.admission.pod_template import template_faults as pod_faults
from enbloc.admission.schedulingspec import template_faults, with_priority
from enbloc.admission.settings import Settings
from enbloc.api import arbitrator
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, selector_of
from enbloc.listing import plural

_TWO_NAMES: Final = ("schedSpec", "schedulingSpec")


def admit(obj: Obj, old: Obj | None, lookup: Lookup, settings: Settings) -> tuple[Obj, list[Fault]]:
    view(obj, arbitrator.QueueJob)  # raises what the caller turns into a fault
    before = old["spec"] if old is not None else None
    spec, field, faults = _one_template(obj["spec"], before)
    template = with_priority(spec[field], None if before is None else _template_of(before), lookup)
    spec |= {name: template for name in _TWO_NAMES if name in spec and not faults}
    kept = _with_defaults(obj | {"spec": spec}, settings)
    if before is not None and kept["spec"] == before:
        return kept, []
    job = view(kept, arbitrator.QueueJob)
    faults += template_faults(template, None if before is None else _template_of(before), f"spec.{field}", lookup)
    faults += _job_faults(job, template, f"spec.{field}")
    return kept, faults + _role_faults(job, kept, strict=settings.strict_templates)


def _one_template(spec: dict[str, Any], before: dict[str, Any] | None) -> tuple[dict[str, Any], str, list[Fault]]:
    """`schedSpec` and `schedulingSpec` are two names of one field. Written under the second it is stored under both,
    and the one that an update changes counts."""
    spec = dict(spec)
    ours, other = (spec.get(name) for name in _TWO_NAMES)
    if other is None:
        return spec | {"schedSpec": ours or {}}, "schedSpec", []
    if ours is None or ours == other:
        return spec | {"schedSpec": other}, "schedSpec" if ours is not None else "schedulingSpec", []
    if before is not None and before.get("schedulingSpec") is not None:
        changed = [name for name in _TWO_NAMES if spec[name] != before.get(name)]
        if len(changed) == 1:
            return spec | dict.fromkeys(_TWO_NAMES, spec[changed[0]]), changed[0], []
    fault = Fault("spec.schedulingSpec", "differs from spec.schedSpec: they are two names of one field, write one")
    return spec, "schedSpec", [fault]


def _template_of(spec: dict[str, Any]) -> dict[str, Any]:
    return spec.get("schedSpec") or spec.get("schedulingSpec") or {}


def _with_defaults(obj: Obj, settings: Settings) -> Obj:
    spec = dict(obj["spec"])
    spec["schedulerName"] = spec.get("schedulerName") or settings.scheduler_name
    spec["taskSpecs"] = [
        role
        | {
            "name": role.get("name") or arbitrator.default_task_name(index),
            "replicas": 1 if role.get("replicas") is None else role["replicas"],
        }
        for index, role in enumerate(spec.get("taskSpecs") or ())
    ]
    if not spec.get("selector"):
        spec["selector"] = {"matchLabels": {arbitrator.QUEUE_JOB_LABEL: obj["metadata"]["name"]}}
    return obj | {"spec": spec}


def _job_faults(job: arbitrator.QueueJob, template: dict[str, Any], field: str) -> list[Fault]:
    roles = job.spec.task_specs or []
    faults = size_faults(job.metadata.name, roles, "spec.taskSpecs")
    total = sum(max(role.replicas, 0) for role in roles)
    minimum = template.get("minAvailable")
    if minimum is not None and minimum > total:
        faults.append(Fault(f"{field}.minAvailable", f"{minimum} is above the {plural(total, 'replica')} of all roles"))
    try:
        selector_of(job.spec.selector)
    except ValueError as why:
        faults.append(Fault("spec.selector", str(why)))
    return faults


def _role_faults(job: arbitrator.QueueJob, kept: Obj, *, strict: bool) -> list[Fault]:
    faults = []
    seen: set[str] = set()
    for index, role in enumerate(job.spec.task_specs or ()):
        field = f"spec.taskSpecs[{index}]"
        if role.name in seen:
            faults.append(Fault(f"{field}.name", f"{role.name!r} is the name of another role"))
        seen.add(role.name)
        faults += replicas_faults(role.replicas, f"{field}.replicas")
        faults += pod_name_faults(job.metadata.name, role.name, role.replicas, f"{field}.name")
        raw = kept["spec"]["taskSpecs"][index]["template"]["spec"]
        faults += pod_faults(role.template.spec, raw, f"{field}.template.spec", strict=strict)
    return faults
