"""What is in a gang's way (G10): the gangs that hold what it lacks are named, however many others are beside them."""

from __future__ import annotations

from enbloc.advice.explanation import explain
from enbloc.config import parse
from enbloc.engine.diagnosis.details import MOST_GANGS
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from support.simulation import NO_EVICTIONS, Documents, documents

BESIDE = MOST_GANGS + 5


def in_the_way(gang: str, *values: Documents) -> list[str]:
    config = parse(NO_EVICTIONS)
    simulation = Simulation(read_scenario(documents(*values)), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, gang)
    assert found is not None
    return [one["name"] for one in found.in_the_way if one["kind"] == "gang"]


def test_g10_a_holder_is_named_beside_many_gangs_that_use_another_resource() -> None:
    """Those come first in order: they have as many pods, and names that sort before."""
    beside = [m.pod(f"a{number:02d}", None, memory="1Mi") for number in range(BESIDE)]
    holder = m.pod("holder", 4)
    waiting = m.pod("waits", 4, at="5s")
    assert in_the_way("waits", m.node("n", 4), beside, holder, waiting) == ["default/holder"]


def test_g10_a_gang_of_the_full_queue_is_named_beside_many_of_other_queues() -> None:
    full = m.queue("full", capability={"cpu": "4"})
    beside = [m.gang(f"a{number:02d}", 1) for number in range(BESIDE)]
    holder = m.gang("holder", 4, queue="full")
    waiting = m.gang("waits", 4, queue="full", at="5s")
    found = in_the_way("waits", m.node("n", 64), full, *beside, holder, waiting)
    assert found == ["default/holder"]
