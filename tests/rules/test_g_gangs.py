"""G1–G5, G7: what holds for any gang, through the whole simulation."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.simulation import NO_ENQUEUE, simulate

# ---- G1: whose pods


@pytest.mark.parametrize("name", ["enbloc", "kar-scheduler-of-nobody", "volcano", "koord-scheduler"])
def test_g1_only_pods_of_our_names_are_scheduled(name: str) -> None:
    answer = simulate(m.node("n"), m.pod("p", scheduler=name))
    assert bool(answer.bound("p")) == (name != "kar-scheduler-of-nobody")


def test_g1_the_names_are_a_list_in_the_config() -> None:
    waiting = [
        m.pod("mine", scheduler="my-scheduler"),
        m.pod("peer", scheduler="volcano"),
        m.pod("own", scheduler="enbloc"),
    ]
    answer = simulate(m.node("n"), waiting, config={"schedulerNames": ["my-scheduler"]})
    assert set(answer.bound()) == {"mine"}


def test_g1_a_pending_pod_of_another_scheduler_is_left_alone() -> None:
    answer = simulate(
        m.node("n", 1),
        m.pod("foreign", 4, scheduler="another"),
        m.gang("a", 1, minimum=2),
        m.pod("a-foreign", group="a", scheduler="another"),
    )
    assert not answer.bound()
    assert [one["gang"] for one in answer.data["pending"]] == ["default/a"]
    assert answer.pending("default/a")["missing"] == {"": 1}
    assert not waits_because(answer.obj("Pod", "foreign"))


def test_g1_assigned_pods_of_any_scheduler_count_as_used() -> None:
    foreign = m.pod("foreign", 3, scheduler="another", nodeName="n")
    preset = m.pod("preset", 3, nodeName="m")
    answer = simulate(m.node("n"), m.node("m"), foreign, preset, m.pods(3, "p"))
    assert len(answer.bound("p", by=0)) >= 2
    assert sorted(where for name, (_, where) in answer.bound().items() if name in ("p0", "p1", "p2")) == ["m", "n"]


@pytest.mark.parametrize("code", ["0", "1"])
def test_g1_what_has_ended_gives_its_room_back(code: str) -> None:
    foreign = m.pod("foreign", 4, scheduler="another", nodeName="n", run_time="30s", exit_code=code)
    answer = simulate(m.node("n"), foreign, m.gang("a", 4))
    assert answer.times("a") == [30.0] * 4


def test_g1_a_foreign_pod_that_is_assigned_later_counts_from_then_on() -> None:
    answer = simulate(
        m.node("n"),
        m.pod("foreign", 3, scheduler="another"),
        m.pod("assigned", 3, scheduler="another", nodeName="n", at="5s"),
        m.pods(2, "p", at="5s"),
    )
    assert len(answer.bound("p")) == 1


# ---- G2: all or nothing


def test_g2_waits_then_all_at_once() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("w", 5)), m.node("late", 1, at="30s"))
    assert answer.times("j-") == [30.0] * 5


def test_g2_every_role_has_its_minimum_or_no_pod_starts() -> None:
    big_and_small = m.job("j", m.role("big", 2, cpu=3), m.role("small", 4, 2))
    answer = simulate(m.node("n", 4), big_and_small, m.node("late", 3, at="20s"), config=NO_ENQUEUE)
    # 3 + 1 on the first node, 3 on the other: big-0, big-1 and one small only. A second small needs more room.
    assert not answer.bound()
    assert sum(answer.pending("default/j")["missing"].values()) == 1
    answer = simulate(m.node("n", 4), big_and_small, m.node("late", 4, at="20s"))
    assert sorted(answer.bound()) == ["j-big-0", "j-big-1", "j-small-0", "j-small-1"]
    assert set(answer.times()) == {20.0}


def test_g2_a_gang_is_packed_over_nodes() -> None:
    answer = simulate([m.node(f"n{i}", 3) for i in range(3)], m.gang("a", 4, cpu=2))
    assert not answer.bound()  # 9 cpu are free for 8, and a fourth pod of 2 fits on none of the three nodes
    answer = simulate([m.node(f"n{i}", 4) for i in range(2)], m.gang("a", 4, cpu=2))
    assert sorted(where for _, where in answer.bound().values()) == ["n0", "n0", "n1", "n1"]


def test_g2_two_gangs_that_fit_singly_do_not_take_halves() -> None:
    answer = simulate(m.node("n", 6), m.gang("a", 5, run_time="10s"), m.gang("b", 5, run_time="10s"))
    assert answer.times("a") == [0.0] * 5
    assert answer.times("b") == [10.0] * 5


def test_g2_pods_that_come_one_by_one_wait_for_the_last() -> None:
    answer = simulate(
        m.node("n", 8), m.podgroup("a", 3), [m.pod(f"a{i}", group="a", at=f"{10 * i}s") for i in range(4)]
    )
    assert answer.times("a") == [20.0, 20.0, 20.0, 30.0]


def test_g2_a_terminating_pod_keeps_its_room_and_counts_for_nothing() -> None:
    answer = simulate(
        m.node("n", 3),
        m.gang("a", 2),
        m.pod("gone", group="a", delete_at="0s", stop_delay="30s", nodeName="n"),
        m.pod("late", 1, group="a", at="5s"),
        m.gang("b", 2, at="6s"),
    )
    # `gone` holds one of three cpus until 30 s; the gang of two starts with its own two pods.
    assert answer.times("a-") == [0.0, 0.0]
    assert answer.at("late") == 30.0
    assert not answer.bound("b-")


def test_g2_a_terminating_pod_is_no_member() -> None:
    leaving = m.pod("gone", group="a", delete_at="0s", stop_delay="30s", nodeName="n")
    answer = simulate(m.node("n", 4), m.gang("a", 1, minimum=2), leaving)
    assert not answer.bound("a-")
    answer = simulate(m.node("n", 4), m.gang("a", 1, minimum=2), leaving, m.pod("a-1", group="a", at="5s"))
    assert answer.times("a-") == [5.0, 5.0]


def test_g2_members_bound_by_others_count_towards_the_minimum() -> None:
    answer = simulate(m.node("n", 3), m.gang("a", 2, minimum=3), m.pod("preset", group="a", nodeName="n"))
    assert answer.times("a-") == [0.0, 0.0]


def test_g2_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    answer = simulate(m.node("n", 8), m.gang("a", 2, minimum=3), m.gang("a", 2, minimum=3, namespace="other"))
    assert not answer.bound()
    assert {one["gang"] for one in answer.data["pending"]} == {"default/a", "other/a"}


# ---- G3: surplus is best effort


def test_g3_surplus_takes_what_is_left() -> None:
    answer = simulate(m.node("n", 4), m.job("j", m.role("w", 6, 2)))
    assert answer.order() == ["j-w-0", "j-w-1", "j-w-2", "j-w-3"]
    assert not answer.waits("default/j")
    assert "cpu" in waits_because(answer.obj("Pod", "j-w-5"))


def test_g3_surplus_comes_after_the_minima_of_all_equals_in_the_queue() -> None:
    answer = simulate(m.node("n", 6), m.gang("a", 4, minimum=2), m.gang("b", 4, minimum=2))
    assert set(answer.order()[:4]) == {"a-0", "a-1", "b-0", "b-1"}
    assert set(answer.order()[4:]) == {"a-2", "a-3"}


def test_g3_surplus_comes_before_the_minima_of_a_lower_priority() -> None:
    answer = simulate(
        m.HIGH_LOW, m.node("n", 4), m.gang("b", 2, priority="low"), m.gang("a", 4, minimum=2, priority="high")
    )
    assert sorted(answer.bound()) == ["a-0", "a-1", "a-2", "a-3"]


def test_g3_surplus_never_blocks_and_never_makes_a_gang_fail() -> None:
    huge = m.job("j", m.role("w", 2, 2), m.role("extra", 1, 0, cpu=50))
    answer = simulate(m.node("n", 4), huge, m.gang("b", 2))
    assert sorted(answer.bound()) == ["b-0", "b-1", "j-w-0", "j-w-1"]
    assert not answer.data["pending"]


def test_g3_surplus_does_not_block_a_fifo_queue() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        m.gang("a", 6, minimum=3, queue="q", cpu=1),
        m.gang("b", 1, queue="q", at="5s"),
        m.step("10s", "delete", "Pod", "a-0"),
        m.step("10s", "delete", "Pod", "a-3"),
    )
    assert answer.at("b-0") == 10.0


def test_g3_a_task_that_does_not_fit_is_skipped_and_others_make_up_the_total() -> None:
    members = [
        m.pod("a-0", 1, group="a", role="x"),
        m.pod("a-1", 9, group="a", role="y"),
        m.pod("a-2", 1, group="a", role="z"),
        m.pod("a-3", 1, group="a", role="z"),
    ]
    answer = simulate(m.node("n", 3), m.podgroup("a", 3, roles={"x": 1}), members)
    assert sorted(answer.bound()) == ["a-0", "a-2", "a-3"]
    assert not answer.data["pending"]
    answer = simulate(m.node("n", 2), m.podgroup("a", 3, roles={"x": 1}), members)
    assert not answer.bound()


def test_g3_surplus_is_placed_when_room_comes_later() -> None:
    answer = simulate(m.node("n", 2), m.job("j", m.role("w", 4, 2)), m.node("late", 1, at="40s"))
    assert answer.times("j-") == [0.0, 0.0, 40.0]
    assert answer.at("j-w-2") == 40.0


# ---- G4: valid first


def test_g3_surplus_waits_for_the_pods_of_a_gang_that_was_enqueued() -> None:
    """The room that frees at 20 s is the rigid job's, though its pods are only created once it is enqueued."""
    elastic = m.job("elastic", m.role("w", 8, minimum=2, run_time="20s"))
    answer = simulate(m.node("n", 4), elastic, m.job("rigid", m.role("w", 4, run_time="20s"), at="5s"))
    assert {answer.at(f"rigid-w-{index}") for index in range(4)} == {20.0}


def test_g3_surplus_does_not_wait_for_ever_for_pods_that_never_come() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "poor"}}
    quota["spec"] = {"hard": {"pods": "0"}}
    elastic = m.job("elastic", m.role("w", 8, minimum=2, run_time="20s"))
    poor = m.job("poor", m.role("w", 2), at="5s", namespace="poor")
    answer = simulate(m.node("n", 4), quota, elastic, poor, until="60s")
    assert answer.at("elastic-w-4") == 25.0, "five seconds after the room was freed and the rigid job enqueued"


def test_g4_what_is_missing_is_reported_by_role() -> None:
    answer = simulate(
        m.node("n", 8),
        m.podgroup("a", 5, roles={"master": 2, "work": 3}),
        m.pod("m0", group="a", role="master"),
        m.pod("m1", group="a", role="master"),
        m.pod("w0", group="a", role="work"),
    )
    assert not answer.bound()
    found = answer.pending("default/a")
    assert found["missing"] == {"work": 2}
    group = answer.obj("PodGroup", "a")
    for reported in (found["message"], waits_because(group), waits_because(answer.obj("Pod", "w0"))):
        assert "2 of role work" in reported
        assert "master" not in reported


def test_g4_then_the_total() -> None:
    answer = simulate(
        m.node("n", 8),
        m.podgroup("a", 5, roles={"master": 1}),
        m.pod("m0", group="a", role="master"),
        m.pod("w0", group="a", role="work"),
    )
    assert answer.pending("default/a")["missing"] == {"": 3}
    assert "2 of 5 pods exist" in answer.why("default/a")
    assert "3" in answer.why("default/a")


def test_g4_a_group_without_any_pod_says_so() -> None:
    answer = simulate(m.node("n"), m.podgroup("a", 2))
    assert "0 of 2 pods exist" in waits_because(answer.obj("PodGroup", "a"))


def test_g4_failed_and_gated_pods_are_no_members() -> None:
    answer = simulate(
        m.node("n", 8),
        m.podgroup("a", 2),
        m.pod("ended", group="a", nodeName="n", run_time="1s", exit_code="1"),
        m.pod("gated", group="a", at="2s", schedulingGates=[{"name": "wait"}]),
        m.pod("a0", group="a", at="2s"),
    )
    assert not answer.bound("a0")
    assert answer.pending("default/a")["missing"] == {"": 1}


def test_g4_succeeded_members_count() -> None:
    answer = simulate(
        m.node("n", 8),
        m.podgroup("a", 3),
        m.pod("done", group="a", nodeName="n", run_time="1s"),
        m.pods(2, "a", group="a", at="5s"),
    )
    assert answer.times("a") == [5.0, 5.0]


# ---- G5: never oversubscribe


def most_used(answer: Answer, docs: list[m.Obj], name: str) -> float:
    """The most cpu that pods held on a node at any time, by the timeline alone."""
    asked = {
        one["metadata"]["name"]: float(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for one in docs
        if one["kind"] == "Pod"
    }
    used = most = 0.0
    on: dict[str, str] = {}
    for line in answer.lines(kind="Pod"):
        if line["what"] == "bound":
            on[line["name"]] = line["node"]
            used += asked[line["name"]] * (line["node"] == name)
        elif line["what"] in ("succeeded", "failed", "deleted") and on.pop(line["name"], None) == name:
            used -= asked[line["name"]]
        most = max(most, used)
    return most


def test_g5_room_is_never_given_twice_whatever_the_order_of_events() -> None:
    docs = [
        m.pod("early", 1, run_time="7s"),
        *m.gang("a", 3, run_time="13s"),
        *m.gang("b", 2, cpu=2, at="3s", run_time="20s"),
        *m.pods(6, "p", 1, at="5s", run_time="4s"),
        m.pod("c", 4, at="6s", run_time="5s"),
    ]
    for order in (docs, docs[::-1]):
        answer = simulate(m.node("n", 4), order)
        assert most_used(answer, docs, "n") == 4.0
        assert len(answer.lines("succeeded")) == 13


@pytest.mark.parametrize(
    "room, ask",
    [
        ({"pods": 3}, {"cpu": None}),
        ({"memory": "3Gi"}, {"cpu": None, "memory": "1Gi"}),
        ({"extra": {"nvidia.com/gpu": 3}}, {"cpu": None, "extra": {"nvidia.com/gpu": 1}}),
        ({"extra": {"ephemeral-storage": "3Gi"}}, {"cpu": None, "extra": {"ephemeral-storage": "1Gi"}}),
    ],
)
def test_g5_in_any_dimension(room: m.Obj, ask: m.Obj) -> None:
    answer = simulate(m.node("n", **room), m.pods(5, "p", **ask))
    assert len(answer.bound()) == 3


def test_g5_a_late_foreign_pod_takes_room_away() -> None:
    answer = simulate(
        m.node("n"),
        m.gang("a", 2),
        m.pod("foreign", 2, scheduler="another", nodeName="n", at="5s", run_time="20s"),
        m.pods(2, "p", at="6s"),
    )
    assert answer.times("p") == [25.0, 25.0]


def test_g5_a_node_that_shrinks_takes_no_more() -> None:
    shrink = m.step("5s", "patch", "Node", "n", patch={"status": {"allocatable": {"cpu": "2"}}})
    answer = simulate(
        m.node("n"), m.gang("a", 3, run_time="30s"), shrink, m.pod("late", at="6s"), m.pod("free", None, at="6s")
    )
    assert answer.at("late") == 30.0
    assert answer.at("free") == 6.0


def test_g5_a_node_that_returns_still_holds_what_runs_on_it() -> None:
    answer = simulate(
        m.node("n", delete_at="5s"), m.pod("kept", 3, nodeName="n"), m.node("n", at="10s"), m.pods(3, "p", at="10s")
    )
    assert len(answer.bound("p")) <= 4
    held = [one for one in answer.all("Pod") if one["spec"].get("nodeName") == "n"]
    assert sum(int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for one in held) <= 4


# ---- G7: after the gang


def lost(answer: Answer, name: str, after: float) -> list[float]:
    return [line["t"] for line in answer.lines("bound", name) if line["t"] >= after]


def test_g7_a_lost_member_is_replaced_alone() -> None:
    answer = simulate(
        m.node("n", 3),
        m.job("j", m.role("w", 3)),
        m.step("10s", "delete", "Pod", "j-w-1"),
        m.step("10s", "delete", "Pod", "j-w-2"),
        m.pod("squatter", 1, at="10s", nodeName="n"),
    )
    assert lost(answer, "j-w-1", 10) == [10.0]  # of two that were lost one finds room, and goes
    assert lost(answer, "j-w-2", 10) == []
    assert answer.pending("default/j")["missing"] == {"w": 1}
    assert "cpu" in waits_because(answer.obj("Pod", "j-w-2"))


def test_g7_a_failed_member_is_replaced_alone() -> None:
    answer = simulate(
        m.node("n", 2),
        m.gang("a", 2),
        m.step("10s", "fail-pod", "Pod", "a-0"),
        m.pod("a-2", group="a", at="20s"),
        m.pod("a-3", group="a", at="20s"),
    )
    assert answer.at("a-2") == 20.0
    assert answer.at("a-3") is None


@pytest.mark.parametrize("when", ["5s", "10s", "15s"])
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_g7_is_known_again_after_a_restart(when: str, victim: int) -> None:
    """Whichever member is lost, and whether the scheduler is away before, while or after that happens."""
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 4)),
        m.restart(when),
        m.step("10s", "delete", "Pod", f"j-w-{victim}"),
        m.step("10s", "delete", "Pod", f"j-w-{(victim + 1) % 4}"),
        m.pod("squatter", 1, at="10s", nodeName="n"),
        m.node("m", 1, at="200s"),
    )
    again = [line["t"] for line in answer.lines("bound") if line["t"] >= 10 and line["name"] != "squatter"]
    assert again == [10.0, 200.0]
    assert not answer.lines("evicted")


def test_g7_a_raised_minimum_clears_it() -> None:
    answer = simulate(
        m.node("n", 3),
        m.gang("a", 2),
        m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 4}}),
        m.pods(2, "b", group="a", at="20s"),
        m.node("m", 1, at="30s"),
    )
    assert answer.times("b") == [30.0, 30.0]  # one would fit at 20 s; the minimum of four needs both


def test_g7_a_raised_minimum_is_earned_and_known_after_a_restart() -> None:
    answer = simulate(
        m.node("n", 4),
        m.gang("a", 2),
        m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 4}}),
        m.pods(2, "b", group="a", at="20s"),
        m.restart("25s"),
        m.step("30s", "delete", "Pod", "a-0"),
        m.step("30s", "delete", "Pod", "b1"),
        m.pod("squatter", nodeName="n", at="30s"),
        m.pods(2, "c", group="a", at="30s"),
    )
    assert answer.times("b") == [20.0, 20.0]
    assert answer.times("c") == [30.0]


def test_g7_a_gang_whose_pods_are_all_gone_starts_anew() -> None:
    answer = simulate(
        m.node("n", 2),
        [one | {} for one in m.gang("a", 2)],
        m.step("10s", "delete", "Pod", "a-0"),
        m.step("10s", "delete", "Pod", "a-1"),
        m.pod("squatter", nodeName="n", at="10s", run_time="30s"),
        m.pods(2, "b", group="a", at="20s"),
    )
    assert answer.times("b") == [40.0, 40.0]


@pytest.mark.parametrize("stop", [None, "5s"])
def test_g7_a_restart_of_the_whole_job_clears_it(stop: str | None) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    answer = simulate(
        m.node("n", 3),
        m.job("j", m.role("w", 3, stop_delay=stop), policies=policies),
        m.step("10s", "fail-pod", "Pod", "j-w-0"),
        m.pod("squatter", at="10s", nodeName="n", run_time="50s"),
    )
    assert answer.times("j-") == [0.0] * 3 + [60.0] * 3
    assert not answer.lines("evicted")


def test_g7_one_bound_pod_is_not_a_satisfied_gang() -> None:
    answer = simulate(m.node("n", 2), m.pod("a-9", group="a", nodeName="n"), m.gang("a", 2, minimum=3))
    assert not answer.bound("a-0")
    assert not answer.bound("a-1")


def test_g7_new_members_of_a_satisfied_gang_are_ordinary_pods() -> None:
    answer = simulate(m.node("n", 3), m.gang("a", 2), m.restart("5s"), m.pods(2, "b", group="a", at="10s"))
    assert answer.times("b") == [10.0]


def test_g7_of_those_that_may_replace_a_lost_member_one_that_does_not_fit_is_passed_over() -> None:
    answer = simulate(
        m.node("n", 2),
        m.gang("a", 2),
        m.step("5s", "delete", "Pod", "a-1"),
        m.pod("a-2", 3, group="a", at="6s"),
        m.pod("a-3", 1, group="a", at="7s"),
    )
    assert answer.at("a-3") == 7.0
    assert answer.at("a-2") is None
