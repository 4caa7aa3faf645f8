"""The objects that describe node trees, into the facts that `tables.node_trees` holds (T5). Pure functions."""

from __future__ import annotations

import json
from typing import Final

from enbloc.api import topology as api
from enbloc.api.kinds import view
from enbloc.api.meta import LabelSelector, Obj, name_of, selector_of
from enbloc.config import Topology
from enbloc.engine.core.tables.node_trees import HyperNodeFacts, LevelFacts, MemberFacts, NodeTrees, TreeFacts
from enbloc.gangs.topology import CONFIG, KAI, KOORDINATOR, KUEUE

_DEFAULT: Final = "default"
"""The name of the ClusterNetworkTopology that Koordinator reads."""


def observe_tree(trees: NodeTrees, kind: str, obj: Obj, gone: bool) -> bool:
    """An object of `api.TREE_KINDS` was created, changed or deleted: whether a tree is other than before."""
    name = name_of(obj)
    if kind == api.HYPER_NODE:
        if gone:
            trees.remove_hyper_node(name)
            return True
        return trees.put_hyper_node(_hyper_node(obj))
    facts = _network(obj) if kind == api.CLUSTER_NETWORK_TOPOLOGY else _labels(kind, obj)
    if gone:
        trees.remove(facts.name)
        return True
    return trees.put(facts)


def of_config(topology: Topology) -> TreeFacts:
    """A tree that the config names."""
    return TreeFacts(f"{CONFIG}{topology.name}", tuple(LevelFacts(key, (key,)) for key in topology.levels))


def _labels(kind: str, obj: Obj) -> TreeFacts:
    prefix = KUEUE if kind == api.KUEUE_TOPOLOGY else KAI
    levels = view(obj, api.Topology).spec.levels or ()
    found = tuple(LevelFacts(one.node_label, (one.node_label,), one.alias) for one in levels if one.node_label)
    return TreeFacts(f"{prefix}{name_of(obj)}", found)


def _network(obj: Obj) -> TreeFacts:
    """Koordinator's layers, each below its parent; one without a label is left out, as its nodes have no domain."""
    layers = view(obj, api.ClusterNetworkTopology).spec.network_topology_spec or ()
    below = {one.parent_topology_layer: one for one in layers}
    names = {one.topology_layer for one in layers}
    found: list[LevelFacts] = []
    top = next((one for one in layers if one.parent_topology_layer not in names), None)
    while top is not None and len(found) < len(layers):
        is_node = top.topology_layer == api.NODE_LAYER and not top.label_key
        found.append(LevelFacts(top.topology_layer, (api.HOST_NAME,) if is_node else tuple(top.label_key or ())))
        top = below.get(top.topology_layer)
    name = name_of(obj)
    return TreeFacts(
        KOORDINATOR if name == _DEFAULT else f"{KOORDINATOR}/{name}", tuple(one for one in found if one.keys)
    )


def _hyper_node(obj: Obj) -> HyperNodeFacts:
    spec = view(obj, api.HyperNode).spec
    written = json.dumps(obj.get("spec"), sort_keys=True, default=str)
    members = tuple(map(_member, spec.members or ()))
    return HyperNodeFacts(name_of(obj), spec.tier, spec.tier_name, members, written)


def _member(member: api.Member) -> MemberFacts:
    selector, is_node = member.selector, member.type == "Node"
    if selector.exact_match is not None:
        return MemberFacts(is_node, name=selector.exact_match.name)
    if selector.regex_match is not None:
        return MemberFacts(is_node, pattern=selector.regex_match.pattern)
    if selector.label_match is None:
        return MemberFacts(is_node)
    try:
        found = selector_of(view(selector.label_match, LabelSelector))
    except ValueError:
        found = None
    return MemberFacts(is_node, matches=found.matches if found is not None else None)
