"""T0: PodGroups below a CompositePodGroup are one gang; they may come in any order, and move."""

from __future__ import annotations

from typing import Any

import pytest

from peers.kubernetes_composite import CLASSES, composite, group, member
from support import manifests as m
from support.simulation import simulate

Obj = dict[str, Any]
PAIR = [group("g1", "root", "p1 p2"), group("g2", "root", "p3 p4")]


def test_t0_groups_of_a_composite_start_together() -> None:
    answer = simulate(CLASSES, m.node("n", 3), m.node("late", 1, at="9s"), composite("root", 2), *PAIR)
    assert answer.times("p") == [9.0] * 4


@pytest.mark.parametrize("late", range(3))
def test_t0_the_objects_come_in_any_order(late: int) -> None:
    """The composite, a group or its pods last."""
    root, first, second = composite("root", 2), *(one[0] for one in PAIR)
    pods = [pod for one in PAIR for pod in one[1:]]
    objects = [root, first, pods]
    for one in [objects[late]] if isinstance(objects[late], dict) else objects[late]:
        one["metadata"]["annotations"] = {f"{m.SIM}at": "5s"}
    answer = simulate(CLASSES, m.node("n", 4), root, first, second, pods)
    for one in (root, first, *pods):
        one["metadata"].pop("annotations", None)
    assert answer.times("p") == [5.0] * 4


def test_t0_a_composite_that_does_not_exist_holds_its_groups() -> None:
    answer = simulate(CLASSES, m.node("n", 4), *PAIR, until="5s")
    assert not answer.bound("p")
    assert answer.why("default/root") == "CompositePodGroup default/root does not exist"


def test_t0_too_few_groups_exist() -> None:
    answer = simulate(CLASSES, m.node("n", 4), composite("root", 3), *PAIR, until="5s")
    assert "2 of 3 groups of CompositePodGroup root exist" in answer.why("default/root")


def test_t0_groups_are_released_when_their_parent_is_removed() -> None:
    """Each is a gang of its own then."""
    objects = [composite("root", 2), group("g1", "root", "p1 p2")]
    gone = m.patch("5s", "PodGroup", "g1", spec={"parentCompositePodGroupName": None})
    gone["target"]["apiVersion"] = "scheduling.k8s.io/v1beta1"
    answer = simulate(CLASSES, m.node("n", 4), *objects, gone)
    assert answer.times("p") == [5.0, 5.0]


def test_t0_a_cycle_of_parents_ends() -> None:
    objects = [composite("a", 1, parent="b"), composite("b", 1, parent="a"), group("g1", "a", "p1")]
    answer = simulate(CLASSES, m.node("n", 4), *objects, until="5s")
    assert not answer.bound("p")


def test_t0_a_restart_keeps_the_groups_that_started() -> None:
    later = [group("g3", "root", "p5 p6", at="20s"), member("g1", "p7", at="30s")]
    nodes = [m.node("n", 4), m.node("late", 3, at="25s")]
    load = [CLASSES, nodes, composite("root", 2), *PAIR, *later]
    plain = simulate(*load).bound()
    assert {name: at for name, (at, _) in plain.items()} == {
        "p1": 0.0, "p2": 0.0, "p3": 0.0, "p4": 0.0, "p5": 25.0, "p6": 25.0, "p7": 30.0,
    }  # fmt: skip
    for at in ("10s", "22s", "27s"):
        assert simulate(*load, m.restart(at)).bound() == plain
