"""T5: the domain of each node at each level of a tree, from labels and from HyperNodes; T6: what fits in each domain is
counted row by row and equals a fresh count."""

from __future__ import annotations

import random

import numpy as np
import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Bind
from enbloc.engine.tables.node_trees import NodeTree
from enbloc.gangs.topology import BY_LABEL, HYPER_NODES, KOORDINATOR
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
