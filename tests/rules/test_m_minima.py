"""M4: readiness by role first, then in total."""

from __future__ import annotations

from support import manifests as m
from support.answers import waits_because
from support.simulation import NO_ENQUEUE, simulate


def test_m4_each_role_needs_its_own_minimum() -> None:
    """Enough pods in all are no gang while one role lacks some."""
    group = m.podgroup("a", 3, roles={"master": 1, "work": 2})
    masters = m.pods(4, "m", group="a", role="master")
    answer = simulate(
        m.node("n", 9),
        group,
        masters,
        m.pod("w0", group="a", role="work"),
        m.pod("w1", group="a", role="work", at="8s"),
    )
    assert set(answer.times()) == {8.0}
    assert len(answer.bound()) == 6


def test_m4_the_total_is_checked_after_the_roles() -> None:
    group = m.podgroup("a", 5, roles={"master": 1, "work": 1})
    members = [m.pod("m0", group="a", role="master"), *m.pods(4, "w", group="a", role="work")]
    assert not simulate(m.node("n", 4), group, members).bound()
    assert len(simulate(m.node("n", 5), group, members).bound()) == 5


def test_m4_a_role_without_a_minimum_is_skipped() -> None:
    group = m.podgroup("a", 2, roles={"work": 2})
    members = [*m.pods(2, "w", group="a", role="work"), m.pod("extra", 50, group="a", role="extra")]
    answer = simulate(m.node("n", 4), group, members)
    assert sorted(answer.bound()) == ["w0", "w1"]
    assert not answer.waits("default/a")


def test_m4_a_minimum_of_zero_is_none() -> None:
    group = m.podgroup("a", 2, roles={"work": 2, "extra": 0})
    answer = simulate(m.node("n", 4), group, m.pods(2, "w", group="a", role="work"))
    assert len(answer.bound()) == 2
    optional = m.job("j", m.role("work", 2, 2), m.role("extra", 2, 0, cpu=50))
    assert sorted(simulate(m.node("n", 4), optional).bound()) == ["j-work-0", "j-work-1"]


def test_m4_the_role_may_be_named_by_a_label() -> None:
    group = m.podgroup("a", 2, roles={"master": 1, "work": 1})
    members = [m.pod(f"{name}-0", group="a", labels={"volcano.sh/task-spec": name}) for name in ("master", "work")]
    assert len(simulate(m.node("n", 4), group, members).bound()) == 2


def test_m4_a_role_whose_room_is_short_keeps_the_others_waiting() -> None:
    big = m.job("j", m.role("small", 3), m.role("big", 2, cpu=3))
    answer = simulate(m.node("n", 6), big, config=NO_ENQUEUE)
    assert not answer.bound()
    assert answer.pending("default/j")["missing"] == {"big": 1}
    for one in answer.all("Pod"):
        assert "1 of 2 pods of role big" in waits_because(one)


def test_m4_succeeded_members_of_a_role_count_failed_ones_do_not() -> None:
    group = m.podgroup("a", 3, roles={"master": 1, "work": 2})
    done = [
        m.pod("m0", group="a", role="master", nodeName="n", run_time="1s"),
        m.pod("w0", group="a", role="work", nodeName="n", run_time="1s", exit_code="1"),
    ]
    late = m.pods(2, "late", group="a", role="work", at="5s")
    answer = simulate(m.node("n", 4), group, done, late[:1])
    assert not answer.bound("late")
    assert answer.pending("default/a")["missing"] == {"work": 1}
    assert simulate(m.node("n", 4), group, done, late).times("late") == [5.0, 5.0]
