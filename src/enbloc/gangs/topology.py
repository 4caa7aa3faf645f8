"""Where a gang, or its pods of one role, must or should be together (T1, T2), read from the dialects' fields.

A `TopologyConstraint` names a tree of nodes and levels of it. Trees are the engine's (`engine/tables/node_trees`).
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from enbloc.api import topology
from enbloc.api.meta import Obj, annotations_of, labels_of, number_in

BY_LABEL: Final = "label/"
"""Trees of one level, which is the label after the slash: they need no object."""
HYPER_NODES: Final = "hypernodes"
"""The tree of Volcano's HyperNodes; its levels are tiers: "1" is the lowest."""
KUEUE: Final = "kueue/"
KAI: Final = "kai/"
KOORDINATOR: Final = "koordinator"
CONFIG: Final = "config/"

HARD, SOFT = "hard", "soft"
MUST_GATHER, PREFER_GATHER = "MustGather", "PreferGather"


class TopologyConstraint(msgspec.Struct, frozen=True, order=True):
    """`required`: all in one domain of this level; `preferred`: in as few domains of this level as possible."""

    tree: str
    required: str = ""
    preferred: str = ""


class PodTopology(msgspec.Struct, frozen=True):
    """What a pod says for the pods of its role, or for its whole gang."""

    constraint: TopologyConstraint
    of_role: bool = True
    """Whether it is for the pods of its role; else for all of its gang."""
    slice_size: int = 0
    """The pods of its role are split by index into slices of this size, each with the constraint (T3); 0: they are
    not."""


def of_network_topology(value: Any) -> TopologyConstraint | None:
    """Volcano's `networkTopology`. Without a highest tier it asks for as low a tier as possible only."""
    if not isinstance(value, dict) or not value:
        return None
    tier, name = value.get("highestTierAllowed"), value.get("highestTierName")
    bound = str(tier) if isinstance(tier, int) and not isinstance(tier, bool) else f"name={name}" if name else ""
    if (value.get("mode") or HARD) == SOFT:
        return TopologyConstraint(HYPER_NODES, preferred=LOWEST)
    return TopologyConstraint(HYPER_NODES, required=bound, preferred=LOWEST)


def of_owner(owner: Obj) -> TopologyConstraint | None:
    """Volcano's `networkTopology` as annotations or labels of the owner of ordinary pods. A tier that is not a number
    names none that exists."""
    texts = {**labels_of(owner), **annotations_of(owner)}
    mode = texts.get(topology.VOLCANO_MODE)
    tier = texts.get(topology.VOLCANO_HIGHEST_TIER) or texts.get(f"{topology.VOLCANO_HIGHEST_TIER}-allowed")
    if not mode and not tier:
        return None
    asked: dict[str, Any] = {"mode": mode or HARD}
    if tier:
        is_number = tier.isascii() and tier.isdecimal() and len(tier) < 10
        asked |= {"highestTierAllowed": int(tier)} if is_number else {"highestTierName": tier}
    return of_network_topology(asked)


LOWEST: Final = "lowest"
"""The lowest level of a tree."""


def of_native(value: Any) -> TopologyConstraint | None:
    """`schedulingConstraints` of a Kubernetes PodGroup: the key of a node label."""
    items = value.get("topology") if isinstance(value, dict) else None
    keys = [str(item["key"]) for item in items or () if isinstance(item, dict) and item.get("key")]
    return TopologyConstraint(f"{BY_LABEL}{keys[0]}", required=keys[0]) if len(keys) == 1 else None


def of_gather_strategy(text: str | None) -> TopologyConstraint | None:
    """Koordinator's `network-topology-spec`: of several layers with MustGather the lowest counts, since a domain lies
    within those above. Which is the lowest is known to the tree: the layers are joined by `|`."""
    try:
        strategies = json.loads(text).get("gatherStrategy") if text else None
    except (ValueError, AttributeError):
        return None
    layers: dict[str, list[str]] = {MUST_GATHER: [], PREFER_GATHER: []}
    for one in strategies if isinstance(strategies, list) else ():
        if isinstance(one, dict) and one.get("strategy") in layers and isinstance(one.get("layer"), str):
            layers[one["strategy"]].append(one["layer"])
    required, preferred = layers[MUST_GATHER], layers[PREFER_GATHER]
    if not required and not preferred:
        return None
    return TopologyConstraint(KOORDINATOR, "|".join(required), "|".join(preferred))


def of_pod(pod: Obj) -> tuple[PodTopology, ...]:
    """The annotations of Kueue, which are for the pods of one template, and of KAI and Koordinator, which are for the
    gang."""
    annotations = annotations_of(pod)
    if not annotations:
        return ()
    found: list[PodTopology] = []
    required, preferred = annotations.get(topology.KUEUE_REQUIRED), annotations.get(topology.KUEUE_PREFERRED)
    if required or preferred:
        found.append(PodTopology(TopologyConstraint(KUEUE, required or "", preferred or "")))
    sliced = annotations.get(topology.KUEUE_SLICE_REQUIRED)
    if sliced:
        size = number_in(annotations.get(topology.KUEUE_SLICE_SIZE)) or 0
        found.append(PodTopology(TopologyConstraint(KUEUE, sliced), slice_size=size))
    required, preferred = annotations.get(topology.KAI_REQUIRED), annotations.get(topology.KAI_PREFERRED)
    if required or preferred:
        tree = annotations.get(topology.KAI_TREE, "")
        found.append(PodTopology(TopologyConstraint(f"{KAI}{tree}", required or "", preferred or ""), of_role=False))
    gathered = of_gather_strategy(annotations.get(topology.NETWORK_TOPOLOGY_SPEC))
    if gathered is not None:
        found.append(PodTopology(gathered, of_role=False))
    return tuple(found)
