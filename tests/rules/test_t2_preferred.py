"""T2: among the plans that satisfy what is required: the lowest common level, then the fewest domains of the preferred
level, then the largest free domains are left whole, then names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support import racks as r
from support.answers import Answer
from support.simulation import simulate

TREE = r.topology("dc", r.BLOCK, r.RACK)


@pytest.mark.parametrize(
    ("blocks", "count", "racks"),
    [
        ({"one": {"a": 2, "b": 1}}, 4, ["b"]),  # of two racks the smaller one
        ({"one": {"b": 1, "a": 1}}, 4, ["a"]),  # of two equal racks the first name
        ({"one": {"a": 1, "b": 1}, "two": {"c": 2}}, 8, ["c"]),  # one rack rather than two
        ({"one": {"a": 1}, "two": {"b": 1}, "three": {"c": 1, "d": 1}}, 8, ["c", "d"]),  # within one block
        ({"one": {"a": 1, "b": 1, "c": 2}}, 12, ["a", "c"]),  # two racks rather than three
        ({"one": {"a": 3, "b": 2, "c": 2}}, 16, ["b", "c"]),  # the largest rack is left whole
        ({"one": {"a": 1}, "two": {"b": 2}}, 12, ["a", "b"]),  # no block has room
    ],
)
def test_t2_order(blocks: dict[str, Any], count: int, racks: list[str]) -> None:
    cluster = [node for block, of_block in blocks.items() for node in r.nodes(of_block, block)]
    answer = simulate(TREE, cluster, r.kueue("g", count, preferred=r.RACK))
    assert r.racks_of(answer.nodes("g")) == racks


def test_t2_a_preference_keeps_no_gang_from_starting() -> None:
    answer = simulate(r.hyper_node("h", 1, "a-0"), r.nodes({"a": 1, "b": 1}), r.volcano("g", 8, mode="soft"))
    assert len(answer.nodes("g")) == 8


def test_t2_a_preference_for_a_tree_that_does_not_exist_has_no_effect() -> None:
    answer = simulate(r.nodes({"a": 1, "b": 1}), r.volcano("g", 8, mode="soft"))
    assert len(answer.nodes("g")) == 8


def published(answer: Answer, kind: str = "PodGroup", name: str = "g") -> list[dict[str, Any]]:
    text = answer.obj(kind, name)["metadata"]["annotations"]["enbloc.dev/domains"]
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_t2_the_domains_and_the_score_are_published_with_the_gang() -> None:
    answer = simulate(TREE, r.nodes({"a": 1, "b": 1}, "one"), r.native("g", 4))
    [part] = published(answer)
    assert part == {"part": "", "within": r.RACK, "level": r.RACK, "domains": ["a"], "score": 1.0}


def test_t2_a_plan_over_several_domains_that_is_the_best_scores_one() -> None:
    answer = simulate(TREE, r.nodes({"a": 1, "b": 1}, "one"), r.kueue("g", 8, preferred=r.RACK))
    [part] = published(answer)
    assert (part["within"], part["domains"], part["score"]) == (r.BLOCK, ["one/a", "one/b"], 1.0)
