"""Changes of how many pods a gang has and needs: a lower minimum, the missing pods, a quota that allows them."""

from __future__ import annotations

import copy
from typing import Any

from enbloc.advice.case import Case, requests_of
from enbloc.advice.change import Candidates, Change, StepDoc, as_written, create, patch
from enbloc.advice.sources import pod_parts
from enbloc.api import koordinator, volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, annotations_of, name_of
from enbloc.api.quotas import quota_of
from enbloc.api.reasons import PendingReason
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.units import format_amount, format_quantity, parse_quantity

NATIVE_GROUP = "PodGroup.scheduling.k8s.io"
QUOTA = "ResourceQuota"
MOST_CREATED = 20


def fewer(case: Case) -> Candidates:
    """The highest lower minimum that helps: first by the pods that did not fit, then by halves."""
    least, most = 1, case.gang.minima.total - 1
    guess = case.gang.minima.total - sum(case.why.missing.values())
    if guess in range(least, most + 1):
        change = _with_minimum(case, guess)
        if change is None or (yield change):
            return
        most = guess - 1
    while least <= most:
        middle = (least + most + 1) // 2
        change = _with_minimum(case, middle)
        helped = change is not None and (yield change)
        least, most = (middle + 1, most) if helped else (least, middle - 1)


def _with_minimum(case: Case, count: int) -> Change | None:
    if case.job is not None:
        return _job_with(case, case.job, count)
    own, was = case.own, case.gang.minima.total
    if own is not None and kind_id(own) == volcano.POD_GROUP:
        body: dict[str, Any] = {"minMember": count}
        if (own.get("spec") or {}).get("minTaskMember"):
            return None
        if (own.get("spec") or {}).get("minResources"):
            body["minResources"] = None
        return Change(f"lower minMember of {case.title} from {was} to {count}", (patch(own, {"spec": body}),))
    if own is not None and kind_id(own).startswith("PodGroup.scheduling.") and "minMember" in (own.get("spec") or {}):
        text = f"lower minMember of {case.title} from {was} to {count}"
        return Change(text, (patch(own, {"spec": {"minMember": count}}),))
    if own is not None and kind_id(own) == NATIVE_GROUP:
        body = {"schedulingPolicy": {"gang": {"minCount": count}}}
        return Change(f"lower minCount of {case.title} from {was} to {count}", (patch(own, {"spec": body}),))
    return _pods_with(case, count)


def _pods_with(case: Case, count: int) -> Change | None:
    """A gang that only annotations of its pods declare."""
    pods = [case.store.get("Pod", task.namespace, task.name) for task in case.gang.tasks.values()]
    key = koordinator.MIN_AVAILABLE
    found = [pod for pod in pods if pod is not None and key in annotations_of(pod)]
    if not found or len(found) < len(pods):
        return None
    text = f"lower {key} from {case.gang.minima.total} to {count}"
    return Change(text, tuple(patch(pod, {"metadata": {"annotations": {key: str(count)}}}) for pod in found))


def _job_with(case: Case, job: Obj, count: int) -> Change | None:
    """A Job's minimum and those of its roles, lowered where pods are missing."""
    tasks = copy.deepcopy((job.get("spec") or {}).get("tasks") or [])
    minima = {task.get("name") or "": task.get("minAvailable", task.get("replicas", 1)) for task in tasks}
    excess = sum(minima.values()) - count
    lacking = [role for role in minima if role in case.why.missing] or list(minima)
    for role in lacking:
        less = min(excess, minima[role] - (1 if len(minima) > 1 else 0))
        minima[role], excess = minima[role] - less, excess - less
    if excess > 0:
        return None
    texts = []
    for task in tasks:
        least = minima[task.get("name") or ""]
        was = task.get("minAvailable", task.get("replicas", 1))
        if least != was:
            texts.append(f"of role {task.get('name')} from {was} to {least}")
            task["minAvailable"] = least
    body = {"spec": {"minAvailable": count, "tasks": tasks}}
    return Change(f"lower minAvailable {' and '.join(texts)} in Job {case.title}", (patch(job, body),))


def created(case: Case) -> Candidates:
    """The pods that are missing, like one of the same role that exists."""
    steps: list[StepDoc] = []
    texts = []
    for role, count in sorted(case.why.missing.items()):
        found = [(name, part) for source in case.sources for name, part in pod_parts(source) if name in (role, "")]
        like = next((source for source in case.sources if kind_id(source) == "Pod" and found), None)
        if like is None or count > MOST_CREATED:
            return
        model = as_written(next((part for name, part in found if name == role), like))
        for number in range(1, count + 1):
            made = copy.deepcopy(model)
            made["metadata"]["name"] = f"{name_of(model)}-more-{number}"
            steps.append(create(made))
        texts.append(f"{count} more pod{'' if count == 1 else 's'} like {name_of(model)}")
    if steps:
        yield Change(f"create {' and '.join(texts)}", tuple(steps))


def within_quota(case: Case) -> Candidates:
    """Every quota of the namespace that the missing pods exceed, raised to what they need."""
    steps: list[StepDoc] = []
    texts = []
    for quota in case.store.list(QUOTA)[0]:
        if quota["metadata"].get("namespace") != case.namespace:
            continue
        raised: dict[str, str] = {}
        used = (quota.get("status") or {}).get("used") or {}
        for key, limit in sorted(((quota.get("spec") or {}).get("hard") or {}).items()):
            most, needed = (
                parse_quantity(limit).nanos,
                parse_quantity(used.get(key, "0")).nanos + _quota_need(case, quota, key),
            )
            if needed > most:
                raised[key] = format_quantity(needed)
                texts.append(f"{key} of quota {name_of(quota)} from {limit} to {format_amount(key, needed)}")
        if raised:
            steps.append(patch(quota, {"spec": {"hard": raised}}))
    if steps:
        yield Change(f"raise {' and '.join(texts)}", tuple(steps))


def _quota_need(case: Case, quota: Obj, key: str) -> int:
    """What the missing pods, or those that room is claimed for, add to one key of a quota, in nano-units."""
    if case.why.reason is PendingReason.CLAIM_NOT_ALLOWED:
        later_room = case.engine.features.find(LaterRoom)
        return later_room.charge(quota_of(quota), case.gang)[key] if later_room is not None else 0
    name = key.removeprefix("requests.").removeprefix("limits.")
    total = 0
    for role, spec in case.roles.items():
        count = case.why.missing.get(role, 0)
        if key in ("pods", "count/pods"):
            total += count * 10**9
        elif key.startswith("limits."):
            total += count * sum(_limit(container, name) for container in spec.get("containers") or ())
        else:
            total += count * requests_of(spec).get(name, 0)
    return total


def _limit(container: dict[str, Any], name: str) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return parse_quantity(limits[name]).nanos if name in limits else 0
