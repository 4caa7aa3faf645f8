"""The objects that a job needs besides its PodGroup before its pods can start: those of its plugins, its volume claims.

They are created once. The job's status records that (`controlledResources`, as Volcano does), so that the controller
does not watch every Secret of a cluster; it is recorded only after they were created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Create, Patch, Write
from enbloc.controllers.job_plugin import Plugin
from enbloc.controllers.job_plugins import config_map_name, hosts_data
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.job_volumes import new_claims

HOSTS: Final = "plugin-svc-hosts"


def wanted_record(plan: JobPlan) -> dict[str, str]:
    """The record once everything exists. The hosts of `svc` are recorded with their numbers, since they scale."""
    record = {f"plugin-{name}": name for name in plan.plugins}
    record |= {f"volume-pvc-{claim['metadata']['name']}": claim["metadata"]["name"] for claim in new_claims(plan)}
    if "svc" in plan.plugins:
        record[HOSTS] = ",".join(f"{role.name}={role.replicas}" for role in plan.roles)
    return record


def recorded(job: Obj) -> dict[str, str]:
    return (job.get("status") or {}).get("controlledResources") or {}


def is_complete(plan: JobPlan, record: Mapping[str, str]) -> bool:
    return all(record.get(key) == value for key, value in wanted_record(plan).items())


def resource_writes(plan: JobPlan, plugins: Mapping[str, Plugin], record: Mapping[str, str]) -> list[Write]:
    """Creates what is missing, and patches what the job outgrew."""
    writes: list[Write] = [
        Create(claim) for claim in new_claims(plan) if f"volume-pvc-{claim['metadata']['name']}" not in record
    ]
    for name, plugin in plugins.items():
        if f"plugin-{name}" not in record:
            writes += [Create(obj) for obj in plugin.objects(plan)]
    wanted = wanted_record(plan)
    if HOSTS in wanted and HOSTS in record and record[HOSTS] != wanted[HOSTS]:
        data: dict[str, Any] = {"data": hosts_data(plan)}
        writes.append(Patch(Ref("ConfigMap", plan.namespace, config_map_name(plan)), data))
    return writes
