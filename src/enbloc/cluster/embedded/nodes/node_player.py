"""Nodes that play pods: what kubelets, the node controller and pod garbage collection do, on the store's own clock.

A pod that was bound is let in by its node if it fits, starts, runs, ends and restarts as its annotations and its
restart policy say, and goes when it is deleted. All containers of a pod are played as one. `NodePlayer` is an actor: it
reads its own watch and writes to the store like anybody else. The caller asks when it is `due` and lets it `run`; the
player never looks at a clock of its own and, within one instant, acts in the order in which it learned of things.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import EmitEvent, Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, Amounts, is_finished, node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes import pod_status as podstatus
from enbloc.cluster.embedded.nodes.backoff import Backoff
from enbloc.cluster.embedded.nodes.node_pool import NODE, Key, NodePool
from enbloc.cluster.embedded.nodes.pod_script import PodScript, read_script
from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader
from enbloc.units import SECOND, format_timestamp

BACKOFF = Backoff()
NAMES_BOUND = 100_000
"""Of so many names it is remembered how often pods of that name ran, and were restarted."""
VOID_BOUND = 1_000
"""So many plans that are void are always put up with."""

Stage = Literal["arrived", "starting", "running", "resting", "stopping", "ended"]
Action = Literal["admit", "start", "exit", "deadline", "gone"]


class Play:
    """One incarnation of a pod on its node."""

    __slots__ = (
        "admitted_at",
        "amounts",
        "backoff",
        "deadline",
        "key",
        "last_end",
        "node",
        "restarts",
        "script",
        "stage",
        "started",
        "turn",
        "uid",
    )

    def __init__(self, pod: Obj, speed: float) -> None:
        self.key: Key = (namespace_of(pod), name_of(pod))
        self.uid = uid_of(pod)
        self.node = node_of(pod)
        self.script: PodScript = read_script(pod).at_speed(speed)
        self.stage: Stage = "arrived"
        self.turn = 0  # what was planned in an earlier turn is void
        self.admitted_at: int | None = None
        self.amounts: Amounts = {}
        self.started = 0
        self.restarts = 0
        self.backoff = 0
        self.last_end: tuple[str, str, int] | None = None
        self.deadline: int | None = None


class NodePlayer:
    """Plays every pod that is assigned to a node; containers start, run and stop `speed` times as fast as they say."""

    def __init__(self, store: Store, speed: float = 1.0) -> None:
        self._store = store
        self._speed = speed
        self._fleet: NodePool[Play] = NodePool(store, self._forget)
        self._heap: list[tuple[int, int, int, Action, Play]] = []
        self._seq = 0
        self._tidy_at = VOID_BOUND
        self._attempts: OrderedDict[Key, int] = OrderedDict()
        self._restarts: OrderedDict[Key, int] = OrderedDict()
        self._most: tuple[Key, int] | None = None
        self._addresses = 0
        self._act: dict[Action, Callable[[Play, Obj, int], None]] = {
            "admit": self._admit,
            "start": self._start,
            "exit": self._exit,
            "deadline": self._miss_deadline,
            "gone": self._let_go,
        }
        self._watch = store.watch((NODE, POD), store.version)
        for kind in (NODE, POD):
            for obj in store.list(kind)[0]:
                self._see(WatchEvent("ADDED", kind, obj))

    def observe(self) -> None:
        """Learns what has happened; writes nothing but words about annotations that cannot be read."""
        for event in self._watch.drain():
            self._see(event)

    def due(self) -> int | None:
        """The next instant at which something is to happen; `None` if nothing is."""
        heap = self._heap
        while heap and not self._is_valid(heap[0]):
            heapq.heappop(heap)
        if self._fleet.has_lost:
            return self._store.now()
        return heap[0][0] if heap else None

    def run(self, now: int) -> None:
        """Does everything that is due, and what follows from it at the same instant."""
        while True:
            self.observe()
            self._fleet.collect_lost()
            due = self.due()
            if due is None or due > now:
                return
            while self._heap and self._heap[0][0] <= now:
                entry = heapq.heappop(self._heap)
                if not self._is_valid(entry):
                    continue
                _, _, _, action, play = entry
                pod = self._current(play)
                if pod is not None:
                    self._act[action](play, pod, now)

    def most_restarted(self) -> tuple[str, str, int] | None:
        """The namespace and name whose containers were restarted most often, and how often."""
        return (*self._most[0], self._most[1]) if self._most is not None else None

    def fail_pod(self, namespace: str, name: str, exit_code: int = 1) -> None:
        """Its containers exit now, with that code; the restart policy decides what becomes of the pod."""
        self.observe()
        if self._store.get(POD, namespace, name) is None:
            raise Refused(404, "NotFound", f'pods "{name}" not found')
        play = self._fleet.guest((namespace or "default", name))
        pod = self._current(play) if play is not None else None
        if play is None or pod is None or play.stage == "stopping":
            raise Refused(409, "Conflict", f"pod {name} is not running on any node")
        now = self._store.now()
        if play.stage == "arrived":
            self._admit(play, pod, now)
            pod = self._current(play)
        if pod is not None and play.stage in ("starting", "resting"):
            self._start(play, pod, now)
            pod = self._current(play)
        if pod is not None and play.stage == "running":
            self._end_run(play, pod, now, exit_code)

    def fail_node(self, name: str) -> None:
        """The node stops answering: NotReady, tainted, and its pods are evicted; no kubelet is there to stop them."""
        self._fleet.report(name, ready=False)
        self.observe()
        for play in self._fleet.guests_on(name):
            self._fleet.evict(play.key, play.uid, "NodeLost", f"node {name} failed")

    def recover_node(self, name: str) -> None:
        """The node answers again."""
        self._fleet.report(name, ready=True)
        self.observe()

    def logs(self, namespace: str, pod: str, container: str, query: LogQuery) -> LogReader:
        if self._store.get(POD, namespace, pod) is None:
            raise Refused(404, "NotFound", f'pods "{pod}" not found')
        raise Refused(400, "BadRequest", f"pod {pod} is played, not run: it writes nothing (--runtime process runs it)")

    def close(self) -> None:
        self._watch.close()

    # -- learning

    def _see(self, event: WatchEvent) -> None:
        if event.kind == NODE:
            self._see_node(event)
            return
        pod = event.obj
        metadata = pod["metadata"]
        play = self._fleet.guest((metadata.get("namespace") or "", metadata["name"]))
        if play is not None and (event.type == "DELETED" or play.uid != metadata["uid"] or is_finished(pod)):
            self._forget(play)
            play = None
        if event.type == "DELETED" or is_finished(pod) or not node_of(pod):
            return
        leaves = is_terminating(pod)
        if play is None:
            if leaves and not metadata.get("deletionGracePeriodSeconds"):
                return  # its node has let go of it: only finalizers keep it
            play = self._take_on(pod)
        if leaves and play.stage != "stopping":
            self._stop(play)
        elif play.admitted_at is not None:
            self._plan_deadline(play, pod)

    def _see_node(self, event: WatchEvent) -> None:
        machine = self._fleet.see(event)
        if machine is not None and machine.ready:  # pods that waited for it
            for play in self._fleet.guests_on(name_of(event.obj)):
                if play.stage == "arrived":
                    self._plan(play, self._store.now(), "admit")

    def _take_on(self, pod: Obj) -> Play:
        play = Play(pod, self._speed)
        self._fleet.take(play)
        self._plan(play, self._store.now(), "admit")
        for fault in play.script.faults:
            self._store.emit(EmitEvent(Ref(POD, *play.key), play.uid, "Warning", "BadAnnotation", fault, "nodes"))
        return play

    def _forget(self, play: Play) -> None:
        play.turn += 1
        play.stage = "ended"
        play.deadline = None
        self._fleet.leave(play)

    def _stop(self, play: Play) -> None:
        play.stage = "stopping"
        self._plan(play, self._store.now() + (play.script.stop_delay if self._fleet.answers(play.node) else 0), "gone")

    # -- planning

    def _plan(self, play: Play, at: int, action: Action) -> None:
        """What the pod does next; whatever was planned before is void."""
        play.turn += 1
        self._seq += 1
        self._push((at, self._seq, play.turn, action, play))

    def _push(self, entry: tuple[int, int, int, Action, Play]) -> None:
        heapq.heappush(self._heap, entry)
        if len(self._heap) >= self._tidy_at:  # pods that go leave entries behind that may be far off
            self._heap = [entry for entry in self._heap if self._is_valid(entry)]
            heapq.heapify(self._heap)
            self._tidy_at = 2 * len(self._heap) + VOID_BOUND

    def _plan_deadline(self, play: Play, pod: Obj) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is None or play.admitted_at is None:
            play.deadline = None
            return
        deadline = play.admitted_at + seconds * SECOND
        if deadline != play.deadline:
            play.deadline = deadline
            self._seq += 1
            self._push((deadline, self._seq, 0, "deadline", play))

    def _is_valid(self, entry: tuple[int, int, int, Action, Play]) -> bool:
        at, _, turn, action, play = entry
        if action == "deadline":
            return play.deadline == at and play.stage in ("starting", "running", "resting")
        return play.turn == turn and play.stage != "ended"

    # -- acting

    def _admit(self, play: Play, pod: Obj, now: int) -> None:
        """The kubelet learns of the pod: it lets it in if it fits, and refuses it for good if it does not."""
        if self._fleet.machine(play.node) is None:
            self._fleet.evict_orphan(play.key, play.uid)
            return
        if not self._fleet.answers(play.node):
            play.turn += 1  # it waits for the node
            return
        refusal = self._fleet.let_in(play, pod, now)
        if refusal is not None:
            self._forget(play)
            self._write(play, podstatus.failed(pod, self._store.stamp(), *refusal))
            return
        run = podstatus.read_run(pod)
        if run is not None:
            self._resume(play, pod, now, run)
            return
        self._plan_deadline(play, pod)
        play.stage = "starting"
        if play.script.start_delay:
            self._plan(play, now + play.script.start_delay, "start")
        else:
            self._start(play, pod, now)

    def _resume(self, play: Play, pod: Obj, now: int, run: podstatus.Run) -> None:
        """It ran before this player came, and has gone on since: it ends when it would have ended."""
        play.admitted_at = min(run.admitted_at, now)
        play.restarts = run.restarts
        play.started = min(run.started, now)
        play.stage = "running"
        if play.script.is_varied:
            self._attempts.setdefault(play.key, run.restarts + 1)
        self._addresses = max(self._addresses, _number_of((pod.get("status") or {}).get("podIP") or ""))
        self._plan_deadline(play, pod)
        if play.script.run_time is None:
            play.turn += 1
        else:
            self._plan(play, play.started + play.script.run_time, "exit")

    def _start(self, play: Play, pod: Obj, now: int) -> None:
        at = self._store.stamp()
        if play.script.is_varied:
            _count_up(self._attempts, play.key)
        status = podstatus.running(pod, at, play.restarts, play.last_end)
        had = pod.get("status") or {}
        machine = self._fleet.machine(play.node)
        if "podIP" not in had and machine is not None:
            self._addresses += 1
            status.update(hostIP=machine.address, podIP=_address_of(self._addresses))
        if "startTime" not in had:
            status["startTime"] = at if play.admitted_at in (None, now) else _stamp_of(play.admitted_at)
        play.stage = "running"
        play.started = now
        if play.script.run_time is None:
            play.turn += 1
        else:
            self._plan(play, now + play.script.run_time, "exit")
        self._write(play, status)

    def _exit(self, play: Play, pod: Obj, now: int) -> None:
        self._end_run(play, pod, now, play.script.exit_code(self._attempts.get(play.key, 1)))

    def _end_run(self, play: Play, pod: Obj, now: int, exit_code: int) -> None:
        """The containers ended: the restart policy says whether that is the end of the pod."""
        at = self._store.stamp()
        end = podstatus.ended(_stamp_of(play.started), at, exit_code)
        policy = pod["spec"].get("restartPolicy") or "Always"
        if policy == "Never" or (policy == "OnFailure" and exit_code == 0):
            self._forget(play)
            self._write(play, podstatus.finished(pod, at, play.restarts, end))
            return
        self._count_restart(play)
        play.last_end = end
        rest, play.backoff = BACKOFF.after(play.backoff, now - play.started)
        if not rest:
            self._start(play, pod, now)
            return
        play.stage = "resting"
        self._plan(play, now + rest, "start")
        self._write(play, podstatus.backing_off(pod, at, play.restarts, end))

    def _count_restart(self, play: Play) -> None:
        play.restarts += 1
        count = _count_up(self._restarts, play.key)
        if self._most is None or count > self._most[1]:
            self._most = (play.key, count)

    def _miss_deadline(self, play: Play, pod: Obj, now: int) -> None:
        at = self._store.stamp()
        message = "Pod was active on the node longer than the specified deadline"
        status = podstatus.failed(pod, at, "DeadlineExceeded", message)
        if play.stage == "running":
            end = podstatus.ended(_stamp_of(play.started), at, podstatus.KILLED)
            status = {**podstatus.finished(pod, at, play.restarts, end), **status}
        self._forget(play)
        self._write(play, status)

    def _let_go(self, play: Play, pod: Obj, now: int) -> None:
        """The containers were stopped. Where finalizers keep the object, it says that it has ended."""
        if pod["metadata"].get("finalizers"):
            at = self._store.stamp()
            end = podstatus.ended(_stamp_of(play.started or now), at, podstatus.KILLED)
            self._write(play, podstatus.finished(pod, at, play.restarts, end))
        self._forget(play)
        self._store.remove_pod(*play.key, play.uid)

    def _current(self, play: Play) -> Obj | None:
        """The pod as it is, if it is still this incarnation."""
        pod = self._store.get(POD, *play.key)
        return pod if pod is not None and uid_of(pod) == play.uid else None

    def _write(self, play: Play, status: podstatus.Status) -> None:
        try:
            self._store.patch(Ref(POD, *play.key), {"status": status}, "status", play.uid)
        except Refused:
            pass  # the pod went meanwhile; the watch will say so


def _count_up(counts: OrderedDict[Key, int], key: Key) -> int:
    """Counts by name, over all incarnations: of the names that were counted last."""
    counts[key] = count = counts.get(key, 0) + 1
    counts.move_to_end(key)
    if len(counts) > NAMES_BOUND:
        counts.popitem(last=False)
    return count


@lru_cache(maxsize=1024)
def _stamp_of(instant: int | None) -> str:
    return format_timestamp(instant or 0)


def _address_of(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _number_of(address: str) -> int:
    """Of an address that `_address_of` gave; 0 for any other."""
    parts = address.split(".")
    if len(parts) != 4 or parts[0] != "10" or not all(part.isdecimal() and len(part) < 4 for part in parts):
        return 0
    return int(parts[1]) << 16 | int(parts[2]) << 8 | int(parts[3])
