"""Validation of updates of a Job (M2): its minima, replicas and priority class may change."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.meta import Fault, Obj

_JOB_MAY_CHANGE: Final = frozenset({"minAvailable", "priorityClassName", "tasks"})
_ROLE_MAY_CHANGE: Final = frozenset({"replicas", "minAvailable"})


def update_faults(new: Obj, old: Obj) -> list[Fault]:
    """Each immutable field that changed, with its old and new value. Both jobs have their defaults."""
    faults: list[Fault] = []
    _compare(new["spec"], old["spec"], "spec", _JOB_MAY_CHANGE, faults)
    old_roles = {role.get("name"): role for role in old["spec"].get("tasks") or ()}
    new_roles = {role.get("name"): role for role in new["spec"].get("tasks") or ()}
    for index, role in enumerate(new["spec"].get("tasks") or ()):
        before = old_roles.get(role.get("name"))
        if before is None:
            faults.append(Fault(f"spec.tasks[{index}]", f"role {role.get('name')!r} may not be added to a job"))
        else:
            _compare(role, before, f"spec.tasks[{index}]", _ROLE_MAY_CHANGE, faults)
    faults += [
        Fault("spec.tasks", f"role {name!r} may not be removed from a job")
        for name in old_roles
        if name not in new_roles
    ]
    return faults


def _compare(new: Any, old: Any, path: str, may_change: frozenset[str], faults: list[Fault]) -> None:
    """Descends to the innermost fields that differ."""
    if new == old:
        return
    if isinstance(new, dict) and isinstance(old, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in may_change:
                _compare(new.get(key), old.get(key), f"{path}.{key}", frozenset(), faults)
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, (item, before) in enumerate(zip(new, old, strict=True)):
            _compare(item, before, f"{path}[{index}]", frozenset(), faults)
    else:
        faults.append(Fault(path, f"may not change (from {_shown(old)} to {_shown(new)})"))


def _shown(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
