"""Simulated nodes: kubelets, the node controller and pod garbage collection, on the store's own clock.

A bound pod is admitted by its node if it fits, starts, runs, exits and restarts as its annotations and its restart
policy say, and is removed when it is deleted. All containers of a pod run as one. The caller asks when the next step is
`due` and calls `run`; `NodePlayer` reads no clock of its own and, within one instant, acts in the order of events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import EmitEvent, Refused, WatchEvent
from enbloc.cluster.embedded.api.pods import POD, is_finished, node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes import pod_status
from enbloc.cluster.embedded.nodes.node_pool import NODE, NodePool
from enbloc.cluster.embedded.nodes.pod_script import read_script
from enbloc.cluster.embedded.nodes.simulated_pod import Key, SimulatedPod
from enbloc.stale_heap import StaleHeap
from enbloc.units import SECOND, format_timestamp

NAMES_BOUND = 100_000
"""Attempts and restarts are counted for at most this many pod names, the latest ones."""
STALE_SLACK = 1_000
"""Stale steps that are kept before the heap is compacted."""

Action = Literal["admit", "start", "exit", "deadline", "remove"]


Step = tuple[int, Action, SimulatedPod]
"""The turn in which it was planned, what to do, and for which pod."""


class NodePlayer:
    """Simulates every pod that is bound to a node; containers start, run and stop `speed` times as fast as scripted. It
    reads a watch and writes to the store, on the store's thread."""

    def __init__(self, store: Store, speed: float = 1.0) -> None:
        self._store = store
        self._pool = NodePool(store, self._forget)
        self._speed = speed
        self._run_time_of: Callable[[Obj], int | None] = lambda pod: None
        """The run time to assume of a pod whose annotations say none."""
        self._checkpoint: Callable[[Obj, int], None] | None = None
        self._done: OrderedDict[Key, int] = OrderedDict()
        """By pod name: how much of its run time earlier pods of that name have behind them, if progress is kept."""
        self._steps: StaleHeap[Step] = StaleHeap(_is_stale, STALE_SLACK)
        self._attempts: OrderedDict[Key, int] = OrderedDict()
        self._restarts: OrderedDict[Key, int] = OrderedDict()
        self._most_restarted: tuple[Key, int] | None = None
        self._addresses = 0
        self._act: dict[Action, Callable[[SimulatedPod, Obj, int], None]] = {
            "admit": self._admit,
            "start": self._start,
            "exit": self._exit,
            "deadline": self._exceed_deadline,
            "remove": self._remove,
        }
        self._watch = store.watch((NODE, POD), store.version)
        for kind in (NODE, POD):
            for obj in store.list(kind)[0]:
                self._observe(WatchEvent("ADDED", kind, obj))

    def observe(self) -> None:
        """Reads the store's events."""
        for event in self._watch.drain():
            self._observe(event)

    def due(self) -> int | None:
        """When the next step is due; `None` if none is."""
        return self._store.now() if self._pool.has_orphans else self._steps.next_ns()

    def run(self, now_ns: int) -> None:
        """Does every step that is due, and what follows from it at the same instant."""
        while True:
            self.observe()
            self._pool.evict_orphans()
            due = self.due()
            if due is None or due > now_ns:
                return
            while (step := self._steps.pop_due(now_ns)) is not None:
                _, action, tracked = step
                pod = self._current(tracked)
                if pod is not None:
                    self._act[action](tracked, pod, now_ns)

    def most_restarted(self) -> tuple[str, str, int] | None:
        """The namespace and name whose containers were restarted most often, and how often."""
        return (*self._most_restarted[0], self._most_restarted[1]) if self._most_restarted is not None else None

    def fail_pod(self, namespace: str, name: str, exit_code: int = 1) -> None:
        """Makes its containers exit now with that code; the restart policy decides what follows."""
        self.observe()
        if self._store.get(POD, namespace, name) is None:
            raise Refused(404, "NotFound", f'pods "{name}" not found')
        tracked = self._pool.pod((namespace or "default", name))
        pod = self._current(tracked) if tracked is not None else None
        if tracked is None or pod is None or tracked.stage == "stopping":
            raise Refused(409, "Conflict", f"pod {name} is not running on any node")
        now_ns = self._store.now()
        if tracked.stage == "assigned":
            self._admit(tracked, pod, now_ns)
            pod = self._current(tracked)
        if pod is not None and tracked.stage in ("starting", "backing off"):
            self._start(tracked, pod, now_ns)
            pod = self._current(tracked)
        if pod is not None and tracked.stage == "running":
            self._end_run(tracked, pod, now_ns, exit_code)

    def fail_node(self, name: str) -> None:
        """The node becomes NotReady and tainted, and its pods are evicted without grace period: its kubelet is down."""
        self._pool.report_not_ready(name)
        self.observe()
        for tracked in self._pool.pods_on(name):
            self._pool.evict(tracked.key, tracked.uid, "NodeLost", f"node {name} failed")

    def recover_node(self, name: str) -> None:
        """The node becomes Ready again."""
        self._pool.report_ready(name)
        self.observe()

    def assume_run_times(self, run_time_of: Callable[[Obj], int | None]) -> None:
        """Pods whose annotations say no run time run so long: for forecasts. Of a pod that has run longer already the
        end is not known: it runs on."""
        self._run_time_of = run_time_of
        now_ns = self._store.now()
        for tracked in self._pool.pods():
            pod = self._current(tracked)
            if pod is None or tracked.stage != "running" or tracked.script.run_time_ns is not None:
                continue
            run_time_ns = run_time_of(pod)
            if run_time_ns is not None and tracked.started_ns + run_time_ns > now_ns:
                self._plan(tracked, tracked.started_ns + run_time_ns, "exit")

    def keep_progress(self, checkpoint: Callable[[Obj, int], None]) -> None:
        """From now on a pod that is deleted while it runs is continued by the next pod of its name. `checkpoint` is
        called with the deleted one, and with the part of the run time that is done."""
        self._checkpoint = checkpoint

    def close(self) -> None:
        self._watch.close()

    # -- events

    def _observe(self, event: WatchEvent) -> None:
        if event.kind == POD:
            self._observe_pod(event)
            return
        self._pool.observe_node(event)
        node = name_of(event.obj)
        if self._pool.is_ready(node):
            for tracked in self._pool.pods_on(node):
                if tracked.stage == "assigned":
                    self._plan(tracked, self._store.now(), "admit")

    def _observe_pod(self, event: WatchEvent) -> None:
        pod = event.obj
        is_over = event.type == "DELETED" or is_finished(pod)
        tracked = self._pool.pod((namespace_of(pod), name_of(pod)))
        if tracked is not None and (is_over or tracked.uid != uid_of(pod)):
            self._forget(tracked)
            tracked = None
        if is_over or not node_of(pod):
            return
        if tracked is not None:
            self._changed(tracked, pod)
        elif not is_terminating(pod) or pod["metadata"].get("deletionGracePeriodSeconds"):
            self._assign(SimulatedPod.of(pod, self._speed), pod)
        # else: its kubelet has stopped it already, and only finalizers keep the object

    def _assign(self, tracked: SimulatedPod, pod: Obj) -> None:
        """The pod was bound to its node: its admission is due now."""
        self._pool.assign(tracked)
        self._plan(tracked, self._store.now(), "admit")
        self._report_faults(tracked)
        self._changed(tracked, pod)

    def _changed(self, tracked: SimulatedPod, pod: Obj) -> None:
        if is_terminating(pod) and tracked.stage != "stopping":
            if tracked.stage == "running" and self._checkpoint is not None:
                self._keep_done(tracked, pod, self._checkpoint)
            tracked.stage = "stopping"
            delay_ns = tracked.script.stop_delay_ns if self._pool.is_ready(tracked.node) else 0
            self._plan(tracked, self._store.now() + delay_ns, "remove")
        elif tracked.admitted_ns is not None:
            self._follow_script(tracked, pod)
            self._plan_deadline(tracked, pod)

    def _follow_script(self, tracked: SimulatedPod, pod: Obj) -> None:
        """Annotations that were changed count from now on: a pod that runs exits at its new time, or at once if that is
        over."""
        script = read_script(pod).at_speed(self._speed)
        if script == tracked.script:
            return
        tracked.script = script
        self._report_faults(tracked)
        if tracked.stage == "running":
            self._plan_exit(tracked, pod)

    def _report_faults(self, tracked: SimulatedPod) -> None:
        for fault in tracked.script.faults:
            ref = Ref(POD, *tracked.key)
            self._store.emit(EmitEvent(ref, tracked.uid, "Warning", "BadAnnotation", fault, "nodes"))

    def _keep_done(self, tracked: SimulatedPod, pod: Obj, checkpoint: Callable[[Obj, int], None]) -> None:
        done_ns = self._done.pop(tracked.key, 0) + self._store.now() - tracked.started_ns
        self._done[tracked.key] = done_ns
        if len(self._done) > NAMES_BOUND:
            self._done.popitem(last=False)
        checkpoint(pod, done_ns)

    def _current(self, tracked: SimulatedPod) -> Obj | None:
        """The pod's object, if it still has the same UID."""
        pod = self._store.get(POD, *tracked.key)
        return pod if pod is not None and uid_of(pod) == tracked.uid else None

    def _write(self, tracked: SimulatedPod, status: dict[str, Any]) -> None:
        try:
            self._store.patch(Ref(POD, *tracked.key), {"status": status}, "status", tracked.uid)
        except Refused:
            pass  # the pod was deleted meanwhile; the watch will report it

    def _forget(self, tracked: SimulatedPod) -> None:
        """The pod is deleted, finished or evicted: no step of it is left, and its node gets its resources back."""
        tracked.turn += 1
        tracked.stage = "ended"
        tracked.deadline_ns = None
        self._pool.release(tracked)

    # -- planning

    def _plan(self, tracked: SimulatedPod, at_ns: int, action: Action) -> None:
        """The pod's next step, in place of the one planned before."""
        tracked.turn += 1
        self._steps.push(at_ns, (tracked.turn, action, tracked))

    def _plan_exit(self, tracked: SimulatedPod, pod: Obj) -> None:
        run_time_ns = tracked.script.run_time_ns
        if run_time_ns is None:
            run_time_ns = self._run_time_of(pod)
        if run_time_ns is None:
            tracked.turn += 1  # it runs until it is deleted
        else:
            exit_ns = tracked.started_ns + run_time_ns - self._done.get(tracked.key, 0)
            self._plan(tracked, max(exit_ns, self._store.now()), "exit")

    def _plan_deadline(self, tracked: SimulatedPod, pod: Obj) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is None or tracked.admitted_ns is None:
            tracked.deadline_ns = None
            return
        deadline_ns = tracked.admitted_ns + seconds * SECOND
        if deadline_ns != tracked.deadline_ns:
            tracked.deadline_ns = deadline_ns
            self._steps.push(deadline_ns, (0, "deadline", tracked))

    # -- steps

    def _admit(self, tracked: SimulatedPod, pod: Obj, now_ns: int) -> None:
        """The kubelet admits the pod if it fits and rejects it, for good, if it does not."""
        if self._pool.node(tracked.node) is None:
            self._pool.evict_orphan(tracked.key, tracked.uid)
            return
        if not self._pool.is_ready(tracked.node):
            tracked.turn += 1  # until the node is ready
            return
        rejection = self._pool.admit(tracked, pod, now_ns)
        if rejection is not None:
            self._forget(tracked)
            self._write(tracked, pod_status.failed(pod, self._store.stamp(), *rejection))
            return
        run = pod_status.read_run(pod)
        if run is not None:
            self._resume(tracked, pod, now_ns, run)
            return
        self._plan_deadline(tracked, pod)
        tracked.stage = "starting"
        if tracked.script.start_delay_ns:
            self._plan(tracked, now_ns + tracked.script.start_delay_ns, "start")
        else:
            self._start(tracked, pod, now_ns)

    def _resume(self, tracked: SimulatedPod, pod: Obj, now_ns: int, run: pod_status.Run) -> None:
        """The pod ran before this process started, and went on since: it exits when it would have exited."""
        tracked.admitted_ns = min(run.admitted_ns, now_ns)
        tracked.restarts = run.restarts
        tracked.started_ns = min(run.started_ns, now_ns)
        tracked.stage = "running"
        if tracked.script.is_varied:
            self._attempts.setdefault(tracked.key, run.restarts + 1)
        self._addresses = max(self._addresses, _number_of((pod.get("status") or {}).get("podIP") or ""))
        self._plan_deadline(tracked, pod)
        self._plan_exit(tracked, pod)

    def _start(self, tracked: SimulatedPod, pod: Obj, now_ns: int) -> None:
        at = self._store.stamp()
        if tracked.script.is_varied:
            _count_up(self._attempts, tracked.key)
        status = pod_status.running(pod, at, tracked.restarts, tracked.last_end)
        had = pod.get("status") or {}
        node = self._pool.node(tracked.node)
        if "podIP" not in had and node is not None:
            self._addresses += 1
            status.update(hostIP=node.address, podIP=_address_of(self._addresses))
        if "startTime" not in had:
            status["startTime"] = at if tracked.admitted_ns in (None, now_ns) else _stamp_of(tracked.admitted_ns)
        tracked.stage = "running"
        tracked.started_ns = now_ns
        self._plan_exit(tracked, pod)
        self._write(tracked, status)

    def _exit(self, tracked: SimulatedPod, pod: Obj, now_ns: int) -> None:
        exit_code = tracked.script.exit_code(self._attempts.get(tracked.key, 1))
        is_over = tracked.script.run_time_ns is None  # an assumed run time is that of all its restarts
        self._end_run(tracked, pod, now_ns, exit_code, "Never" if is_over else "")

    def _end_run(self, tracked: SimulatedPod, pod: Obj, now_ns: int, exit_code: int, policy: str = "") -> None:
        """The containers exited: the restart policy (the pod's own, unless given) decides whether it has finished."""
        at = self._store.stamp()
        end = pod_status.ended(_stamp_of(tracked.started_ns), at, exit_code)
        policy = policy or pod["spec"].get("restartPolicy") or "Always"
        if policy == "Never" or (policy == "OnFailure" and exit_code == 0):
            self._forget(tracked)
            self._write(tracked, pod_status.finished(pod, at, tracked.restarts, end))
            return
        self._count_restart(tracked)
        tracked.last_end = end
        delay_ns = tracked.restart_delay_ns(now_ns - tracked.started_ns)
        if not delay_ns:
            self._start(tracked, pod, now_ns)
            return
        tracked.stage = "backing off"
        self._plan(tracked, now_ns + delay_ns, "start")
        self._write(tracked, pod_status.backing_off(pod, at, tracked.restarts, end))

    def _count_restart(self, tracked: SimulatedPod) -> None:
        tracked.restarts += 1
        count = _count_up(self._restarts, tracked.key)
        if self._most_restarted is None or count > self._most_restarted[1]:
            self._most_restarted = (tracked.key, count)

    def _exceed_deadline(self, tracked: SimulatedPod, pod: Obj, now_ns: int) -> None:
        at = self._store.stamp()
        message = "Pod was active on the node longer than the specified deadline"
        status = pod_status.failed(pod, at, "DeadlineExceeded", message)
        if tracked.stage == "running":
            end = pod_status.ended(_stamp_of(tracked.started_ns), at, pod_status.KILLED)
            status = {**pod_status.finished(pod, at, tracked.restarts, end), **status}
        self._forget(tracked)
        self._write(tracked, status)

    def _remove(self, tracked: SimulatedPod, pod: Obj, now_ns: int) -> None:
        """The containers have stopped. If finalizers keep the object, its status says so."""
        if pod["metadata"].get("finalizers"):
            at = self._store.stamp()
            end = pod_status.ended(_stamp_of(tracked.started_ns or now_ns), at, pod_status.KILLED)
            self._write(tracked, pod_status.finished(pod, at, tracked.restarts, end))
        self._forget(tracked)
        self._store.remove_pod(*tracked.key, tracked.uid)


def _is_stale(at_ns: int, step: Step) -> bool:
    turn, action, tracked = step
    if action == "deadline":
        return tracked.deadline_ns != at_ns or tracked.stage not in ("starting", "running", "backing off")
    return tracked.turn != turn or tracked.stage == "ended"


def _count_up(counts: OrderedDict[Key, int], key: Key) -> int:
    """Counts by pod name, over all pods of that name; the names counted longest ago are forgotten."""
    counts[key] = count = counts.get(key, 0) + 1
    counts.move_to_end(key)
    if len(counts) > NAMES_BOUND:
        counts.popitem(last=False)
    return count


@lru_cache(maxsize=1024)
def _stamp_of(time_ns: int | None) -> str:
    return format_timestamp(time_ns or 0)


def _address_of(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _number_of(address: str) -> int:
    """The inverse of `_address_of`; 0 for any other address."""
    parts = address.split(".")
    if len(parts) != 4 or parts[0] != "10" or not all(part.isdecimal() and len(part) < 4 for part in parts):
        return 0
    return int(parts[1]) << 16 | int(parts[2]) << 8 | int(parts[3])
