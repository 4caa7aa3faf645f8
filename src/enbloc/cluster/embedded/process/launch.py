"""From a pod's spec to commands that can be run: its volumes made, its environment read, its names resolved."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.cluster.embedded.api.pods import Amounts
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.process.environment import Environment, command_line, passed_on
from enbloc.cluster.embedded.process.fields import Unanswerable
from enbloc.cluster.embedded.process.hosts import AddressBook, host_of, hostname_of
from enbloc.cluster.embedded.process.leftovers import TOKEN
from enbloc.cluster.embedded.process.place import Place, claims_directory
from enbloc.cluster.embedded.process.processes import Command, new_token
from enbloc.cluster.embedded.process.volumes import Volumes, below, link_mounts
from enbloc.units import is_dns_label

ROOT: Final = "ENBLOC_ROOT"
TERMINATION_LOG: Final = "ENBLOC_TERMINATION_LOG"
LOG_BYTES: Final = 10 * 1024 * 1024


def refusal(pod: Obj) -> tuple[str, str] | None:
    """The reason and message why this pod can never run here."""
    spec = pod["spec"]
    names = set()
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        name = container.get("name") or ""
        if not is_dns_label(name) or name in names:
            return "InvalidPod", f"a container's name is a DNS label and its own, not {name[:80]!r}"
        names.add(name)
        if not container.get("command"):
            return "NoCommand", (
                f'container "{name}" has no command, and this cluster runs commands, not images: '
                "give it one, or use --runtime sim"
            )
    return None


@contextmanager
def _making(what: str) -> Iterator[None]:
    """What the disk refuses is said of the pod."""
    try:
        yield
    except OSError as why:
        raise Unanswerable(f"{what} cannot be made: {why}") from why


class Launcher:
    """Makes commands. `names` gives the host names of a namespace's pods; `given` is put into every environment."""

    def __init__(
        self,
        store: Store,
        directory: Path,
        book: AddressBook,
        names: Callable[[str], Container[str]],
        given: Mapping[str, str],
    ) -> None:
        self._directory = directory
        self._book = book
        self._names = names
        self._given = {**passed_on(), **given}
        self._environment = Environment(store.get)
        self._volumes = Volumes(self._environment, claims_directory(directory))

    def address(self, pod: Obj) -> str:
        return self._book.address(namespace_of(pod), host_of(pod))

    @_making("a volume")
    def volumes(self, pod: Obj, place: Place, allocatable: Amounts) -> dict[str, Path]:
        """Makes the pod's volumes. Raises `Unanswerable`."""

        def resolve(text: str) -> str:
            return self._resolved(text, pod)

        place.scratch.mkdir(parents=True, exist_ok=True)
        return self._volumes.make(pod, place.volumes, resolve, self.address(pod), allocatable)

    @_making("its directory")
    def command(
        self,
        pod: Obj,
        container: dict[str, Any],
        run: int,
        place: Place,
        volumes: dict[str, Path],
        allocatable: Amounts,
    ) -> Command:
        """What is to be run for this container. Raises `Unanswerable`."""
        name = container["name"]
        root = place.root(name)
        root.mkdir(parents=True, exist_ok=True)
        termination_log = termination_log_of(container, root)
        termination_log.parent.mkdir(parents=True, exist_ok=True)
        termination_log.unlink(missing_ok=True)
        given = {
            **self._given,
            "HOSTNAME": hostname_of(pod),
            "TMPDIR": str(place.scratch),
            ROOT: str(root),
            TERMINATION_LOG: str(termination_log),
            **link_mounts(container, root, volumes),
        }
        read = self._environment.of(pod, container, given, self.address(pod), allocatable)
        variables = {key: self._resolved(value, pod) for key, value in read.items()}
        cwd = below(root, container.get("workingDir") or "/")
        cwd.mkdir(parents=True, exist_ok=True)
        token = new_token()
        place.forget_old_logs(name, run)
        argv = [self._resolved(word, pod) for word in command_line(container, variables)]
        if any("\0" in word for word in argv) or not argv[0]:
            raise Unanswerable(f"the command of {name_of(pod)} cannot be run: it has a zero byte in it, or is empty")
        return Command(
            argv=argv,
            env={**variables, TOKEN: token},
            cwd=cwd,
            log=place.log(name, run),
            log_bytes=LOG_BYTES,
            record=place.record(name),
            token=token,
        )

    def _resolved(self, text: str, pod: Obj) -> str:
        return self._book.resolved(text, pod, self._names(namespace_of(pod)))


def termination_log_of(container: dict[str, Any], root: Path) -> Path:
    return below(root, container.get("terminationMessagePath") or "/dev/termination-log")
