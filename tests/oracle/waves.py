"""D: roles that begin one after the other. Each wave is a gang of its own; a whole-job gang (D5) is not."""

from __future__ import annotations

from typing import Any

Gang = dict[str, Any]


def d3_present_waves(gang: Gang, group: dict[str, Any], job: dict[str, Any] | None) -> None:
    """D3: gang checks skip roles whose wave has not begun, and the total shrinks by their minima, or where a role has
    none by its replicas. Which roles have begun is noted by the controller on the PodGroup."""
    notes = group["metadata"].get("annotations") or {}
    if notes.get("dependent-job") != "true":
        return
    gang["waves"] = True
    gang["wave_of"] = wave_numbers(job)
    begun = notes.get("enbloc.dev/begun-roles")
    if begun is None:
        return
    roles = begun.split(",")
    all_minima = (group.get("spec") or {}).get("minTaskMember") or {}
    replicas = {role["name"]: role.get("replicas") or 0 for role in tasks_of(job)}
    present = {role: count for role, count in all_minima.items() if role in roles}
    for role in d2_awaited(job, roles):
        present[role] = present.get(role) or replicas[role]
    later = {role: count or replicas.get(role, 0) for role, count in all_minima.items() if role not in roles}
    gang["minima"] = {role: count for role, count in present.items() if count > 0}
    gang["minimum"] = max(gang["minimum"] - sum(later.values()), sum(gang["minima"].values()))
    gang["more_waves"] = bool(later)


def d2_awaited(job: dict[str, Any] | None, begun: list[str]) -> list[str]:
    """D2: begun roles whose minimum is not set, and on which a role waits that has not begun: all their replicas must
    run before it does."""
    if job is None:
        return []
    unset = ((job["metadata"].get("annotations") or {}).get("enbloc.dev/defaulted-minima") or "").split(",")
    waits = [role for role in tasks_of(job) if role["name"] not in begun]
    named = {name for role in waits for name in (role.get("dependsOn") or {}).get("name") or ()}
    return sorted(name for name in named if name in begun and name in unset)


def tasks_of(job: dict[str, Any] | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ((job or {}).get("spec") or {}).get("tasks") or []
    return found


def wave_numbers(job: dict[str, Any] | None) -> dict[str, int]:
    """How many waves come before each role's own."""
    needs = {role["name"]: (role.get("dependsOn") or {}).get("name") or () for role in tasks_of(job)}
    found = dict.fromkeys(needs, 0)
    for _ in needs:
        for role, names in needs.items():
            found[role] = max((found[name] + 1 for name in names if name in found), default=0)
    return found
