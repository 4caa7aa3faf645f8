"""Nodes whose pods are processes of this machine: what a kubelet does, with commands in the place of images.

`ProcessNodes` keeps to `NodeRuntime`. It reads a watch and writes to the store like anybody else, on the thread that
owns the store. Processes end when they like: the supervisor tells (`processes.py`), `wake` is called, and `run` takes
note. What to do next is never planned far ahead: `_advance` looks at a pod as it is and does what can be done now.

Not done, though a kubelet does it: images, probes, lifecycle hooks, limits on CPU and memory, updates of mounted
ConfigMaps, read-only mounts (docs/decisions/0046).
"""

from __future__ import annotations

import heapq
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import EmitEvent, Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, Amounts, grace_s_of, is_finished, node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes import pod_status as podstatus
from enbloc.cluster.embedded.nodes.backoff import Backoff
from enbloc.cluster.embedded.nodes.node_pool import NODE, Key, NodePool
from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader
from enbloc.cluster.embedded.process.container import INTERRUPTED, Container
from enbloc.cluster.embedded.process.fields import Unanswerable
from enbloc.cluster.embedded.process.hosts import AddressBook, host_of
from enbloc.cluster.embedded.process.launch import Launcher, refusal, termination_log_of
from enbloc.cluster.embedded.process.leftovers import end_leftovers
from enbloc.cluster.embedded.process.logs import FileLogReader
from enbloc.cluster.embedded.process.place import Place, Sweeper, folder_of, pods_directory
from enbloc.cluster.embedded.process.processes import News, Processes
from enbloc.cluster.embedded.process.status import final_status, status_of
from enbloc.units import SECOND, format_timestamp, parse_timestamp

CONFIG_KINDS: Final = ("ConfigMap", "Secret")
STOP_GRACE_S: Final = 0.8
"""How long processes have to end by themselves when the whole cluster is stopped."""
VOID_BOUND: Final = 1_000
"""So many plans of pods that ended are always put up with."""
_MESSAGE_BYTES: Final = 4096
_LOST: Final = "the cluster was stopped while it ran"

Stage = Literal["arrived", "active", "stopping", "ended"]


class Resident:
    """One incarnation of a pod on its node."""

    __slots__ = (
        "address",
        "admitted_at",
        "amounts",
        "containers",
        "is_gone",
        "key",
        "kill_at",
        "node",
        "place",
        "stage",
        "uid",
        "verdict",
        "volumes",
    )

    def __init__(self, pod: Obj, place: Place, address: str) -> None:
        spec = pod["spec"]
        self.key: Key = (namespace_of(pod), name_of(pod))
        self.uid = uid_of(pod)
        self.node = node_of(pod)
        self.amounts: Amounts = {}
        self.admitted_at: int | None = None
        self.stage: Stage = "arrived"
        self.place = place
        self.address = address
        self.volumes: dict[str, Path] | None = None
        self.verdict: tuple[str, str] | None = None
        self.kill_at = 0
        self.is_gone = False  # the object is: so is its directory, once nothing runs there
        self.containers = [
            Container(each, "sidecar" if each.get("restartPolicy") == "Always" else "init")
            for each in spec.get("initContainers") or ()
        ] + [Container(each, "main") for each in spec["containers"]]

    @property
    def is_alive(self) -> bool:
        return any(one.is_alive for one in self.containers)


class ProcessNodes:
    """Runs every pod that is assigned to a node.

    `directory` is where all of it happens, and where logs are kept for as long as their pods are; without one it is a
    temporary directory that goes in the end. `wake` is called from another thread when `run` should be. `env` is given
    to every container."""

    def __init__(
        self,
        store: Store,
        directory: Path | None = None,
        *,
        wake: Callable[[], None] = lambda: None,
        env: Mapping[str, str] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._store = store
        self._backoff = backoff or Backoff()
        self._is_temporary = directory is None
        self._directory = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="enbloc-"))
        pods_directory(self._directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ended_leftovers = end_leftovers(self._directory)
        self._processes = Processes(self._directory, wake, self._directory if self._is_temporary else None)
        self._names: dict[str, dict[str, None]] = {}  # namespace -> the host names of its pods
        self._launcher = Launcher(store, self._directory, AddressBook(), lambda ns: self._names.get(ns, {}), env or {})
        self._fleet: NodePool[Resident] = NodePool(store, self._forget)
        self._running: dict[int, tuple[Resident, Container]] = {}
        self._blocked: dict[Key, Resident] = {}
        self._heap: list[tuple[int, int, Resident]] = []
        self._seq = 0
        self._tidy_at = VOID_BOUND
        self._sweeper = Sweeper(self._directory)
        self._is_closed = False
        self._watch = store.watch((NODE, POD, *CONFIG_KINDS), store.version)
        self._sweep_strangers()
        for kind in (NODE, POD):
            for obj in store.list(kind)[0]:
                self._see(WatchEvent("ADDED", kind, obj))

    # -- the runtime

    def observe(self) -> None:
        for event in self._watch.drain():
            self._see(event)

    def due(self) -> int | None:
        while self._heap and self._heap[0][2].stage == "ended":
            heapq.heappop(self._heap)
        if self._fleet.has_lost or self._processes.has_news:
            return self._store.now()
        return self._heap[0][0] if self._heap else None

    def run(self, now: int) -> None:
        while True:
            self.observe()
            self._fleet.collect_lost()
            for news in self._processes.take_news():
                self._hear(news, now)
            due = self.due()
            if due is None or due > now:
                return
            while self._heap and self._heap[0][0] <= now:
                self._advance(heapq.heappop(self._heap)[2], now)

    def logs(self, namespace: str, pod: str, container: str, query: LogQuery) -> LogReader:
        found = self._store.get(POD, namespace, pod)
        if found is None:
            raise Refused(404, "NotFound", f'pods "{pod}" not found')
        name = _chosen(found, container)
        resident = self._fleet.guest((namespace_of(found), pod))
        if resident is None or resident.uid != uid_of(found):
            resident = None
        one = _container_of(found, name, resident)
        run = one.run
        what = f'container "{name}" in pod "{pod}"'
        if query.previous and "waiting" not in one.state:
            run -= 1
        if query.previous and (run < 0 or not one.has_run):
            raise Refused(400, "BadRequest", f"previous terminated {what} not found")
        place = Place(self._directory, uid_of(found))
        try:
            return FileLogReader(place.log(name, run), query, lambda: one.is_alive and one.run == run)
        except FileNotFoundError:
            reason = (one.state.get("waiting") or {}).get("reason")
            if reason:
                raise Refused(400, "BadRequest", f"{what} is waiting to start: {reason}") from None
            raise Refused(404, "NotFound", f"there is no log of {what}") from None

    def close(self) -> None:
        """Ends every process, gently if it is quick. Pods stay as they are in the store."""
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
        self._sweeper.close()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    # -- learning

    def _see(self, event: WatchEvent) -> None:
        if event.kind == NODE:
            machine = self._fleet.see(event)
            if machine is not None and machine.ready:  # pods that waited for it
                for resident in self._fleet.guests_on(name_of(event.obj)):
                    if resident.stage == "arrived":
                        self._plan(resident, self._store.now())
        elif event.kind == POD:
            self._see_pod(event)
        elif self._blocked and event.type != "DELETED":  # perhaps what somebody waits for
            for resident in list(self._blocked.values()):
                if resident.key[0] == namespace_of(event.obj):
                    self._plan(resident, self._store.now())

    def _see_pod(self, event: WatchEvent) -> None:
        pod = event.obj
        key = (namespace_of(pod), name_of(pod))
        is_gone = event.type == "DELETED"
        self._note_name(pod, is_gone)
        resident = self._fleet.guest(key)
        if resident is not None and (is_gone or resident.uid != uid_of(pod) or is_finished(pod)):
            resident.is_gone = is_gone or resident.uid != uid_of(pod)
            self._forget(resident)
            resident = None
        elif is_gone:
            self._sweep(uid_of(pod))
        if is_gone or is_finished(pod) or not node_of(pod):
            return
        if resident is None:
            if is_terminating(pod) and not pod["metadata"].get("deletionGracePeriodSeconds"):
                return  # its node has let go of it: only finalizers keep it
            resident = Resident(pod, Place(self._directory, uid_of(pod)), self._launcher.address(pod))
            self._fleet.take(resident)
            self._plan(resident, self._store.now())
        elif is_terminating(pod) or pod["spec"].get("activeDeadlineSeconds") is not None:
            self._plan(resident, self._store.now())

    def _note_name(self, pod: Obj, is_gone: bool) -> None:
        """Names of pods that went are kept with their namespace's others: who was told of one may still use it."""
        if pod["spec"].get("subdomain") and not is_gone:
            self._names.setdefault(namespace_of(pod), {})[host_of(pod)] = None
        elif is_gone and (names := self._names.get(namespace_of(pod))) is not None:
            names.pop(host_of(pod), None)
            if not names:
                del self._names[namespace_of(pod)]

    def _hear(self, news: News, now: int) -> None:
        """Something happened to a process."""
        known = self._running.get(news.id)
        if known is None:
            return
        resident, one = known
        if news.what == "started":
            one.came_up(news.pid, now)
        else:
            del self._running[news.id]
            if news.what == "failed":
                one.ended(news.code, now, news.why, "StartError")
                self._warn(resident, "Failed", f"container {one.name}: {news.why}")
            else:
                one.ended(news.code, now, self._last_words(resident, one, news.code))
            if resident.stage == "active":
                self._judge(resident, one, now)
        if resident.stage == "ended":
            if resident.is_gone and not resident.is_alive:
                self._sweep(resident.uid)
        else:
            self._advance(resident, now)

    # -- acting

    def _advance(self, resident: Resident, now: int) -> None:
        """Does for the pod whatever can be done now."""
        pod = self._current(resident)
        if pod is None or resident.stage == "ended":
            return
        if resident.stage == "arrived" and not self._admit(resident, pod, now):
            return
        if resident.stage == "active":
            if is_terminating(pod):
                self._stop(resident, now, None, _grace_s(pod))
            else:
                self._check_deadline(resident, pod, now)
        if resident.stage == "active":
            self._proceed(resident, pod, now)
        if resident.stage == "stopping":
            self._press(resident, pod, now)
        else:
            self._report(resident, pod)

    def _admit(self, resident: Resident, pod: Obj, now: int) -> bool:
        """The kubelet learns of the pod: lets it in, refuses it for good, or waits for the node."""
        if is_terminating(pod):
            self._forget(resident)
            self._store.remove_pod(*resident.key, resident.uid)
            return False
        if self._fleet.machine(resident.node) is None:
            self._fleet.evict_orphan(resident.key, resident.uid)
            return False
        if not self._fleet.answers(resident.node):
            return False
        why = refusal(pod) or self._fleet.let_in(resident, pod, now)
        if why is not None:
            self._forget(resident)
            self._warn(resident, *why)
            self._write(resident, podstatus.failed(pod, self._store.stamp(), *why))
            return False
        resident.stage = "active"
        self._recall(resident, pod, now)
        return True

    def _recall(self, resident: Resident, pod: Obj, now: int) -> None:
        """What became of the containers in an earlier life of ours. What ran then does not any more."""
        status = pod.get("status") or {}
        told = {
            each.get("name"): each
            for field in ("initContainerStatuses", "containerStatuses")
            for each in status.get(field) or ()
        }
        for one in resident.containers:
            if one.name in told:
                was_cut_off = one.recall(told[one.name])
                if was_cut_off:
                    one.ended(INTERRUPTED, now, _LOST)
                if "terminated" in one.state:
                    self._judge(resident, one, now)

    def _check_deadline(self, resident: Resident, pod: Obj, now: int) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return
        deadline = self._begun(resident, pod) + seconds * SECOND
        if now >= deadline:
            message = "Pod was active on the node longer than the specified deadline"
            self._stop(resident, now, ("DeadlineExceeded", message), grace_s_of(pod))
        else:
            self._plan(resident, deadline)

    def _proceed(self, resident: Resident, pod: Obj, now: int) -> None:
        """Starts what may be started: init containers one after the other, sidecars among them, then all the rest."""
        for one in resident.containers:
            if one.role == "main":
                break
            self._start_if_due(resident, pod, one, now)
            if one.role == "init" and one.stage != "done":
                return
            if one.role == "sidecar" and one.stage != "running" and not one.is_alive:
                return
        mains = [one for one in resident.containers if one.role == "main"]
        for one in mains:
            self._start_if_due(resident, pod, one, now)
        if all(one.stage == "done" for one in mains):
            self._stop(resident, now, None, grace_s_of(pod))

    def _start_if_due(self, resident: Resident, pod: Obj, one: Container, now: int) -> None:
        if not one.may_start(now):
            return
        machine = self._fleet.machine(resident.node)
        room = machine.allocatable if machine is not None else {}
        run = one.run + 1 if one.has_run else 0
        try:
            if resident.volumes is None:
                resident.volumes = self._launcher.volumes(pod, resident.place, room)
            command = self._launcher.command(pod, one.spec, run, resident.place, resident.volumes, room)
        except Unanswerable as why:
            self._blocked[resident.key] = resident
            if one.stage != "blocked":
                self._warn(resident, "Failed", f"container {one.name}: {why}")
            one.block("CreateContainerConfigError", str(why))
            return
        self._blocked.pop(resident.key, None)
        number = self._processes.start(command)
        one.begin(number)
        self._running[number] = (resident, one)

    def _judge(self, resident: Resident, one: Container, now: int) -> None:
        """A container ended: the restart policy says whether that is for good."""
        policy = (self._current(resident) or {"spec": {}})["spec"].get("restartPolicy") or "Always"
        failed = one.exit_code != 0
        if one.role == "init":
            again = failed and policy != "Never"
        else:
            again = one.role == "sidecar" or policy == "Always" or (policy == "OnFailure" and failed)
        if again:
            rest, one.backoff = self._backoff.after(one.backoff, now - one.started)
            if rest:
                one.rest(now + rest, one.name)
                self._plan(resident, now + rest)
            else:
                one.stage = "new"
        elif one.role == "init" and failed:
            self._stop(resident, now, None, 0)

    def _stop(self, resident: Resident, now: int, verdict: tuple[str, str] | None, grace_s: int) -> None:
        """All containers are to end."""
        resident.stage = "stopping"
        resident.verdict = verdict
        resident.kill_at = now + grace_s * SECOND
        self._blocked.pop(resident.key, None)

    def _press(self, resident: Resident, pod: Obj, now: int) -> None:
        """Asks the containers to end, the sidecars last; when the grace is over they are killed."""
        if is_terminating(pod):  # a later deletion may shorten the grace
            resident.kill_at = min(resident.kill_at, now + _grace_s(pod) * SECOND)
        alive = [one for one in resident.containers if one.is_alive]
        if not alive:
            self._finish(resident, pod)
            return
        for one in [one for one in alive if one.role != "sidecar"] or alive:
            if not one.told_to_stop and one.process is not None:
                one.told_to_stop = True
                self._processes.signal(one.process, signal.SIGTERM)
        if now < resident.kill_at:
            self._plan(resident, resident.kill_at)
            return
        for one in alive:
            if not one.killed and one.process is not None:
                one.killed = True
                self._processes.kill(one.process)

    def _finish(self, resident: Resident, pod: Obj) -> None:
        """Nothing runs any more."""
        terminating = is_terminating(pod)
        if not terminating or pod["metadata"].get("finalizers"):
            status = final_status(pod, resident.containers, self._store.stamp(), resident.verdict)
            self._forget(resident)
            self._write(resident, status)
        self._forget(resident)
        if terminating:
            self._store.remove_pod(*resident.key, resident.uid)

    def _forget(self, resident: Resident) -> None:
        """The pod is no longer ours: whatever runs is killed, and its room is free."""
        if resident.stage == "ended":
            return
        resident.stage = "ended"
        self._blocked.pop(resident.key, None)
        for one in resident.containers:
            if one.process is not None:
                self._processes.kill(one.process)
        self._fleet.leave(resident)
        if resident.is_gone and not resident.is_alive:
            self._sweep(resident.uid)

    # -- telling

    def _report(self, resident: Resident, pod: Obj) -> None:
        if any(one.stage == "starting" for one in resident.containers):
            return  # in a moment there is more to tell
        begun = format_timestamp(self._begun(resident, pod))
        self._write(resident, status_of(pod, resident.containers, self._store.stamp(), resident.address, begun))

    def _last_words(self, resident: Resident, one: Container, code: int) -> str:
        """What the container left as its termination message."""
        try:
            path = termination_log_of(one.spec, resident.place.root(one.name))
            with open(path, "rb") as file:
                words = file.read(_MESSAGE_BYTES)
        except (OSError, Unanswerable):
            words = b""
        if not words and code and one.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            try:
                reader = FileLogReader(resident.place.log(one.name, one.run), LogQuery(tail_lines=80), lambda: False)
                words = reader.read()[-_MESSAGE_BYTES:]
                reader.close()
            except OSError:
                pass
        return words.decode(errors="replace")

    def _warn(self, resident: Resident, reason: str, message: str) -> None:
        said = EmitEvent(Ref(POD, *resident.key), resident.uid, "Warning", reason, message, "nodes")
        self._store.emit(said)

    def _write(self, resident: Resident, status: dict[str, object]) -> None:
        try:
            self._store.patch(Ref(POD, *resident.key), {"status": status}, "status", resident.uid)
        except Refused:
            pass  # the pod went meanwhile; the watch will say so

    # -- the rest

    def _begun(self, resident: Resident, pod: Obj) -> int:
        """When the pod was first let in, in an earlier life of ours perhaps."""
        try:
            return parse_timestamp((pod.get("status") or {}).get("startTime"))
        except ValueError:
            return resident.admitted_at or 0

    def _current(self, resident: Resident) -> Obj | None:
        """The pod as it is, if it is still this incarnation."""
        pod = self._store.get(POD, *resident.key)
        return pod if pod is not None and uid_of(pod) == resident.uid else None

    def _plan(self, resident: Resident, at: int) -> None:
        self._seq += 1
        heapq.heappush(self._heap, (at, self._seq, resident))
        if len(self._heap) >= self._tidy_at:  # deadlines of pods that ended may be far off
            wanted = {(entry[0], entry[2].uid): entry for entry in self._heap if entry[2].stage != "ended"}
            self._heap = sorted(wanted.values())
            self._tidy_at = 2 * len(self._heap) + VOID_BOUND

    def _sweep(self, uid: str) -> None:
        self._sweeper.remove(Place(self._directory, uid).path)

    def _sweep_strangers(self) -> None:
        """Directories of pods that are no more."""
        known = {folder_of(uid_of(pod)) for pod in self._store.list(POD)[0]}
        for path in pods_directory(self._directory).iterdir():
            if path.name not in known:
                self._sweeper.remove(path)


def _grace_s(pod: Obj) -> int:
    """How long a pod that is being deleted may take."""
    return int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def _chosen(pod: Obj, container: str) -> str:
    """Which container is meant."""
    spec = pod["spec"]
    names = [str(each.get("name")) for each in (*spec["containers"], *(spec.get("initContainers") or ()))]
    if container:
        if container not in names:
            raise Refused(400, "BadRequest", f"container {container} is not valid for pod {name_of(pod)}")
        return container
    if len(spec["containers"]) > 1:
        choice = f"choose one of: [{' '.join(names)}]"
        raise Refused(400, "BadRequest", f"a container name must be specified for pod {name_of(pod)}, {choice}")
    return names[0]


def _container_of(pod: Obj, name: str, resident: Resident | None) -> Container:
    """The container as it is, or as the status of a pod that has ended tells."""
    if resident is not None and resident.stage != "arrived":
        return next(one for one in resident.containers if one.name == name)
    one = Container({"name": name}, "main")
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(field) or ():
            if each.get("name") == name:
                one.recall(each)
    return one
