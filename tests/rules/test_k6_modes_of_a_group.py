"""K6, G9: a group turns NonStrict by an edit of any of its gangs, also of one that needs nothing itself."""

from __future__ import annotations

from support import manifests as m
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


def test_k6_a_gang_without_a_minimum_makes_its_group_nonstrict() -> None:
    mode = {"metadata": {"annotations": {"gang.scheduling.koordinator.sh/mode": "NonStrict"}}}
    strict = m.koordinator_gang("a", 1, 0, groups=GROUP)
    holding = m.koordinator_gang("b", 2, mode="NonStrict", groups=GROUP)
    edit = m.step("10s", "patch", "Pod", "a-0", patch=mode)
    answer = simulate(m.node("n", 1), strict, holding, edit, until="20s")
    assert [(line["t"], line["name"]) for line in answer.lines("held")] == [(10.0, "b-0")]


NAMES_IT = m.koordinator_gang("x", 1, 2, groups=["default/x", "default/y"])
"""An incomplete gang that names `y`, which does not name it back."""


def test_k6_a_gang_that_another_names_turns_nonstrict() -> None:
    """Its PodGroup comes after its pods: only then is it known that it is NonStrict."""
    group = m.sigs_podgroup("y", 2, at="5s", mode="NonStrict")
    answer = simulate(m.node("n", 1), NAMES_IT, m.labelled_pods("y", 2), group, until="20s")
    assert [(line["t"], line["name"]) for line in answer.lines("held")] == [(5.0, "y-0")]


def test_k7_a_gang_that_another_names_gets_min_resources() -> None:
    group = m.sigs_podgroup("y", 1, at="5s", minResources={"cpu": "3"})
    answer = simulate(m.node("n", 2), NAMES_IT, m.labelled_pods("y", 1), group, until="20s")
    assert answer.bound("y") == {}
    assert "minResources" in answer.why("default/y")
