"""What an API server adds to workloads (`apps`, `batch`) before it stores them, and what it refuses in them.

Clients rely on the defaults: `kubectl describe deployment` reads `spec.replicas` without asking whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from enbloc.api import workloads
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import Fault, LabelSelector, Obj, name_of, selector_of
from enbloc.controllers.workloads.cron import Schedule
from enbloc.units import is_label_value

_DEFAULTS: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("workload_defaults.yaml").read_text()
)
"""By kind, those of its spec; and, by a word, of parts of them."""
KINDS: Final = tuple(kind for kind in _DEFAULTS if "." in kind)
_NOT_BUILT: Final = ("podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "maxFailedIndexes")
"""Fields of a Job that decide how it ends and that the controller does not know (N1)."""


def admit_workload(obj: Obj, old: Obj | None) -> tuple[Obj, list[Fault]]:
    """A workload with its defaults, and its faults; any other object as it is."""
    kind = kind_id(obj)
    if kind not in KINDS:
        return obj, []
    obj = {**obj, "spec": _defaulted(kind, obj["spec"])}
    faults = list(_FAULTS[kind](obj))
    if old is not None:
        faults += [Fault(f"spec.{field}", "field is immutable") for field in _changed(kind, old, obj)]
    return obj, faults


def with_controller_uid(obj: Obj) -> Obj:
    """A Job with the selector and the labels that name it by its UID, which is known once the Job is created."""
    if kind_id(obj) != workloads.JOB or obj["spec"].get("manualSelector"):
        return obj
    spec, uid = obj["spec"], obj["metadata"]["uid"]
    template = spec["template"]
    metadata = template.get("metadata") or {}
    given = dict.fromkeys(workloads.CONTROLLER_UID_LABELS, uid) | dict.fromkeys(workloads.JOB_NAME_LABELS, name_of(obj))
    labels = {**(metadata.get("labels") or {}), **{key: text for key, text in given.items() if is_label_value(text)}}
    template = {**template, "metadata": {**metadata, "labels": labels}}
    selector = {"matchLabels": {workloads.CONTROLLER_UID_LABELS[0]: uid}}
    return {**obj, "spec": {**spec, "selector": selector, "template": template}}


def _defaulted(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    if kind == workloads.JOB:
        return _defaulted_job(spec)
    made = {**_DEFAULTS[kind], **_present(spec)}
    if kind == workloads.CRON_JOB:
        template = made["jobTemplate"]
        return {**made, "jobTemplate": {**template, "spec": _defaulted_job(template["spec"])}}
    field = "strategy" if kind == workloads.DEPLOYMENT else "updateStrategy"
    if field in made:
        made[field] = _strategy(kind, made[field])
    return {**made, "template": _template(made["template"])}


def _present(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not None}


def _strategy(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    made = {"type": "RollingUpdate", **_present(given)}
    if made["type"] != "RollingUpdate":
        return {key: value for key, value in made.items() if key != "rollingUpdate"}
    return {**made, "rollingUpdate": {**_DEFAULTS["rolling"][kind], **_present(made.get("rollingUpdate") or {})}}


def _defaulted_job(spec: dict[str, Any]) -> dict[str, Any]:
    made = {**_DEFAULTS[workloads.JOB], **_present(spec)}
    if "completions" not in made and "parallelism" not in made:
        made["completions"] = 1
    made.setdefault("parallelism", 1)
    return {**made, "template": _template(made["template"])}


def _template(template: dict[str, Any]) -> dict[str, Any]:
    return {**template, "spec": {**_DEFAULTS["pod"], **_present(template["spec"])}}


# ---- faults


def _labels_of(template: dict[str, Any]) -> dict[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _set_faults(obj: Obj) -> Iterator[Fault]:
    """Of the kinds in `apps`."""
    spec = obj["spec"]
    replicas = spec.get("replicas", 0)
    if replicas < 0:
        yield Fault("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
    try:
        selector = selector_of(view(spec["selector"], LabelSelector))
    except ValueError as why:
        yield Fault("spec.selector", str(why))
        return
    labels = _labels_of(spec["template"])
    if not spec["selector"].get("matchLabels") and not spec["selector"].get("matchExpressions"):
        yield Fault("spec.selector", "Invalid value: empty selector is invalid")
    elif selector is None or not selector.matches(labels):
        yield Fault("spec.template.metadata.labels", f"Invalid value: {labels}: `selector` does not match")
    yield from _template_faults(spec["template"], "spec.template", ("Always",))


def _template_faults(template: dict[str, Any], field: str, policies: tuple[str, ...]) -> Iterator[Fault]:
    spec = template["spec"]
    if not spec["containers"]:
        yield Fault(f"{field}.spec.containers", "Required value: a pod needs at least one container")
    if spec["restartPolicy"] not in policies:
        allowed = ", ".join(f'"{policy}"' for policy in policies)
        text = f'Unsupported value: "{spec["restartPolicy"]}": supported values: {allowed}'
        yield Fault(f"{field}.spec.restartPolicy", text)


def _job_faults(obj: Obj) -> Iterator[Fault]:
    yield from _job_spec_faults(obj["spec"], "spec")


def _job_spec_faults(spec: dict[str, Any], field: str) -> Iterator[Fault]:
    for name in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        value = spec.get(name)
        if value is not None and value < 0:
            yield Fault(f"{field}.{name}", f"Invalid value: {value}: must be greater than or equal to 0")
    for name in _NOT_BUILT:
        if spec.get(name) is not None:
            yield Fault(f"{field}.{name}", "is not supported here: remove it, or run the Job on a cluster")
    mode = spec["completionMode"]
    if mode not in ("NonIndexed", "Indexed"):
        yield Fault(f"{field}.completionMode", f'Unsupported value: "{mode}": supported: "Indexed", "NonIndexed"')
    if mode == "Indexed" and spec.get("completions") is None:
        yield Fault(f"{field}.completions", "Required value: when completion mode is Indexed")
    yield from _template_faults(spec["template"], f"{field}.template", ("OnFailure", "Never"))


def _cron_job_faults(obj: Obj) -> Iterator[Fault]:
    spec = obj["spec"]
    if len(name_of(obj)) > 52:
        yield Fault("metadata.name", "must be no more than 52 characters: its Jobs append 11")
    try:
        Schedule(spec["schedule"], spec.get("timeZone"))
    except ValueError as why:
        yield Fault("spec.schedule", f"Invalid value: {spec['schedule']!r}: {why}")
    if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
        yield Fault("spec.concurrencyPolicy", 'supported values: "Allow", "Forbid", "Replace"')
    yield from _job_spec_faults(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")


_FAULTS: Final[dict[str, Callable[[Obj], Iterator[Fault]]]] = {
    **dict.fromkeys(KINDS, _set_faults),
    workloads.JOB: _job_faults,
    workloads.CRON_JOB: _cron_job_faults,
}


def _changed(kind: str, old: Obj, new: Obj) -> Iterator[str]:
    """The fields that differ and may not."""
    fixed: tuple[str, ...] = ("selector",)
    if kind == workloads.JOB:
        fixed = ("selector", "completionMode", "template") if _has_started(old) else ("selector", "completionMode")
        if old["spec"].get("completionMode") != "Indexed":
            fixed = (*fixed, "completions")
    elif kind == workloads.STATEFUL_SET:
        fixed = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
    elif kind == workloads.CRON_JOB:
        fixed = ()
    for field in fixed:
        if old["spec"].get(field) != new["spec"].get(field):
            yield field


def _has_started(job: Obj) -> bool:
    """A suspended Job that never started may change its template (Kueue relies on it)."""
    return not job["spec"].get("suspend") or bool((job.get("status") or {}).get("startTime"))
