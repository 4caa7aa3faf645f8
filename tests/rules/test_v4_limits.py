"""V4: capability, guarantee, and the limits of parents."""

from __future__ import annotations

from support import manifests as m
from support.queue_jobs import jobs, taken
from support.simulation import NO_EVICTIONS, simulate

# ---- capability


def test_v4_minima_above_the_capability_wait_and_say_so() -> None:
    answer = simulate(
        m.node("n", 16, "64Gi"), m.queue("q", capability={"cpu": "4"}), m.job("j", m.role("w", 5), queue="q")
    )
    assert not answer.first_bound()
    waits = answer.pending("default/j")
    assert "requests 5 cpu, queue q uses 0 of its capability of 4" in waits["message"], waits
    conditions = answer.group_of("j")["status"]["conditions"]
    assert any(one["type"] == "Unschedulable" and "queue q" in one["message"] for one in conditions), conditions


def test_v4_a_bare_gang_above_the_capability_says_so_on_its_pods() -> None:
    members = [m.pod(f"p-{index}", group="g") for index in range(5)]
    answer = simulate(
        m.node("n", 16, "64Gi"), m.queue("q", capability={"cpu": "4"}), m.podgroup("g", 5, queue="q"), members
    )
    assert not answer.first_bound()
    message = answer.pending("default/g")["message"]
    assert "queue q would use 5 cpu, its capability is 4" in message, message
    assert answer.pending("default/g")["missing"], "how many are missing is reported"
    for name in answer.pods("p-"):
        condition = next(c for c in answer.obj("Pod", name)["status"]["conditions"] if c["type"] == "PodScheduled")
        assert condition["status"] == "False"
        assert "queue q" in condition["message"]


def test_v4_surplus_stops_at_the_capability() -> None:
    answer = simulate(
        m.node("n", 16, "64Gi"), m.queue("q", capability={"cpu": "4"}), m.job("j", m.role("w", 8, 2), queue="q")
    )
    assert sorted(answer.first_bound()) == [f"j-w-{index}" for index in range(4)]
    assert answer.phase("j") == "Running"


def test_v4_only_dimensions_asked_for_are_checked() -> None:
    """The queue is full in gpus, which the next job does not ask for; memory is not named and unlimited."""
    gpu = {"nvidia.com/gpu": "1"}
    answer = simulate(
        m.node("n", 16, "64Gi", extra={"nvidia.com/gpu": "8"}),
        m.queue("q", capability={"nvidia.com/gpu": "1", "cpu": "8"}),
        m.job("g", m.role("w", 1, extra=gpu), queue="q"),
        m.job("more", m.role("w", 1, extra=gpu), queue="q"),
        m.job("plain", m.role("w", 4, memory="8Gi"), queue="q"),
    )
    assert set(answer.first_bound()) == {"g-w-0", *(f"plain-w-{index}" for index in range(4))}
    assert "nvidia.com/gpu" in answer.pending("default/more")["message"]


def test_v4_a_capability_of_zero_takes_nothing_of_it() -> None:
    answer = simulate(
        m.node("n"),
        m.queue("q", capability={"cpu": "0"}),
        m.one_pod_job("j", queue="q"),
        m.job("be", m.role("w", 1, cpu=None, memory=None), queue="q"),
    )
    assert list(answer.first_bound()) == ["be-w-0"]


def test_v4_room_under_the_capability_comes_back() -> None:
    answer = simulate(
        m.node("n", 16, "64Gi"),
        m.queue("q", capability={"cpu": "2"}),
        jobs("q", 5, run_time="10s"),
        config=NO_EVICTIONS,
    )
    assert sorted(answer.first_bound().values()) == [0.0, 0.0, 10.0, 10.0, 20.0]


def test_v4_a_raised_capability_helps_gangs_that_wait() -> None:
    answer = simulate(
        m.node("n", 16, "64Gi"),
        m.queue("q", capability={"cpu": "2"}),
        m.job("j", m.role("w", 4), queue="q"),
        m.patch("30s", "Queue", "q", spec={"capability": {"cpu": "4"}}),
    )
    assert set(answer.first_bound().values()) == {30.0}
    assert len(answer.first_bound()) == 4
    assert not answer.waits("default/j")


def test_v4_enqueue_counts_enqueued_gangs_against_the_capability() -> None:
    """Two jobs of 3 in a queue of 4: the second is not enqueued, its pods are never created."""
    answer = simulate(
        m.node("n", 16, "64Gi"),
        m.queue("q", capability={"cpu": "4"}),
        m.job("first", m.role("w", 3), queue="q"),
        m.job("second", m.role("w", 3), queue="q"),
    )
    assert set(answer.first_bound()) == {f"first-w-{index}" for index in range(3)}
    assert answer.pods("second") == []
    assert "queue q" in answer.pending("default/second")["message"]


def test_v4_a_smaller_gang_behind_one_that_does_not_fit_its_queue_runs() -> None:
    answer = simulate(
        m.node("n", 16, "64Gi"),
        m.queue("q", capability={"cpu": "4"}),
        m.job("big", m.role("w", 5), queue="q"),
        m.job("fits", m.role("w", 4), queue="q", at="1s"),
    )
    assert set(answer.first_bound()) == {f"fits-w-{index}" for index in range(4)}


def test_v4_a_lowered_capability_evicts_no_pod_and_accepts_no_more() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        m.queue("q", capability={"cpu": "6"}),
        m.job("j", m.role("w", 6, 2), queue="q"),
        m.patch("5s", "Queue", "q", spec={"capability": {"cpu": "2"}}),
        m.one_pod_job("k", queue="q", at="6s"),
        config=NO_EVICTIONS,
    )
    assert len(answer.pods("j-")) == 6
    assert not answer.first_bound("k")
    assert "queue q uses 6 of its capability of 2" in answer.pending("default/k")["message"]


def test_v4_a_group_that_moves_to_another_queue_is_counted_there() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("q", capability={"cpu": "2"}), m.queue("r")],
        [m.podgroup("g", 2, queue="q"), m.pod("g-0", group="g"), m.pod("g-1", group="g")],
        m.one_pod_job("waits", 2, queue="q", at="1s"),
        m.patch("5s", "PodGroup", "g", spec={"queue": "r"}),
        config=NO_EVICTIONS,
    )
    assert answer.first_bound()["waits-w-0"] == 5.0
    assert answer.obj("Queue", "r")["status"]["running"] == 1
    assert answer.obj("Queue", "q")["status"]["running"] == 1


def test_v4_a_capability_may_count_pods() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"), m.queue("q", capability={"pods": "2"}), m.job("j", m.role("w", 4, 1), queue="q")
    )
    assert sorted(answer.first_bound()) == ["j-w-0", "j-w-1"]


def test_v4_the_capability_of_root_and_default_holds_too() -> None:
    for name in ("root", "default"):
        answer = simulate(
            m.node("n", 8), m.patch("0s", "Queue", name, spec={"capability": {"cpu": "2"}}), jobs("default", 3)
        )
        assert len(answer.first_bound()) == 2
        assert f"queue {name} " in answer.pending("default/default-02")["message"]
    answer = simulate(m.node("n", 8), m.queue("default", capability={"cpu": "2"}), jobs("default", 3))
    assert len(answer.first_bound()) == 2


# ---- guarantee


def test_v4_a_guarantee_is_kept_free_while_its_queue_is_idle() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"), m.queue("vip", guarantee={"cpu": "3"}), m.queue("a"), jobs("a", 10), config=NO_EVICTIONS
    )
    assert taken(answer) == {"a": 5}
    waiting = answer.pending("default/a-05")
    assert "guarantee" in waiting["message"], waiting


def test_v4_a_guarantee_is_usable_by_its_queue() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("vip", guarantee={"cpu": "3"}), m.queue("a")],
        jobs("a", 10),
        jobs("vip", 5, at="10s"),
        config=NO_EVICTIONS,
    )
    assert taken(answer, until=0) == {"a": 5}
    assert taken(answer) == {"a": 5, "vip": 3}


def test_v4_what_the_queue_uses_of_its_guarantee_is_not_kept_twice() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("vip", guarantee={"cpu": "3"}), m.queue("a")],
        jobs("vip", 2),
        jobs("a", 10, at="10s"),
        config=NO_EVICTIONS,
    )
    assert taken(answer) == {"vip": 2, "a": 5}


def test_v4_a_gang_does_not_start_into_a_guarantee() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("vip", guarantee={"cpu": "3"}), m.queue("a")],
        [m.podgroup("g", 6, queue="a"), *(m.pod(f"g-{index}", group="g") for index in range(6))],
        m.job("whole", m.role("w", 6), queue="a", at="1s"),
        m.job("five", m.role("w", 5), queue="a", at="2s"),
        config=NO_EVICTIONS,
    )
    assert taken(answer) == {"five": 5}


def test_v4_a_guarantee_is_released_with_its_queue() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("vip", guarantee={"cpu": "8"}, delete_at="20s"), m.queue("a")],
        m.job("j", m.role("w", 8), queue="a"),
        config=NO_EVICTIONS,
    )
    assert set(answer.first_bound().values()) == {20.0}


def test_v4_guarantees_of_a_parent_and_its_child_are_one_room() -> None:
    """The parent's guarantee of 4 holds the child's of 2: 4 are kept, not 6."""
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("p", guarantee={"cpu": "4"}), m.queue("c", parent="p", guarantee={"cpu": "2"}), m.queue("a")],
        jobs("a", 10),
        config=NO_EVICTIONS,
    )
    assert taken(answer) == {"a": 4}


def test_v4_guarantees_of_children_are_kept_among_siblings() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("p"), m.queue("c", parent="p", guarantee={"cpu": "2"}), m.queue("d", parent="p")],
        jobs("d", 10),
        config=NO_EVICTIONS,
    )
    assert taken(answer) == {"d": 6}


# ---- parents


def test_v4_a_parents_capability_caps_the_sum_of_its_children() -> None:
    queues = [m.queue("p", capability={"cpu": "4"}), m.queue("a", parent="p"), m.queue("b", parent="p"), m.queue("c")]
    answer = simulate(m.node("n", 12, "64Gi"), queues, jobs("a", 6), jobs("b", 6), jobs("c", 6), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 2, "b": 2, "c": 6}
    message = answer.pending("default/a-05")["message"]
    assert "queue p" in message, f"the queue that is full is named, not the one that asks: {message}"


def test_v4_shares_go_level_by_level() -> None:
    """p and c share evenly; inside p, a and b by their own weights: 12 → c 6, p 6 → a 4, b 2."""
    queues = [m.queue("p"), m.queue("a", 2, parent="p"), m.queue("b", 1, parent="p"), m.queue("c")]
    answer = simulate(m.node("n", 12, "64Gi"), queues, jobs("a", 12), jobs("b", 12), jobs("c", 12), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 4, "b": 2, "c": 6}


def test_v4_deserved_of_children_counts_for_a_parent_that_names_none() -> None:
    queues = [
        m.queue("p"),
        m.queue("r"),
        m.queue("a", parent="p", deserved={"cpu": "6"}),
        m.queue("b", parent="r", deserved={"cpu": "2"}),
    ]
    answer = simulate(m.node("n", 8, "64Gi"), queues, jobs("a", 12), jobs("b", 12), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 6, "b": 2}


def test_v4_root_and_queues_with_children_take_no_jobs() -> None:
    answer = simulate(
        m.node("n"),
        [m.queue("p"), m.queue("c", parent="p")],
        m.one_pod_job("at-root", queue="root"),
        m.one_pod_job("at-parent", queue="p"),
        m.podgroup("bare", 1, queue="p"),
        m.one_pod_job("at-child", queue="c"),
    )
    assert "root" in answer.rejected("at-root")
    assert "children" in answer.rejected("at-parent")
    assert "'c'" not in answer.rejected("at-parent")
    assert "children" in answer.rejected("bare")
    assert list(answer.first_bound()) == ["at-child-w-0"]


def test_v4_a_queue_root_exists_and_its_faults_are_reported() -> None:
    answer = simulate(m.node("n"), m.queue("orphan", parent="nobody"), m.queue("self", parent="self"))
    assert answer.obj("Queue", "root")["status"]["state"] == "Open"
    assert answer.obj("Queue", "default")["spec"]["parent"] == "root"
    assert "nobody" in answer.rejected("orphan")
    assert "cycle" in answer.rejected("self")


def test_v4_a_queue_that_becomes_a_parent_takes_no_more_jobs() -> None:
    answer = simulate(
        m.node("n", 8),
        m.queue("p"),
        m.one_pod_job("before", queue="p", run_time="3s"),
        m.queue("c", parent="p", at="5s"),
        m.one_pod_job("after", queue="p", at="6s"),
        m.one_pod_job("child", queue="c", at="6s"),
    )
    assert answer.first_bound() == {"before-w-0": 0.0, "child-w-0": 6.0}
    assert "children" in answer.rejected("after")
