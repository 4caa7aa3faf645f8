"""R4, R9: on which nodes a task can be reserved; the example that must hold."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.reservations import first_reserved, full, reserving
from support.simulation import NO_EVICTIONS, simulate

# ---- R4


@pytest.mark.parametrize(
    "unfit",
    [
        m.node("a", 3),
        m.node("a", 8, taints=[{"key": "k", "effect": "NoSchedule"}]),
        m.node("a", 8, unschedulable=True),
        m.node("a", 8, labels={"disk": "hdd"}),
        m.node("a", 8, memory="1Gi"),
        m.node("a", 8, pods=0),
    ],
    ids=["too-small", "tainted", "cordoned", "not-selected", "no-memory", "no-pods"],
)
def test_r4_only_nodes_that_pass_every_predicate_but_free_room(unfit: m.Obj) -> None:
    good = m.node("n", labels={"disk": "ssd"})
    if unfit["metadata"]["labels"].get("disk") is None:
        unfit["metadata"]["labels"]["disk"] = "ssd"
    big = m.pod("big", 4, memory="2Gi", nodeSelector={"disk": "ssd"})
    answer = simulate(unfit, good, full(1), big, config=reserving(10))
    assert first_reserved(answer) == {"big": (10.0, "n")}
    assert answer.at("big") == 100.0


def test_r4_no_node_at_all_is_large_enough() -> None:
    answer = simulate(m.node("n", 3), m.node("m", 3), m.pod("big", 4), m.pod("s", 3, at="20s"), config=reserving(10))
    assert not first_reserved(answer)
    assert answer.at("s") == 20.0


def test_r4_anti_affinity_among_its_own_members_spreads_them() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(),
        full(on="m", name="full2"),
        m.gang("g", 2, labels={"app": "g"}, affinity=apart),
        config=reserving(10),
    )
    assert {where for _, where in first_reserved(answer).values()} == {"n", "m"}
    assert set(answer.times("g-")) == {100.0}


def test_r4_what_has_room_and_what_has_not_both_are_reserved() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(),
        m.gang("g", 2, cpu=4),
        m.pod("s", 1, at="20s"),
        config=reserving(10),
        until="50s",
    )
    assert sorted(first_reserved(answer).values()) == [(10.0, "m"), (10.0, "n")]
    assert not answer.bound("g-")
    assert answer.at("s") is None, "the free node is kept as well"


def test_r4_the_reserved_sum_stays_within_allocatable() -> None:
    """Of 4 cpu, 3 are reserved: a starving gang of 2 finds no place beside it, one of 1 does."""
    documents = [
        m.node("n"),
        full(),
        m.pod("a", 3, run_time="50s"),
        m.pod("b", 2, at="1s", run_time="50s"),
        m.pod("c", 1, at="2s", run_time="50s"),
    ]
    answer = simulate(documents, config=reserving(10))
    assert first_reserved(answer, "a") == {"a": (10.0, "n")}
    assert first_reserved(answer, "c") == {"c": (12.0, "n")}
    assert first_reserved(answer, "b").get("b", (100.0,))[0] >= 100.0
    assert (answer.at("a"), answer.at("c")) == (100.0, 100.0)
    assert answer.at("b") == 150.0


def test_r4_the_sum_counts_every_dimension() -> None:
    for more, kind in (({"memory": "9Gi"}, "memory"), ({"extra": {"nvidia.com/gpu": 1}}, "gpu")):
        machine = m.node("n", 8, extra={"nvidia.com/gpu": 1})
        answer = simulate(
            machine,
            full(8),
            m.pod("a", 1, run_time="5s", **more),
            m.pod("b", 1, at="1s", **more),
            config=reserving(10),
            until="50s",
        )
        assert set(first_reserved(answer)) == {"a"}, kind
    answer = simulate(
        m.node("n", 8, pods=1), full(8), m.pod("a", 1), m.pod("b", 1, at="1s"), config=reserving(10), until="50s"
    )
    assert set(first_reserved(answer)) == {"a"}


def test_r4_two_starving_gangs_share_a_node() -> None:
    answer = simulate(m.node("n"), full(), m.gang("a", 2), m.gang("b", 2, at="1s"), config=reserving(10))
    assert {where for _, where in first_reserved(answer).values()} == {"n"}
    assert len(first_reserved(answer)) == 4
    assert set(answer.times("a-")) == set(answer.times("b-")) == {100.0}


def test_r4_a_gang_that_shares_does_not_take_the_others_room() -> None:
    """Room comes in two steps: the first 2 cpu suffice for b alone, and are b's by b's own reservation."""
    answer = simulate(
        m.node("n"),
        full(2),
        full(2, run="200s", name="long"),
        m.pod("a", 2, run_time="300s"),
        m.pod("b", 2, at="1s"),
        config=reserving(10),
    )
    assert (answer.at("a"), answer.at("b")) == (100.0, 200.0)


@pytest.mark.parametrize("restarts", [(), ("22s", "25s")], ids=["", "restarted"])
def test_r4_what_started_beside_a_reservation_counts_in_the_sum(restarts: tuple[str, ...]) -> None:
    """1 cpu beside `big` is free: the first small gang that starves is reserved for there and starts. Were it forgotten
    then, the next one would follow it, and `big` would start last."""
    answer = simulate(
        m.node("n"),
        full(2, run="60s"),
        m.pod("big", 3, at="1s", run_time="10s"),
        [m.pod(f"s-{i}", 1, at=f"{i}s", run_time="90s") for i in range(12, 52, 5)],
        [m.restart(at) for at in restarts],
        config=reserving(10),
    )
    assert answer.at("s-12") == 22.0, "beside the reservation there is room for it"
    assert answer.at("big") == 60.0
    assert answer.times("s-")[1:4] == [70.0] * 3


def test_r4_what_started_beside_a_reservation_counts_until_it_ends() -> None:
    answer = simulate(
        m.node("n"),
        full(2, run="60s"),
        m.pod("big", 3, at="1s", run_time="10s"),
        m.pod("a", 1, at="12s", run_time="20s"),
        m.pod("b", 1, at="13s", run_time="90s"),
        config=reserving(10),
    )
    assert (answer.at("a"), answer.at("b"), answer.at("big")) == (22.0, 42.0, 60.0)


def test_r4_g9_reserve_is_tried_again_when_a_pod_is_known_to_have_run_before() -> None:
    """Until its kubelet says when it started, a pod counts as one that started beside the reservation for `x`."""
    slow = {"sim.enbloc.dev/start-delay": "5s"}
    answer = simulate(
        m.node("n", 8), full(6), m.pod("b", 2, nodeName="n", at="8s", annotations=slow),
        m.pod("x", 4), m.pod("y", 4, at="1s"), config=reserving(), until="30s",
    )  # fmt: skip
    assert first_reserved(answer) == {"x": (10.0, "n"), "y": (13.0, "n")}


def test_r4_what_ran_before_the_reservation_does_not_count() -> None:
    """Of 4 cpu, 3 are reserved for `big`: what ran there before has to end for it, and 1 is left for another gang."""
    answer = simulate(
        m.node("n"),
        m.pod("early", 2, run_time="60s"),
        full(2, run="80s"),
        m.pod("big", 3, at="5s", run_time="10s"),
        m.pod("s", 1, at="6s", run_time="5s"),
        config=reserving(10),
    )
    assert first_reserved(answer, "s") == {"s": (16.0, "n")}
    assert (answer.at("s"), answer.at("big")) == (60.0, 80.0)


# ---- R9


def picture(config: m.Obj, **small: Any) -> Answer:
    """The seed's picture: 3 CPU and 3 GB; pods 1 to 3 run, pod-4 needs all, pods 5 to 7 come after it."""
    return simulate(
        m.node("n", 3, memory="3Gi"),
        [m.pod(f"pod-{i}", 1, memory="1Gi", run_time=f"{60 + 20 * i}s") for i in (1, 2, 3)],
        m.pod("pod-4", 3, memory="3Gi", at="1s", run_time="30s"),
        [m.pod(f"pod-{i}", 1, memory="1Gi", at=f"{20 + i}s", run_time="60s", **small) for i in (5, 6, 7)],
        config=config,
    )


def test_r9_without_reserve_the_large_one_runs_last() -> None:
    answer = picture(NO_EVICTIONS)
    assert answer.order()[-1] == "pod-4"
    assert answer.at("pod-5") == 80.0


@pytest.mark.parametrize("percent", [50, 100])
def test_r9_with_reserve_those_behind_it_stay_pending_until_it_has_run(percent: int) -> None:
    answer = picture(reserving(10, percent))
    assert first_reserved(answer, "pod-4") == {"pod-4": (11.0, "n")}
    assert answer.at("pod-4") == 120.0
    assert all(answer.at(f"pod-{i}") == 150.0 for i in (5, 6, 7))


def test_r9_gangs_that_came_before_the_reservation_wait_too() -> None:
    """They were pending when the node was reserved: it accepts no other pod."""
    answer = simulate(
        m.node("n", 3),
        m.pods(3, "run-", run_time="60s"),
        m.pod("big", 3, at="1s", run_time="10s"),
        m.pods(3, "s-", at="5s", run_time="60s"),
        config=reserving(10),
    )
    assert answer.at("big") == 60.0
    assert answer.times("s-") == [70.0] * 3


def test_r9_by_the_default_actions_too() -> None:
    """With preempt and reclaim on, among equals: no pod is evicted."""
    arguments = {"starvingJobTimeThreshold": 10}
    actions: list[m.Obj] = [{"name": n} for n in ("enqueue", "allocate", "backfill", "preempt", "reclaim")]
    answer = picture({"actions": [*actions, {"name": "reserve", "arguments": arguments}]})
    assert answer.at("pod-4") == 120.0
    assert not answer.lines("evicted")


def test_r9_in_two_queues() -> None:
    """The node is kept from those of other queues too."""
    answer = simulate(
        m.queue("a"),
        m.queue("b"),
        m.node("n", 3),
        m.pods(3, "run-", run_time="60s"),
        m.gang("big", 1, cpu=3, queue="a", run_time="10s", at="1s"),
        m.gang("s", 3, queue="b", at="20s"),
        config=reserving(10),
    )
    assert answer.at("big-0") == 60.0
    assert set(answer.times("s-")) == {70.0}


def test_r9_over_a_restart() -> None:
    documents = (
        m.node("n", 3),
        m.pods(3, "run-", run_time="60s"),
        m.pod("big", 3, at="1s", run_time="10s"),
        m.pods(3, "s-", at="20s"),
    )
    answer = simulate(*documents, m.restart("15s"), m.restart("30s"), config=reserving(10))
    assert answer.at("big") == 60.0
    assert len(answer.lines("reserved", "big")) == 1
    assert answer.times("s-") == [70.0] * 3


# ---- G9: a gang that found no nodes is tried again when that may have changed


def test_r4_a_parent_that_may_use_more_lets_its_childs_gang_reserve() -> None:
    more = m.step("20s", "patch", "Queue", "p", patch={"spec": {"capability": {"cpu": "9"}}})
    answer = simulate(
        m.node("n"),
        m.queue("p", capability={"cpu": "2"}),
        m.queue("c", parent="p"),
        full(2, "60s"),
        m.gang("big", 1, cpu=4, queue="c"),
        more,
        m.pod("s", 2, at="30s", run_time="50s"),
        config=reserving(10),
    )
    assert first_reserved(answer, "big") == {"big-0": (20.0, "n")}
    assert answer.at("big-0") == 60.0


def test_r4_a_node_that_can_take_no_more_reservations_does_not_hide_others() -> None:
    """`n` is nearest for both pods, and has not room for both."""
    answer = simulate(
        m.node("n", labels={"at": "n"}),
        m.node("m"),
        full(1, "60s", "m"),
        m.podgroup("big", 2),
        m.pod("big-0", 1, group="big", nodeSelector={"at": "n"}),
        m.pod("big-1", 4, group="big"),
        config=reserving(10),
        until="70s",
    )
    assert first_reserved(answer) == {"big-0": (10.0, "n"), "big-1": (10.0, "m")}


def test_r4_assigned_pods_count_for_every_role() -> None:
    """The second pod of `big` keeps away from those who run at first."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    webs = [m.pod(f"web-{on}", 1, nodeName=on, run_time="30s", labels={"app": "web"}) for on in "nm"]
    answer = simulate(
        m.node("n", labels={"at": "n"}),
        m.node("m"),
        webs,
        full(1, "60s", "m"),
        m.podgroup("big", 2),
        m.pod("big-0", 1, group="big", nodeSelector={"at": "n"}),
        m.pod("big-1", 4, group="big", affinity=away),
        config=reserving(10),
        until="70s",
    )
    assert first_reserved(answer) == {"big-0": (30.0, "n"), "big-1": (30.0, "m")}


# ---- R4: what the gang has itself will not come free


def test_r4_no_node_on_which_an_earlier_wave_of_the_job_stays() -> None:
    """The nearest node is that of its own master, which runs as long as the job does."""
    made = m.job("j", m.role("m", 1, start_delay="5s"), m.role("w", 1, cpu=4, depends_on={"name": ["m"]}))
    small = [m.pod(f"s{at}", at=f"{at}s", run_time="20s") for at in range(38, 80, 5)]
    answer = simulate(m.node("n0"), m.node("n1"), made, full(3, "40s", on="n0"), small, config=reserving(30, 50))
    assert answer.nodes("j-m") == {"j-m-0": "n1"}
    assert first_reserved(answer, "j-") == {"j-w-0": (30.0, "n0")}
    assert answer.at("j-w-0") == 40.0


def test_r4_no_node_on_which_a_gang_of_its_group_stays() -> None:
    """The other gang of its group runs on the nearest node, and goes on running."""
    names, on_n0 = ["default/g", "default/h"], {"kubernetes.io/hostname": "n0"}
    gangs = [
        m.koordinator_gang("h", 1, cpu=1, groups=names, nodeSelector=on_n0),
        m.koordinator_gang("g", 1, cpu=4, groups=names, delete_at="20s"),
        m.koordinator_gang("g", 1, cpu=4, groups=names, first=1, at="20s"),
    ]
    answer = simulate(m.node("n0"), m.node("n1"), *gangs, full(2, on="n1", at="20s"), config=reserving())
    assert first_reserved(answer, "g-") == {"g-1": (30.0, "n1")}


@pytest.mark.parametrize(("minimum", "node"), [(2, "n1"), (1, "n0")])
def test_r4_what_surplus_has_may_come_free(minimum: int, node: str) -> None:
    """Two pods of role w run. If both are needed their node is not one to wait for; if one is, the other may go."""
    on_n0, on_n1 = {"kubernetes.io/hostname": "n0"}, {"kubernetes.io/hostname": "n1"}
    gang = [
        m.podgroup("j", minimum + 1, minTaskMember={"w": minimum, "x": 1}),
        *m.pods(2, "j-", 2, group="j", role="w", nodeSelector=on_n0),
        m.pod("j-x", 2, group="j", role="x", nodeSelector=on_n1, delete_at="20s"),
        m.pod("j-y", 2, group="j", role="x", at="20s"),
    ]
    answer = simulate(m.node("n0"), m.node("n1"), gang, full(4, on="n1", at="20s"), config=reserving())
    assert first_reserved(answer, "j-") == {"j-y": (30.0, node)}
