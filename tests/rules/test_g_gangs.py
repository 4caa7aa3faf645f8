"""G1–G5, G7: what holds for any gang, told as stories over the whole simulation."""

from __future__ import annotations

import pytest

from stories import (
    ALLOCATE_ONLY,
    HIGH_LOW,
    Answer,
    Obj,
    gang,
    job,
    node,
    pod,
    podgroup,
    pods,
    queue,
    restart,
    role,
    simulate,
    step,
    waits_because,
)

# ---- G1: whose pods


@pytest.mark.parametrize("name", ["enbloc", "kar-scheduler-of-nobody", "volcano", "koord-scheduler"])
def test_g1_only_pods_of_our_names_are_scheduled(name: str) -> None:
    answer = simulate(node("n"), pod("p", scheduler=name))
    assert bool(answer.bound("p")) == (name != "kar-scheduler-of-nobody")


def test_g1_the_names_are_a_list_in_the_config() -> None:
    waiting = [pod("mine", scheduler="my-scheduler"), pod("peer", scheduler="volcano"), pod("own", scheduler="enbloc")]
    answer = simulate(node("n"), waiting, config={"schedulerNames": ["my-scheduler"]})
    assert set(answer.bound()) == {"mine"}


def test_g1_a_foreign_pod_that_waits_is_nobody_of_ours() -> None:
    answer = simulate(
        node("n", 1), pod("foreign", 4, scheduler="default-scheduler"), gang("a", 1, minimum=2),
        pod("a-foreign", group="a", scheduler="default-scheduler"),
    )  # fmt: skip
    assert not answer.bound()
    assert [one["gang"] for one in answer.data["pending"]] == ["default/a"]
    assert answer.pending("default/a")["missing"] == {"": 1}  # type: ignore[index]
    assert not waits_because(answer.obj("Pod", "foreign"))


def test_g1_assigned_pods_count_as_used_whoever_assigned_them() -> None:
    foreign = pod("foreign", 3, scheduler="default-scheduler", nodeName="n")
    preset = pod("preset", 3, nodeName="m")
    answer = simulate(node("n"), node("m"), foreign, preset, pods(3, "p"))
    assert len(answer.bound("p", by=0)) >= 2
    assert sorted(where for name, (_, where) in answer.bound().items() if name in ("p0", "p1", "p2")) == ["m", "n"]


@pytest.mark.parametrize("code", ["0", "1"])
def test_g1_what_has_ended_gives_its_room_back(code: str) -> None:
    foreign = pod("foreign", 4, scheduler="default-scheduler", nodeName="n", run="30s", code=code)
    answer = simulate(node("n"), foreign, gang("a", 4))
    assert answer.times("a") == [30.0] * 4


def test_g1_a_foreign_pod_that_is_assigned_later_counts_from_then_on() -> None:
    answer = simulate(
        node("n"),
        pod("foreign", 3, scheduler="default-scheduler"),
        pod("assigned", 3, scheduler="default-scheduler", nodeName="n", at="5s"),
        pods(2, "p", at="5s"),
    )
    assert len(answer.bound("p")) == 1


# ---- G2: all or nothing


def test_g2_waits_then_all_at_once() -> None:
    answer = simulate(node("n"), job("j", role("w", 5)), node("late", 1, at="30s"))
    assert answer.times("j-") == [30.0] * 5


def test_g2_every_role_has_its_minimum_or_nobody_starts() -> None:
    big_and_small = job("j", role("big", 2, cpu=3), role("small", 4, 2))
    answer = simulate(node("n", 4), big_and_small, node("late", 3, at="20s"), config=ALLOCATE_ONLY)
    # 3 + 1 on the first node, 3 on the other: big-0, big-1 and one small only. A second small needs more room.
    assert not answer.bound()
    assert sum(answer.pending("default/j")["missing"].values()) == 1  # type: ignore[index]
    answer = simulate(node("n", 4), big_and_small, node("late", 4, at="20s"))
    assert sorted(answer.bound()) == ["j-big-0", "j-big-1", "j-small-0", "j-small-1"]
    assert set(answer.times()) == {20.0}


def test_g2_a_gang_is_packed_over_nodes() -> None:
    answer = simulate([node(f"n{i}", 3) for i in range(3)], gang("a", 4, cpu=2))
    assert not answer.bound()  # 9 cpu are free for 8, and a fourth pod of 2 fits on none of the three nodes
    answer = simulate([node(f"n{i}", 4) for i in range(2)], gang("a", 4, cpu=2))
    assert sorted(where for _, where in answer.bound().values()) == ["n0", "n0", "n1", "n1"]


def test_g2_two_gangs_that_fit_singly_do_not_take_halves() -> None:
    answer = simulate(node("n", 6), gang("a", 5, run="10s"), gang("b", 5, run="10s"))
    assert answer.times("a") == [0.0] * 5
    assert answer.times("b") == [10.0] * 5


def test_g2_pods_that_come_one_by_one_wait_for_the_last() -> None:
    answer = simulate(
        node("n", 8), podgroup("a", 3), [pod(f"a{i}", group="a", at=f"{10 * i}s") for i in range(4)]
    )  # fmt: skip
    assert answer.times("a") == [20.0, 20.0, 20.0, 30.0]


def test_g2_a_terminating_pod_keeps_its_room_and_counts_for_nothing() -> None:
    answer = simulate(
        node("n", 3), gang("a", 2), pod("gone", group="a", gone="0s", stop="30s", nodeName="n"),
        pod("late", 1, group="a", at="5s"), gang("b", 2, at="6s"),
    )  # fmt: skip
    # `gone` holds one of three cpus until 30 s; the gang of two starts with its own two pods.
    assert answer.times("a-") == [0.0, 0.0]
    assert answer.at("late") == 30.0
    assert not answer.bound("b-")


def test_g2_a_terminating_pod_is_no_member() -> None:
    leaving = pod("gone", group="a", gone="0s", stop="30s", nodeName="n")
    answer = simulate(node("n", 4), gang("a", 1, minimum=2), leaving)
    assert not answer.bound("a-")
    answer = simulate(node("n", 4), gang("a", 1, minimum=2), leaving, pod("a-1", group="a", at="5s"))
    assert answer.times("a-") == [5.0, 5.0]


def test_g2_members_bound_by_others_count_towards_the_minimum() -> None:
    answer = simulate(node("n", 3), gang("a", 2, minimum=3), pod("preset", group="a", nodeName="n"))
    assert answer.times("a-") == [0.0, 0.0]


def test_g2_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    answer = simulate(node("n", 8), gang("a", 2, minimum=3), gang("a", 2, minimum=3, namespace="other"))
    assert not answer.bound()
    assert {one["gang"] for one in answer.data["pending"]} == {"default/a", "other/a"}


# ---- G3: surplus is best effort


def test_g3_surplus_takes_what_is_left() -> None:
    answer = simulate(node("n", 4), job("j", role("w", 6, 2)))
    assert answer.order() == ["j-w-0", "j-w-1", "j-w-2", "j-w-3"]
    assert not answer.pending("default/j")
    assert "cpu" in waits_because(answer.obj("Pod", "j-w-5"))


def test_g3_surplus_comes_after_the_minima_of_all_equals_in_the_queue() -> None:
    answer = simulate(node("n", 6), gang("a", 4, minimum=2), gang("b", 4, minimum=2))
    assert set(answer.order()[:4]) == {"a-0", "a-1", "b-0", "b-1"}
    assert set(answer.order()[4:]) == {"a-2", "a-3"}


def test_g3_surplus_comes_before_the_minima_of_a_lower_priority() -> None:
    answer = simulate(
        HIGH_LOW, node("n", 4), gang("b", 2, priority="low"), gang("a", 4, minimum=2, priority="high")
    )  # fmt: skip
    assert sorted(answer.bound()) == ["a-0", "a-1", "a-2", "a-3"]


def test_g3_surplus_never_blocks_and_never_makes_a_gang_fail() -> None:
    huge = job("j", role("w", 2, 2), role("extra", 1, 0, cpu=50))
    answer = simulate(node("n", 4), huge, gang("b", 2))
    assert sorted(answer.bound()) == ["b-0", "b-1", "j-w-0", "j-w-1"]
    assert not answer.data["pending"]


def test_g3_surplus_does_not_block_a_fifo_queue() -> None:
    answer = simulate(
        node("n", 4), queue("q", dequeueStrategy="fifo"), gang("a", 6, minimum=3, queue="q", cpu=1),
        gang("b", 1, queue="q", at="5s"), step("10s", "delete", "Pod", "a-0"), step("10s", "delete", "Pod", "a-3"),
    )  # fmt: skip
    assert answer.at("b-0") == 10.0


def test_g3_a_task_that_does_not_fit_is_skipped_and_others_make_up_the_total() -> None:
    members = [
        pod("a-0", 1, group="a", role="x"),
        pod("a-1", 9, group="a", role="y"),
        pod("a-2", 1, group="a", role="z"),
        pod("a-3", 1, group="a", role="z"),
    ]
    answer = simulate(node("n", 3), podgroup("a", 3, roles={"x": 1}), members)
    assert sorted(answer.bound()) == ["a-0", "a-2", "a-3"]
    assert not answer.data["pending"]
    answer = simulate(node("n", 2), podgroup("a", 3, roles={"x": 1}), members)
    assert not answer.bound()


def test_g3_surplus_is_placed_when_room_comes_later() -> None:
    answer = simulate(node("n", 2), job("j", role("w", 4, 2)), node("late", 1, at="40s"))
    assert answer.times("j-") == [0.0, 0.0, 40.0]
    assert answer.at("j-w-2") == 40.0


# ---- G4: valid first


def test_g3_surplus_waits_for_the_pods_of_a_gang_that_was_let_in() -> None:
    """The room that frees at 20 s is the rigid job's, though its pods are only made once it is let in."""
    elastic = job("elastic", role("w", 8, minimum=2, run="20s"))
    answer = simulate(node("n", 4), elastic, job("rigid", role("w", 4, run="20s"), at="5s"))
    assert {answer.at(f"rigid-w-{index}") for index in range(4)} == {20.0}


def test_g3_surplus_does_not_wait_for_ever_for_pods_that_never_come() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "poor"}}
    quota["spec"] = {"hard": {"pods": "0"}}
    elastic = job("elastic", role("w", 8, minimum=2, run="20s"))
    poor = job("poor", role("w", 2), at="5s", namespace="poor")
    answer = simulate(node("n", 4), quota, elastic, poor, until="60s")
    assert answer.at("elastic-w-4") == 25.0, "five seconds after the room was freed and the poor job let in"


def test_g4_what_is_missing_is_told_by_role() -> None:
    answer = simulate(
        node("n", 8), podgroup("a", 5, roles={"master": 2, "work": 3}),
        pod("m0", group="a", role="master"), pod("m1", group="a", role="master"), pod("w0", group="a", role="work"),
    )  # fmt: skip
    assert not answer.bound()
    found = answer.pending("default/a")
    assert found is not None
    assert found["missing"] == {"work": 2}
    group = answer.obj("PodGroup", "a")
    for told in (found["message"], waits_because(group), waits_because(answer.obj("Pod", "w0"))):
        assert "2 of role work" in told
        assert "master" not in told


def test_g4_then_the_total() -> None:
    answer = simulate(
        node("n", 8), podgroup("a", 5, roles={"master": 1}),
        pod("m0", group="a", role="master"), pod("w0", group="a", role="work"),
    )  # fmt: skip
    assert answer.pending("default/a")["missing"] == {"": 3}  # type: ignore[index]
    assert "2 of 5 pods exist" in answer.why("default/a")
    assert "3" in answer.why("default/a")


def test_g4_a_group_without_any_pod_says_so() -> None:
    answer = simulate(node("n"), podgroup("a", 2))
    assert "0 of 2 pods exist" in waits_because(answer.obj("PodGroup", "a"))


def test_g4_failed_and_gated_pods_are_no_members() -> None:
    answer = simulate(
        node("n", 8), podgroup("a", 2), pod("ended", group="a", nodeName="n", run="1s", code="1"),
        pod("gated", group="a", at="2s", schedulingGates=[{"name": "wait"}]), pod("a0", group="a", at="2s"),
    )  # fmt: skip
    assert not answer.bound("a0")
    assert answer.pending("default/a")["missing"] == {"": 1}  # type: ignore[index]


def test_g4_succeeded_members_count() -> None:
    answer = simulate(
        node("n", 8), podgroup("a", 3), pod("done", group="a", nodeName="n", run="1s"), pods(2, "a", group="a", at="5s")
    )
    assert answer.times("a") == [5.0, 5.0]


# ---- G5: never oversubscribe


def most_used(answer: Answer, docs: list[Obj], name: str) -> float:
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
        pod("early", 1, run="7s"),
        *gang("a", 3, run="13s"),
        *gang("b", 2, cpu=2, at="3s", run="20s"),
        *pods(6, "p", 1, at="5s", run="4s"),
        pod("c", 4, at="6s", run="5s"),
    ]
    for order in (docs, docs[::-1]):
        answer = simulate(node("n", 4), order)
        assert most_used(answer, docs, "n") == 4.0
        assert len(answer.lines("succeeded")) == 13


@pytest.mark.parametrize(
    "room, ask",
    [
        ({"pods": 3}, {"cpu": None}),
        ({"memory": "3Gi"}, {"cpu": None, "memory": "1Gi"}),
        ({"more": {"nvidia.com/gpu": 3}}, {"cpu": None, "more": {"nvidia.com/gpu": 1}}),
        ({"more": {"ephemeral-storage": "3Gi"}}, {"cpu": None, "more": {"ephemeral-storage": "1Gi"}}),
    ],
)
def test_g5_in_any_dimension(room: Obj, ask: Obj) -> None:
    answer = simulate(node("n", **room), pods(5, "p", **ask))
    assert len(answer.bound()) == 3


def test_g5_a_late_foreign_pod_takes_room_away() -> None:
    answer = simulate(
        node("n"), gang("a", 2), pod("foreign", 2, scheduler="default-scheduler", nodeName="n", at="5s", run="20s"),
        pods(2, "p", at="6s"),
    )  # fmt: skip
    assert answer.times("p") == [25.0, 25.0]


def test_g5_a_node_that_shrinks_takes_no_more() -> None:
    shrink = step("5s", "patch", "Node", "n", patch={"status": {"allocatable": {"cpu": "2"}}})
    answer = simulate(node("n"), gang("a", 3, run="30s"), shrink, pod("late", at="6s"), pod("free", None, at="6s"))
    assert answer.at("late") == 30.0
    assert answer.at("free") == 6.0


def test_g5_a_node_that_returns_still_holds_what_runs_on_it() -> None:
    answer = simulate(
        node("n", gone="5s"), pod("kept", 3, nodeName="n"), node("n", at="10s"), pods(3, "p", at="10s")
    )  # fmt: skip
    assert len(answer.bound("p")) <= 4
    held = [one for one in answer.all("Pod") if one["spec"].get("nodeName") == "n"]
    assert sum(int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for one in held) <= 4


# ---- G7: after the gang


def lost(answer: Answer, name: str, after: float) -> list[float]:
    return [line["t"] for line in answer.lines("bound", name) if line["t"] >= after]


def test_g7_a_lost_member_is_replaced_alone() -> None:
    answer = simulate(
        node("n", 3), job("j", role("w", 3)), step("10s", "delete", "Pod", "j-w-1"),
        step("10s", "delete", "Pod", "j-w-2"), pod("squatter", 1, at="10s", nodeName="n"),
    )  # fmt: skip
    assert lost(answer, "j-w-1", 10) == [10.0]  # of two that were lost one finds room, and goes
    assert lost(answer, "j-w-2", 10) == []
    assert answer.pending("default/j")["missing"] == {"w": 1}  # type: ignore[index]
    assert "cpu" in waits_because(answer.obj("Pod", "j-w-2"))


def test_g7_a_failed_member_is_replaced_alone() -> None:
    answer = simulate(
        node("n", 2), gang("a", 2), step("10s", "fail-pod", "Pod", "a-0"), pod("a-2", group="a", at="20s"),
        pod("a-3", group="a", at="20s"),
    )  # fmt: skip
    assert answer.at("a-2") == 20.0
    assert answer.at("a-3") is None


@pytest.mark.parametrize("when", ["5s", "10s", "15s"])
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_g7_is_known_again_after_a_restart(when: str, victim: int) -> None:
    """Whichever member is lost, and whether the scheduler is away before, while or after that happens."""
    answer = simulate(
        node("n", 4), job("j", role("w", 4)), restart(when), step("10s", "delete", "Pod", f"j-w-{victim}"),
        step("10s", "delete", "Pod", f"j-w-{(victim + 1) % 4}"), pod("squatter", 1, at="10s", nodeName="n"),
        node("m", 1, at="200s"),
    )  # fmt: skip
    again = [line["t"] for line in answer.lines("bound") if line["t"] >= 10 and line["name"] != "squatter"]
    assert again == [10.0, 200.0]
    assert not answer.lines("evicted")


def test_g7_a_raised_minimum_clears_it() -> None:
    answer = simulate(
        node("n", 3), gang("a", 2), step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 4}}),
        pods(2, "b", group="a", at="20s"), node("m", 1, at="30s"),
    )  # fmt: skip
    assert answer.times("b") == [30.0, 30.0]  # one would fit at 20 s; the minimum of four needs both


def test_g7_a_raised_minimum_is_earned_and_known_after_a_restart() -> None:
    answer = simulate(
        node("n", 4), gang("a", 2), step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 4}}),
        pods(2, "b", group="a", at="20s"), restart("25s"), step("30s", "delete", "Pod", "a-0"),
        step("30s", "delete", "Pod", "b1"), pod("squatter", nodeName="n", at="30s"), pods(2, "c", group="a", at="30s"),
    )  # fmt: skip
    assert answer.times("b") == [20.0, 20.0]
    assert answer.times("c") == [30.0]


def test_g7_a_gang_whose_pods_are_all_gone_starts_anew() -> None:
    answer = simulate(
        node("n", 2), [one | {} for one in gang("a", 2)], step("10s", "delete", "Pod", "a-0"),
        step("10s", "delete", "Pod", "a-1"), pod("squatter", nodeName="n", at="10s", run="30s"),
        pods(2, "b", group="a", at="20s"),
    )  # fmt: skip
    assert answer.times("b") == [40.0, 40.0]


@pytest.mark.parametrize("stop", [None, "5s"])
def test_g7_a_restart_of_the_whole_job_clears_it(stop: str | None) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    answer = simulate(
        node("n", 3), job("j", role("w", 3, stop=stop), policies=policies), step("10s", "fail-pod", "Pod", "j-w-0"),
        pod("squatter", at="10s", nodeName="n", run="50s"),
    )  # fmt: skip
    assert answer.times("j-") == [0.0] * 3 + [60.0] * 3
    assert not answer.lines("evicted")


def test_g7_one_bound_pod_is_not_a_satisfied_gang() -> None:
    answer = simulate(node("n", 2), pod("a-9", group="a", nodeName="n"), gang("a", 2, minimum=3))
    assert not answer.bound("a-0")
    assert not answer.bound("a-1")


def test_g7_new_members_of_a_satisfied_gang_are_ordinary_pods() -> None:
    answer = simulate(node("n", 3), gang("a", 2), restart("5s"), pods(2, "b", group="a", at="10s"))
    assert answer.times("b") == [10.0]


def test_g7_of_those_that_may_replace_a_lost_member_one_that_does_not_fit_is_passed_over() -> None:
    answer = simulate(
        node("n", 2), gang("a", 2), step("5s", "delete", "Pod", "a-1"), pod("a-2", 3, group="a", at="6s"),
        pod("a-3", 1, group="a", at="7s"),
    )  # fmt: skip
    assert answer.at("a-3") == 7.0
    assert answer.at("a-2") is None
