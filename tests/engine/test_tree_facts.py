"""What the engine reads of the objects that describe node trees (T5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from enbloc.api import topology as api
from enbloc.engine.core.tables.node_trees import HyperNodeFacts, LevelFacts, NodeTrees, TreeFacts
from enbloc.engine.tree_facts import observe_tree
from enbloc.gangs.topology import KAI, KOORDINATOR, KUEUE


class Trees:
    """What was put and removed."""

    def __init__(self, news: bool = True) -> None:
        self.put_trees: list[TreeFacts] = []
        self.hyper_nodes: list[HyperNodeFacts] = []
        self.removed: list[str] = []
        self._trees = SimpleNamespace(
            put=lambda facts: self.put_trees.append(facts) or news,
            remove=self.removed.append,
            put_hyper_node=lambda facts: self.hyper_nodes.append(facts) or news,
            remove_hyper_node=self.removed.append,
        )

    def observe(self, kind: str, spec: dict[str, Any], name: str = "t", gone: bool = False) -> bool:
        obj = {"apiVersion": "x/v1", "kind": kind.partition(".")[0], "metadata": {"name": name}, "spec": spec}
        return observe_tree(cast(NodeTrees, self._trees), kind, obj, gone)


LEVELS = {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack", "alias": "r"}, {"nodeLabel": ""}]}


@pytest.mark.parametrize(("kind", "prefix"), [(api.KUEUE_TOPOLOGY, KUEUE), (api.KAI_TOPOLOGY, KAI)])
def test_t5_a_topology_is_a_tree_of_its_labels_from_the_top_down(kind: str, prefix: str) -> None:
    trees = Trees()
    assert trees.observe(kind, LEVELS)
    (found,) = trees.put_trees
    assert found.name == f"{prefix}t"
    assert [(one.name, one.keys) for one in found.levels] == [("zone", ("zone",)), ("rack", ("rack",))]
    assert trees.observe(kind, LEVELS, gone=True)
    assert trees.removed == [f"{prefix}t"]


def layer(name: str, parent: str, *labels: str) -> dict[str, Any]:
    return {"topologyLayer": name, "parentTopologyLayer": parent, "labelKey": list(labels)}


SPINE, BLOCK, NODE = (
    layer("Spine", "", "spine"),
    layer("Block", "Spine", "block", "old-block"),
    layer(api.NODE_LAYER, "Block"),
)


@pytest.mark.parametrize(
    ("layers", "levels"),
    [
        ([], []),
        ([SPINE], [("Spine", ("spine",))]),
        ([NODE, BLOCK, SPINE],
         [("Spine", ("spine",)), ("Block", ("block", "old-block")), (api.NODE_LAYER, (api.HOST_NAME,))]),
        ([SPINE, layer("Block", "Spine"), layer("Rack", "Block", "rack")],
         [("Spine", ("spine",)), ("Rack", ("rack",))]),
        ([layer(api.NODE_LAYER, "", "name")], [(api.NODE_LAYER, ("name",))]),
        ([layer("A", "B", "a"), layer("B", "A", "b")], []),  # in a circle there is no top
        ([SPINE, layer("Spine", "Spine", "x")], [("Spine", ("spine",)), ("Spine", ("x",))]),  # it ends
    ],
)  # fmt: skip
def test_t5_the_layers_of_koordinator_each_below_its_parent(
    layers: list[dict[str, Any]], levels: list[tuple[str, tuple[str, ...]]]
) -> None:
    trees = Trees()
    trees.observe(api.CLUSTER_NETWORK_TOPOLOGY, {"networkTopologySpec": layers})
    assert trees.put_trees[0].levels == tuple(LevelFacts(name, keys) for name, keys in levels)


@pytest.mark.parametrize(("name", "tree"), [("default", KOORDINATOR), ("other", f"{KOORDINATOR}/other")])
def test_t5_the_default_tree_of_koordinator_has_its_name(name: str, tree: str) -> None:
    trees = Trees()
    trees.observe(api.CLUSTER_NETWORK_TOPOLOGY, {}, name)
    trees.observe(api.CLUSTER_NETWORK_TOPOLOGY, {}, name, gone=True)
    assert ([one.name for one in trees.put_trees], trees.removed) == ([tree], [tree])


@pytest.mark.parametrize(
    ("member", "facts"),
    [
        ({"type": "Node", "selector": {"exactMatch": {"name": "n"}}}, (True, "n", "", None)),
        ({"type": "HyperNode", "selector": {"exactMatch": {"name": "h"}}}, (False, "h", "", None)),
        ({"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}, (True, "", "n.*", None)),
        ({"type": "Node", "selector": {"labelMatch": {"matchLabels": {"a": "b"}}}}, (True, "", "", True)),
        ({"type": "Node", "selector": {"labelMatch": {"matchLabels": {"a": "c"}}}}, (True, "", "", False)),
        ({"type": "Node", "selector": {"labelMatch": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}}},
         (True, "", "", None)),
        ({"type": "Node", "selector": {}}, (True, "", "", None)),
    ],
)  # fmt: skip
def test_t5_the_members_of_a_hyper_node(member: dict[str, Any], facts: tuple[bool, str, str, bool | None]) -> None:
    """By name, by pattern, or by labels: a node has the label a=b."""
    trees = Trees()
    assert trees.observe(api.HYPER_NODE, {"tier": 2, "tierName": "rack", "members": [member]}, "h")
    (found,) = trees.hyper_nodes
    assert (found.name, found.tier, found.tier_name) == ("h", 2, "rack")
    (one,) = found.members
    assert (one.is_node, one.name, one.pattern) == facts[:3]
    assert (one.matches({"a": "b"}) if one.matches is not None else None) is facts[3]


@pytest.mark.parametrize("kind", [api.HYPER_NODE, api.KUEUE_TOPOLOGY, api.CLUSTER_NETWORK_TOPOLOGY])
def test_g9_a_tree_that_is_as_before_is_no_news_and_one_that_is_gone_is(kind: str) -> None:
    trees = Trees(news=False)
    assert not trees.observe(kind, {})
    assert trees.removed == []
    assert trees.observe(kind, {}, gone=True)
    assert len(trees.removed) == 1
    assert Trees(news=True).observe(kind, {})
