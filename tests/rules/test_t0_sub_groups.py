"""T0: sub-groups are leaves of the gang tree, each with its minimum and its place; T3: slices by index."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support import racks as r
from support.simulation import simulate

Obj = dict[str, Any]


def policy(name: str, size: int, **fields: Any) -> Obj:
    """The pods with label `clique` of this name are one sub-group."""
    selector = {"matchLabels": {"clique": name}}
    return {"name": name, "subGroupSize": size, "minSubGroups": 1, "labelSelector": selector, **fields}


def cliques(**counts: int) -> list[Obj]:
    return [
        m.pod(f"{name}-{n}", group="g", labels={"clique": name}) for name, count in counts.items() for n in range(count)
    ]


def test_t0_each_sub_group_has_its_minimum() -> None:
    group = m.podgroup("g", 4, subGroupPolicy=[policy("prefill", 2), policy("decode", 2)])
    answer = simulate(m.node("n", 4), group, cliques(prefill=4, decode=2))
    assert sorted(answer.nodes()) == ["decode-0", "decode-1", "prefill-0", "prefill-1"]


def test_t0_a_gang_waits_for_a_sub_group_without_pods() -> None:
    group = m.podgroup("g", 4, subGroupPolicy=[policy("prefill", 2), policy("decode", 2)])
    answer = simulate(m.node("n", 9), group, cliques(prefill=4), until="5s")
    assert not answer.bound()
    assert "2 of role decode" in answer.why("default/g")


@pytest.mark.parametrize("only", ["0", "1", "7"])
def test_t0_a_gang_waits_for_a_second_sub_group_whatever_the_first_is_called(only: str) -> None:
    by_index = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["group-index"], "minSubGroups": 2}
    pods = [m.pod(f"w-{n}", group="g", labels={"group-index": only}) for n in range(2)]
    answer = simulate(m.node("n", 9), m.podgroup("g", 0, subGroupPolicy=[by_index]), pods, until="5s")
    assert not answer.bound()


def test_t0_pods_that_exist_before_their_group_are_members_of_its_sub_groups() -> None:
    group = m.podgroup("g", 4, at="3s", subGroupPolicy=[policy("prefill", 2), policy("decode", 2)])
    answer = simulate(m.node("n", 4), group, cliques(prefill=4, decode=2))
    assert sorted(answer.nodes()) == ["decode-0", "decode-1", "prefill-0", "prefill-1"]


def test_t0_one_sub_group_for_each_value_of_a_label() -> None:
    by_index = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["group-index"], "minSubGroups": 2}
    place = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    group = m.podgroup("g", 4, subGroupPolicy=[by_index | place])
    pods = [m.pod(f"w-{n}", 2, group="g", labels={"group-index": str(n % 2)}) for n in range(4)]
    trees = [r.hyper_node("ha", 1, "/^a-/"), r.hyper_node("hb", 1, "/^b-/")]
    answer = simulate(trees, r.nodes({"a": 1, "b": 1}), group, pods)
    where = answer.nodes()
    assert where["w-0"] == where["w-2"] != where["w-1"] == where["w-3"]


def test_t0_a_choice_of_sub_groups() -> None:
    """Of three sub-groups of two, two are needed: three pods fit in neither the first nor the second."""
    by_index = {"name": "w", "subGroupSize": 2, "matchLabelKeys": ["group-index"], "minSubGroups": 2}
    pods = [m.pod(f"w-{n}", group="g", labels={"group-index": str(n % 3)}) for n in range(6)]
    for pod in (pods[1], pods[4]):
        pod["spec"]["nodeSelector"] = {"no": "node"}
    answer = simulate(m.node("n", 5), m.podgroup("g", 4, subGroupPolicy=[by_index]), pods)
    assert sorted(answer.nodes()) == ["w-0", "w-2", "w-3", "w-5"]


def test_t0_sub_groups_of_kai_have_their_own_domains_within_that_of_the_gang() -> None:
    tree = r.topology("dc", r.BLOCK, r.RACK, group=r.KAI)
    group = m.kai_podgroup(
        "g", 8, {"p": 4, "d": 4}, topologyConstraint={"topology": "dc", "requiredTopologyLevel": r.BLOCK}
    )
    for one in group["spec"]["subGroups"]:
        one["topologyConstraint"] = {"topology": "dc", "requiredTopologyLevel": r.RACK}
    pods = [*m.kai_pods("g", 4, subgroup="p"), *m.kai_pods("g", 4, subgroup="d")]
    cluster = [*r.nodes({"a": 1}, "one"), *r.nodes({"b": 1}, "two"), *r.nodes({"c": 1, "d": 1}, "three")]
    answer = simulate(tree, cluster, group, pods)
    assert sorted([r.racks_of(answer.nodes("g-p")), r.racks_of(answer.nodes("g-d"))]) == [["c"], ["d"]]


def test_t3_slices_of_kueue_are_each_in_one_rack() -> None:
    texts = {"kueue.x-k8s.io/podset-slice-required-topology": r.RACK, "kueue.x-k8s.io/podset-slice-size": "4"}
    answer = simulate(r.nodes({"a": [6], "b": [6], "c": [6]}), m.gang("g", 12, annotations=texts))
    where = answer.nodes("g-")
    slices = [{where[f"g-{n}"] for n in range(first, first + 4)} for first in (0, 4, 8)]
    assert sorted(slices, key=str) == [{"a-0"}, {"b-0"}, {"c-0"}]


def test_t3_slices_that_do_not_fit_wait() -> None:
    texts = {"kueue.x-k8s.io/podset-slice-required-topology": r.RACK, "kueue.x-k8s.io/podset-slice-size": "4"}
    answer = simulate(r.nodes({"a": [6], "b": [6]}), m.gang("g", 12, annotations=texts))
    assert not answer.bound()


def test_t3_partitions_of_a_task_are_slices() -> None:
    role = m.role("w", 4, cpu=2)
    role["partitionPolicy"] = {
        "totalPartitions": 2, "partitionSize": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }  # fmt: skip
    trees = [r.hyper_node("ha", 1, "/^a-/"), r.hyper_node("hb", 1, "/^b-/")]
    answer = simulate(trees, r.nodes({"a": 1, "b": 1}), m.job("j", role))
    where = answer.nodes("j-w")
    assert where["j-w-0"] == where["j-w-1"] != where["j-w-2"] == where["j-w-3"]
