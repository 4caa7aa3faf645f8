"""The programs of a real control plane, built from public Go modules and kept in a cache outside the work tree.

`go/NAME/go.mod` pins what is built, one module where versions must agree. A program is built once for a version: its
cache folder carries a digest of the module's files. A build goes to a temporary file and is renamed when it is whole,
so a killed build leaves nothing that looks like a program; a lock lets two work trees share one cache.

    python tests/e2e/binaries.py        # build what is missing, print where it is
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

MODULES = Path(__file__).parent / "go"
NOTE_EVERY_S = 20
BUILD_AT_MOST_S = 3600
# Changing how programs are built changes the digest, too.
GO_FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")


class Unavailable(Exception):
    """A program is not there and cannot be built; the message says what to do."""


class Program(NamedTuple):
    """What to build: a package, in a module of `go/`, whose version is that of `versioned`."""

    name: str
    module: str
    package: str
    versioned: str
    about: str
    """How long a build takes when nothing of it is cached: on two cores that are idle, to two that are busy."""
    modules: Path = MODULES
    """The folder that has the module's own."""


_KUBERNETES = "k8s.io/kubernetes"
PROGRAMS = (
    Program("kube-apiserver", "kubernetes", f"{_KUBERNETES}/cmd/kube-apiserver", _KUBERNETES, "5 to 15 minutes"),
    Program(
        "kube-controller-manager",
        "kubernetes",
        f"{_KUBERNETES}/cmd/kube-controller-manager",
        _KUBERNETES,
        "2 to 5 minutes",
    ),
    Program("kubectl", "kubernetes", f"{_KUBERNETES}/cmd/kubectl", _KUBERNETES, "a minute"),
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "a minute"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", "a minute"),
)


def cache() -> Path:
    """`ENBLOC_CACHE`, or a folder where this system keeps what can be made again."""
    chosen = os.environ.get("ENBLOC_CACHE")
    if chosen:
        return Path(chosen).absolute() / "control-plane"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "enbloc" / "control-plane"


def version(program: Program) -> str:
    """As `go.mod` pins it, without the `v`."""
    text = (program.modules / program.module / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(program.versioned)} v(\S+)", text, re.MULTILINE)
    if found is None:
        raise Unavailable(f"{program.module}/go.mod does not say which {program.versioned} to build")
    return found[1]


def path(program: Program) -> Path:
    """Where the program is, or will be."""
    digest = hashlib.sha256(repr((GO_FLAGS, platform.system(), platform.machine())).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((program.modules / program.module / name).read_bytes())
    return cache() / f"{program.module}-{version(program)}-{digest.hexdigest()[:12]}" / "bin" / program.name


def missing(programs: Sequence[Program] = PROGRAMS) -> list[Program]:
    return [program for program in programs if not path(program).exists()]


def ensure(programs: Sequence[Program] = PROGRAMS) -> dict[str, Path]:
    """Builds what is missing, and says where everything is. Notes on progress go to stderr."""
    if missing(programs):
        if shutil.which("go") is None:
            names = ", ".join(program.name for program in missing(programs))
            raise Unavailable(
                f"the end-to-end tests need {names}, which are not in {cache()} and are built with Go:\n"
                "install Go 1.26 or newer so that `go` is on the PATH, and run `make e2e` again.\n"
                "The tests of `make test` need none of this."
            )
        with _lock():
            for program in missing(programs):  # asked again: another process may have built meanwhile
                _build(program)
    return {program.name: path(program) for program in programs}


@contextmanager
def _lock() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _note(f"waiting: another process builds into {cache()}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _build(program: Program) -> None:
    target = path(program)
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{program.name}-*"):  # of a build that was killed; we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    _note(f"building {program.name} {version(program)}: about {program.about} the first time")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{program.name}-", dir=target.parent) as folder:
        built = Path(folder) / program.name
        _run_go(program, built)
        built.rename(target)
    _note(f"built {program.name} in {time.monotonic() - started:.0f} s")


def _run_go(program: Program, built: Path) -> None:
    stamp = f"v{version(program)}"
    major, minor, *_ = version(program).split(".")
    base = "k8s.io/component-base/version"
    stamps = f"-X {base}.gitVersion={stamp} -X {base}.gitMajor={major} -X {base}.gitMinor={minor}"
    command = ["go", "build", "-v", "-p", "2", *GO_FLAGS]
    command += ["-ldflags", "-s -w" + (f" {stamps}" if program.versioned == _KUBERNETES else "")]
    command += ["-o", str(built), program.package]
    if shutil.which("nice"):
        command = ["nice", "-n", "10", *command]
    process = subprocess.Popen(
        command,
        cwd=program.modules / program.module,
        env={**os.environ, "CGO_ENABLED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    assert process.stderr is not None
    reader = threading.Thread(target=_listen, args=(process.stderr, said), daemon=True)
    reader.start()
    started = time.monotonic()
    try:
        while True:
            try:
                code = process.wait(NOTE_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - started
                if passed > BUILD_AT_MOST_S:
                    raise Unavailable(f"building {program.name} took longer than {BUILD_AT_MOST_S} s") from None
                _note(f"  {program.name}: {passed:.0f} s, {len(said)} packages fetched or compiled")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join(5)
        process.stderr.close()
    if code != 0:
        raise Unavailable(f"building {program.name} failed; Go said:\n" + "".join(said[-20:]))


def _listen(stream: IO[str], said: list[str]) -> None:
    """Line by line, so that others can count while the build goes on."""
    for line in iter(stream.readline, ""):
        said.append(line)  # noqa: PERF402 - not all at the end


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(programs: Sequence[Program] = PROGRAMS) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a build that is told to end takes Go along
    try:
        places = ensure(programs)
    except Unavailable as why:
        _note(f"error: {why}")
        return 1
    for program in programs:
        print(f"{program.name} {version(program)}: {places[program.name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
