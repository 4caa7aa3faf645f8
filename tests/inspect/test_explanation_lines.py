"""What `enbloc explain` prints of one gang."""

from __future__ import annotations

import pytest

from enbloc.advice.explanation import explain
from enbloc.config import parse
from enbloc.inspect.overview import Explanation
from enbloc.inspect.tables import explanation_lines
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.clock import EPOCH
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


def test_the_story_has_short_times_and_the_names_that_users_gave() -> None:
    story = lines_of("j", m.node("n", 4), m.job("j", m.role("w", 2)))
    first = next(line for line in story if line.startswith("  story "))
    assert first == "  story       00:00:00 PodGroup j: Enqueued: enqueued: its pods may be created"


@pytest.mark.parametrize(
    "at, shown",
    [
        ("2026-01-01T10:00:07.123Z", "10:00:07"),
        ("2026-01-01T10:00:07Z", "10:00:07"),
        ("2025-12-31T23:59:59Z", "2025-12-31 23:59:59"),
    ],
)
def test_times_of_another_day_have_their_date(at: str, shown: str) -> None:
    event = {"at": at, "about": "Pod p", "what": "Scheduled", "message": "assigned"}
    found = Explanation("default/p", "Running", "", "It runs.", {}, story=[event])
    assert explanation_lines(found, EPOCH + 36_000 * SECOND)[-1] == f"  story       {shown} Pod p: Scheduled: assigned"
