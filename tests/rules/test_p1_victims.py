"""P1: the lowest level first, surplus before whole gangs within it, no victim in vain, and a plan if there is one."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

LEVELS = [m.priority_class(f"p{value}", value) for value in range(1, 31)]


def evicted(answer: Answer) -> set[str]:
    return {line["name"] for line in answer.lines("evicted")}


def on(node: str) -> dict[str, dict[str, str]]:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def test_p1_a_whole_gang_of_a_lower_level_goes_before_surplus_of_a_higher_one() -> None:
    answer = simulate(
        LEVELS,
        m.node("n", 4),
        m.gang("low", 2, cpu=1, priority="p1"),
        m.gang("elastic", 2, 1, cpu=1, priority="p2", at="1s"),
        m.pod("vip", 1, priority="p3", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"low-0", "low-1"}


def test_p1_surplus_of_a_level_goes_before_whole_gangs_of_it() -> None:
    answer = simulate(
        LEVELS,
        m.node("n", 4),
        m.gang("rigid", 2, cpu=1, priority="p1", at="1s"),
        m.gang("elastic", 2, 1, cpu=1, priority="p1"),
        m.pod("vip", 1, priority="p3", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"elastic-1"}


def test_p1_of_many_levels_no_more_are_touched_than_needed() -> None:
    """Twenty-four pods of as many priorities: the seven lowest make room for seven."""
    pods = [m.pod(f"a{value}", 1, priority=f"p{value}") for value in range(1, 25)]
    answer = simulate(LEVELS, m.node("n", 24), pods, m.gang("vip", 7, cpu=1, priority="p30", at="10s"), until="20s")
    assert evicted(answer) == {f"a{value}" for value in range(1, 8)}


def test_p1_a_member_in_the_way_goes_alone_if_its_gang_can_spare_one() -> None:
    """Room is needed on `n`, where the first member runs; the gang keeps its minimum without it."""
    answer = simulate(
        LEVELS,
        m.node("n", 2),
        m.node("o", 2),
        m.podgroup("g", 1, priority="p1"),
        m.pod("g-0", 2, group="g", **on("n")),
        m.pod("g-1", 2, group="g", **on("o")),
        m.pod("vip", 2, priority="p3", at="10s", **on("n")),
        until="20s",
    )
    assert evicted(answer) == {"g-0"}
    assert answer.at("vip") == 10.0


def test_p1_no_victim_in_vain() -> None:
    """`big` has to leave `n`, and then two pods of the gang fit there: `small` on `o` stays."""
    answer = simulate(
        LEVELS,
        m.node("n", 4),
        m.node("o", 2),
        m.pod("small", 2, priority="p1", **on("o")),
        m.pod("big", 4, priority="p2", **on("n")),
        m.gang("vip", 2, cpu=2, priority="p3", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"big"}


def test_p1_a_plan_is_found_if_the_gang_only_fits_by_packing() -> None:
    """Nodes of 4, 4 and 1: the launcher has to go to the small one, so that a worker fits on each of the others."""
    answer = simulate(
        LEVELS,
        m.node("n", 4),
        m.node("o", 4),
        m.node("p", 1),
        m.pod("low", 1, priority="p1", **on("n")),
        m.job("vip", m.role("launcher", 1, cpu=1), m.role("worker", 2, cpu=4), priority="p3", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"low"}
    assert answer.bound("vip-launcher-0")["vip-launcher-0"] == (10.0, "p")


def test_p1_reclaim_takes_from_the_queue_furthest_above_its_share() -> None:
    """Of 12 CPU each of three queues deserves 4: `b` uses 7 and `a` 5."""
    answer = simulate(
        m.node("n", 12),
        [m.queue(name) for name in "abc"],
        m.gang("a", 5, 1, cpu=1, queue="a"),
        m.gang("b", 7, 1, cpu=1, queue="b"),
        m.gang("c", 1, cpu=2, queue="c", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"b-5", "b-6"}


def test_p1_reclaim_takes_from_the_least_important_of_queues_equally_far_above() -> None:
    answer = simulate(
        m.node("n", 12),
        [m.queue("a", priority=5), m.queue("b", priority=1), m.queue("c")],
        m.gang("a", 6, 1, cpu=1, queue="a"),
        m.gang("b", 6, 1, cpu=1, queue="b"),
        m.gang("c", 1, cpu=1, queue="c", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"b-5"}


def test_p1_siblings_reclaim_within_the_share_of_their_parent() -> None:
    """`team` has 6 of 12 CPU, all used by its child `x`; `y` gets its half of those from `x`, nothing from `other`."""
    answer = simulate(
        m.node("n", 12),
        [m.queue("team"), m.queue("x", parent="team"), m.queue("y", parent="team"), m.queue("other")],
        m.gang("x", 6, 1, cpu=1, queue="x"),
        m.gang("other", 6, 1, cpu=1, queue="other"),
        m.gang("y", 2, cpu=1, queue="y", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"x-4", "x-5"}


def test_p2_reclaim_evicts_what_a_third_queues_guarantee_keeps_from_it_now() -> None:
    """`q1` uses 4 of 5 CPU; `q2` is guaranteed 1: one has to leave before `default` may use 2."""
    answer = simulate(
        m.node("n", 3),
        m.node("o", 2),
        m.queue("q1"),
        m.queue("q2", guarantee={"cpu": "1"}),
        m.gang("a", 2, 1, cpu=2, queue="q1"),
        m.pod("b", 2, at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"a-1"}
    assert answer.at("b") == 10.0


def test_p1_best_effort_pods_preempt_best_effort_pods_for_the_number_of_pods() -> None:
    """A node of two pods: one that requests CPU stays, the BestEffort one of lower priority leaves."""
    answer = simulate(
        LEVELS,
        m.node("n", 4, pods=2),
        m.pod("asks", 1, priority="p1"),
        m.pod("idle", None, priority="p2"),
        m.pod("vip", None, priority="p3", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"idle"}
    assert answer.at("vip") == 10.0


def test_p1_best_effort_pods_evict_no_pod_that_requests_something() -> None:
    answer = simulate(
        LEVELS,
        m.node("n", 4, pods=1),
        m.pod("asks", 1, priority="p1"),
        m.pod("vip", None, priority="p3", at="10s"),
        until="20s",
    )
    assert not evicted(answer)


def test_p1_equal_gangs_preempt_before_those_behind_them() -> None:
    """Two victims for two equal pods: the pod of lower priority behind them gets none, not even for a cycle."""
    answer = simulate(
        LEVELS,
        m.node("n", 2),
        m.pods(2, "low-", 1, priority="p1"),
        m.pods(2, "vip-", 1, priority="p3", at="10s"),
        m.pod("mid", 1, priority="p2", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"low-0", "low-1"}
    assert answer.times("vip-") == [10.0, 10.0]
    assert not answer.lines("reserved", "mid")


def test_p2_reclaim_evicts_the_surplus_that_is_of_use() -> None:
    """`d` may lose one pod by its share: not the last one, whose node has too little room, but the other."""
    answer = simulate(
        m.node("n", 4),
        m.node("o", 3),
        m.queue("q", weight=2),
        m.queue("d"),
        m.podgroup("d", 1, queue="d"),
        m.pod("d-0", 3, group="d", **on("n")),
        m.pod("d-1", 3, group="d", **on("o")),
        m.gang("q", 2, cpu=2, queue="q", at="10s"),
        until="20s",
    )
    assert evicted(answer) == {"d-0"}
    assert answer.times("q-") == [10.0, 10.0]


def test_p1_preempt_evicts_the_surplus_that_is_of_use() -> None:
    """Of `d` one pod is enough: not the last one, whose node has too little room, and not both."""
    answer = simulate(
        LEVELS,
        m.node("n", 4),
        m.node("o", 3),
        m.podgroup("d", 1),
        m.pod("d-0", 3, group="d", **on("n")),
        m.pod("d-1", 3, group="d", **on("o")),
        m.gang("q", 2, cpu=2, at="10s", priority="p3"),
        until="20s",
    )
    assert evicted(answer) == {"d-0"}
    assert answer.times("q-") == [10.0, 10.0]


@pytest.mark.parametrize(("minimum", "victims"), [(2, {"d-0", "d-1", "d-2"}), (0, set())])
def test_p2_reclaim_takes_a_gang_with_its_surplus_and_judges_its_queue_once(minimum: int, victims: set[str]) -> None:
    """`d` is one pod above its share, and none of its pods is of use alone: it goes as a whole. Without a minimum it is
    no whole, and each of its pods is judged."""
    answer = simulate(
        m.node("n", 4),
        m.node("o", 4),
        m.queue("q", weight=3),
        m.queue("d"),
        m.podgroup("d", minimum, queue="d"),
        [m.pod(f"d-{i}", 1, group="d", **on("n")) for i in range(2)],
        m.pod("d-2", 1, group="d", **on("o")),
        m.podgroup("q", 2, queue="q", at="10s"),
        m.pod("q-0", 4, group="q", at="10s", **on("n")),
        m.pod("q-1", 2, group="q", at="10s"),
        until="20s",
    )
    assert evicted(answer) == victims
    assert answer.times("q-") == ([10.0, 10.0] if victims else [])


def test_p3_reclaim_evicts_what_could_not_take_it_back() -> None:
    """`x-0` could take its room back by its share of the memory; `y` requests CPU only."""
    answer = simulate(
        m.node("n", 8),
        m.queue("q"),
        m.queue("d"),
        m.gang("x", 1, 0, cpu=2, memory="2Gi", queue="q"),
        m.gang("y", 1, cpu=3, queue="q"),
        m.podgroup("d", 5, queue="d", at="10s"),
        m.pod("d-0", 1, memory="4Gi", group="d", at="10s"),
        [m.pod(f"d-{i}", 1, group="d", at="10s") for i in range(1, 5)],
        until="20s",
    )
    assert evicted(answer) == {"y-0"}
    assert answer.times("d-") == [10.0] * 5


def test_p2_reclaim_evicts_in_an_order_in_which_the_queue_is_above_its_share() -> None:
    """`g` needs 4 places on n1, and 2 among the 4 pods of n2. Only before `c` leaves is the default queue above its
    share: one of the BestEffort pods leaves first."""
    answer = simulate(
        m.node("n1", 4),
        m.node("n2", 4, "8Gi", pods=4),
        m.queue("top", weight=2),
        m.queue("q", parent="top"),
        m.queue("other"),
        m.queue_job("a", m.role("w", 1, cpu=None), annotations={"volcano.sh/queue-name": "other"}),
        m.pods(2, "b-", None),
        m.pod("c", 3),
        m.job("g", m.role("a", 2, memory="2Gi"), m.role("b", 4), queue="q"),
        until="60s",
    )
    assert answer.times("g-") == [0.0] * 6
    assert [name.partition("-")[0] for _, name in sorted(answer.evicted())] == ["b", "c"]
