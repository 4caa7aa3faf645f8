"""The process that has all containers' processes as its children, so that none is ever left behind.

Run as a script of its own, with the standard library alone, so that it is small and starts at once. It reads orders
from a socket (its stdin), one JSON object a line, and answers in the same way. For each container it forks a *warden*.
The warden starts the command in a session of its own, keeps its output, and is the one to whom all that the command
ever starts falls back when it loses its parent (PR_SET_CHILD_SUBREAPER), whatever group or session it moved to. So the
warden can end all of it, and nothing else.

Who dies takes all below along: the supervisor and the wardens see the end of the sockets that they hold and kill what
they have; the command is killed by the kernel with its warden (PR_SET_PDEATHSIG). A warden that is killed leaves what
was below it to the supervisor. Before a command runs, a record of it is on disk (pid, start time, a token that is in
its environment too): if everybody was killed at one blow, the next start finds who is left (`leftovers.py`).

Orders:  {"do": "start", "id", "argv", "env", "cwd", "log", "log_bytes", "record", "token"}
         {"do": "signal", "id", "number"}     to the command's process group
         {"do": "kill", "id"}                 everything that it ever started
Answers: {"id", "what": "started", "pid"}  {"id", "what": "ended", "code"}  {"id", "what": "failed", "code", "why"}
An ended container has nothing running any more, and its log is complete.
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
"""A longer line is kept in parts."""
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
"""How many files a command may open: as many as we might when we were started."""


def prctl(option: int, argument: int) -> None:
    """Linux only; elsewhere what escapes from its process group escapes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def start_time(pid: int) -> int:
    """When the process began, in the kernel's ticks since boot; 0 if it cannot be known. With the pid it names one
    process for as long as the machine runs."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def descendants(root: int, but: Set[int] = frozenset()) -> list[int]:
    """All processes below `root`, without those in `but` and all below them; none where there is no /proc."""
    below: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    for name in names:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            below.setdefault(int(fields[1]), []).append(int(name))
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
    """Kills until nobody is left below this process: who forks while being killed is found the next time."""
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
    """The exit codes of children that have ended by now, as a shell tells them."""
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
        """What has come; `None` once the other side is gone."""
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


def log_time(nanos: int) -> bytes:
    """An instant as logs tell it; such texts sort as the instants do."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanos // 10**9)).encode() + b".%09dZ" % (nanos % 10**9)


class Log:
    """A container's output on disk: each line with the time at which it came. Two files of half the bound each."""

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
            pass  # a full disk or a directory that was taken away: the command goes on, its output is lost


class Warden:
    """Runs one command to its end. Lives in a process of its own, forked from the supervisor."""

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
            self._say(what="failed", code=128, why=f"{why.strerror}: {why.filename}" if why.filename else str(why))
            return
        if failure is not None:
            self._forget_record()
            self._say(what="failed", **failure)
            return
        self._say(what="started", pid=pid)
        code = self._attend(log, output, pid, wakeups)
        self._finish(log, output, pid)
        self._say(what="ended", code=code)

    def _say(self, **message: Any) -> None:
        self._above.write({"id": self._id, **message})

    def _start(self) -> tuple[int, int, dict[str, Any] | None]:
        """Where the output comes out, the pid, and what went wrong, if it did. The record is on disk before the
        command runs."""
        out_reading, out_writing = os.pipe()
        gate_reading, gate_writing = os.pipe()
        failed_reading, failed_writing = os.pipe()
        warden = os.getpid()
        pid = os.fork()
        if not pid:
            os.close(gate_writing)
            self._become_command(warden, out_writing, gate_reading, failed_writing)
        for fd in (out_writing, gate_reading, failed_writing):
            os.close(fd)
        self._record(pid)
        os.write(gate_writing, b"\n")
        os.close(gate_writing)
        told = b""
        while part := os.read(failed_reading, 4096):
            told += part
        os.close(failed_reading)
        return out_reading, pid, json.loads(told) if told else None

    def _become_command(self, warden: int, output: int, gate: int, failed: int) -> NoReturn:
        """In the new process: never returns."""
        order = self._order
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != warden or not os.read(gate, 1):
                os._exit(137)  # the warden went before
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
            words = f'"{order["argv"][0]}" cannot be started: {why.strerror}'
            os.write(failed, json.dumps({"code": code, "why": words}).encode())
        except BaseException as why:
            os.write(failed, json.dumps({"code": 128, "why": f"cannot be started: {why}"}).encode())
        os._exit(127)

    def _record(self, pid: int) -> None:
        path = self._order["record"]
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{pid} {start_time(pid)} {self._order['token']}\n")
        os.replace(path + ".new", path)

    def _forget_record(self) -> None:
        try:
            os.unlink(self._order["record"])
        except OSError:
            pass

    def _attend(self, log: Log, output: int, pid: int, wakeups: int) -> int:
        """Until the command ends, or nobody is above any more."""
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
        """As when the first process of a container ends: whoever is left goes too. Then the output is complete."""
        send_group(pid, signal.SIGKILL)
        until = time.monotonic() + KILL_FOR_S
        kill_all_below(until)
        until = time.monotonic() + DRAIN_FOR_S
        os.set_blocking(output, False)
        while time.monotonic() < until:
            try:
                data = os.read(output, 1 << 16)
            except BlockingIOError:  # somebody escaped and holds it
                time.sleep(0.01)
                continue
            if not data:
                break
            log.write(data)
        log.close()
        self._forget_record()


class Supervisor:
    """Passes orders to wardens and answers back, until there is nobody above any more."""

    def __init__(self, above: socket.socket) -> None:
        self._above = Lines(above)
        self._wardens: dict[int, tuple[int, Lines]] = {}  # id -> pid of the warden, its socket
        self._told: set[int] = set()  # those whose end was told
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
                self._bury(set(reap()))
            if (self._above, None) in ready:
                orders = self._above.read()
                if orders is None:
                    return
                for order in orders:
                    self._obey(order)

    def stop(self) -> None:
        """The wardens see the end of their sockets and kill what they have; whoever is left then is killed here."""
        for _, lines in self._wardens.values():
            lines.sock.close()
        until = time.monotonic() + KILL_FOR_S
        wardens = {pid for pid, _ in self._wardens.values()}
        while wardens and time.monotonic() < until:
            wardens -= set(reap())
            time.sleep(0.002)
        kill_all_below(time.monotonic() + KILL_FOR_S)

    def _obey(self, order: dict[str, Any]) -> None:
        id_ = order["id"]
        if order["do"] != "start":
            if id_ in self._wardens:
                self._wardens[id_][1].write(order)
            return
        mine, its = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as why:
            mine.close()
            its.close()
            words = f"no process can be made: {why.strerror}"
            self._above.write({"id": id_, "what": "failed", "code": 128, "why": words})
            return
        if not pid:
            mine.close()
            self._above.sock.close()
            self._watched.close()
            for _, other in self._wardens.values():
                other.sock.close()
            try:
                Warden(its, order).run()
            finally:
                os._exit(0)
        its.close()
        lines = Lines(mine)
        self._wardens[id_] = (pid, lines)
        self._watched.register(lines, selectors.EVENT_READ, id_)

    def _pass_on(self, id_: int, lines: Lines) -> None:
        answers = lines.read()
        if answers is None:
            pid, _ = self._wardens.pop(id_)
            self._watched.unregister(lines)
            lines.sock.close()
            if id_ not in self._told:  # killed, or in trouble: what was below it is ours now
                send_signal(pid, signal.SIGKILL)
                self._kill_strays()
                self._above.write({"id": id_, "what": "ended", "code": 137})
            self._told.discard(id_)
            return
        for answer in answers:
            if answer["what"] != "started":
                self._told.add(id_)
            self._above.write(answer)

    def _bury(self, dead: set[int]) -> None:
        wardens = {pid for pid, _ in self._wardens.values()}
        if dead - wardens:
            self._kill_strays()

    def _kill_strays(self) -> None:
        """Kills those below us that are no wardens and have none above them: a warden was killed."""
        until = time.monotonic() + KILL_FOR_S
        while time.monotonic() < until:
            strays = descendants(os.getpid(), {pid for pid, _ in self._wardens.values()})
            if not strays:
                return
            for pid in strays:
                send_signal(pid, signal.SIGKILL)
            reap()
            time.sleep(0.002)


def main() -> None:
    """`supervisor.py [DIRECTORY]`: the directory, if one is named, is removed at the end."""
    above = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # nobody below may hold the socket: its end must be seen
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it goes when its socket does
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES[1], FILES[1]))  # a socket a container
    gc.disable()
    gc.freeze()  # what forks share stays shared
    supervisor = Supervisor(above)
    try:
        supervisor.run()
    finally:
        supervisor.stop()
        for path in sys.argv[1:]:
            shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
