"""The list `gangs` of a simulation's JSON: when each gang came, started and ended, and why it had waited."""

from __future__ import annotations

from typing import Any

from enbloc.api.meta import Obj
from enbloc.config import parse
from enbloc.scenario.scenario import read_scenario, with_nodes, with_run_time
from enbloc.sim.simulation import Simulation
from support import manifests as m
from support.simulation import documents, simulate


def gangs(*values: Any, until: str | None = None) -> dict[str, Obj]:
    return {one["gang"]: one for one in simulate(*values, until=until).data["gangs"]}


def test_a_gang_that_ran_at_once() -> None:
    found = gangs(m.node("n"), m.gang("a", 2, run_time="5s", at="1s"))
    assert found["default/a"] == {
        "gang": "default/a",
        "dialect": "volcano",
        "queue": "default",
        "priority": 0,
        "came": 1.0,
        "started": 1.0,
        "ended": 6.0,
        "waited": 0.0,
        "why": "",
        "pods": 2,
        "nodes": ["n"],
        "outcome": "succeeded",
    }


def test_a_gang_that_waited_says_why_it_had_waited() -> None:
    found = gangs(m.node("n", 1), m.pod("first", run_time="5s"), m.pod("second", at="1s", run_time="5s"))[
        "default/second"
    ]
    assert (found["came"], found["started"], found["waited"], found["ended"]) == (1.0, 5.0, 4.0, 10.0)
    assert "Insufficient cpu" in found["why"]
    job = gangs(m.node("n", 1), m.pod("first", run_time="5s"), m.one_pod_job("j", at="1s"))["default/j"]
    assert job["waited"] == 4.0
    assert job["why"]
    assert job["outcome"] == "running"
    assert job["ended"] is None


def test_a_gang_that_never_started_is_listed() -> None:
    found = gangs(m.node("n", 1), m.pod("large", 9, at="2s", queue="default"), until="12s")["default/large"]
    assert (found["came"], found["started"], found["waited"], found["outcome"]) == (2.0, None, 10.0, "waiting")
    assert "Insufficient cpu" in found["why"]


def test_a_gang_that_failed() -> None:
    assert gangs(m.node("n"), m.pod("p", run_time="1s", exit_code="1"))["default/p"]["outcome"] == "failed"


def test_a_native_podgroup_is_one_gang() -> None:
    group = m.native_podgroup("g", {"gang": {"minCount": 2}})
    found = gangs(m.node("n"), group, m.native_pods("g", 2, run_time="3s"))
    assert {name: one["pods"] for name, one in found.items()} == {"default/g": 2}


def result_of(scenario: Any) -> Any:
    return Simulation(scenario, parse(None)).run()


def test_nodes_may_be_added_to_a_scenario() -> None:
    scenario = with_nodes(read_scenario(documents(m.pod("p"))), [m.node("added")])
    assert result_of(scenario).gangs[0].nodes == {"added"}


def test_pods_without_a_run_time_may_get_one() -> None:
    own = m.pod("own", run_time="3s")
    scenario = read_scenario(documents(m.node("n"), own, m.pod("p"), m.one_pod_job("j"), m.restart("1s")))
    ended = {gang.name: gang.ended_ns // 10**9 for gang in result_of(with_run_time(scenario, "7s")).gangs}
    assert ended == {"default/own": 3, "default/p": 7, "default/j": 7}


def test_generate_name_gives_the_same_name_in_every_run() -> None:
    pod = m.pod("p")
    pod["metadata"] = {"generateName": "p-", "namespace": "default"}
    names = [sorted(gangs(m.node("n"), pod)) for _ in range(2)]
    assert names[0] == names[1]
    assert names[0][0].startswith("default/p-")


def times_of(gang: Obj) -> tuple[float | None, ...]:
    return gang["came"], gang["started"], gang["ended"], gang["waited"]


def test_a_gang_that_lost_all_its_pods_and_waits_again_has_not_ended() -> None:
    low, high = m.job("j", m.role("w", 2), priority="low"), m.pod("h", 2, at="10s", priority="high")
    found = gangs(*m.HIGH_LOW, m.node("n", 2), low, high)["default/j"]
    assert (found["started"], found["ended"], found["stopped"], found["outcome"]) == (0.0, None, 10.0, "waiting")
    assert "Insufficient cpu" in found["why"]


def test_a_gang_without_an_object_came_with_its_first_pod() -> None:
    keys = m.koordinator_annotations("a", 2)
    pods = [m.pod("a-9", at="1s", annotations=keys), m.pod("a-0", at="10s", annotations=keys)]
    found = gangs(m.node("n"), *pods)["default/a"]
    assert times_of(found) == (1.0, 10.0, None, 9.0)
    assert found["why"] == "1 of 2 pods exist, 1 more is needed"


def test_the_gang_of_a_scheduling_spec_came_with_it() -> None:
    spec = m.scheduling_spec("s", 2, at="2s")
    first, second = m.owned(m.pod("c-1", at="3s"), m.pod("c-0", at="8s"))
    begin = (m.CRDJOB_DEFINITION, m.crdjob(), m.node("n"), spec, first)
    assert times_of(gangs(*begin, second)["default/c"]) == (2.0, 8.0, None, 6.0)
    assert times_of(gangs(*begin, until="12s")["default/c"]) == (2.0, None, None, 10.0)


def test_a_gang_that_was_deleted_before_it_started_is_listed() -> None:
    large = m.pod("large", 9, at="2s", delete_at="12s")
    job = m.job("j", m.role("w", 9), at="1s", delete_at="4s")
    found = gangs(m.node("n", 1), large, job, m.pod("p", at="5s"))
    assert list(found) == ["default/p", "default/j", "default/large"]
    assert times_of(found["default/large"]) == (2.0, None, 12.0, 10.0)
    assert times_of(found["default/j"]) == (1.0, None, 4.0, 3.0)
    assert found["default/j"]["outcome"] == "removed"
    assert "Insufficient cpu" in found["default/large"]["why"]
    assert found["default/j"]["why"] == "not enqueued: requests 9 cpu, the cluster has 1"
