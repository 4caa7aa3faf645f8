"""A replay through the whole stack: each job of the trace is a Volcano Job in the cluster that `enbloc sim` runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from enbloc.api.meta import Obj, Ref, annotations_of, labels_of, namespace_of
from enbloc.api.volcano import GROUP_NAME_KEYS, JOB_NAME, POD_GROUP
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import Config
from enbloc.gangs.hints import RUN_TIME, USER
from enbloc.scenario.scenario import Arrival, Scenario
from enbloc.sim.simulation import Simulation
from enbloc.traces.cluster import NAMESPACE, Part, Shape, job_name, node, node_name, pod_spec, queue
from enbloc.traces.outcome import Outcome, Progress
from enbloc.traces.trace import TraceJob
from enbloc.units import format_duration


def run(
    shape: Shape,
    config: Config,
    jobs: Sequence[TraceJob],
    progress: Progress | None = None,
    keeps_progress: bool = True,
) -> list[Outcome]:
    """Outcomes in the order of the trace. `keeps_progress`: a job that is evicted goes on where it was."""
    simulation = Simulation(Scenario(list(_arrivals(shape, jobs))), config)
    if keeps_progress:
        keep_progress(simulation, jobs)
    furniture = shape.nodes + len(shape.queues or ())

    def update(_: float, done: int, __: int) -> None:
        if progress is not None:
            progress(max(0, done - furniture), len(jobs))

    result = simulation.run(None, update)
    gangs = {gang.name: gang for gang in result.gangs}
    numbers = {node_name(number): number for number in range(shape.nodes)}
    outcomes = []
    for number, job in enumerate(jobs):
        gang = gangs.get(f"{NAMESPACE}/{job_name(number)}")
        if gang is None:
            outcomes.append(Outcome(job, None, None))
            continue
        nodes = tuple(sorted(numbers[name] for name in gang.nodes))
        evicted = gang.evicted // sum(part.pods for part in shape.parts(job))
        outcomes.append(Outcome(job, gang.started_ns, gang.ended_ns if gang.ended_ns >= 0 else None, nodes, evicted))
    return outcomes


def keep_progress(simulation: Simulation, jobs: Sequence[TraceJob]) -> None:
    """A job that is evicted goes on where it was."""
    estimates = {job_name(number): job.estimate_ns for number, job in enumerate(jobs)}
    simulation.keep_progress(lambda store, pod, done_ns: _note_progress(store, pod, done_ns, estimates))


def _note_progress(store: Store, pod: Obj, done_ns: int, estimates: Mapping[str, int | None]) -> None:
    """As a job with checkpoints does: its PodGroup says what is expected to be left of it."""
    estimate_ns = estimates.get(labels_of(pod).get(JOB_NAME, ""))
    group = annotations_of(pod).get(GROUP_NAME_KEYS[0])
    if estimate_ns is None or group is None:
        return
    ref = Ref(POD_GROUP, namespace_of(pod), group)
    if store.get(*ref) is not None:
        left = format_duration(max(1, estimate_ns - done_ns))
        store.patch(ref, {"metadata": {"annotations": {RUN_TIME: left}}})


def _arrivals(shape: Shape, jobs: Sequence[TraceJob]) -> Iterator[Arrival]:
    for number in range(shape.nodes):
        yield Arrival(0, number, node(shape, number))
    queues = [queue(name, weight) for name, weight in (shape.queues or {}).items()]
    for number, one in enumerate(queues, shape.nodes):
        yield Arrival(0, number, one)
    for number, job in enumerate(jobs):
        yield Arrival(job.submit_ns, shape.nodes + len(queues) + number, job_object(shape, job, number))


def job_object(shape: Shape, job: TraceJob, number: int) -> Obj:
    metadata: dict[str, Any] = {"name": job_name(number), "namespace": NAMESPACE}
    annotations = {USER: job.user} if job.user else {}
    if job.estimate_ns is not None:
        annotations[RUN_TIME] = format_duration(job.estimate_ns)
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "schedulerName": "enbloc",
            "queue": shape.queue_of(job),
            "ttlSecondsAfterFinished": 0,
            "tasks": [_task(shape, part, job) for part in shape.parts(job)],
        },
    }


def _task(shape: Shape, part: Part, job: TraceJob) -> dict[str, Any]:
    annotations = {"sim.enbloc.dev/run-time": format_duration(job.run_ns)}
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec(shape, part.units)}
    return {"name": part.role, "replicas": part.pods, "minAvailable": part.pods, "template": template}
