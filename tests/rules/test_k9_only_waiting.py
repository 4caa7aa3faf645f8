"""K9, G10: a gang of which only waiting pods count, and none waits, lacks nothing; nor does one all of whose pods run,
in a group that waits."""

from __future__ import annotations

import pytest

from enbloc.api.koordinator import TIMEOUT
from support import manifests as m
from support.answers import waits_because
from support.simulation import simulate

POLICY = {"gang.scheduling.koordinator.sh/match-policy": "only-waiting"}


def group() -> m.Obj:
    found = m.sigs_podgroup("g", 2)
    found["metadata"].setdefault("annotations", {}).update(POLICY)
    return found


def test_k9_g10_a_gang_whose_pods_all_run_says_nothing() -> None:
    answer = simulate(m.node("n", 4), group(), m.labelled_pods("g", 2, run_time="30s"))
    assert answer.times("g-") == [0.0, 0.0]
    assert not answer.lines("warning")
    assert not waits_because(answer.obj("PodGroup", "g"))


def later(pod: m.Obj) -> m.Obj:
    pod["metadata"].setdefault("annotations", {})["sim.enbloc.dev/at"] = "10s"
    return pod


def test_k9_g10_one_more_pod_waits_for_another_and_says_so() -> None:
    late = m.labelled_pods("g", 3)[2]
    answer = simulate(m.node("n", 4), group(), m.labelled_pods("g", 2), later(late))
    assert "1 more is needed" in waits_because(answer.obj("PodGroup", "g"))


def test_k9_g10_new_pods_that_a_gate_holds_are_said() -> None:
    held = [later(pod) for pod in m.labelled_pods("g", 4, schedulingGates=[{"name": "example.com/hold"}])[2:]]
    answer = simulate(m.node("n", 4), group(), m.labelled_pods("g", 2), held)
    assert answer.times("g-")[:2] == [0.0, 0.0]
    assert "held by scheduling gate example.com/hold" in waits_because(answer.obj("PodGroup", "g"))


def test_k9_g10_new_pods_that_timed_out_are_said() -> None:
    late = [later(pod) for pod in m.labelled_pods("g", 4, annotations={TIMEOUT: "true"})[2:]]
    answer = simulate(m.node("n", 4), group(), m.labelled_pods("g", 2), late)
    assert "timed out" in waits_because(answer.obj("PodGroup", "g"))


def test_k9_g10_a_queue_that_is_gone_is_said_though_none_waits() -> None:
    team = m.queue("team", delete_at="10s")
    found = group()
    found["metadata"].setdefault("labels", {})["volcano.sh/queue-name"] = "team"
    answer = simulate(m.node("n", 4), team, found, m.labelled_pods("g", 2))
    assert "team" in waits_because(answer.obj("PodGroup", "g"))


def test_k9_a_gang_of_which_none_waits_is_not_in_its_groups_way() -> None:
    """Pods of the other gang that come later are placed, and their time does not run out (K7, K8)."""
    both = ["default/g", "default/h"]
    found = m.sigs_podgroup("g", 2, groups=both)
    found["metadata"]["annotations"].update(POLICY)
    other = m.sigs_podgroup("h", 2, groups=both, scheduleTimeoutSeconds=20)
    other["metadata"]["annotations"] |= {"gang.scheduling.koordinator.sh/match-policy": "waiting-and-running"}
    late = later(m.labelled_pods("h", 3)[2])
    answer = simulate(m.node("n", 8), found, other, m.labelled_pods("g", 2), m.labelled_pods("h", 2), late)
    assert answer.times("g-") == [0.0] * 2
    assert answer.at("h-2") == 10.0
    assert not answer.lines("timeout")


@pytest.mark.parametrize("policy", ["waiting-and-running", "only-waiting"])
@pytest.mark.parametrize("again", [False, True], ids=["lost", "no-room"])
def test_k9_g10_a_gang_whose_pods_all_run_says_nothing_though_its_group_waits(policy: str, again: bool) -> None:
    """The other gang loses a pod; what comes for it finds no room."""
    both = ["default/g", "default/h"]
    groups = [m.sigs_podgroup(name, 2, groups=both, scheduleTimeoutSeconds=500) for name in ("g", "h")]
    for one in groups:
        one["metadata"]["annotations"] |= {"gang.scheduling.koordinator.sh/match-policy": policy}
    late = [later(m.labelled_pods("h", 3)[2]), m.pod("in-its-place", at="6s")] if again else []
    answer = simulate(
        m.node("n", 4),
        groups,
        m.labelled_pods("g", 2),
        m.labelled_pods("h", 2),
        m.step("5s", "delete", "Pod", "h-0"),
        late,
        until="60s",
    )
    assert answer.times("g-") == [0.0, 0.0]
    assert not waits_because(answer.obj("PodGroup", "g"))
    assert not [line for line in answer.lines("warning") if line["name"].startswith("g")]
    assert bool(waits_because(answer.obj("PodGroup", "h"))) == (again or policy == "waiting-and-running")


def test_k9_a_held_pod_waits_too() -> None:
    """Of two pods that come later one is held, the other is deleted: a third one is missing, and is said to be."""
    found = m.sigs_podgroup("g", 2, mode="NonStrict", scheduleTimeoutSeconds=500)
    found["metadata"]["annotations"].update(POLICY)
    late = [later(pod) for pod in m.labelled_pods("g", 4)[2:]]
    answer = simulate(
        m.node("n", 3), found, m.labelled_pods("g", 2), late, m.step("20s", "delete", "Pod", "g-3"), until="60s"
    )
    assert [line["name"] for line in answer.lines("held")] == ["g-2"]
    assert "1 more is needed" in waits_because(answer.obj("PodGroup", "g"))


@pytest.mark.parametrize("groups", [[], ["default/g", "default/h"]], ids=["alone", "in-a-group"])
def test_k9_of_pods_that_come_later_too_few_are_left(groups: list[str]) -> None:
    """Five come, two and two are placed; the fifth waits for another."""
    found = m.sigs_podgroup("g", 2, groups=groups, scheduleTimeoutSeconds=500)
    found["metadata"]["annotations"].update(POLICY)
    late = [later(pod) for pod in m.labelled_pods("g", 7)[2:]]
    other = m.koordinator_gang("h", 1, groups=groups) if groups else []
    answer = simulate(m.node("n", 9), found, other, m.labelled_pods("g", 2), late, until="60s")
    assert answer.times("g-") == [0.0] * 2 + [10.0] * 4
    assert "1 more is needed" in waits_because(answer.obj("PodGroup", "g"))
