"""The state of one container: its present run, the one before, and its entry in the pod's status.

Plain state; what follows from it is decided in `nodes.py`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from enbloc.cluster.embedded.process.processes import Command
from enbloc.units import SECOND, format_timestamp, parse_timestamp

Role = Literal["init", "sidecar", "main"]
Stage = Literal["new", "blocked", "starting", "running", "interrupted", "backing off", "done"]
"""`blocked`: an object that it refers to is missing. `interrupted`: it ran when the cluster was stopped. `done`:
exited."""

INTERRUPTED: Final = 137
_MESSAGE_BYTES: Final = 4096


class Container:
    """A container. `run` is the number of restarts."""

    __slots__ = (
        "backoff_ns",
        "backoff_until_ns",
        "command",
        "exit_code",
        "got_sigkill",
        "got_sigterm",
        "has_run",
        "last",
        "name",
        "pid",
        "process",
        "role",
        "run",
        "spec",
        "stage",
        "started_ns",
        "state",
    )

    def __init__(self, spec: dict[str, Any], role: Role) -> None:
        self.name: str = spec.get("name") or ""
        self.spec = spec
        self.role: Role = role
        self.stage: Stage = "new"
        self.run = 0
        self.has_run = False
        self.process: int | None = None
        self.command: Command | None = None
        """Of the present run."""
        self.pid = 0
        self.started_ns = 0
        self.exit_code = 0
        self.backoff_ns = 0
        self.backoff_until_ns = 0
        self.got_sigterm = False
        self.got_sigkill = False
        self.state: dict[str, Any] = _waiting("PodInitializing")
        self.last: dict[str, Any] = {}

    @property
    def is_alive(self) -> bool:
        return self.process is not None

    def may_start(self, now_ns: int) -> bool:
        return self.stage in ("new", "blocked") or (self.stage == "backing off" and now_ns >= self.backoff_until_ns)

    def restore(self, status: dict[str, Any]) -> None:
        """The state from before a restart of the cluster, as the pod's status has it."""
        self.run = int(status.get("restartCount") or 0)
        self.last = status.get("lastState") or {}
        state = status.get("state") or {}
        if "terminated" in state:
            self.state = state
            self.stage = "done"
            self.has_run = True
            self.exit_code = int(state["terminated"].get("exitCode") or 0)
        elif "running" in state:
            self.stage = "interrupted"
            self.has_run = True
            self.started_ns = _instant(state["running"].get("startedAt"))
        else:
            self.has_run = bool(self.last)

    def mark_starting(self, process: int) -> None:
        if self.has_run:
            self.run += 1
        self.process = process
        self.has_run = True
        self.stage = "starting"
        self.got_sigterm = self.got_sigkill = False

    def mark_running(self, pid: int, now_ns: int) -> None:
        self.stage = "running"
        self.pid = pid
        self.started_ns = now_ns
        if "terminated" in self.state:
            self.last = self.state
        self.state = {"running": {"startedAt": format_timestamp(now_ns)}}

    def mark_exited(self, code: int, now_ns: int, message: str = "", reason: str = "") -> None:
        if "terminated" in self.state:
            self.last = self.state
        finished: dict[str, Any] = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "startedAt": format_timestamp(self.started_ns or now_ns),
            "finishedAt": format_timestamp(now_ns),
        }
        if self.pid:
            finished["containerID"] = f"process://{self.pid}"
        if message:
            finished["message"] = message[-_MESSAGE_BYTES:]
        self.process = None
        self.exit_code = code
        self.state = {"terminated": finished}
        self.stage = "done"

    def back_off(self, until_ns: int) -> None:
        self.stage = "backing off"
        self.backoff_until_ns = until_ns
        self.last = self.state
        self.state = _waiting("CrashLoopBackOff", f"back-off restarting failed container {self.name}")

    def block(self, reason: str, why: str) -> None:
        self.stage = "blocked"
        if "terminated" in self.state:
            self.last = self.state
        self.state = _waiting(reason, why)

    def status(self) -> dict[str, Any]:
        runs = self.stage == "running"
        status: dict[str, Any] = {
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
            status["containerID"] = f"process://{self.pid}"
        return status


def _waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def _instant(text: Any) -> int:
    try:
        return parse_timestamp(text)
    except ValueError:
        return SECOND
