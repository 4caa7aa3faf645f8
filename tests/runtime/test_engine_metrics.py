"""What Prometheus reads of the engine: gangs by queue and reason, queues by resource; Volcano's names on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from enbloc import config
from enbloc.engine.core.tables.resources import CPU
from enbloc.runtime.control_plane import ControlPlane
from enbloc.runtime.engine_metrics import OF_QUEUES, REFERENCE, EngineMetrics, deserved_of
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _scraped(scenario: Path = QUICKSTART, **settings: Any) -> Samples:
    simulation = Simulation(read_scenario(read_documents([str(scenario)])), config.parse(settings))
    simulation.run(30 * SECOND)
    plane = simulation._plane
    assert isinstance(plane, ControlPlane)
    registry = CollectorRegistry()
    registry.register(EngineMetrics(lambda: plane.engine, volcano=config.parse(settings).volcano_metrics))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def _value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def test_gangs_are_counted_by_queue_state_and_reason() -> None:
    samples = _scraped()
    waiting = {"queue": "default", "state": "waiting", "reason": "NotEnoughResources"}
    assert _value(samples, "enbloc_gangs", **waiting) == 2
    assert _value(samples, "enbloc_gangs", queue="default", state="running", reason="") == 1


def test_queues_have_amounts_in_base_units_and_parents_their_sums() -> None:
    samples = _scraped()
    for queue in ("default", "root"):
        assert _value(samples, "enbloc_queue_used", queue=queue, resource="cpu") == 14
        assert _value(samples, "enbloc_queue_used", queue=queue, resource="memory") == 28 * 2**30
    assert _value(samples, "enbloc_queue_demand", queue="default", resource="cpu") > 14
    assert _value(samples, "enbloc_queue_share", queue="default") == pytest.approx(14 / 16)
    assert _value(samples, "enbloc_node_allocatable", resource="cpu") == 16
    assert _value(samples, "enbloc_node_used", resource="cpu") == 14
    assert not [name for name, _ in samples if name.startswith("volcano_")]


def test_v4_what_queues_deserve_is_as_of_now_and_reading_it_changes_nothing() -> None:
    """With gangs of one queue in line, the actions compute no share; the metric has it nevertheless."""
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse({"actions": "allocate"}))
    simulation.run(30 * SECOND)
    plane = simulation._plane
    assert isinstance(plane, ControlPlane)
    queues = plane.engine.state.queues
    before = {name: queue.deserved.tolist() for name, queue in queues.queues.items()}, queues.deserved_version
    assert not any(before[0]["default"])
    demand = plane.engine.state.queues.queues["default"].demand[CPU]
    assert deserved_of(plane.engine)["default"]["cpu"] == min(16, demand / 1_000)
    registry = CollectorRegistry()
    registry.register(EngineMetrics(lambda: plane.engine))
    assert 'enbloc_queue_deserved{queue="default",resource="cpu"} 16.0' in generate_latest(registry).decode()
    assert ({name: queue.deserved.tolist() for name, queue in queues.queues.items()}, queues.deserved_version) == before


def test_with_compat_volcano_queues_have_volcanos_names() -> None:
    samples = _scraped(metrics={"compat": "volcano"})
    assert _value(samples, "volcano_queue_allocated_milli_cpu", queue_name="default") == 14_000
    assert _value(samples, "volcano_queue_allocated_memory_bytes", queue_name="default") == 28 * 2**30
    assert _value(samples, "volcano_queue_real_capacity_milli_cpu", queue_name="default") == 16_000
    assert _value(samples, "volcano_queue_share", queue_name="default") == pytest.approx(14 / 16)
    assert _value(samples, "volcano_unschedule_job_count") == 2


def test_with_compat_volcano_other_resources_are_in_thousandths_as_there(tmp_path: Path) -> None:
    scenario = tmp_path / "gpus.yaml"
    scenario.write_text(
        """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  schedulerName: enbloc
  containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 2}}}]
"""
    )
    samples = _scraped(scenario, metrics={"compat": "volcano"})
    gpus = {"queue_name": "default", "resource": "nvidia.com/gpu"}
    assert _value(samples, "volcano_queue_allocated_scalar_resources", **gpus) == 2_000
    assert _value(samples, "volcano_queue_real_capacity_scalar_resources", **gpus) == 4_000
    assert _value(samples, "enbloc_queue_used", queue="default", resource="nvidia.com/gpu") == 2


def test_without_a_scheduler_nothing_is_collected() -> None:
    assert list(EngineMetrics(lambda: None).collect()) == []


def test_every_metric_is_in_the_reference() -> None:
    text = DOCS.read_text()
    assert [name for name in REFERENCE if f"| `{name}` |" not in text] == []
    assert {f"enbloc_queue_{name}" for name in OF_QUEUES} < set(REFERENCE)
    families = {name for name, _ in _scraped()}
    assert families <= set(REFERENCE)


def test_an_unknown_compat_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(config.ConfigError, match=r"metrics\.compat: .*none.*volcano"):
        config.parse({"metrics": {"compat": "prometheus"}})
    assert not config.parse({"metrics": {"type": "prometheus", "address": "http://a"}}).volcano_metrics
