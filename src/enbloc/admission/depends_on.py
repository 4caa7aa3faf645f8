"""Validation of `dependsOn` (D1): names that exist, no role that depends on itself, no cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from enbloc.api.meta import Fault
from enbloc.api.volcano import TaskSpec

ITERATIONS = ("", "any", "all")


def depends_on_faults(roles: Sequence[TaskSpec]) -> list[Fault]:
    """All faults of the roles' `dependsOn`; their names are defaulted already."""
    by_name = dict.fromkeys(role.name for role in roles)
    faults: list[Fault] = []
    for index, role in enumerate(roles):
        if role.depends_on is None:
            continue
        path = f"spec.tasks[{index}].dependsOn"
        if role.depends_on.iteration not in ITERATIONS:
            faults.append(Fault(f"{path}.iteration", f"{role.depends_on.iteration!r} is neither 'any' nor 'all'"))
        for position, name in enumerate(role.depends_on.name or ()):
            field = f"{path}.name[{position}]"
            if name == role.name:
                faults.append(Fault(field, f"role {name!r} depends on itself, a cycle: {name} → {name}"))
            elif name not in by_name:
                faults.append(Fault(field, f"there is no role {name!r} (roles: {', '.join(by_name)})"))
    return faults + _cycle_faults(roles)


def _cycle_faults(roles: Sequence[TaskSpec]) -> list[Fault]:
    """One fault a cycle, on the role that the search enters it by; self-reference is reported elsewhere."""
    waits_for = {
        role.name: [name for name in (role.depends_on.name or ()) if name != role.name]
        for role in roles
        if role.depends_on is not None
    }
    index_of = {role.name: index for index, role in reversed(list(enumerate(roles)))}
    faults = []
    done: set[str] = set()
    for role in roles:
        path = _cycle_from(role.name, waits_for, done)
        if path:
            field = f"spec.tasks[{index_of[path[0]]}].dependsOn"
            faults.append(Fault(field, f"roles depend on each other in a cycle: {' → '.join(path)}"))
    return faults


def _cycle_from(start: str, waits_for: Mapping[str, list[str]], done: set[str]) -> list[str]:
    """Depth first from one role, without recursion. Visited roles go to `done`: no cycle is reported twice."""
    if start in done:
        return []
    done.add(start)
    path = [start]
    branches = [iter(waits_for.get(start, ()))]
    while path:
        for name in branches[-1]:
            if name in path:
                return [*path[path.index(name) :], name]
            if name not in done:
                done.add(name)
                path.append(name)
                branches.append(iter(waits_for.get(name, ())))
                break
        else:
            path.pop()
            branches.pop()
    return []
