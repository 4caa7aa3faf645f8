"""The status of a Deployment: counts, and the conditions Available and Progressing that `kubectl rollout` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enbloc.api.meta import Obj, condition_of, name_of
from enbloc.api.workloads import DeploymentSpec
from enbloc.controllers.workloads.owned import Outcome, condition, dig, status_patch, with_conditions
from enbloc.controllers.workloads.rolling_update import Limits
from enbloc.units import SECOND, format_timestamp, parse_timestamp


def status_of(
    owner: Obj, spec: DeploymentSpec, limits: Limits, new: Obj | None, old: Sequence[Obj], now_ns: int
) -> Outcome:
    counts = _counts(new, old)
    at = format_timestamp(now_ns)
    available = counts["availableReplicas"] >= limits.fewest_available
    reason, text = ("Available", "has") if available else ("Unavailable", "does not have")
    made = [
        condition(
            owner,
            "Available",
            "True" if available else "False",
            f"MinimumReplicas{reason}",
            f"Deployment {text} minimum availability.",
            at,
            updates=True,
        )
    ]
    progress = _progress(owner, spec, counts, new, old, now_ns)
    if progress is not None:
        made.append(progress)
    status = {
        **{key: count or None for key, count in counts.items()},
        "unavailableReplicas": max(counts["replicas"] - counts["availableReplicas"], 0) or None,
        "observedGeneration": owner["metadata"].get("generation"),
        "conditions": with_conditions(owner, *made),
    }
    return Outcome(list(status_patch(owner, status)), _deadline(spec, progress, now_ns))


def is_complete(owner: Obj, spec: DeploymentSpec, new: Obj | None, old: Sequence[Obj]) -> bool:
    """Whether all pods are of the present template and available."""
    counts = _counts(new, old)
    return new is not None and all(
        counts[key] == spec.replicas for key in ("replicas", "updatedReplicas", "availableReplicas")
    )


def _counts(new: Obj | None, old: Sequence[Obj]) -> dict[str, int]:
    sets = [*old, *([new] if new is not None else [])]

    def total(field: str) -> int:
        return sum(dig(one, "status", field) or 0 for one in sets)

    return {
        "replicas": total("replicas"),
        "updatedReplicas": (dig(new, "status", "replicas") or 0) if new is not None else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": total("availableReplicas"),
    }


def _progress(
    owner: Obj, spec: DeploymentSpec, counts: dict[str, int], new: Obj | None, old: Sequence[Obj], now_ns: int
) -> dict[str, Any] | None:
    at = format_timestamp(now_ns)
    known = condition_of(owner, "Progressing")
    if spec.paused:
        return condition(owner, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", at, updates=True)
    name = f'ReplicaSet "{name_of(new)}"' if new is not None else "Deployment"
    if is_complete(owner, spec, new, old):
        text = f"{name} has successfully progressed."
        return condition(owner, "Progressing", "True", "NewReplicaSetAvailable", text, at, updates=True)
    if new is None or known is None:
        text = "Created the first replica set"
        return known or condition(owner, "Progressing", "True", "NewReplicaSetCreated", text, at, updates=True)
    if known.get("reason") == "NewReplicaSetAvailable" and counts["replicas"] == counts["updatedReplicas"]:
        return known  # the rollout is over, whatever becomes of its pods
    if _has_progressed(owner, counts) or known.get("reason") in ("NewReplicaSetAvailable", "DeploymentPaused"):
        text = f"{name} is progressing."
        made = condition(owner, "Progressing", "True", "ReplicaSetUpdated", text, at, updates=True)
        return {**made, "lastUpdateTime": at}
    if known.get("reason") != "ProgressDeadlineExceeded" and _ends_at(spec, known) <= now_ns:
        text = f"{name} has timed out progressing."
        return condition(owner, "Progressing", "False", "ProgressDeadlineExceeded", text, at, updates=True)
    return known


def _has_progressed(owner: Obj, counts: dict[str, int]) -> bool:
    before = {key: dig(owner, "status", key) or 0 for key in counts}
    old, was_old = (one["replicas"] - one["updatedReplicas"] for one in (counts, before))
    grown = any(counts[key] > before[key] for key in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return grown or old < was_old


def _ends_at(spec: DeploymentSpec, progress: dict[str, Any]) -> int:
    since = progress.get("lastUpdateTime") or progress.get("lastTransitionTime")
    try:
        return parse_timestamp(since) + spec.progress_deadline_seconds * SECOND
    except ValueError:
        return 0


def _deadline(spec: DeploymentSpec, progress: dict[str, Any] | None, now_ns: int) -> int | None:
    waits = progress is not None and progress["reason"] in ("NewReplicaSetCreated", "ReplicaSetUpdated")
    return max(_ends_at(spec, progress), now_ns + 1) if waits and progress is not None else None
