"""A3–A7: kube-arbitrator's QueueJob, through whole simulations."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, condition
from support.simulation import simulate


def phases(answer: Answer, name: str = "q") -> list[tuple[float, str]]:
    return [(line["t"], line["to"]) for line in answer.lines("phase", name, "QueueJob")]


def made(answer: Answer, prefix: str = "q-") -> list[tuple[float, str]]:
    return [
        (line["t"], line["name"]) for line in answer.lines("created", kind="Pod") if line["name"].startswith(prefix)
    ]


def names(answer: Answer, prefix: str = "") -> list[str]:
    return [one["metadata"]["name"] for one in answer.all("Pod", prefix)]


# ---- A3


def test_a3_a_queue_job_makes_its_spec_and_its_pods() -> None:
    job = m.queue_job("q", m.role("ps", 1), m.role("w", 2, labels=None), minimum=2, nodeSelector={"disk": "ssd"})
    answer = simulate(m.node("n", labels={"disk": "ssd"}), job)
    uid = answer.obj("QueueJob", "q")["metadata"]["uid"]
    spec = answer.obj("SchedulingSpec", "q")
    assert spec["spec"] == {"minAvailable": 2, "nodeSelector": {"disk": "ssd"}}
    for obj in (spec, *answer.all("Pod")):
        (reference,) = obj["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"], reference["controller"]) == ("QueueJob", uid, True)
    assert names(answer) == ["q-ps-0", "q-w-0", "q-w-1"]
    metadata = answer.obj("Pod", "q-w-1")["metadata"]
    assert metadata["labels"] == {
        "volcano.sh/job-name": "q",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": "1",
        "enbloc.dev/queuejob": "q",
    }
    assert "scheduling.k8s.io/group-name" not in metadata["annotations"]
    assert answer.obj("QueueJob", "q")["spec"]["selector"] == {"matchLabels": {"enbloc.dev/queuejob": "q"}}


def test_a3_scheduling_spec_is_another_name_of_sched_spec() -> None:
    job = m.queue_job("q", m.role("w", 3))
    job["spec"]["schedulingSpec"] = {"minAvailable": 2}
    del job["spec"]["schedSpec"]
    patch = m.patch("10s", "QueueJob", "q", spec={"schedulingSpec": {"minAvailable": 1}})
    answer = simulate(m.node("n", 2), job, patch, until="5s")
    assert len(answer.bound()) == 2
    assert answer.obj("SchedulingSpec", "q")["spec"] == {"minAvailable": 2}
    assert simulate(m.node("n", 2), job, patch).obj("SchedulingSpec", "q")["spec"] == {"minAvailable": 1}


def test_a3_without_a_minimum_all_pods_are_needed() -> None:
    answer = simulate(m.node("n", 2), m.queue_job("q", m.role("w", 3)), m.node("m", 1, at="10s"))
    assert answer.times() == [10.0] * 3


def test_a3_roles_without_a_name_get_one() -> None:
    one, two = m.role("", 1), m.role("", 1)
    del one["name"]
    assert names(simulate(m.node("n"), m.queue_job("q", one, two))) == ["q-task0-0", "q-task1-0"]


def test_a3_a_spec_that_was_deleted_or_changed_is_put_right() -> None:
    answer = simulate(
        m.node("n"),
        m.queue_job("q", m.role("w", 2), minimum=2),
        m.step("10s", "delete", "SchedulingSpec", "q"),
        m.step("20s", "patch", "SchedulingSpec", "q", patch={"spec": {"minAvailable": 9, "nodeSelector": {"a": "b"}}}),
    )
    assert [line["t"] for line in answer.lines("created", "q", "SchedulingSpec")] == [0.0, 10.0]
    assert answer.obj("SchedulingSpec", "q")["spec"] == {"minAvailable": 2}
    assert not answer.lines("deleted", kind="Pod")


# ---- A4

HIGH = m.priority_class("high", 100)


def test_a4_minima_by_priority_then_the_rest_in_turn() -> None:
    jobs = [m.queue_job(name, m.role("w", 3), minimum=1) for name in ("a", "b")]
    answer = simulate(
        HIGH, m.node("n", 20), jobs, m.queue_job("z", m.role("w", 4), minimum=2, priorityClassName="high")
    )
    assert [name for _, name in made(answer, "")] == [
        "z-w-0",
        "z-w-1",
        "a-w-0",
        "b-w-0",
        "z-w-2",
        "a-w-1",
        "b-w-1",
        "z-w-3",
        "a-w-2",
        "b-w-2",
    ]


@pytest.mark.parametrize("later", ["1500ms", "2s"])
def test_a4_of_equal_priority_the_older_job_is_first(later: str) -> None:
    jobs = [m.queue_job("z", m.role("w", 2), at="1s"), m.queue_job("a", m.role("w", 2), at=later)]
    room = m.patch("3s", "ResourceQuota", "q", spec={"hard": {"pods": "2"}})
    answer = simulate(m.node("n", 20), m.resource_quota(0), jobs, room, until="60s")
    assert [name for _, name in made(answer, "")] == ["z-w-0", "z-w-1"]


def test_a4_roles_by_the_priority_of_their_pods() -> None:
    job = m.queue_job("q", m.role("low", 2), m.role("top", 2, priority="high"), minimum=3)
    answer = simulate(HIGH, m.resource_quota(3), m.node("n", 20), job)
    assert [name for _, name in made(answer)] == ["q-top-0", "q-top-1", "q-low-0"]
    assert len(answer.bound()) == 3


def test_a4_under_a_quota_only_the_lowest_priority_misses_pods() -> None:
    jobs = [
        m.queue_job("low", m.role("w", 3, run_time="60s"), minimum=3),
        m.queue_job("mid", m.role("w", 2, run_time="60s"), minimum=2, priorityClassName="mid"),
        m.queue_job("high", m.role("w", 2, run_time="30s"), minimum=2, priorityClassName="high"),
    ]
    answer = simulate(HIGH, m.priority_class("mid", 50), m.resource_quota(5), m.node("n", 20), jobs)
    assert set(answer.times("high") + answer.times("mid")) == {0.0}
    assert answer.times("low") == [30.0] * 3  # one of them existed from the start and was not attempted
    assert [at for at, _ in made(answer, "low-")] == [0.0, 30.0, 30.0]
    early = simulate(HIGH, m.priority_class("mid", 50), m.resource_quota(5), m.node("n", 20), jobs, until="20s")
    assert "1 of 3 pods exist, 2 more are needed" in early.why("default/low")


def test_a4_a_refused_pod_lets_no_lower_one_slip_in() -> None:
    """The high job's next pod is too large for what a pod leaves of the quota; the low job's would fit, and waits."""
    hard = m.resource_quota(9)
    hard["spec"]["hard"] = {"requests.cpu": "8"}
    jobs = [
        m.pod("other", cpu=3),
        m.queue_job("low", m.role("w", 2, cpu=1), minimum=1),
        m.queue_job("high", m.role("w", 2, cpu=4, run_time="40s"), minimum=2, priorityClassName="high"),
    ]
    answer = simulate(HIGH, hard, m.node("n", 20), jobs, until="100s")
    assert made(answer, "")[1:] == [(0.0, "high-w-0")]
    assert "exceeded quota" in answer.lines("warning", "high")[0]["message"]
    assert "QueueJob high, which comes first, waits for it too" in answer.why("default/low")
    wider = m.step("50s", "patch", "ResourceQuota", "q", patch={"spec": {"hard": {"requests.cpu": "12"}}})
    wider["target"]["apiVersion"] = "v1"
    answer = simulate(HIGH, hard, m.node("n", 20), jobs, wider, until="300s")
    assert made(answer, "")[1:4] == [(0.0, "high-w-0"), (50.0, "high-w-1"), (50.0, "low-w-0")]


@pytest.mark.parametrize("stop", [None, "10s"])
def test_a4_a_job_that_starts_over_keeps_its_turn(stop: str | None) -> None:
    """What its old pods leave of the quota is for its new ones, not for a job behind it."""
    jobs = [
        m.queue_job("low", m.role("w", 3), minimum=2),
        m.queue_job("high", m.role("w", 3, stop_delay=stop), minimum=3, priorityClassName="high"),
    ]
    docs = [HIGH, m.resource_quota(4), m.node("n", 20), *jobs, m.step("20s", "fail-pod", "Pod", "high-w-1", exitCode=1)]
    for more in ([], [m.restart("20s"), m.restart("25s")]):
        answer = simulate(docs, more, until="100s")
        assert [name for _, name in made(answer, "low-")] == ["low-w-0"]
        assert len(answer.bound("high")) == 3
        assert answer.times("high") == [0.0] * 3 + [30.0 if stop else 20.0] * 3


def test_a4_a_pod_refused_for_itself_stops_its_own_job_only() -> None:
    bad = m.queue_job("bad", m.role("w", 2, priority="nowhere"), priorityClassName="high")
    answer = simulate(HIGH, m.node("n"), bad, m.queue_job("good", m.role("w", 2)), until="60s")
    assert sorted(answer.bound()) == ["good-w-0", "good-w-1"]
    tried = [line["t"] for line in answer.lines("warning", "bad", "QueueJob")]
    assert tried == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]  # never at once, and with growing delays


def test_a4_new_pods_wait_for_all_of_a_raised_minimum() -> None:
    docs = [
        m.resource_quota(3),
        m.node("n", 20),
        m.queue_job("q", m.role("w", 3), minimum=3),
        m.patch("10s", "QueueJob", "q", spec={"schedSpec": {"minAvailable": 5}, "taskSpecs": [m.role("w", 5)]}),
    ]
    more = m.step("20s", "patch", "ResourceQuota", "q", patch={"spec": {"hard": {"pods": "4"}}})
    most = m.step("40s", "patch", "ResourceQuota", "q", patch={"spec": {"hard": {"pods": "9"}}})
    for one in (more, most):
        one["target"]["apiVersion"] = "v1"
    answer = simulate(docs, more, most)
    assert made(answer)[3:] == [(40.0, "q-w-3"), (40.0, "q-w-4")]
    assert answer.times() == [0.0] * 3 + [40.0] * 2
    assert not answer.lines("deleted", kind="Pod")


def test_a4_a_name_that_is_taken_by_another_owner() -> None:
    answer = simulate(m.node("n"), m.pod("q-w-0", run_time="30s", delete_at="40s"), m.queue_job("q", m.role("w", 2)))
    assert made(answer)[1:] == [(40.0, "q-w-0"), (40.0, "q-w-1")]
    assert answer.times("q-w") == [0.0, 40.0, 40.0]
    assert "already exists" in answer.lines("warning", "q")[0]["message"]


# ---- A5


def test_a5_too_few_left_the_whole_job_starts_over() -> None:
    job = m.queue_job("q", m.role("ps", 1), m.role("w", 3), minimum=4)
    answer = simulate(m.node("n", 4), job, m.step("30s", "fail-pod", "Pod", "q-w-1", exitCode=3))
    assert phases(answer) == [
        (0.0, "Pending"),
        (0.0, "Running"),
        (30.0, "Restarting"),
        (30.0, "Pending"),
        (30.0, "Running"),
    ]
    assert [at for at, _ in made(answer)] == [0.0] * 4 + [30.0] * 4
    assert answer.obj("QueueJob", "q")["status"]["restarts"] == 1


@pytest.mark.parametrize(
    "loss", [m.step("30s", "fail-pod", "Pod", "q-w-1", exitCode=1), m.step("30s", "delete", "Pod", "q-w-1")]
)
def test_a5_enough_left_only_what_was_lost_is_made_anew(loss: m.Obj) -> None:
    answer = simulate(m.node("n", 4), m.queue_job("q", m.role("w", 4), minimum=3), loss)
    assert made(answer)[4:] == [(30.0, "q-w-1")]
    assert phases(answer) == [(0.0, "Pending"), (0.0, "Running")]
    deleted = simulate(m.node("n", 4), m.queue_job("q", m.role("w", 4), minimum=4), loss)
    assert [at for at, _ in made(deleted)[4:]] == [30.0] * 4


def test_a5_delays_grow_to_five_minutes_and_survive_a_restart() -> None:
    job = m.queue_job("q", m.role("w", 2, run_time="10s", exit_code="1"))
    answer = simulate(m.node("n"), job, until="30m")
    again = simulate(m.node("n"), job, [m.restart(f"{at}s") for at in (5, 25, 35, 45, 95, 400, 700)], until="30m")
    starts = [at for at, name in made(answer) if name == "q-w-0"]
    assert [b - a for a, b in itertools.pairwise(starts)] == [10, 20, 30, 50, 90, 170, 310, 310, 310, 310]
    assert made(again) == made(answer)


def test_a5_success_triggers_nothing() -> None:
    answer = simulate(m.node("n", 4), m.queue_job("q", m.role("a", 2, run_time="10s"), m.role("b", 2, run_time="50s")))
    assert len(made(answer)) == 4
    assert phases(answer)[-1] == (50.0, "Completed")
    assert not answer.lines("deleted", kind="Pod")
    assert not answer.data["pending"]


def test_a5_succeeded_pods_count() -> None:
    docs = [m.node("n", 4), m.queue_job("q", m.role("a", 2, run_time="10s"), m.role("b", 2), minimum=3)]
    answer = simulate(docs, m.step("30s", "delete", "Pod", "q-b-0"))
    assert made(answer)[4:] == [(30.0, "q-b-0")]  # two succeeded and one runs: enough


def test_a5_before_it_ran_only_what_was_lost() -> None:
    """Two pods take a while to start; the third fails before the minimum ran."""
    job = m.queue_job("q", m.role("slow", 2, start_delay="60s"), m.role("w", 1, run_time="5s", exit_code="1,1,1,0"))
    answer = simulate(m.node("n", 4), job)
    assert [at for at, name in made(answer) if name == "q-w-0"] == [0.0, 5.0, 20.0, 45.0]  # each a little later
    assert not answer.lines("deleted", "q-slow-0")
    assert phases(answer)[-1] == (60.0, "Running")


def test_a5_a_node_dies() -> None:
    answer = simulate(
        m.node("n", 2),
        m.node("m", 2),
        m.queue_job("q", m.role("w", 4), minimum=4),
        m.step("20s", "fail-node", "Node", "n"),
        m.step("80s", "recover-node", "Node", "n"),
    )
    assert answer.times() == [0.0] * 4 + [80.0] * 4  # together again, or not at all
    assert "2 of 4 pods of role w do not fit" in simulate(
        m.node("n", 2), m.node("m", 2), m.queue_job("q", m.role("w", 4)), m.step("20s", "fail-node", "Node", "n")
    ).why("default/q")


def test_a5_what_cannot_be_scheduled_counts_once_it_ran() -> None:
    """One of four is lost with its node and finds no room; then another goes: too few are left."""
    docs = [
        m.node("n", 3),
        m.node("m", 1),
        m.queue_job("q", m.role("w", 4), minimum=3),
        m.step("10s", "fail-node", "Node", "m"),
    ]
    answer = simulate(docs)
    assert len(made(answer)) == 5
    assert len(answer.bound()) == 4
    lost = answer.bound()
    on_n = next(name for name, (_, place) in lost.items() if place == "n")
    again = simulate(docs, m.step("40s", "delete", "Pod", on_n))
    assert phases(again)[-2:] == [(40.0, "Pending"), (40.0, "Running")]
    waiting = simulate(m.node("n", 1), m.queue_job("q", m.role("w", 2)))
    assert phases(waiting) == [(0.0, "Pending")]  # it never ran: it waits, and nothing is killed


def test_a5_pods_that_take_long_to_stop_are_waited_for() -> None:
    job = m.queue_job("q", m.role("w", 3, stop_delay="15s"))
    answer = simulate(m.node("n", 4), job, m.step("30s", "fail-pod", "Pod", "q-w-1", exitCode=1))
    assert [at for at, _ in made(answer)[3:]] == [45.0] * 3
    assert answer.times() == [0.0] * 3 + [45.0] * 3


# ---- A6


def test_a6_a_changed_template_makes_all_pods_anew() -> None:
    docs = [m.node("n", 4), m.queue_job("q", m.role("ps", 1), m.role("w", 2), minimum=2)]
    answer = simulate(
        docs,
        m.patch("10s", "QueueJob", "q", spec={"taskSpecs": [m.role("ps", 1), m.role("w", 2, cpu="1500m")]}),
        m.restart("20s"),
    )
    assert [at for at, _ in made(answer)[3:]] == [10.0] * 3
    assert answer.obj("QueueJob", "q")["status"]["restarts"] == 0
    unchanged = simulate(
        docs, m.patch("10s", "QueueJob", "q", spec={"taskSpecs": [m.role("ps", 1), m.role("w", 2)]}), m.restart("20s")
    )
    assert len(made(unchanged)) == 3


def test_a6_replicas_and_minimum_scale() -> None:
    docs = [m.node("n", 8), m.queue_job("q", m.role("a", 2), m.role("b", 3), minimum=3)]
    up = simulate(docs, m.patch("10s", "QueueJob", "q", spec={"taskSpecs": [m.role("a", 4), m.role("b", 3)]}))
    assert [name for at, name in made(up) if at == 10.0] == ["q-a-2", "q-a-3"]
    down = simulate(
        docs,
        m.patch(
            "10s",
            "QueueJob",
            "q",
            spec={"schedSpec": {"minAvailable": 2}, "taskSpecs": [m.role("a", 1), m.role("b", 1)]},
        ),
        m.restart("20s"),
    )
    assert [line["name"] for line in down.lines("deleted", kind="Pod")] == ["q-b-2", "q-b-1", "q-a-1"]
    assert names(down) == ["q-a-0", "q-b-0"]
    assert phases(down) == [(0.0, "Pending"), (0.0, "Running")]
    gone = simulate(docs, m.patch("10s", "QueueJob", "q", spec={"taskSpecs": [m.role("b", 3)]}))
    assert names(gone) == ["q-b-0", "q-b-1", "q-b-2"]


def test_a6_a_raised_minimum_that_cannot_be_met_deletes_no_pod() -> None:
    grown = m.patch("10s", "QueueJob", "q", spec={"schedSpec": {"minAvailable": 5}, "taskSpecs": [m.role("w", 5)]})
    answer = simulate(m.node("n", 3), m.queue_job("q", m.role("w", 3)), grown)
    assert not answer.lines("deleted", kind="Pod")
    assert "2 of 2 pods of role w do not fit" in answer.why("default/q")


@pytest.mark.parametrize("stop", [None, "20s"])
def test_a6_a_deleted_job_leaves_nothing(stop: str | None) -> None:
    answer = simulate(m.node("n", 4), m.queue_job("q", m.role("w", 3, stop_delay=stop), delete_at="10s"))
    assert not answer.all("Pod")
    assert not answer.all("SchedulingSpec")
    assert not answer.data["pending"]


def test_a6_a_job_of_the_same_name_comes_after() -> None:
    first = m.queue_job("q", m.role("w", 2, stop_delay="20s"), delete_at="10s")
    answer = simulate(m.node("n", 4), first, m.queue_job("q", m.role("w", 2), at="15s"))
    assert [at for at, _ in made(answer)] == [0.0, 0.0, 30.0, 30.0]
    assert answer.times() == [0.0, 0.0, 30.0, 30.0]


# ---- A7


def test_a7_status() -> None:
    job = m.queue_job("q", m.role("a", 2, run_time="10s"), m.role("b", 2), m.role("c", 1), minimum=4)
    answer = simulate(m.node("n", 4), job)
    status = answer.obj("QueueJob", "q")["status"]
    shown = {key: status[key] for key in ("pending", "running", "succeeded", "failed", "minAvailable")}
    assert shown == {"pending": 0, "running": 3, "succeeded": 2, "failed": 0, "minAvailable": 4}
    early = simulate(m.node("n", 4), job, until="5s").obj("QueueJob", "q")["status"]
    assert (early["pending"], early["running"]) == (1, 4)
    failed = m.queue_job("q", m.role("w", 2, run_time="10s", exit_code="1"), minimum=0)
    status = simulate(m.node("n"), failed, until="25s").obj("QueueJob", "q")["status"]
    assert status["failed"] == 2


def test_a7_a_job_that_is_done_stays_done() -> None:
    docs = [m.node("n", 4), m.queue_job("q", m.role("w", 2, run_time="10s"))]
    answer = simulate(docs, m.step("20s", "delete", "Pod", "q-w-0"), m.restart("30s"))
    assert len(made(answer)) == 2
    assert phases(answer)[-1] == (10.0, "Completed")
    assert not answer.data["pending"]
    grown = simulate(docs, m.patch("20s", "QueueJob", "q", spec={"taskSpecs": [m.role("w", 3, run_time="10s")]}))
    assert phases(grown)[-2:] == [(20.0, "Running"), (30.0, "Completed")]


def test_a_restarts_of_everything_change_nothing() -> None:
    """I5: with a restart every few seconds the story is the same."""
    docs: list[Any] = [
        HIGH,
        m.resource_quota(6),
        m.node("n", 4),
        m.node("m", 2, at="70s"),
        m.queue_job("low", m.role("w", 3, run_time="25s", exit_code="1,0"), minimum=2),
        m.queue_job(
            "high",
            m.role("ps", 1),
            m.role("w", 2, run_time="40s", exit_code="0,1,0"),
            minimum=3,
            priorityClassName="high",
        ),
        m.step("15s", "delete", "Pod", "high-ps-0"),
        m.patch("90s", "QueueJob", "low", spec={"taskSpecs": [m.role("w", 2, run_time="25s")]}),
    ]
    plain = simulate(docs, until="400s")
    again = simulate(docs, [m.restart(f"{at}s") for at in range(1, 200, 7)], until="400s")
    reported = ("bound", "phase", "succeeded", "failed", "deleted", "created")

    def story(answer: Answer) -> list[m.Obj]:
        return [line for line in answer.timeline if line["what"] in reported]

    assert story(again) == story(plain)


def test_a_conditions_are_withdrawn() -> None:
    answer = simulate(m.node("n", 1), m.queue_job("q", m.role("w", 2)), m.node("m", 1, at="10s"))
    found = condition(answer.obj("SchedulingSpec", "q"), "Unschedulable")
    assert found is not None
    assert found["status"] == "False"
