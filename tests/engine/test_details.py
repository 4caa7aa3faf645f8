"""What is in a gang's way (G10): the gangs that hold what it lacks are named, however many others are beside them."""

from __future__ import annotations

from enbloc.advice.explanation import explain
from enbloc.config import parse
from enbloc.engine.diagnosis.details import MOST_GANGS
from enbloc.inspect.tables import explanation_lines, obstacle_text
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


def test_g10_a_gang_larger_than_its_queue_is_limited_by_it_and_nothing_is_in_its_way() -> None:
    """`holder` uses the queue, too; its end would change nothing."""
    config = parse(NO_EVICTIONS)
    parent, team = m.queue("org", capability={"cpu": "64"}), m.queue("team", capability={"cpu": "4"}, parent="org")
    files = documents(
        m.node("n", 64), parent, team, m.gang("holder", 1, queue="team"), m.gang("waits", 6, queue="team", at="5s")
    )
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    said = [obstacle_text(one) for one in found.in_the_way]
    assert said == ["queue team uses 1 of its capability of 4 cpu, and 6 would be added"]
    lines = explanation_lines(found, simulation.begin_ns)
    assert f"  cause       {said[0]}" in lines
    assert not [line for line in lines if "in the way" in line]


def test_g10_r5_nodes_reserved_for_another_gang_are_no_partial_fit() -> None:
    """`late` could use 1 CPU of each node; one is reserved for `starving`, and so no place for it."""
    config = parse({"actions": "enqueue, allocate, reserve"})
    running = [m.pod(f"r{number}", 3, nodeSelector={"kubernetes.io/hostname": f"n{number}"}) for number in range(2)]
    starving = m.job("starving", m.role("w", 1, cpu=4), at="1s", annotations={"volcano.sh/sla-waiting-time": "5s"})
    files = documents([m.node("n0", 4), m.node("n1", 4)], running, starving, m.gang("late", 2, cpu=1, at="10s"))
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "late")
    assert found is not None
    reserved = [one["name"] for one in found.in_the_way if "reserved" in one["what"]]
    assert reserved == ["default/starving"]
    assert list(found.numbers["partialFit"]["pods"].values()) == [1]
    (nodes,) = found.numbers["roles"]["pods"]["nodes"]
    assert (nodes["fit"], nodes["rejected"]) == (1, {"node(s) resource was(were) reserved": 1})
    uses = {one["name"]: one["what"] for one in found.in_the_way}
    assert uses["default/r0"] == "uses 3 cpu on nodes that it could use"


def test_g10_the_most_that_is_free_on_one_of_the_nodes_of_a_shape() -> None:
    config = parse(NO_EVICTIONS)
    files = documents(
        [m.node("n0", 4), m.node("n1", 4), m.node("n2", 2)],
        [m.pod(f"r{number}", 4, nodeName=f"n{number}") for number in range(2)],
        m.pod("small", "500m", nodeName="n2"),
        m.pod("waits", 4, at="5s"),
    )
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    (role,) = found.numbers["roles"].values()
    assert {one["like"]: one["mostFree"] for one in role["nodes"]} == {"n0": {"cpu": "0"}, "n2": {"cpu": "1500m"}}


def test_g10_a_gang_without_roles_says_how_many_of_its_pods_would_fit() -> None:
    config = parse(NO_EVICTIONS)
    simulation = Simulation(read_scenario(documents(m.node("n", 2), m.koordinator_gang("waits", 3))), config)
    result = simulation.run(30 * SECOND)
    found = explain(result.objects, simulation.begin_ns + simulation.elapsed_ns, config, "waits")
    assert found is not None
    assert found.numbers["partialFit"] == {"pods": {"n": 2}}


def test_g10_a_partial_fit_is_of_pods_that_exist() -> None:
    """None of `wide` fits on a node. `big` is not enqueued, so it has no pods that could fit anywhere."""
    config = parse(NO_EVICTIONS)
    files = documents(m.node("n", 4), m.gang("wide", 1, cpu=5), m.job("big", m.role("w", 9, cpu=1)))
    simulation = Simulation(read_scenario(files), config)
    result = simulation.run(30 * SECOND)
    now_ns = simulation.begin_ns + simulation.elapsed_ns
    wide, big = (explain(result.objects, now_ns, config, name) for name in ("wide", "big"))
    assert wide is not None
    assert big is not None
    assert wide.numbers["partialFit"] == {}
    assert big.numbers["pods"] == {}
    assert "partialFit" not in big.numbers
