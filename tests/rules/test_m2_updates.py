"""M1, M2: what admission fills in and refuses; what may change in a job that exists, and what that does."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer
from support.simulation import lint, simulate


def minima(*roles: dict[str, Any], minimum: int | None = None, relaxed: bool = False) -> tuple[int, list[int]]:
    found = lint(
        m.job("j", *roles, minimum=minimum), config={"admission": {"minAvailable": "relaxed"}} if relaxed else None
    )
    assert not found.faults, found.faults
    spec = found.objects[-1]["spec"]
    return spec["minAvailable"], [task["minAvailable"] for task in spec["tasks"]]


def faults(obj: Obj, **more: Any) -> dict[str, str]:
    return {fault.field: fault.message for fault in lint(obj, **more).faults}


def tasks_at(answer: Answer, name: str = "j") -> tuple[int, dict[str, tuple[int, int]]]:
    spec = answer.obj("Job", name)["spec"]
    return spec["minAvailable"], {task["name"]: (task["replicas"], task["minAvailable"]) for task in spec["tasks"]}


# ---- M1's table


@pytest.mark.parametrize(
    ("roles", "minimum", "expected"),
    [
        ([m.role("a", 2), m.role("b", 3)], None, (5, [2, 3])),
        ([m.role("a", 2), m.role("b", 3)], 0, (5, [2, 3])),
        ([m.role("a", 2, 0), m.role("b", 3, 0)], None, (5, [2, 3])),
        ([m.role("a", 2, 0), m.role("b", 3, 0)], 0, (5, [2, 3])),
        ([m.role("a", 2, 1), m.role("b", 3)], None, (4, [1, 3])),
        ([m.role("a", 2, 1), m.role("b", 3, 0)], None, (1, [1, 0])),
        ([m.role("a", 2, 1), m.role("b", 3, 2)], 0, (3, [1, 2])),
        ([m.role("a", 5)], 3, (3, [3])),
        ([m.role("a", 5, 0)], 3, (3, [3])),
        ([m.role("a", 2), m.role("b", 3)], 5, (5, [2, 3])),
        ([m.role("a", 2, 1), m.role("b", 3)], 4, (4, [1, 3])),
        ([m.role("a", 2, 1), m.role("b", 3, 0)], 1, (1, [1, 0])),
        ([m.role("a", None)], None, (0, [0])),
    ],
)
def test_m1_the_table_fills_in(
    roles: list[dict[str, Any]], minimum: int | None, expected: tuple[int, list[int]]
) -> None:
    assert minima(*roles, minimum=minimum) == expected


@pytest.mark.parametrize(
    ("roles", "minimum"),
    [
        ([m.role("a", 2), m.role("b", 3)], 3),
        ([m.role("a", 2, 0), m.role("b", 3, 0)], 3),
        ([m.role("a", 2, 1), m.role("b", 3)], 3),
        ([m.role("a", 2, 1), m.role("b", 3)], 5),
        ([m.role("a", 2, 1), m.role("b", 3, 1)], 1),
    ],
)
def test_m1_the_table_refuses(roles: list[dict[str, Any]], minimum: int) -> None:
    found = faults(m.job("j", *roles, minimum=minimum))
    assert list(found) == ["spec.minAvailable"]
    assert str(minimum) in found["spec.minAvailable"]


@pytest.mark.parametrize(
    ("roles", "minimum", "expected"),
    [
        ([m.role("a", 2), m.role("b", 3)], 3, (3, [0, 0])),
        ([m.role("a", 2, 1), m.role("b", 3)], 3, (3, [1, 0])),
        ([m.role("a", 2, 2), m.role("b", 3, 2)], 3, (4, [2, 2])),  # the total is at least the sum of those set
        ([m.role("a", 2), m.role("b", 3)], None, (5, [2, 3])),
        ([m.role("a", 5)], 3, (3, [3])),
    ],
)
def test_m1_relaxed_accepts_what_volcano_does(
    roles: list[dict[str, Any]], minimum: int | None, expected: tuple[int, list[int]]
) -> None:
    assert minima(*roles, minimum=minimum, relaxed=True) == expected


def test_m1_relaxed_in_a_run_fills_up_by_task_order() -> None:
    """Total 3 of two roles without minima: index by index (O2); strict refuses the same job."""
    loose = m.job("j", m.role("a", 3), m.role("b", 3), minimum=3)
    assert "spec.minAvailable" in simulate(m.node("n", 3), loose).rejected("j")
    answer = simulate(m.node("n", 3), loose, config={"admission": {"minAvailable": "relaxed"}})
    assert sorted(answer.first_bound()) == ["j-a-0", "j-a-1", "j-b-0"]
    assert not simulate(m.node("n", 2), loose, config={"admission": {"minAvailable": "relaxed"}}).first_bound()


# ---- M2 at creation


def test_m2_one_answer_lists_every_fault() -> None:
    bad = m.job("j", m.role("x", 2, 3), m.role("x", 1), m.role("y", -1), m.role("Odd_Name", 1), minimum=-1)
    found = lint(bad).faults
    fields = {fault.field for fault in found}
    assert {
        "spec.tasks[0].minAvailable",
        "spec.tasks[1].name",
        "spec.tasks[2].replicas",
        "spec.tasks[3].name",
        "spec.minAvailable",
    } <= fields
    by_field = {fault.field: fault.message for fault in found}
    assert "3" in by_field["spec.tasks[0].minAvailable"]
    assert "2" in by_field["spec.tasks[0].minAvailable"]
    assert "-1" in by_field["spec.tasks[2].replicas"]
    message = simulate(m.node("n"), bad).rejected("j")
    assert all(field in message for field in fields)


@pytest.mark.parametrize(
    ("bad", "field", "words"),
    [
        (m.job("j"), "spec.tasks", ("at least one",)),
        (m.job("j", m.role("a", 2), minimum=3), "spec.minAvailable", ("3", "2")),
        (m.job("j", m.role("a", 2, -1)), "spec.tasks[0].minAvailable", ("-1",)),
        (m.job("j", m.role("a" * 64, 1)), "spec.tasks[0].name", ("63",)),
        (m.job("j" * 64, m.role("a", 1)), "metadata.name", ("63",)),
        (
            m.job("j", m.role("a", 1), policies=[{"event": "PodFailed", "action": "Explode"}]),
            "spec.policies[0].action",
            ("Explode", "RestartJob"),
        ),
        (
            m.job("j", m.role("a", 1, policies=[{"event": "PodSad", "action": "RestartJob"}])),
            "spec.tasks[0].policies[0].event",
            ("PodSad", "PodFailed"),
        ),
        (m.job("j", m.role("a", 1), policies=[{"action": "RestartJob"}]), "spec.policies[0]", ("event",)),
        (m.job("j", m.role("a", 1), plugins={"wings": []}), "spec.plugins.wings", ("wings", "svc")),
        (m.job("j", m.role("a", 1), maxRetry=-1), "spec.maxRetry", ("-1",)),
        (m.job("j", m.role("a", 1), minSuccess=2), "spec.minSuccess", ("2", "1")),
        (m.job("j", m.role("a", 1, depends_on={"name": ["b"]})), "spec.tasks[0].dependsOn.name[0]", ("b",)),
        (m.job("j", m.role("a", 1, depends_on={"name": ["a"]})), "spec.tasks[0].dependsOn.name[0]", ("cycle",)),
    ],
)
def test_m2_faults_name_field_and_values(bad: Obj, field: str, words: tuple[str, ...]) -> None:
    found = faults(bad)
    assert field in found, found
    for word in words:
        assert word in found[field]


def test_m2_a_rejected_job_leaves_nothing_behind() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 1, 2)), m.one_pod_job("ok"))
    assert answer.lines("rejected")[0]["kind"] == "Job"
    assert not [one for one in answer.objects if one["kind"] == "Job" and one["metadata"]["name"] == "j"]
    assert list(answer.first_bound()) == ["ok-w-0"]


# ---- M2 on update: scaling


def scaled(*roles: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"tasks": list(roles), **spec}


def test_m2_more_replicas_and_nothing_else_disturbed() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("w", 2, 2)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 4, 2))),
    )
    assert answer.first_bound() == {"j-w-0": 0.0, "j-w-1": 0.0, "j-w-2": 10.0, "j-w-3": 10.0}
    assert len(answer.lines("bound")) == 4
    assert not answer.lines("deleted")
    assert tasks_at(answer) == (2, {"w": (4, 2)})


def test_m2_fewer_replicas_the_highest_index_goes_first() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 5, 1), m.role("b", 2)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("a", 2, 1), m.role("b", 2))),
    )
    assert [line["name"] for line in answer.lines("deleted") if line["kind"] == "Pod"] == ["j-a-4", "j-a-3", "j-a-2"]
    assert answer.pods("j-") == ["j-a-0", "j-a-1", "j-b-0", "j-b-1"]
    assert len(answer.lines("bound")) == 7
    assert answer.phase("j") == "Running"


def test_m2_room_given_back_by_scaling_down_is_used() -> None:
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 4, 1)),
        m.one_pod_job("next", 2, at="1s"),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 2, 1))),
    )
    assert answer.first_bound()["next-w-0"] == 10.0


def test_m2_a_defaulted_minimum_follows_its_replicas() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 2), m.role("b", 3, 1)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("a", 4), m.role("b", 3, 1))),
    )
    assert not answer.lines("rejected")
    assert tasks_at(answer) == (5, {"a": (4, 4), "b": (3, 1)})
    group = answer.group_of("j")["spec"]
    assert group["minMember"] == 5
    assert group["minTaskMember"] == {"a": 4, "b": 1}
    assert group["minResources"]["cpu"] == "5"


def test_m2_a_defaulted_minimum_that_is_read_and_written_back_follows_too() -> None:
    """As `kubectl edit` does: the whole object comes back with the minima that were filled in."""
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("w", 4)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 2, 4), minAvailable=4)),
    )
    assert not answer.lines("rejected"), answer.rejected("j")
    assert tasks_at(answer) == (2, {"w": (2, 2)})
    assert answer.pods("j-") == ["j-w-0", "j-w-1"]


def test_m2_an_explicit_minimum_does_not_follow() -> None:
    answer = simulate(
        m.node("n", 8), m.job("j", m.role("w", 4, 3)), m.patch("10s", "Job", "j", spec=scaled(m.role("w", 2, 3)))
    )
    message = answer.rejected("j")
    assert "spec.tasks[0].minAvailable" in message
    assert answer.lines("rejected", "j")[0]["t"] == 10.0
    assert len(answer.pods("j-")) == 4, "a refused update changes nothing"


def test_m2_lower_minima_let_a_job_start() -> None:
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("w", 4, 4)),
        m.patch("30s", "Job", "j", spec=scaled(m.role("w", 4, 2), minAvailable=2)),
    )
    assert answer.first_bound() == {"j-w-0": 30.0, "j-w-1": 30.0}
    assert answer.phase("j") == "Running"


def test_m2_the_jobs_minimum_alone_moves_that_of_its_only_role() -> None:
    answer = simulate(
        m.node("n", 2), m.job("j", m.role("w", 4), minimum=4), m.patch("30s", "Job", "j", spec={"minAvailable": 2})
    )
    assert not answer.lines("rejected"), answer.rejected("j")
    assert tasks_at(answer) == (2, {"w": (4, 2)})
    assert set(answer.first_bound().values()) == {30.0}


def test_m2_a_raised_minimum_of_a_running_job_disturbs_no_pod() -> None:
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 4, 2)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 4, 4), minAvailable=4)),
    )
    assert len(answer.lines("bound")) == 4
    assert not answer.lines("deleted")
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running")]
    assert answer.group_of("j")["spec"]["minMember"] == 4


def test_m2_a_raised_minimum_is_a_gang_anew() -> None:
    """G7: two run; the three that a higher minimum asks for start together, once there is room for all."""
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 2, 2)),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 5, 5), minAvailable=5)),
        m.node("m", 1, at="30s"),
    )
    assert answer.first_bound() == {"j-w-0": 0.0, "j-w-1": 0.0, "j-w-2": 30.0, "j-w-3": 30.0, "j-w-4": 30.0}
    assert not answer.lines("evicted")


def test_m2_scaling_a_job_that_waits() -> None:
    answer = simulate(
        m.node("n", 2), m.job("j", m.role("w", 4)), m.patch("10s", "Job", "j", spec=scaled(m.role("w", 2)))
    )
    assert answer.first_bound() == {"j-w-0": 10.0, "j-w-1": 10.0}
    assert answer.pods("j-") == ["j-w-0", "j-w-1"]


def test_m2_to_no_replicas_and_up_again() -> None:
    answer = simulate(
        m.node("n", 3),
        m.job("j", m.role("w", 2)),
        m.patch("5s", "Job", "j", spec=scaled(m.role("w", 0))),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 3))),
    )
    assert [line["t"] for line in answer.lines("bound")] == [0.0, 0.0, 10.0, 10.0, 10.0]
    assert answer.phase("j") == "Running"


def test_m2_one_role_to_no_replicas_and_the_other_goes_on() -> None:
    answer = simulate(
        m.node("n", 5),
        m.job("j", m.role("a", 2, run_time="20s"), m.role("b", 2)),
        m.patch("5s", "Job", "j", spec=scaled(m.role("a", 2, run_time="20s"), m.role("b", 0))),
    )
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (20.0, "Completed")]
    assert [line["name"] for line in answer.lines("deleted") if line["kind"] == "Pod"] == ["j-b-1", "j-b-0"]


def test_m2_pods_that_wait_go_before_pods_that_run_if_their_index_is_higher() -> None:
    answer = simulate(
        m.node("n", 3), m.job("j", m.role("w", 6, 2)), m.patch("5s", "Job", "j", spec=scaled(m.role("w", 4, 2)))
    )
    assert answer.pods("j-") == ["j-w-0", "j-w-1", "j-w-2", "j-w-3"]
    assert len(answer.first_bound()) == 3


def test_m2_a_job_that_ended_does_not_start_again_when_it_is_scaled() -> None:
    answer = simulate(
        m.node("n", 5),
        m.job("j", m.role("w", 2, run_time="5s")),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 3, run_time="5s"))),
    )
    assert answer.phase("j") == "Completed"
    assert len(answer.lines("bound")) == 2


def test_m2_a_changed_priority_class_reorders_pending_gangs() -> None:
    answer = simulate(
        [m.priority_class("high", 1000), m.priority_class("low", 10)],
        m.node("n", 2),
        m.one_pod_job("first", 2, run_time="10s"),
        m.one_pod_job("a", 2, at="1s", priorityClassName="low"),
        m.one_pod_job("b", 2, at="2s", priorityClassName="low"),
        m.patch("5s", "Job", "b", spec={"priorityClassName": "high"}),
        config={"actions": "enqueue, allocate, backfill"},
    )
    assert not answer.lines("rejected")
    assert answer.first_bound()["b-w-0"] == 10.0
    assert "a-w-0" not in answer.first_bound()


# ---- M2 on update: what may not change


def test_m2_what_may_not_change_is_reported_all_at_once() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 2), m.role("b", 1)),
        m.patch(
            "10s", "Job", "j", spec={"queue": "other", "maxRetry": 9, "tasks": [m.role("a", 2, cpu=2), m.role("c", 1)]}
        ),
    )
    message = answer.rejected("j")
    for word in ("spec.queue", "spec.maxRetry", "'b'", "'c'", "spec.tasks[0].template", "may not"):
        assert word in message, f"{word} not in {message}"
    line = answer.lines("rejected", "j")[0]
    assert (line["t"], line["kind"], line["namespace"]) == (10.0, "Job", "default")
    assert answer.obj("Job", "j")["spec"]["queue"] == "default"
    assert answer.pods("j-") == ["j-a-0", "j-a-1", "j-b-0"]


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"tasks": [m.role("a", 2)]}, "may not be removed"),
        ({"tasks": [m.role("a", 2), m.role("b", 1), m.role("c", 1)]}, "may not be added"),
        ({"tasks": [m.role("a", 2), m.role("b", -1)]}, "spec.tasks[1].replicas"),
        ({"tasks": [m.role("a", 2, 3), m.role("b", 1)]}, "spec.tasks[0].minAvailable"),
        ({"tasks": None}, "spec.tasks"),
        ({"schedulerName": "volcano"}, "spec.schedulerName"),
        ({"plugins": {"svc": []}}, "spec.plugins"),
        ({"priorityClassName": "nobody"}, "nobody"),
    ],
)
def test_m2_refused_updates(spec: dict[str, Any], word: str) -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2), m.role("b", 1)), m.patch("10s", "Job", "j", spec=spec))
    assert word in answer.rejected("j")
    assert answer.pods("j-") == ["j-a-0", "j-a-1", "j-b-0"]


def test_m2_a_changed_label_is_no_update_of_the_spec() -> None:
    answer = simulate(
        m.node("n"),
        m.one_pod_job("j"),
        m.patch("10s", "Job", "j", metadata={"labels": {"team": "x"}}),
        m.step("11s", "restart-scheduler"),
    )
    assert not answer.lines("rejected")
    assert answer.obj("Job", "j")["metadata"]["labels"] == {"team": "x"}
    assert len(answer.lines("bound")) == 1


def test_m2_a_queue_closed_since_does_not_stop_scaling() -> None:

    answer = simulate(
        m.node("n", 4),
        m.queue("q"),
        m.job("j", m.role("w", 1), queue="q"),
        m.patch("5s", "Queue", "q", status={"state": "Closed"}),
        m.patch("10s", "Job", "j", spec=scaled(m.role("w", 3))),
    )
    assert not answer.lines("rejected"), answer.rejected("j")
    assert len(answer.first_bound()) == 3


# ---- M3


def test_m3_the_jobs_podgroup() -> None:
    answer = simulate(
        m.node("n", 32),
        m.job(
            "j",
            m.role("master", 5, 3, cpu=2, memory="1Gi"),
            m.role("work", 3, 2, memory="1Gi", extra={"nvidia.com/gpu": "2"}),
        ),
    )
    group = answer.group_of("j")
    spec = group["spec"]
    assert spec["minMember"] == 5
    assert spec["minTaskMember"] == {"master": 3, "work": 2}
    assert spec["minResources"] == {"cpu": "8", "memory": "5Gi", "nvidia.com/gpu": "4"}
    assert spec["queue"] == "default"
    assert group["metadata"]["ownerReferences"][0]["name"] == "j"


def test_m3_a_bare_pods_role_by_annotation_or_label() -> None:

    group = m.podgroup("g", 3, minTaskMember={"ps": 1, "worker": 2})
    ps = m.pod("g-ps", group="g", role="ps")
    first = m.pod("g-w0", group="g", labels={"volcano.sh/task-spec": "worker"})
    second = m.pod("g-w1", group="g", labels={"volcano.sh/task-spec": "worker"}, at="10s")
    extra = m.pod("g-ps2", group="g", role="ps", at="5s")
    answer = simulate(m.node("n", 8), group, ps, first, second, extra)
    assert set(answer.first_bound().values()) == {10.0}, "three pods are not enough while a worker is missing"
    answer = simulate(m.node("n", 8), group, ps, first, extra)
    assert answer.pending("default/g")["missing"] == {"worker": 1}


def test_m2_a_name_that_no_pod_could_carry_is_a_fault_among_others() -> None:
    faults = lint(m.job("A_b", m.role("w", -1))).faults
    assert {"metadata.name", "spec.tasks[0].replicas"} <= {fault.field for fault in faults}


def test_m2_a_job_of_ours_may_not_be_given_to_another_scheduler() -> None:
    patch = m.patch("5s", "Job", "j", spec={"schedulerName": "another", "tasks": [m.role("w", -1)]})
    answer = simulate(m.node("n"), m.job("j", m.role("w", 1)), patch)
    refusal = answer.rejected("j")
    assert "spec.schedulerName: may not change" in refusal
    assert "spec.tasks[0].replicas" in refusal
    assert answer.obj("Job", "j")["spec"]["schedulerName"] == "enbloc"


def test_m2_a_queue_job_that_names_another_scheduler_from_now_on_is_reviewed() -> None:
    patch = m.patch("5s", "QueueJob", "j", spec={"schedulerName": "another", "schedSpec": {"minAvailable": 9}})
    answer = simulate(m.node("n"), m.queue_job("j", m.role("w", 1)), patch)
    assert "spec.schedSpec.minAvailable: 9 is above the 1 replica" in answer.rejected("j")
