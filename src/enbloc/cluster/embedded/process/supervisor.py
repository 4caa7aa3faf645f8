"""The supervisor: the parent of all containers' processes, so that none is ever orphaned.

Run as a script of its own, with the standard library alone, so that it is small and starts fast. It reads orders from a
socket (its stdin), one JSON object a line, and answers in the same way. For each container it forks a *shim* (as
containerd calls it). The shim starts the command in a session of its own, writes its output to the log, and is the
subreaper (PR_SET_CHILD_SUBREAPER) of all its descendants, whatever group or session they moved to. So the shim can kill
all of them, and nothing else.

Death propagates downwards: the supervisor and the shims read the end of their sockets and kill what they started; the
kernel kills the command with its shim (PR_SET_PDEATHSIG). The descendants of a killed shim become the supervisor's.
Before a command runs, a record of it is on disk (pid, start time, a token that is in its environment too): if all were
killed at once, the next start finds what is left (`orphans.py`).

Orders:  {"do": "start", "id", "argv", "env", "cwd", "log", "log_bytes", "record", "token"}
         {"do": "signal", "id", "number"}     to the command's process group
         {"do": "kill", "id"}                 the command and all its descendants
Answers: {"id", "what": "started", "pid"}  {"id", "what": "ended", "code"}  {"id", "what": "failed", "code", "why"}
When a container has ended, none of its processes is left and its log is complete.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import sys
import time
from collections.abc import Set
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_FOR_S = 5.0
DRAIN_FOR_S = 1.0
LINE_BYTES = 16 * 1024
"""A longer line is stored in parts."""
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
"""The limit of open files for commands: the one that this process was started with."""


def prctl(option: int, argument: int) -> None:
    """Linux only; elsewhere a process that leaves its process group is not found."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def stat_of(pid: int) -> list[bytes]:
    """What /proc says of the process after its name: its state, its parent and so on (proc(5)); empty if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def all_processes() -> list[int]:
    """None where there is no /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def start_time(pid: int) -> int:
    """When the process began, in the kernel's ticks since boot; 0 if unknown. With the pid it identifies one process
    for as long as the machine runs."""
    try:
        return int(stat_of(pid)[19])
    except (ValueError, IndexError):
        return 0


def descendants(root: int, but: Set[int] = frozenset()) -> list[int]:
    """All descendants of `root`, without those in `but` and their descendants; none where there is no /proc."""
    below: dict[int, list[int]] = {}
    for pid in all_processes():
        fields = stat_of(pid)
        if fields and fields[0] != b"Z":
            below.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        children = [pid for pid in below.get(queue.pop(), ()) if pid not in but]
        found += children
        queue += children
    return found


def has_children() -> bool:
    if not hasattr(os, "waitid"):
        return True  # perhaps
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_all_below(until: float) -> None:
    """Kills all descendants of this process; those forked meanwhile are found in the next round."""
    while has_children() and time.monotonic() < until:
        found = descendants(os.getpid())
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        reap()
        if not found:
            return  # or there is no /proc
        time.sleep(0.002)


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def send_group(pgid: int, number: int) -> None:
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):
        pass


def reap() -> dict[int, int]:
    """The exit codes, as a shell gives them, of children that have ended by now."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = 128 - code if code < 0 else code


class Lines:
    """JSON objects, one a line, over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._rest = b""

    def fileno(self) -> int:
        return self.sock.fileno()

    def read(self) -> list[dict[str, Any]] | None:
        """The messages that have arrived; `None` once the other side has closed."""
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            return None
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def write(self, message: dict[str, Any]) -> bool:
        try:
            self.sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True


def child_wakeups() -> int:
    """A descriptor that is readable whenever a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def clear(wakeups: int) -> None:
    try:
        while os.read(wakeups, 512):
            pass
    except BlockingIOError:
        pass


def log_time(time_ns: int) -> bytes:
    """A time as logs show it; such texts sort as the times do."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ns // 10**9)).encode() + b".%09dZ" % (time_ns % 10**9)


class Log:
    """A container's output on disk: each line with its time. Two files of half the bound each."""

    def __init__(self, path: str, bound: int) -> None:
        self._path = path
        self._most = max(bound // 2, 2 * LINE_BYTES)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        self._rest = b""

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        stamp = log_time(time.time_ns())
        out = []
        for line in lines:
            while len(line) > LINE_BYTES:
                out.append(stamp + b" P " + line[:LINE_BYTES] + b"\n")
                line = line[LINE_BYTES:]
            out.append(stamp + b" F " + line + b"\n")
        while len(self._rest) > LINE_BYTES:
            out.append(stamp + b" P " + self._rest[:LINE_BYTES] + b"\n")
            self._rest = self._rest[LINE_BYTES:]
        if out:
            self._append(b"".join(out))

    def close(self) -> None:
        if self._rest:
            self._append(log_time(time.time_ns()) + b" P " + self._rest + b"\n")
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        try:
            if self._size and self._size + len(data) > self._most:
                os.replace(self._path, self._path + ".old")
                os.close(self._file)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                self._size = 0
            self._size += os.write(self._file, data)
        except OSError:
            pass  # disk full or directory removed: the command goes on, its output is lost


class Shim:
    """Runs one command to its end, in a process of its own, forked from the supervisor."""

    def __init__(self, above: socket.socket, order: dict[str, Any]) -> None:
        self._above = Lines(above)
        self._order = order
        self._id = order["id"]

    def run(self) -> None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        wakeups = child_wakeups()
        try:
            log = Log(self._order["log"], self._order["log_bytes"])
            output, pid, failure = self._start()
        except OSError as why:
            self._answer(what="failed", code=128, why=f"{why.strerror}: {why.filename}" if why.filename else str(why))
            return
        if failure is not None:
            self._remove_record()
            self._answer(what="failed", **failure)
            return
        self._answer(what="started", pid=pid)
        code = self._serve(log, output, pid, wakeups)
        self._finish(log, output, pid)
        self._answer(what="ended", code=code)

    def _answer(self, **message: Any) -> None:
        self._above.write({"id": self._id, **message})

    def _start(self) -> tuple[int, int, dict[str, Any] | None]:
        """The read end of the output, the pid, and the error, if any. The record is on disk before the command runs."""
        out_reading, out_writing = os.pipe()
        gate_reading, gate_writing = os.pipe()
        failed_reading, failed_writing = os.pipe()
        shim = os.getpid()
        pid = os.fork()
        if not pid:
            os.close(gate_writing)
            self._exec(shim, out_writing, gate_reading, failed_writing)
        for fd in (out_writing, gate_reading, failed_writing):
            os.close(fd)
        self._record(pid)
        os.write(gate_writing, b"\n")
        os.close(gate_writing)
        error = b""
        while part := os.read(failed_reading, 4096):
            error += part
        os.close(failed_reading)
        return out_reading, pid, json.loads(error) if error else None

    def _exec(self, shim: int, output: int, gate: int, failed: int) -> NoReturn:
        """In the new process: never returns."""
        order = self._order
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != shim or not os.read(gate, 1):
                os._exit(137)  # the shim is dead
            signal.set_wakeup_fd(-1)
            for number in ("SIGCHLD", "SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGXFSZ"):
                signal.signal(getattr(signal, number), signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_NOFILE, FILES)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(order["cwd"])
            os.execvpe(order["argv"][0], order["argv"], order["env"])
        except OSError as why:
            code = {errno.ENOENT: 127, errno.EACCES: 126, errno.ENOEXEC: 126}.get(why.errno or 0, 128)
            message = f'"{order["argv"][0]}" cannot be started: {why.strerror}'
            os.write(failed, json.dumps({"code": code, "why": message}).encode())
        except BaseException as why:
            os.write(failed, json.dumps({"code": 128, "why": f"cannot be started: {why}"}).encode())
        os._exit(127)

    def _record(self, pid: int) -> None:
        path = self._order["record"]
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{pid} {start_time(pid)} {self._order['token']}\n")
        os.replace(path + ".new", path)

    def _remove_record(self) -> None:
        try:
            os.unlink(self._order["record"])
        except OSError:
            pass

    def _serve(self, log: Log, output: int, pid: int, wakeups: int) -> int:
        """Logs output and obeys orders until the command ends; kills it when the supervisor is gone."""
        watched = selectors.DefaultSelector()
        for one in (self._above, output, wakeups):
            watched.register(one, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in watched.select()]
            if output in ready:
                data = os.read(output, 1 << 16)
                if data:
                    log.write(data)
                else:  # it closed its output and goes on
                    watched.unregister(output)
            if self._above in ready:
                orders = self._above.read()
                if orders is None:
                    orders = [{"do": "kill"}]
                    watched.unregister(self._above)
                for order in orders:
                    if order["do"] == "signal":
                        send_group(pid, order["number"])
                    else:
                        send_group(pid, signal.SIGKILL)
            if wakeups in ready:
                clear(wakeups)
                ended = reap()
                if pid in ended:
                    return ended[pid]

    def _finish(self, log: Log, output: int, pid: int) -> None:
        """As when the first process of a container ends: kills all that are left. Then the output is complete."""
        send_group(pid, signal.SIGKILL)
        until = time.monotonic() + KILL_FOR_S
        kill_all_below(until)
        until = time.monotonic() + DRAIN_FOR_S
        os.set_blocking(output, False)
        while time.monotonic() < until:
            try:
                data = os.read(output, 1 << 16)
            except BlockingIOError:  # a process that was not found still holds it
                time.sleep(0.01)
                continue
            if not data:
                break
            log.write(data)
        log.close()
        self._remove_record()


class Supervisor:
    """Passes orders to shims and their answers back, until its own socket is closed."""

    def __init__(self, above: socket.socket) -> None:
        self._above = Lines(above)
        self._shims: dict[int, tuple[int, Lines]] = {}  # id -> pid of the shim, its socket
        self._reported: set[int] = set()  # ids whose end was reported
        self._watched = selectors.DefaultSelector()

    def run(self) -> None:
        wakeups = child_wakeups()
        self._watched.register(self._above, selectors.EVENT_READ)
        self._watched.register(wakeups, selectors.EVENT_READ)
        while True:
            ready = [(key.fileobj, key.data) for key, _ in self._watched.select()]
            for lines, id_ in ready:
                if id_ is not None and isinstance(lines, Lines):
                    self._pass_on(id_, lines)
            if (wakeups, None) in ready:
                clear(wakeups)
                self._on_reaped(set(reap()))
            if (self._above, None) in ready:
                orders = self._above.read()
                if orders is None:
                    return
                for order in orders:
                    self._obey(order)

    def stop(self) -> None:
        """Closes the shims' sockets, upon which they kill what they started; then kills what is left."""
        for _, lines in self._shims.values():
            lines.sock.close()
        until = time.monotonic() + KILL_FOR_S
        shims = {pid for pid, _ in self._shims.values()}
        while shims and time.monotonic() < until:
            shims -= set(reap())
            time.sleep(0.002)
        kill_all_below(time.monotonic() + KILL_FOR_S)

    def _obey(self, order: dict[str, Any]) -> None:
        id_ = order["id"]
        if order["do"] != "start":
            if id_ in self._shims:
                self._shims[id_][1].write(order)
            return
        mine, its = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as why:
            mine.close()
            its.close()
            message = f"no process can be started: {why.strerror}"
            self._above.write({"id": id_, "what": "failed", "code": 128, "why": message})
            return
        if not pid:
            mine.close()
            self._above.sock.close()
            self._watched.close()
            for _, other in self._shims.values():
                other.sock.close()
            try:
                Shim(its, order).run()
            finally:
                os._exit(0)
        its.close()
        lines = Lines(mine)
        self._shims[id_] = (pid, lines)
        self._watched.register(lines, selectors.EVENT_READ, id_)

    def _pass_on(self, id_: int, lines: Lines) -> None:
        answers = lines.read()
        if answers is None:
            pid, _ = self._shims.pop(id_)
            self._watched.unregister(lines)
            lines.sock.close()
            if id_ not in self._reported:  # the shim was killed or failed: its descendants are ours now
                send_signal(pid, signal.SIGKILL)
                self._kill_strays()
                self._above.write({"id": id_, "what": "ended", "code": 137})
            self._reported.discard(id_)
            return
        for answer in answers:
            if answer["what"] != "started":
                self._reported.add(id_)
            self._above.write(answer)

    def _on_reaped(self, dead: set[int]) -> None:
        shims = {pid for pid, _ in self._shims.values()}
        if dead - shims:
            self._kill_strays()

    def _kill_strays(self) -> None:
        """Kills descendants that are not shims and have no shim as ancestor: their shim was killed."""
        until = time.monotonic() + KILL_FOR_S
        while time.monotonic() < until:
            strays = descendants(os.getpid(), {pid for pid, _ in self._shims.values()})
            if not strays:
                return
            for pid in strays:
                send_signal(pid, signal.SIGKILL)
            reap()
            time.sleep(0.002)


def main() -> None:
    """`supervisor.py [DIRECTORY]`: removes the directory, if given, at the end."""
    above = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # no descendant may hold the socket: its end must be read
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its socket
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES[1], FILES[1]))  # one socket per container
    gc.disable()
    gc.freeze()  # pages shared with forks stay shared
    supervisor = Supervisor(above)
    try:
        supervisor.run()
    finally:
        supervisor.stop()
        for path in sys.argv[1:]:
            shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
