"""Which pods of a job live, as its status records it, so that a controller that starts finds what went meanwhile (V2).

Of jobs with policies alone, by role, as ranges of indexes (`0-3,5`): pods of the present run that have not ended and
that the controller itself does not delete, and evicted ones for which no policy has acted yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from enbloc.controllers.job_pod_counts import MOST_INDEXES, JobPod, PodCounts
from enbloc.controllers.job_pods import pod_name
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.lifecycle import Runs

FIELD: Final = "livePods"
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def record(plan: JobPlan, pod_counts: PodCounts, runs: Runs, *, restarts: bool) -> dict[str, str]:
    """`restarts`: pods of earlier runs are among them."""
    live = dict(pod_counts.live)
    if restarts:
        for member in pod_counts.pods.values():
            if runs.is_outdated(member) and 0 <= member.index < MOST_INDEXES:
                live[member.role] = live.get(member.role, 0) & ~(1 << member.index)
    for member, _ in pod_counts.evicted.values():
        if not runs.is_outdated(member):
            live[member.role] = live.get(member.role, 0) | 1 << member.index
    bits = {role.name: live.get(role.name, 0) & ((1 << min(role.replicas, MOST_INDEXES)) - 1) for role in plan.roles}
    return {role: _ranges(found) for role, found in bits.items() if found}


def missed(plan: JobPlan, pod_counts: PodCounts, runs: Runs) -> Iterator[JobPod]:
    """The pods that went while no controller ran: those that the status last recorded, and that are gone."""
    recorded: Any = (plan.obj.get("status") or {}).get(FIELD)
    for role in plan.roles if isinstance(recorded, dict) else ():
        for index in _indexes(recorded.get(role.name), min(role.replicas, MOST_INDEXES)):
            name = pod_name(plan.name, role.name, index)
            if name not in pod_counts.pods:
                run = runs.of(role.name, name)
                yield JobPod(name=name, uid="", role=role.name, index=index, version=runs.version, run=run)


def _ranges(bits: int) -> str:
    spans = [found.span() for found in re.finditer("1+", f"{bits:b}"[::-1])]
    return ",".join(f"{first}-{end - 1}" if end - first > 1 else str(first) for first, end in spans)


def _indexes(text: object, below: int) -> Iterator[int]:
    """The numbers of a record below a bound; none of what we would not have written."""
    for part in text.split(",") if isinstance(text, str) else ():
        found = _RANGE.fullmatch(part)
        if found:
            yield from range(int(found[1]), min(int(found[2] or found[1]) + 1, below))
