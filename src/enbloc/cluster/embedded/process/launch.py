"""Turns a container's spec into a command: creates its volumes, reads its environment, resolves host names."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.pod_amounts import Amounts
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.process import mount_root
from enbloc.cluster.embedded.process.environment import Environment, command_line, inherited
from enbloc.cluster.embedded.process.fields import ContainerConfigError
from enbloc.cluster.embedded.process.hosts import AddressBook, host_of, hostname_of
from enbloc.cluster.embedded.process.orphans import TOKEN
from enbloc.cluster.embedded.process.pod_directory import PodDirectory, claims_directory
from enbloc.cluster.embedded.process.processes import Command, new_token
from enbloc.cluster.embedded.process.volumes import Mount, Volumes, absolute, below, link_mounts, mounts_of
from enbloc.units import is_dns_label

ROOT: Final = "ENBLOC_ROOT"
TERMINATION_LOG: Final = "ENBLOC_TERMINATION_LOG"
LOG_BYTES: Final = 10 * 1024 * 1024


def rejection(pod: Obj) -> tuple[str, str] | None:
    """The reason and message why this pod can never run here."""
    spec = pod["spec"]
    names = set()
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        name = container.get("name") or ""
        if not is_dns_label(name) or name in names:
            return "InvalidPod", f"container names must be unique DNS labels: {name[:80]!r}"
        names.add(name)
        if not container.get("command"):
            return "NoCommand", (
                f'container "{name}" has no command, and this cluster runs commands, not images: '
                "give it one, or use --runtime sim"
            )
    return None


@contextmanager
def _making(what: str) -> Iterator[None]:
    """Reports errors of the file system as errors of the pod."""
    try:
        yield
    except OSError as why:
        raise ContainerConfigError(f"{what} cannot be made: {why}") from why


class Launcher:
    """Builds commands. `names` returns the host names of a namespace's pods; `given` is added to every environment."""

    def __init__(
        self,
        store: Store,
        directory: Path,
        book: AddressBook,
        names: Callable[[str], Container[str]],
        given: Mapping[str, str],
        *,
        absolute_mounts: bool = False,
    ) -> None:
        self._absolute_mounts = absolute_mounts
        self._directory = directory
        self._book = book
        self._names = names
        self._given = {**inherited(), **given}
        self._environment = Environment(store.get)
        self._volumes = Volumes(self._environment, claims_directory(directory))

    def address(self, pod: Obj) -> str:
        return self._book.address(namespace_of(pod), host_of(pod))

    @_making("a volume")
    def volumes(self, pod: Obj, directory: PodDirectory, allocatable: Amounts) -> dict[str, Path]:
        """Creates the pod's volumes. Raises `ContainerConfigError`."""

        def resolve(text: str) -> str:
            return self._resolved(text, pod)

        directory.scratch.mkdir(parents=True, exist_ok=True)
        return self._volumes.make(pod, directory.volumes, resolve, self.address(pod), allocatable)

    @_making("its directory")
    def command(
        self,
        pod: Obj,
        container: dict[str, Any],
        run: int,
        directory: PodDirectory,
        volumes: dict[str, Path],
        allocatable: Amounts,
    ) -> Command:
        """The command of this container. Raises `ContainerConfigError`."""
        name = container["name"]
        root = directory.root(name)
        root.mkdir(parents=True, exist_ok=True)
        termination_log = termination_log_of(container, root)
        termination_log.parent.mkdir(parents=True, exist_ok=True)
        termination_log.unlink(missing_ok=True)
        mounts = mounts_of(container, volumes)
        given = {
            **self._given,
            "HOSTNAME": hostname_of(pod),
            "TMPDIR": str(directory.scratch),
            ROOT: str(root),
            TERMINATION_LOG: str(termination_log),
            **link_mounts(mounts, root),
        }
        read = self._environment.of(pod, container, given, self.address(pod), allocatable)
        variables = {key: self._resolved(value, pod) for key, value in read.items()}
        cwd = below(root, container.get("workingDir") or "/")
        cwd.mkdir(parents=True, exist_ok=True)
        token = new_token()
        directory.remove_old_logs(name, run)
        argv = [self._resolved(word, pod) for word in command_line(container, variables)]
        if any("\0" in word for word in argv) or not argv[0]:
            raise ContainerConfigError(f"the command of {name_of(pod)} is empty or contains a zero byte")
        return Command(
            argv=argv,
            env={**variables, TOKEN: token},
            cwd=cwd,
            log=directory.log(name, run),
            log_bytes=LOG_BYTES,
            record=directory.record(name),
            token=token,
            prefix=self._prefix(mounts, directory.mount_point(name)),
        )

    def _prefix(self, mounts: Sequence[Mount], at: Path) -> list[str]:
        """The command that makes the mounts at their absolute paths, if this machine allows it."""
        made = absolute(mounts) if self._absolute_mounts else []
        if not made:
            return []
        at.mkdir(parents=True, exist_ok=True)
        return [*mount_root.COMMAND, json.dumps(made), str(at)]

    def _resolved(self, text: str, pod: Obj) -> str:
        return self._book.resolved(text, pod, self._names(namespace_of(pod)))


def termination_log_of(container: dict[str, Any], root: Path) -> Path:
    return below(root, container.get("terminationMessagePath") or "/dev/termination-log")
