"""Becomes the command of `kubectl exec`, in its own session; run as a script, with the standard library alone.

The kernel kills it when the cluster's process ends (PR_SET_PDEATHSIG), so that nothing is left behind.

    exec_child.py PARENT tty|pipes COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import sys
import termios

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, streams, *argv = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):
            os._exit(137)
    if streams == "tty":
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as why:
        print(f'"{argv[0]}" cannot be started: {why.strerror}', file=sys.stderr)
        os._exit(127 if why.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main()
