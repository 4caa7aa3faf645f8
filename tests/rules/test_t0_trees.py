"""T0: inner vertices of the gang tree have a minimum of children; those beyond it are surplus, and start as a whole."""

from __future__ import annotations

import random
from typing import Any

import pytest

from peers.kai import bound, job, place, sub
from support import manifests as m
from support import racks as r
from support.answers import Answer
from support.simulation import simulate

Obj = dict[str, Any]
PAIRS = [sub(name, 2) for name in ("a", "b", "c")]
ALL = {"a": 2, "b": 2, "c": 2}


def started(answer: Answer) -> list[str]:
    return sorted({name.split("-")[1] for name in answer.nodes("j-")})


def test_t0_the_first_sub_groups_start_and_the_others_wait() -> None:
    answer = simulate(m.node("n", 5), job(*PAIRS, members=ALL, minSubGroup=2))
    assert started(answer) == ["a", "b"]
    assert len(answer.nodes("j-")) == 4  # not one pod of `c`, though there is room for it


def test_t0_a_sub_group_beyond_the_minimum_starts_when_all_of_it_fits() -> None:
    answer = simulate(m.node("n", 5), m.node("late", 1, at="9s"), job(*PAIRS, members=ALL, minSubGroup=2))
    assert answer.times("j-c") == [9.0, 9.0]


def test_t0_another_choice_is_found_if_the_first_does_not_fit() -> None:
    found = job(*PAIRS, members=ALL, minSubGroup=2)
    for pod in found:
        if pod["metadata"]["name"].startswith("j-b"):
            pod["spec"]["nodeSelector"] = {"no": "node"}
    assert started(simulate(m.node("n", 4), found)) == ["a", "c"]


def test_t0_g9_pods_that_make_another_choice_possible_wake_the_gang() -> None:
    """The pods of `b` fit on no node, and those of `c` come later."""
    found = job(*PAIRS, members=ALL, minSubGroup=2)
    for pod in found:
        if pod["metadata"]["name"].startswith("j-b"):
            pod["spec"]["nodeSelector"] = {"no": "node"}
        if pod["metadata"]["name"].startswith("j-c"):
            pod["metadata"].setdefault("annotations", {})["sim.enbloc.dev/at"] = "9s"
    answer = simulate(m.node("n", 4), found)
    assert started(answer) == ["a", "c"]
    assert answer.times("j-") == [9.0] * 4


def test_t0_v4_another_choice_is_found_if_the_queue_forbids_the_first() -> None:
    """Pods of `a` request 2 cpu each, those of `b` 1: the queue may use 3."""
    found = job(*PAIRS[:2], members={"a": 2, "b": 2}, minSubGroup=1, queue="q")
    for pod in found:
        if pod["metadata"]["name"].startswith("j-a"):
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert started(simulate(m.node("n", 9), m.queue("q", capability={"cpu": "3"}), found)) == ["b"]


def test_t0_a_sub_group_without_pods_is_not_chosen() -> None:
    answer = simulate(m.node("n", 4), job(*PAIRS, members={"b": 2, "c": 2}, minSubGroup=2))
    assert started(answer) == ["b", "c"]


def test_t0_too_few_sub_groups_exist() -> None:
    answer = simulate(m.node("n", 9), job(*PAIRS, members={"a": 2, "b": 1}, minSubGroup=2), until="5s")
    assert not answer.bound("j-")
    assert "1 of role b" in answer.why("default/j")


def test_t0_a_choice_within_a_choice() -> None:
    """Of two halves one, of its three subgroups two."""
    halves = [
        one
        for half in ("x", "y")
        for one in (sub(half, least=2), *(sub(f"{half}{n}", 2, parent=half) for n in (1, 2, 3)))
    ]
    counts = {f"{half}{n}": 2 for half in ("x", "y") for n in (1, 2, 3)}
    found = job(*halves, members=counts, minSubGroup=1)
    for pod in found:
        if pod["metadata"]["name"].startswith(("j-x1", "j-x2", "j-y2")):
            pod["spec"]["nodeSelector"] = {"no": "node"}
    assert started(simulate(m.node("n", 4), found)) == ["y1", "y3"]


def test_t0_replacements_of_a_started_sub_group_come_one_by_one() -> None:
    gang = job(*PAIRS, members={"a": 2, "b": 2}, minSubGroup=2)
    gang[1]["metadata"].setdefault("annotations", {})[f"{m.SIM}delete-at"] = "5s"
    [late] = [one for one in m.kai_pods("j", 3, subgroup="a", at="8s") if one["metadata"]["name"] == "j-a-2"]
    answer = simulate(m.node("n", 4), gang, late)
    assert answer.at("j-a-2") == 8.0


def test_t0_sub_groups_that_run_are_the_ones_that_count_after_a_restart() -> None:
    found = job(*PAIRS, members=ALL, minSubGroup=2)
    for pod in found:
        if pod["metadata"]["name"].startswith("j-a"):
            pod["metadata"].setdefault("annotations", {})[f"{m.SIM}at"] = "20s"
    later = m.node("late", 2, at="30s")
    answer = simulate(m.node("n", 4), later, found, m.restart("10s"), m.restart("25s"))
    assert answer.times("j-b") == answer.times("j-c") == [0.0, 0.0]
    assert answer.times("j-a") == [30.0, 30.0]


def test_t1_a_vertex_of_the_tree_has_its_own_domain() -> None:
    """Both subgroups of `p` are in one rack, `c` is in another."""
    tree = r.topology("dc", r.RACK, group=r.KAI)
    where = {"required": r.RACK, "tree": "dc"}
    subs = [sub("p", **where), sub("a", 2, parent="p"), sub("b", 2, parent="p"), sub("c", 3, **where)]
    answer = simulate(tree, r.nodes({"x": [3], "y": [2, 2]}), job(*subs, members={"a": 2, "b": 2, "c": 3}))
    assert r.racks_of(answer.nodes("j-c")) == ["x"]
    assert r.racks_of({**answer.nodes("j-a"), **answer.nodes("j-b")}) == ["y"]


def test_t4_a_surplus_sub_group_goes_to_the_rack_of_its_gang() -> None:
    tree = r.topology("dc", r.RACK, group=r.KAI)
    gang = job(*PAIRS, members=ALL, minSubGroup=2, **place(r.RACK, tree="dc"))
    answer = simulate(tree, r.nodes({"x": [5], "y": [5]}), gang)
    assert len(answer.nodes("j-")) == 4
    assert r.racks_of(answer.nodes("j-")) == ["x"]


@pytest.mark.parametrize(
    ("subs", "fields", "why"),
    [
        ([sub("a", 1, parent="x")], {}, "parent x does not exist"),
        ([sub("a", 1, parent="b"), sub("b", parent="a")], {}, "makes a cycle"),
        ([sub("a", 1), sub("a", 2)], {}, "2 of the name a"),
        ([sub("a", 1)], {"minSubGroup": 2}, "minSubGroup 2 is not from 1 to its 1 subgroups"),
        ([sub("a", 1, least=1)], {}, "minSubGroup 1 is not from 1 to its 0 subgroups"),
    ],
)
def test_t0_a_tree_that_cannot_be_read_holds_the_gang(subs: list[Obj], fields: Obj, why: str) -> None:
    answer = simulate(m.node("n", 9), job(*subs, members={"a": 2}, **fields), until="5s")
    assert not answer.bound("j-")
    assert why in answer.why("default/j")


def test_t0_a_running_member_makes_its_sub_group_the_first_choice() -> None:
    gang = job(*PAIRS, members={"a": 2, "b": 2, "c": 1}, minSubGroup=2)
    answer = simulate(m.node("n", 4), gang, bound("j", "c", "n"))
    assert answer.nodes("j-c-0")
    assert started(answer) == ["a", "c"]


def random_tree(dice: random.Random) -> list[Obj]:
    """Halves with subgroups of one to three pods, and fewer of them needed than there are."""
    subs: list[Obj] = []
    members: dict[str, int] = {}
    for half in ("x", "y")[: dice.randrange(1, 3)]:
        names = [f"{half}{n}" for n in range(dice.randrange(1, 4))]
        subs.append(sub(half, least=dice.randrange(1, len(names) + 1)))
        for name in names:
            size = dice.randrange(1, 4)
            subs.append(sub(name, size, parent=half))
            members[name] = size + dice.randrange(-1, 2)
    least = dice.randrange(1, sum(not one.get("parent") for one in subs) + 1)
    return job(*subs, members=members, minSubGroup=least)


def is_met(group: Obj, name: str, counts: dict[str, int]) -> bool:
    """Brute force over the manifest: whether a subgroup, or the whole, has its minimum."""
    listed = group["spec"]["subGroups"]
    below = [one for one in listed if (one.get("parent") or "") == name]
    own = next((one for one in listed if one["name"] == name), group["spec"])
    if not below:
        return counts.get(name, 0) >= own["minMember"]
    return sum(is_met(group, one["name"], counts) for one in below) >= own.get("minSubGroup", len(below))


@pytest.mark.parametrize("seed", range(40))
def test_t0_no_sub_group_starts_in_part(seed: int) -> None:
    """Whatever fits: the tree's minimum is met or nothing runs, and each sub-group has its minimum or none; a restart
    changes nothing."""
    dice = random.Random(seed)
    gang = random_tree(dice)
    nodes = [m.node(f"n{n}", dice.randrange(1, 4), at=f"{n * 3}s") for n in range(dice.randrange(2, 6))]
    answer = simulate(nodes, gang)
    counts: dict[str, int] = {}
    for name in answer.nodes("j-"):
        counts[name.split("-")[1]] = counts.get(name.split("-")[1], 0) + 1
    leaves = [one for one in gang[0]["spec"]["subGroups"] if "minMember" in one]
    exist = {
        one["name"]: sum(p["metadata"]["name"].startswith(f"j-{one['name']}-") for p in gang[1:]) for one in leaves
    }
    assert all(counts.get(one["name"], 0) in (0, *range(one["minMember"], 9)) for one in leaves)
    assert not counts or is_met(gang[0], "", counts)
    room = sum(int(one["status"]["allocatable"]["cpu"]) for one in nodes)
    if is_met(gang[0], "", exist) and room >= sum(exist.values()):
        assert counts
    restarted = simulate(nodes, gang, m.restart(f"{dice.randrange(1, 15)}s"))
    assert restarted.bound() == answer.bound()
