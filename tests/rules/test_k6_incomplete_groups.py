"""K6: a complete NonStrict gang holds what it can while another gang of its group lacks members or does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.koordinator import TIMEOUT
from support import manifests as m
from support.answers import Answer
from support.reservations import first_reserved, reserving
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


def holding(name: str, count: int, minimum: int | None = None, **more: Any) -> list[m.Obj]:
    return m.koordinator_gang(name, count, minimum, **{"mode": m.NON_STRICT, "groups": GROUP, **more})


def lines(answer: Answer, what: str) -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in answer.lines(what)]


HELD = [(0.0, "a-0"), (0.0, "a-1")]
LATE = {
    "incomplete": [*holding("b", 1, 2), *holding("b", 1, 2, first=1, at="10s")],
    "not there yet": holding("b", 2, at="10s"),
    "its PodGroup is not there yet": [
        *m.labelled_pods("b", 2),
        m.sigs_podgroup("b", 2, mode=m.NON_STRICT, groups=GROUP, at="10s"),
    ],
    "gated": [
        *holding("b", 2, schedulingGates=[{"name": "example.com/wait"}]),
        *(m.patch("10s", "Pod", f"b-{n}", spec={"schedulingGates": None}) for n in range(2)),
    ],
}


@pytest.mark.parametrize("restarts", [(), ("3s", "7s")])
@pytest.mark.parametrize("late", LATE)
def test_k6_a_complete_gang_keeps_its_place_until_the_other_has_come(late: str, restarts: tuple[str, ...]) -> None:
    answer = simulate(
        m.node("n", 4), holding("a", 2), LATE[late], m.pod("s", 3, at="5s"), [m.restart(at) for at in restarts],
        until="20s",
    )  # fmt: skip
    assert lines(answer, "held") == HELD
    assert set(answer.times("a-") + answer.times("b-")) == {10.0}
    assert answer.at("s") is None


def test_k6_it_holds_more_as_room_comes_and_says_what_it_waits_for() -> None:
    answer = simulate(m.node("n", 1), holding("a", 2), holding("b", 1, 2), m.node("o", 1, at="5s"), until="9s")
    assert lines(answer, "held") == [(0.0, "a-0"), (5.0, "a-1")]
    assert answer.pending("default/a")["reason"] == "GroupNotReady"
    assert "default/b" in answer.why("default/a")
    assert "2 pods are held" in answer.why("default/a")
    assert answer.pending("default/b")["reason"] == "NotEnoughPods"


def test_k6_g10_two_gangs_that_hold_say_once_what_they_wait_for() -> None:
    """The second of them is read anew as its surplus comes; it waits for the same as before."""
    groups = [*GROUP, "default/c"]
    gangs = [*holding("a", 2, groups=groups), *holding("c", 2, groups=groups)]
    surplus = holding("c", 1, 2, first=2, at="5s", groups=groups)
    answer = simulate(m.node("n", 4), gangs, surplus, until="9s")
    said = [(one["involvedObject"]["name"], one["message"], one["count"]) for one in answer.all("Event", "c-")]
    waits = "default/b, which it names, does not exist; 2 pods are held"
    assert [one for one in said if one[1] == waits] == [(f"c-{n}", waits, 1) for n in range(3)]


def test_k6_it_holds_before_what_comes_behind_it_in_one_cycle() -> None:
    answer = simulate(m.node("n", 2), holding("a", 2), holding("b", 1, 2), m.pod("s", 1), until="9s")
    assert lines(answer, "held") == HELD
    assert answer.at("s") is None


@pytest.mark.parametrize("groups", [[], ["default/c"]])
def test_k6_it_lets_go_at_once_when_the_other_does_not_name_it_back(groups: list[str]) -> None:
    other = m.koordinator_gang("b", 2, cpu=3, groups=groups, at="10s")
    answer = simulate(m.node("n", 4), holding("a", 2), other, m.pod("s", 4, at="11s"), until="20s")
    assert lines(answer, "held") == HELD
    assert lines(answer, "released") == [(10.0, "a-0"), (10.0, "a-1")]
    assert answer.at("s") == 11.0


def test_k6_k8_the_clock_runs() -> None:
    answer = simulate(m.node("n", 4), holding("a", 2, wait="20s"), holding("b", 1, 2, wait="5s"), until="30s")
    assert lines(answer, "released") == [(20.0, "a-0"), (20.0, "a-1")]
    pods = [one for one in answer.all("Pod") if TIMEOUT in one["metadata"]["annotations"]]
    assert len(pods) == 3


def test_k6_it_evicts_reclaims_and_reserves_nothing() -> None:
    low = m.pod("low", 3, priority="low")
    gangs = [*holding("a", 2, cpu=2, at="1s", priority="high"), *holding("b", 1, 2, at="1s", priority="high")]
    answer = simulate(m.HIGH_LOW, m.node("n", 4), low, gangs, until="60s")
    assert answer.evicted() == []
    answer = simulate(m.HIGH_LOW, m.node("n", 4), low, gangs, config=reserving(5), until="60s")
    assert first_reserved(answer) == {}


def test_k6_what_it_holds_yields_to_a_higher_priority() -> None:
    gangs = [*holding("a", 2, priority="low"), *holding("b", 1, 2, priority="low")]
    answer = simulate(m.HIGH_LOW, m.node("n", 2), gangs, m.pod("high", 2, at="5s", priority="high"), until="9s")
    assert answer.at("high") == 5.0


def test_k6_nothing_is_held_where_more_than_pods_keeps_the_group_waiting() -> None:
    gone = [*m.labelled_pods("b", 2), m.sigs_podgroup("b", 2, mode=m.NON_STRICT, groups=GROUP)]
    gone[-1]["metadata"]["labels"] = {"volcano.sh/queue-name": "none"}
    answer = simulate(m.node("n", 4), holding("a", 2), gone, until="9s")
    assert lines(answer, "held") == []


def test_k6_k8_nothing_is_held_beside_a_gang_whose_time_is_up() -> None:
    """The group has released everything; pods that come since wait until the others are replaced."""
    marked = holding("b", 2)
    for pod in marked:
        pod["metadata"]["annotations"][TIMEOUT] = "true"
    answer = simulate(m.node("n", 4), holding("a", 2), marked, until="9s")
    assert lines(answer, "held") == []


def test_k6_nothing_is_held_in_a_group_with_a_strict_gang() -> None:
    answer = simulate(m.node("n", 4), holding("a", 2), holding("b", 1, 2, mode="Strict"), until="9s")
    assert lines(answer, "held") == []


def test_k6_g8_it_does_not_block_a_fifo_queue() -> None:
    """It does not wait for room: what is behind it may start beside what it holds."""
    team = m.queue("team", dequeueStrategy="fifo")
    gangs = [m.sigs_podgroup(name, 2, mode=m.NON_STRICT, groups=GROUP) for name in "ab"]
    for one in gangs:
        one["metadata"].setdefault("labels", {})["volcano.sh/queue-name"] = "team"
    pods = [*m.labelled_pods("a", 2, cpu=2), *m.labelled_pods("b", 1)]
    answer = simulate(m.node("n", 3), team, gangs, pods, m.pod("s", 1, queue="team", at="5s"), until="9s")
    assert lines(answer, "held") == [(0.0, "a-0")]
    assert answer.at("s") == 5.0
