"""A replay on the engine and nodes alone: no API, admission or controllers, and the same starts as with them.

Gangs are given to the engine as the Volcano dialect reads them; decisions take effect at once. Finished jobs are
forgotten, so memory grows with the jobs in the system, not with the trace.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import msgspec

from enbloc.config import Config
from enbloc.engine.core.tables.nodes import NodeFacts
from enbloc.engine.core.tables.queues import QueueFacts
from enbloc.engine.core.tables.tasks import PodFacts, TaskStatus
from enbloc.engine.decisions import Bind, Enqueue, Evict, Waits
from enbloc.engine.engine import Engine
from enbloc.gangs.hints import SchedulingHints, user_name
from enbloc.gangs.model import GangKey, GangSpec, GangStatus, Membership
from enbloc.gangs.volcano import TRIED
from enbloc.sim.clock import EPOCH
from enbloc.traces.cluster import NAMESPACE, Part, Shape, job_name, node_name, pod_spec
from enbloc.traces.outcome import Outcome, Progress
from enbloc.traces.trace import TraceJob
from enbloc.units import NANO, SECOND, parse_quantity

_PROGRESS_EVERY = 100


class _Job(msgspec.Struct, eq=False):
    """A job that is in the system."""

    job: TraceJob
    number: int
    parts: Sequence[Part]
    spec: GangSpec
    pods: dict[str, tuple[PodFacts, Membership]] = {}
    bound: set[str] = set()
    nodes: set[int] = set()
    first_start_ns: int | None = None
    start_ns: int | None = None
    """When it got its nodes; `None`: it waits."""
    done_ns: int = 0
    """How much of its run time is behind it."""
    ends_ns: int | None = None
    evicted: int = 0


class FastReplay:
    def __init__(self, shape: Shape, config: Config, keeps_progress: bool = True) -> None:
        """`keeps_progress`: a job that is evicted goes on where it was, as from a checkpoint."""
        self._shape = shape
        self._keeps_progress = keeps_progress
        self._engine = Engine(config)
        self._specs: dict[int, dict[str, Any]] = {}
        self._jobs: dict[GangKey, _Job] = {}
        self._rows: dict[str, int] = {}
        self._ends: list[tuple[int, int, GangKey]] = []
        self._outcomes: list[Outcome] = []
        self._now_ns = 0
        self._put_cluster(config)

    def run(self, jobs: Sequence[TraceJob], progress: Progress | None = None) -> list[Outcome]:
        """Outcomes in the order in which jobs ended; jobs that never ended last."""
        coming = 0
        while (at_ns := self._next(jobs, coming)) is not None:
            self._now_ns = at_ns
            while self._ends and self._ends[0][0] <= at_ns:
                self._end(heapq.heappop(self._ends))
            while coming < len(jobs) and jobs[coming].submit_ns <= at_ns:
                self._submit(jobs[coming], coming)
                coming += 1
            self._settle()
            if progress is not None and len(self._outcomes) % _PROGRESS_EVERY == 0:
                progress(len(self._outcomes), len(jobs))
        for job in self._jobs.values():
            self._outcomes.append(_outcome(job, None))
        return self._outcomes

    def _next(self, jobs: Sequence[TraceJob], coming: int) -> int | None:
        while self._ends and self._is_stale(self._ends[0]):
            heapq.heappop(self._ends)
        times = [self._ends[0][0]] if self._ends else []
        if coming < len(jobs):
            times.append(jobs[coming].submit_ns)
        if not times:  # only timers are left: none of them can start a job that nothing frees room for
            return None
        due = self._engine.due()
        if due is not None and due - EPOCH > self._now_ns:
            times.append(due - EPOCH)
        return min(times)

    # ---- what happens to the cluster

    def _put_cluster(self, config: Config) -> None:
        state, shape = self._engine.state, self._shape
        state.put_queue(QueueFacts("root", fifo=config.queues.fifo))
        state.put_queue(QueueFacts("default", parent="root", fifo=config.queues.fifo))
        for name, weight in (shape.queues or {}).items():
            state.put_queue(QueueFacts(name, weight, parent="root", fifo=config.queues.fifo))
        allocatable = {name: parse_quantity(amount).nanos for name, amount in shape.resources.items()}
        for number in range(shape.nodes):
            name = node_name(number)
            self._rows[name] = number
            labels = {"kubernetes.io/hostname": name}
            state.put_node(NodeFacts(name, EPOCH, labels, allocatable, taints=(), unschedulable=False, ready=True))
        self._engine.run(EPOCH)

    def _submit(self, job: TraceJob, number: int) -> None:
        parts = self._shape.parts(job)
        name = job_name(number)
        key = GangKey("volcano", NAMESPACE, name)
        members = sum(part.pods for part in parts)
        spec = GangSpec(
            key=key,
            title=f"{NAMESPACE}/{name}",
            created_ns=EPOCH + job.submit_ns // SECOND * SECOND,
            queue=self._shape.queue_of(job),
            minimum=members,
            minima={part.role: part.pods for part in parts},
            min_resources={self._shape.resource: job.units * NANO},
            hints=SchedulingHints(run_time_ns=job.estimate_ns, user=user_name(job.user)),
            observed=GangStatus(enqueued=False),
        )
        self._jobs[key] = _Job(job, number, parts, spec)
        self._engine.state.put_gang(spec)

    def _create_pods(self, job: _Job) -> None:
        for part in job.parts:
            spec = self._specs.setdefault(part.units, pod_spec(self._shape, part.units))
            for index in range(part.pods):
                name = f"{job.spec.key.name}-{part.role}-{index}"
                facts = PodFacts(
                    uid=f"{name}/{job.evicted}",
                    namespace=NAMESPACE,
                    name=name,
                    labels={},
                    spec=spec,
                    created_ns=EPOCH + self._now_ns // SECOND * SECOND,
                    priority=0,
                    node="",
                    status=TaskStatus.PENDING,
                    ours=True,
                )
                self._put(job, facts, Membership(job.spec.key, part.role, index))

    def _put(self, job: _Job, facts: PodFacts, membership: Membership) -> None:
        job.pods[facts.uid] = (facts, membership)
        self._engine.state.put_pod(facts, membership, lambda: job.spec)

    def _end(self, entry: tuple[int, int, GangKey]) -> None:
        if self._is_stale(entry):
            return
        ends_ns, _, key = entry
        job = self._jobs[key]
        self._remove(job)
        self._outcomes.append(_outcome(job, ends_ns))

    def _is_stale(self, entry: tuple[int, int, GangKey]) -> bool:
        """Whether the job was evicted since this end was planned."""
        job = self._jobs.get(entry[2])
        return job is None or job.ends_ns != entry[0]

    def _remove(self, job: _Job) -> None:
        state = self._engine.state
        for uid in job.pods:
            state.remove_pod(uid)
        state.remove_gang(job.spec.key)
        del self._jobs[job.spec.key]

    # ---- decisions

    def _settle(self) -> None:
        """Cycles until nothing is decided that changes the cluster."""
        changed = True
        while changed:
            changed = False
            for decision in self._engine.run(EPOCH + self._now_ns):
                match decision:
                    case Enqueue():
                        self._enqueue(decision)
                    case Bind():
                        self._bind(decision)
                    case Evict():
                        self._evict(decision)
                    case Waits() if decision.of_gang and self._note_tried(decision):
                        pass
                    case _:
                        continue
                changed = True

    def _enqueue(self, decision: Enqueue) -> None:
        job = self._jobs[decision.gang]
        status = GangStatus(enqueued=True, enqueued_at_ns=EPOCH + self._now_ns, enqueued_by=decision.reason)
        job.spec = msgspec.structs.replace(job.spec, observed=status)
        self._engine.state.put_gang(job.spec)
        if not job.pods:
            self._create_pods(job)

    def _note_tried(self, decision: Waits) -> bool:
        """A condition on the gang's object says that it was attempted; whether that is new (M6)."""
        job = self._jobs[decision.gang]
        if job.spec.observed.tried or decision.reason not in TRIED:
            return False
        job.spec = msgspec.structs.replace(job.spec, observed=msgspec.structs.replace(job.spec.observed, tried=True))
        self._engine.state.put_gang(job.spec)
        return True

    def _bind(self, decision: Bind) -> None:
        job = self._jobs[decision.gang]
        since_ns = EPOCH + self._now_ns // SECOND * SECOND
        for placement in decision.placements:
            facts, membership = job.pods[placement.uid]
            bound = msgspec.structs.replace(
                facts,
                node=placement.node,
                status=TaskStatus.BOUND,
                mark=decision.mark,
                decision=decision.decision,
                since_ns=since_ns,
            )
            self._put(job, bound, membership)
            job.bound.add(placement.uid)
            job.nodes.add(self._rows[placement.node])
        if len(job.bound) == len(job.pods):
            job.start_ns = self._now_ns
            if job.first_start_ns is None:
                job.first_start_ns = self._now_ns
            job.ends_ns = self._now_ns + job.job.run_ns - job.done_ns
            heapq.heappush(self._ends, (job.ends_ns, job.number, decision.gang))

    def _evict(self, decision: Evict) -> None:
        """All pods of the job go, and are made anew: a job that lost one starts again, from the beginning or from where
        it was."""
        job = self._jobs[decision.gang]
        if decision.uid not in job.pods:
            return
        for uid in job.pods:
            self._engine.state.remove_pod(uid)
        job.pods.clear()
        job.bound.clear()
        job.nodes.clear()
        if self._keeps_progress and job.start_ns is not None:
            self._keep_progress(job, job.start_ns)
        job.start_ns = job.ends_ns = None
        job.evicted += 1
        self._create_pods(job)

    def _keep_progress(self, job: _Job, start_ns: int) -> None:
        """What is left of the job is what the scheduler expects of it from now on."""
        job.done_ns += self._now_ns - start_ns
        if job.job.estimate_ns is not None:
            left_ns = max(1, job.job.estimate_ns - job.done_ns)
            job.spec = msgspec.structs.replace(job.spec, hints=job.spec.hints._replace(run_time_ns=left_ns))
            self._engine.state.put_gang(job.spec)


def _outcome(job: _Job, end_ns: int | None) -> Outcome:
    return Outcome(job.job, job.first_start_ns, end_ns, tuple(sorted(job.nodes)), job.evicted)
