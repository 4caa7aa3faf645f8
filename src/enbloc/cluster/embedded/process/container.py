"""One container of a pod as a kubelet sees it: what it does, what it did, and how that is told in the pod's status.

Plain state; what follows from it is decided in `nodes.py`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from enbloc.units import SECOND, format_timestamp, parse_timestamp

Role = Literal["init", "sidecar", "main"]
Stage = Literal["new", "blocked", "starting", "running", "resting", "done"]
"""`blocked`: something that it needs is missing. `resting`: until it is started again. `done`: for good."""

INTERRUPTED: Final = 137
_MESSAGE_BYTES: Final = 4096


class Container:
    """A container with its present run. `run` counts from 0: how often it was restarted."""

    __slots__ = (
        "backoff",
        "exit_code",
        "has_run",
        "killed",
        "last",
        "name",
        "pid",
        "process",
        "rests_until",
        "role",
        "run",
        "spec",
        "stage",
        "started",
        "state",
        "told_to_stop",
    )

    def __init__(self, spec: dict[str, Any], role: Role) -> None:
        self.name: str = spec.get("name") or ""
        self.spec = spec
        self.role: Role = role
        self.stage: Stage = "new"
        self.run = 0
        self.has_run = False
        self.process: int | None = None
        self.pid = 0
        self.started = 0
        self.exit_code = 0
        self.backoff = 0
        self.rests_until = 0
        self.told_to_stop = False
        self.killed = False
        self.state: dict[str, Any] = _waiting("PodInitializing")
        self.last: dict[str, Any] = {}

    @property
    def is_alive(self) -> bool:
        return self.process is not None

    def may_start(self, now: int) -> bool:
        return self.stage in ("new", "blocked") or (self.stage == "resting" and now >= self.rests_until)

    def recall(self, status: dict[str, Any]) -> bool:
        """What the pod's status says of an earlier life of ours. Whether that was cut off: its process is gone."""
        self.run = int(status.get("restartCount") or 0)
        self.last = status.get("lastState") or {}
        state = status.get("state") or {}
        if "terminated" in state:
            self.state = state
            self.stage = "done"
            self.has_run = True
            self.exit_code = int(state["terminated"].get("exitCode") or 0)
            return False
        if "running" in state:
            self.has_run = True
            self.started = _instant(state["running"].get("startedAt"))
            return True
        self.has_run = bool(self.last)
        return False

    def begin(self, process: int) -> None:
        """A command was given to be run."""
        if self.has_run:
            self.run += 1
        self.process = process
        self.has_run = True
        self.stage = "starting"
        self.told_to_stop = self.killed = False

    def came_up(self, pid: int, now: int) -> None:
        self.stage = "running"
        self.pid = pid
        self.started = now
        if "terminated" in self.state:
            self.last = self.state
        self.state = {"running": {"startedAt": format_timestamp(now)}}

    def ended(self, code: int, now: int, message: str = "", reason: str = "") -> None:
        if "terminated" in self.state:
            self.last = self.state
        finished: dict[str, Any] = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "startedAt": format_timestamp(self.started or now),
            "finishedAt": format_timestamp(now),
        }
        if self.pid:
            finished["containerID"] = f"process://{self.pid}"
        if message:
            finished["message"] = message[-_MESSAGE_BYTES:]
        self.process = None
        self.exit_code = code
        self.state = {"terminated": finished}
        self.stage = "done"

    def rest(self, until: int, name: str) -> None:
        """Until it may be started again."""
        self.stage = "resting"
        self.rests_until = until
        self.last = self.state
        self.state = _waiting("CrashLoopBackOff", f"back-off restarting failed container {name}")

    def block(self, reason: str, why: str) -> None:
        self.stage = "blocked"
        if "terminated" in self.state:
            self.last = self.state
        self.state = _waiting(reason, why)

    def status(self) -> dict[str, Any]:
        runs = self.stage == "running"
        told: dict[str, Any] = {
            "name": self.name,
            "image": self.spec.get("image") or "",
            "imageID": "",
            "ready": runs or (self.role == "init" and self.stage == "done" and self.exit_code == 0),
            "started": runs,
            "restartCount": self.run,
            "state": self.state,
            "lastState": self.last,
        }
        if self.pid:
            told["containerID"] = f"process://{self.pid}"
        return told


def _waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def _instant(text: Any) -> int:
    try:
        return parse_timestamp(text)
    except ValueError:
        return SECOND
