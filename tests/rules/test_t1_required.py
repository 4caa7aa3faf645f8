"""T1: all members that count towards the minimum, and the surplus, lie in one domain of the required level."""

from __future__ import annotations

import pytest

from support import manifests as m
from support import racks as r
from support.simulation import simulate

Obj = dict[str, object]


def test_t1_a_gang_waits_if_no_single_rack_has_room() -> None:
    answer = simulate(r.nodes({"a": 1, "b": 1}), r.native("g", 6))
    assert not answer.bound()
    assert answer.why("default/g") == (
        "6 pods must fit in one domain of example.com/rack: of 2 domains, 2 have room for 4 of 6."
    )


def test_t1_a_gang_starts_in_the_rack_that_has_room() -> None:
    answer = simulate(r.nodes({"a": 1, "b": 2}), r.native("g", 6))
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t1_surplus_stays_in_the_rack_of_the_minimum() -> None:
    answer = simulate(r.nodes({"a": 1, "b": 2}), r.native("g", 9, minimum=6))
    assert r.racks_of(answer.nodes("g")) == ["b"]
    assert len(answer.nodes("g")) == 8


def test_t1_a_node_without_the_label_is_in_no_rack() -> None:
    answer = simulate(m.node("large", 64), r.nodes({"a": 1}), r.native("g", 5))
    assert not answer.bound()


def test_t1_pods_without_a_minimum_share_one_rack() -> None:
    group = m.native_podgroup("g", {"basic": {}}, schedulingConstraints={"topology": [{"key": r.RACK}]})
    answer = simulate(r.nodes({"a": 1, "b": 2}), group, m.native_pods("g", 9))
    assert r.racks_of(answer.nodes("g")) == ["b"]
    assert len(answer.nodes("g")) == 8


def test_t1_roles_of_one_gang_may_be_in_different_racks() -> None:
    """Kueue's annotations are for the pods of one template."""
    group = m.podgroup("g", 8)
    first = r.kueue("x", 4, required=r.RACK)[1:]
    pods = [m.pod(f"g-{role}{n}", group="g", role=role, annotations=first[0]["metadata"]["annotations"] | {
        m.GROUP_NAME: "g", m.TASK_SPEC: role}) for role in ("p", "d") for n in range(4)]  # fmt: skip
    answer = simulate(r.nodes({"a": 1, "b": 1}), group, pods)
    assert r.racks_of(answer.nodes("g-p")) != r.racks_of(answer.nodes("g-d"))
    assert len(r.racks_of(answer.nodes("g-p"))) == len(r.racks_of(answer.nodes("g-d"))) == 1


def test_t1_gangs_that_start_together_are_each_in_one_domain() -> None:
    tree = r.network_topology(("RackLayer", r.RACK))
    gangs = []
    for name in ("x", "y"):
        texts = m.koordinator_annotations(name, 4, groups='["default/x","default/y"]') | r.gather(
            RackLayer="MustGather"
        )
        gangs += [m.pod(f"{name}{n}", annotations=texts) for n in range(4)]
    answer = simulate(tree, r.nodes({"a": 1, "b": 1}), gangs)
    assert sorted(r.racks_of(answer.nodes("x")) + r.racks_of(answer.nodes("y"))) == ["a", "b"]


HYPER_NODES = [
    r.hyper_node("ha", 1, "a-0", "a-1"),
    r.hyper_node("hb", 1, "/^b-/"),
    r.hyper_node("hc", 1, f"{r.RACK}=c"),
    r.hyper_node("top", 2, "ha", "hb", of="HyperNode", tier_name="spine"),
]
KUEUE_TREE = r.topology("dc", r.BLOCK, r.RACK, "kubernetes.io/hostname")
KAI_TREE = r.topology("dc", r.BLOCK, r.RACK, group=r.KAI)
LAYERS = r.network_topology(("BlockLayer", r.BLOCK), ("RackLayer", r.RACK))


def kai(name: str, count: int, required: str) -> list[dict[str, object]]:
    return m.gang(name, count, annotations=r.kai_annotations("dc", required))


def koordinator(name: str, count: int, layer: str) -> list[dict[str, object]]:
    found = m.koordinator_gang(name, count)
    for pod in found:
        pod["metadata"]["annotations"] |= r.gather(**{layer: "MustGather"})
    return found


@pytest.mark.parametrize(
    ("trees", "narrow", "wide"),
    [
        (HYPER_NODES, lambda count: r.volcano("g", count, 1), lambda count: r.volcano("g", count, 2)),
        ([], lambda count: r.native("g", count), lambda count: r.native("g", count, key=r.BLOCK)),
        (
            [KUEUE_TREE],
            lambda count: r.kueue("g", count, required=r.RACK),
            lambda count: r.kueue("g", count, required=r.BLOCK),
        ),
        ([KAI_TREE], lambda count: kai("g", count, r.RACK), lambda count: kai("g", count, r.BLOCK)),
        (
            [LAYERS],
            lambda count: koordinator("g", count, "RackLayer"),
            lambda count: koordinator("g", count, "BlockLayer"),
        ),
    ],
    ids=["volcano", "kubernetes", "kueue", "kai", "koordinator"],
)
def test_t1_in_every_dialect(trees, narrow, wide) -> None:  # type: ignore[no-untyped-def]
    """Racks a and b are in block one, rack c in block two; each rack has room for 8."""
    cluster = [*trees, *r.nodes({"a": 2, "b": 2}, "one"), *r.nodes({"c": 2}, "two")]
    for count in (8, 9):
        racks = r.racks_of(simulate(cluster, narrow(count)).nodes("g"))
        assert len(racks) == (1 if count == 8 else 0)
    for count in (16, 17):
        racks = r.racks_of(simulate(cluster, wide(count)).nodes("g"))
        assert racks == (["a", "b"] if count == 16 else [])


def test_t1_n1_a_hard_tier_waits_where_no_hyper_node_exists() -> None:
    """N1: not the whole cluster. It starts when HyperNodes are created (T8)."""
    answer = simulate(r.nodes({"a": 1, "b": 1}), r.volcano("g", 4, 1), until="5s")
    assert not answer.bound()
    assert answer.why("default/g") == "its topology constraint cannot be met: no HyperNode exists"
    later = simulate(r.nodes({"a": 1, "b": 1}), r.volcano("g", 4, 1), r.hyper_node("h", 1, "/^b-/", at="7s"))
    assert r.racks_of(later.nodes("g")) == ["b"]
    assert later.times("g-") == [7.0] * 4


def test_t1_g10_pods_that_are_placed_one_by_one_say_how_many_are_missing() -> None:
    group = m.native_podgroup("g", {"basic": {}}, schedulingConstraints={"topology": [{"key": r.RACK}]})
    answer = simulate(m.node("n"), group, m.native_pods("g", 3))
    assert answer.pending("default/g")["missing"] == {"": 3}


def gathered(name: str, count: int, layer: str = "RackLayer") -> list[dict[str, object]]:
    """A gang of a group of two, all of whose pods must be in one domain."""
    texts = m.koordinator_annotations(name, count, groups='["default/x","default/y"]')
    return [m.pod(f"{name}{n}", annotations=texts | r.gather(**{layer: "MustGather"})) for n in range(count)]


def test_t1_g10_each_gang_of_a_group_says_what_it_lacks_itself_at_a_level_that_does_not_exist() -> None:
    tree = r.network_topology(("RackLayer", r.RACK))
    answer = simulate(tree, r.nodes({"a": 1}), gathered("x", 1, "NoLayer"), gathered("y", 3, "NoLayer"))
    assert [answer.pending(f"default/{name}")["missing"] for name in "xy"] == [{"": 1}, {"": 3}]


def test_t1_g10_of_a_group_the_gang_without_a_domain_says_so_and_the_other_that_it_waits() -> None:
    tree = r.network_topology(("RackLayer", r.RACK))
    answer = simulate(tree, r.nodes({"a": 1, "b": 1}), gathered("x", 1), gathered("y", 5))
    assert answer.pending("default/y")["missing"] == {"": 5}
    assert answer.pending("default/x")["missing"] == {"": 1}
    assert answer.why("default/x").startswith("default/y of its group waits: 5 pods must fit in one domain")


def test_t5_g3_surplus_waits_for_no_level_that_other_roles_require() -> None:
    """The partitions of role b require a tier that does not exist; pods of role a start one by one."""
    job = m.job("g", m.role("a", 3, 1), m.role("b", 1, 0))
    job["spec"]["tasks"][1]["partitionPolicy"] = {
        "totalPartitions": 1,
        "partitionSize": 1,
        "networkTopology": {"mode": "hard", "highestTierName": "none"},
    }
    answer = simulate(r.nodes({"a": 1}), HYPER_NODES, job, until="20s")
    assert sorted(answer.nodes("g")) == ["g-a-0", "g-a-1", "g-a-2"]


def whole_job(name: str, annotations: dict[str, str] | None = None, **spec: object) -> dict[str, object]:
    """Two waves of two pods, of different classes, that start only if both fit."""
    roles = [m.role("a", 2, 2), m.role("b", 2, 2, memory="1Gi")]
    roles[1]["dependsOn"] = {"name": ["a"]}
    for role in roles:
        role["template"].setdefault("metadata", {}).setdefault("annotations", {}).update(annotations or {})
    found: dict[str, object] = m.job(name, *roles, annotations={"enbloc.dev/depends-on-gang": "true"}, **spec)
    return found


@pytest.mark.parametrize(
    "job",
    [
        whole_job("g", networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        whole_job("g", r.kai_annotations("dc", r.RACK)),
    ],
    ids=["volcano", "kai"],
)
@pytest.mark.parametrize(("racks", "starts"), [({"a": [2], "b": [2]}, False), ({"a": [2], "b": [4]}, True)])
def test_t1_d5_later_waves_have_room_in_the_domain_of_the_first(
    job: dict[str, object], racks: dict[str, int | list[int]], starts: bool
) -> None:
    answer = simulate(HYPER_NODES, KAI_TREE, r.nodes(racks, "one"), job, until="20s")
    assert r.racks_of(answer.nodes("g")) == (["b"] if starts else [])


def test_t1_g8_room_for_awaited_pods_is_left_in_one_domain() -> None:
    """The job's pods are created in the next cycle: the small pod leaves them the rack that has room for both."""
    job = m.job("g", m.role("a", 1, 1, cpu=2), m.role("b", 1, 1, cpu=2, memory="1Gi"), priority="high")
    for role in job["spec"]["tasks"]:
        role["template"].setdefault("metadata", {})["annotations"] = r.kai_annotations("dc", r.RACK)
    small = m.pod("small", 1, nodeSelector={"kubernetes.io/hostname": "b-0"})
    nodes = r.nodes({"a": [2], "b": [4]}, "one")
    for node in nodes:
        node["metadata"]["labels"]["kubernetes.io/hostname"] = node["metadata"]["name"]
    high = m.priority_class("high", 1000)
    answer = simulate(high, KAI_TREE, nodes, job, small, config={"actions": "enqueue, allocate, preempt"}, until="20s")
    assert r.racks_of(answer.nodes("g")) == ["b"]
    assert not answer.evicted()
