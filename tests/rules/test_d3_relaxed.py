"""D3 with relaxed minima: nothing waits for pods that will not be created, and a job says what its roles wait for."""

from __future__ import annotations

from itertools import pairwise
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


def test_d3_a_third_wave_starts_where_the_first_role_has_no_minimum() -> None:
    """The first wave's mark lists `a`, which has no minimum any more when `b` has started: `c` is the present wave."""
    roles = [m.role("a", 2), after("a", m.role("b", 2, 2)), after("b", m.role("c", 1, 1))]
    answer = run(*roles, minimum=4)
    assert answer.times("j-") == [0.0] * 5


def test_g8_d2_room_is_left_to_the_awaited_pods_of_a_role_without_a_minimum() -> None:
    """`j` is enqueued at 10 s, and all of its first role must run before the second begins: the gang of lower priority,
    which waits too, does not start on that room."""
    answer = simulate(
        m.priority_class("high", 100),
        m.node("n", 4),
        m.pods(4, "busy-", run_time="10s"),
        m.gang("low", 2, at="1s"),
        m.job("j", m.role("a", 4), after("a", m.role("b", 2)), minAvailable=5, priority="high", at="1s"),
        config=RELAXED | {"actions": "enqueue, allocate, backfill"},
        until="30s",
    )
    assert answer.times("j-a-") == [10.0] * 4
    assert not answer.bound("low-")


def test_g11_a_few_pods_of_a_chain_carry_the_mark_of_all_its_waves() -> None:
    """Each wave leaves a pod with a mark. To rewrite them all with each wave would be n²/2 writes."""
    roles = [m.role(f"r{number}", 1, run_time="1h") for number in range(9)]
    chain = [roles[0], *(after(before["name"], role) for before, role in pairwise(roles))]
    answer = simulate(m.node("n", 8), m.node("m", 8), m.job("j", *chain), until="10m")
    marks = [pod["metadata"]["annotations"]["enbloc.dev/committed"] for pod in answer.all("Pod")]
    roles_of = sorted(len(mark.split(";")) - 1 for mark in marks)
    assert roles_of[-3:] == [9, 9, 9]
    assert roles_of[0] < 9
