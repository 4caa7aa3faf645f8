"""V4 and G8: queues share a cluster, cap, guarantee, block, close; told through the simulation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from enbloc.api.meta import Obj
from queue_stories import PLAIN, Told, job, node, patch, play, pod, podgroup, queue, role, small, step


def jobs(queue_name: str, count: int, cpu: int = 1, **more: Any) -> list[Obj]:
    """Jobs of one pod each, named after their queue."""
    return [small(f"{queue_name}-{index:02}", cpu=cpu, queue=queue_name, **more) for index in range(count)]


def taken(told: Told, until: float = 1e9) -> Counter[str]:
    """How many pods of each queue were bound by then, by the first part of their names."""
    return Counter(name.partition("-")[0] for name in told.bound(until=until))


# ---- shares


@pytest.mark.parametrize(
    ("weights", "cpu", "expected"),
    [
        ({"a": 1, "b": 1}, 8, {"a": 4, "b": 4}),
        ({"a": 3, "b": 1}, 8, {"a": 6, "b": 2}),
        ({"a": 1, "b": 3}, 8, {"a": 2, "b": 6}),
        ({"a": 1, "b": 2, "c": 3}, 12, {"a": 2, "b": 4, "c": 6}),
    ],
)
def test_v4_queues_share_by_weight(weights: dict[str, int], cpu: int, expected: dict[str, int]) -> None:
    queues = [queue(name, weight) for name, weight in weights.items()]
    waiting = [one for name in weights for one in jobs(name, 15)]
    assert taken(play(node("n", cpu, "64Gi"), queues, waiting, config=PLAIN)) == expected


def test_v4_shares_do_not_depend_on_the_order_of_files() -> None:
    told = play(jobs("b", 12), jobs("a", 12), queue("b", 1), queue("a", 3), node("n", 8, "64Gi"), config=PLAIN)
    assert taken(told) == {}, "jobs before their queues are refused"
    told = play(queue("b", 1), queue("a", 3), jobs("b", 12), jobs("a", 12), node("n", 8, "64Gi"), config=PLAIN)
    assert taken(told) == {"a": 6, "b": 2}


def test_v4_only_queues_with_demand_share() -> None:
    """`idle` weighs most and asks for nothing; c asks for little, and the others share what it leaves."""
    queues = [queue("a"), queue("b"), queue("c", 10), queue("idle", 1000)]
    told = play(node("n", 9, "64Gi"), queues, jobs("a", 12), jobs("b", 12), jobs("c", 1), config=PLAIN)
    assert taken(told) == {"a": 4, "b": 4, "c": 1}


def test_v4_demand_of_gangs_not_yet_let_in_counts() -> None:
    """All room is taken at first, so that nobody of b is let in; yet b's demand counts when room comes free."""
    told = play(
        [node("n1", 4), queue("a"), queue("b")],
        jobs("a", 4, run="10s"),
        jobs("b", 4, at="1s", run="100s"),
        [small(f"a-late-{index}", queue="a", at="2s", run="100s") for index in range(4)],
        config=PLAIN,
    )
    assert Counter(name.partition("-")[0] for name, t in told.bound().items() if t == 10.0) == {"a": 2, "b": 2}


def test_v4_the_queue_is_chosen_anew_after_each_gang() -> None:
    """Gangs of several pods: after each the lowest share is served next, whatever came first."""
    a = [job(f"a-{index}", role("w", 2), queue="a") for index in range(4)]
    b = [job(f"b-{index}", role("w", 1), queue="b", at="0s") for index in range(8)]
    told = play(node("n", 8, "64Gi"), queue("a"), queue("b"), a, b, config=PLAIN)
    assert taken(told) == {"a": 4, "b": 4}


def test_v4_what_runs_counts_towards_a_share() -> None:
    """a has had the cluster; what comes free goes to b until both have their share."""
    told = play(
        node("n", 6, "64Gi"),
        [queue("a"), queue("b")],
        jobs("a", 3, run="1000s"),
        [small(f"a-short-{index}", queue="a", run="10s") for index in range(3)],
        [small(f"a-late-{index}", queue="a", at="2s", run="1000s") for index in range(6)],
        [small(f"b-{index}", queue="b", at="3s", run="1000s") for index in range(6)],
        config=PLAIN,
    )
    assert [name for name, t in told.bound().items() if t == 10.0] == [f"b-{index}-w-0" for index in range(3)]


def test_v4_a_node_that_comes_later_is_shared_too() -> None:
    told = play(
        node("n1", 2, "64Gi"),
        node("n2", 10, "64Gi", at="10s"),
        [queue("a", 2), queue("b", 1)],
        jobs("a", 20),
        jobs("b", 20),
        config=PLAIN,
    )
    assert taken(told) == {"a": 8, "b": 4}


def test_v4_a_changed_weight_counts_from_then_on() -> None:
    told = play(
        node("n1", 4, "64Gi"),
        [queue("a"), queue("b")],
        jobs("a", 20),
        jobs("b", 20),
        patch("5s", "Queue", "b", spec={"weight": 4}),
        node("n2", 6, "64Gi", at="10s"),
        config=PLAIN,
    )
    assert taken(told, until=5) == {"a": 2, "b": 2}
    assert taken(told) == {"a": 2, "b": 8}


def test_v4_deserved_decides_where_a_queue_sets_it() -> None:
    """Weights say the opposite and are not asked."""
    queues = [queue("a", 1, deserved={"cpu": "6"}), queue("b", 9, deserved={"cpu": "2"})]
    assert taken(play(node("n", 8, "64Gi"), queues, jobs("a", 15), jobs("b", 15), config=PLAIN)) == {"a": 6, "b": 2}


def test_v4_a_queue_that_deserves_nothing_comes_after_those_that_do() -> None:
    queues = [queue("a", 9), queue("b", deserved={"cpu": "6"})]
    told = play(node("n", 8, "64Gi"), queues, jobs("a", 15), jobs("b", 6), config=PLAIN)
    assert taken(told) == {"a": 2, "b": 6}


def test_v4_deserved_of_gpus_alone() -> None:
    """Only the dimension that `deserved` names is looked at."""
    gpu = {"nvidia.com/gpu": "1"}

    def train(name: str, queue_name: str) -> Obj:
        return job(name, role("w", 1, extra=gpu, cpu=1), queue=queue_name)

    queues = [queue("a", deserved={"nvidia.com/gpu": "6"}), queue("b", deserved={"nvidia.com/gpu": "2"})]
    waiting = [train(f"{name}-{index:02}", name) for name in ("b", "a") for index in range(10)]
    told = play(node("n", 64, "64Gi", extra={"nvidia.com/gpu": "8"}), queues, waiting, config=PLAIN)
    assert taken(told) == {"a": 6, "b": 2}


def test_v4_a_share_is_the_largest_over_resources() -> None:
    """a asks for memory, b for cpu: each dominant share is what counts."""
    a = [job(f"a-{index:02}", role("w", 1, cpu=1, memory="4Gi"), queue="a") for index in range(20)]
    b = [job(f"b-{index:02}", role("w", 1, cpu=2, memory="1Gi"), queue="b") for index in range(20)]
    told = play(node("n", 16, "32Gi"), queue("a"), queue("b"), a, b, config=PLAIN)
    assert taken(told) == {"a": 6, "b": 5}


# ---- priority of queues


def test_v4_a_queue_of_higher_priority_is_served_first() -> None:
    queues = [queue("a", 100), queue("b", 1, priority=5)]
    told = play(node("n", 4, "64Gi"), queues, jobs("a", 6), jobs("b", 3), config=PLAIN)
    assert taken(told) == {"a": 1, "b": 3}


def test_v4_priority_of_a_queue_counts_at_enqueue_too() -> None:
    """Room for one gang: the one of the high queue is let in, though it came last."""
    queues = [queue("a"), queue("b", priority=1)]
    told = play(node("n", 4, "64Gi"), queues, small("a-0", 4, "a"), small("b-0", 4, "b"), config=PLAIN)
    assert list(told.bound()) == ["b-0-w-0"]
    assert told.group_of("b-0")["status"]["phase"] == "Running"
    assert told.group_of("a-0")["status"]["phase"] == "Pending"


# ---- capability


def test_v4_minima_above_the_capability_wait_and_say_so() -> None:
    told = play(node("n", 16, "64Gi"), queue("q", capability={"cpu": "4"}), job("j", role("w", 5), queue="q"))
    assert not told.bound()
    waits = told.pending["default/j"]
    assert "it needs 5 cpu, and queue q may use 4 in all" in waits["message"], waits
    conditions = told.group_of("j")["status"]["conditions"]
    assert any(one["type"] == "Unschedulable" and "queue q" in one["message"] for one in conditions), conditions


def test_v4_a_bare_gang_above_the_capability_says_so_on_its_pods() -> None:
    members = [pod(f"p-{index}", "g") for index in range(5)]
    told = play(node("n", 16, "64Gi"), queue("q", capability={"cpu": "4"}), podgroup("g", 5, "q"), members)
    assert not told.bound()
    message = told.pending["default/g"]["message"]
    assert "queue q may use 4 cpu in all and would use 5" in message, message
    assert told.pending["default/g"]["missing"], "how many are missing is told"
    for name in told.pods("p-"):
        condition = next(c for c in told.obj("Pod", name)["status"]["conditions"] if c["type"] == "PodScheduled")
        assert condition["status"] == "False"
        assert "queue q" in condition["message"]


def test_v4_surplus_stops_at_the_capability() -> None:
    told = play(node("n", 16, "64Gi"), queue("q", capability={"cpu": "4"}), job("j", role("w", 8, 2), queue="q"))
    assert sorted(told.bound()) == [f"j-w-{index}" for index in range(4)]
    assert told.phase("j") == "Running"


def test_v4_only_dimensions_asked_for_are_checked() -> None:
    """The queue is full in gpus, which the next job does not ask for; memory is not named and unlimited."""
    gpu = {"nvidia.com/gpu": "1"}
    told = play(
        node("n", 16, "64Gi", extra={"nvidia.com/gpu": "8"}),
        queue("q", capability={"nvidia.com/gpu": "1", "cpu": "8"}),
        job("g", role("w", 1, extra=gpu), queue="q"),
        job("more", role("w", 1, extra=gpu), queue="q"),
        job("plain", role("w", 4, memory="8Gi"), queue="q"),
    )
    assert set(told.bound()) == {"g-w-0", *(f"plain-w-{index}" for index in range(4))}
    assert "nvidia.com/gpu" in told.pending["default/more"]["message"]


def test_v4_a_capability_of_zero_takes_nothing_of_it() -> None:
    told = play(
        node("n"),
        queue("q", capability={"cpu": "0"}),
        small("j", queue="q"),
        job("be", role("w", 1, cpu=None, memory=None), queue="q"),
    )
    assert list(told.bound()) == ["be-w-0"]


def test_v4_room_under_the_capability_comes_back() -> None:
    told = play(node("n", 16, "64Gi"), queue("q", capability={"cpu": "2"}), jobs("q", 5, run="10s"), config=PLAIN)
    assert sorted(told.bound().values()) == [0.0, 0.0, 10.0, 10.0, 20.0]


def test_v4_a_raised_capability_lets_those_in_who_wait() -> None:
    told = play(
        node("n", 16, "64Gi"),
        queue("q", capability={"cpu": "2"}),
        job("j", role("w", 4), queue="q"),
        patch("30s", "Queue", "q", spec={"capability": {"cpu": "4"}}),
    )
    assert set(told.bound().values()) == {30.0}
    assert len(told.bound()) == 4
    assert "default/j" not in told.pending


def test_v4_enqueue_counts_what_was_let_in_against_the_capability() -> None:
    """Two jobs of 3 in a queue of 4: the second is not let in, its pods are never created."""
    told = play(
        node("n", 16, "64Gi"),
        queue("q", capability={"cpu": "4"}),
        job("first", role("w", 3), queue="q"),
        job("second", role("w", 3), queue="q"),
    )
    assert set(told.bound()) == {f"first-w-{index}" for index in range(3)}
    assert told.pods("second") == []
    assert "queue q" in told.pending["default/second"]["message"]


def test_v4_a_smaller_gang_behind_one_that_does_not_fit_its_queue_runs() -> None:
    told = play(
        node("n", 16, "64Gi"),
        queue("q", capability={"cpu": "4"}),
        job("big", role("w", 5), queue="q"),
        job("fits", role("w", 4), queue="q", at="1s"),
    )
    assert set(told.bound()) == {f"fits-w-{index}" for index in range(4)}


def test_v4_a_lowered_capability_evicts_nobody_and_takes_nobody_more() -> None:
    told = play(
        node("n", 8, "64Gi"),
        queue("q", capability={"cpu": "6"}),
        job("j", role("w", 6, 2), queue="q"),
        patch("5s", "Queue", "q", spec={"capability": {"cpu": "2"}}),
        small("k", queue="q", at="6s"),
        config=PLAIN,
    )
    assert len(told.pods("j-")) == 6
    assert not told.bound("k")
    assert "queue q may use 2" in told.pending["default/k"]["message"]


def test_v4_a_group_that_moves_to_another_queue_is_counted_there() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("q", capability={"cpu": "2"}), queue("r")],
        [podgroup("g", 2, "q"), pod("g-0", "g"), pod("g-1", "g")],
        small("waits", 2, "q", at="1s"),
        patch("5s", "PodGroup", "g", spec={"queue": "r"}),
        config=PLAIN,
    )
    assert told.bound()["waits-w-0"] == 5.0
    assert told.obj("Queue", "r")["status"]["running"] == 1
    assert told.obj("Queue", "q")["status"]["running"] == 1


def test_v4_a_capability_may_count_pods() -> None:
    told = play(node("n", 8, "64Gi"), queue("q", capability={"pods": "2"}), job("j", role("w", 4, 1), queue="q"))
    assert sorted(told.bound()) == ["j-w-0", "j-w-1"]


def test_v4_the_capability_of_root_and_default_holds_too() -> None:
    for name in ("root", "default"):
        told = play(node("n", 8), patch("0s", "Queue", name, spec={"capability": {"cpu": "2"}}), jobs("default", 3))
        assert len(told.bound()) == 2
        assert f"queue {name} " in told.pending["default/default-02"]["message"]
    told = play(node("n", 8), queue("default", capability={"cpu": "2"}), jobs("default", 3))
    assert len(told.bound()) == 2


# ---- guarantee


def test_v4_a_guarantee_is_kept_free_while_its_queue_is_idle() -> None:
    told = play(node("n", 8, "64Gi"), queue("vip", guarantee={"cpu": "3"}), queue("a"), jobs("a", 10), config=PLAIN)
    assert taken(told) == {"a": 5}
    waiting = told.pending["default/a-05"]
    assert "guarantee" in waiting["message"], waiting


def test_v4_a_guarantee_is_usable_by_its_queue() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("vip", guarantee={"cpu": "3"}), queue("a")],
        jobs("a", 10),
        jobs("vip", 5, at="10s"),
        config=PLAIN,
    )
    assert taken(told, until=0) == {"a": 5}
    assert taken(told) == {"a": 5, "vip": 3}


def test_v4_what_the_queue_uses_of_its_guarantee_is_not_kept_twice() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("vip", guarantee={"cpu": "3"}), queue("a")],
        jobs("vip", 2),
        jobs("a", 10, at="10s"),
        config=PLAIN,
    )
    assert taken(told) == {"vip": 2, "a": 5}


def test_v4_a_gang_does_not_start_into_a_guarantee() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("vip", guarantee={"cpu": "3"}), queue("a")],
        [podgroup("g", 6, "a"), *(pod(f"g-{index}", "g") for index in range(6))],
        job("whole", role("w", 6), queue="a", at="1s"),
        job("five", role("w", 5), queue="a", at="2s"),
        config=PLAIN,
    )
    assert taken(told) == {"five": 5}


def test_v4_a_guarantee_is_released_with_its_queue() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("vip", guarantee={"cpu": "8"}, delete_at="20s"), queue("a")],
        job("j", role("w", 8), queue="a"),
        config=PLAIN,
    )
    assert set(told.bound().values()) == {20.0}


def test_v4_guarantees_of_a_parent_and_its_child_are_one_room() -> None:
    """The parent's guarantee of 4 holds the child's of 2: 4 are kept, not 6."""
    told = play(
        node("n", 8, "64Gi"),
        [queue("p", guarantee={"cpu": "4"}), queue("c", parent="p", guarantee={"cpu": "2"}), queue("a")],
        jobs("a", 10),
        config=PLAIN,
    )
    assert taken(told) == {"a": 4}


def test_v4_guarantees_of_children_are_kept_among_siblings() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("p"), queue("c", parent="p", guarantee={"cpu": "2"}), queue("d", parent="p")],
        jobs("d", 10),
        config=PLAIN,
    )
    assert taken(told) == {"d": 6}


# ---- parents


def test_v4_a_parents_capability_caps_the_sum_of_its_children() -> None:
    queues = [queue("p", capability={"cpu": "4"}), queue("a", parent="p"), queue("b", parent="p"), queue("c")]
    told = play(node("n", 12, "64Gi"), queues, jobs("a", 6), jobs("b", 6), jobs("c", 6), config=PLAIN)
    assert taken(told) == {"a": 2, "b": 2, "c": 6}
    message = told.pending["default/a-05"]["message"]
    assert "queue p" in message, f"the queue that is full is named, not the one that asks: {message}"


def test_v4_shares_go_level_by_level() -> None:
    """p and c share evenly; inside p, a and b by their own weights: 12 → c 6, p 6 → a 4, b 2."""
    queues = [queue("p"), queue("a", 2, parent="p"), queue("b", 1, parent="p"), queue("c")]
    told = play(node("n", 12, "64Gi"), queues, jobs("a", 12), jobs("b", 12), jobs("c", 12), config=PLAIN)
    assert taken(told) == {"a": 4, "b": 2, "c": 6}


def test_v4_deserved_of_children_counts_for_a_parent_that_names_none() -> None:
    queues = [
        queue("p"),
        queue("r"),
        queue("a", parent="p", deserved={"cpu": "6"}),
        queue("b", parent="r", deserved={"cpu": "2"}),
    ]
    told = play(node("n", 8, "64Gi"), queues, jobs("a", 12), jobs("b", 12), config=PLAIN)
    assert taken(told) == {"a": 6, "b": 2}


def test_v4_root_and_queues_with_children_take_no_jobs() -> None:
    told = play(
        node("n"),
        [queue("p"), queue("c", parent="p")],
        small("at-root", queue="root"),
        small("at-parent", queue="p"),
        podgroup("bare", 1, "p"),
        small("at-child", queue="c"),
    )
    assert "root" in told.rejected("at-root")
    assert "children" in told.rejected("at-parent")
    assert "'c'" not in told.rejected("at-parent")
    assert "children" in told.rejected("bare")
    assert list(told.bound()) == ["at-child-w-0"]


def test_v4_a_queue_root_exists_and_its_faults_are_told() -> None:
    told = play(node("n"), queue("orphan", parent="nobody"), queue("self", parent="self"))
    assert told.obj("Queue", "root")["status"]["state"] == "Open"
    assert told.obj("Queue", "default")["spec"]["parent"] == "root"
    assert "nobody" in told.rejected("orphan")
    assert "cycle" in told.rejected("self")


def test_v4_a_queue_that_becomes_a_parent_keeps_its_jobs_and_takes_no_more() -> None:
    told = play(
        node("n", 8),
        queue("p"),
        small("before", queue="p"),
        queue("c", parent="p", at="5s"),
        small("after", queue="p", at="6s"),
        small("child", queue="c", at="6s"),
    )
    assert told.bound() == {"before-w-0": 0.0, "child-w-0": 6.0}
    assert told.phase("before") == "Running"
    assert "children" in told.rejected("after")


# ---- strict FIFO


def test_v4_fifo_blocks_those_behind_and_the_default_does_not() -> None:
    def run(**spec: Any) -> Told:
        big, tiny = job("big", role("w", 5), queue="q"), small("tiny", queue="q", at="1s")
        return play(node("n", 4), queue("q", **spec), big, tiny, node("late", 4, at="30s"), config=PLAIN)

    assert run().bound()["tiny-w-0"] == 1.0
    assert run(dequeueStrategy="traverse").bound()["tiny-w-0"] == 1.0
    told = run(dequeueStrategy="fifo")
    assert set(told.bound().values()) == {30.0}
    assert len(told.bound()) == 6


def test_v4_fifo_says_behind_whom_it_waits() -> None:
    told = play(
        node("n", 4),
        queue("q", dequeueStrategy="fifo"),
        job("big", role("w", 5), queue="q"),
        small("tiny", queue="q", at="1s"),
        config=PLAIN,
    )
    assert not told.bound()
    assert "default/big" in told.pending["default/tiny"]["message"]
    assert "fifo" in told.pending["default/tiny"]["message"].lower()


def test_v4_fifo_of_bare_gangs_blocks_in_allocate() -> None:
    """No enqueue stands before them; BestEffort ones wait behind as well."""
    told = play(
        node("n", 4),
        queue("q", dequeueStrategy="fifo"),
        [podgroup("big", 5, "q"), *(pod(f"big-{index}", "big") for index in range(5))],
        [podgroup("tiny", 1, "q", at="1s"), pod("tiny-0", "tiny", at="1s")],
        [podgroup("free", 1, "q", at="2s"), pod("free-0", "free", at="2s", cpu=None, memory=None)],
        node("late", 2, at="30s"),
        config=PLAIN,
    )
    assert set(told.bound().values()) == {30.0}
    assert len(told.bound()) == 7


def test_v4_fifo_one_refused_at_enqueue_blocks_one_that_needs_no_enqueue() -> None:
    told = play(
        node("n", 4),
        queue("q", dequeueStrategy="fifo"),
        job("big", role("w", 5), queue="q"),
        [podgroup("tiny", 1, "q", at="1s"), pod("tiny-0", "tiny", at="1s")],
        config=PLAIN,
    )
    assert not told.bound()
    assert "default/big" in told.pending["default/tiny"]["message"]


def test_v4_fifo_blocks_only_its_own_queue() -> None:
    told = play(
        node("n", 4),
        [queue("q", dequeueStrategy="fifo"), queue("r")],
        job("big", role("w", 5), queue="q"),
        small("tiny", queue="r", at="1s"),
        config=PLAIN,
    )
    assert told.bound() == {"tiny-w-0": 1.0}


def test_v4_fifo_goes_on_when_the_one_in_front_goes_away() -> None:
    told = play(
        node("n", 4),
        queue("q", dequeueStrategy="fifo"),
        job("big", role("w", 5), queue="q", delete_at="20s"),
        small("tiny", queue="q", at="1s"),
        config=PLAIN,
    )
    assert told.bound() == {"tiny-w-0": 20.0}
    assert not told.pending


def test_v4_fifo_keeps_priority_and_age() -> None:
    """Those who run at once run in order; a gang that lacks members was not tried, and blocks nobody (G4)."""
    told = play(
        node("n", 4),
        queue("q", dequeueStrategy="fifo"),
        [podgroup("lacks", 2, "q"), pod("lacks-0", "lacks")],
        small("tiny", queue="q", at="1s"),
        config=PLAIN,
    )
    assert told.bound() == {"tiny-w-0": 1.0}


# ---- status


def test_v4_queue_status_counts_podgroups_by_phase() -> None:
    told = play(
        node("n", 4),
        [queue("q"), queue("empty")],
        small("ran", queue="q", run="5s"),
        small("runs", 4, "q", at="10s"),
        small("waits", 4, "q", at="11s"),
        podgroup("alone", 2, "q"),
        config=PLAIN,
    )
    status = told.obj("Queue", "q")["status"]
    counts = {phase: status.get(phase, 0) for phase in ("pending", "inqueue", "running", "unknown", "completed")}
    assert counts == {"pending": 1, "inqueue": 1, "running": 1, "unknown": 0, "completed": 1}
    assert status["state"] == "Open"
    assert told.obj("Queue", "empty")["status"]["pending"] == 0


def test_v4_queue_status_follows_deletions() -> None:
    told = play(node("n", 4), queue("q"), small("runs", queue="q", delete_at="9s"))
    assert told.obj("Queue", "q")["status"]["running"] == 0


def test_v4_survives_a_restart_of_the_scheduler() -> None:
    told = play(
        node("n", 8, "64Gi"),
        [queue("a", 3), queue("b"), queue("vip", guarantee={"cpu": "2"})],
        jobs("a", 12, run="10s"),
        jobs("b", 12, run="10s"),
        step("5s", "restart-scheduler"),
        config=PLAIN,
        until="10s",
    )
    assert Counter(name.partition("-")[0] for name, t in told.bound().items() if t == 0.0) == {"a": 4, "b": 2}
    assert len(told.bound()) == 12
