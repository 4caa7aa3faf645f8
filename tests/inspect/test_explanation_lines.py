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


def story_of(gang: str, *values: Documents) -> list[str]:
    lines = lines_of(gang, *values)
    first = next(number for number, line in enumerate(lines) if line.startswith("  story "))
    return [line.removeprefix("  story").strip() for line in lines[first:]]


def test_the_story_of_a_job_is_not_that_of_one_that_had_its_name_before() -> None:
    before = m.job("j", m.role("old", 1), annotations={"sim.enbloc.dev/delete-at": "2s"})
    story = story_of("j", m.node("n", 4), before, m.job("j", m.role("w", 1), at="4s"))
    assert story[0].startswith("00:00:04 ")
    assert not [line for line in story if "j-old-0" in line]
    assert [line for line in story if "assigned default/j-w-0 to n" in line]


def test_the_story_of_a_gang_is_not_that_of_one_whose_name_begins_with_its_own() -> None:
    """Also where that one's pods are gone: they are known by their names alone."""
    gone = m.step("5s", "delete", "Pod", "j-two-w-0")
    nodes = [m.node("a", 1), m.node("b", 1)]
    story = story_of("j", nodes, m.job("j", m.role("w", 1)), m.job("j-two", m.role("w", 1)), gone)
    assert [line for line in story if "Pod j-w-0: Scheduled" in line]
    assert not [line for line in story if "j-two" in line]
    assert story_of("j-two", nodes, m.job("j", m.role("w", 1)), m.job("j-two", m.role("w", 1)), gone)


def test_the_story_says_that_a_gang_started_again() -> None:
    """In the very words of its first start: they are repeated when they come again, and not for each object."""
    high = m.job("high", m.role("w", 2, priority="high", run_time="6s"), at="8s")
    classes = m.priority_class("high", 10)
    low = m.job("low", m.role("w", 2))
    config = parse(None)
    simulation = Simulation(read_scenario(documents(classes, m.node("n", 2), low, high)), config)
    result = simulation.run(20 * SECOND)
    now_ns = simulation.begin_ns + simulation.elapsed_ns
    found = explain(result.objects, now_ns, config, "low")
    assert found is not None
    starts = [event["at"] for event in found.story if event["what"] == "GangScheduled"]
    assert starts == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:14Z"]
