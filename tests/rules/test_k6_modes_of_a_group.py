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
