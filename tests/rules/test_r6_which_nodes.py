"""R6: which nodes are reserved for a starving gang, how many at most, and what it says if that is too few."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.reservations import QUIET, full, reserved, reserving
from support.simulation import simulate


def free_by(**free: int) -> list[m.Obj]:
    """Nodes of 4 cpu, with so many of them free."""
    found: list[m.Obj] = []
    for name, idle in free.items():
        found += [m.node(name), full(4 - idle, on=name, name=f"on-{name}", run=None)]
    return found


def test_r6_the_nearest_node_is_reserved() -> None:
    answer = simulate(free_by(a=1, b=3, c=2), m.pod("big", 4), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_the_nearest_nodes_of_a_gang() -> None:
    answer = simulate(free_by(a=1, b=3, c=0, d=2), m.gang("g", 2, cpu=4), config=reserving(), until="20s")
    assert {where for _, where in reserved(answer).values()} == {"b", "d"}


def test_r6_cpu_and_memory_count_alike() -> None:
    """a: all cpu and a quarter of the memory, 6.25; b: half and half... 7.5 and 5: c is nearer with 7.5."""
    docs = [
        m.node("a", 4, "4Gi"),
        m.node("b", 4, "4Gi"),
        m.node("c", 4, "4Gi"),
        m.pod("on-a", None, memory="3Gi", nodeName="a"),
        m.pod("on-b", 2, memory="2Gi", nodeName="b"),
        m.pod("on-c", 1, memory="1Gi", nodeName="c"),
    ]
    answer = simulate(docs, m.pod("big", 4, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "c")}


def test_r6_more_than_asked_for_counts_no_more() -> None:
    """Ten is the most a resource counts: a has twice the memory and 3 cpu, b has enough memory and 3.5."""
    docs = [
        m.node("a", 4, "16Gi"),
        m.node("b", 4, "4Gi"),
        m.pod("on-a", 1, nodeName="a"),
        m.pod("on-b", "500m", nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


GPU = "nvidia.com/gpu"


def test_r6_scalar_resources_count_twice() -> None:
    """a has all cpu and no gpu: (10 + 0)/3; b has no cpu and all gpus: ((0 + 10)/2 + 20)/3."""
    docs = [
        m.node("a", 4, extra={GPU: 2}),
        m.node("b", 4, extra={GPU: 2}),
        m.pod("on-a", None, extra={GPU: 2}, nodeName="a"),
        m.pod("on-b", 4, nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, extra={GPU: 2}), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_several_scalar_resources_count_by_their_mean() -> None:
    """a: gpu 10, nic 0, mean 5, cpu 10: (10 + 10)/3 = 6.7; b: gpu 7.5, nic 7.5, mean 7.5, cpu 0: (5 + 15)/3 = 6.7.
    With a nic more on b it is nearer; with a plain sum of scalars, too; with a maximum a would be."""
    nic = "example.com/nic"
    docs = [
        m.node("a", 4, extra={GPU: 4, nic: 4}),
        m.node("b", 4, extra={GPU: 4, nic: 4}),
        m.pod("on-a", None, extra={nic: 4}, nodeName="a"),
        m.pod("on-b", 4, extra={GPU: 1}, nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", 4, extra={GPU: 4, nic: 4}), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


def test_r6_a_resource_that_is_not_asked_for_counts_ten() -> None:
    """Only memory is asked for: cpu says nothing about nearness."""
    docs = [
        m.node("a", 4, "4Gi"),
        m.node("b", 4, "4Gi"),
        m.pod("on-a", None, memory="2Gi", nodeName="a"),
        m.pod("on-b", 4, memory="1Gi", nodeName="b"),
    ]
    answer = simulate(docs, m.pod("big", None, memory="4Gi"), config=reserving(), until="20s")
    assert reserved(answer) == {"big": (10.0, "b")}


@pytest.mark.parametrize(
    "nodes, percent, most",
    [(3, 50, 2), (4, 50, 2), (5, 50, 3), (3, 1, 1), (3, 33, 1), (3, 34, 2), (10, 10, 1), (10, 11, 2), (2, 100, 2)],
)
def test_r6_at_most_so_many_percent_of_all_nodes_rounded_up(nodes: int, percent: int, most: int) -> None:
    busy = [one for i in range(nodes) for one in (m.node(f"n{i}"), full(1, on=f"n{i}", name=f"on-{i}", run=None))]
    fits = simulate(busy, m.gang("g", most, cpu=4), config=reserving(10, percent), until="20s")
    assert len(reserved(fits)) == most
    if most < nodes:
        more = simulate(busy, m.gang("g", most + 1, cpu=4), config=reserving(10, percent), until="20s")
        assert not reserved(more)


def test_r6_fifty_percent_by_default() -> None:
    actions = [*({"name": n} for n in QUIET), {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10}}]
    for size, fits in ((2, True), (3, False)):
        answer = simulate(
            free_by(a=1, b=1, c=1, d=1), m.gang("g", size, cpu=4), config={"actions": actions}, until="20s"
        )
        assert bool(reserved(answer)) == fits


def test_r6_the_percentage_is_over_all_gangs() -> None:
    answer = simulate(
        free_by(a=1, b=1, c=1, d=1),
        m.gang("g", 2, cpu=3),
        m.gang("h", 1, cpu=3, at="1s"),
        m.gang("i", 2, at="2s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert len(reserved(answer, "g")) == 2
    assert not reserved(answer, "h"), "its nodes would be a third"


def test_r6_gangs_that_share_nodes_do_not_count_them_twice() -> None:
    answer = simulate(
        free_by(a=0, b=0, c=0, d=0),
        m.gang("g", 2, cpu=3),
        m.gang("i", 2, at="1s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert {where for _, where in reserved(answer, "i").values()} == {
        where for _, where in reserved(answer, "g").values()
    }


def test_r6_the_rest_is_not_touched() -> None:
    answer = simulate(
        free_by(a=2, b=1, c=1), m.pod("big", 4), m.pods(5, "s", at="20s"), config=reserving(10, 50), until="25s"
    )
    assert reserved(answer, "big") == {"big": (10.0, "a")}
    assert {where for _, where in answer.bound("s").values()} == {"b", "c"}


def beyond_the_share(percent: int, count: int = 3) -> Answer:
    """Four nodes, each with room for one pod of a gang that starves."""
    nodes = [m.node(f"n{index}") for index in range(4)]
    running = [full(on=f"n{index}", name=f"full-{index}") for index in range(4)]
    gang = m.gang("g", count, cpu=3, at="1s")
    return simulate(nodes, running, gang, config=reserving(percent=percent), until="20s")


def test_r6_a_gang_that_needs_more_nodes_than_may_be_reserved_says_so() -> None:
    answer = beyond_the_share(50)
    note = "no nodes are reserved for it: it needs more than 2 of 4 nodes, which may be reserved at once"
    assert note in answer.why("default/g")
    assert note in waits_because(answer.obj("PodGroup", "g"))
    assert not reserved(answer)


def test_r6_a_gang_within_the_share_or_beyond_the_cluster_does_not() -> None:
    assert len(reserved(beyond_the_share(75))) == 3
    for answer in (beyond_the_share(75), beyond_the_share(50, count=5)):
        assert "no nodes are reserved" not in answer.why("default/g")


def test_r6_a_gang_no_longer_says_so_once_nodes_are_reserved_for_it() -> None:
    nodes = [m.node(f"n{index}") for index in range(4)]
    running = [full(on=f"n{index}", name=f"full-{index}") for index in range(4)]
    more = [m.node(f"m{index}", 1, at="30s") for index in range(2)]
    answer = simulate(nodes, running, m.gang("g", 3, cpu=3, at="1s"), more, config=reserving(percent=50), until="40s")
    assert len(reserved(answer)) == 3
    assert "no nodes are reserved" not in waits_because(answer.obj("PodGroup", "g"))


def test_r6_a_gang_no_longer_says_so_once_it_could_not_start_anyway() -> None:
    """Nothing would be reserved for a gang that lacks a pod (R7); a scheduler that starts then does not say it."""
    nodes = [m.node(f"n{index}") for index in range(4)]
    running = [full(on=f"n{index}", name=f"full-{index}") for index in range(4)]
    gone = m.step("20s", "delete", "Pod", "g-0")
    answer = simulate(nodes, running, m.gang("g", 3, cpu=3, at="1s"), gone, config=reserving(percent=50), until="60s")
    assert "1 more is needed" in answer.why("default/g")
    assert "no nodes are reserved" not in answer.why("default/g")
    assert "no nodes are reserved" not in waits_because(answer.obj("PodGroup", "g"))


def test_r6_g9_is_planned_again_when_other_nodes_are_nearer() -> None:
    """The small pod comes first and takes the nearest node. While that is `big` none is left for the large one; once
    `small` is free the two have a node each."""
    answer = simulate(
        m.node("big", 4),
        m.node("small", 2),
        full(2, on="small", name="on-small", run="15s"),
        full(3, on="big", name="on-big", run=None),
        m.podgroup("g", 2),
        m.pod("g-0", 2, group="g"),
        m.pod("g-1", 4, group="g"),
        config=reserving(),
        until="30s",
    )
    assert reserved(answer) == {"g-0": (15.0, "small"), "g-1": (15.0, "big")}
