"""T2: among the plans that satisfy what is required: the lowest common level, then the fewest domains of the preferred
level, then the largest free domains are left whole, then names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enbloc.engine.core.placement import in_domains
from support import manifests as m
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


def test_t2_t6_a_search_that_ended_early_drops_preferences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod is a segment of its own and prefers rack a, which has room for one of them."""
    monkeypatch.setattr(in_domains, "TRIES", 1)
    notes = {
        "kai.scheduler/topology": "dc",
        "kai.scheduler/segment-size": "1",
        "kai.scheduler/segment-topology-preferred-placement": r.RACK,
    }
    pods = [m.pod(f"g-{n}", 1, memory=f"{n + 1}Gi", group="g", annotations=notes) for n in range(2)]
    tree = r.topology("dc", r.RACK, group=r.KAI)
    answer = simulate(tree, r.nodes({"a": [1], "b": [1]}), m.podgroup("g", 2), pods)
    assert r.racks_of(answer.nodes("g")) == ["a", "b"]


def test_t2_t6_rows_that_did_not_do_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rack a is too small for all of it, whatever domains its segments would prefer there; rack b is not."""
    monkeypatch.setattr(in_domains, "TRIES", 3)
    tree = r.topology("dc", r.BLOCK, r.RACK, group=r.KAI)
    notes = r.kai_annotations("dc", preferred=r.RACK) | {
        "kai.scheduler/segment-size": "1",
        "kai.scheduler/segment-topology-preferred-placement": r.RACK,
    }
    pods = [m.pod(f"g-{n}", 1, memory=f"{n + 1}Gi", group="g", annotations=notes) for n in range(2)]
    answer = simulate(tree, r.nodes({"a": [1], "b": [2]}, "one"), m.podgroup("g", 2), pods)
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t2_a_preference_for_a_tree_that_does_not_exist_has_no_effect() -> None:
    answer = simulate(r.nodes({"a": 1, "b": 1}), r.volcano("g", 8, mode="soft"))
    assert len(answer.nodes("g")) == 8


@pytest.mark.parametrize(
    ("tree", "notes"),
    [
        (TREE, {"kueue.x-k8s.io/podset-required-topology": r.BLOCK, "kueue.x-k8s.io/podset-preferred-topology": "row"}),
        (r.topology("dc", r.BLOCK, r.RACK, group=r.KAI), r.kai_annotations("dc", preferred="row")),
        (r.network_topology(("RackLayer", r.RACK)), r.gather(RowLayer="PreferGather")),
    ],
)
def test_t2_a_preference_for_a_level_that_does_not_exist_has_no_effect(tree: Any, notes: dict[str, str]) -> None:
    answer = simulate(tree, r.nodes({"a": 1, "b": 1}, "one"), m.gang("g", 8, annotations=notes))
    assert len(answer.nodes("g")) == 8


def of_cpus(name: str, minimum: int, *cpus: int, selectors: Any = (), notes: dict[str, str] | None = None) -> list[Any]:
    """A gang of pods with these requests, each with its node selector."""
    pods = [
        m.pod(f"{name}-{n}", cpu, group=name, nodeSelector=dict(selector), annotations=notes or {})
        for n, (cpu, selector) in enumerate(zip(cpus, selectors or [()] * len(cpus), strict=True))
    ]
    return [m.podgroup(name, minimum), *pods]


def test_t2_room_counts_every_class_of_pods_that_may_be_chosen() -> None:
    """Two of three pods start, each of another class: rack b has room for fewer of them than rack a."""
    tree = r.topology("dc", r.RACK, group=r.KAI)
    gang = of_cpus("g", 2, 1, 2, 3, notes=r.kai_annotations("dc", r.RACK))
    answer = simulate(tree, r.nodes({"a": 2, "b": 1}), gang)
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t1_g10_room_counts_pods_that_may_be_chosen() -> None:
    gang = of_cpus("g", 3, 3, 3, 4, 4, notes=r.kai_annotations("dc", r.RACK))
    answer = simulate(r.topology("dc", r.RACK, group=r.KAI), r.nodes({"a": 1, "b": 1}), gang)
    assert "of 2 domains, 2 have room for 2 of 3" in answer.why("default/g")


def test_t1_t2_a_preferred_domain_outside_of_every_required_one_is_not_used() -> None:
    """Rack b is in no block."""
    gang = r.kueue("g", 2, required=r.BLOCK, preferred=r.RACK)
    answer = simulate(TREE, r.nodes({"b": [2]}), r.nodes({"a": 1}, "one"), gang)
    assert r.racks_of(answer.nodes("g")) == ["a"]


def test_t2_of_equal_largest_domains_the_second_largest_decides() -> None:
    """Racks a, b and d have room for four pods, each class by itself, and c for two. Two pods need a node of kind f, of
    which d has two, a and b one each: b and a would do, and leave less room whole than d and c."""
    kind = {"kind": "f"}
    plain = r.nodes({"c": [2], "a": [2], "b": [2]}, "one")
    of_kind = [*r.nodes({"a": [1], "b": [1]}, "one", start=1), *r.nodes({"d": [2]}, "one")]
    for node in of_kind:
        node["metadata"]["labels"] |= kind
    notes = r.kai_annotations("dc", preferred=r.RACK)
    gang = of_cpus("g", 4, 1, 1, 1, 1, selectors=[kind, kind, (), ()], notes=notes)
    answer = simulate(r.topology("dc", r.BLOCK, r.RACK, group=r.KAI), plain, of_kind, gang)
    assert r.racks_of(answer.nodes("g")) == ["c", "d"]


def test_t2_t4_no_further_domain_is_used_where_those_of_held_pods_have_room() -> None:
    """Two pods are held in racks a and b; then b has room for the others, and c has more."""
    notes = m.koordinator_annotations("g", 4, mode="NonStrict") | r.gather(RackLayer="PreferGather")
    full = [m.pod("f-b", 2, nodeSelector={r.RACK: "b"}, run_time="10s")]
    full += [m.pod("f-c", 4, nodeSelector={r.RACK: "c"}, run_time="10s")]
    gang = [m.pod(f"g-{n}", annotations=notes, at="2s") for n in range(4)]
    racks = r.nodes({"c": [4], "a": [1], "b": [3]}, "one")
    answer = simulate(r.network_topology(("RackLayer", r.RACK)), racks, full, gang)
    assert r.racks_of(answer.nodes("g-")) == ["a", "b"]


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


@pytest.mark.parametrize(
    ("racks", "count", "asked", "found"),
    [
        ({"a": 2, "c": 2}, 6, {"required": r.RACK}, ["c"]),
        ({"a": 2, "b": 2, "c": 2}, 12, {"preferred": r.RACK}, ["a", "c"]),
        ({"a": 2, "b": 2, "c": 2}, 12, {"required": r.BLOCK, "preferred": r.RACK}, ["a", "c"]),
    ],
)
def test_t2_of_equal_rooms_the_fuller_domain(racks: Any, count: int, asked: Any, found: list[str]) -> None:
    """Every rack has room for six pods of 2 cpu, and 1 cpu of each node of c is in use."""
    busy = [m.pod(f"busy-{n}", 1, nodeSelector={"kubernetes.io/hostname": f"c-{n}"}, run="1h") for n in range(2)]
    gang = r.kueue("g", count, cpu=2, at="5s", **asked)
    answer = simulate(TREE, r.nodes(racks, "one", cpu=7), busy, gang)
    assert r.racks_of(answer.nodes("g")) == found


def test_t2_o2_no_domain_without_room_is_preferred_for_pods_that_may_be_chosen() -> None:
    """Of three pods one is needed: the first, though rack a, which is full, comes before rack b for its segment."""
    notes = r.kai_annotations("dc", preferred=r.RACK) | {
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-preferred-placement": r.RACK,
    }
    pods = [m.pod(f"g-{n}", 1, group="g", annotations=notes) for n in range(3)]
    tree = r.topology("dc", r.RACK, group=r.KAI)
    answer = simulate(tree, r.nodes({"a": [0], "b": [1]}), m.podgroup("g", 1), pods)
    assert answer.order("g") == ["g-0"]


@pytest.mark.parametrize(("large", "small"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("asked", [{"required": r.RACK}, {"required": r.BLOCK, "preferred": r.RACK}])
def test_t2_of_equal_shares_the_one_with_less_in_all(large: str, small: str, asked: Any) -> None:
    """Every rack is idle and has room for six pods of 2 cpu; what the larger nodes have beside that is left whole."""
    racks = [*r.nodes({large: 2}, "one", cpu="7900m"), *r.nodes({small: 2}, "one", cpu="6900m")]
    answer = simulate(TREE, racks, r.kueue("g", 6, cpu=2, **asked))
    assert r.racks_of(answer.nodes("g")) == [small]


@pytest.mark.parametrize(("large", "small"), [("a", "b"), ("b", "a")])
def test_t2_of_equal_shares_the_sets_with_less_in_all(large: str, small: str) -> None:
    racks = [*r.nodes({f"{large}1": 1, f"{large}2": 1}, "one", cpu="7900m")]
    racks += r.nodes({f"{small}1": 1, f"{small}2": 1}, "one", cpu="6900m")
    answer = simulate(TREE, racks, r.kueue("g", 6, cpu=2, preferred=r.RACK))
    assert r.racks_of(answer.nodes("g")) == [f"{small}1", f"{small}2"]
