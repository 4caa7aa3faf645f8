"""The annotations that script a simulated pod: when it starts, how long it runs, how it exits.

Unreadable values count as absent and are reported as faults: they never stop a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from enbloc.api.meta import Obj, annotations_of, controller_of
from enbloc.units import parse_duration

PREFIX = "sim.enbloc.dev/"
START_DELAY = PREFIX + "start-delay"
STOP_DELAY = PREFIX + "stop-delay"
RUN_TIME = PREFIX + "run-time"
EXIT_CODE = PREFIX + "exit-code"
JOB_RUN_TIME = "5s"
"""Of the pods of a `batch/v1` Job whose annotations say nothing else."""

_T = TypeVar("_T")


class PodScript(msgspec.Struct, frozen=True):
    """`run_time_ns` `None` means for ever; the last exit code repeats."""

    start_delay_ns: int = 0
    stop_delay_ns: int = 0
    run_time_ns: int | None = None
    exit_codes: tuple[int, ...] = (0,)
    faults: tuple[str, ...] = ()

    @property
    def is_varied(self) -> bool:
        """Whether the exit code depends on how often the pod has run."""
        return len(self.exit_codes) > 1

    def exit_code(self, attempt: int) -> int:
        """The exit code of attempt number `attempt`, counted from 1."""
        return self.exit_codes[min(max(attempt, 1), len(self.exit_codes)) - 1]

    def at_speed(self, speed: float) -> PodScript:
        """The same script, `speed` times as fast."""
        if speed == 1:
            return self
        run_time_ns = None if self.run_time_ns is None else round(self.run_time_ns / speed)
        delays = {
            "start_delay_ns": round(self.start_delay_ns / speed),
            "stop_delay_ns": round(self.stop_delay_ns / speed),
        }
        return msgspec.structs.replace(self, run_time_ns=run_time_ns, **delays)


_SUCCESS: tuple[int, ...] = (0,)


def read_script(pod: Obj) -> PodScript:
    """Pods with the same annotations share one script. A pod of a `batch/v1` Job ends although none says when: most of
    the commands that people run as a Job do."""
    get = annotations_of(pod).get
    owner = controller_of(pod)
    runs_to_end = owner is not None and owner.get("kind") == "Job" and owner.get("apiVersion") == "batch/v1"
    return _read(
        get(START_DELAY), get(STOP_DELAY), get(RUN_TIME, JOB_RUN_TIME if runs_to_end else None), get(EXIT_CODE)
    )


@lru_cache(maxsize=1024)
def _read(start_delay: str | None, stop_delay: str | None, run_time: str | None, exit_code: str | None) -> PodScript:
    faults: list[str] = []

    def read(key: str, text: str | None, reader: Callable[[str], _T], default: _T) -> _T:
        if text is None:
            return default
        try:
            return reader(text)
        except ValueError as why:
            faults.append(f"{key}: {why}")
            return default

    found: dict[str, Any] = {
        "start_delay_ns": read(START_DELAY, start_delay, _duration, 0),
        "stop_delay_ns": read(STOP_DELAY, stop_delay, _duration, 0),
        "run_time_ns": read(RUN_TIME, run_time, _duration, None),
        "exit_codes": read(EXIT_CODE, exit_code, read_exit_codes, _SUCCESS),
    }
    return PodScript(**found, faults=tuple(faults))


def _duration(text: str) -> int:
    nanos = parse_duration(text)
    if nanos < 0:
        raise ValueError(f"{text!r} is negative")
    return nanos


def read_exit_codes(text: str) -> tuple[int, ...]:
    codes = []
    for part in text.split(","):
        digits = part.strip()
        if not digits.isdecimal() or not digits.isascii() or int(digits) > 255:
            raise ValueError(f"{text[:60]!r} is not an exit code (0 to 255) or a comma-separated list of them")
        codes.append(int(digits))
    return tuple(codes)
