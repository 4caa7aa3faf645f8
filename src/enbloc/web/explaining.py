"""The explanation of a gang for its page, made by a process of its own.

Remedies are tried on forks of a simulation (`advice`), which takes seconds of CPU time on a large cluster. In the
server's process that would delay its scheduler and its pages; and a process with threads must not fork. So a child
reads the objects from a pipe, one explanation at a time, within bounded time.
"""

from __future__ import annotations

import asyncio
import base64
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Final

import msgspec

from enbloc.api.meta import Obj
from enbloc.config import Config
from enbloc.inspect.overview import UNKNOWN, Scheduler

WITHIN_S: Final = 120.0
"""An explanation that takes longer is given up."""
KEPT_S: Final = 10.0
"""An explanation of an older state of the cluster is given up to this age: gangs change all the time."""
KEPT: Final = 64
WAITING: Final = 8
"""At most 8 requests wait for their turn."""
_BATCH: Final = 200


class Busy(Exception):
    """Too many explanations are asked for at once, or one took too long."""


class Explainer:
    """`objects`: every object of the cluster. `version`: a number that changes with every write. `scheduler`: whether
    one runs there."""

    def __init__(
        self,
        objects: Callable[[], Iterable[Obj]],
        version: Callable[[], int],
        config: Config,
        scheduler: Scheduler = UNKNOWN,
    ) -> None:
        self._scheduler = scheduler
        self._objects = objects
        self._version = version
        self._config = config
        self._kept: dict[str, tuple[int, float, Any]] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def explain(self, name: str, now_ns: int | None = None) -> Any:
        """What `enbloc explain -o json` prints, without the Steps of remedies; `None` if there is no such gang. Raises
        `Busy`."""
        kept = self._of_now(name)
        if kept is not None:
            return kept[2]
        if self._waiting >= WAITING:
            raise Busy(f"{WAITING} explanations are being made; try again in a few seconds")
        self._waiting += 1
        try:
            async with self._turn:
                kept = self._of_now(name)  # made while this one waited
                if kept is None:
                    version, began_s = self._version(), time.monotonic()
                    found = await self._made(name, now_ns if now_ns is not None else time.time_ns())
                    self._kept[name] = kept = (version, began_s, found)
                    while len(self._kept) > KEPT:
                        del self._kept[next(iter(self._kept))]
                return kept[2]
        finally:
            self._waiting -= 1

    def _of_now(self, name: str) -> tuple[int, float, Any] | None:
        kept = self._kept.get(name)
        if kept is None or (kept[0] != self._version() and time.monotonic() - kept[1] > KEPT_S):
            return None
        return kept

    async def _made(self, name: str, now_ns: int) -> Any:
        objects = list(self._objects())
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(WITHIN_S):
                assert child.stdin is not None
                assert child.stdout is not None
                head = base64.b64encode(pickle.dumps((self._config, now_ns, name, self._scheduler)))
                child.stdin.write(head + b"\n")
                for start in range(0, len(objects), _BATCH):  # in parts: encoding all of them at once blocks the loop
                    child.stdin.write(msgspec.json.encode(objects[start : start + _BATCH]) + b"\n")
                    await child.stdin.drain()
                child.stdin.close()
                answer = await child.stdout.read()
                if await child.wait() != 0:
                    raise Busy("the explanation failed; `enbloc explain` says more")
                return msgspec.json.decode(answer)
        except TimeoutError:
            raise Busy(f"the explanation took longer than {WITHIN_S:.0f} s; `enbloc explain` takes its time") from None
        except ConnectionError:
            raise Busy("the explanation failed; `enbloc explain` says more") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()


def answer(source: BinaryIO) -> bytes:
    """Reads a request from a pipe of the parent, and answers it."""
    from enbloc.advice.explanation import explain

    config, now_ns, name, scheduler = pickle.loads(base64.b64decode(source.readline()))  # of the parent alone
    objects = [obj for line in source for obj in msgspec.json.decode(line)]
    found = msgspec.to_builtins(explain(objects, now_ns, config, name, scheduler))
    for remedy in (found or {}).get("remedies") or ():
        remedy.pop("steps", None)  # whole objects: their templates may have secrets in their environment
    return msgspec.json.encode(found)


if __name__ == "__main__":
    os.nice(10)  # after the scheduler of this machine
    sys.stdout.buffer.write(answer(sys.stdin.buffer))
