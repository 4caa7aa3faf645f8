"""G2, exactly fitting: a gang of several roles that greedy placement finds no room for is packed, if there is a way; if
there is none it says so. Greedy spreads: on an empty cluster the first task takes the node that has most."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.cycle import cycle
from enbloc.engine.placement.exact import packing
from enbloc.runtime.control_plane import ControlPlane
from enbloc.sim.simulation import control_plane
from gang_stories import NON_STRICT, kgang
from stories import Answer, Obj, gang, job, node, pod, podgroup, queue, role, simulate, step

PACKED = "does not fit even if packed perfectly"
LAUNCHER_FIRST = [role("launcher", 1), role("worker", 2, cpu=4)]


def where(answer: Answer) -> dict[str, str]:
    return {name: place for name, (_, place) in answer.bound().items()}


def test_g2_exactly_fitting_launcher_leaves_room_for_the_workers() -> None:
    answer = simulate(node("a"), node("b"), node("c", 1), job("j", *LAUNCHER_FIRST))
    assert where(answer) == {"j-launcher-0": "c", "j-worker-0": "a", "j-worker-1": "b"}
    assert set(answer.times()) == {0.0}


def test_g2_exactly_fitting_two_resources_that_cross() -> None:
    wide, tall = role("wide", 2, cpu=3, memory="1Gi"), role("tall", 2, cpu=1, memory="3Gi")
    answer = simulate(node("a", 4, "4Gi"), node("b", 4, "4Gi"), job("j", wide, tall))
    assert sorted(where(answer).values()) == ["a", "a", "b", "b"]


def test_g2_exactly_fitting_who_may_go_anywhere_goes_elsewhere() -> None:
    picky = role("picky", 1, cpu=4, nodeSelector={"fast": "yes"})
    answer = simulate(node("a", labels={"fast": "yes"}), node("b"), job("j", role("any", 1, cpu=4), picky))
    assert where(answer) == {"j-any-0": "b", "j-picky-0": "a"}


def test_g2_exactly_fitting_says_when_no_packing_does() -> None:
    roles = [role("small", 1, cpu=2), role("large", 2, cpu=3)]
    answer = simulate(node("a"), node("b"), job("j", *roles))
    assert not answer.bound()
    assert answer.why("default/j").endswith(
        "0/2 nodes are available: 2 Insufficient cpu. In total the free room would do, but it " + PACKED + "."
    )
    assert PACKED in answer.obj("Pod", "j-large-0")["status"]["conditions"][0]["message"]


@pytest.mark.parametrize(
    "docs",
    [
        [node("a"), node("b"), job("j", *LAUNCHER_FIRST)],  # the room is not there, however it is shared out
        [node("a"), node("b"), job("j", role("worker", 3, cpu=3))],  # of one role: the reasons say it all
        [node("a", 2), node("b"), job("j", role("l", 1), role("w", 1, nodeSelector={"no": "such"}))],
        [node("a"), node("b"), node("c", 8, unschedulable=True), job("j", *LAUNCHER_FIRST)],
    ],
    ids=["too little", "one role", "no such node", "cordoned"],
)
def test_g2_exactly_fitting_says_nothing_of_packing_where_that_is_not_the_matter(docs: list[Obj]) -> None:
    answer = simulate(docs)
    assert not answer.bound()
    assert answer.why("default/j")
    assert PACKED not in answer.why("default/j")


def test_g2_exactly_fitting_says_nothing_of_what_was_not_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_exactly", lambda *facts: packing.Failure.GAVE_UP)
    answer = simulate(node("a"), node("b"), job("j", role("small", 1, cpu=2), role("large", 2, cpu=3)))
    assert not answer.bound()
    assert PACKED not in answer.why("default/j")


def test_g3_exactly_fitting_others_make_up_the_total() -> None:
    """Of five 3 must run, one of them small: which others is open, and not all of them could."""
    members = [pod("g-s0", 1, group="g", role="s"), pod("g-x0", 5, group="g", role="x")]
    members += [pod(f"g-l{i}", 4, group="g", role="l") for i in range(3)]
    answer = simulate(node("a"), node("b"), node("c", 1), podgroup("g", 3, roles={"s": 1}), members)
    assert where(answer) == {"g-s0": "c", "g-l0": "a", "g-l1": "b"}


def test_o2_exactly_fitting_tasks_are_bound_in_order() -> None:
    answer = simulate(node("a"), node("b"), node("c", 2), job("j", role("launcher", 2), role("worker", 2, cpu=4)))
    assert answer.order() == ["j-launcher-0", "j-worker-0", "j-launcher-1", "j-worker-1"]
    assert where(answer)["j-launcher-1"] == "c"


def test_v4_exactly_fitting_keeps_to_what_a_queue_may_use() -> None:
    nodes = [node("a"), node("b"), node("c", 1)]
    capped = queue("q", capability={"cpu": "8"})
    answer = simulate(nodes, capped, job("j", *LAUNCHER_FIRST, queue="q"), config={"actions": "allocate"})
    assert not answer.bound()
    assert PACKED not in answer.why("default/j")
    capped = queue("q", capability={"cpu": "9"})
    assert len(simulate(nodes, capped, job("j", *LAUNCHER_FIRST, queue="q")).bound()) == 3
    kept = queue("other", guarantee={"resource": {"cpu": "1"}})
    assert not simulate(nodes, kept, queue("q"), job("j", *LAUNCHER_FIRST, queue="q")).bound()
    assert len(simulate(nodes, node("d", 1), kept, queue("q"), job("j", *LAUNCHER_FIRST, queue="q")).bound()) == 3


def test_k7_exactly_fitting_gangs_of_a_group_are_packed_together() -> None:
    """The first gang's pod is best placed where the second's only fits."""
    groups = ["default/one", "default/two"]
    docs = [node("a"), node("b"), node("c", 1), kgang("one", 1, groups=groups), kgang("two", 2, cpu=4, groups=groups)]
    answer = simulate(*docs)
    assert where(answer) == {"one-0": "c", "two-0": "a", "two-1": "b"}
    loose = [node("a"), node("b"), kgang("one", 1, 1, 2, groups=groups), kgang("two", 2, cpu=3, groups=groups)]
    answer = simulate(*loose)
    assert not answer.bound()
    assert PACKED in answer.why("default/one")
    assert PACKED in answer.why("default/two")


def test_k6_exactly_fitting_what_is_held_is_moved_if_that_lets_all_start() -> None:
    groups = ["default/one", "default/two"]
    one = kgang("one", 1, groups=groups, mode=NON_STRICT)
    two = kgang("two", 2, cpu=4, groups=groups, mode=NON_STRICT)
    answer = simulate(node("a"), node("b"), node("c", 1, at="5s"), one, two)
    assert where(answer) == {"one-0": "c", "two-0": "a", "two-1": "b"}
    assert set(answer.times()) == {5.0}


def test_d5_exactly_fitting_finds_room_for_later_waves_too() -> None:
    workers = {**role("worker", 2, cpu=4), "dependsOn": {"name": ["launcher"]}}
    whole = job("j", role("launcher", 1), workers)
    whole["metadata"].setdefault("annotations", {})["enbloc.dev/depends-on-gang"] = "true"
    answer = simulate(node("a"), node("b"), node("c", 1), whole)
    assert where(answer) == {"j-launcher-0": "c", "j-worker-0": "a", "j-worker-1": "b"}


def test_g6_exactly_fitting_leaves_out_those_who_look_at_others() -> None:
    """Greedy alone decides, and what it says is the usual."""
    ports = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "4"}}}]}
    answer = simulate(node("a"), node("b"), node("c", 1), job("j", role("l", 1), role("w", 2, **ports)))
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

    waits = job("j", role("small", 1, cpu=2), role("large", 2, cpu=3))
    elsewhere = node("far", 8, labels={"far": "yes"}, taints=[{"key": "far", "effect": "NoSchedule"}])
    tolerant = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"far": "yes"}}
    others = [pod(f"other-{at}", 1, at=f"{at}s", run="1s", **tolerant) for at in (1, 3, 5)]
    answer = simulate(node("a"), node("b"), elsewhere, waits, others, plane=plane)
    assert PACKED in answer.why("default/j")
    assert len(answer.bound("other")) == 3
    assert len(searches) == 1
    engine = planes[-1].scheduler.engine
    engine.force()
    assert cycle(engine, engine.now) == []


def test_g10_exactly_fitting_what_was_said_changes_with_the_room() -> None:
    """First too little, then enough in total and in the wrong places, then a place for the last one."""
    roles = [role("small", 1, cpu=2), role("large", 2, cpu=3)]
    docs = [node("a"), node("b", 3), node("c", 1, at="1s"), step("2s", "patch", "Node", "b", patch=_cpu(5))]
    answer = simulate(docs, job("j", *roles), config={"actions": "allocate"})
    told = [line["message"] for line in answer.lines("warning", kind="PodGroup")]
    assert [PACKED in one for one in told] == [False, True]
    assert where(answer) == {"j-small-0": "b", "j-large-0": "a", "j-large-1": "b"}


def _cpu(count: int) -> Obj:
    return {"status": {"allocatable": {"cpu": str(count)}}}


def test_g2_exactly_fitting_nobody_is_bound_beyond_what_fits() -> None:
    answer = simulate(
        node("a", 6), node("b", 5), node("c", 4), gang("first", 2, cpu=1),
        job("j", role("x", 2, cpu=3), role("y", 2, cpu=2), role("z", 3)),
    )  # fmt: skip
    used: dict[str, int] = {}
    for name, place in where(answer).items():
        used[place] = used.get(place, 0) + {"x": 3, "y": 2}.get(name.split("-")[1], 1)
    assert len(answer.bound("j")) == 7
    assert all(used[name] <= cpu for name, cpu in (("a", 6), ("b", 5), ("c", 4)))
