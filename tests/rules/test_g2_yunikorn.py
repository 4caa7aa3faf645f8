"""G2, D5, G8, K3 for YuniKorn's task groups: the members that exist start together with room for those that do not."""

from __future__ import annotations

import json

import pytest

from enbloc.gangs.yunikorn import MOST_MEMBERS, read_task_groups
from support import manifests as m
from support.simulation import simulate

GROUPS = "yunikorn.apache.org/task-groups"
GROUP = "yunikorn.apache.org/task-group-name"


def test_g2_all_or_nothing() -> None:
    pods = m.yunikorn_pods("a", {"head": 1, "worker": 2}, head=1, worker=2)
    answer = simulate(m.node("n", 2), m.node("late", 4, at="30s"), *pods)
    assert answer.times("a-") == [30.0] * 3


def test_m4_each_task_group_has_its_minimum() -> None:
    """Room for three pods: two workers and no head would not do."""
    pods = m.yunikorn_pods("a", {"head": 1, "worker": 2}, head=1, worker=5)
    answer = simulate(m.node("n", 3), *pods)
    assert len(answer.bound("a-head-")) == 1
    assert len(answer.bound("a-worker-")) == 2


def test_d5_a_driver_starts_with_room_for_its_executors() -> None:
    """The executors are created after the driver runs, one after the other; another pod does not take their room."""
    driver = m.yunikorn_pods("a", {"driver": 1, "executor": 2}, driver=1)
    executors = [
        m.pod(f"a-executor-{n}", annotations={GROUP: "executor"}, labels={"applicationId": "a"}, at=f"{20 + 10 * n}s")
        for n in range(2)
    ]
    other = m.pod("other", 1, at="10s")
    answer = simulate(m.node("n", 3), *driver, *executors, other, until="60s")
    assert answer.times("a-") == [0.0, 20.0, 30.0]
    assert not answer.bound("other")


def test_d5_a_driver_waits_while_its_executors_would_not_fit() -> None:
    answer = simulate(m.node("n", 2), m.node("late", 1, at="40s"), m.yunikorn_pods("a", {"d": 1, "e": 2}, d=1))
    assert answer.times("a-") == [40.0]


def test_d5_room_of_executors_survives_a_restart() -> None:
    driver = m.yunikorn_pods("a", {"driver": 1, "executor": 2}, driver=1)
    late = m.pod("a-e-0", annotations={GROUP: "executor"}, labels={"applicationId": "a"}, at="40s")
    other = m.pod("other", 1, at="30s")
    answer = simulate(m.node("n", 3), *driver, other, late, m.restart("20s"), until="60s")
    assert answer.times("a-") == [0.0, 40.0]
    assert not answer.bound("other")


def test_d5_room_of_executors_that_are_never_created_is_released() -> None:
    driver = m.yunikorn_pods("a", {"driver": 1, "executor": 2}, driver=1)
    config = {"dependsOn": {"gangDeadline": "60s"}}
    answer = simulate(m.node("n", 3), *driver, m.pod("other", at="10s"), until="90s", config=config)
    assert answer.times("other") == [60.0]


def test_d5_placeholders_go_where_their_task_group_says() -> None:
    asked = m.task_groups({"d": 1}), m.task_groups({"e": 1}, nodeSelector={"gpu": "yes"})
    groups = json.dumps([one for text in asked for one in json.loads(text)])
    driver = m.pod("a-d-0", annotations={GROUPS: groups, GROUP: "d"}, labels={"applicationId": "a"})
    answer = simulate(m.node("n", 4), m.node("g", 1, labels={"gpu": "yes"}, at="9s"), driver)
    assert answer.times("a-") == [9.0]


def test_g7_a_lost_member_is_replaced_by_itself() -> None:
    pods = m.yunikorn_pods("a", {"w": 3}, w=3)
    pods[1]["metadata"]["annotations"][m.SIM + "delete-at"] = "10s"
    again = m.pod("a-w-9", annotations={GROUP: "w"}, labels={"applicationId": "a"}, at="20s")
    answer = simulate(m.node("n", 3), *pods, again)
    assert answer.times("a-") == [0.0, 0.0, 0.0, 20.0]


@pytest.mark.parametrize("labels", [{"yunikorn.apache.org/queue": "root.team"}, {"queue": "root.team"}])
def test_g8_the_queue_of_the_application(labels: dict[str, str]) -> None:
    pods = m.yunikorn_pods("a", {"w": 2}, w=2)
    for one in pods:
        one["metadata"]["labels"] |= labels
    answer = simulate(m.node("n"), m.queue("team", capability={"cpu": "1"}), *pods)
    assert not answer.bound()
    answer = simulate(m.node("n"), *pods)
    assert "queue team does not exist" in answer.why("default/a")


def test_k4_pods_wait_for_the_pod_that_declares_their_task_group() -> None:
    first = m.yunikorn_pods("a", {"w": 2}, w=2, at="15s")[:1]
    others = m.yunikorn_pods("a", {}, w=2)[1:]
    answer = simulate(m.node("n"), *others, *first)
    assert answer.times("a-") == [15.0, 15.0]
    answer = simulate(m.node("n"), *others)
    assert GROUPS in answer.why("default/a")


def test_n1_a_task_group_that_is_not_declared_keeps_the_application_waiting() -> None:
    pods = [*m.yunikorn_pods("a", {"w": 1}, w=1), *m.yunikorn_pods("a", {}, typo=1)]
    assert "task group typo is not declared" in simulate(m.node("n"), *pods).why("default/a")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        "[1]",
        '[{"minMember": 1, "minResource": {}}]',
        '[{"name": "w", "minMember": 0, "minResource": {}}]',
        '[{"name": "w", "minMember": "2", "minResource": {}}]',
        '[{"name": "w", "minMember": 1}]',
        '[{"name": "w", "minMember": 1, "minResource": {"cpu": "much"}}]',
        '[{"name": "w", "minMember": 1, "minResource": {}, "tolerations": 3}]',
        '[{"name": "w", "minMember": 1, "minResource": {}, "labels": {"a": 1}}]',
        '[{"name": "w", "minMember": 1, "minResource": {}}, {"name": "w", "minMember": 1, "minResource": {}}]',
        f'[{{"name": "w", "minMember": {MOST_MEMBERS + 1}, "minResource": {{}}}}]',
        "[" * 5000,
        '"\\ud800"',
    ],
)
def test_k3_bad_task_groups_keep_the_application_waiting(text: str) -> None:
    assert read_task_groups(text).problem
    pod = m.pod("a-0", annotations={GROUPS: text, GROUP: "w"}, labels={"applicationId": "a"})
    answer = simulate(m.node("n"), pod)
    assert not answer.bound()
    assert GROUPS in answer.why("default/a")
    assert any(GROUPS in warning for warning in answer.warnings())
