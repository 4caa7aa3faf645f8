"""kube-arbitrator's SchedulingSpec: its priority is defaulted from its class, its numbers are validated (A1).

A QueueJob contains the same template, so both use the functions of this module.
"""

from __future__ import annotations

from typing import Any

from enbloc.admission.lookup import Lookup, priority_class_faults, priority_value
from enbloc.api import arbitrator
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj
from enbloc.units import is_label_value


def admit(obj: Obj, old: Obj | None, lookup: Lookup) -> tuple[Obj, list[Fault]]:
    view(obj, arbitrator.SchedulingSpec)  # raises what the caller turns into a fault
    before = (old.get("spec") or {}) if old is not None else None
    spec = with_priority(obj.get("spec") or {}, before, lookup)
    kept = obj | {"spec": spec}
    if before is not None and spec == before:
        return kept, []
    return kept, template_faults(spec, before, "spec", lookup)


def with_priority(template: dict[str, Any], before: dict[str, Any] | None, lookup: Lookup) -> dict[str, Any]:
    """The template with the priority of its class; an earlier default is replaced when the class changes."""
    name = template.get("priorityClassName") or ""
    given = template.get("priority")
    ours = before is not None and given == before.get("priority") and name != (before.get("priorityClassName") or "")
    if given is not None and not ours:
        return template
    value = priority_value(name, lookup)
    if value is None:
        return {key: field for key, field in template.items() if key != "priority"} if ours else template
    return template | {"priority": value}


def template_faults(template: dict[str, Any], before: dict[str, Any] | None, field: str, lookup: Lookup) -> list[Fault]:
    """All faults of a scheduling template, except how its minimum relates to its pods."""
    typed = view(template, arbitrator.SchedulingTemplate)
    faults = []
    if (typed.min_available or 0) < 0:
        faults.append(Fault(f"{field}.minAvailable", f"{typed.min_available} is below 0"))
    before_class = None if before is None else before.get("priorityClassName") or ""
    if typed.priority_class_name != before_class:
        faults += priority_class_faults(typed.priority_class_name, f"{field}.priorityClassName", lookup)
    faults += _priority_faults(typed, f"{field}.priority", lookup)
    for key, value in (typed.node_selector or {}).items():
        if not is_label_value(value):
            faults.append(Fault(f"{field}.nodeSelector[{key}]", f"{value!r} is not a valid label value"))
    return faults


def _priority_faults(template: arbitrator.SchedulingTemplate, field: str, lookup: Lookup) -> list[Fault]:
    """The priority is its class's, and 0 without a class and a global default."""
    if template.priority is None:
        return []
    name = template.priority_class_name
    value = priority_value(name, lookup)
    if value is None:
        if name:
            return []  # no such class, or unknown: reported elsewhere
        value = 0
    if template.priority == value:
        return []
    whose = f"priority class {name!r} has {value}" if name else f"without a priority class it is {value}"
    return [Fault(field, f"{template.priority} differs: {whose}")]
