"""Nodes whose pods are processes of this machine: a kubelet that runs commands instead of images.

`ProcessNodes` is a `NodeRuntime`. Processes exit at any time: the supervisor reports it (`processes.py`), `wake` is
called, and `run` handles it. Little is planned ahead: `_advance` takes a pod as it is and does what can be done now.

Not done, though a kubelet does it: images, probes, lifecycle hooks, limits on CPU and memory, updates of mounted
ConfigMaps, read-only mounts (docs/decisions/0046).
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from enbloc.api.meta import Obj, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.pod_amounts import Amounts
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, container_name, grace_s_of, node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes import pod_status
from enbloc.cluster.embedded.nodes.backoff import Backoff
from enbloc.cluster.embedded.nodes.kubelets import Kubelets
from enbloc.cluster.embedded.nodes.node_pool import Key
from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader, Use
from enbloc.cluster.embedded.process.container import INTERRUPTED, Container
from enbloc.cluster.embedded.process.exec_session import ProcessContainer
from enbloc.cluster.embedded.process.fields import ContainerConfigError
from enbloc.cluster.embedded.process.hosts import AddressBook, host_of
from enbloc.cluster.embedded.process.launch import Launcher, rejection, termination_log_of
from enbloc.cluster.embedded.process.logs import FileLogReader
from enbloc.cluster.embedded.process.orphans import end_orphans
from enbloc.cluster.embedded.process.pod_directory import DirectoryRemover, PodDirectory, folder_of, pods_directory
from enbloc.cluster.embedded.process.processes import Processes, ProcessEvent
from enbloc.cluster.embedded.process.status import final_status, status_of
from enbloc.cluster.embedded.process.use import UseMeter
from enbloc.stale_heap import StaleHeap
from enbloc.units import SECOND, format_timestamp, parse_timestamp

CONFIG_KINDS: Final = ("ConfigMap", "Secret")
STOP_GRACE_S: Final = 0.8
"""The grace period of all processes when the whole cluster is stopped."""
STALE_SLACK: Final = 1_000
"""Stale steps that are kept before the heap is compacted."""
_MESSAGE_BYTES: Final = 4096
_INTERRUPTED_MESSAGE: Final = "the cluster was stopped while the container ran"

Stage = Literal["assigned", "active", "stopping", "ended"]


class ProcessPod:
    """One pod (one UID) on its node."""

    __slots__ = (
        "address",
        "admitted_ns",
        "amounts",
        "containers",
        "directory",
        "failure",
        "is_deleted",
        "key",
        "kill_at_ns",
        "node",
        "stage",
        "uid",
        "volumes",
    )

    def __init__(self, pod: Obj, directory: PodDirectory, address: str) -> None:
        spec = pod["spec"]
        self.key: Key = (namespace_of(pod), name_of(pod))
        self.uid = uid_of(pod)
        self.node = node_of(pod)
        self.amounts: Amounts = {}
        self.admitted_ns: int | None = None
        self.stage: Stage = "assigned"
        self.directory = directory
        self.address = address
        self.volumes: dict[str, Path] | None = None
        self.failure: tuple[str, str] | None = None
        self.kill_at_ns = 0
        self.is_deleted = False  # the object: its directory is removed once nothing runs in it
        self.containers = [
            Container(each, "sidecar" if each.get("restartPolicy") == "Always" else "init")
            for each in spec.get("initContainers") or ()
        ] + [Container(each, "main") for each in spec["containers"]]

    @property
    def is_alive(self) -> bool:
        return any(one.is_alive for one in self.containers)


class ProcessNodes(Kubelets[ProcessPod]):
    """Runs every pod that is bound to a node.

    `directory` holds the files of pods, and their logs for as long as the pods exist; without one it is a temporary
    directory, removed at the end. `wake` is called from another thread when `run` should be called. `env` is added to
    the environment of every container. `absolute_mounts`: volumes are mounted at their paths (`mount_root.py`)."""

    def __init__(
        self,
        store: Store,
        directory: Path | None = None,
        *,
        wake: Callable[[], None] = lambda: None,
        env: Mapping[str, str] | None = None,
        absolute_mounts: bool = False,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(store)
        self._backoff = backoff or Backoff()
        self._is_temporary = directory is None
        self._directory = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="enbloc-"))
        pods_directory(self._directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ended_orphans = end_orphans(self._directory)
        self._processes = Processes(self._directory, wake, self._directory if self._is_temporary else None)
        self._host_names: dict[str, dict[str, None]] = {}  # namespace -> the host names of its pods
        self._launcher = Launcher(
            store,
            self._directory,
            AddressBook(),
            lambda ns: self._host_names.get(ns, {}),
            env or {},
            absolute_mounts=absolute_mounts,
        )
        self._running: dict[int, tuple[ProcessPod, Container]] = {}
        self._meter = UseMeter()
        self._blocked: dict[Key, ProcessPod] = {}
        self._steps: StaleHeap[ProcessPod] = StaleHeap(lambda _, tracked: tracked.stage == "ended", STALE_SLACK)
        self._remover = DirectoryRemover(self._directory)
        self._is_closed = False
        self._remove_unknown_directories()
        self._begin(*CONFIG_KINDS)

    # -- the runtime

    def due(self) -> int | None:
        if self._pool.has_orphans or self._processes.has_events:
            return self._store.now()
        return self._steps.next_ns()

    def run(self, now_ns: int) -> None:
        while True:
            self.observe()
            self._pool.evict_orphans()
            for event in self._processes.take_events():
                self._observe_process(event, now_ns)
            due = self.due()
            if due is None or due > now_ns:
                return
            while (tracked := self._steps.pop_due(now_ns)) is not None:
                self._advance(tracked, now_ns)

    def logs(self, namespace: str, pod: str, container: str, query: LogQuery) -> LogReader:
        found = self._store.get(POD, namespace, pod)
        if found is None:
            raise Refused(404, "NotFound", f'pods "{pod}" not found')
        name = container_name(found, container)
        tracked = self._pool.pod((namespace_of(found), pod))
        if tracked is None or tracked.uid != uid_of(found):
            tracked = None
        one = _container_of(found, name, tracked)
        run = one.run
        what = f'container "{name}" in pod "{pod}"'
        if query.previous and "waiting" not in one.state:
            run -= 1
        if query.previous and (run < 0 or not one.has_run):
            raise Refused(400, "BadRequest", f"previous terminated {what} not found")
        directory = PodDirectory(self._directory, uid_of(found))
        try:
            return FileLogReader(directory.log(name, run), query, lambda: one.is_alive and one.run == run)
        except FileNotFoundError:
            status = found.get("status") or {}
            reason = (one.state.get("waiting") or {}).get("reason")
            if status.get("phase") == "Failed" and status.get("reason"):  # it never ran, and will not
                why = ": ".join(filter(None, (status["reason"], status.get("message"))))
                raise Refused(400, "BadRequest", f"{what} did not start: {why}") from None
            if reason:
                raise Refused(400, "BadRequest", f"{what} is waiting to start: {reason}") from None
            raise Refused(404, "NotFound", f"there is no log of {what}") from None

    def enter(self, namespace: str, pod: str, container: str) -> ProcessContainer:
        found = self._store.get(POD, namespace, pod)
        if found is None:
            raise Refused(404, "NotFound", f'pods "{pod}" not found')
        name = container_name(found, container or found["spec"]["containers"][0]["name"])
        tracked = self._pool.pod((namespace, pod))
        if tracked is None or tracked.uid != uid_of(found):
            raise Refused(400, "BadRequest", f"pod {pod} does not have a host assigned, or has ended")
        one = _container_of(found, name, tracked)
        if one.stage != "running" or one.command is None:
            raise Refused(400, "BadRequest", f'container "{name}" in pod "{pod}" does not run')
        run = one.run
        return ProcessContainer(one.command, tracked.address, lambda: one.is_alive and one.run == run)

    def measure(self) -> dict[Key, dict[str, Use]]:
        runs = [(tracked.key, one) for tracked, one in self._running.values() if one.stage == "running"]
        used = self._meter.measure(one.pid for _, one in runs)
        found: dict[Key, dict[str, Use]] = {}
        for key, one in runs:
            if one.pid in used:
                found.setdefault(key, {})[one.name] = used[one.pid]
        return found

    def close(self) -> None:
        """Stops every process: SIGTERM, then SIGKILL after `STOP_GRACE_S`. Pods stay as they are in the store."""
        if self._is_closed:
            return
        self._is_closed = True
        self._watch.close()
        for number in self._processes.running():
            self._processes.signal(number, signal.SIGTERM)
        deadline = time.monotonic() + STOP_GRACE_S
        while self._processes.running() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._processes.close()
        self._remover.close()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    # -- events

    def _observe(self, event: WatchEvent) -> None:
        if event.kind in CONFIG_KINDS:
            if event.type != "DELETED":  # blocked containers may refer to it
                for tracked in list(self._blocked.values()):
                    if tracked.key[0] == namespace_of(event.obj):
                        self._plan(tracked, self._store.now())
            return
        if event.kind == POD:
            pod, is_deleted = event.obj, event.type == "DELETED"
            self._note_host_name(pod, is_deleted=is_deleted)
            if is_deleted and self._pool.pod((namespace_of(pod), name_of(pod))) is None:
                self._remove_directory(uid_of(pod))
        super()._observe(event)

    def _track(self, pod: Obj) -> ProcessPod:
        return ProcessPod(pod, PodDirectory(self._directory, uid_of(pod)), self._launcher.address(pod))

    def _added(self, tracked: ProcessPod, pod: Obj) -> None:
        self._plan(tracked, self._store.now())

    def _changed(self, tracked: ProcessPod, pod: Obj) -> None:
        if is_terminating(pod) or pod["spec"].get("activeDeadlineSeconds") is not None:
            self._plan(tracked, self._store.now())

    def _removed(self, tracked: ProcessPod, pod: Obj, *, is_deleted: bool) -> None:
        tracked.is_deleted = is_deleted
        self._forget(tracked)

    def _node_is_ready(self, tracked: ProcessPod) -> None:
        if tracked.stage == "assigned":
            self._plan(tracked, self._store.now())

    def _note_host_name(self, pod: Obj, *, is_deleted: bool) -> None:
        """Host names of the pods that exist, by namespace: texts that containers get are resolved with them."""
        if pod["spec"].get("subdomain") and not is_deleted:
            self._host_names.setdefault(namespace_of(pod), {})[host_of(pod)] = None
        elif is_deleted and (names := self._host_names.get(namespace_of(pod))) is not None:
            names.pop(host_of(pod), None)
            if not names:
                del self._host_names[namespace_of(pod)]

    def _observe_process(self, event: ProcessEvent, now_ns: int) -> None:
        known = self._running.get(event.id)
        if known is None:
            return
        tracked, one = known
        if event.what == "started":
            one.mark_running(event.pid, now_ns)
        else:
            del self._running[event.id]
            if event.what == "failed":
                one.mark_exited(event.code, now_ns, event.why, "StartError")
                self._warn(tracked, "Failed", f"container {one.name}: {event.why}")
            else:
                one.mark_exited(event.code, now_ns, self._termination_message(tracked, one, event.code))
            if tracked.stage == "active":
                self._apply_restart_policy(tracked, one, now_ns)
        if tracked.stage == "ended":
            if tracked.is_deleted and not tracked.is_alive:
                self._remove_directory(tracked.uid)
        else:
            self._advance(tracked, now_ns)

    # -- steps

    def _advance(self, tracked: ProcessPod, now_ns: int) -> None:
        """Does for the pod what can be done now."""
        pod = self._current(tracked)
        if pod is None or tracked.stage == "ended":
            return
        if tracked.stage == "assigned" and not self._admit(tracked, pod, now_ns):
            return
        if tracked.stage == "active":
            if is_terminating(pod):
                self._stop(tracked, now_ns, None, _grace_s(pod))
            else:
                self._check_deadline(tracked, pod, now_ns)
        if tracked.stage == "active":
            self._start_containers(tracked, pod, now_ns)
        if tracked.stage == "stopping":
            self._stop_containers(tracked, pod, now_ns)
        else:
            self._report(tracked, pod)

    def _admit(self, tracked: ProcessPod, pod: Obj, now_ns: int) -> bool:
        """Whether the kubelet admitted the pod; if not, it was rejected, or waits until its node is ready."""
        if is_terminating(pod):
            self._forget(tracked)
            self._store.remove_pod(*tracked.key, tracked.uid)
            return False
        if self._pool.node(tracked.node) is None:
            self._pool.evict_orphan(tracked.key, tracked.uid)
            return False
        if not self._pool.is_ready(tracked.node):
            return False
        why = rejection(pod) or self._pool.admit(tracked, pod, now_ns)
        if why is not None:
            self._forget(tracked)
            self._warn(tracked, *why)
            self._write(tracked, pod_status.failed(pod, self._store.stamp(), *why))
            return False
        tracked.stage = "active"
        self._restore_containers(tracked, pod, now_ns)
        return True

    def _restore_containers(self, tracked: ProcessPod, pod: Obj, now_ns: int) -> None:
        """Restores container states from before a restart of the cluster. What ran then no longer runs."""
        status = pod.get("status") or {}
        stored = {
            each.get("name"): each
            for field in ("initContainerStatuses", "containerStatuses")
            for each in status.get(field) or ()
        }
        for one in tracked.containers:
            if one.name in stored:
                one.restore(stored[one.name])
                if one.stage == "interrupted":
                    one.mark_exited(INTERRUPTED, now_ns, _INTERRUPTED_MESSAGE)
                if "terminated" in one.state:
                    self._apply_restart_policy(tracked, one, now_ns)

    def _check_deadline(self, tracked: ProcessPod, pod: Obj, now_ns: int) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return
        deadline_ns = self._started_at_ns(tracked, pod) + seconds * SECOND
        if now_ns >= deadline_ns:
            message = "Pod was active on the node longer than the specified deadline"
            self._stop(tracked, now_ns, ("DeadlineExceeded", message), grace_s_of(pod))
        else:
            self._plan(tracked, deadline_ns)

    def _start_containers(self, tracked: ProcessPod, pod: Obj, now_ns: int) -> None:
        """Starts containers in order: init containers and sidecars one after the other, then all main containers."""
        for one in tracked.containers:
            if one.role == "main":
                break
            self._start_if_due(tracked, pod, one, now_ns)
            if one.role == "init" and one.stage != "done":
                return
            if one.role == "sidecar" and one.stage != "running" and not one.is_alive:
                return
        mains = [one for one in tracked.containers if one.role == "main"]
        for one in mains:
            self._start_if_due(tracked, pod, one, now_ns)
        if all(one.stage == "done" for one in mains):
            self._stop(tracked, now_ns, None, grace_s_of(pod))

    def _start_if_due(self, tracked: ProcessPod, pod: Obj, one: Container, now_ns: int) -> None:
        if not one.may_start(now_ns):
            return
        node = self._pool.node(tracked.node)
        allocatable = node.allocatable if node is not None else {}
        run = one.run + 1 if one.has_run else 0
        try:
            if tracked.volumes is None:
                tracked.volumes = self._launcher.volumes(pod, tracked.directory, allocatable)
            command = self._launcher.command(pod, one.spec, run, tracked.directory, tracked.volumes, allocatable)
        except ContainerConfigError as why:
            self._blocked[tracked.key] = tracked
            if one.stage != "blocked":
                self._warn(tracked, "Failed", f"container {one.name}: {why}")
            one.block("CreateContainerConfigError", str(why))
            return
        self._blocked.pop(tracked.key, None)
        number = self._processes.start(command)
        one.mark_starting(number)
        one.command = command
        self._running[number] = (tracked, one)

    def _apply_restart_policy(self, tracked: ProcessPod, one: Container, now_ns: int) -> None:
        """Decides, for a container that exited, whether it is started again."""
        policy = (self._current(tracked) or {"spec": {}})["spec"].get("restartPolicy") or "Always"
        failed = one.exit_code != 0
        if one.role == "init":
            again = failed and policy != "Never"
        else:
            again = one.role == "sidecar" or policy == "Always" or (policy == "OnFailure" and failed)
        if again:
            delay_ns, one.backoff_ns = self._backoff.after(one.backoff_ns, now_ns - one.started_ns)
            if delay_ns:
                one.back_off(now_ns + delay_ns)
                self._plan(tracked, now_ns + delay_ns)
            else:
                one.stage = "new"
        elif one.role == "init" and failed:
            self._stop(tracked, now_ns, None, 0)

    def _stop(self, tracked: ProcessPod, now_ns: int, failure: tuple[str, str] | None, grace_s: int) -> None:
        """Begins to stop all containers; `failure` is the reason and message if the pod is to fail."""
        tracked.stage = "stopping"
        tracked.failure = failure
        tracked.kill_at_ns = now_ns + grace_s * SECOND
        self._blocked.pop(tracked.key, None)

    def _stop_containers(self, tracked: ProcessPod, pod: Obj, now_ns: int) -> None:
        """SIGTERM to the containers, to sidecars last; SIGKILL when the grace period is over."""
        if is_terminating(pod):  # a later deletion may shorten it
            tracked.kill_at_ns = min(tracked.kill_at_ns, now_ns + _grace_s(pod) * SECOND)
        alive = [one for one in tracked.containers if one.is_alive]
        if not alive:
            self._finish(tracked, pod)
            return
        for one in [one for one in alive if one.role != "sidecar"] or alive:
            if not one.got_sigterm and one.process is not None:
                one.got_sigterm = True
                self._processes.signal(one.process, signal.SIGTERM)
        if now_ns < tracked.kill_at_ns:
            self._plan(tracked, tracked.kill_at_ns)
            return
        for one in alive:
            if not one.got_sigkill and one.process is not None:
                one.got_sigkill = True
                self._processes.kill(one.process)

    def _finish(self, tracked: ProcessPod, pod: Obj) -> None:
        """No container runs any more: reports the final status, and removes a deleted pod."""
        terminating = is_terminating(pod)
        if not terminating or pod["metadata"].get("finalizers"):
            status = final_status(pod, tracked.containers, self._store.stamp(), tracked.failure)
            self._forget(tracked)
            self._write(tracked, status)
        self._forget(tracked)
        if terminating:
            self._store.remove_pod(*tracked.key, tracked.uid)

    def _forget(self, tracked: ProcessPod) -> None:
        """Kills what still runs and releases the pod from its node."""
        if tracked.stage == "ended":
            return
        tracked.stage = "ended"
        self._blocked.pop(tracked.key, None)
        for one in tracked.containers:
            if one.process is not None:
                self._processes.kill(one.process)
        self._pool.release(tracked)
        if tracked.is_deleted and not tracked.is_alive:
            self._remove_directory(tracked.uid)

    # -- reporting

    def _report(self, tracked: ProcessPod, pod: Obj) -> None:
        if any(one.stage == "starting" for one in tracked.containers):
            return  # wait for the answer
        begun = format_timestamp(self._started_at_ns(tracked, pod))
        self._write(tracked, status_of(pod, tracked.containers, self._store.stamp(), tracked.address, begun))

    def _termination_message(self, tracked: ProcessPod, one: Container, code: int) -> str:
        """The container's termination message."""
        try:
            path = termination_log_of(one.spec, tracked.directory.root(one.name))
            with open(path, "rb") as file:
                words = file.read(_MESSAGE_BYTES)
        except (OSError, ContainerConfigError):
            words = b""
        if not words and code and one.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            try:
                reader = FileLogReader(tracked.directory.log(one.name, one.run), LogQuery(tail_lines=80), lambda: False)
                words = reader.read()[-_MESSAGE_BYTES:]
                reader.close()
            except OSError:
                pass
        return words.decode(errors="replace")

    def _started_at_ns(self, tracked: ProcessPod, pod: Obj) -> int:
        """When the pod was first admitted, perhaps before a restart of the cluster."""
        try:
            return parse_timestamp((pod.get("status") or {}).get("startTime"))
        except ValueError:
            return tracked.admitted_ns or 0

    def _plan(self, tracked: ProcessPod, at_ns: int) -> None:
        self._steps.push(at_ns, tracked)

    def _remove_directory(self, uid: str) -> None:
        self._remover.remove(PodDirectory(self._directory, uid).path)

    def _remove_unknown_directories(self) -> None:
        """Removes the directories of pods that no longer exist."""
        known = {folder_of(uid_of(pod)) for pod in self._store.list(POD)[0]}
        for path in pods_directory(self._directory).iterdir():
            if path.name not in known:
                self._remover.remove(path)


def _grace_s(pod: Obj) -> int:
    """The rest of a terminating pod's grace period."""
    return int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def _container_of(pod: Obj, name: str, tracked: ProcessPod | None) -> Container:
    """The container as it is, or as the status of a finished pod describes it."""
    if tracked is not None and tracked.stage != "assigned":
        return next(one for one in tracked.containers if one.name == name)
    one = Container({"name": name}, "main")
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(field) or ():
            if each.get("name") == name:
                one.restore(each)
    return one
