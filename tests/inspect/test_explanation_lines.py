"""What `enbloc explain` prints of one gang."""

from __future__ import annotations

from enbloc.advice.explanation import explain
from enbloc.config import parse
from enbloc.inspect.tables import explanation_lines
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from support.simulation import Documents, documents


def lines_of(gang: str, *values: Documents) -> list[str]:
    config = parse(None)
    simulation = Simulation(read_scenario(documents(*values)), config)
    result = simulation.run(10 * SECOND)
    now_ns = simulation.begin_ns + simulation.elapsed_ns
    found = explain(result.objects, now_ns, config, gang)
    assert found is not None
    return explanation_lines(found, now_ns)


def test_gated_pods_do_not_wait_to_be_placed() -> None:
    gates = [{"name": "example.com/hold"}]
    group = [m.podgroup("g", 2), m.pod("g-0", 1, group="g", schedulingGates=gates), m.pod("g-1", 1, group="g")]
    lines = lines_of("g", m.node("n", 4), *group)
    assert "  role        pods: 1 waits, 1 gated, minimum 2, each requests 1 cpu" in lines
    assert "  cause       gate example.com/hold holds 1 pod" in lines


def test_a_role_without_pods_says_so() -> None:
    full = m.queue("small", capability={"cpu": "1"})
    lines = lines_of("j", m.node("n", 4), full, m.job("j", m.role("w", 2, cpu=1), queue="small"))
    assert "  role        w: no pod yet, minimum 2" in lines


def test_a_pod_of_another_scheduler_has_its_remedy() -> None:
    lines = lines_of("p", m.node("n", 4), m.pod("p", 1, schedulerName="my-scheduler"))
    assert "  to do       set schedulerName: enbloc instead of my-scheduler (starts at once)" in lines
    assert "  start       unknown: that is up to my-scheduler" in lines
