"""G2, exactly fitting: a gang of several roles that greedy placement finds no room for is packed, if there is a way; if
there is none it says so. Greedy spreads: on an empty cluster the first task takes the node that has most."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.core.placement.exact import packing
from enbloc.runtime.control_plane import ControlPlane
from enbloc.sim.simulation import control_plane
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

PACKED = "Enough resources in total, but no assignment of pods to nodes exists."
LAUNCHER_FIRST = [m.role("launcher", 1), m.role("worker", 2, cpu=4)]


def where(answer: Answer) -> dict[str, str]:
    return {name: place for name, (_, place) in answer.bound().items()}


def test_g2_exactly_fitting_launcher_leaves_room_for_the_workers() -> None:
    answer = simulate(m.node("a"), m.node("b"), m.node("c", 1), m.job("j", *LAUNCHER_FIRST))
    assert where(answer) == {"j-launcher-0": "c", "j-worker-0": "a", "j-worker-1": "b"}
    assert set(answer.times()) == {0.0}


def test_g2_exactly_fitting_two_resources_that_cross() -> None:
    wide, tall = m.role("wide", 2, cpu=3, memory="1Gi"), m.role("tall", 2, cpu=1, memory="3Gi")
    answer = simulate(m.node("a", 4, "4Gi"), m.node("b", 4, "4Gi"), m.job("j", wide, tall))
    assert sorted(where(answer).values()) == ["a", "a", "b", "b"]


def test_g2_exactly_fitting_a_pod_that_fits_anywhere_goes_elsewhere() -> None:
    picky = m.role("picky", 1, cpu=4, nodeSelector={"fast": "yes"})
    answer = simulate(m.node("a", labels={"fast": "yes"}), m.node("b"), m.job("j", m.role("any", 1, cpu=4), picky))
    assert where(answer) == {"j-any-0": "b", "j-picky-0": "a"}


def test_g2_exactly_fitting_says_when_no_packing_does() -> None:
    roles = [m.role("small", 1, cpu=2), m.role("large", 2, cpu=3)]
    answer = simulate(m.node("a"), m.node("b"), m.job("j", *roles))
    assert not answer.bound()
    assert answer.why("default/j").endswith("0/2 nodes are available: 2 Insufficient cpu. " + PACKED)
    assert PACKED in answer.obj("Pod", "j-large-0")["status"]["conditions"][0]["message"]


@pytest.mark.parametrize(
    "docs",
    [
        [m.node("a"), m.node("b"), m.job("j", *LAUNCHER_FIRST)],  # the room is not there, however it is shared out
        [m.node("a"), m.node("b"), m.job("j", m.role("worker", 3, cpu=3))],  # of one role: the reasons say it all
        [m.node("a", 2), m.node("b"), m.job("j", m.role("l", 1), m.role("w", 1, nodeSelector={"no": "such"}))],
        [m.node("a"), m.node("b"), m.node("c", 8, unschedulable=True), m.job("j", *LAUNCHER_FIRST)],
    ],
    ids=["too little", "one role", "no such node", "cordoned"],
)
def test_g2_exactly_fitting_says_nothing_of_packing_where_that_is_not_the_matter(docs: list[m.Obj]) -> None:
    answer = simulate(docs)
    assert not answer.bound()
    assert answer.why("default/j")
    assert PACKED not in answer.why("default/j")


def test_g2_exactly_fitting_says_nothing_of_what_was_not_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_exactly", lambda *facts: packing.Failure.GAVE_UP)
    answer = simulate(m.node("a"), m.node("b"), m.job("j", m.role("small", 1, cpu=2), m.role("large", 2, cpu=3)))
    assert not answer.bound()
    assert PACKED not in answer.why("default/j")


def test_g3_exactly_fitting_others_make_up_the_total() -> None:
    """Of five 3 must run, one of them small: which others is open, and not all of them could."""
    members = [m.pod("g-s0", 1, group="g", role="s"), m.pod("g-x0", 5, group="g", role="x")]
    members += [m.pod(f"g-l{i}", 4, group="g", role="l") for i in range(3)]
    answer = simulate(m.node("a"), m.node("b"), m.node("c", 1), m.podgroup("g", 3, roles={"s": 1}), members)
    assert where(answer) == {"g-s0": "c", "g-l0": "a", "g-l1": "b"}


def test_o2_exactly_fitting_tasks_are_bound_in_order() -> None:
    answer = simulate(
        m.node("a"), m.node("b"), m.node("c", 2), m.job("j", m.role("launcher", 2), m.role("worker", 2, cpu=4))
    )
    assert answer.order() == ["j-launcher-0", "j-worker-0", "j-launcher-1", "j-worker-1"]
    assert where(answer)["j-launcher-1"] == "c"


def test_v4_exactly_fitting_keeps_to_what_a_queue_may_use() -> None:
    nodes = [m.node("a"), m.node("b"), m.node("c", 1)]
    capped = m.queue("q", capability={"cpu": "8"})
    answer = simulate(nodes, capped, m.job("j", *LAUNCHER_FIRST, queue="q"), config={"actions": "allocate"})
    assert not answer.bound()
    assert PACKED not in answer.why("default/j")
    capped = m.queue("q", capability={"cpu": "9"})
    assert len(simulate(nodes, capped, m.job("j", *LAUNCHER_FIRST, queue="q")).bound()) == 3
    kept = m.queue("other", guarantee={"cpu": "1"})
    assert not simulate(nodes, kept, m.queue("q"), m.job("j", *LAUNCHER_FIRST, queue="q")).bound()
    assert len(simulate(nodes, m.node("d", 1), kept, m.queue("q"), m.job("j", *LAUNCHER_FIRST, queue="q")).bound()) == 3


def test_k7_exactly_fitting_gangs_of_a_group_are_packed_together() -> None:
    """The first gang's pod is best placed where the second's only fits."""
    groups = ["default/one", "default/two"]
    docs = [
        m.node("a"),
        m.node("b"),
        m.node("c", 1),
        m.koordinator_gang("one", 1, groups=groups),
        m.koordinator_gang("two", 2, cpu=4, groups=groups),
    ]
    answer = simulate(*docs)
    assert where(answer) == {"one-0": "c", "two-0": "a", "two-1": "b"}
    loose = [
        m.node("a"),
        m.node("b"),
        m.koordinator_gang("one", 1, 1, 2, groups=groups),
        m.koordinator_gang("two", 2, cpu=3, groups=groups),
    ]
    answer = simulate(*loose)
    assert not answer.bound()
    assert PACKED in answer.why("default/one")
    assert PACKED in answer.why("default/two")


def test_k6_exactly_fitting_what_is_held_is_moved_if_that_lets_all_start() -> None:
    groups = ["default/one", "default/two"]
    one = m.koordinator_gang("one", 1, groups=groups, mode=m.NON_STRICT)
    two = m.koordinator_gang("two", 2, cpu=4, groups=groups, mode=m.NON_STRICT)
    answer = simulate(m.node("a"), m.node("b"), m.node("c", 1, at="5s"), one, two)
    assert where(answer) == {"one-0": "c", "two-0": "a", "two-1": "b"}
    assert set(answer.times()) == {5.0}


def test_d5_exactly_fitting_finds_room_for_later_waves_too() -> None:
    workers = {**m.role("worker", 2, cpu=4), "dependsOn": {"name": ["launcher"]}}
    whole = m.job("j", m.role("launcher", 1), workers)
    whole["metadata"].setdefault("annotations", {})["enbloc.dev/depends-on-gang"] = "true"
    answer = simulate(m.node("a"), m.node("b"), m.node("c", 1), whole)
    assert where(answer) == {"j-launcher-0": "c", "j-worker-0": "a", "j-worker-1": "b"}


def test_g6_exactly_fitting_leaves_out_pods_with_stateful_filters() -> None:
    """Greedy alone decides, and what it says is the usual."""
    ports = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "4"}}}]}
    answer = simulate(m.node("a"), m.node("b"), m.node("c", 1), m.job("j", m.role("l", 1), m.role("w", 2, **ports)))
    assert not answer.bound()
    assert PACKED not in answer.why("default/j")


def test_g9_exactly_fitting_the_same_search_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Any] = []
    real = packing._exactly
    monkeypatch.setattr(packing, "_exactly", lambda *facts: searches.append(facts) or real(*facts))
    planes: list[ControlPlane] = []

    def plane(store: Any, config: Any) -> Any:
        planes.append(control_plane(store, config))  # type: ignore[arg-type]
        return planes[-1]

    waits = m.job("j", m.role("small", 1, cpu=2), m.role("large", 2, cpu=3))
    elsewhere = m.node("far", 8, labels={"far": "yes"}, taints=[{"key": "far", "effect": "NoSchedule"}])
    tolerant = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"far": "yes"}}
    others = [m.pod(f"other-{at}", 1, at=f"{at}s", run_time="1s", **tolerant) for at in (1, 3, 5)]
    answer = simulate(m.node("a"), m.node("b"), elsewhere, waits, others, plane=plane)
    assert PACKED in answer.why("default/j")
    assert len(answer.bound("other")) == 3
    assert len(searches) == 1
    engine = planes[-1].scheduler.engine
    engine.force()
    assert engine.run(engine.now_ns) == []


def test_g10_exactly_fitting_what_was_said_changes_with_the_room() -> None:
    """First too little, then enough in total and in the wrong places, then a place for the last one."""
    roles = [m.role("small", 1, cpu=2), m.role("large", 2, cpu=3)]
    docs = [m.node("a"), m.node("b", 3), m.node("c", 1, at="1s"), m.step("2s", "patch", "Node", "b", patch=_cpu(5))]
    answer = simulate(docs, m.job("j", *roles), config={"actions": "allocate"})
    reported = [line["message"] for line in answer.lines("warning", kind="PodGroup")]
    assert [PACKED in one for one in reported] == [False, True]
    assert where(answer) == {"j-small-0": "b", "j-large-0": "a", "j-large-1": "b"}


def _cpu(count: int) -> m.Obj:
    return {"status": {"allocatable": {"cpu": str(count)}}}


def test_g2_exactly_fitting_no_pod_is_bound_beyond_what_fits() -> None:
    answer = simulate(
        m.node("a", 6),
        m.node("b", 5),
        m.node("c", 4),
        m.gang("first", 2, cpu=1),
        m.job("j", m.role("x", 2, cpu=3), m.role("y", 2, cpu=2), m.role("z", 3)),
    )
    used: dict[str, int] = {}
    for name, place in where(answer).items():
        used[place] = used.get(place, 0) + {"x": 3, "y": 2}.get(name.split("-")[1], 1)
    assert len(answer.bound("j")) == 7
    assert all(used[name] <= cpu for name, cpu in (("a", 6), ("b", 5), ("c", 4)))


def test_g2_a_pod_that_asks_for_no_gpu_may_go_where_there_is_none() -> None:
    """Greedily the launcher goes to the emptier node, which is the only one with a GPU for the worker."""
    gpu = {"nvidia.com/gpu": 1}
    job = m.job("j", m.role("launcher", 1, cpu=2), m.role("worker", 1, cpu=2, extra=gpu))
    answer = simulate(m.node("plain", 2), m.node("with-gpu", 3, extra=gpu), job, until="10s")
    assert answer.bound("j-") == {"j-launcher-0": (0.0, "plain"), "j-worker-0": (0.0, "with-gpu")}
