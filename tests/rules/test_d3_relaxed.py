"""D3 with relaxed minima: nothing waits for pods that will not be created, and a job says what its roles wait for."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

RELAXED = {"admission": {"minAvailable": "relaxed"}}


def after(names: str, made: m.Obj, iteration: str = "all") -> m.Obj:
    return made | {"dependsOn": {"name": names.split(","), "iteration": iteration}}


def run(*roles: m.Obj, minimum: int, cpu: int = 8, **fields: Any) -> Answer:
    return simulate(m.node("n", cpu), m.job("j", *roles, minAvailable=minimum, **fields), config=RELAXED, until="10m")


def says(answer: Answer) -> list[str]:
    return [event["message"] for event in answer.all("Event") if event["reason"] == "WaitsForRoles"]


@pytest.mark.parametrize("minimum", [1, 2, 3, 4, 5, 6])
def test_d3_any_total_runs_through_all_waves(minimum: int) -> None:
    """Three roles of two pods without minima, one after the other, on an empty cluster."""
    roles = [m.role(name, 2, run_time="20s", start_delay="5s") for name in "abc"]
    answer = run(roles[0], after("a", roles[1]), after("b", roles[2]), minimum=minimum)
    assert [sorted(answer.times(f"j-{name}-")) for name in "abc"] == [[0.0] * 2, [5.0] * 2, [10.0] * 2]
    assert answer.phase("j") == "Completed"


@pytest.mark.parametrize("minimum", [1, 2, 3])
def test_d3_a_wave_that_fits_does_not_wait_for_the_total(minimum: int) -> None:
    """The total counts pods of the next role, for which there is no room yet."""
    answer = run(m.role("ps", 1, run_time="50s"), after("ps", m.role("w", 2, run_time="5s")), minimum=minimum, cpu=2)
    assert answer.at("j-ps-0") == 0.0
    assert sorted(answer.times("j-w-")) == ([50.0] * 2 if minimum == 3 else [0.0, 5.0])


def test_d3_a_role_with_an_explicit_0_is_neither_awaited_nor_needed() -> None:
    """Its pods do not fit; the role that depends on it starts, and is the gang."""
    answer = run(m.role("ps", 2, 0, cpu=20), after("ps", m.role("w", 2, 2)), minimum=2)
    assert answer.times("j-w-") == [0.0] * 2
    assert not answer.bound("j-ps-")


def test_d3_a_job_says_what_its_roles_wait_for() -> None:
    ps, w = m.role("ps", 2, start_delay="20s"), m.role("w", 2)
    assert says(run(ps, after("ps", w), minimum=3)) == [
        "pods of role w are created once 2 of role ps run and are ready, or have succeeded"
    ]
    either = run(ps, m.role("x", 1, 1, start_delay="30s"), after("ps,x", w, "any"), minimum=3)
    assert says(either)[0].startswith("pods of role w are created once 2 of role ps or 1 of role x run")


def test_d3_what_it_waits_for_is_said_once_per_wave_and_not_again_after_a_restart() -> None:
    roles = [m.role(name, 1, start_delay="20s") for name in "abc"]
    job = m.job("j", roles[0], after("a", roles[1]), after("b", roles[2]), minAvailable=3)
    for more in ([], [m.restart("10s"), m.restart("30s")]):
        found = says(simulate(m.node("n", 8), job, *more, config=RELAXED, until="10m"))
        assert [message.count("are created once") for message in found] == [2, 1]
