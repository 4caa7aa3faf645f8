"""A pod's status as a kubelet reports it: container states and the conditions that follow from them.

Every function returns a merge patch of the status. Equal parts are one shared dictionary (they are never changed in
place), so that a hundred thousand running pods need the memory of one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.pods import condition, with_conditions
from enbloc.units import parse_timestamp

Status = dict[str, Any]
KILLED = 137
"""The exit code of a container that was killed."""


@lru_cache(maxsize=1024)
def _condition(type_: str, status: str, at: str, reason: str = "") -> dict[str, Any]:
    return condition(type_, status, at, reason)


@lru_cache(maxsize=4096)
def _container(
    name: str, image: str, restarts: int, now: tuple[str, str, int], before: tuple[str, str, int] | None
) -> dict[str, Any]:
    runs = now[0] == "running"
    return {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": runs,
        "started": runs,
        "restartCount": restarts,
        "state": _state(now),
        "lastState": _state(before) if before is not None else {},
    }


@lru_cache(maxsize=4096)
def _state(state: tuple[str, str, int]) -> dict[str, Any]:
    """From (`running`, since), (`waiting`, why), or (`terminated`, "start end", exit code)."""
    what, text, code = state
    if what == "running":
        return {"running": {"startedAt": text}}
    if what == "waiting":
        return {"waiting": {"reason": text}}
    started, _, finished = text.partition(" ")
    reason = "Completed" if code == 0 else "Error"
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}}


def ended(started: str, finished: str, exit_code: int) -> tuple[str, str, int]:
    """The state of a container that ran and ended."""
    return ("terminated", f"{started} {finished}", exit_code)


def _containers(pod: Obj, restarts: int, now: tuple[str, str, int], before: tuple[str, str, int] | None) -> list[Any]:
    return [
        _container(item.get("name") or "", item.get("image") or "", restarts, now, before)
        for item in pod["spec"]["containers"]
    ]


def _conditions(pod: Obj, at: str, ready: str, reason: str = "") -> list[Any]:
    return with_conditions(
        (pod.get("status") or {}).get("conditions"),
        _condition("PodScheduled", "True", at),
        _condition("Initialized", "True", at),
        _condition("Ready", ready, at, reason),
        _condition("ContainersReady", ready, at, reason),
    )


def running(pod: Obj, at: str, restarts: int, before: tuple[str, str, int] | None) -> Status:
    return {
        "phase": "Running",
        "conditions": _conditions(pod, at, "True"),
        "containerStatuses": _containers(pod, restarts, ("running", at, 0), before),
    }


def backing_off(pod: Obj, at: str, restarts: int, before: tuple[str, str, int]) -> Status:
    """Between two runs of a container that keeps ending. The pod's phase stays Running."""
    return {
        "conditions": _conditions(pod, at, "False", "ContainersNotReady"),
        "containerStatuses": _containers(pod, restarts, ("waiting", "CrashLoopBackOff", 0), before),
    }


def finished(pod: Obj, at: str, restarts: int, end: tuple[str, str, int]) -> Status:
    succeeded = end[2] == 0
    return {
        "phase": "Succeeded" if succeeded else "Failed",
        "conditions": _conditions(pod, at, "False", "PodCompleted" if succeeded else "PodFailed"),
        "containerStatuses": _containers(pod, restarts, end, None),
    }


def failed(pod: Obj, at: str, reason: str, message: str) -> Status:
    """The pod was rejected or stopped from outside; container states are left to the caller."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": message,
        "conditions": _conditions(pod, at, "False", "PodFailed"),
    }


class Run(NamedTuple):
    """Since when a pod has been running, in nanoseconds since the epoch."""

    admitted_ns: int
    started_ns: int
    restarts: int


def read_run(pod: Obj) -> Run | None:
    """The run that `running` wrote, perhaps before a restart; `None` if the containers do not run."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    if status.get("phase") != "Running" or not containers:
        return None
    state = (containers[0].get("state") or {}).get("running")
    if state is None:
        return None
    try:
        started = parse_timestamp(state.get("startedAt"))
        admitted_ns = parse_timestamp(status["startTime"]) if status.get("startTime") else started
    except (TypeError, ValueError):
        return None
    restarts = containers[0].get("restartCount")
    return Run(admitted_ns, started, restarts if isinstance(restarts, int) else 0)
