"""`enbloc` in the time of a fork: a process that has imported everything already, and makes one like it when asked.

For tests that kill and start a program a hundred times. There is at most one child at a time. It is ended by the one
that made it, so its number is its own; and it ends with the test whatever happens, since that ends standard input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType


class Forks:
    """A context manager. `start` and `kill` take turns."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Forks:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PARENT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        process = self._process
        if process is not None and process.stdin is not None and process.stdout is not None:
            process.stdin.close()
            process.wait(20)
            process.stdout.close()

    def start(self, arguments: Sequence[str]) -> int:
        """Starts `enbloc` with these arguments; its number."""
        return self._ask(list(arguments))

    def kill(self) -> int:
        """SIGKILL. How it ended: -9, unless it ended before by itself."""
        return self._ask(None)

    def tail(self) -> str:
        return self._log.read_text()[-16_384:]

    def _ask(self, what: object) -> int:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"the parent ended: {self.tail()}"
        return int(answer)


_PARENT = """
import json, os, signal, sys
import enbloc.cli.main, enbloc.cli.run, enbloc.cluster.kube, enbloc.runtime.service
child = 0

def end():
    global child
    if not child:
        return 0
    os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
    _, status = os.waitpid(child, 0)
    child = 0
    return os.waitstatus_to_exitcode(status)

try:
    for line in sys.stdin:
        arguments = json.loads(line)
        if arguments is None:
            print(end(), flush=True)
            continue
        end()
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            sys.argv = ["enbloc", *arguments]
            enbloc.cli.main.main()
            os._exit(0)
        print(child, flush=True)
finally:
    if child:
        end()
"""
