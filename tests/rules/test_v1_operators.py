"""V1, M6, G7: PodGroups as operators write them: changed while they live, down to 0; gangs in `minResources` alone;
groups that must be enqueued before their pods exist."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import waits_because
from support.simulation import simulate


def minimum(at: str, value: int, **spec: Any) -> Obj:
    return m.patch(at, "PodGroup", "g", spec={"minMember": value, **spec})


# ---- minMember follows the operator


def test_v1_a_lowered_minimum_starts_what_fits() -> None:
    answer = simulate(m.node("n", 2), m.gang("g", 4), minimum("9s", 2))
    assert answer.times("g-") == [9.0, 9.0]


def test_v1_a_raised_minimum_of_a_waiting_gang_counts() -> None:
    answer = simulate(m.node("n", 2, at="20s"), m.node("late", 2, at="40s"), m.gang("g", 4, 2), minimum("9s", 4))
    assert answer.times("g-") == [40.0] * 4


def test_g7_a_raised_minimum_of_a_running_gang_holds_new_pods_together() -> None:
    """A cluster is scaled from two to four: the two new pods start together or not at all."""
    more = [m.pod(f"g-{n}", group="g", at="9s") for n in (2, 3)]
    objects = [m.node("n", 3), m.node("late", 1, at="40s"), *m.gang("g", 2), minimum("9s", 4), *more]
    assert simulate(objects).times("g-") == [0.0, 0.0, 40.0, 40.0]


def test_g7_a_lowered_minimum_of_a_running_gang_ends_nothing() -> None:
    answer = simulate(m.node("n", 4), m.gang("g", 4), minimum("9s", 1), until="30s")
    assert not answer.evicted()
    assert answer.obj("PodGroup", "g")["status"]["running"] == 4


@pytest.mark.parametrize("resources", [{}, {"cpu": "0"}, None])
def test_v1_a_minimum_of_0_on_a_group_that_is_over(resources: Obj | None) -> None:
    """KubeRay sets minimum and resources of a finished cluster to 0; what comes later starts by itself."""
    pods = m.pods(2, "g-", group="g", run_time="5s")
    group = m.podgroup("g", 2, resources={"cpu": "2"})
    late = m.pods(3, "late-", group="g", at="20s")
    answer = simulate(m.node("n", 2), group, pods, minimum("9s", 0, minResources=resources), late, until="40s")
    assert answer.times("g-") == [0.0, 0.0]
    assert answer.times("late-") == [20.0, 20.0]


def test_v1_a_group_whose_minimum_is_0_starts_pods_one_by_one() -> None:
    answer = simulate(m.node("n", 2), m.gang("g", 3, 0))
    assert answer.times("g-") == [0.0, 0.0]
    assert "cpu" in waits_because(answer.obj("Pod", "g-2"))


def test_v1_up_from_0_the_gang_waits_for_all() -> None:
    pods = m.pods(3, "g-", group="g", at="20s")
    answer = simulate(m.node("n", 2), m.node("late", 1, at="40s"), m.podgroup("g", 0), minimum("9s", 3), pods)
    assert answer.times("g-") == [40.0] * 3


@pytest.mark.parametrize("change", [minimum("9s", 4), minimum("9s", 2)])
def test_g7_a_changed_minimum_survives_a_restart(change: Obj) -> None:
    objects = [m.node("n", 2), m.node("late", 2, at="40s"), *m.gang("g", 4, 3), change]
    assert simulate(objects, m.restart("20s")).times() == simulate(objects).times()


# ---- the gang is in minResources


def spark(name: str, executors: int, at: str | None = None) -> list[Obj]:
    """A driver, and executors that come 5 s later: minMember 1, minResources of all, as Spark's operator writes it."""
    group = m.podgroup(name, 1, resources={"cpu": str(1 + executors)}, at=at)
    begin = int((at or "0s").removesuffix("s"))
    driver = m.pod(f"{name}-driver", group=name, at=f"{begin + 1}s", run_time="60s")
    return [group, driver, *m.pods(executors, f"{name}-exec-", group=name, at=f"{begin + 5}s", run_time="20s")]


def test_m6_a_gang_in_its_resources_alone_waits_for_room_for_all() -> None:
    answer = simulate(m.node("n", 2), m.node("late", 2, at="30s"), spark("a", 3), until="50s")
    assert answer.times("a-") == [30.0] * 4
    assert answer.obj("PodGroup", "a")["status"]["phase"] == "Running"


def test_m6_of_two_only_one_is_enqueued() -> None:
    """The second driver would take room that the first one's executors need."""
    answer = simulate(m.node("n", 4), spark("a", 3), spark("b", 3, at="2s"), until="20s")
    assert len(answer.bound("a-")) == 4
    assert not answer.bound("b-")
    assert answer.obj("PodGroup", "b")["status"]["phase"] == "Pending"


def test_m6_a_gang_in_its_resources_beyond_the_cluster_says_so() -> None:
    answer = simulate(m.node("n", 2), spark("a", 3), until="20s")
    assert not answer.bound()
    assert "the cluster has" in answer.why("default/a")


# ---- enqueued before its pods exist


@pytest.mark.parametrize("resources", [None, {"cpu": "2"}])
def test_m6_a_group_without_pods_is_enqueued(resources: Obj | None) -> None:
    """The training operator creates pods only when the phase is Inqueue."""
    answer = simulate(m.node("n", 2), m.podgroup("g", 2, resources=resources), until="5s")
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Inqueue"


def test_m6_a_group_without_pods_that_could_not_run_is_not_enqueued_and_says_why() -> None:
    answer = simulate(m.node("n", 2), m.podgroup("g", 4, resources={"cpu": "4"}), until="5s")
    group = answer.obj("PodGroup", "g")
    assert group["status"]["phase"] == "Pending"
    [why] = [one for one in group["status"]["conditions"] if one["type"] == "Unschedulable"]
    assert "cpu" in why["message"]


def test_m6_it_is_enqueued_when_a_node_is_added() -> None:
    objects = [m.node("n", 2), m.node("late", 2, at="9s"), m.podgroup("g", 4, resources={"cpu": "4"})]
    answer = simulate(objects, m.pods(4, "g-", group="g", at="12s"))
    assert answer.times("g-") == [12.0] * 4
    [phase] = [one for one in answer.lines("phase") if one.get("to") == "Inqueue"]
    assert phase["t"] == 9.0
