"""T5: the domain of each node at each level of a tree, from labels and from HyperNodes; T6: what fits in each domain is
counted row by row and equals a fresh count."""

from __future__ import annotations

import random

import numpy as np
import pytest

from enbloc.config import parse
from enbloc.engine.core.tables.node_trees import HyperNodeFacts, LevelFacts, NodeTree, TreeFacts
from enbloc.engine.decisions import Bind
from enbloc.gangs.topology import BY_LABEL, HYPER_NODES, KOORDINATOR, TopologyConstraint
from support import manifests as m
from support import racks as r
from support.direct_scheduler import DirectScheduler, knowing


def domains(direct: DirectScheduler, tree: str) -> dict[str, dict[str, str]]:
    """Level → node → its domain; nodes outside of every domain are left out."""
    found = direct.engine.state.trees.tree(tree)
    assert isinstance(found, NodeTree)
    names = direct.engine.state.nodes.names
    return {
        level.name: {names[row]: level.names[one] for row, one in enumerate(level.ids.tolist()) if one >= 0}
        for level in found.levels
    }


def test_t5_a_domain_is_the_path_of_labels() -> None:
    """Racks of one name in two blocks are two domains; a node without a rack is in its block all the same."""
    nodes = [*r.nodes({"1": 1}, "x"), *r.nodes({"1": 1}, "y", start=1), m.node("z-0", labels={r.BLOCK: "x"})]
    direct = knowing(r.topology("dc", r.BLOCK, r.RACK), *nodes, m.node("bare"))
    assert domains(direct, "kueue/dc") == {
        r.BLOCK: {"1-0": "x", "1-1": "y", "z-0": "x"},
        r.RACK: {"1-0": "x/1", "1-1": "y/1"},
    }


def test_t5_members_of_hyper_nodes_by_name_pattern_and_label() -> None:
    trees = [
        r.hyper_node("s0", 1, "a-0"),
        r.hyper_node("s1", 1, "/^b-[0-9]+$/"),
        r.hyper_node("s2", 1, f"{r.RACK}=c"),
        r.hyper_node("top", 2, "s0", "/^s[12]$/", of="HyperNode"),
    ]
    direct = knowing(*trees, *r.nodes({"a": 2, "b": 2, "c": 1}))
    assert domains(direct, HYPER_NODES) == {
        "HyperNode tier 2": {"a-0": "top", "b-0": "top", "b-1": "top", "c-0": "top"},
        "HyperNode tier 1": {"a-0": "s0", "b-0": "s1", "b-1": "s1", "c-0": "s2"},
    }


def test_t5_a_tier_that_is_left_out_is_the_one_below() -> None:
    trees = [
        r.hyper_node("s0", 1, "a-0"),
        r.hyper_node("s1", 2, "b-0"),
        r.hyper_node("top", 3, "s0", "s1", of="HyperNode"),
    ]
    direct = knowing(*trees, *r.nodes({"a": 1, "b": 1}))
    assert domains(direct, HYPER_NODES) == {
        "HyperNode tier 3": {"a-0": "top", "b-0": "top"},
        "HyperNode tier 2": {"a-0": "s0", "b-0": "s1"},
        "HyperNode tier 1": {"a-0": "s0"},
    }


def test_t5_a_member_is_a_node_or_a_hyper_node_whatever_its_name() -> None:
    mixed = r.hyper_node("s0", 1, "a-0")
    mixed["spec"]["members"] += r.hyper_node("", 1, "b-0", of="HyperNode")["spec"]["members"]
    direct = knowing(mixed, *r.nodes({"a": 1, "b": 1}))
    assert domains(direct, HYPER_NODES) == {"HyperNode tier 1": {"a-0": "s0"}}


def test_t5_a_pattern_that_cannot_be_read_has_no_members() -> None:
    direct = knowing(r.hyper_node("s0", 1, "/(/"), r.hyper_node("s1", 1, "a-0"), *r.nodes({"a": 1}))
    assert domains(direct, HYPER_NODES) == {"HyperNode tier 1": {"a-0": "s1"}}


def test_t5_layers_of_koordinator_follow_their_parents() -> None:
    layers = r.network_topology(("BlockLayer", r.BLOCK), ("RackLayer", r.RACK))
    layers["spec"]["networkTopologySpec"].reverse()
    direct = knowing(layers, *r.nodes({"1": 1}, "x"))
    assert list(domains(direct, "koordinator")) == ["BlockLayer", "RackLayer"]


def test_t5_the_config_names_trees() -> None:
    direct = DirectScheduler(parse({"topologies": [{"name": "dc", "levels": [r.BLOCK, r.RACK]}]}))
    for node in r.nodes({"1": 1}, "x"):
        direct.put(node)
    direct.engine.state.settle()
    assert domains(direct, "config/dc") == {r.BLOCK: {"1-0": "x"}, r.RACK: {"1-0": "x/1"}}


def test_t5_a_label_that_changes_moves_the_node() -> None:
    direct = knowing(*r.nodes({"a": 1, "b": 1}))
    assert domains(direct, f"{BY_LABEL}{r.RACK}") == {r.RACK: {"a-0": "a", "b-0": "b"}}
    direct.put(m.node("a-0", 4, labels={r.RACK: "c"}))
    direct.put(m.node("b-0", 4))
    direct.engine.state.settle()
    assert domains(direct, f"{BY_LABEL}{r.RACK}") == {r.RACK: {"a-0": "c"}}


@pytest.mark.parametrize("seed", range(5))
def test_t6_counts_that_are_kept_equal_fresh_ones(seed: int) -> None:
    dice = random.Random(seed)
    direct = knowing(*r.nodes({"a": 3, "b": 3, "c": 3}), m.pod("p", 1))
    state = direct.engine.state
    [task] = state.tasks.values()
    tree = state.trees.tree(f"{BY_LABEL}{r.RACK}")
    assert tree is not None
    for _ in range(40):
        row = dice.randrange(9)
        if dice.random() < 0.2:
            direct.put(m.node(state.nodes.names[row], dice.randrange(1, 6), labels={r.RACK: dice.choice("abcd")}))
            state.settle()
        elif state.nodes.free[0, row] >= 1000:
            state.nodes.allocate(row, task.cls.request)
        tree = state.trees.tree(f"{BY_LABEL}{r.RACK}")
        assert tree is not None
        level = tree.levels[0]
        kept = state.candidates(task.cls).counts.by_domain(level)
        fresh = np.zeros(len(level.names), np.int64)
        for number in range(9):
            if level.ids[number] >= 0:
                fresh[level.ids[number]] += max(0, int(state.nodes.free[0, number]) // 1000)
        assert kept.tolist() == fresh.tolist()


TIERS = [
    r.hyper_node("s0", 1, "a-0"),
    r.hyper_node("s1", 1, "b-0"),
    r.hyper_node("mid", 2, "s0", of="HyperNode", tier_name="leaf"),
    r.hyper_node("top", 4, "mid", "s1", of="HyperNode", tier_name="spine"),
]
T1, T2, T4 = (f"HyperNode tier {tier}" for tier in (1, 2, 4))


@pytest.mark.parametrize(
    ("constraint", "required", "between"),
    [
        # By label, without an object.
        (TopologyConstraint(f"label/{r.RACK}", r.RACK), r.RACK, [r.RACK]),
        (TopologyConstraint(f"label/{r.RACK}", "other"), f"topology {r.RACK} has no level other", []),
        # Kueue names a level only: of the trees that have it, Kueue's come first, then by name; else the label itself.
        (TopologyConstraint("kueue/", r.RACK), r.RACK, [r.RACK]),
        (TopologyConstraint("kueue/", r.BLOCK, r.RACK), r.BLOCK, [r.RACK, r.BLOCK]),
        (TopologyConstraint("kueue/", preferred=r.RACK), None, [r.RACK, r.BLOCK]),
        (TopologyConstraint("kueue/", "other"), "other", ["other"]),
        # KAI names a tree, which may be one of the config.
        (TopologyConstraint("kai/k", r.RACK), r.RACK, [r.RACK]),
        (TopologyConstraint("kai/c", r.RACK), r.RACK, [r.RACK]),
        (TopologyConstraint("kai/none", r.RACK), "topology none does not exist", []),
        (TopologyConstraint("kai/none", preferred=r.RACK), None, []),
        (TopologyConstraint("kai/k", r.BLOCK), f"topology k has no level {r.BLOCK}", []),
        (TopologyConstraint("kai/k", preferred=r.BLOCK), None, []),
        # Koordinator may name several layers: the lowest counts.
        (TopologyConstraint("koordinator", "Rack|Block"), "Rack", ["Rack"]),
        (TopologyConstraint("koordinator", "Block", "Rack"), "Block", ["Rack", "Block"]),
        (TopologyConstraint("koordinator", "Rack", "Block"), "Rack", ["Rack"]),  # above it: without effect
        (TopologyConstraint("koordinator", "Rack|None"), "topology koordinator has no level Rack, None", []),
        # Volcano's tiers count from the bottom.
        (TopologyConstraint("hypernodes", "1", "lowest"), T1, [T1]),
        (TopologyConstraint("hypernodes", "2", "lowest"), T2, [T1, T2]),
        (TopologyConstraint("hypernodes", "3", "lowest"), T2, [T1, T2]),  # the next one below
        (TopologyConstraint("hypernodes", "4", "lowest"), T4, [T1, T2, T4]),
        (TopologyConstraint("hypernodes", "5", "lowest"), None, [T1, T2, T4]),  # the whole cluster
        (TopologyConstraint("hypernodes", "0", "lowest"), "no HyperNode has tier 0 or a lower one", []),
        (TopologyConstraint("hypernodes", "name=leaf", "lowest"), T2, [T1, T2]),
        (TopologyConstraint("hypernodes", "name=spine", "lowest"), T4, [T1, T2, T4]),
        (TopologyConstraint("hypernodes", "name=none", "lowest"), "no HyperNode has the tier name none", []),
        (TopologyConstraint("hypernodes", preferred="lowest"), None, [T1, T2, T4]),
        (TopologyConstraint("invalid/x", "it cannot be read"), "it cannot be read", []),
    ],
)
def test_t5_levels_that_a_constraint_asks_for(
    constraint: TopologyConstraint, required: str | None, between: list[str]
) -> None:
    """`between`: from the preferred level up to the required one, or to the top."""
    layers = r.network_topology(("Block", r.BLOCK), ("Rack", r.RACK))
    trees = [r.topology("z", r.RACK), r.topology("dc", r.BLOCK, r.RACK), r.topology("k", r.RACK, group=r.KAI), layers]
    config = parse({"topologies": [{"name": "c", "levels": [r.BLOCK, r.RACK]}]})
    direct = DirectScheduler(config)
    for one in (*trees, *TIERS, *r.nodes({"a": 1, "b": 1}, "x")):
        direct.put(one)
    direct.engine.state.settle()
    found = direct.engine.state.trees.asked(constraint)
    if isinstance(found, str):
        assert (found, between) == (required, [])
    else:
        assert (found.required.name if found.required else None) == required
        assert [level.name for level in found.between] == between
        assert found.preferred is (found.between[0] if between else None)


def test_t5_trees_that_come_change_and_go() -> None:
    direct = knowing(*r.nodes({"a": 1}, "x"))
    trees = direct.engine.state.trees
    assert (trees.names(), trees.tree("kueue/dc"), trees.tree(HYPER_NODES)) == ([], None, None)
    direct.put(r.topology("dc", r.BLOCK))
    direct.put(TIERS[0])
    assert trees.names() == [HYPER_NODES, "kueue/dc"]
    assert list(domains(direct, "kueue/dc")) == [r.BLOCK]
    assert domains(direct, HYPER_NODES) == {T1: {"a-0": "s0"}}
    direct.put(r.topology("dc", r.BLOCK, r.RACK))
    direct.put(r.hyper_node("s0", 2, "a-0"))
    assert list(domains(direct, "kueue/dc")) == [r.BLOCK, r.RACK]
    assert domains(direct, HYPER_NODES) == {T2: {"a-0": "s0"}}
    direct.delete("Topology.kueue.x-k8s.io", "dc")
    direct.delete("HyperNode.topology.volcano.sh", "s0")
    assert (trees.names(), trees.tree("kueue/dc"), trees.tree(HYPER_NODES)) == ([], None, None)


def test_t5_a_level_may_be_named_by_an_alias() -> None:
    trees = knowing().engine.state.trees
    trees.put(TreeFacts("kai/x", (LevelFacts("zone", ("z",)), LevelFacts("rack", ("r",), alias="leaf"))))
    for name, level in (("leaf", "rack"), ("rack", "rack"), ("zone", "zone")):
        found = trees.asked(TopologyConstraint("kai/x", name))
        assert not isinstance(found, str)
        assert found.required is not None
        assert found.required.name == level


def test_t5_an_equal_tree_is_no_change() -> None:
    trees = knowing().engine.state.trees
    tree = TreeFacts("kueue/dc", (LevelFacts(r.RACK, (r.RACK,)),))
    assert [trees.put(tree), trees.put(tree)] == [True, False]
    node = HyperNodeFacts("s0", 1, "", (), "one")
    assert [trees.put_hyper_node(node), trees.put_hyper_node(node)] == [True, False]
    assert trees.put_hyper_node(HyperNodeFacts("s0", 1, "", (), "other"))


def test_t5_domains_are_ranked_by_natural_name_and_follow_rows() -> None:
    direct = knowing(*r.nodes({"r10": 1, "r9": 1, "a": 1}))
    tree = direct.engine.state.trees.tree(f"{BY_LABEL}{r.RACK}")
    assert tree is not None
    level = tree.levels[0]

    def ranked() -> list[str]:
        return [level.names[one] for one in sorted(range(len(level.names)), key=level.positions().__getitem__)]

    assert ranked() == ["a", "r9", "r10"]
    assert sorted(range(3), key=level.rank) == sorted(range(3), key=level.positions().__getitem__)
    version = level.version
    direct.put(m.node("r2-0", 4, labels={r.RACK: "r2"}))
    direct.engine.state.settle()
    direct.engine.state.trees.tree(f"{BY_LABEL}{r.RACK}")
    assert ranked() == ["a", "r2", "r9", "r10"]
    assert level.version > version
    assert {level.names[level.ids[row]]: name for name, row in direct.engine.state.nodes.rows.items()} == {
        "a": "a-0", "r2": "r2-0", "r9": "r9-0", "r10": "r10-0",
    }  # fmt: skip


def test_t5_of_several_hyper_nodes_above_a_node_the_lowest_tier_and_then_the_first_name() -> None:
    trees = [
        r.hyper_node("s0", 1, "a-0"),
        r.hyper_node("s1", 1, "/^a-/"),  # also has a-0
        r.hyper_node("wide", 2, "a-0", "a-2"),  # and this one, a tier above
        r.hyper_node("p", 2, "s0", of="HyperNode"),
        r.hyper_node("q", 3, "s0", "s1", of="HyperNode"),
    ]
    direct = knowing(*trees, *r.nodes({"a": 3}))
    assert domains(direct, HYPER_NODES) == {
        "HyperNode tier 3": {"a-0": "p", "a-1": "q", "a-2": "q"},
        T2: {"a-0": "p", "a-1": "s1", "a-2": "s1"},
        T1: {"a-0": "s0", "a-1": "s1", "a-2": "s1"},
    }


def test_t0_layers_that_name_each_other_as_parents_end() -> None:
    """A layer stands twice in Koordinator's object, once below its own child: a tree of three levels, and no more."""
    node = m.node("n", labels={"a": "x", "b": "y", "c": "z"})
    direct = knowing(node, r.network_topology(("A", "a"), ("B", "b"), ("A", "c")))
    found = direct.engine.state.trees.tree(KOORDINATOR)
    assert isinstance(found, NodeTree)
    assert len(found.levels) == 3


def test_t6_the_reference_that_attempts_every_domain_fails_where_none_holds_the_gang() -> None:
    """As the benchmark of topologies uses it."""
    nodes = [m.node(name, 2, labels={r.RACK: name}) for name in "xy"]
    for count, bound in ((2, 2), (3, 0)):
        direct = knowing(*nodes)
        direct.engine.parts.placer.tries_every_domain = True
        for one in r.native("g", count):
            direct.put(one)
        placed = [place for one in direct.engine.run(1) if isinstance(one, Bind) for place in one.placements]
        assert len(placed) == bound
        assert len({place.node for place in placed}) <= 1
