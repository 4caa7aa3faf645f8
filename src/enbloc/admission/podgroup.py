"""Volcano's PodGroup: defaults and validation; and validation of Kubernetes' own."""

from __future__ import annotations

from enbloc.admission.lookup import Lookup, default_queue, priority_class_faults, queue_faults
from enbloc.api import kai, kubernetes, volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, controller_of, namespace_of
from enbloc.api.volcano import DEFAULT_QUEUE
from enbloc.gangs.composite import parent_of
from enbloc.gangs.gang_tree import DEEPEST
from enbloc.gangs.kai import subgroups_fault
from enbloc.gangs.koordinator_values import INT32_MAX
from enbloc.gangs.volcano_sub_groups import size_fault_of


def admit(obj: Obj, old: Obj | None, lookup: Lookup) -> tuple[Obj, list[Fault]]:
    spec = obj.get("spec") or {}
    queue = spec.get("queue") or DEFAULT_QUEUE
    if old is None and queue == DEFAULT_QUEUE and not _is_a_jobs(obj):  # a Job's has the queue of its Job
        queue = default_queue(namespace_of(obj), lookup)
    kept = obj | {"spec": spec | {"queue": queue}}
    group = view(kept, volcano.PodGroup)
    if old is not None and kept["spec"] == old.get("spec"):
        return kept, []
    faults = []
    if group.spec.min_member < 0:
        faults.append(Fault("spec.minMember", f"{group.spec.min_member} is below 0"))
    for role, minimum in (group.spec.min_task_member or {}).items():
        if minimum < 0:
            faults.append(Fault(f"spec.minTaskMember.{role}", f"{minimum} is below 0"))
    for resource, amount in (group.spec.min_resources or {}).items():
        if amount.nanos < 0:
            faults.append(Fault(f"spec.minResources.{resource}", f"{spec['minResources'][resource]} is below 0"))
    if text := size_fault_of(group.spec.sub_group_policy or ()):
        faults.append(Fault("spec.subGroupPolicy", text))
    before = (old or {}).get("spec") or {}
    if group.spec.queue != before.get("queue") and not _is_a_jobs(kept):
        faults += queue_faults(group.spec.queue, namespace_of(obj), "spec.queue", lookup)
    if group.spec.priority_class_name != before.get("priorityClassName", ""):
        faults += priority_class_faults(group.spec.priority_class_name, "spec.priorityClassName", lookup)
    return kept, faults


def native_faults(obj: Obj) -> list[Fault]:
    """A gang needs a minimum of at least 1, and one policy."""
    policy = view(obj, kubernetes.PodGroup).spec.scheduling_policy
    field = "spec.schedulingPolicy"
    if policy.gang is not None and policy.basic is not None:
        return [Fault(field, "has both gang and basic: keep one")]
    if policy.gang is not None and not 1 <= policy.gang.min_count <= INT32_MAX:
        return [Fault(f"{field}.gang.minCount", f"{policy.gang.min_count} is not from 1 to {INT32_MAX}")]
    return []


def composite_faults(obj: Obj, lookup: Lookup) -> list[Fault]:
    """S8: no group is further below another than a tree is deep."""
    levels, parent = 0, parent_of(obj)
    while parent and levels <= DEEPEST:
        levels += 1
        above = lookup.get(kubernetes.COMPOSITE_POD_GROUP, namespace_of(obj), parent)
        parent = parent_of(above) if above is not None else ""
    if levels <= DEEPEST:
        return []
    text = f"it is below more than {DEEPEST} CompositePodGroups, or they are in a cycle"
    return [Fault("spec.parentCompositePodGroupName", text)]


def kai_faults(obj: Obj) -> list[Fault]:
    text = subgroups_fault(view(obj, kai.PodGroup).spec.sub_groups or ())
    return [Fault("spec.subGroups", text)] if text else []


def _is_a_jobs(group: Obj) -> bool:
    """A Job's queue was judged when the Job came; a queue closed since does not stop it (V4)."""
    owner = controller_of(group)
    return owner is not None and owner.get("kind") == "Job" and str(owner.get("apiVersion")).startswith("batch.volcano")
