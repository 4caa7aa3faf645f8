"""A pod's status while its containers run as processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.pods import condition, with_conditions
from enbloc.cluster.embedded.process.container import Container

Status = dict[str, Any]


def status_of(pod: Obj, containers: Sequence[Container], at: str, address: str, started_at: str) -> Status:
    """A merge patch of the status of a pod that has not finished."""
    initialized = all(one.stage == "done" or one.role == "sidecar" for one in containers if one.role != "main")
    mains = [one for one in containers if one.role == "main"]
    ready = initialized and all(one.stage == "running" for one in containers if one.role != "init")
    has_started = initialized and any(one.has_run for one in mains)
    return {
        "phase": "Running" if has_started else "Pending",
        "conditions": _conditions(pod, at, initialized, "" if ready else "ContainersNotReady"),
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": started_at,
        **_statuses(containers),
    }


def final_status(pod: Obj, containers: Sequence[Container], at: str, failure: tuple[str, str] | None) -> Status:
    """A merge patch of the status once every container has exited; `failure` is a reason and a message."""
    deciding = [one for one in containers if one.role == "main" or (one.role == "init" and one.has_run)]
    failed = failure is not None or any(one.exit_code or not one.has_run for one in deciding)
    status: Status = {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": _conditions(pod, at, True, "PodFailed" if failed else "PodCompleted"),
        **_statuses(containers),
    }
    if failure is not None:
        status["reason"], status["message"] = failure
    return status


def _statuses(containers: Sequence[Container]) -> Status:
    statuses: Status = {"containerStatuses": [one.status() for one in containers if one.role == "main"]}
    inits = [one.status() for one in containers if one.role != "main"]
    if inits:
        statuses["initContainerStatuses"] = inits
    return statuses


def _conditions(pod: Obj, at: str, initialized: bool, not_ready: str) -> list[dict[str, Any]]:
    ready = "False" if not_ready else "True"
    return with_conditions(
        (pod.get("status") or {}).get("conditions"),
        condition("PodScheduled", "True", at),
        condition("Initialized", "True" if initialized else "False", at),
        condition("Ready", ready, at, not_ready),
        condition("ContainersReady", ready, at, not_ready),
    )
