"""Volcano's Job: defaults and validation (M1, M2, V1 to V4, D1).

Leaves the table of minima to `job_minima`, policies to `job_policies`, dependencies to `depends_on` and updates to
`job_update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from enbloc.admission.depends_on import depends_on_faults
from enbloc.admission.job_minima import (
    THE_JOB,
    Minima,
    RoleMinimum,
    defaulted_minima,
    sum_faults,
    written,
)
from enbloc.admission.job_policies import idle_faults, policy_faults
from enbloc.admission.job_update import update_faults
from enbloc.admission.lookup import Lookup, default_queue, priority_class_faults, queue_faults
from enbloc.admission.pod_template import template_faults
from enbloc.admission.settings import Settings
from enbloc.api import volcano
from enbloc.api.job_plugins import NEEDS, WITHOUT_EFFECT, with_needed
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, annotations_of, namespace_of
from enbloc.api.volcano import DEFAULT_QUEUE, DEFAULTED_MINIMA
from enbloc.api.workloads import MOST_PODS
from enbloc.config.values import nearest
from enbloc.gangs.volcano_sub_groups import partitions_fault, partitions_of
from enbloc.listing import plural
from enbloc.units import is_dns_label, is_dns_subdomain

MAX_RETRY: Final = 3
MAX_POD_NAME: Final = 253
MAX_LABEL: Final = 63
MAX_ROLES: Final = 256
"""At most 256 roles in a job: API servers validate unique names only in lists of bounded length."""
"""At most 100,000 pods in a job, all roles together: a typing error should not fill the cluster's store."""


def admit(obj: Obj, old: Obj | None, lookup: Lookup, settings: Settings) -> tuple[Obj, list[Fault]]:
    view(obj, volcano.Job)  # raises what the caller turns into a fault
    base = _with_defaults(obj, settings)
    if old is None and base["spec"]["queue"] == DEFAULT_QUEUE:
        base["spec"]["queue"] = default_queue(namespace_of(obj), lookup)
    before = None if old is None else _with_defaults(old, settings)
    roles, job_minimum = _as_written(base, old)
    minima = defaulted_minima(job_minimum, roles, relaxed=settings.relaxed)
    kept = _with_minima(base, minima)
    if before is not None and kept["spec"] == before["spec"]:
        return kept, []  # an update of labels alone does not validate the spec again
    job = view(kept, volcano.Job)
    faults = _job_faults(job, obj, minima, roles, relaxed=settings.relaxed)
    faults += _role_faults(job, obj, roles, strict=settings.strict_templates)
    faults += depends_on_faults(job.spec.tasks or ())
    if before is None:
        faults += queue_faults(job.spec.queue, namespace_of(obj), "spec.queue", lookup)
    else:
        faults += update_faults(kept, before)
    if before is None or job.spec.priority_class_name != before["spec"].get("priorityClassName", ""):
        faults += priority_class_faults(job.spec.priority_class_name, "spec.priorityClassName", lookup)
    return kept, faults


def _with_defaults(obj: Obj, settings: Settings) -> Obj:
    """All defaults except the minima."""
    spec = dict(obj["spec"])
    spec["queue"] = spec.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or settings.scheduler_name
    spec["maxRetry"] = MAX_RETRY if spec.get("maxRetry") is None else spec["maxRetry"]
    if spec.get("plugins"):
        missing = [name for name in with_needed(spec["plugins"]) if name not in spec["plugins"]]
        spec["plugins"] = spec["plugins"] | {name: [] for name in missing}
    roles = []
    for index, role in enumerate(spec.get("tasks") or ()):
        roles.append(
            role
            | {
                "name": role.get("name") or f"default{index}",
                "replicas": role.get("replicas") or 0,  # Go clients leave zeros out
                "maxRetry": MAX_RETRY if role.get("maxRetry") is None else role["maxRetry"],
            }
        )
    spec["tasks"] = roles
    return obj | {"spec": spec}


def _as_written(base: Obj, old: Obj | None) -> tuple[list[RoleMinimum], int | None]:
    """The minima that the user wrote, without those that were defaulted earlier and come back unchanged."""
    before: dict[str, int | None] = {}
    defaulted: frozenset[str] = frozenset()
    if old is not None:
        before = {role.get("name", ""): role.get("minAvailable") for role in old["spec"].get("tasks") or ()}
        before[THE_JOB] = old["spec"].get("minAvailable")
        defaulted = frozenset(annotations_of(old).get(DEFAULTED_MINIMA, "").split(","))
    roles = []
    for role in base["spec"]["tasks"]:
        minimum = written(role.get("minAvailable"), role["name"], before, defaulted)
        partitions = partitions_of(role.get("partitionPolicy")) if minimum is None else None
        if partitions is not None:  # as in Volcano, its default is what they need
            minimum = partitions.minimum * partitions.size
        roles.append(RoleMinimum(role["name"], role["replicas"], minimum))
    return roles, written(base["spec"].get("minAvailable"), THE_JOB, before, defaulted)


def _with_minima(base: Obj, minima: Minima) -> Obj:
    """Sets the minima, records which of them are defaults, and marks a job whose roles depend on each other (D1)."""
    tasks = base["spec"]["tasks"]
    roles = [role | {"minAvailable": minimum} for role, minimum in zip(tasks, minima.roles, strict=True)]
    annotations = {key: value for key, value in annotations_of(base).items() if key != DEFAULTED_MINIMA}
    if minima.defaulted:
        annotations[DEFAULTED_MINIMA] = ",".join(minima.defaulted)
    if any((role.get("dependsOn") or {}).get("name") for role in roles):
        annotations[volcano.DEPENDENT_JOB] = "true"
    metadata = dict(base["metadata"])
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return base | {"metadata": metadata, "spec": base["spec"] | {"minAvailable": minima.job, "tasks": roles}}


class _Role(Protocol):
    @property
    def replicas(self) -> int: ...


def size_faults(name: str, roles: Sequence[_Role], field: str) -> list[Fault]:
    """Of the name of a Job or QueueJob, and of its roles in all."""
    faults = []
    if not is_dns_subdomain(name) or len(name) > MAX_LABEL:
        faults.append(Fault("metadata.name", f"{name!r} is not a valid job name: at most {MAX_LABEL} of a-z, 0-9, -"))
    if not roles:
        faults.append(Fault(field, "a job needs at least one role"))
    elif len(roles) > MAX_ROLES:
        faults.append(Fault(field, f"{len(roles)} roles are above {MAX_ROLES}"))
    total = sum(max(role.replicas, 0) for role in roles)
    if total > MOST_PODS and all(role.replicas <= MOST_PODS for role in roles):
        faults.append(Fault(field, f"{total} replicas in all are above {MOST_PODS}"))
    return faults


def replicas_faults(replicas: int, field: str) -> list[Fault]:
    if replicas < 0:
        return [Fault(field, f"{replicas} is below 0")]
    return [Fault(field, f"{replicas} is above {MOST_PODS}")] if replicas > MOST_PODS else []


def pod_name_faults(job: str, role: str, replicas: int, field: str) -> list[Fault]:
    """Whether JOB-ROLE-INDEX is a valid pod name."""
    pod = f"{job}-{role}-{max(replicas - 1, 0)}"
    if not is_dns_label(role):
        return [Fault(field, f"{role!r} is not a valid role name: at most {MAX_LABEL} of a-z, 0-9, -")]
    if len(pod) > MAX_POD_NAME:
        return [Fault(field, f"no pod can be called {pod!r}: {len(pod)} characters, at most {MAX_POD_NAME}")]
    return []


def _job_faults(
    job: volcano.Job, written: Obj, minima: Minima, roles: list[RoleMinimum], *, relaxed: bool
) -> list[Fault]:
    spec = job.spec
    faults = size_faults(job.metadata.name, roles, "spec.tasks")
    total = sum(max(role.replicas, 0) for role in roles)
    if minima.job < 0 and not minima.job_is_defaulted:
        faults.append(Fault("spec.minAvailable", f"{minima.job} is below 0"))
    elif minima.job > total and not minima.job_is_defaulted:
        missing = _missing_replicas(written)
        text = f"{minima.job} is above the {plural(total, 'replica')} of all roles{missing}"
        faults.append(Fault("spec.minAvailable", text))
    faults += sum_faults(minima, roles, "spec.minAvailable", relaxed=relaxed)
    for field, value in (
        ("maxRetry", spec.max_retry),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
    ):
        if value is not None and value < 0:
            faults.append(Fault(f"spec.{field}", f"{value} is below 0"))
    if spec.min_success is not None and spec.min_success < 1:
        faults.append(Fault("spec.minSuccess", f"{spec.min_success} is below 1"))
    elif spec.min_success is not None and spec.min_success > total:
        text = f"{spec.min_success} is above the {plural(total, 'replica')} of all roles"
        faults.append(Fault("spec.minSuccess", text))
    faults += policy_faults(spec.policies, "spec.policies")
    faults += idle_faults(spec.policies, spec.tasks or (), "spec.policies")
    faults += _plugin_faults(spec.plugins or {})
    return faults + _volume_faults(spec.volumes or ())


def _missing_replicas(written: Obj) -> str:
    """Which roles have no `replicas`, for a message; empty if all have."""
    tasks = written["spec"].get("tasks") or ()
    paths = [f"spec.tasks[{index}].replicas" for index, role in enumerate(tasks) if role.get("replicas") is None]
    return f" ({', '.join(paths)}: missing, which counts as 0)" if paths else ""


def _plugin_faults(plugins: Iterable[str]) -> list[Fault]:
    return [
        Fault(f"spec.plugins.{name}", f"unknown plugin {name!r} (known: {', '.join(NEEDS)}){nearest(name, NEEDS)}")
        for name in plugins
        if name not in NEEDS and name not in WITHOUT_EFFECT
    ]


def _volume_faults(volumes: Iterable[volcano.VolumeSpec]) -> list[Fault]:
    faults = []
    paths: set[str] = set()
    for index, volume in enumerate(volumes):
        field = f"spec.volumes[{index}]"
        if not volume.mount_path:
            faults.append(Fault(f"{field}.mountPath", "is missing"))
        elif volume.mount_path in paths:
            faults.append(Fault(f"{field}.mountPath", f"{volume.mount_path!r} is used by another volume"))
        paths.add(volume.mount_path)
        if volume.volume_claim is None and not volume.volume_claim_name:
            faults.append(Fault(field, "needs a volumeClaim or a volumeClaimName"))
        elif volume.volume_claim is not None and volume.volume_claim_name:
            faults.append(Fault(field, "has both a volumeClaim and a volumeClaimName: keep one"))
        if volume.volume_claim_name and not is_dns_subdomain(volume.volume_claim_name):
            faults.append(Fault(f"{field}.volumeClaimName", f"{volume.volume_claim_name!r} is not a valid claim name"))
    return faults


def _role_faults(job: volcano.Job, written: Obj, written_roles: list[RoleMinimum], *, strict: bool) -> list[Fault]:
    provided = _provided_volumes(job)

    faults: list[Fault] = []
    seen: set[str] = set()
    for index, role in enumerate(job.spec.tasks or ()):
        field = f"spec.tasks[{index}]"
        if role.name in seen:
            faults.append(Fault(f"{field}.name", f"{role.name!r} is the name of another role"))
        seen.add(role.name)
        faults += _name_faults(job, role, f"{field}.name")
        raw = written["spec"]["tasks"][index]
        defaulted = written_roles[index].minimum != role.min_available
        partitions = partitions_of(raw.get("partitionPolicy"))
        if partitions is not None and (text := partitions_fault([partitions])):
            faults.append(Fault(f"{field}.partitionPolicy.totalPartitions", text))
        faults += _number_faults(role, field, defaulted=defaulted, has_replicas=raw.get("replicas") is not None)
        faults += policy_faults(role.policies, f"{field}.policies")
        faults += idle_faults(role.policies, (role,), f"{field}.policies", of_role=True)
        faults += template_faults(
            role.template.spec,
            raw["template"]["spec"],
            f"{field}.template.spec",
            provided=provided,
            strict=strict,
        )
    return faults


def _provided_volumes(job: volcano.Job) -> frozenset[str]:
    """Volumes that the controller adds to every pod: those of the job, of `svc` and of `ssh`."""
    name = job.metadata.name
    return frozenset(
        {f"job-volume-{index}" for index in range(len(job.spec.volumes or ()))} | {f"{name}-svc", f"{name}-ssh"}
    )


def _number_faults(role: volcano.TaskSpec, field: str, *, defaulted: bool, has_replicas: bool) -> list[Fault]:
    faults = replicas_faults(role.replicas, f"{field}.replicas")
    minimum = role.min_available or 0
    if defaulted:
        pass  # it was derived from another number, and the fault is reported there
    elif minimum < 0:
        faults.append(Fault(f"{field}.minAvailable", f"{minimum} is below 0"))
    elif minimum > role.replicas:
        missing = "" if has_replicas else f" ({field}.replicas is missing, which counts as 0)"
        text = f"{minimum} is above the role's {plural(role.replicas, 'replica')}{missing}"
        faults.append(Fault(f"{field}.minAvailable", text))
    if role.max_retry is not None and role.max_retry < 0:
        faults.append(Fault(f"{field}.maxRetry", f"{role.max_retry} is below 0"))
    return faults


def _name_faults(job: volcano.Job, role: volcano.TaskSpec, field: str) -> list[Fault]:
    """Whether the names of its pods are valid and, where the job has a Service, those of hosts."""
    faults = pod_name_faults(job.metadata.name, role.name, role.replicas, field)
    pod = f"{job.metadata.name}-{role.name}-{max(role.replicas - 1, 0)}"
    if not faults and "svc" in (job.spec.plugins or {}) and not is_dns_label(pod):
        return [Fault(field, f"no host can be called {pod!r} (plugin svc): at most {MAX_LABEL} of a-z, 0-9, -")]
    return faults
