"""NonStrict gangs hold what they get (K6), as long as they may (K8), and do not wait for each other for ever (K12)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from enbloc.gangs.claim_records import ClaimKind, Record, write
from enbloc.sim.simulation import Records
from support import manifests as m
from support.answers import Answer, waits_because
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


def holding(name: str, count: int, **more: Any) -> list[m.Obj]:
    return m.koordinator_gang(name, count, mode=m.NON_STRICT, **more)


def lines(answer: Answer, what: str) -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in answer.lines(what)]


def claims(answer: Answer) -> list[str]:
    """Objects that still carry a record at the end."""
    return [
        one["metadata"]["name"]
        for one in answer.objects
        if "enbloc.dev/claim-hold" in (one["metadata"].get("annotations") or {})
    ]


# ---- K6


def test_k6_members_that_fit_are_held_and_accumulate_until_all_do() -> None:
    answer = simulate(
        m.node("n", 2),
        holding("a", 4),
        m.pod("s", 1, at="5s"),
        m.node("m", 1, at="10s"),
        m.node("o", 2, at="20s"),
        until="25s",
    )
    assert lines(answer, "held") == [(0.0, "a-0"), (0.0, "a-1"), (10.0, "a-2")]
    assert set(answer.times("a-")) == {20.0}
    assert answer.at("s") == 20.0, "held room is for no other gang"
    assert not answer.lines("released")
    assert not claims(answer)


def test_k6_a_held_pod_names_its_node_and_says_that_it_waits() -> None:
    answer = simulate(m.node("n", 1), holding("a", 2), until="5s")
    assert [line["node"] for line in answer.lines("held")] == ["n"]
    assert "1 pod is held" in waits_because(answer.obj("Pod", "a-0"))
    assert claims(answer) == ["a-0"], "a gang without an object keeps its record on its oldest pod"
    answer = simulate(m.node("n", 1), m.sigs_podgroup("a", 2, mode=m.NON_STRICT), m.labelled_pods("a", 2), until="5s")
    assert claims(answer) == ["a"]


def test_k6_holds_survive_a_restart() -> None:
    documents = (m.node("n", 2), holding("a", 3), m.pod("s", 1, at="5s"), m.node("m", 1, at="10s"))
    answer = simulate(*documents, m.restart("3s"), m.restart("7s"))
    assert lines(answer, "held") == [(0.0, "a-0"), (0.0, "a-1")]
    assert not answer.lines("released")
    assert set(answer.times("a-")) == {10.0}
    assert answer.at("s") is None


def test_k6_the_pod_that_carries_the_record_may_go() -> None:
    answer = simulate(
        m.node("n", 2),
        holding("a", 4, minimum=3),
        m.step("3s", "delete", "Pod", "a-0"),
        m.restart("5s"),
        m.pod("s", 1, at="6s"),
        m.node("m", 1, at="10s"),
    )
    assert lines(answer, "held") == [(0.0, "a-0"), (0.0, "a-1"), (3.0, "a-2")]
    assert lines(answer, "released") == [(3.0, "a-0")]
    assert set(answer.times("a-")) == {10.0}
    assert answer.at("s") is None


def test_k6_a_node_that_goes_takes_what_was_held_there_along() -> None:
    answer = simulate(m.node("n", 2, delete_at="5s"), m.node("m", 1), holding("a", 4), m.node("o", 3, at="9s"))
    assert set(answer.times("a-")) == {9.0}
    assert {name for _, name in answer.bound().values()} == {"m", "o"}


def test_k6_a_held_pod_that_is_deleted_gives_its_room_back() -> None:
    answer = simulate(
        m.node("n", 1), holding("a", 2), m.step("5s", "delete", "Pod", "a-0"), m.pod("s", 1, at="6s"), until="9s"
    )
    assert answer.at("s") == 6.0


def test_k6_of_too_many_that_are_held_the_last_in_order_are_released() -> None:
    other = m.pod("f", 2, nodeName="n", scheduler="other", at="5s")
    answer = simulate(m.node("n", 4), holding("a", 5), other, until="10s")
    assert lines(answer, "released") == [(5.0, "a-2"), (5.0, "a-3")]


def test_k6_a_group_with_a_strict_gang_is_strict() -> None:
    answer = simulate(
        m.node("n", 2), holding("a", 2, groups=GROUP), m.koordinator_gang("b", 2, groups=GROUP), until="5s"
    )
    assert not answer.lines("held")


def test_k6_what_is_held_is_released_when_a_gang_of_the_group_turns_strict() -> None:
    turns = m.patch("5s", "Pod", "b-0", metadata={"annotations": m.koordinator_annotations(mode="Strict")})
    gangs = [*holding("a", 3, groups=GROUP), *holding("b", 1, cpu=3, groups=GROUP)]
    answer = simulate(m.node("n", 2), gangs, turns, m.pod("s", 2, at="6s"), until="9s")
    assert lines(answer, "released") == [(5.0, "a-0"), (5.0, "a-1")]
    assert answer.at("s") == 6.0


def test_k6_a_group_of_gangs_holds_as_one() -> None:
    answer = simulate(
        m.node("n", 3),
        holding("a", 2, groups=GROUP),
        holding("b", 2, groups=GROUP),
        m.restart("2s"),
        m.node("m", 1, at="5s"),
    )
    assert lines(answer, "held") == [(0.0, "a-0"), (0.0, "a-1"), (0.0, "b-0")]
    assert set(answer.times()) == {5.0}


def test_k6_a_group_that_grows_holds_what_the_newcomer_can_get() -> None:
    """The first gang had nothing to hold; it is queued for both."""
    joins = [
        m.patch("5s", "Pod", f"a-{i}", metadata={"annotations": m.koordinator_annotations(groups=GROUP)})
        for i in range(3)
    ]
    answer = simulate(m.node("n", 1), holding("a", 3, cpu=2), joins, holding("b", 2, groups=GROUP, at="5s"), until="9s")
    assert lines(answer, "held") == [(5.0, "b-0")]


def test_k6_held_room_does_not_block_its_own_gang() -> None:
    """The small pod was held on the large node while there was no other room: all fit only if it moves."""
    said = m.koordinator_annotations("a", 2, mode=m.NON_STRICT)
    members = [m.pod("a-0", 3, at="1s", annotations=said), m.pod("a-1", 2, at="1s", annotations=said)]
    answer = simulate(m.node("n", 3), m.pod("x", 1, run_time="5s"), members, m.node("m", 2, at="3s"), until="9s")
    assert lines(answer, "held") == [(1.0, "a-1")]
    assert set(answer.times("a-")) == {5.0}


# ---- K8


def test_k8_the_clock_starts_with_the_first_held_task_and_survives_a_restart() -> None:
    documents = (
        m.pod("x", 2, run_time="5s"),
        m.node("n", 2),
        holding("a", 3, wait="10s", at="1s"),
        m.pod("s", 2, at="7s"),
    )
    for restarts in ((), (m.restart("9s"),)):
        answer = simulate(*documents, *restarts)
        assert lines(answer, "released") == [(15.0, "a-0"), (15.0, "a-1")]
        assert {at for at, _ in lines(answer, "timeout")} == {15.0}
        assert answer.at("s") == 15.0
        assert not claims(answer)


def test_k8_no_cap_of_fifteen_minutes() -> None:
    answer = simulate(m.node("n", 1), holding("a", 2, wait="2h"), m.node("m", 1, at="7199s"))
    assert set(answer.times()) == {7199.0}


# ---- K12

PRIORITIES = [m.priority_class(f"p{i}", i) for i in range(1, 4)]


def test_k12_the_seeds_example_ends_with_all_three_having_run() -> None:
    """Three groups of 5 in 10 units got 3, 3 and 4, as a scheduler left them that restarts now."""
    gangs = []
    for name, got in (("a", 3), ("b", 3), ("c", 4)):
        record = Record(ClaimKind.HOLD, 2**62, {f"{name}-{index}": {"n": 1} for index in range(got)})
        gangs += holding(name, 5, run_time="20s")
        gangs[-5]["metadata"]["annotations"][ClaimKind.HOLD.annotation] = write(record)
    answer = simulate(m.node("n", 10), *gangs, records=Records.TRUSTED)
    assert [set(answer.times(f"{name}-")) for name in "abc"] == [{0.0}, {0.0}, {20.0}]
    assert Counter(name[0] for _, name in lines(answer, "held")) == {"a": 3, "b": 3, "c": 4}
    assert Counter(name[0] for _, name in lines(answer, "released")) == {"c": 4}, "the lowest order lets go"
    assert any("released" in line["message"] for line in answer.lines("warning", "c-0"))
    assert len(answer.lines("succeeded")) == 15


def test_k6_a_forged_record_holds_no_longer_than_the_waiting_time() -> None:
    gang = holding("a", 3, wait="20s")
    record = Record(ClaimKind.HOLD, 2**62, {"a-0": {"n": 1}})
    gang[0]["metadata"]["annotations"][ClaimKind.HOLD.annotation] = write(record)
    answer = simulate(m.node("n", 1), gang, m.pod("s", 1, at="5s"), records=Records.TRUSTED)
    assert answer.at("s") == 20.0


def test_k12_the_victims_clock_starts_anew() -> None:
    first = holding("a", 5, wait="30s", run_time="100s", priority="p2")
    second = holding("b", 5, wait="30s", at="1s", run_time="5s", priority="p1")
    answer = simulate(PRIORITIES, m.node("n", 3), first, second, m.node("m", 3, at="10s"))
    # at 10s a takes what it lacks and b what is left; b's time is up 30s later
    assert set(answer.times("a-")) == {10.0}
    assert {at for at, _ in lines(answer, "timeout")} == {40.0}


def test_k12_a_gang_that_waits_for_another_releases_nothing() -> None:
    """b waits for a node that is not there: a waits for b, b for no gang that holds. No release; b's time runs out."""
    apart = m.pod(
        "b-1",
        annotations=m.koordinator_annotations("b", 2, mode=m.NON_STRICT, wait="30s"),
        nodeSelector={"no": "where"},
    )
    answer = simulate(
        m.node("n", 2),
        m.pod("b-0", 1, annotations=m.koordinator_annotations("b", 2, mode=m.NON_STRICT, wait="30s")),
        apart,
        holding("a", 2, at="1s"),
    )
    assert lines(answer, "released") == [(30.0, "b-0")]
    assert set(answer.times("a-")) == {30.0}


def test_k12_a_gang_whose_room_is_of_no_use_releases_nothing() -> None:
    """c is the lowest, but what it holds is elsewhere: b lets go."""
    far = [
        m.pod(f"c-{i}", annotations=m.koordinator_annotations("c", 2, mode=m.NON_STRICT), nodeSelector={"far": "yes"})
        for i in range(2)
    ]
    answer = simulate(
        m.node("n", 4, at="1s"),
        m.node("f", 1, labels={"far": "yes"}),
        holding("a", 3, cpu=1),
        holding("b", 3, cpu=1),
        far,
        until="20s",
    )
    assert {name[0] for _, name in lines(answer, "released")} <= {"b"}
    assert set(answer.times("a-")) == {1.0}


@pytest.mark.parametrize("seed", range(12))
def test_k12_any_mix_of_groups_that_fit_alone_all_run_in_the_end(seed: int) -> None:
    """Whatever the arrival order, with a restart in between. Each release lets a gang start: there are not many."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    sizes = [dice.randint(1, 4) for _ in range(3)]
    documents: list[Any] = [m.node(f"n{i}", cpu, at=f"{dice.randint(0, 5)}s") for i, cpu in enumerate(sizes)]
    documents.append(PRIORITIES)
    gangs = dice.randint(2, 6)
    for index in range(gangs):
        name, priority = f"g{index}x", dice.choice(["p1", "p2", "p3"])
        count = dice.randint(1, sum(sizes))
        for member in range(count):
            said = m.koordinator_annotations(name, count, mode=m.NON_STRICT, wait="9000s")
            documents.append(
                m.pod(
                    f"{name}-{member}",
                    annotations=said,
                    at=f"{dice.randint(0, 8)}s",
                    run_time=f"{dice.randint(1, 9)}s",
                    priority=priority,
                )
            )
    documents.append(m.restart(f"{dice.randint(0, 12)}s"))
    answer = simulate(*documents)
    assert not answer.data["pending"]
    assert not claims(answer)
    assert len(answer.lines("succeeded")) == len(answer.all("Pod"))
    released = {(line["t"], line["name"].split("-")[0]) for line in answer.lines("released")}
    assert len(released) <= gangs * gangs


# ---- groups that change


def test_k7_a_group_whose_min_resources_exceed_the_cluster_holds_nothing() -> None:
    big = m.node("m", 4, at="20s")
    members = [m.sigs_podgroup("a", 1, mode=m.NON_STRICT, minResources={"cpu": "5"}), *m.labelled_pods("a", 1)]
    answer = simulate(m.node("n", 4), members, m.pod("s", 4, at="5s"), big)
    assert not answer.lines("held")
    assert answer.at("s") == 5.0
    assert answer.at("a-0") == 20.0
    answer = simulate(m.node("n", 4), members)
    assert "the cluster has 4" in answer.why("default/a")


def test_k7_a_group_that_lost_a_gang_waits_for_it() -> None:
    first, other = m.koordinator_gang("a", 1, groups=GROUP), m.koordinator_gang("b", 1, at="1s", delete_at="5s")
    answer = simulate(first, other, m.node("n", 4, at="10s"), m.koordinator_gang("b", 1, at="20s"))
    assert answer.at("a-0") == 20.0, "not before it is there again"


def test_k8_the_clock_of_a_group_starts_anew_with_the_gangs_that_are_left() -> None:
    """`b` carries the clock, and goes."""
    group = [*GROUP, "default/c"]
    b = m.koordinator_gang("b", 1, groups=group, wait="20s", delete_at="5s")
    answer = simulate(m.node("n", 1), b, m.koordinator_gang("a", 1, groups=group, wait="20s", at="2s"))
    assert lines(answer, "timeout") == [(25.0, "a-0")]


def test_k8_what_is_written_of_a_gang_goes_when_it_is_in_no_group_any_more() -> None:
    for gone, left in ((None, ["a"]), ("6s", [])):
        group = m.sigs_podgroup("a", 1, groups=GROUP, scheduleTimeoutSeconds=15, delete_at=gone)
        assert claims(simulate(group, m.labelled_pods("a", 1), until="7s")) == left


@pytest.mark.parametrize("restarts", [[], ["2s"], ["12s"]])
def test_k8_the_clock_of_a_non_strict_group_starts_with_its_first_held_pod(restarts: list[str]) -> None:
    """Not while it waits for the other gang, nor while nothing fits."""
    answer = simulate(
        holding("a", 1, groups=GROUP, wait="15s"),
        holding("b", 1, cpu=2, groups=GROUP, wait="15s", at="3s"),
        m.node("n", 1, at="10s"),
        *(m.restart(at) for at in restarts),
    )
    assert lines(answer, "held") == [(10.0, "a-0")]
    assert lines(answer, "timeout") == [(25.0, "a-0"), (25.0, "b-0")]


def test_k8_a_non_strict_group_that_never_holds_anything_is_never_marked() -> None:
    answer = simulate(holding("a", 1, groups=GROUP, wait="15s"), until="100s")
    assert not answer.lines("timeout")
    answer = simulate(holding("a", 2, wait="15s"), m.node("n", 2, at="60s"))
    assert set(answer.times("a-")) == {60.0}


def test_k12_a_group_that_lost_a_member_waits_for_no_other_gang() -> None:
    """`a` holds and is not complete any more; `b` holds from then on."""
    b = [
        m.pod(f"b-{i}", cpu, annotations=m.koordinator_annotations("b", 2, mode=m.NON_STRICT), at="1s")
        for i, cpu in enumerate(("500m", "2"))
    ]
    answer = simulate(m.node("n", 2), holding("a", 3), b, m.step("2s", "delete", "Pod", "a-1"), until="5s")
    assert lines(answer, "held")[-1] == (2.0, "b-0")
    assert not answer.bound()


def test_k8_the_clock_stops_when_the_gang_that_waited_for_others_waits_no_more() -> None:
    """Its minimum was raised, and lowered again to what is bound. A restart makes no difference (I5)."""
    raised = {"metadata": {"annotations": m.koordinator_annotations(minimum=2, groups=GROUP, wait="10s")}}
    lowered = {"metadata": {"annotations": m.koordinator_annotations(minimum=1)}}
    docs = [
        m.node("n"),
        *m.koordinator_gang("a", 1),
        *m.koordinator_gang("a", 1, 2, first=1, at="5s"),
        m.step("5s", "patch", "Pod", "a-0", patch=raised),
        m.step("7s", "patch", "Pod", "a-0", patch=lowered),
        *m.koordinator_gang("b", 1, 3, at="8s", wait="10s"),
    ]
    for more in ([], [m.restart("9s")]):
        answer = simulate(*docs, *more, until="30s")
        assert not answer.lines("timeout")
        assert claims(answer) == []


def test_k6_g9_room_that_a_held_pod_leaves_wakes_gangs_that_were_tried_before() -> None:
    """a-1 is held on n, a-0 and `small` fit on n alone, beside each other. When m comes, `small`, whose queue comes
    first, is tried and does not fit; then a-1 moves to m."""
    said = m.koordinator_annotations("a", 2, mode=m.NON_STRICT)
    only_n = {"kubernetes.io/hostname": "n"}
    answer = simulate(
        m.queue("first", priority=10),
        m.priority_class("high", 10),
        m.node("n", 5),
        m.pod("a-0", 2, at="1s", annotations=said, nodeSelector=only_n),
        m.pod("a-1", 4, at="1s", annotations=said, priority="high"),
        m.pod("small", 2, at="2s", queue="first", nodeSelector=only_n),
        m.node("m", 4, at="3s"),
        config={"actions": "allocate, backfill"},
    )
    assert lines(answer, "held") == [(1.0, "a-1")]
    assert answer.nodes("a-") == {"a-0": "n", "a-1": "m"}
    assert set(answer.times("a-")) == {3.0}
    assert answer.at("small") == 3.0


def test_k6_r5_no_pod_is_held_on_a_node_that_is_reserved_for_another_gang_of_its_group() -> None:
    """`a-1` waits for all of `n`, which is reserved for it: `b-0` would fit into the half that is free first."""
    a = holding("a", 2, cpu=3, groups=GROUP)
    a[1]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n"}
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10, "reservedNodePercent": 100}}
    scene = [
        [m.node("m"), m.node("n"), m.node("o")],
        m.pod("half", 2, nodeName="n", run_time="30s"),
        m.pod("rest", 2, nodeName="n", run_time="60s"),
        m.pod("full", 4, nodeName="o", run_time="90s"),
        a,
        holding("b", 1, cpu=2, groups=GROUP),
    ]
    config = {"actions": [{"name": "enqueue"}, {"name": "allocate"}, reserve]}
    halfway = simulate(*scene, config=config, until="50s")
    assert {line["name"]: line["node"] for line in halfway.lines("reserved")} == {"a-1": "n", "b-0": "o"}
    assert claims(halfway) == ["a-0"], "b-0 is not held on n"
    answer = simulate(*scene, config=config)
    assert [answer.bound()[name] for name in ("a-0", "a-1", "b-0")] == [(90.0, "m"), (90.0, "n"), (90.0, "o")]
