"""What the scheduler counts: time to start by queue and size, actions, decisions; and requests to an API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cluster.embedded.http.serving import served_in_background
from enbloc.cluster.kube import connect
from enbloc.engine.decisions import Bind, Evict, Placement, SetAside
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey
from enbloc.runtime.cycle_metrics import CycleMetrics, size_class
from enbloc.runtime.metrics import Metrics
from enbloc.sim import simulation as simulation_module
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from web.played import QUICKSTART

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _samples(registry: CollectorRegistry) -> Samples:
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def _of(metrics: CycleMetrics) -> Samples:
    registry = CollectorRegistry()
    for collector in metrics.collectors:
        registry.register(collector)
    return _samples(registry)


def _played(monkeypatch: Any, scenario: Path = QUICKSTART, *, volcano: bool) -> Samples:
    """A scenario with metrics; of the quickstart resnet starts at 0 s, bert at 60 s after a wait of 50 s."""
    from enbloc import config
    from enbloc.scenario.documents import read_documents
    from enbloc.scenario.scenario import read_scenario

    metrics, plane = CycleMetrics(volcano=volcano), simulation_module.ControlPlane

    def counted(*arguments: Any, **options: Any) -> Any:
        return plane(*arguments, **options, metrics=metrics)

    monkeypatch.setattr(simulation_module, "ControlPlane", counted)
    Simulation(read_scenario(read_documents([str(scenario)])), config.parse(None)).run(100 * SECOND)
    return _of(metrics)


def test_time_to_start_is_counted_by_queue_and_size(monkeypatch: Any) -> None:
    samples = _played(monkeypatch, volcano=False)
    labels = (("queue", "default"), ("size", "2-8"))
    assert samples["enbloc_gang_start_seconds_count", labels] == 2
    assert samples["enbloc_gang_start_seconds_sum", labels] == 50
    assert samples["enbloc_decisions_total", (("kind", "bind"),)] >= 2
    assert samples["enbloc_bound_pods_total", (("queue", "default"),)] == 8
    for action in ("begin", "enqueue", "allocate", "preempt", "reclaim", "reserve", "backfill", "end"):
        assert samples["enbloc_action_seconds_count", (("action", action),)] > 0, action
    assert not [name for name, _ in samples if name.startswith("volcano_")]


def test_volcanos_latencies_light_up_on_request(monkeypatch: Any) -> None:
    """What the panels of Volcano's own boards query, with their labels."""
    samples = _played(monkeypatch, volcano=True)
    assert samples["volcano_e2e_scheduling_latency_milliseconds_count", ()] > 0
    assert samples["volcano_action_scheduling_latency_milliseconds_count", (("action", "allocate"),)] > 0
    assert samples["volcano_open_session_duration_milliseconds_count", ()] > 0
    assert samples["volcano_e2e_job_scheduling_latency_milliseconds_sum", ()] == 50_000
    assert samples["volcano_schedule_attempts_total", (("result", "Success"),)] == 2
    job = (("job_name", "bert"), ("job_namespace", "default"), ("queue", "default"))
    assert samples["volcano_e2e_job_scheduling_duration", job] == 50_000
    assert samples["volcano_pod_preemption_victims", ()] == 0
    for when in ("OnSessionOpen", "OnSessionClose"):
        plugin = (("OnSession", when), ("plugin", "all"))
        assert samples["volcano_plugin_scheduling_latency_milliseconds_count", plugin] > 0
    assert samples["volcano_task_scheduling_latency_milliseconds_count", (("stage", "Assumed"),)] == 8


def test_a_pods_latency_under_volcanos_name_is_from_its_creation(monkeypatch: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "two-pods.yaml"
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, annotations: {sim.enbloc.dev/run-time: 10s, sim.enbloc.dev/at: %s}}
spec: {restartPolicy: Never, containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]}
---
"""
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 1, memory: 1Gi, pods: 9}}\n"
    scenario.write_text(pod % ("first", "0s") + pod % ("second", "3s") + node)
    samples = _played(monkeypatch, scenario, volcano=True)
    assert samples["volcano_task_scheduling_latency_milliseconds_count", (("stage", "Assumed"),)] == 2
    assert samples["volcano_task_scheduling_latency_milliseconds_sum", (("stage", "Assumed"),)] == 7_000


def test_evictions_and_claims_are_counted() -> None:
    from enbloc import config
    from enbloc.engine.engine import Engine
    from enbloc.gangs.claim_records import Record

    metrics, engine, gang = CycleMetrics(volcano=True), Engine(config.parse(None)), GangKey("volcano", "default", "g")
    metrics.decided(engine, Evict(gang, "default", "p", "u", "Preempted", "for another"), 0)
    metrics.decided(engine, SetAside(gang, ClaimKind.PREEMPT, Record(ClaimKind.PREEMPT, 0, {}), "Nominated", ""), 0)
    metrics.decided(engine, SetAside(gang, ClaimKind.RESERVE, None, "Released", ""), 0)
    metrics.decided(engine, Bind(gang, "d", (Placement("default", "p", "u", "n1"),), "m", commits=True), 0)
    samples = _of(metrics)
    assert samples["enbloc_evictions_total", (("queue", ""), ("reason", "Preempted"))] == 1
    assert samples["enbloc_claims_total", (("kind", "preempt"),)] == 1
    kinds = {labels[0][1]: value for (name, labels), value in samples.items() if name == "enbloc_decisions_total"}
    assert kinds == {"evict": 1, "claim": 1, "release": 1, "bind": 1}
    assert (samples["volcano_pod_preemption_victims", ()], samples["volcano_total_preemption_attempts", ()]) == (1, 1)


def test_answers_of_bindings_are_a_stage_of_volcanos() -> None:
    metrics = Metrics()
    cycle = metrics.count_decisions(volcano=True)
    assert cycle.volcano is not None
    cycle.volcano.assumed(2.0, "u1")
    metrics.binding(True, 0.25, "u1")
    metrics.binding(False, 0.5, "u2")
    samples = _of(cycle)
    assert samples["volcano_task_scheduling_latency_milliseconds_sum", (("stage", "Assumed"),)] == 2_000
    assert samples["volcano_task_scheduling_latency_milliseconds_sum", (("stage", "Bound"),)] == 2_250
    assert samples["volcano_scheduling_stage_duration_milliseconds_sum", (("stage", "Bind"),)] == 250
    assert samples["volcano_scheduling_stage_duration_milliseconds_count", (("stage", "Bind"),)] == 1


def test_stages_of_pods_are_counted_while_a_scheduler_watches() -> None:
    """Watched: not pods of the first list, nor of another scheduler. The other stages: every pod that was bound."""
    from enbloc import config
    from support.live_cluster import LiveWorld, in_virtual_time

    found: Samples = {}

    async def main() -> None:
        volcano = config.parse({"metrics": {"compat": "volcano"}})
        world = LiveWorld(m.node("n1", 8), m.pod("before"), config=volcano, lag_s=0.5)
        await world.begin()
        await world.settle()
        world.store.create(m.pod("after"))
        world.store.create(m.pod("other", schedulerName="none"))
        await world.settle()
        found.update(_samples(world.plane._metrics.registry))
        await world.end()

    in_virtual_time(main)
    latency, stage = "volcano_task_scheduling_latency_milliseconds", "volcano_scheduling_stage_duration_milliseconds"
    counts = {name: found[f"{latency}_count", (("stage", name),)] for name in ("Watched", "Assumed", "Bound")}
    assert counts == {"Watched": 1, "Assumed": 2, "Bound": 2}
    sums = {name: found[f"{latency}_sum", (("stage", name),)] for name in counts}
    assert 0 < sums["Watched"] <= sums["Assumed"] < sums["Bound"]
    assert sums["Bound"] - sums["Assumed"] == pytest.approx(found[f"{stage}_sum", (("stage", "Bind"),)])


def test_size_classes() -> None:
    assert [size_class(pods) for pods in (0, 1, 2, 8, 9, 64, 65, 512, 513, 9_999)] == [
        *("1", "1", "2-8", "2-8", "9-64", "9-64", "65-512", "65-512", "513+", "513+")
    ]


def test_requests_are_counted_by_method_and_code(tmp_path: Path) -> None:
    metrics = Metrics()
    with served_in_background(tmp_path) as (kubeconfig, _):

        async def ask() -> None:
            async with await connect(str(kubeconfig), None, measure=metrics.requested) as cluster:
                await cluster.list("Node")
                assert await cluster.get("Pod", "default", "none") is None

        asyncio.run(ask())
    samples = _samples(metrics.registry)
    assert samples["enbloc_api_request_seconds_count", (("code", "200"), ("method", "GET"))] >= 2
    assert samples["enbloc_api_request_seconds_count", (("code", "404"), ("method", "GET"))] == 1
    metrics.requested("PATCH", 0, 1.0, True)
    assert _samples(metrics.registry)["enbloc_api_retries_total", (("method", "PATCH"),)] == 1
