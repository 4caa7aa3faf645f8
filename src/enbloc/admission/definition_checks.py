"""What the definitions of Job and QueueJob check themselves, of objects of any scheduler.

On a cluster the API server refuses by them before any webhook is asked, jobs that name another scheduler included.
Here they are checked by hand for those jobs, so that `sim`, `lint` and `up` answer alike (N5); our own jobs are
validated whole. The checks are those of `install/definitions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from enbloc.admission.job_policies import ACTIONS, EVENTS
from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Fault, Obj
from enbloc.listing import plural

_JOB: Final = {"minAvailable": 0, "maxRetry": 0, "minSuccess": 1, "ttlSecondsAfterFinished": 0}
_ROLE: Final = {"replicas": 0, "minAvailable": 0, "maxRetry": 0}
"""Field → its least value."""
_ROLES: Final = {volcano.JOB: "tasks", arbitrator.QUEUE_JOB: "taskSpecs"}


def definition_faults(job: Obj) -> list[Fault]:
    """Of a Job or QueueJob that can be decoded."""
    return list(_faults(job["spec"], _ROLES[kind_id(job)]))


def _faults(spec: Mapping[str, Any], roles: str) -> Iterator[Fault]:
    yield from _too_small(spec, "spec", _JOB)
    yield from _policies(spec, "spec")
    seen: set[str] = set()
    for index, role in enumerate(spec.get(roles) or ()):
        field = f"spec.{roles}[{index}]"
        name = role.get("name") or ""
        if name and name in seen:
            yield Fault(f"{field}.name", f"{name!r} is the name of another role")
        seen.add(name)
        yield from _too_small(role, field, _ROLE)
        minimum, replicas = role.get("minAvailable"), role.get("replicas")
        if minimum is not None and replicas is not None and minimum > replicas:
            yield Fault(f"{field}.minAvailable", f"{minimum} is above the role's {plural(replicas, 'replica')}")
        yield from _policies(role, field)


def _too_small(values: Mapping[str, Any], path: str, least: Mapping[str, int]) -> Iterator[Fault]:
    for field, bound in least.items():
        value = values.get(field)
        if isinstance(value, int) and value < bound:
            yield Fault(f"{path}.{field}", f"{value} is below {bound}")


def _policies(values: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, policy in enumerate(values.get("policies") or ()):
        for field, known in (("action", ACTIONS), ("event", EVENTS)):
            value = policy.get(field)
            if value and value not in known:
                text = f"unknown {field} {value!r} (known: {', '.join(known)})"
                yield Fault(f"{path}.policies[{index}].{field}", text)
