"""Bugs that random scenarios and a claim-by-claim reading of the designs found, and that no other test shows."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.reservations import CLASSES, full, released, reserved, reserving
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


@pytest.mark.parametrize("restarts", [(), ("10s",)], ids=["", "restarted"])
def test_k8_a_podgroup_that_comes_after_its_pod_has_its_own_waiting_time(restarts: tuple[str, ...]) -> None:
    """Until it comes the default stands for it (600 s); both say 15 s."""
    answer = simulate(
        m.sigs_podgroup("a", 1, groups=GROUP, wait="15s"),
        m.labelled_pods("a", 1),
        m.labelled_pods("b", 1),
        m.sigs_podgroup("b", 2, groups=GROUP, wait="15s", at="5s"),
        [m.restart(at) for at in restarts],
    )
    assert [(line["t"], line["name"]) for line in answer.lines("timeout")] == [(15.0, "a-0"), (15.0, "b-0")]


def test_r7_a_group_whose_reserved_node_is_lost_is_reserved_for_elsewhere_at_once() -> None:
    """Its own reservation of the other node is not in its way (R6: two of three nodes)."""
    answer = simulate(
        [m.node(f"n{index}") for index in range(3)],
        [full(4, run="80s", on=f"n{index}", name=f"full-{index}") for index in range(3)],
        m.koordinator_gang("a", 1, cpu=4, groups=GROUP),
        m.koordinator_gang("b", 1, cpu=4, groups=GROUP),
        m.step("30s", "fail-node", target={"name": "n1"}),
        m.pods(3, "s-", at="20s"),
        config=reserving(10, percent=60),
        until="200s",
    )
    assert {line["node"] for line in answer.lines("reserved") if line["t"] == 10.0} == {"n0", "n1"}
    assert {where for _, where in reserved(answer).values()} == {"n0", "n2"}
    assert {at for at, _ in released(answer)} <= {30.0, 80.0}
    assert answer.times("a-") == answer.times("b-") == [80.0]


@pytest.mark.parametrize("restarts", [(), ("36s",)], ids=["", "restarted"])
def test_k8_the_clock_of_a_group_that_has_a_reservation_survives_a_restart(restarts: tuple[str, ...]) -> None:
    """The clock runs from 0 s, when `a` is complete and `b` is not; from 20 s on nodes are reserved for both."""
    answer = simulate(
        m.node("n"),
        full(4, run="300s"),
        m.koordinator_gang("a", 1, cpu=2, groups=GROUP, wait="40s"),
        m.koordinator_gang("b", 1, 2, cpu=1, groups=GROUP, wait="40s"),
        m.koordinator_gang("b", 1, 2, cpu=1, first=1, groups=GROUP, wait="40s", at="20s"),
        [m.restart(at) for at in restarts],
        config=reserving(10),
    )
    assert set(reserved(answer)) == {"a-0", "b-0", "b-1"}
    assert {line["t"] for line in answer.lines("timeout")} == {40.0}


@pytest.mark.parametrize("restarts", [(), ("0.5s",)], ids=["", "restarted"])
def test_g8_m6_a_restart_does_not_change_which_of_two_equal_gangs_is_enqueued_first(restarts: tuple[str, ...]) -> None:
    """Their pods are older than their PodGroups. Of 21.6 cpu 9.6 are left: the first is enqueued from free room, and
    counts; the second by what it may preempt, and does not; 3.6 are left for a third."""
    answer = simulate(
        CLASSES,
        m.node("n", 18),
        m.pods(4, "low-", cpu=3, priority="low"),
        [m.pod(f"{name}-0", 0, group=name, priority="high") for name in ("g1", "g2")],
        m.podgroup("g1", 3, at="20s", resources={"cpu": "6"}),
        m.podgroup("g2", 3, at="20s", resources={"cpu": "4"}),
        m.podgroup("g3", 1, at="21s", resources={"cpu": "3"}),
        [m.restart(at) for at in restarts],
        until="30s",
    )
    grounds = {}
    for name in ("g1", "g2", "g3"):
        conditions = answer.obj("PodGroup", name)["status"]["conditions"]
        grounds[name] = next((one["reason"] for one in conditions if one["type"] == "Enqueued"), None)
    assert grounds == {"g1": "Enqueued", "g2": "Preempting", "g3": "Enqueued"}


@pytest.mark.parametrize("api, label", [(m.SIGS, m.SIGS_LABEL), (m.PLUGINS, m.PLUGINS_LABEL)])
@pytest.mark.parametrize("mode", [None, m.NON_STRICT])
def test_k7_r7_no_node_is_reserved_for_min_resources_beyond_the_cluster(api: str, label: str, mode: str | None) -> None:
    answer = simulate(
        m.node("n"),
        m.sigs_podgroup("g", 2, api=api, mode=mode, minResources={"cpu": "5"}),
        m.labelled_pods("g", 2, label),
        m.pod("next", 1, at="20s"),
        config=reserving(10, percent=100),
    )
    assert not reserved(answer)
    assert answer.at("next") == 20.0
    assert answer.why("default/g") == "minResources requests 5 cpu; the cluster has 4"


def test_g10_a_group_is_not_said_to_wait_for_the_nodes_that_are_reserved_for_itself() -> None:
    answer = simulate(
        m.node("n"),
        full(4, run="300s"),
        m.koordinator_gang("a", 1, cpu=2, groups=GROUP),
        m.koordinator_gang("b", 1, cpu=2, groups=GROUP),
        config=reserving(10),
        until="60s",
    )
    assert set(reserved(answer)) == {"a-0", "b-0"}
    for name in ("default/a", "default/b"):
        assert "was(were) reserved" not in answer.why(name)
        assert answer.why(name).endswith("room is reserved for it on n")


@pytest.mark.parametrize("restarts", [(), ("15s",), ("25s",), ("45s",)], ids=["", "strict", "nonstrict", "half-free"])
def test_r7_i5_a_reserved_gang_that_becomes_nonstrict_keeps_its_nodes(restarts: tuple[str, ...]) -> None:
    """A group holds nothing on nodes that are reserved for it (R5): both pods start when the second node is free."""
    mode = {"metadata": {"annotations": {m.KOORDINATOR + "mode": m.NON_STRICT}}}
    changed = m.step("20s", "patch", "PodGroup", "g", patch=mode)
    changed["target"]["apiVersion"] = m.SIGS
    answer = simulate(
        m.node("n0"),
        m.node("n1"),
        full(4, on="n0", run="60s", name="full-0"),
        full(2, on="n1", run="40s", name="full-1"),
        m.sigs_podgroup("g", 2),
        m.labelled_pods("g", 2, cpu=4),
        m.pod("small", 1, at="30s", run_time="100s"),
        changed,
        [m.restart(at) for at in restarts],
        config=reserving(10, percent=100),
    )
    assert answer.times("g-") == [60.0, 60.0]
    assert answer.at("small") is None, "no pod starts on its nodes"
