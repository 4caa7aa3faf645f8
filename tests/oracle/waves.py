"""D: roles that begin one after the other. Each wave is a gang of its own; a whole-job gang (D5) is not."""

from __future__ import annotations

from typing import Any

Gang = dict[str, Any]


def d3_present_waves(gang: Gang, group: dict[str, Any], job: dict[str, Any] | None) -> None:
    """D3: gang checks skip roles whose wave has not begun, and the total shrinks by their minima. Which roles have
    begun is noted by the controller on the PodGroup."""
    notes = group["metadata"].get("annotations") or {}
    if notes.get("dependent-job") != "true":
        return
    gang["waves"] = True
    gang["wave_of"] = wave_numbers(job)
    begun = notes.get("enbloc.dev/begun-roles")
    if begun is None:
        return
    all_minima = (group.get("spec") or {}).get("minTaskMember") or {}
    later = {role: count for role, count in gang["minima"].items() if role not in begun.split(",")}
    gang["minima"] = {role: count for role, count in gang["minima"].items() if role not in later}
    gang["minimum"] = max(gang["minimum"] - sum(later.values()), 0)
    gang["more_waves"] = any(role not in begun.split(",") for role in all_minima)


def wave_numbers(job: dict[str, Any] | None) -> dict[str, int]:
    """How many waves come before each role's own."""
    roles = (job or {}).get("spec", {}).get("tasks") or ()
    needs = {role["name"]: (role.get("dependsOn") or {}).get("name") or () for role in roles}
    found = dict.fromkeys(needs, 0)
    for _ in needs:
        for role, names in needs.items():
            found[role] = max((found[name] + 1 for name in names if name in found), default=0)
    return found
